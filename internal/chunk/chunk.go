// Package chunk cuts texts into pieces: for search, where a piece should have
// one subject, and for reading, where a piece should fit into one tool result.
//
// The package has no state. The same version and options always cut a text in
// the same way, because stored offsets and the cursors of readers depend on it.
package chunk

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// Defaults of [Options].
const (
	defaultSize = 1200
	defaultMax  = 2000
)

// minMax is the smallest maximum: any rune fits.
const minMax = utf8.UTFMax

// Options are the sizes of chunks.
type Options struct {
	Size int // preferred number of bytes; 0 means defaultSize; at most Max
	Max  int // maximum number of bytes; 0 means defaultMax; at least 4
}

// Split cuts text into chunks that cover all of it in order, without gaps or
// overlaps, at rune borders. It cuts before headings, unless the chunk would be
// shorter than a quarter of Size, and otherwise after a paragraph, a line, a
// sentence or a word, in this order of preference. Headings outside the text
// are ignored. An empty text has no chunks.
func Split(text string, headings []document.Heading, o Options) []document.Chunk {
	if o.Size <= 0 {
		o.Size = defaultSize
	}
	if o.Max <= 0 {
		o.Max = defaultMax
	}
	o.Max = max(o.Max, minMax)
	o.Size = min(max(o.Size, 1), o.Max)
	hs := usable(text, headings)

	var chunks []document.Chunk
	var p path
	next := 0 // index of the first heading after the start of the chunk
	for start := 0; start < len(text); {
		for ; next < len(hs) && hs[next].Offset <= start; next++ {
			p.enter(hs[next])
		}
		end := start + pieceLen(text[start:], hs[next:], start, o)
		chunks = append(chunks, document.Chunk{Offset: start, Length: end - start, Heading: p.String()})
		start = end
	}
	return chunks
}

// Sections returns the sections of a text, in order. Headings outside the text
// are ignored. One without text ends the sections from its level on: there, the
// section above them continues.
func Sections(text string, headings []document.Heading) []document.Section {
	var sections []document.Section
	var p path
	for _, h := range usable(text, headings) {
		p.enter(h)
		if s := p.String(); s != "" {
			sections = append(sections, document.Section{Offset: h.Offset, Heading: s,
				Continues: strings.TrimSpace(h.Text) == ""})
		}
	}
	return sections
}

// usable returns the headings that are inside text, sorted by offset.
func usable(text string, headings []document.Heading) []document.Heading {
	hs := slices.Clone(headings)
	hs = slices.DeleteFunc(hs, func(h document.Heading) bool {
		return h.Offset < 0 || h.Offset >= len(text) || !utf8.RuneStart(text[h.Offset])
	})
	slices.SortStableFunc(hs, func(a, b document.Heading) int { return a.Offset - b.Offset })
	return hs
}

// pieceLen returns the length of the first chunk of s, which begins at byte
// start of the text. hs are the headings after start.
func pieceLen(s string, hs []document.Heading, start int, o Options) int {
	least := o.Size / 4
	for _, h := range hs {
		n := h.Offset - start
		if n > o.Max {
			break
		}
		if n >= least && n > 0 {
			return n
		}
	}
	if len(s) <= o.Max {
		return len(s)
	}
	half := o.Size / 2
	if n := afterParagraph(s, half, o.Size); n > 0 {
		return n
	}
	if n := afterParagraph(s, o.Size, o.Max); n > 0 {
		return n
	}
	return lastBreak(s, half, o.Size, o.Max)
}

// lastBreak returns the length of the piece of s that ends at the best place in
// (lo, hi]: after a line, a sentence or a word, or else at the last rune border
// up to hi, or up to limit if a rune is too long for that. len(s) >= limit >=
// 4.
func lastBreak(s string, lo, hi, limit int) int {
	for _, after := range [...]func(string, int, int) int{afterLine, afterSentence, afterBlank} {
		if n := after(s, lo, hi); n > 0 {
			return n
		}
	}
	if n := runeBorder(s, hi); n > 0 {
		return n
	}
	return max(runeBorder(s, limit), 1)
}

// Cut returns the length in bytes of the next piece of window for reading, at
// most max (at least 4). It never cuts a rune. window begins where the previous
// piece ended; last reports whether it extends to the end of the text. If it
// does and fits, all of it is one piece. Otherwise the piece ends after a
// paragraph in the second half of what fits, or else after a line, a sentence
// or a word there, or else at any rune border. If the window has at least max
// bytes or is the last one, the result does not depend on how much more it
// holds.
//
// The result is positive, except that it is 0 for an empty window and for one
// that is not the last and contains only an incomplete rune.
func Cut(window string, max int, last bool) int {
	if max < minMax {
		max = minMax
	}
	if len(window) <= max && last {
		return len(window)
	}
	hi := min(max, len(window))
	if n := afterParagraph(window, hi/2, hi); n > 0 {
		return n
	}
	for _, after := range [...]func(string, int, int) int{afterLine, afterSentence, afterBlank} {
		if n := after(window, hi/2, hi); n > 0 {
			return n
		}
	}
	return runeBorder(window, hi)
}

// Hash returns "sha256:" followed by the SHA-256 hash of text in hexadecimal.
func Hash(text string) string {
	h := sha256.New()
	var buf [4096]byte // without a copy of the whole text
	for len(text) > 0 {
		n := copy(buf[:], text)
		h.Write(buf[:n])
		text = text[n:]
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// A path is the chain of headings above a place in the text.
type path []document.Heading

// Bounds of a path as a string.
const (
	maxPathParts = 6
	maxPathPart  = 120 // bytes
	maxPath      = 300 // bytes
	pathSep      = " > "
)

// enter changes the path to that of the next heading.
func (p *path) enter(h document.Heading) {
	for len(*p) > 0 && (*p)[len(*p)-1].Level >= h.Level {
		*p = (*p)[:len(*p)-1]
	}
	if len(*p) == maxPathParts {
		*p = (*p)[:maxPathParts-1]
	}
	*p = append(*p, h)
}

// String joins the headings of the path. If the result would be too long, the
// highest headings are left out.
func (p path) String() string {
	s := ""
	for _, h := range slices.Backward(p) {
		part := strings.Join(strings.Fields(h.Text), " ")
		part = strings.TrimSpace(part[:runeBorder(part, min(len(part), maxPathPart))])
		switch {
		case part == "":
		case s == "":
			s = part
		case len(part)+len(pathSep)+len(s) > maxPath:
			return s
		default:
			s = part + pathSep + s
		}
	}
	return s
}
