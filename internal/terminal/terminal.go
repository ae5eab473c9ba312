// Package terminal writes for people: log lines, a progress bar below them, and
// foreign text that must not steer the terminal. The command line uses it.
package terminal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/schollz/progressbar/v3"
)

// A Handler writes log lines for people: time, level, message and attributes.
// Make one with NewHandler. It is safe for concurrent use.
type Handler struct {
	level slog.Level
	attrs slog.Handler // formats the attributes into buf
	*Lines
}

// Lines is what all handlers of one log share: where they write to, and a bar
// below the lines, which makes way for them.
type Lines struct {
	mu  sync.Mutex
	out io.Writer
	buf bytes.Buffer
	bar *progressbar.ProgressBar // nil where none is shown
}

// NewHandler returns a handler that writes to out.
func NewHandler(out io.Writer, level slog.Level) *Handler {
	lines := &Lines{out: out}
	attrs := slog.NewTextHandler(&lines.buf, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{} // they are written by Handle
		}
		return a
	}})
	return &Handler{level: level, attrs: attrs, Lines: lines}
}

// Enabled reports whether lines of a level are written.
func (t *Handler) Enabled(_ context.Context, level slog.Level) bool { return level >= t.level }

// Handle writes one line.
func (t *Handler) Handle(ctx context.Context, r slog.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Reset()
	if err := t.attrs.Handle(ctx, r); err != nil {
		return err
	}
	line := r.Time.UTC().Format("2006-01-02T15:04:05.000Z ") + r.Level.String() + " " + Printable(r.Message)
	if attrs := strings.TrimSpace(t.buf.String()); attrs != "" {
		line += " " + attrs
	}
	return t.write(line + "\n")
}

// write writes a line above the bar. The caller holds mu.
func (t *Lines) write(line string) error {
	if t.bar != nil {
		// The bar's writer is the terminal: if that is gone, nobody is left to be told.
		_ = t.bar.Clear()
		defer t.bar.RenderBlank()
	}
	_, err := io.WriteString(t.out, line)
	return err
}

// Show sets the bar that is shown below the lines; nil takes it away.
func (t *Lines) Show(bar *progressbar.ProgressBar) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bar != nil {
		_ = t.bar.Clear()
	}
	t.bar = bar
	if bar != nil {
		_ = bar.RenderBlank()
	}
}

// Advance moves the bar by one.
func (t *Lines) Advance() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bar != nil {
		_ = t.bar.Add(1)
	}
}

// WithAttrs returns a handler that adds attributes to every line.
func (t *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{level: t.level, attrs: t.attrs.WithAttrs(attrs), Lines: t.Lines}
}

// WithGroup returns a handler that puts attributes into a group.
func (t *Handler) WithGroup(name string) slog.Handler {
	return &Handler{level: t.level, attrs: t.attrs.WithGroup(name), Lines: t.Lines}
}

// Printable returns s on one line, with what could steer a terminal written as
// an escape: messages hold names that come from outside.
func Printable(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Plural counts things in English.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
