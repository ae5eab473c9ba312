// Package terminal writes for people: log lines, a progress bar below them, and
// the results of commands, with styles, links and a pager. The command line uses
// it.
package terminal

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// A Handler writes log lines for people: time, level, message and attributes.
// Make one with NewHandler. It is safe for concurrent use.
type Handler struct {
	level slog.Level
	attrs slog.Handler // formats the attributes into buf
	buf   *lockedBuffer
	lines *Lines
}

// A lockedBuffer is shared by a handler and those made of it.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

// NewHandler returns a handler that writes to lines.
func NewHandler(lines *Lines, level slog.Level) *Handler {
	buf := &lockedBuffer{}
	attrs := slog.NewTextHandler(buf, &slog.HandlerOptions{Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{} // they are written by Handle
			}
			return a
		}})
	return &Handler{level: level, attrs: attrs, buf: buf, lines: lines}
}

// Enabled reports whether lines of a level are written.
func (t *Handler) Enabled(_ context.Context, level slog.Level) bool { return level >= t.level }

// Handle writes one line.
func (t *Handler) Handle(ctx context.Context, r slog.Record) error {
	t.buf.mu.Lock()
	defer t.buf.mu.Unlock()
	t.buf.Reset()
	if err := t.attrs.Handle(ctx, r); err != nil {
		return err
	}
	line := r.Time.UTC().Format("2006-01-02T15:04:05.000Z ") + r.Level.String() + " " + sanitize.Escape(r.Message)
	if attrs := strings.TrimSpace(t.buf.String()); attrs != "" {
		line += " " + attrs
	}
	_, err := io.WriteString(t.lines, line+"\n")
	return err
}

// WithAttrs returns a handler that adds attributes to every line.
func (t *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{level: t.level, attrs: t.attrs.WithAttrs(attrs), buf: t.buf, lines: t.lines}
}

// WithGroup returns a handler that puts attributes into a group.
func (t *Handler) WithGroup(name string) slog.Handler {
	return &Handler{level: t.level, attrs: t.attrs.WithGroup(name), buf: t.buf, lines: t.lines}
}

// Plural counts things in English.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Counts lists what there is of each kind, the most frequent first: "31 without
// text, 2 hidden".
func Counts[K ~string](n map[K]int) string {
	kinds := slices.SortedFunc(maps.Keys(n), func(a, b K) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	counts := make([]string, len(kinds))
	for i, k := range kinds {
		counts[i] = fmt.Sprintf("%d %s", n[k], k)
	}
	return strings.Join(counts, ", ")
}

// Bytes returns a number of bytes for people, such as "3.1 MB".
func Bytes(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, units := float64(n)/unit, "kMGT"
	for f >= unit && len(units) > 1 {
		f, units = f/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %cB", f, units[0])
}
