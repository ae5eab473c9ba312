package kb_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// BenchmarkAddNote adds notes of about 800 bytes with four callers at once, and
// waits until all are stored.
func BenchmarkAddNote(b *testing.B) {
	base, x := open(b, b.TempDir())
	var next atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				text := fmt.Sprintf("Note %d. %s", i,
					strings.Repeat(fmt.Sprintf("It has words such as word%d. ", i%1000), 27))
				if _, err := base.AddNote(b.Context(), kb.Note{Text: text}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	callers.Wait()
	for {
		counts, err := x.Queue().Count(b.Context(), queue.Filter{})
		if err != nil {
			b.Fatal(err)
		}
		if counts[kb.Queued]+counts[kb.Running] == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
