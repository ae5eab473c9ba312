package dataset

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
)

// A blockedEmbedder waits for its channel to be closed.
type blockedEmbedder struct {
	started func()
	release <-chan struct{}
}

func (e blockedEmbedder) ID() string     { return "blocked" }
func (e blockedEmbedder) Dimension() int { return 2 }
func (e blockedEmbedder) MaxTokens() int { return 0 }
func (e blockedEmbedder) Embed(ctx context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	e.started()
	select {
	case <-e.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	vectors := make([][]float32, len(texts))
	for i := range vectors {
		vectors[i] = []float32{1, 0}
	}
	return vectors, nil
}

// TestMain creates a dataset that is never completed if CREATE_IN is set, for
// [TestKilledCreate].
func TestMain(m *testing.M) {
	dir := os.Getenv("CREATE_IN")
	if dir == "" {
		os.Exit(m.Run())
	}
	e := blockedEmbedder{started: func() { os.Stdout.WriteString("computing\n") }}
	_, _ = Create(context.Background(), CreateOptions{Dir: dir, ID: "one", Sources: []string{os.Getenv("CREATE_FROM")},
		Embedder: e, Model: "x", Replace: true})
}

// killCreate runs a process that creates dataset "one", and kills it before it is
// complete.
func killCreate(t *testing.T, dir, source string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CREATE_IN="+dir, "CREATE_FROM="+source)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "computing\n" {
		t.Errorf("the process wrote %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// hidden returns the names of the hidden entries of a folder.
func hidden(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// What a killed process left behind is removed by the next Create or Delete of
// any dataset.
func TestKilledCreate(t *testing.T) {
	source := t.TempDir()
	put(t, filepath.Join(source, "a.txt"), "A text about dragons.")
	for name, next := range map[string]func(root string) error{
		"the same dataset": func(root string) error {
			_, err := Create(t.Context(), CreateOptions{Dir: root, ID: "one", Sources: []string{source}, Replace: true})
			return err
		},
		"another dataset": func(root string) error {
			_, err := Create(t.Context(), CreateOptions{Dir: root, ID: "two", Sources: []string{source}})
			return err
		},
		"delete": func(root string) error { _, err := Delete(root, "one"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			newSample("one").write(t, root, "one")
			killCreate(t, root, source)
			if left := hidden(t, root); len(left) != 1 || !strings.HasPrefix(left[0], ".one.new-") {
				t.Fatalf("the killed process left %q", left)
			}
			if err := next(root); err != nil {
				t.Fatal(err)
			}
			if left := hidden(t, root); left != nil {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// A Create in progress is not disturbed by others, even if it takes days.
func TestConcurrentCreate(t *testing.T) {
	root, source := t.TempDir(), t.TempDir()
	put(t, filepath.Join(source, "a.txt"), "A text about dragons.")
	started, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := Create(t.Context(), CreateOptions{Dir: root, ID: "one", Sources: []string{source}, Model: "x",
			Embedder: blockedEmbedder{func() { close(started) }, release}})
		done <- err
	}()
	<-started
	for _, name := range hidden(t, root) {
		long := time.Now().Add(-72 * time.Hour)
		if err := os.Chtimes(filepath.Join(root, name), long, long); err != nil {
			t.Error(err)
		}
	}
	if _, err := Create(t.Context(), CreateOptions{Dir: root, ID: "two", Sources: []string{source}}); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	onlyFolders(t, root, "one", "two")
}

// A process can be killed between any two steps of replacing a dataset. Neither
// the dataset nor the user's files in its folder are lost.
func TestKilledReplace(t *testing.T) {
	source := t.TempDir()
	put(t, filepath.Join(source, "a.txt"), "A text about dragons.")
	for name, state := range map[string]func(t *testing.T, root string){
		"new and old dataset exchanged": func(t *testing.T, root string) {
			newSample("one").write(t, root, "one")
			newSample("one").write(t, root, ".one.new-1")
			put(t, filepath.Join(root, ".one.new-1", "README.md"), "mine")
		},
		"old dataset removed in part": func(t *testing.T, root string) {
			newSample("one").write(t, root, "one")
			newSample("one").write(t, root, ".one.new-1")
			put(t, filepath.Join(root, ".one.new-1", "README.md"), "mine")
			if err := os.Remove(filepath.Join(root, ".one.new-1", "manifest.json")); err != nil {
				t.Fatal(err)
			}
		},
		"old dataset moved away": func(t *testing.T, root string) {
			newSample("one").write(t, root, ".one.new-1")
			newSample("one").write(t, root, ".one.new-1.old")
			put(t, filepath.Join(root, ".one.new-1.old", "README.md"), "mine")
		},
		"new dataset in its place": func(t *testing.T, root string) {
			newSample("one").write(t, root, "one")
			newSample("one").write(t, root, ".one.new-1.old")
			put(t, filepath.Join(root, ".one.new-1.old", "README.md"), "mine")
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			state(t, root)
			if _, err := Create(t.Context(), CreateOptions{Dir: root, ID: "two",
				Sources: []string{source}}); err != nil {
				t.Fatal(err)
			}
			onlyFolders(t, root, "one", "two")
			if got := list(t, open(t, root))["one"]; got.State != Ready || got.Vectors != 3 {
				t.Errorf("got %+v", got)
			}
			if data, err := os.ReadFile(filepath.Join(root, "one", "README.md")); string(data) != "mine" {
				t.Errorf("the user's file: %q, %v", data, err)
			}
		})
	}
}
