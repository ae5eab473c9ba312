package terminal_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/terminal"
	"github.com/knowhow-mcp/knowhow/internal/terminal/terminaltest"
)

func TestBarOnATerminal(t *testing.T) {
	master, slave := terminaltest.New(t, 60, 24)
	lines := terminal.NewLines(slave, nil)
	if !lines.Terminal() {
		t.Fatal("Terminal() = false for a terminal")
	}
	lines.Show(terminal.Bar{What: "indexing docs", Done: 5, Total: 10})
	lines.Show(terminal.Bar{})
	fmt.Fprintln(lines, "the end")
	s := &screen{}
	for buf := make([]byte, 1000); !strings.Contains(s.all.String(), "the end"); {
		n, err := master.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		s.Write(buf[:n])
	}
	if all := s.all.String(); !strings.Contains(all, "indexing docs: 5 of 10 [") {
		t.Errorf("no bar was shown: %q", all)
	}
	if got := strings.TrimSpace(s.shows()); got != "the end" {
		t.Errorf("the screen shows %q, want the bar gone", got)
	}
}

// show shows what text returns on a terminal of 20 columns and 5 rows, and
// returns what reaches the terminal.
func show(t *testing.T, env map[string]string, text func(s *terminal.Screen) string) string {
	t.Helper()
	master, slave := terminaltest.New(t, 20, 5)
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	s := terminal.NewScreen(slave, lookup)
	if err := s.Show(text(s)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(slave, "\x00")
	var b strings.Builder
	for buf := make([]byte, 1000); !strings.Contains(b.String(), "\x00"); {
		n, err := master.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(buf[:n])
	}
	return strings.TrimSuffix(strings.ReplaceAll(b.String(), "\r\n", "\n"), "\x00")
}

func TestScreen(t *testing.T) {
	bold := func(s string) string { return "\x1b[1m" + s + "\x1b[22m" }
	wrap := func(text, indent string, marks ...terminal.Mark) func(*terminal.Screen) string {
		return func(s *terminal.Screen) string { return s.Wrap(text, indent, marks...) }
	}
	tests := []struct {
		name string
		env  string
		text func(s *terminal.Screen) string
		want string
	}{
		{"words are wrapped", "", wrap("one two three four five six", "  "), "  one two three four\n  five six\n"},
		{"matches are bold", "", wrap("one two", "", terminal.Mark{4, 7}), "one " + bold("two") + "\n"},
		{"a match over a line end", "", wrap("0123456789 0123456789", "", terminal.Mark{5, 15}),
			"01234" + bold("56789") + "\n" + bold("0123") + "456789\n"},
		{"blanks at the start are kept", "", wrap("a\n\n    b b b b b b b b b b\n\tc", ""),
			"a\n\n    b b b b b b b b\n    b b\n    c\n"},
		{"blanks in a line that fits are kept", "",
			wrap("a   b  c\na   b  0123456789012345", "", terminal.Mark{0, 1}, terminal.Mark{9, 10}),
			bold("a") + "   b  c\n" + bold("a") + " b 0123456789012345\n"},
		{"a long word is cut", "", wrap("0123456789012345678901234", ""), "01234567890123456789\n01234\n"},
		{"wide characters take two columns", "", wrap("検索検索検索検索検索検索", " "), " 検索検索検索検索検\n 索検索\n"},
		{"combining characters take none", "", wrap(strings.Repeat("e\u0301", 21), ""),
			strings.Repeat("e\u0301", 20) + "\ne\u0301\n"},
		{"a link", "", func(s *terminal.Screen) string { return s.Link("a", "file:///tmp/ü a") },
			"\x1b]8;;file:///tmp/%C3%BC%20a\x1b\\a\x1b]8;;\x1b\\"},
		{"no link with another scheme", "", func(s *terminal.Screen) string { return s.Link("a", "javascript:x") },
			"a"},
		{"NO_COLOR", "NO_COLOR=1", func(s *terminal.Screen) string {
			return s.Bold("a") + s.Soft("s") + s.Accent("t") + s.Link("b", "file:///b") + s.Wrap("c", "",
				terminal.Mark{0, 1})
		}, "astbc\n"},
		{"colors", "", func(s *terminal.Screen) string { return s.Soft("a") + s.Accent("b") + s.Soft("") + s.Accent("") },
			"\x1b[2ma\x1b[22m\x1b[36mb\x1b[39m"},
		{"a dumb terminal", "TERM=dumb", func(s *terminal.Screen) string { return s.Bold("a") + s.Link("b", "file:///b") }, "ab"},
		{"a pager that does not exist", "PAGER=/no/such/pager",
			func(s *terminal.Screen) string { return strings.Repeat("a\n", 10) }, strings.Repeat("a\n", 10)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"PAGER": ""}
			if name, value, ok := strings.Cut(tt.env, "="); ok {
				env[name] = value
			}
			if got := show(t, env, tt.text); got != tt.want {
				t.Errorf("the terminal got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPager(t *testing.T) {
	file := filepath.Join(t.TempDir(), "paged")
	env := map[string]string{"PAGER": "tee " + file}
	show(t, env, func(s *terminal.Screen) string { return s.Bold("short\n") })
	if _, err := os.Stat(file); err == nil {
		t.Error("a result of one line was shown in the pager")
	}
	got := show(t, env, func(s *terminal.Screen) string { return s.Bold("long") + strings.Repeat("\nline", 5) + "\n" })
	paged, err := os.ReadFile(file)
	if want := "long" + strings.Repeat("\nline", 5) + "\n"; err != nil || string(paged) != want || got != want {
		t.Errorf("the pager got %q (%v), and the terminal %q, want %q", paged, err, got, want)
	}
}

// TestPagerEnds ends a pager that does not read a text longer than a pipe holds.
func TestPagerEnds(t *testing.T) {
	if got := show(t, map[string]string{"PAGER": "true"},
		func(*terminal.Screen) string { return strings.Repeat("line\n", 1<<16) }); got != "" {
		t.Errorf("the terminal got %q, want nothing", got)
	}
}

// TestWrapRandomTexts checks that no line is wider than the terminal, and that
// wrapping and marking changes only white space.
func TestWrapRandomTexts(t *testing.T) {
	_, slave := terminaltest.New(t, 20, 5)
	screen := terminal.NewScreen(slave, func(string) (string, bool) { return "", false })
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("abcdefgh    \n\t検索ｱ\u0301é\u3000👍")
	styles := strings.NewReplacer("\x1b[1m", "", "\x1b[22m", "")
	for range 2000 {
		var text strings.Builder
		for range random.IntN(80) {
			text.WriteRune(letters[random.IntN(len(letters))])
		}
		in := text.String()
		start := random.IntN(len(in) + 1)
		mark := terminal.Mark{start, start + random.IntN(len(in)-start+1)}
		out := styles.Replace(screen.Wrap(in, "  ", mark))
		for line := range strings.Lines(out) {
			if n := terminal.Width(strings.TrimSuffix(line, "\n")); n > 20 {
				t.Fatalf("Wrap(%q) has a line of %d columns: %q", in, n, line)
			}
		}
		if got, want := strings.Join(strings.Fields(out), ""), strings.Join(strings.Fields(in), ""); got != want {
			t.Fatalf("Wrap(%q) = %q, which is another text", in, out)
		}
	}
}
