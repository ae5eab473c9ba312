package index

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
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
	v, err := x.view(t.Context(), x.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.closeView(v)
	size, resident := residentSegments(t, dir)
	if size < 300 {
		t.Fatalf("%d KB are mapped, too few for this test", size)
	}
	if resident > size*2/3 {
		t.Errorf("%d of %d KB are in memory", resident, size)
	}
}

// TestResidentSegments checks that what searches have read of segments does not stay
// in the memory of the process if it is more than a limit.
func TestResidentSegments(t *testing.T) {
	dir := t.TempDir()
	x := openIn(t, dir)
	apply(t, x, large(700)...)
	closeIt(t, x)
	for _, limit := range []int64{1 << 40, 0} {
		x := openIn(t, dir)
		x.maxResident = limit
		tx, err := x.r.Begin()
		if err != nil {
			t.Fatal(err)
		}
		err = x.evaluate(t.Context(), &preparedTx{tx: tx}, nil, func(e *evaluator) error {
			sum := byte(0)
			for _, h := range e.view.handles {
				for _, b := range h.mapped {
					sum += b
				}
			}
			runtime.KeepAlive(sum)
			return nil
		})
		if err = errors.Join(err, tx.Rollback()); err != nil {
			t.Fatal(err)
		}
		size, resident := residentSegments(t, dir)
		if limit > 0 && resident < size {
			t.Errorf("%d of %d KB are in memory, although there is no limit", resident, size)
		}
		for deadline := time.Now().Add(time.Minute); limit == 0 && resident > size/10; _, resident = residentSegments(t, dir) {
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d KB stay in memory", resident, size)
			}
			time.Sleep(time.Millisecond)
		}
		closeIt(t, x)
	}
}

// residentSegments returns the size of the mapped segments of a folder, and how much
// of them is in memory, in KB.
func residentSegments(t *testing.T, dir string) (size, resident int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	ours := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		l := lines.Text()
		if name, _, _ := strings.Cut(l, " "); strings.Contains(name, "-") {
			ours = strings.Contains(l, dir) && strings.HasSuffix(l, segmentSuffix)
		}
		var n int
		if _, err := fmt.Sscanf(l, "Size: %d", &n); err == nil && ours {
			size += n
		}
		if _, err := fmt.Sscanf(l, "Rss: %d", &n); err == nil && ours {
			resident += n
		}
	}
	return size, resident
}
