package office

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"golang.org/x/net/html"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// maxNames is the maximum number of different names of elements that are
// remembered.
const maxNames = 5000

// An xmlReader reads the tags and texts of XML in a stream, without a tree.
//
// It uses the tokenizer of HTML, which allocates a quarter of what encoding/xml
// does, keeps reading after damage, and expands no entities that a document
// declares. Names have no namespace prefix and are in lower case. In XML, names
// that differ in case only are different, but no format that is read has such
// names.
type xmlReader struct {
	z     *html.Tokenizer
	kind  html.TokenType // of the token: StartTagToken, EndTagToken or TextToken
	name  string         // of the element that starts or ends
	depth int            // open elements, with the one that starts, without the one that ends
	empty bool           // the element that starts has no content; its end is the next token
	attrs []xmlAttr      // of the element that starts
	names map[string]string
	deep  bool // plain.MaxDepth was exceeded
}

type xmlAttr struct {
	prefix bool   // the name has a namespace prefix
	name   []byte // without it
	value  []byte
}

func newXMLReader(r io.Reader) *xmlReader {
	b := bufio.NewReaderSize(r, 1<<15)
	head, _ := b.Peek(2)
	x := &xmlReader{z: html.NewTokenizer(utf8Reader(head, b)), names: map[string]string{}}
	x.z.SetMaxBuf(plain.MaxToken)
	x.z.AllowCDATA(true)
	return x
}

// next reads the next tag or text. It returns false at the end, also if that is
// due to damage or to a limit.
func (x *xmlReader) next() bool {
	if x.empty {
		x.empty, x.kind = false, html.EndTagToken
		x.depth--
		return true
	}
	for {
		x.kind = x.z.Next()
		switch x.kind {
		case html.ErrorToken:
			return false
		case html.TextToken:
			return true
		case html.EndTagToken:
			name, _ := x.z.TagName()
			x.name = x.intern(name)
			x.depth = max(x.depth-1, 0)
			return true
		case html.StartTagToken, html.SelfClosingTagToken:
			x.start()
			return !x.deep
		}
	}
}

func (x *xmlReader) start() {
	x.z.NextIsNotRawText()
	x.empty, x.kind = x.kind == html.SelfClosingTagToken, html.StartTagToken
	x.depth++
	x.deep = x.deep || x.depth > plain.MaxDepth
	name, more := x.z.TagName()
	x.name = x.intern(name)
	x.attrs = x.attrs[:0]
	for more && len(x.attrs) < 200 {
		var a xmlAttr
		a.name, a.value, more = x.z.TagAttr()
		if i := bytes.IndexByte(a.name, ':'); i >= 0 {
			a.prefix, a.name = true, a.name[i+1:]
		}
		x.attrs = append(x.attrs, a)
	}
}

// intern returns the local name as a string without allocating it each time.
func (x *xmlReader) intern(name []byte) string {
	name = name[bytes.IndexByte(name, ':')+1:]
	s, ok := x.names[string(name)]
	if !ok {
		s = string(name)
		if len(x.names) < maxNames {
			x.names[s] = s
		}
	}
	return s
}

// starts reports whether the token is the start of an element with this name.
func (x *xmlReader) starts(name string) bool { return x.kind == html.StartTagToken && x.name == name }

// ends reports whether the token is the end of an element with this name.
func (x *xmlReader) ends(name string) bool { return x.kind == html.EndTagToken && x.name == name }

// text returns the text of a text token. It is valid until the next token.
func (x *xmlReader) text() []byte { return x.z.Text() }

// value returns an attribute of the element that starts, which is valid until
// the next token; nil if there is none.
func (x *xmlReader) value(name string) []byte {
	for i := range x.attrs {
		if string(x.attrs[i].name) == name {
			return x.attrs[i].value
		}
	}
	return nil
}

// attr returns an attribute of the element that starts, or "".
func (x *xmlReader) attr(name string) string { return string(x.value(name)) }

// prefixed returns an attribute whose name has a namespace prefix, such as
// r:id, or "".
func (x *xmlReader) prefixed(name string) string {
	for i := range x.attrs {
		if x.attrs[i].prefix && string(x.attrs[i].name) == name {
			return string(x.attrs[i].value)
		}
	}
	return ""
}

// skip skips the rest of the element that starts.
func (x *xmlReader) skip() {
	for outside := x.depth - 1; x.depth > outside && x.next(); {
	}
}

// content returns the text of the element that starts, up to limit bytes, and
// skips its end.
func (x *xmlReader) content(limit int) string {
	var b []byte
	for outside := x.depth - 1; x.next() && x.depth > outside; {
		if x.kind == html.TextToken && len(b) < limit {
			b = append(b, x.text()...)
		}
	}
	return string(b[:min(len(b), limit)])
}

// errNested is the error for a document whose parts are nested too deeply.
var errNested = fmt.Errorf("its parts are nested more than %d levels deep: %w", plain.MaxDepth, errkind.TooLarge)

// err returns an error of kind TooLarge if a limit ended reading, otherwise nil.
func (x *xmlReader) err() error {
	switch {
	case x.deep:
		return errNested
	case x.z.Err() == html.ErrBufferExceeded:
		return fmt.Errorf("a tag or text of more than %d bytes: %w", plain.MaxToken, errkind.TooLarge)
	}
	return nil
}
