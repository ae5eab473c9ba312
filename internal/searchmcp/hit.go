package searchmcp

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// fieldRunes limits the strings of fields in includeFields. The text of a
// document is read with read_content.
const fieldRunes = 1000

// hitSize is the usual size of a hit, in bytes.
const hitSize = 512

// headingRunes limits the path of headings above a passage.
const headingRunes = 300

// fieldNames are the fields of a hit that a Fess server can send, in the order
// in which they are written (Fess 15.4 and 15.7, QueryFieldConfig; content,
// label and lang only if the server is configured to send them).
var fieldNames = [...]string{"doc_id", "title", "url", "digest", "score",
	"_id", "boost", "click_count", "content", "content_description", "content_length", "content_title",
	"created", "favorite_count", "filename", "filetype", "has_cache", "host", "label", "lang",
	"last_modified", "mimetype", "similar_docs_count", "similar_docs_hash", "site", "site_path",
	"thumbnail", "timestamp", "url_link"}

// defaultFields are the fields of a hit without includeFields; url_link is
// included if it differs from url. The url of a file in a folder is left out: it repeats
// the path, which took about twenty tokens a hit.
var defaultFields = [...]string{"doc_id", "title", "url", "digest", "score"}

// hitFields returns the requested names in the order of fieldNames, or nil for
// the default fields.
func hitFields(asked []string) ([]string, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	for _, name := range asked {
		if !slices.Contains(fieldNames[:], name) {
			return nil, &errkind.Argument{Name: "includeFields", Value: name,
				Want: "one of " + strings.Join(fieldNames[:], ", ")}
		}
	}
	var names []string
	for _, name := range fieldNames {
		if name == "doc_id" || slices.Contains(asked, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// clean returns a hit whose title, addresses and excerpts are cleaned, with a digest
// of at most so many characters.
func clean(h search.Hit, digestRunes int) search.Hit {
	h.Title, h.URL, h.Path = title(h.Title), link(h.URL), link(h.Path)
	h.Digest = h.Digest.Map(func(s string) string { return digest(s, digestRunes) })
	h.Also = slices.Clone(h.Also)
	for i, path := range h.Also {
		h.Also[i] = link(path)
	}
	h.Passages = slices.Clone(h.Passages)
	for i := range h.Passages {
		p := &h.Passages[i]
		x := search.Excerpt{Text: p.Text, Matches: p.Matches}.Map(passageText)
		p.Heading, p.Text, p.Matches = digest(p.Heading, headingRunes), x.Text, x.Matches
	}
	return h
}

// cleanPage returns a page with clean hits and words.
func cleanPage(p *search.Page) *search.Page {
	out := *p
	out.DidYouMean, out.Missing = words(p.DidYouMean), words(p.Missing)
	out.Hits = make([]search.Hit, len(p.Hits))
	for i, h := range p.Hits {
		out.Hits[i] = clean(h, digestRunes)
	}
	return &out
}

// newHit returns h, which is clean, as a JSON object with the given fields in their
// order; nil means the default fields. For folders, it also contains the path and, if
// there are several sources, the source. Unknown values are omitted.
func (t *Tools) newHit(h *search.Hit, fields []string) *compact.Object {
	names := fields
	if names == nil {
		names = defaultFields[:]
		if otherLink(h) != "" {
			names = append(slices.Clone(names), "url_link")
		}
	}
	out := &compact.Object{}
	out.Grow(hitSize)
	for _, name := range names {
		v := fieldValue(h, name)
		switch {
		case v == nil, name == "digest" && len(h.Passages) > 0:
		case name == "url" && fields == nil && t.saysNothing(h):
		default:
			out.Add(name, v)
		}
		if name == "title" || name == "doc_id" && !slices.Contains(names, "title") {
			t.addPlace(out, h)
		}
	}
	if len(h.Passages) > 0 {
		out.Add("passages", passages(h.Passages))
	}
	return out
}

// saysNothing reports whether the url of a hit over folders is that of a file whose
// path people know, or empty.
func (t *Tools) saysNothing(h *search.Hit) bool {
	_, isFile := filePath(h.URL)
	return t.wording == OfFolders && (isFile && h.Path != "" || h.URL == "")
}

// passages returns passages as JSON objects.
func passages(list []search.Passage) []*compact.Object {
	out := make([]*compact.Object, len(list))
	for i, p := range list {
		o := &compact.Object{}
		o.Grow(len(p.Text) + hitSize/4)
		if p.Heading != "" {
			o.Add("heading", p.Heading)
		}
		if page := pageLabel(p.Page); page != nil {
			o.Add("page", page) // a number, or a label such as "iv"
		}
		o.Add("offset", p.Offset)
		o.Add("text", p.Text)
		out[i] = o
	}
	return out
}

// passageText returns the text of a passage as it is in the document, unless it
// has invisible characters, which are removed.
func passageText(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && sanitize.Invisible(r) }) < 0 {
		return s
	}
	return sanitize.Text(s)
}

// pageLabel returns the label of a page as a number if it is one, otherwise as a
// clean text; nil if there is none.
func pageLabel(label string) any {
	if n, err := strconv.Atoi(label); err == nil && strconv.Itoa(n) == label {
		return n
	}
	return known(label)
}

// addPlace adds the path of a document inside its source, the source if there are
// several, and the paths of other documents with the same text.
func (t *Tools) addPlace(out *compact.Object, h *search.Hit) {
	if t.wording != OfFolders {
		return
	}
	if h.Path != "" {
		out.Add("path", h.Path)
	}
	if t.nameSource && len(h.Labels) == 1 {
		out.Add("source", h.Labels[0])
	}
	if len(h.Also) > 0 {
		out.Add("also", h.Also)
	}
}

// fieldValue returns a field of a clean hit by its name in Fess, cleaned; nil if it
// is unknown.
func fieldValue(h *search.Hit, name string) any {
	switch name {
	case "doc_id":
		return h.ID
	case "title":
		return h.Title
	case "url":
		return h.URL
	case "digest":
		return h.Digest.Text
	case "score":
		if h.Score == 0 {
			return nil
		}
		return number(round(h.Score))
	case "content_length":
		if h.Size < 0 {
			return nil
		}
		return h.Size
	case "content_title":
		return known(h.TitleExcerpt.Text)
	case "filename":
		return known(h.Filename)
	case "filetype":
		return known(h.FileType)
	case "mimetype":
		return known(h.MIMEType)
	case "host":
		return known(h.Host)
	case "label":
		return knownWords(h.Labels)
	case "lang":
		return knownWords(h.Langs)
	case "created":
		return knownTime(h.Created)
	case "last_modified":
		return knownTime(h.Modified)
	case "timestamp":
		return knownTime(h.Timestamp)
	case "url_link", "thumbnail":
		if s, _ := h.Extra[name].(string); s != "" {
			return link(s)
		}
		return nil
	}
	switch v := h.Extra[name].(type) {
	case string:
		return digest(v, fieldRunes)
	case float64:
		return number(v)
	case int64, bool:
		return v
	}
	return nil
}

// known returns a text, or nil if it is empty.
func known(s string) any {
	if s == "" {
		return nil
	}
	return digest(s, fieldRunes)
}

// knownWords returns words, or nil if there are none.
func knownWords(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return words(list)
}

// knownTime returns a time as Fess writes it, or nil for the zero time.
func knownTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return instant(t)
}

// round returns v with five significant digits.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// number returns v, or nil if JSON cannot express it.
func number(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// facets returns the counts in the result of the search tool. Both lists are always
// present.
func facets(f *search.FacetCounts) *compact.Object {
	if f == nil {
		f = &search.FacetCounts{}
	}
	fields := make([]*compact.Object, len(f.Fields))
	for i, field := range f.Fields {
		fields[i] = &compact.Object{}
		fields[i].Add("name", field.Name)
		fields[i].Add("result", counts(field.Counts))
	}
	o := &compact.Object{}
	o.Add("fields", fields)
	o.Add("queries", counts(f.Queries))
	return o
}

func counts(list []search.Count) []*compact.Object {
	out := make([]*compact.Object, len(list))
	for i, c := range list {
		out[i] = &compact.Object{}
		out[i].Add("value", digest(c.Value, fieldRunes))
		out[i].Add("count", c.Count)
	}
	return out
}
