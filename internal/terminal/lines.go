package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// drawEvery is the minimum interval between two drawings of a bar.
const drawEvery = 100 * time.Millisecond

// Lines are the lines that a program writes for people and, on a terminal, a
// progress bar below them, which is cleared before each line. The methods are
// safe for concurrent use.
type Lines struct {
	out   io.Writer
	width func() int

	mu    sync.Mutex
	bar   Bar       // Total is 0 if no bar is shown
	drawn time.Time // when bar was last drawn
	used  int       // columns in use
}

// NewLines returns Lines that write to out. width returns the number of columns
// of the terminal, or 0 if out is not a terminal. If width is nil, it is
// determined from out.
func NewLines(out io.Writer, width func() int) *Lines {
	if width == nil {
		width = func() int {
			f, ok := out.(*os.File)
			if !ok || !term.IsTerminal(int(f.Fd())) {
				return 0
			}
			if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
				return columns
			}
			return 80 // the terminal does not report its width
		}
	}
	return &Lines{out: out, width: width}
}

// Terminal reports whether bars are shown.
func (l *Lines) Terminal() bool { return l.width() > 0 }

// Write writes whole lines above the bar.
func (l *Lines) Write(lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	n, err := l.out.Write(lines)
	l.draw()
	return n, err
}

// Show shows a bar in place of the previous one. A bar without a total removes
// it.
func (l *Lines) Show(b Bar) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(b)
}

func (l *Lines) show(b Bar) {
	shown := l.bar.Total > 0
	l.bar = b
	switch {
	case b.Total <= 0:
		l.clear()
	case !shown || time.Since(l.drawn) >= drawEvery:
		l.draw()
	}
}

// Advance adds one to Done.
func (l *Lines) Advance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bar
	b.Done++
	l.show(b)
}

// Errors of the functions below are ignored: if the terminal is gone, the bar
// is not visible.

// draw draws the bar. The caller must have locked mu.
func (l *Lines) draw() {
	columns := l.width() - len("^C") - 1 // space for the echo of the terminal
	if l.bar.Total <= 0 || columns <= 0 {
		return
	}
	l.drawn = time.Now()
	text := l.bar.draw(columns)
	before := l.used
	l.used = len([]rune(text))
	fmt.Fprint(l.out, "\r", text, strings.Repeat(" ", max(0, before-l.used)))
}

// clear removes the bar from the terminal. The caller must have locked mu.
func (l *Lines) clear() {
	if l.used > 0 {
		fmt.Fprint(l.out, "\r", strings.Repeat(" ", l.used+len("^C")), "\r")
		l.used = 0
	}
}

// A Bar is the progress of some work.
type Bar struct {
	What        string    // the current work, as in "indexing docs"
	Done, Total int       // number of things
	Things      string    // as in "documents"; "" if they need no name
	Since       time.Time // when Done was 0; the zero time hides the rates
	Bytes       int64     // of the things done; 0 hides their rate
}

// String returns the progress in words: "indexing docs: 120 of 812 documents,
// 85/s, 1.2 MB/s, 8 s left".
func (b Bar) String() string {
	rates, left := b.speed()
	return b.count() + rates + left
}

// count returns what is done and how much of it.
func (b Bar) count() string {
	s := fmt.Sprintf("%s: %d of %d", b.What, b.Done, b.Total)
	if b.Things != "" {
		s += " " + b.Things
	}
	return s
}

// speed returns the rates and the remaining time, as far as they are known.
func (b Bar) speed() (rates, left string) {
	took := time.Since(b.Since)
	if b.Since.IsZero() || b.Done <= 0 || took < time.Second {
		return "", ""
	}
	rate, unit := float64(b.Done)/took.Seconds(), "s"
	if rate < 1 {
		rate, unit = rate*60, "min"
	}
	if rate < 1 {
		return "", ""
	}
	rates = fmt.Sprintf(", %.0f/%s", rate, unit)
	if b.Bytes > 0 {
		rates += fmt.Sprintf(", %.1f MB/s", float64(b.Bytes)/1e6/took.Seconds())
	}
	if s := took.Seconds() * float64(b.Total-b.Done) / float64(b.Done); s >= 1 {
		left = ", " + Duration(time.Duration(s)*time.Second) + " left"
	}
	return rates, left
}

// draw returns the progress in at most the given number of columns, with a bar
// if it fits. What does not fit is left out: first the rates, then the remaining
// time.
func (b Bar) draw(columns int) string {
	const least, most = 10, 40
	rates, left := b.speed()
	var text []rune
	for _, s := range []string{rates + left, left, ""} {
		if text = []rune(sanitize.Escape(b.count() + s)); len(text) <= columns {
			break
		}
	}
	if len(text) > columns {
		return string(text[:columns])
	}
	size := min(columns-len(text)-len(" []"), most)
	if size < least {
		return string(text)
	}
	done := size * min(b.Done, b.Total) / b.Total
	return string(text) + " [" + strings.Repeat("=", done) + strings.Repeat(" ", size-done) + "]"
}

// Duration returns a duration for people, such as "0.3 s", "14 s", "3 min 5 s"
// or "2 h 10 min".
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%.1f s", max(d.Seconds(), 0.1))
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}
