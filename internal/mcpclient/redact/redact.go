// Package redact prepares messages between MCP servers and this program for
// logs and errors: without secrets, without control characters and with limited
// length. Package mcpclient uses it.
package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	maxLogged = 16 << 10 // bytes of a frame or line that are logged
	maxShown  = 64 << 10 // bytes of an error's data that are shown
	minSecret = 4        // a shorter value is hidden only if it is the whole string
	hidden    = "***"
)

// A Redactor prepares messages for logs. It hides the values of its [Sources],
// all values whose name is that of a secret, and the passwords in URLs.
type Redactor struct {
	long     []string        // values hidden wherever they occur, longest first
	short    map[string]bool // values hidden if they are the whole string
	longest  int             // length of the longest value, in bytes
	replacer *strings.Replacer
	name     *regexp.Regexp // matches names of members and flags with secret values
	pair     *regexp.Regexp // matches such a name and its value in text
	userinfo *regexp.Regexp // matches the user name and the password in a URL
}

// New returns the Redactor of a server.
func New(s Sources) *Redactor {
	r := &Redactor{
		short: map[string]bool{}, name: regexp.MustCompile(secretName),
		pair: regexp.MustCompile(secretPair), userinfo: regexp.MustCompile(userinfo),
	}
	seen := map[string]bool{"": true}
	for _, v := range r.secrets(s) {
		if seen[v] {
			continue
		}
		seen[v] = true
		if len(v) < minSecret {
			r.short[v] = true
			continue
		}
		r.long = append(r.long, v)
		r.longest = max(r.longest, len(v))
	}
	slices.SortFunc(r.long, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range r.long {
		pairs = append(pairs, v, hidden)
	}
	r.replacer = strings.NewReplacer(pairs...)
	return r
}

// Text hides the secrets in a text. Of a text that is much longer than 32 KiB,
// it returns only the beginning.
func (r *Redactor) Text(s string) string {
	const most = 2 * maxLogged
	if len(s) <= most+r.longest {
		return r.hide(s)
	}
	return r.before(s[:most])
}

// hide hides the secrets in a text of any length.
func (r *Redactor) hide(s string) string {
	if r.short[s] {
		return hidden
	}
	if len(r.long) > 0 {
		s = r.replacer.Replace(s)
	}
	// Most texts contain only words, which need no search.
	if strings.Contains(s, "@") {
		s = r.userinfo.ReplaceAllString(s, "${1}"+hidden+"@")
	}
	if strings.ContainsAny(s, ":= \t\r\n") {
		s = r.pair.ReplaceAllString(s, "${1}${2}${3}"+hidden)
	}
	return s
}

// Line returns a line of a server's output for a log or message.
func (r *Redactor) Line(b []byte) string {
	return sanitize.Cut(Escape(r.Text(string(b))), maxLogged, maxLogged)
}

// before hides the secrets in a text that continues after s. The end of s may
// be the first half of a secret and is dropped.
func (r *Redactor) before(s string) string {
	s = r.hide(s)
	return strings.ToValidUTF8(s[:max(0, len(s)-r.longest)], "")
}

// after hides the secrets in a text that begins before s. The beginning of s
// may be the second half of a secret and is dropped.
func (r *Redactor) after(s string) string {
	s = r.hide(s)
	return strings.ToValidUTF8(s[min(len(s), r.longest):], "")
}

// Frame returns a JSON-RPC message for the log: at most 16 KiB and the length,
// with its members in order and the values of secret names hidden.
func (r *Redactor) Frame(b []byte) string {
	w := newFrameWriter(r, b, maxLogged)
	w.names = true
	err := w.value()
	text := w.out.String()
	switch {
	case err == errFull || len(text) > maxLogged:
		return fmt.Sprintf("%s (%d bytes in all)", sanitize.Cut(text, maxLogged, maxLogged), len(b))
	case err != nil && err != io.EOF:
		return r.Line(b)
	}
	return text
}

// JSON returns a JSON value of an error without the values of the [Sources],
// for the caller. Other values with the name of a secret are kept. It returns
// nil if b has more than 64 KiB or is not JSON.
func (r *Redactor) JSON(b []byte) json.RawMessage {
	w := newFrameWriter(r, b, maxShown)
	if err := w.value(); err != nil || w.out.Len() > maxShown {
		return nil
	}
	return json.RawMessage(w.out.String())
}

// errFull reports that the limit is reached.
var errFull = io.ErrShortWrite

// A frameWriter copies JSON token by token.
type frameWriter struct {
	r     *Redactor
	names bool // hide values with the name of a secret
	limit int  // length in bytes after which writing ends
	dec   *json.Decoder
	out   strings.Builder
}

func newFrameWriter(r *Redactor, b []byte, limit int) *frameWriter {
	w := &frameWriter{r: r, limit: limit, dec: json.NewDecoder(bytes.NewReader(b))}
	w.dec.UseNumber()
	return w
}

// value copies the next value.
func (w *frameWriter) value() error {
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		return w.composite(v)
	case string:
		return w.text(v)
	case json.Number:
		if s := v.String(); !w.r.short[s] && w.r.Text(s) != s {
			return w.text(s)
		}
		w.out.WriteString(v.String())
	case nil:
		w.out.WriteString("null")
	default:
		fmt.Fprint(&w.out, v) // true or false
	}
	return nil
}

// composite copies the rest of an object or array.
func (w *frameWriter) composite(open json.Delim) error {
	w.out.WriteString(open.String())
	for first := true; w.dec.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		if w.out.Len() > w.limit {
			return errFull
		}
		if open == '{' {
			key, err := w.dec.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			if err := w.text(name); err != nil {
				return err
			}
			w.out.WriteByte(':')
			// The progress token is not a secret, and it identifies calls in
			// the log.
			if w.names && w.r.name.MatchString(name) && name != "progressToken" {
				w.out.WriteString(`"` + hidden + `"`)
				var skipped json.RawMessage
				if w.dec.Decode(&skipped) != nil {
					return io.EOF // what follows may be a part of the secret
				}
				continue
			}
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	end, err := w.dec.Token()
	if err != nil {
		return err
	}
	w.out.WriteString(end.(json.Delim).String())
	return nil
}

// text writes a string without its secrets.
func (w *frameWriter) text(s string) error {
	b, err := json.Marshal(w.r.Text(s))
	if err != nil {
		return err
	}
	w.out.Write(b)
	return nil
}

// whiteSpace makes the white space in a line readable.
var whiteSpace = strings.NewReplacer("\t", " ", "\r", "")

// Escape returns [sanitize.Escape] of s, with a blank for a tab and without
// carriage returns, which servers print.
func Escape(s string) string { return sanitize.Escape(whiteSpace.Replace(s)) }
