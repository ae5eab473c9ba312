package chunk

import (
	"runtime"
	"strings"
	"testing"
)

// TestHashMemory checks that a large text is not copied.
func TestHashMemory(t *testing.T) {
	text := strings.Repeat("a", 8<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Hash(text)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated for a text of %d", n, len(text))
	}
}
