package index

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestVerifiedMemory checks that a segment whose checksums were compared when it
// was opened is not in the memory of the process as a whole.
func TestVerifiedMemory(t *testing.T) {
	dir := t.TempDir()
	x := openIn(t, dir)
	apply(t, x, large(700)...)
	closeIt(t, x)
	x = openIn(t, dir)
	defer closeIt(t, x)
	v, err := x.segments.View(t.Context(), raw(t, x), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var size, resident int // of the mapped segments, in KB
	ours := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		l := lines.Text()
		if name, _, _ := strings.Cut(l, " "); strings.Contains(name, "-") {
			ours = strings.Contains(l, dir) && strings.HasSuffix(l, ".segment")
		}
		var n int
		if _, err := fmt.Sscanf(l, "Size: %d", &n); err == nil && ours {
			size += n
		}
		if _, err := fmt.Sscanf(l, "Rss: %d", &n); err == nil && ours {
			resident += n
		}
	}
	if size < 300 {
		t.Fatalf("%d KB are mapped, too few for this test", size)
	}
	if resident > size*2/3 {
		t.Errorf("%d of %d KB are in memory", resident, size)
	}
}
