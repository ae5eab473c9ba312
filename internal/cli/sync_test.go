package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// TestWatch checks that without a terminal, a line names the servers that have
// not answered, every ten seconds.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		lines := terminal.NewLines(&out, nil)
		y := &syncing{invocation: &invocation{stderr: &out}, log: slog.New(terminal.NewHandler(lines, slog.LevelInfo)),
			lines: lines}
		answered, end := y.watch([]string{"b", "a\x1b", "c"})
		time.Sleep(9 * time.Second)
		answered("c")
		time.Sleep(12 * time.Second)
		answered("b")
		time.Sleep(10 * time.Second)
		end()
		time.Sleep(time.Minute)
		want := []string{"INFO Waiting for 2 of 3 servers: a\\x1b, b", "INFO Waiting for 2 of 3 servers: a\\x1b, b",
			"INFO Waiting for 1 of 3 servers: a\\x1b"}
		var got []string
		for line := range strings.Lines(out.String()) {
			_, text, _ := strings.Cut(strings.TrimSpace(line), " ") // after the time
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the log differs (-want +got):\n%s", diff)
		}
	})
}
