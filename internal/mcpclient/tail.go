package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

	"knowhow/internal/mcpclient/redact"
)

const (
	maxTail    = 2 << 10 // bytes of stderr that errors show
	keptTail   = 8 << 10 // bytes of stderr that are kept, before escaping
	stderrLine = 4 << 10 // of longer lines the rest is not logged
)

// A tail keeps the end of what a server writes to stderr.
type tail struct {
	redact *redact.Redactor

	mu      sync.Mutex
	kept    []byte
	dropped bool // there was more before
}

// follow reads r to its end. Each line goes to the log at DEBUG.
func (t *tail) follow(ctx context.Context, server string, log *slog.Logger, r io.Reader) {
	br := bufio.NewReaderSize(r, stderrLine)
	for middle := false; ; {
		line, err := br.ReadSlice('\n')
		t.add(line)
		more := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 && !middle && log.Enabled(ctx, slog.LevelDebug) {
			if more {
				line = line[:len(line)-min(len(line), t.redact.Longest())] // half a secret may stand at the cut
			}
			log.DebugContext(ctx, "stderr", "server", server, "line", t.redact.Line(bytes.TrimRight(line, "\r\n")))
		}
		middle = more
		if err != nil && !more {
			return
		}
	}
}

func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if n := len(t.kept) - keptTail; n > 0 {
		t.kept = append(t.kept[:0], t.kept[n:]...)
		t.dropped = true
	}
}

// String returns the end, at most 2 KiB of it, on one line and without secrets.
func (t *tail) String() string {
	t.mu.Lock()
	kept, dropped := string(t.kept), t.dropped
	t.mu.Unlock()
	if dropped {
		// What is left of the first line may begin with half a secret.
		if i := strings.IndexByte(kept, '\n'); i >= 0 {
			kept = kept[i+1:]
		} else {
			kept = kept[min(len(kept), t.redact.Longest()):]
		}
	}
	text := redact.Escape(strings.TrimSpace(strings.ToValidUTF8(t.redact.Text(kept), "\uFFFD")))
	if len(text) <= maxTail {
		return text
	}
	text = text[len(text)-maxTail+len("…"):]
	for len(text) > 0 && text[0]&0xC0 == 0x80 {
		text = text[1:]
	}
	return "…" + text
}
