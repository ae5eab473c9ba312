package indexing

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
)

var (
	discard = slog.New(slog.DiscardHandler)
	stamp   = document.Stamp{Size: 3, ModTime: time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC)}
)

func ref(path string) document.Ref { return document.Ref{Label: "docs", Path: path} }

// checkPast checks what a journal says about files.
func checkPast(t *testing.T, j *journal, want map[string]ingest.Past) {
	t.Helper()
	for path, past := range want {
		if got := j.Past(ref(path), stamp); got != past {
			t.Errorf("Past(%s) = %+v, want %+v", path, got, past)
		}
	}
}

// openDying opens the journal of a process that dies. Its file is closed then.
func openDying(t *testing.T, dir string) *journal {
	t.Helper()
	j := openJournal(dir, "docs", discard)
	t.Cleanup(func() { j.file.Close() })
	return j
}

// A process that dies leaves its journal as it is; the next one opens it.
func TestJournalRemembersDeaths(t *testing.T) {
	dir := t.TempDir()
	j := openDying(t, dir)
	j.Begin(ref("a"), stamp)
	j.Begin(ref("b"), stamp)
	j.Begin(ref("c"), stamp)(ingest.Past{})
	j.Begin(ref("slow"), stamp)(ingest.Past{Slow: time.Second})
	checkPast(t, j, map[string]ingest.Past{"a": {}, "b": {}, "c": {}, "slow": {Slow: time.Second}})

	// The next process reads the suspects one by one, and dies over b.
	j = openDying(t, dir)
	checkPast(t, j, map[string]ingest.Past{"a": {Deaths: 1}, "b": {Deaths: 1}, "c": {}, "slow": {Slow: time.Second}})
	j.Begin(ref("a"), stamp)(ingest.Past{})
	j.Begin(ref("b"), stamp)

	j = openJournal(dir, "docs", discard)
	checkPast(t, j, map[string]ingest.Past{"a": {}, "b": {Deaths: 2}, "c": {}, "slow": {Slow: time.Second}})
	if got := j.Past(ref("b"), document.Stamp{Size: 4, ModTime: stamp.ModTime}); got != (ingest.Past{}) {
		t.Errorf("Past of another state = %+v, want none", got)
	}

	// A process that ends in order leaves nothing more.
	j.close()
	j = openJournal(dir, "docs", discard)
	defer j.close()
	checkPast(t, j, map[string]ingest.Past{"a": {}, "b": {Deaths: 2}, "c": {}})
	other := openJournal(dir, "other", discard)
	defer other.close()
	checkPast(t, other, map[string]ingest.Past{"b": {}})
}

func TestJournalIsBounded(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(dir, "docs", discard)
	defer j.close()
	j.Begin(ref("suspect"), stamp)
	long := strings.Repeat("x", 2000)
	for i := range 1000 {
		j.Begin(ref(fmt.Sprint(long, i)), stamp)(ingest.Past{})
	}
	info, err := j.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxJournal+10_000 {
		t.Errorf("the file has %d bytes, want about %d at most", info.Size(), maxJournal)
	}
	next := openJournal(dir, "docs", discard)
	defer next.close()
	checkPast(t, next, map[string]ingest.Past{"suspect": {Deaths: 1}, long + "1": {}})
}

func TestJournalSurvivesDamage(t *testing.T) {
	good := `{"path":"a","size":3,"modified":"2020-01-02T03:04:05.000000678Z","reading":true}` + "\n"
	for name, data := range map[string]string{
		"garbage": "\x00\xff{{{\n[1]\nnull\n" + good,
		"cut":     good + `{"path":"a","size":3,"modif`,
		"zeros":   good + strings.Repeat("\x00", 1000),
		"foreign": good + `{"path":"b","deaths":-5}` + "\n" + `{"path":"","deaths":5}` + "\n" +
			`{"path":"c","size":"x"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			openJournal(dir, "docs", discard).close()
			files, err := filepath.Glob(filepath.Join(dir, journalFolder, "*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("files %v, %v, want one", files, err)
			}
			if err := os.WriteFile(files[0], []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			j := openDying(t, dir)
			checkPast(t, j, map[string]ingest.Past{"a": {Deaths: 1}, "b": {}, "c": {}})
			j.Begin(ref("new"), stamp) // can be appended
			j = openJournal(dir, "docs", discard)
			defer j.close()
			checkPast(t, j, map[string]ingest.Past{"a": {Deaths: 1}, "new": {Deaths: 1}})
		})
	}
}

// Where nothing can be written, files are read all the same.
func TestJournalWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journalFolder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	j := openJournal(dir, "docs", slog.New(slog.NewTextHandler(&log, nil)))
	j.Begin(ref("a"), stamp)(ingest.Past{Slow: time.Second})
	checkPast(t, j, map[string]ingest.Past{"a": {Slow: time.Second}})
	j.close()
	if n := strings.Count(log.String(), "check that the data folder can be written"); n != 1 {
		t.Errorf("the log says so %d times, want once:\n%s", n, log.String())
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"path":"a","size":3,"modified":"2020-01-02T03:04:05Z","reading":true,"deaths":1,"slow":5}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j := &journal{log: discard, past: map[string]record{}, reading: map[string]record{}}
		j.load(data)
		for path, r := range j.past {
			if path == "" || path != r.Path || r.Reading || r.Deaths < 0 || r.Deaths == 0 && r.Slow <= 0 {
				t.Errorf("remembers %q as %+v", path, r)
			}
		}
	})
}
