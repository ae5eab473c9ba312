package redact

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
)

const (
	maxTail    = 2 << 10 // bytes of stderr in errors
	keptTail   = 8 << 10 // bytes of stderr that are kept, before escaping
	stderrLine = 4 << 10 // the rest of longer lines is not logged
)

// A Tail keeps the end of a server's stderr output. It is safe for concurrent
// use.
type Tail struct {
	redact *Redactor

	mu      sync.Mutex
	kept    []byte
	dropped bool // the output was longer
}

// NewTail returns an empty Tail that hides what r hides.
func NewTail(r *Redactor) *Tail { return &Tail{redact: r} }

// Follow reads r to its end. It logs each line at DEBUG.
func (t *Tail) Follow(ctx context.Context, server string, log *slog.Logger, r io.Reader) {
	br := bufio.NewReaderSize(r, stderrLine)
	for middle := false; ; {
		line, err := br.ReadSlice('\n')
		t.add(line)
		more := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 && !middle && log.Enabled(ctx, slog.LevelDebug) {
			text := t.redact.Line(bytes.TrimRight(line, "\r\n"))
			if more {
				text = Escape(t.redact.before(string(line)))
			}
			log.DebugContext(ctx, "stderr", "server", server, "line", text)
		}
		middle = more
		if err != nil && !more {
			return
		}
	}
}

func (t *Tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if n := len(t.kept) - keptTail; n > 0 {
		t.kept = append(t.kept[:0], t.kept[n:]...)
		t.dropped = true
	}
}

// String returns the end of the output, at most 2 KiB, on one line and without
// secrets.
func (t *Tail) String() string {
	t.mu.Lock()
	kept, dropped := string(t.kept), t.dropped
	t.mu.Unlock()
	// The rest of the first line may begin with half a secret.
	if _, rest, more := strings.Cut(kept, "\n"); dropped && more {
		kept, dropped = rest, false
	}
	hide := t.redact.Text
	if dropped {
		hide = t.redact.after
	}
	text := Escape(strings.TrimSpace(strings.ToValidUTF8(hide(kept), "\uFFFD")))
	if len(text) <= maxTail {
		return text
	}
	text = text[len(text)-maxTail+len("…"):]
	for len(text) > 0 && text[0]&0xC0 == 0x80 {
		text = text[1:]
	}
	return "…" + text
}
