package wire

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Mark returns an excerpt as Fess writes it: HTML, with <strong> around the
// matches.
func Mark(x search.Excerpt) string {
	var b strings.Builder
	at := 0
	for _, m := range x.Matches {
		b.WriteString(escape(x.Text[at:m.Start]) + "<strong>" + escape(x.Text[m.Start:m.End]) + "</strong>")
		at = m.End
	}
	b.WriteString(escape(x.Text[at:]))
	return b.String()
}

// escape escapes a text for HTML with Fess's numbers for quotes.
func escape(s string) string { return fessQuotes.Replace(html.EscapeString(s)) }

var fessQuotes = strings.NewReplacer("&#34;", "&#034;", "&#39;", "&#039;")

// Unmark returns the text of an excerpt that Fess prepared for an HTML page. Words
// between angle brackets that are no elements are kept, for example the type
// parameters of a program.
func Unmark(s string) string {
	s = marks.Replace(s)
	if strings.Contains(s, "<") { // unlikely, and package regexp is slow
		s = tag().ReplaceAllString(s, "")
	}
	return strings.TrimSpace(html.UnescapeString(s))
}

// marks removes what Fess writes around matches.
var marks = strings.NewReplacer("<strong>", "", "</strong>", "")

// tag matches the tags that an excerpt may still contain.
var tag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)</?(a|b|br|code|dd|div|dl|dt|em|font|h[1-6]|hr|i|img|li|mark|ol|p|pre|small|span|` +
		`strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)(\s[^<>]*)?/?>`)
})

// frame is what Fess writes before a stored copy (WEB-INF/view/cache.hbs, Fess 15.4
// and 15.7): a document type, the charset, the base, and a box with a note.
const frame = `<!DOCTYPE html>
<meta http-equiv="Content-Type" content="text/html; charset=UTF-8">
<base href="%s">
<div style="border:1px solid #999;margin:5px -1px;padding:0;">
<div style="color:#000;background:#ddd;border:1px solid #666;margin:10px 15px;padding:5px;text-align:left;">` +
	`This is a cache of %s. It is a snapshot of the page as it appeared on %s.</div>
</div>
`

// Frame returns the page of a stored copy from an address, which has one line.
func Frame(address, created, copied string) string {
	address = html.EscapeString(address)
	return fmt.Sprintf(frame, address, address, created) + copied + "\n"
}

// framed matches the frame of a page, whatever its texts are.
var framed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*<!DOCTYPE html>\r?\n<meta http-equiv="Content-Type"[^\n]*\n<base href="[^\n]*\n` +
		`<div [^\n]*\n<div [^\n]*</div>\r?\n</div>\r?\n`)
})

// Unframe returns the stored copy in a page, or nil if the page has no frame.
func Unframe(page []byte) []byte {
	cut := framed().FindIndex(page)
	if cut == nil {
		return nil
	}
	return bytes.TrimSpace(page[cut[1]:])
}
