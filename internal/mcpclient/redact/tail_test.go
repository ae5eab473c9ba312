package redact

import (
	"log/slog"
	"strings"
	"testing"
)

// lineOnly keeps the line of a log record and nothing else.
func lineOnly(_ []string, a slog.Attr) slog.Attr {
	if a.Key != "line" {
		return slog.Attr{}
	}
	return a
}

// TestTail follows what is too long to be kept, with a secret all over it.
func TestTail(t *testing.T) {
	r := New(Sources{Env: map[string]string{"A": "HIDE-ME-0123"}})
	for _, tt := range []struct{ name, written, want string }{
		{"nothing", "", ""},
		{"lines", "one\ntwo HIDE-ME-0123\n", `one\ntwo ***`},
		{"a cut line", strings.Repeat("x", keptTail) + "\nend\xff", "end\uFFFD"},
	} {
		tail := NewTail(r)
		tail.Follow(t.Context(), "fake", slog.New(slog.DiscardHandler), strings.NewReader(tt.written))
		if got := tail.String(); got != tt.want {
			t.Errorf("%s: String() = %q, want %q", tt.name, got, tt.want)
		}
	}
	for shift := range 12 {
		tail := NewTail(r)
		var log strings.Builder
		debug := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug,
			ReplaceAttr: lineOnly}))
		tail.Follow(t.Context(), "fake", debug, strings.NewReader(strings.Repeat("HIDE-ME-0123",
			2000)+strings.Repeat("y", shift)))
		got := tail.String()
		if len(got) > maxTail || !strings.HasSuffix(got, "***"+strings.Repeat("y", shift)) ||
			strings.ContainsAny(got+log.String(), "HIDE01") {
			t.Errorf("shifted by %d, String() has %d bytes, %q, and the log %q", shift, len(got), got, log.String())
		}
		if want := "line=***"; !strings.Contains(log.String(), want) {
			t.Errorf("the log is %q, want a line with %s", log.String(), want)
		}
	}
}
