package index

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// large returns n documents whose words make one segment that is stored in a
// file. Document i has the words largeI and uniqueI.
func large(n int) []document.Change {
	var many []document.Change
	for i := range n {
		c := simple(fmt.Sprint("large", i), 2)
		c.Put.Text += fmt.Sprintf(" unique%d", i)
		for n := range 40 {
			c.Put.Text += fmt.Sprintf(" w%dx%d", i, n)
		}
		last := &c.Put.Chunks[len(c.Put.Chunks)-1]
		last.Length = len(c.Put.Text) - last.Offset
		many = append(many, c)
	}
	return many
}

// largeFolder returns a data folder with a small document and 300 documents of
// large, the latter in one file.
func largeFolder(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	x := openIn(t, dir)
	apply(t, x, simple("small", 3))
	apply(t, x, large(300)...)
	closeIt(t, x)
	return dir
}

// segmentFiles returns the paths of the segments in files.
func segmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, segments.Dir, "*.segment"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// flip inverts bytes of a file.
func flip(t *testing.T, path string, off, n int64) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, off); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] ^= 0xff
	}
	if _, err := f.WriteAt(b, off); err != nil {
		t.Fatal(err)
	}
}

// TestDamageWhileRunning damages the file of a segment that is mapped. Searches
// and writes go on, and nothing is lost.
func TestDamageWhileRunning(t *testing.T) {
	size := func(t *testing.T, path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	made := largeFolder(t)
	tests := map[string]func(t *testing.T, path string){
		"first bytes": func(t *testing.T, path string) { flip(t, path, 0, 100) },
		"rows":        func(t *testing.T, path string) { flip(t, path, 8, 2400) },
		"everything":  func(t *testing.T, path string) { flip(t, path, 0, size(t, path)) },
		"footer":      func(t *testing.T, path string) { flip(t, path, size(t, path)-200, 200) },
		"truncated": func(t *testing.T, path string) {
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
		},
		"empty": func(t *testing.T, path string) {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		},
		"removed": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	}
	tests["zeros"] = func(t *testing.T, path string) {
		if err := os.WriteFile(path, make([]byte, size(t, path)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 8 {
		tests[fmt.Sprintf("part %d", n)] = func(t *testing.T, path string) {
			flip(t, path, size(t, path)*int64(n)/8, size(t, path)/8)
		}
	}
	if runtime.GOOS == "windows" {
		// The system refuses that for a file that is mapped.
		for _, name := range []string{"truncated", "empty", "removed", "zeros"} {
			delete(tests, name)
		}
	}
	for name, harm := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
				t.Fatal(err)
			}
			var log lockedBuffer
			x, err := Open(t.Context(), Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer closeIt(t, x)
			if n := total(t, x, "happy"); n != 301 {
				t.Fatalf("Search(happy) = %d, want 301", n)
			}
			files := segmentFiles(t, dir)
			if len(files) != 1 {
				t.Fatalf("the segments in files are %v, want one", files)
			}
			harm(t, files[0])
			for _, text := range []string{"happy", "unique7", "par*", `"of happy"`, "hapyp~2", ""} {
				if p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 100}); err != nil {
					t.Errorf("with a damaged segment, Search(%q) = %v", text, err)
				} else if p.Total < 301 && text == "happy" && !p.Partial {
					t.Errorf("with a damaged segment, Search(%q) finds %d and is not partial", text, p.Total)
				}
			}
			apply(t, x, simple("large7", 3), document.Change{Delete: &document.Ref{Label: "a", Path: "large8"}})
			if err := x.Maintain(t.Context(), nil); err != nil {
				t.Fatalf("Maintain() = %v", err)
			}
			for text, want := range map[string]int{"happy": 300, "unique9": 1, "unique299": 1, "unique7": 0,
				"unique8": 0, "large7": 1} {
				p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 100})
				if err != nil || p.Total != want || p.Partial || len(p.Hits) != min(want, 100) {
					t.Errorf("after Maintain, Search(%s) = %+v, %v, want %d documents", text, p, err, want)
				}
			}
			if !strings.Contains(log.String(), filepath.Base(files[0])) {
				t.Errorf("the log does not name the file:\n%s", log.String())
			}
		})
	}
}

// TestRebuildIsReported opens an index whose segments are of an older version of
// package analysis. The log says that the words are indexed again.
func TestRebuildIsReported(t *testing.T) {
	dir := t.TempDir()
	x := openIn(t, dir)
	for i := range 5 {
		apply(t, x, simple(fmt.Sprint(i), 1))
	}
	execute(t, x, `UPDATE segments SET analyzer=0`)
	closeIt(t, x)
	var log lockedBuffer
	x, err := Open(t.Context(), Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, x)
	maintain(t, x)
	for _, want := range []string{"indexed again", "documents are indexed\" documents=5"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log does not contain %q once:\n%s", want, log.String())
		}
	}
}
