package datasetsearch

import (
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// A text is the text of a document.
type text struct {
	text     string
	hash     string
	sections []document.Section
}

// maxTexts is how many bytes of texts are kept in memory.
const maxTexts = 64 << 20

// A textCache keeps texts that were read. The zero textCache is ready for use.
type textCache struct {
	mu   sync.Mutex
	of   map[textKey]*text
	size int
}

type textKey struct {
	t   *table
	doc int
}

// get returns the text of a document.
func (c *textCache) get(t *table, doc int) *text {
	key := textKey{t, doc}
	c.mu.Lock()
	x := c.of[key]
	c.mu.Unlock()
	if x != nil {
		return x
	}
	x = join(t.set, t.set.Parts(doc))
	x.hash = chunk.Hash(x.text)
	t.sizes[doc].Store(int64(len(x.text)) + 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += len(x.text); c.of == nil || c.size > maxTexts {
		c.of, c.size = map[textKey]*text{}, len(x.text)
	}
	c.of[key] = x
	return x
}

// sizeOf returns the size of the text of a document.
func (t *table) sizeOf(doc int) int64 {
	if n := t.sizes[doc].Load(); n > 0 {
		return n - 1
	}
	n := int64(len(join(t.set, t.set.Parts(doc)).text))
	t.sizes[doc].Store(n + 1)
	return n
}

// maxHeading is the greatest length of the heading of a section in bytes.
const maxHeading = 300

// join returns the text that documents of a set are the parts of, without its hash.
// What a part repeats of the one before it, and the headings of both that it begins
// with, are left out.
func join(set *dataset.Set, parts []int32) *text {
	var b strings.Builder
	x := &text{}
	var before *dataset.Document
	var end, heading string // text of the part before; the heading of the section
	for _, n := range parts {
		d := set.Document(int(n))
		content := strings.TrimRight(strings.Trim(sanitize.Text(d.Content), "\n"), " \t\n")
		if content == "" {
			continue
		}
		at := b.Len()
		if before == nil {
			b.WriteString(content)
		} else {
			repeated, between := seam(before, d, end, content)
			if repeated > 0 {
				at -= repeated
			} else {
				b.WriteString(between)
				at = b.Len()
				repeated = headings(before, d, end, content)
			}
			b.WriteString(content[repeated:])
		}
		if h := sanitize.Short(d.Heading, maxHeading, maxHeading); h != heading {
			if heading = h; h != "" {
				x.sections = append(x.sections, document.Section{Offset: at, Heading: h})
			}
		}
		before, end = d, content
	}
	x.text = b.String()
	return x
}

// seam returns how many bytes at the beginning of a part are also the end of the part
// before it, or what stands between the two. If the numbers of their lines are known,
// they say which lines both can have.
func seam(before, d *dataset.Document, end, content string) (repeated int, between string) {
	if before.EndLine <= 0 || d.StartLine <= 0 {
		return overlap(end, content), "\n\n"
	}
	switch common := before.EndLine - d.StartLine + 1; {
	case common > 0:
		if n := firstLines(content, common); n > 0 && strings.HasSuffix(end, content[:n]) &&
			(n == len(end) || end[len(end)-n-1] == '\n') {
			return n, ""
		}
		if common == 1 {
			return 0, " " // a long line was cut
		}
	case common == 0:
		return 0, "\n"
	}
	return 0, "\n\n"
}

// firstLines returns the length of the first n lines of a text, without the line break
// behind them; 0 if it has fewer.
func firstLines(text string, n int) int {
	at := 0
	for range n {
		if at > len(text) {
			return 0
		}
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			i = len(text) - at
		}
		at += i + 1
	}
	return at - 1
}

// Bounds of an overlap, in bytes. Shorter ones, such as a brace, are chance.
const (
	maxOverlap = 8 << 10
	minLines   = 8  // of whole lines
	minOverlap = 16 // of other texts
)

// overlap returns the length of the longest end of a that b begins with, if it is not
// there by chance.
func overlap(a, b string) int {
	if a == b {
		return len(b)
	}
	tail := a[max(len(a)-maxOverlap, 0):]
	head := b[:min(len(b), maxOverlap)]
	// border[i] is the length of the longest proper beginning of head that head[:i+1]
	// ends with (Knuth, Morris, Pratt).
	border := make([]int32, len(head))
	n := 0
	step := func(c byte) {
		for n > 0 && (n == len(head) || head[n] != c) {
			n = int(border[n-1])
		}
		if n < len(head) && head[n] == c {
			n++
		}
	}
	for i := 1; i < len(head); i++ {
		step(head[i])
		border[i] = int32(n)
	}
	n = 0
	for i := range len(tail) {
		step(tail[i])
	}
	for ; n > 0; n = int(border[n-1]) {
		begins := n == len(a) || a[len(a)-n-1] == '\n'
		ends := n == len(b) || b[n] == '\n'
		if begins && ends && n >= minLines || n >= minOverlap {
			return n
		}
	}
	return 0
}

// headings returns the length of the lines that a part and the part before it begin
// with and that are headings of both, if there is text behind them.
func headings(before, d *dataset.Document, start, content string) int {
	if d.Heading != before.Heading {
		return 0
	}
	names := append(strings.Split(d.Heading, ">"), d.Title)
	n := 0
	for {
		line, rest, more := strings.Cut(content[n:], "\n")
		end := len(content) - len(rest)
		bare := strings.Trim(line, "# \t")
		if !more || bare != "" && !named(names, bare) || !strings.HasPrefix(start, content[:end]) {
			return n
		}
		n = end
	}
}

// named reports whether a line is one of some headings.
func named(names []string, line string) bool {
	for _, name := range names {
		if strings.TrimSpace(name) == line {
			return true
		}
	}
	return false
}
