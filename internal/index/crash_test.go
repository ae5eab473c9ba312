package index_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Environment variables that make the test binary a writer: the data folder and
// the name of the writer.
const writerDir, writerLabel = "KNOWHOW_TEST_WRITER_DIR", "KNOWHOW_TEST_WRITER_LABEL"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		if err := writeForever(dir, os.Getenv(writerLabel)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeForever stores, replaces and deletes documents of a label until it is
// killed. It prints what it is about to do, and then "done".
func writeForever(dir, writer string) error {
	ctx := context.Background()
	x, err := index.Open(ctx, index.Options{Dir: dir})
	if err != nil {
		return err
	}
	stamps, err := x.Stamps(ctx, writersLabel)
	if err != nil {
		return err
	}
	var mine []string // paths
	for path := range stamps {
		if strings.HasPrefix(path, writer) {
			mine = append(mine, path)
		}
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(os.Getpid())))
	for n := 0; ; n++ {
		path := fmt.Sprintf("%s-%d-%d", writer, os.Getpid(), n)
		changes, plan := puts(writerDoc(path, n)), fmt.Sprintf("put %s %d", path, n)
		if i := r.IntN(len(mine) + 1); i < len(mine) {
			plan += fmt.Sprintf(" put %s %d", mine[i], n)
			changes = append(changes, puts(writerDoc(mine[i], n))...)
		}
		mine = append(mine, path)
		for len(mine) > writerDocs || len(mine) > 3 && n%3 == 0 && len(changes) < 3 {
			i := r.IntN(len(mine) - 1)
			if strings.Contains(plan, mine[i]+" ") {
				i = (i + 1) % (len(mine) - 1)
			}
			if strings.Contains(plan, mine[i]+" ") {
				break
			}
			plan += " delete " + mine[i] + " 0"
			changes = append(changes, document.Change{Delete: &document.Ref{Label: writersLabel, Path: mine[i]}})
			mine = slices.Delete(mine, i, i+1)
		}
		fmt.Println(plan)
		if err := x.Apply(ctx, changes); err != nil {
			return err
		}
		fmt.Println("done")
	}
}

// Both writers write documents of one label, so that they merge the same
// segments. Each keeps up to writerDocs documents.
const (
	writersLabel = "both"
	writerDocs   = 60
)

// writerDoc returns a version of a document. It has a word of its own, one for
// the version, and others that make segments large.
func writerDoc(path string, version int) document.Document {
	var b strings.Builder
	fmt.Fprintf(&b, "%s common version%d.\n\n", writerWord(path), version)
	for i := range 300 * (1 + version%10) {
		fmt.Fprintf(&b, " w%dx%d", version%50, i)
	}
	return doc(writersLabel, path, "Document", b.String())
}

func writerWord(path string) string { return "q" + strings.ReplaceAll(path, "-", "q") }

// A writer is a process that writes.
type writer struct {
	cmd     *exec.Cmd
	lines   chan string
	started chan struct{} // closed after the first change
}

// startWriter starts a process that writes.
func startWriter(t *testing.T, dir, name string) *writer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatalf("finding the test binary: %v", err)
	}
	w := &writer{cmd: exec.Command(exe), lines: make(chan string, 100_000), started: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), writerDir+"="+dir, writerLabel+"="+name)
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("starting a writer: %v", err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatalf("starting a writer: %v", err)
	}
	go func() {
		defer close(w.lines)
		for n, lines := 0, bufio.NewScanner(out); lines.Scan(); n++ {
			w.lines <- lines.Text()
			if n == 1 {
				close(w.started)
			}
		}
	}()
	return w
}

// kill kills the process, and adds what it did to versions: the version of each
// document, or -1 if it was deleted. The last change is added to doubtful if it
// may have been made or not.
func (w *writer) kill(t *testing.T, versions, doubtful map[string]int) (changes int) {
	if err := w.cmd.Process.Kill(); err != nil {
		t.Errorf("killing a writer: %v", err)
	}
	plan := ""
	take := func(to map[string]int) {
		for f := strings.Fields(plan); len(f) >= 3; f = f[3:] {
			to[f[1]] = -1
			if f[0] == "put" {
				to[f[1]], _ = strconv.Atoi(f[2])
			}
		}
		plan = ""
	}
	for line := range w.lines {
		if line == "done" {
			take(versions)
			changes++
		} else {
			plan = line
		}
	}
	take(doubtful)
	_ = w.cmd.Wait() // it was killed
	return changes
}

// killRounds is how often TestKilledWriters kills two writers, unless
// KNOWHOW_TEST_KILLS is set.
const killRounds = 6

// TestKilledWriters kills processes that write, two at a time into one index, at
// random moments. All changes that they reported as done must be there: each
// document is found exactly once and in its latest version, and no deleted one.
func TestKilledWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	rounds := killRounds
	if n, err := strconv.Atoi(os.Getenv("KNOWHOW_TEST_KILLS")); err == nil {
		rounds = n
	}
	dir := t.TempDir()
	versions := map[string]int{}
	changes, most := 0, index.State{}
	for round := range rounds {
		a, b := startWriter(t, dir, "a"), startWriter(t, dir, "b")
		<-a.started
		<-b.started
		time.Sleep(rand.N(300 * time.Millisecond)) // any moment is right
		doubtful := map[string]int{}
		changes += a.kill(t, versions, doubtful)
		time.Sleep(rand.N(50 * time.Millisecond))
		changes += b.kill(t, versions, doubtful)

		// What the processes left was left long ago, in every other round.
		if round%2 == 0 {
			if err := index.Age(dir, 2*time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		x, err := index.Open(t.Context(), index.Options{Dir: dir})
		if err != nil {
			t.Fatalf("round %d: Open() = %v", round, err)
		}
		state, err := x.Check(t)
		if err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if state.Old > 0 {
			t.Errorf("round %d: %d old files are left", round, state.Old)
		}
		most.Segments, most.Files, most.Unlisted = max(most.Segments, state.Segments), max(most.Files,
			state.Files), max(most.Unlisted, state.Unlisted)
		stamps, err := x.Stamps(t.Context(), writersLabel)
		if err != nil {
			t.Fatal(err)
		}
		for path := range doubtful {
			versions[path] = foundVersion(t, x, path, versions[path], doubtful[path])
		}
		live := 0
		for path, want := range versions {
			if want >= 0 {
				live++
			}
			if got := foundVersion(t, x, path, want); got != want {
				t.Errorf("round %d: version %d of document %s is found, want %d", round, got, path, want)
			}
			if want < 0 {
				delete(versions, path) // it was deleted, and is not looked for again
			}
		}
		if p := page(t, x, search.Query{Text: query.MustParse("common")}); p.Total != live || len(stamps) != live {
			t.Errorf("round %d: Search(common) finds %d documents of %d, want %d", round, p.Total, len(stamps), live)
		}
		if h, err := x.Health(t.Context()); err != nil || h.Status != "green" {
			t.Errorf("round %d: Health() = %v, %v", round, h, err)
		}
		if err := x.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d rounds, %d changes, at most %+v", rounds, changes, most)
}

// foundVersion returns the version of a document that is found, one of several
// possible ones, or -1 if there is none.
func foundVersion(t *testing.T, x *index.Index, path string, possible ...int) int {
	t.Helper()
	p := page(t, x, search.Query{Text: query.MustParse(writerWord(path)), Num: 10})
	if p.Total == 0 {
		return -1
	}
	if p.Total != 1 || len(p.Hits) != 1 || p.Hits[0].Path != path {
		t.Errorf("Search(%s) finds %d documents, want one", writerWord(path), p.Total)
		return -2
	}
	text, err := x.ReadText(t.Context(), p.Hits[0].ID, nil, 0, 1<<20)
	if err != nil {
		t.Errorf("ReadText(%s) = %v", path, err)
		return -2
	}
	for _, v := range possible {
		if v >= 0 && text.Window == writerDoc(path, v).Text {
			return v
		}
	}
	t.Errorf("document %s has the text %.60q, want one of the versions %v", path, text.Window, possible)
	return -2
}
