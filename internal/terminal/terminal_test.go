package terminal_test

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

func TestHandler(t *testing.T) {
	var out strings.Builder
	log := slog.New(terminal.NewHandler(terminal.NewLines(&out, nil), slog.LevelInfo))
	log.Debug("not written")
	log.Info("Connecting to server: a")
	log.With("server", "x y").WithGroup("g").Warn("a\nb\x1b[31m", "n", 1)
	want := regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO Connecting to server: a
20\S+ WARN a\\nb\\x1b\[31m server="x y" g\.n=1
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("the log is %q, want it to match %s", out.String(), want)
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 skills", 1: "1 skill", 2: "2 skills"} {
		if got := terminal.Plural(n, "skill"); got != want {
			t.Errorf("Plural(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestScreenThatIsNoTerminal(t *testing.T) {
	var out strings.Builder
	s := terminal.NewScreen(&out, func(string) (string, bool) { return "", false })
	text := s.Bold("a") + " " + s.Link("b", "file:///b") + "\n" + s.Wrap("one "+strings.Repeat("x", 200)+"\n\n  two",
		"  ", terminal.Mark{0, 3})
	if err := s.Show(text); err != nil || s.Terminal() {
		t.Fatalf("Show() = %v, Terminal() = %t", err, s.Terminal())
	}
	if want := "a b\n  one " + strings.Repeat("x", 200) + "\n\n    two\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
