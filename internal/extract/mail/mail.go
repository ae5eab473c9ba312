// Package mail reads mails and mailboxes.
package mail

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/quotedprintable"
	"regexp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/charset"
	"github.com/knowhow-mcp/knowhow/internal/extract/markup"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Limits on the parts of a mail.
const (
	maxMailHeader = 256 << 10 // bytes of a header
	maxMailField  = 8 << 10   // bytes of a header field with several lines
	maxMailParts  = 500
	maxMailDepth  = 100       // multiparts one inside the other
	maxMailScan   = 512 << 20 // bytes of multiparts, those inside others counted again
)

// shownFields are the header fields at the start of a mail's text.
var shownFields = []string{"From", "To", "Cc", "Date"}

// An Opener calls yield for the text of a file that is attached to a mail, or for
// each file in it if it is an archive, with the name inside of it. It returns an
// error if it cannot read the file itself, in addition to what it has yielded.
type Opener func(name, media string, data []byte, yield func(name string, t *plain.Text)) error

// Read reads a mail (RFC 5322 and 2045): its header fields, its text, and the texts
// of its attachments under headings. HTML is used if there is no plain text.
func Read(ctx context.Context, t *plain.Text, data []byte, open Opener) error {
	m := &mail{ctx: ctx, open: open, out: plain.NewWriter(ctx)}
	h, body := splitHeader(data)
	t.Title = m.field(h, "subject")
	for _, name := range shownFields {
		if v := m.field(h, name); v != "" {
			m.out.Line(name + ": " + v)
		}
	}
	m.out.Blank()
	if err := m.part(h, body, 0); err != nil {
		return err
	}
	m.out.Finish(t)
	t.Damaged = m.partly
	return nil
}

// A mail collects the text of a mail. It is used in one call only.
type mail struct {
	ctx  context.Context
	open Opener
	out  *plain.Writer

	parts, scanned int
	partly         bool // a part was not read
}

// part adds the text of a part with this header.
func (m *mail) part(h header, body []byte, depth int) error {
	if m.parts++; m.parts > maxMailParts || depth > maxMailDepth || m.ctx.Err() != nil {
		m.partly = true
		return nil
	}
	media, params := h.media()
	name := m.fileName(h, params)
	switch {
	case strings.HasPrefix(media, "multipart/") && params["boundary"] != "":
		if m.scanned += len(body); m.scanned > maxMailScan {
			m.partly = true
			return nil
		}
		parts := multipart(body, params["boundary"])
		if media == "multipart/alternative" {
			parts = m.alternative(parts)
		}
		for _, p := range parts {
			h, body := splitHeader(p)
			if err := m.part(h, body, depth+1); err != nil {
				return err
			}
		}
		return nil
	case (media == "text/plain" || media == "text/html") && !h.attached():
		m.text(media, params, decodeTransfer(h, body))
		return nil
	case media == "message/rfc822" || media == "message/global":
		return m.attachment("message.eml", "message/rfc822", name, decodeTransfer(h, body))
	case name == "" && !strings.HasPrefix(media, "text/"):
		return nil // such as a signature
	}
	return m.attachment(name, media, name, decodeTransfer(h, body))
}

// alternative returns the best of the parts of which each is the whole text: one
// with plain text, or else the last that is not empty.
func (m *mail) alternative(parts [][]byte) [][]byte {
	var last []byte
	for _, p := range parts {
		h, body := splitHeader(p)
		if len(bytes.TrimSpace(body)) == 0 {
			continue
		}
		media, _ := h.media()
		if media == "text/plain" {
			return [][]byte{p}
		}
		if media == "text/html" || strings.HasPrefix(media, "multipart/") {
			last = p
		}
	}
	if last == nil {
		return parts
	}
	return [][]byte{last}
}

// text adds the text of a message.
func (m *mail) text(media string, params map[string]string, data []byte) {
	s := charset.Decode(m.ctx, data, charset.Options{Declared: params["charset"], HTML: media == "text/html"})
	if media == "text/html" {
		var t plain.Text
		markup.HTML(m.ctx, &t, s)
		s = t.Body
	} else if s = plain.Clean(m.ctx, s); strings.EqualFold(params["format"], "flowed") {
		s = unflow(m.ctx, s, strings.EqualFold(params["delsp"], "yes"))
	}
	m.out.Blank()
	m.out.Text(s)
	m.out.Blank()
}

// unflow joins the lines of a text with format=flowed (RFC 3676).
func unflow(ctx context.Context, s string, deleteSpace bool) string {
	var b strings.Builder
	for _, line := range plain.Lines(ctx, s) {
		flowed := strings.HasSuffix(line, " ") && line != "-- "
		if flowed && deleteSpace {
			line = line[:len(line)-1]
		}
		b.WriteString(line)
		if !flowed {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// attachment adds the text of an attached file, or the texts of the files in it,
// under its name. A file whose text cannot be extracted is only named.
func (m *mail) attachment(name, media, title string, data []byte) error {
	found := false
	err := m.open(name, media, data, func(file string, t *plain.Text) {
		if !found && file == "" {
			m.out.Heading(1, cmp.Or(title, t.Title, "Attachment"))
		} else if !found {
			m.out.Heading(1, cmp.Or(title, "Attachment"))
		}
		found = true
		deeper := 1
		if file == "" {
			m.partly = m.partly || t.Damaged
		} else {
			m.out.Heading(2, file)
			deeper = 2
		}
		m.out.Part(t, deeper)
		m.out.Blank()
	})
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	if !found {
		m.partly = m.partly || errors.Is(err, errkind.TooLarge)
		if title != "" {
			m.out.Blank()
			m.out.Line("Attachment: " + title)
		}
	}
	return nil
}

// fileName returns the name of an attached file, or "".
func (m *mail) fileName(h header, params map[string]string) string {
	name := params["name"]
	if _, p, err := mime.ParseMediaType(h["content-disposition"]); err == nil && p["filename"] != "" {
		name = p["filename"]
	}
	name = m.decodeWords(name)
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

// field returns a decoded header field as one line.
func (m *mail) field(h header, name string) string {
	return plain.Shorten(m.decodeWords(h[strings.ToLower(name)]), 2000)
}

// decodeWords decodes encoded words (RFC 2047) and characters that are not
// ASCII, which senders should not use.
func (m *mail) decodeWords(s string) string {
	s = charset.Decode(m.ctx, []byte(s), charset.Options{})
	d := mime.WordDecoder{CharsetReader: func(name string, r io.Reader) (io.Reader, error) {
		data, err := io.ReadAll(r)
		return strings.NewReader(charset.Decode(m.ctx, data, charset.Options{Declared: name})), err
	}}
	if decoded, err := d.DecodeHeader(s); err == nil {
		s = decoded
	}
	return plain.OneLine(plain.Clean(m.ctx, strings.ToValidUTF8(s, "")))
}

// A header is the header of a mail or of a part of it: values by field names in
// lower case. The first of several fields with one name counts.
type header map[string]string

// media returns the type of a part and its parameters.
func (h header) media() (string, map[string]string) {
	media, params, err := mime.ParseMediaType(h["content-type"])
	if err != nil || media == "" {
		if m := plain.MediaType(h["content-type"]); m != "" {
			return m, map[string]string{}
		}
		return "text/plain", map[string]string{}
	}
	return media, params
}

// attached reports whether the sender marked a part as an attachment.
func (h header) attached() bool {
	kind, _, _ := strings.Cut(h["content-disposition"], ";")
	return strings.EqualFold(strings.TrimSpace(kind), "attachment")
}

// splitHeader splits a mail or a part of it at the first empty line. Lines that
// are no header fields are ignored.
func splitHeader(data []byte) (header, []byte) {
	h := header{}
	rest := data
	name := ""
	for len(rest) > 0 && len(data)-len(rest) < maxMailHeader {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		rest = after
		switch {
		case len(line) == 0:
			return h, rest
		case line[0] == ' ' || line[0] == '\t':
			if name != "" && len(h[name]) < maxMailField {
				h[name] += "\n" + string(line)
			}
			continue
		}
		key, value, ok := bytes.Cut(line, []byte(":"))
		name = strings.ToLower(string(bytes.TrimSpace(key)))
		if _, known := h[name]; !ok || known {
			name = ""
			continue
		}
		h[name] = string(bytes.TrimSpace(value))
	}
	return h, rest
}

// decodeTransfer removes the transfer encoding of a part (RFC 2045, 6). Damaged
// data is decoded as far as possible.
func decodeTransfer(h header, body []byte) []byte {
	switch strings.ToLower(strings.TrimSpace(h["content-transfer-encoding"])) {
	case "base64":
		packed := make([]byte, 0, len(body))
		for _, c := range body {
			if c > ' ' && c != '=' && c < 0x7f {
				packed = append(packed, c)
			}
		}
		out := make([]byte, base64.RawStdEncoding.DecodedLen(len(packed)))
		n, _ := base64.RawStdEncoding.Decode(out, packed) // n bytes are valid
		return out[:n]
	case "quoted-printable":
		out, _ := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(body))) // the data before an error is valid
		return out
	}
	return body
}

// multipart returns the parts of a body (RFC 2046, 5.1), at most maxMailParts+2.
// The last one may lack its end.
func multipart(body []byte, boundary string) [][]byte {
	mark := []byte("--" + boundary)
	var parts [][]byte
	start := -1
	for at := 0; at <= len(body) && len(parts) <= maxMailParts; {
		i := bytes.Index(body[at:], mark)
		if i < 0 {
			break
		}
		i += at
		at = i + len(mark)
		if i > 0 && body[i-1] != '\n' {
			continue
		}
		line, _, found := bytes.Cut(body[at:], []byte("\n"))
		end := bytes.HasPrefix(line, []byte("--"))
		if !end && len(bytes.TrimSpace(line)) > 0 {
			continue // a longer boundary
		}
		if start >= 0 {
			parts = append(parts, bytes.TrimSuffix(bytes.TrimSuffix(body[start:i], []byte("\n")), []byte("\r")))
		}
		if start = -1; end || !found {
			break
		}
		at += len(line) + 1
		start = at
	}
	if start >= 0 {
		parts = append(parts, body[start:])
	}
	return parts
}

// fromLine matches the line before each message of a mailbox (RFC 4155).
var fromLine = regexp.MustCompile(`^From \S+.* [0-9]{4}\b`)

// Messages calls yield for each message of a mailbox.
func Messages(ctx context.Context, data []byte, yield func([]byte) error) error {
	start, at := -1, 0
	blank := true // the line before is empty
	for at < len(data) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		line, _, _ := bytes.Cut(data[at:], []byte("\n"))
		if blank && bytes.HasPrefix(line, []byte("From ")) && fromLine.Match(line[:min(len(line), 300)]) {
			if start >= 0 {
				if err := yield(unquoteFrom(data[start:at])); err != nil {
					return err
				}
			}
			start = min(at+len(line)+1, len(data))
		}
		blank = len(bytes.TrimRight(line, "\r")) == 0
		at += len(line) + 1
	}
	if start < 0 {
		return plain.Unsupported("mailbox without messages")
	}
	return yield(unquoteFrom(data[start:]))
}

// quotedFrom matches a line of a message that a mailbox had to quote.
var quotedFrom = regexp.MustCompile(`(?m)^>(>*From )`)

func unquoteFrom(message []byte) []byte {
	if !bytes.Contains(message, []byte("\n>")) {
		return message
	}
	return quotedFrom.ReplaceAll(message, []byte("$1"))
}

// IsMail reports whether head, the start of a file with an unknown extension or
// that of a mail, is that of a mail. A file with an unknown extension must begin
// with a field that only mails begin with.
func IsMail(head []byte, named bool) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	key, _, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(key) == 0 || bytes.ContainsAny(key, " \t<{\"") {
		return false
	}
	if named {
		return true
	}
	switch strings.ToLower(string(key)) {
	case "return-path", "received", "delivered-to", "message-id", "x-original-to":
		return true
	}
	return false
}

// IsMailbox reports whether head is the start of a mailbox: a separating line,
// then a header field.
func IsMailbox(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\n"))
	if !fromLine.Match(line) {
		return false
	}
	if bytes.HasPrefix(rest, []byte(">From ")) {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	return IsMail(rest, true)
}
