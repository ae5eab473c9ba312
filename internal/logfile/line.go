package logfile

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	masked          = "[redacted]"
	shortestSecret  = 4
	secondsAnHour   = 3600
	secondsAMinute  = 60
	longestLine     = 64 << 10
	truncatedNotice = "… [cut]\n"
)

// A lineWriter masks secrets in the lines of a handler, limits their length and
// adds the elapsed time as a prefix. Each Write must be one whole line, and
// causes one Write.
type lineWriter struct {
	w       io.Writer
	secrets [][]byte
	start   time.Time // zero: no prefix
}

func newLineWriter(w io.Writer, secrets []string, start time.Time) *lineWriter {
	l := &lineWriter{w: w, start: start}
	for _, s := range secrets {
		if len(s) < shortestSecret {
			continue
		}
		// A value may appear unchanged, quoted by the handler, or inside a URL.
		quoted := strconv.Quote(s)
		for _, form := range []string{s, quoted[1 : len(quoted)-1], url.QueryEscape(s), url.PathEscape(s)} {
			l.secrets = append(l.secrets, []byte(form))
		}
	}
	// Longest first, so that no part of a secret remains that contains another
	// one.
	slices.SortStableFunc(l.secrets, func(a, b []byte) int { return len(b) - len(a) })
	return l
}

// Write writes one line.
func (l *lineWriter) Write(line []byte) (int, error) {
	out := line
	for _, s := range l.secrets {
		if bytes.Contains(out, s) {
			out = bytes.ReplaceAll(out, s, []byte(masked))
		}
	}
	if len(out) > longestLine {
		out = append(bytes.ToValidUTF8(out[:longestLine:longestLine], nil), truncatedNotice...)
	}
	if !l.start.IsZero() {
		out = append(elapsed(time.Since(l.start)), out...)
	}
	if _, err := l.w.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}

// elapsed returns d as "[HH:MM:SS] "; the hours may have more than two digits.
func elapsed(d time.Duration) []byte {
	s := int(d / time.Second)
	return fmt.Appendf(nil, "[%02d:%02d:%02d] ", s/secondsAnHour, s/secondsAMinute%60, s%60)
}
