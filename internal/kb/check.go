package kb

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

// check returns the text of a query that is valid.
func (q *SearchQuery) check() (query.Text, error) {
	if strings.TrimSpace(q.Query) == "" || len(q.Query) > MaxQuery || !utf8.ValidString(q.Query) {
		return query.Text{}, &errkind.Argument{Name: "query",
			Value: q.Query, Want: fmt.Sprintf("1 to %d bytes of UTF-8", MaxQuery)}
	}
	text, err := query.Read(q.Query)
	if err != nil {
		return text, &errkind.Argument{Name: "query", Value: q.Query, Want: "at least one word"}
	}
	if err := checkRange("top", q.Top, 1, MaxTop); err != nil {
		return text, err
	}
	if q.FTSOnly && q.VectorOnly {
		return text, &errkind.Argument{Name: "vector_only", Value: true, Want: "false if fts_only is true"}
	}
	return text, checkTags("tags", q.Tags)
}

func (f *JobFilter) check() error {
	if !slices.Contains([]string{"", Queued, Running, Done, Failed}, f.Status) {
		return &errkind.Argument{Name: "status", Value: f.Status, Want: "queued, running, done or failed"}
	}
	return checkRange("limit", f.Limit, 1, MaxLimit)
}

func (f *DocumentFilter) check() error {
	if err := checkLine("source_path", f.SourcePath, MaxSourcePath); err != nil {
		return err
	}
	if f.Tag != "" {
		if err := checkTags("tag", []string{f.Tag}); err != nil {
			return err
		}
	}
	if f.Collection != "" && !ValidCollection(f.Collection) {
		return &errkind.Argument{Name: "collection", Value: f.Collection,
			Want: `a name of 1 to 100 letters, digits, "_", "." and "-"`}
	}
	if err := checkRange("offset", f.Offset, 0, maxOffset); err != nil {
		return err
	}
	return checkRange("limit", f.Limit, 1, MaxLimit)
}

// maxOffset is the greatest offset in a list of documents.
const maxOffset = 1<<31 - 1

func checkRange(name string, n, least, most int) error {
	if n < least || n > most {
		return &errkind.Argument{Name: name, Value: n, Want: fmt.Sprintf("an integer from %d to %d", least, most)}
	}
	return nil
}

// check returns the collection of a note ("" if it names none) and its other
// tags.
func (n *Note) check(maxSize int64) (collection string, tags []string, err error) {
	if err := checkText(n.Text, maxSize); err != nil {
		return "", nil, err
	}
	if err := checkLine("title", n.Title, MaxTitle); err != nil {
		return "", nil, err
	}
	if err := checkLine("source_path", n.SourcePath, MaxSourcePath); err != nil {
		return "", nil, err
	}
	return splitTags("tags", n.Tags)
}

func checkText(text string, maxSize int64) error {
	switch {
	case int64(len(text)) > maxSize:
		return fmt.Errorf("the text has %d bytes, at most %d are accepted: shorten it: %w", len(text), maxSize,
			errkind.TooLarge)
	case strings.TrimFunc(text, blank) == "" || !utf8.ValidString(text):
		return &errkind.Argument{Name: "text", Value: text, Want: "a text in UTF-8 that is not blank"}
	}
	return nil
}

// blank reports whether r leaves a text blank: control characters are removed from it.
func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\ufeff' }

func (c *NoteChange) check(maxSize int64) error {
	if c.Text == nil && c.Title == nil {
		return &errkind.Argument{Name: "text", Want: "a text, or a title, or both"}
	}
	if c.Text != nil {
		if err := checkText(*c.Text, maxSize); err != nil {
			return err
		}
	}
	if c.Title != nil {
		return checkLine("title", *c.Title, MaxTitle)
	}
	return nil
}

// check sets the defaults of a file, and returns its collection ("" if it names
// none) and its other tags.
func (f *File) check() (collection string, tags []string, err error) {
	f.Filename = f.Filename[strings.LastIndexAny(f.Filename, `/\`)+1:]
	if strings.Trim(f.Filename, ". ") == "" {
		return "", nil, &errkind.Argument{Name: "file", Value: f.Filename, Want: "a file with a name"}
	}
	if err := checkLine("file", f.Filename, maxFilename); err != nil {
		return "", nil, err
	}
	if f.SourcePath == "" {
		f.SourcePath = f.Filename
	}
	if err := checkLine("source_path", f.SourcePath, MaxSourcePath); err != nil {
		return "", nil, err
	}
	return splitTags("tags", f.Tags)
}

// maxFilename is the maximum length of a file name in bytes.
const maxFilename = 255

// checkLine returns an error unless a value is one line of UTF-8, or empty.
func checkLine(name, value string, most int) error {
	if !isLine(value, most) {
		return &errkind.Argument{Name: name, Value: value,
			Want: fmt.Sprintf("one line of at most %d bytes of UTF-8", most)}
	}
	return nil
}

// collectionName matches the names of collections, which are labels.
var collectionName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// ValidCollection reports whether a collection can have a name.
func ValidCollection(name string) bool { return collectionName.MatchString(name) }

// ValidTag reports whether a document can have a tag, apart from that of a
// collection.
func ValidTag(tag string) bool { return strings.TrimSpace(tag) != "" && isLine(tag, MaxTag) }

// isLine reports whether a value is one line of UTF-8, or empty.
func isLine(value string, most int) bool {
	return len(value) <= most && utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
}

// checkTags checks tags, among them those of collections.
func checkTags(name string, tags []string) error {
	if len(tags) > MaxTags {
		return &errkind.Argument{Name: name, Value: len(tags), Want: fmt.Sprintf("at most %d tags", MaxTags)}
	}
	for _, tag := range tags {
		if !ValidTag(tag) {
			return &errkind.Argument{Name: name, Value: tag,
				Want: fmt.Sprintf("tags of 1 to %d bytes of UTF-8 in one line", MaxTag)}
		}
		if collection, ok := document.TagLabel(tag); ok && !ValidCollection(collection) {
			return &errkind.Argument{Name: name, Value: tag,
				Want: `a name of 1 to 100 letters, digits, "_", "." and "-" after "collection:"`}
		}
	}
	return nil
}

// splitTags checks tags and returns the collection that one of them names ("" if
// none does) and the others, each once. The result is nil if there are no
// others.
func splitTags(name string, tags []string) (collection string, others []string, err error) {
	if err := checkTags(name, tags); err != nil {
		return "", nil, err
	}
	for _, tag := range tags {
		c, ok := document.TagLabel(tag)
		switch {
		case !ok && !slices.Contains(others, tag):
			others = append(others, tag)
		case ok && collection != "" && c != collection:
			return "", nil, &errkind.Argument{Name: name, Value: tag,
				Want: fmt.Sprintf("one collection, but collection:%s is "+
					"there, too", collection)}
		case ok:
			collection = c
		}
	}
	return collection, others, nil
}
