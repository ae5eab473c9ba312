package terminal_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// A screen is a terminal of one column width that keeps what it shows.
type screen struct {
	lines  []string // the last one is that of the cursor
	column int
	all    strings.Builder // everything that was written
}

func (s *screen) Write(p []byte) (int, error) {
	s.all.Write(p)
	for _, r := range string(p) {
		if len(s.lines) == 0 {
			s.lines = []string{""}
		}
		last := &s.lines[len(s.lines)-1]
		switch r {
		case '\n':
			s.lines = append(s.lines, "")
			s.column = 0
		case '\r':
			s.column = 0
		default:
			line := []rune(*last + strings.Repeat(" ", max(0, s.column+1-len([]rune(*last)))))
			line[s.column] = r
			*last = string(line)
			s.column++
		}
	}
	return len(p), nil
}

// shows returns the lines of the screen without blanks at their ends.
func (s *screen) shows() string {
	var out []string
	for _, l := range s.lines {
		out = append(out, strings.TrimRight(l, " "))
	}
	return strings.Join(out, "\n")
}

func TestLinesAboveTheBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		lines := terminal.NewLines(s, func() int { return 60 })
		log := slog.New(terminal.NewHandler(lines, slog.LevelInfo))
		check := func(want ...string) {
			t.Helper()
			if diff := cmp.Diff(strings.Join(want, "\n"), s.shows()); diff != "" {
				t.Errorf("the screen (-want +got):\n%s", diff)
			}
		}
		bar := terminal.Bar{What: "indexing docs", Total: 100, Things: "documents", Since: time.Now()}
		lines.Show(bar)
		check("indexing docs: 0 of 100 documents [                     ]")
		fmt.Fprintln(lines, "a line")
		check("a line", "indexing docs: 0 of 100 documents [                     ]")
		bar.Done = 50
		lines.Show(bar) // too soon to be drawn
		check("a line", "indexing docs: 0 of 100 documents [                     ]")
		time.Sleep(10 * time.Second)
		lines.Show(bar)
		check("a line", "indexing docs: 50 of 100 documents, 5/s, 10 s left")
		log.Warn("careful", "n", 1)
		check("a line", "2000-01-01T00:00:10.000Z WARN careful n=1",
			"indexing docs: 50 of 100 documents, 5/s, 10 s left")
		lines.Show(terminal.Bar{What: "asking the servers", Total: 2})
		time.Sleep(time.Second)
		lines.Advance()
		check("a line", "2000-01-01T00:00:10.000Z WARN careful n=1",
			"asking the servers: 1 of 2 [==============              ]")
		lines.Show(terminal.Bar{})
		fmt.Fprintln(lines, "the end")
		check("a line", "2000-01-01T00:00:10.000Z WARN careful n=1", "the end", "")
	})
}

func TestNoBarWithoutTerminal(t *testing.T) {
	var out strings.Builder
	lines := terminal.NewLines(&out, nil)
	lines.Show(terminal.Bar{What: "indexing", Total: 10})
	fmt.Fprintln(lines, "a line")
	lines.Advance()
	lines.Show(terminal.Bar{})
	if got := out.String(); got != "a line\n" || lines.Terminal() {
		t.Errorf("wrote %q, want the line alone", got)
	}
}

func TestBarFits(t *testing.T) {
	for columns := range 80 {
		s := &screen{}
		terminal.NewLines(s, func() int { return columns }).Show(terminal.Bar{What: "indexing docs", Done: 5,
			Total: 10})
		if n := len([]rune(s.shows())); n > 0 && n >= columns-2 {
			t.Errorf("the bar takes %d of %d columns, want room for ^C", n, columns)
		}
	}
}

// A narrow terminal shows how far the work is and the time left, not the rates.
func TestNarrowBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(100 * time.Second)
		b := terminal.Bar{What: "indexing docs", Done: 1000, Total: 1500, Things: "documents", Since: began,
			Bytes: 250e6}
		for columns, want := range map[int]string{
			60: "indexing docs: 1000 of 1500 documents, 50 s left",
			50: "indexing docs: 1000 of 1500 documents",
			30: "indexing docs: 1000 of 1500",
		} {
			s := &screen{}
			terminal.NewLines(s, func() int { return columns }).Show(b)
			if got := s.shows(); got != want {
				t.Errorf("%d columns show %q, want %q", columns, got, want)
			}
		}
	})
}

func TestBarString(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(100 * time.Second)
		for _, tt := range []struct {
			done, total int
			want        string
		}{
			{0, 10, "x: 0 of 10 files"},
			{1, 10, "x: 1 of 10 files"}, // 0.6 a minute is no rate to speak of
			{5, 10, "x: 5 of 10 files, 3/min, 1 min 40 s left"},
			{1000, 1500, "x: 1000 of 1500 files, 10/s, 50 s left"},
			{1000, 50000, "x: 1000 of 50000 files, 10/s, 1 h 21 min left"},
		} {
			if got := (terminal.Bar{What: "x", Done: tt.done, Total: tt.total, Things: "files",
				Since: began}).String(); got != tt.want {
				t.Errorf("%d of %d: %q, want %q", tt.done, tt.total, got, tt.want)
			}
		}
		got := terminal.Bar{What: "x", Done: 1000, Total: 1500, Things: "files", Since: began, Bytes: 250e6}.String()
		if want := "x: 1000 of 1500 files, 10/s, 2.5 MB/s, 50 s left"; got != want {
			t.Errorf("with bytes: %q, want %q", got, want)
		}
	})
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", time.Microsecond: "0.1 s", 340 * time.Millisecond: "0.3 s",
		14*time.Second + 900*time.Millisecond: "14 s",
		185 * time.Second:                     "3 min 5 s", 130 * time.Minute: "2 h 10 min",
	} {
		if got := terminal.Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}
