package index

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// TestMemoryOfManyWords stores a text of two million different words in a process
// of its own, and checks the most memory that it has taken. Without parts in files,
// that is about 500 MB.
func TestMemoryOfManyWords(t *testing.T) {
	if dir := os.Getenv("KNOWHOW_TEST_MEMORY"); dir != "" {
		storeManyWords(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("takes some seconds, and more memory with the race detector")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryOfManyWords$", "-test.v")
	cmd.Env = append(os.Environ(), "KNOWHOW_TEST_MEMORY="+t.TempDir())
	out, err := cmd.CombinedOutput()
	peak := regexp.MustCompile(`peak (\d+) kB`).FindSubmatch(out)
	if err != nil || peak == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if kb, _ := strconv.Atoi(string(peak[1])); kb > 200_000 {
		t.Errorf("the process has taken %d kB", kb)
	} else {
		t.Logf("the process has taken %d kB", kb)
	}
}

// storeManyWords stores the text and logs the most memory that was taken.
func storeManyWords(t *testing.T, dir string) {
	debug.SetGCPercent(25) // about as the program does
	var text strings.Builder
	rnd := rand.New(rand.NewPCG(1, 2))
	var chunks []document.Chunk
	for range 20_000 {
		begin := text.Len()
		for range 100 {
			fmt.Fprintf(&text, "%08x ", rnd.Uint32())
		}
		chunks = append(chunks, document.Chunk{Offset: begin, Length: text.Len() - begin})
	}
	x := openIn(t, dir)
	defer closeIt(t, x)
	last := text.String()[text.Len()-9:]
	apply(t, x, document.Change{Put: &document.Document{ID: "a", Label: "a", Path: "a", Title: "a",
		Text: text.String(), Chunks: chunks}})
	if n := total(t, x, strings.TrimSpace(last)); n != 1 {
		t.Errorf("the last word is found in %d documents", n)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	if peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status); peak != nil {
		t.Logf("peak %s kB", peak[1])
	}
}
