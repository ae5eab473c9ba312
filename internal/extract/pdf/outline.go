package pdf

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Limits on the bookmarks of a document.
const (
	maxBookmarks     = plain.MaxHeadings
	maxDestinations  = 1 << 16 // named places
	maxBookmarkTitle = 1000    // bytes
	bookmarkSize     = 2 * 64  // bytes, in addition to the title
)

// A bookmark is an entry of the outline.
type bookmark struct {
	title string // one line, never empty
	level int    // 1 to 6
	page  int    // index of the page to which it leads
}

// An outlineReader reads the outline of a document (ISO 32000-1, 12.3.3).
type outlineReader struct {
	f      *cos.File
	pages  map[cos.Ref]int // indexes of the pages
	count  int             // of the pages
	named  map[string]cos.Object
	seen   map[cos.Ref]bool
	out    []bookmark
	memory *cos.Share
}

// outlineOf returns the bookmarks that lead to a page, in order. Their memory,
// and that for reading them, is that of mem.
func outlineOf(f *cos.File, pages map[cos.Ref]int, count int, mem *cos.Share) []bookmark {
	first := f.Dict(f.Root()["Outlines"])["First"]
	if first == nil {
		return nil
	}
	r := outlineReader{f: f, pages: pages, count: count, seen: map[cos.Ref]bool{}, memory: mem}
	r.siblings(first, 1)
	return r.out
}

// siblings reads an entry and those that follow it, each with the entries below it.
func (r *outlineReader) siblings(o cos.Object, level int) {
	for o != nil && level <= maxTreeDepth && len(r.out) < maxBookmarks && r.enter(o) {
		d := r.f.Dict(o)
		title := r.title(d["Title"])
		if page, ok := r.page(d); ok && title != "" && r.memory.Alloc(bookmarkSize+len(title)) {
			r.out = append(r.out, bookmark{title: title, level: min(level, 6), page: page})
		}
		if first := d["First"]; first != nil {
			r.siblings(first, level+1)
		}
		o = d["Next"]
	}
}

// enter reports whether an object is a reference that was not read before.
func (r *outlineReader) enter(o cos.Object) bool {
	ref, ok := o.(cos.Ref)
	if !ok || r.seen[ref] || !r.f.Budget.Spend(100) || !r.memory.Alloc(32) {
		return false
	}
	r.seen[ref] = true
	return true
}

func (r *outlineReader) title(o cos.Object) string {
	s := r.f.Text(o)
	s = textString(s[:min(len(s), maxBookmarkTitle)])
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, ""))
	return tidy(s)
}

// page returns the index of the page to which an entry leads.
func (r *outlineReader) page(d cos.Dict) (int, bool) {
	dest := r.f.Resolve(d["Dest"])
	if dest == nil {
		if action := r.f.Dict(d["A"]); r.f.Name(action["S"]) == "GoTo" {
			dest = r.f.Resolve(action["D"])
		}
	}
	switch v := dest.(type) {
	case string:
		dest = r.destination(v)
	case cos.Name:
		dest = r.destination(string(v))
	}
	if d := r.f.Dict(dest); d != nil { // a named place may be a dictionary
		dest = d["D"]
	}
	place := r.f.Array(dest)
	if len(place) == 0 {
		return 0, false
	}
	if ref, ok := place[0].(cos.Ref); ok {
		i, ok := r.pages[ref]
		return i, ok && i >= 0
	}
	i, ok := cos.Integer(place[0]) // some programs write the index
	return i, ok && i >= 0 && i < r.count
}

// destination returns a named place (ISO 32000-1, 12.3.2.3).
func (r *outlineReader) destination(name string) cos.Object {
	if r.named == nil {
		r.named = map[string]cos.Object{}
		for name, o := range r.f.Dict(r.f.Root()["Dests"]) {
			r.add(string(name), o)
		}
		r.names(r.f.Dict(r.f.Root()["Names"])["Dests"], 0)
	}
	return r.f.Resolve(r.named[name])
}

func (r *outlineReader) add(name string, o cos.Object) {
	if len(r.named) < maxDestinations && r.f.Budget.Spend(50) && r.memory.Alloc(bookmarkSize+len(name)) {
		r.named[name] = o
	}
}

// names adds the names of a tree.
func (r *outlineReader) names(o cos.Object, depth int) {
	if _, ok := o.(cos.Ref); depth > maxTreeDepth || ok && !r.enter(o) || !r.f.Budget.Spend(10) {
		return
	}
	d := r.f.Dict(o)
	list := r.f.Array(d["Names"])
	for i := 0; i+1 < len(list) && r.f.Budget.Spend(10); i += 2 {
		r.add(r.f.Text(list[i]), list[i+1])
	}
	for _, k := range r.f.Array(d["Kids"]) {
		r.names(k, depth+1)
	}
}

// bookmarkWork limits the bytes that are compared with the titles of bookmarks.
// The rest of the bookmarks is ignored.
const bookmarkWork = 1 << 24

// addBookmarks makes headings of the bookmarks whose titles are lines on their
// pages. pages contains the index of each page of t.Pages. Headings found by
// their size stay, below the bookmark before them, unless they belong to the title
// of one.
func (t *Text) addBookmarks(list []bookmark, pages []int, b *cos.Budget) {
	var found []titled
	work, after := 0, 0
	for _, m := range list {
		i, ok := slices.BinarySearch(pages, m.page)
		if !ok {
			continue
		}
		start, end := t.Pages[i].Offset, len(t.Body)
		if i+1 < len(t.Pages) {
			end = t.Pages[i+1].Offset
		}
		if after > start && after < end { // the bookmark before is on this page
			start = after
		}
		if work += end - start + len(m.title); work > bookmarkWork || !b.Spend(4*(end-start+len(m.title))) {
			break
		}
		from, to, ok := t.findHeading(start, end, m.title)
		if !ok {
			from, to, ok = findTitle(t.Body[start:end], m.title)
			from, to = start+from, start+to
		}
		if ok {
			after = to
			found = append(found, titled{document.Heading{Offset: from, Level: m.level, Text: m.title}, to})
		}
	}
	slices.SortStableFunc(found, func(a, b titled) int { return a.Offset - b.Offset })
	found = slices.CompactFunc(found, func(a, b titled) bool { return a.Offset == b.Offset })
	var all []document.Heading
	next := 0
	for _, h := range t.Headings {
		for next < len(found) && found[next].Offset < h.Offset {
			all = append(all, found[next].Heading)
			next++
		}
		end := h.Offset + paragraphLen(h, t.Body)
		switch {
		case next < len(found) &&
			(found[next].Offset < end || found[next].Offset == end+len("\n\n") && found[next].Level == 1):
			found[next].Offset = h.Offset // "Chapter 1" may come before the title
		case next > 0 && h.Offset < found[next-1].end:
		case next > 0:
			h.Level = max(h.Level, min(found[next-1].Level+1, 6))
			all = append(all, h)
		default:
			all = append(all, h)
		}
	}
	for _, h := range found[next:] {
		all = append(all, h.Heading)
	}
	t.Headings = all[:min(len(all), plain.MaxHeadings)]
}

// A titled is a heading with the end of its title in the text.
type titled struct {
	document.Heading
	end int
}

// findHeading returns the place of the first heading in a part of the text that
// ends with a title: "Chapter 1 Introduction".
func (t *Text) findHeading(start, end int, title string) (from, to int, ok bool) {
	key := strings.TrimLeft(fold(title), "0123456789")
	i, _ := slices.BinarySearchFunc(t.Headings, start, func(h document.Heading, at int) int { return h.Offset - at })
	for _, h := range t.Headings[i:] {
		if h.Offset >= end {
			break
		}
		if key != "" && strings.HasSuffix(fold(h.Text), key) {
			return h.Offset, h.Offset + paragraphLen(h, t.Body), true
		}
	}
	return 0, 0, false
}

// paragraphLen returns the length of the paragraph of a heading.
func paragraphLen(h document.Heading, body string) int {
	paragraph, _, _ := strings.Cut(body[h.Offset:], "\n\n")
	return len(paragraph)
}

// findTitle returns the place of the first lines of a text that consist of a
// title, apart from a number before it.
func findTitle(text, title string) (from, to int, ok bool) {
	key := fold(title)
	bare := strings.TrimLeft(key, "0123456789")
	if bare == "" {
		return 0, 0, false
	}
	for at := 0; at < len(text); {
		line := text[at:]
		if n, ok := matchTitle(line, key); ok {
			return at, at + n, true
		}
		rest := strings.TrimLeft(line, "0123456789. \t")
		if n, ok := matchTitle(rest, bare); ok {
			return at, at + len(line) - len(rest) + n, true
		}
		n := strings.IndexByte(line, '\n')
		if n < 0 {
			break
		}
		for at += n; at < len(text) && text[at] == '\n'; at++ {
		}
	}
	return 0, 0, false
}

// matchTitle reports whether s begins with lines that consist of a folded title,
// and returns their length.
func matchTitle(s, key string) (int, bool) {
	for i, r := range s {
		if key == "" {
			if r == '\n' {
				return i, true
			}
			if isAlnum(r) || r == '…' {
				return 0, false // more text, or a table of contents
			}
			continue
		}
		if !isAlnum(r) {
			continue
		}
		want, n := utf8.DecodeRuneInString(key)
		if unicode.ToLower(r) != want {
			return 0, false
		}
		key = key[n:]
	}
	return len(s), key == ""
}

// fold returns the letters and digits of a title as small letters.
func fold(title string) string {
	return strings.Map(func(r rune) rune {
		if !isAlnum(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, title)
}
