package searchmcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/content"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/spell"

	"golang.org/x/text/unicode/norm"
)

// addReading adds the tools that correspond to the resources, for clients
// without resources.
func (t *Tools) addReading(s *mcpserver.Server) {
	document := t.tool("get_document", "Get document metadata", t.choose(
		"Get the title, url, digest, dates and hash of a document. Use it to check how old it is or whether it has "+
			"changed.",
		"Get the dates, hash and sections (headings with offsets) of a document."))
	content := t.tool("read_content", "Read document text", t.choose(
		"Read the text of a document. Use it before you rely on a hit. "+
			"A long text comes in chunks: while isLast is false, call again with nextCursor as cursor.",
		"Read a document: all of it, from the offset of a passage, or a section. While isLast is false, call again "+
			"with nextCursor as cursor."))
	if t.wording == OfFolders { // results are short by default
		mcpserver.AddTool(s, document, t.getFolderDocument)
		mcpserver.AddTool(s, content, t.readFolderContent)
		return
	}
	// Claude Code writes a longer result to a file, unless a tool declares the
	// maximum length of its results, up to this many characters.
	content.Meta = map[string]any{"anthropic/maxResultSizeChars": 500_000}
	mcpserver.AddTool(s, document, t.getDocument)
	mcpserver.AddTool(s, content, t.readContent)
}

// documentArgs identify a document of a Fess server. Both names are accepted,
// because hits call the id doc_id.
type documentArgs struct {
	DocID *string `json:"docId,omitempty" jsonschema:"doc_id of a hit; required"`
	Alias *string `json:"doc_id,omitempty" jsonschema:"Another name for docId"`
}

func (a documentArgs) id() (string, error) {
	switch {
	case a.DocID != nil && a.Alias != nil:
		return "", &errkind.Argument{Name: "doc_id", Value: *a.Alias, Want: "only one of docId and doc_id"}
	case a.Alias != nil:
		return checkID("doc_id", *a.Alias)
	case a.DocID != nil:
		return checkID("docId", *a.DocID)
	}
	return "", &errkind.Argument{Name: "docId", Want: wantID}
}

const wantID = "the doc_id of a search hit: 1 to 128 of the characters A-Z, a-z, 0-9, _ and -"

// checkID returns an id if an argument has the form of one.
func checkID(argument, id string) (string, error) {
	if !isID(id) {
		return "", &errkind.Argument{Name: argument, Value: id, Want: wantID}
	}
	return id, nil
}

// DocumentArgs identify a document, by one of the two.
type DocumentArgs struct {
	DocID string `json:"docId,omitempty" jsonschema:"doc_id of a hit"`
	Path  string `json:"path,omitempty" jsonschema:"path of a hit"`
}

// unescaped returns a path without the escapes of URLs, or as it is if it has wrong ones.
func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// locate returns the ID of the document that the arguments name.
func (t *Tools) locate(ctx context.Context, a DocumentArgs) (string, error) {
	switch {
	case a.DocID != "" && a.Path != "":
		return "", &errkind.Argument{Name: "path", Value: a.Path, Want: "only one of docId and path"}
	case a.DocID == "" && a.Path == "":
		return "", &errkind.Argument{Name: "docId", Want: "the doc_id or the path of a search hit, in docId or path"}
	case a.Path == "":
		return checkID("docId", a.DocID)
	}
	outliner, ok := t.backend.(search.Outliner)
	if !ok {
		return "", fmt.Errorf("finding a document by its path: %w", errkind.Unsupported)
	}
	found, err := outliner.Locate(ctx, a.Path, t.labels)
	if err != nil {
		return "", err
	}
	// In hits, invisible characters of a path are encoded, and some clients compose or
	// decompose accents.
	for _, other := range []func(string) string{unescaped, norm.NFC.String, norm.NFD.String} {
		if path := other(a.Path); len(found) == 0 && path != a.Path {
			if found, err = outliner.Locate(ctx, path, t.labels); err != nil {
				return "", err
			}
		}
	}
	if len(found) == 0 {
		// Where hits name their source, a path may begin with it.
		if source, rest, ok := strings.Cut(a.Path, "/"); ok {
			if found, err = outliner.Locate(ctx, rest, t.labels); err != nil {
				return "", err
			}
			found = slices.DeleteFunc(found, func(p search.Place) bool { return p.Label != source })
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: no document has the path %s; use the path of a hit as it is", errkind.NotFound,
			spell.Quote(a.Path))
	case 1:
		return found[0].ID, nil
	}
	ids := make([]string, len(found))
	for i, p := range found {
		ids[i] = p.ID + " in " + p.Label
	}
	return "", &errkind.Argument{Name: "path", Value: a.Path,
		Want: "a path of one document; use docId: " + strings.Join(ids, ", ")}
}

// getDocument is the get_document tool of a Fess server.
func (t *Tools) getDocument(ctx context.Context, in documentArgs) (any, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	return t.do(ctx, work{
		key: []string{"get_document", id},
		run: func(ctx context.Context, _ job.Report) (any, error) { return t.document(ctx, id) },
	})
}

// getFolderDocument is the get_document tool of folders.
func (t *Tools) getFolderDocument(ctx context.Context, in DocumentArgs) (any, error) {
	return t.call(ctx, func(ctx context.Context) (any, error) {
		id, err := t.locate(ctx, in)
		if err != nil {
			return nil, err
		}
		d, err := t.document(ctx, id)
		if err != nil {
			return nil, err
		}
		list, err := t.sections(ctx, id)
		d.list(list)
		return d, err
	})
}

type contentArgs struct {
	documentArgs
	Cursor string `json:"cursor,omitempty" jsonschema:"nextCursor of the previous chunk"`
}

// readContent is the read_content tool of a Fess server.
func (t *Tools) readContent(ctx context.Context, in contentArgs) (any, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	from, err := t.textPlace(id, in.Cursor)
	if err != nil {
		return nil, err
	}
	return t.do(ctx, work{
		key: []string{"read_content", id, in.Cursor},
		run: func(ctx context.Context, report job.Report) (any, error) {
			return t.readPart(ctx, part{id: id, from: from}, report)
		},
		current: func(ctx context.Context, shared any) (bool, error) { return t.isCurrent(ctx, shared.(*Piece)) },
	})
}

// ReadArgs are the arguments of the read_content tool of folders. At most one of
// From, Section and Cursor may be set.
type ReadArgs struct {
	DocumentArgs
	From     *int64 `json:"from,omitempty" jsonschema:"Offset, as in a passage" limits:"minimum=0"`
	Section  string `json:"section,omitempty" jsonschema:"Heading of a section"`
	MaxChars int    `json:"maxChars,omitempty" limits:"minimum=1 maximum=200000 default=16000"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"nextCursor"`
}

// ReadChars is the default of ReadArgs.MaxChars.
const ReadChars = 16_000

// readFolderContent is the read_content tool of folders.
func (t *Tools) readFolderContent(ctx context.Context, in ReadArgs) (any, error) {
	n := 0
	for _, given := range []bool{in.From != nil, in.Section != "", in.Cursor != ""} {
		if given {
			n++
		}
	}
	if n > 1 {
		return nil, &errkind.Argument{Name: "from", Want: "at most one of from, section and cursor"}
	}
	run := func(ctx context.Context, report job.Report) (any, error) { return t.read(ctx, in, report) }
	return t.do(ctx, work{run: run})
}

// Read reads a chunk of a document of a folder, as the read_content tool does.
// With MaxChars 0, only the size of chunks limits it.
func (t *Tools) Read(ctx context.Context, in ReadArgs) (*Piece, error) {
	p, err := t.read(ctx, in, noReport)
	return p, t.explained(err)
}

func (t *Tools) read(ctx context.Context, in ReadArgs, report job.Report) (*Piece, error) {
	id, err := t.locate(ctx, in.DocumentArgs)
	if err != nil {
		return nil, err
	}
	wanted := part{id: id, chars: in.MaxChars}
	if wanted.from, err = t.textPlace(id, in.Cursor); err != nil {
		return nil, err
	}
	list, err := t.sections(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case in.From != nil:
		wanted.from.offset = *in.From
	case in.Section != "":
		if wanted.from.offset, wanted.end, err = findSection(list, in.Section); err != nil {
			return nil, err
		}
	}
	p, err := t.readPart(ctx, wanted, report)
	if err != nil {
		return nil, err
	}
	p.Position = &Position{Offset: p.offset, Heading: digest(passage.HeadingAt(list, p.offset), headingRunes)}
	return p, nil
}

// A Piece is one chunk of a document's text. It is the result of the
// read_content tool.
type Piece struct {
	DocID      string `json:"doc_id"`
	URL        string `json:"url"`
	Hash       string `json:"hash"` // of the whole text
	*Position         // nil for a Fess server
	Text       string `json:"text"`
	NextCursor string `json:"nextCursor,omitempty"` // "" for the last one
	IsLast     bool   `json:"isLast"`

	// End is where the section that was asked for ends, in bytes of the whole text;
	// 0 means the end of the text.
	End int64 `json:"-"`

	offset int64
	stamp  string // of the document when it was read; "" if the service has the text
}

// A Position is where a piece begins.
type Position struct {
	Offset  int64  `json:"offset"`            // in bytes of the whole text
	Heading string `json:"heading,omitempty"` // path of the headings above
}

// A part is a part of a document's text.
type part struct {
	id    string
	from  place
	end   int64 // before which the part ends, in bytes; 0 means the end of the text
	chars int   // maximum number of characters; 0 means any
}

// isCurrent reports whether the document of a piece that was read before still
// belongs to the domain and has not changed since.
func (t *Tools) isCurrent(ctx context.Context, p *Piece) (bool, error) {
	h, err := t.find(ctx, p.DocID)
	if err != nil {
		return false, err
	}
	return h.TextHash == p.Hash || h.TextHash == "" && p.stamp == content.Stamp(h), nil
}

// textPlace returns the place of a cursor in a document's text. The cursor ""
// is the beginning of the text, which has no mark.
func (t *Tools) textPlace(id, at string) (place, error) {
	if at == "" {
		return place{}, nil
	}
	return parseCursor(at, textCursor, t.cursorScope(id))
}

// cursorScope returns the scope of the cursors of the caller, for a text or a list with
// a name.
func (t *Tools) cursorScope(name string) string {
	scope := t.domain.ID + "/" + name
	if t.owner != "" {
		scope += "\x00" + t.owner
	}
	return scope
}

// readPart returns the first chunk of a part of a document's text. Chunks are at
// most maxChunkBytes long and follow one another without a gap. Places count the
// bytes of the text before invisible characters are removed from it.
func (t *Tools) readPart(ctx context.Context, wanted part, report job.Report) (*Piece, error) {
	id, from := wanted.id, wanted.from
	w, stamp, err := t.window(ctx, id, from, report)
	if err != nil {
		return nil, err
	}
	if from.mark != nil && !from.isIn(w.Hash) {
		t.changes.Add(1)
		return nil, fmt.Errorf("%w: document %q changed since the first chunk; read it again without a cursor",
			errkind.Conflict, id)
	}
	if from.mark == nil && from.offset > w.Size {
		return nil, &errkind.Argument{Name: "from", Value: from.offset,
			Want: fmt.Sprintf("an offset in the text, which has %d bytes", w.Size)}
	}
	toEnd := w.Offset+int64(len(w.Window)) >= w.Size // w.Offset is above from.offset if that is inside of a character
	if w.Window == "" && !toEnd {
		return nil, fmt.Errorf("reading document %s: no text at byte %d of %d", id, from.offset, w.Size)
	}
	n := wanted.cut(w, t.maxChunkBytes, toEnd)
	if n > 1 && (n < len(w.Window) || !toEnd) && w.Window[n-1] == '\r' {
		n-- // not between the two characters of a line end
	}
	next := w.Offset + int64(n)
	p := &Piece{
		DocID:  id,
		URL:    link(w.URL),
		Hash:   w.Hash,
		Text:   textOf(w.Window[:n]),
		IsLast: next >= w.Size,
		End:    wanted.end,
		offset: w.Offset,
		stamp:  stamp,
	}
	if !p.IsLast {
		p.NextCursor = cursor{kind: textCursor, scope: t.cursorScope(id), mark: w.Hash, offset: next}.String()
	}
	return p, nil
}

// cut returns how many bytes of a window the first chunk of the part has, at
// most limit. toEnd reports whether the window extends to the end of the text.
func (p part) cut(t *search.Text, limit int, toEnd bool) int {
	window := t.Window
	if p.end > 0 && p.end <= t.Offset+int64(len(window)) {
		window, toEnd = window[:max(p.end-t.Offset, 0)], true
	}
	if p.chars > 0 {
		limit = min(limit, prefixLen(window, p.chars))
	}
	if limit < utf8.UTFMax { // chunk.Cut returns at least one character of any size
		return limit
	}
	return chunk.Cut(window, limit, toEnd)
}

// prefixLen returns the length of the first n characters of s in bytes.
func prefixLen(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// window returns the text from a place on, as much as a chunk may need: from
// the cached texts if the cursor refers to one that is current, otherwise from the
// service, otherwise from a stored copy or the document's URL. In each case it first
// checks that the document belongs to the domain. The second result is the
// document's stamp; it is "" if the service has the text.
func (t *Tools) window(ctx context.Context, id string, from place, report job.Report) (*search.Text, string, error) {
	if cached := t.content.Cached(id); cached != nil && from.mark != nil && from.isIn(cached.Hash) {
		h, err := t.find(ctx, id)
		if err != nil {
			return nil, "", err
		}
		if text := t.content.Current(h); text != nil && from.isIn(text.Hash) {
			return t.windowOf(text, h, from), content.Stamp(h), nil
		}
	}
	found, err := t.backend.ReadText(ctx, id, t.labels, from.offset, t.maxChunkBytes)
	if err == nil {
		return found, "", nil
	}
	if _, remote := errors.AsType[*errkind.Remote](err); remote || t.content == nil ||
		!errors.Is(err, errkind.Unsupported) {
		return nil, "", t.unknown(id, err)
	}
	h, err := t.find(ctx, id)
	if err != nil {
		return nil, "", err
	}
	text, err := t.content.Read(ctx, h, report)
	if err != nil {
		return nil, "", err
	}
	report(content.ProgressRead, content.ProgressTotal, phaseChunking)
	return t.windowOf(text, h, from), content.Stamp(h), nil
}

// windowOf returns the text of a document that the service does not have, from a place
// on.
func (t *Tools) windowOf(text *content.Text, h *search.Hit, from place) *search.Text {
	w := search.WindowOf(text.Body, from.offset, t.maxChunkBytes)
	w.URL, w.Hash = h.URL, text.Hash
	return w
}

// find looks up a document of the domain.
func (t *Tools) find(ctx context.Context, id string) (*search.Hit, error) {
	h, err := t.backend.Find(ctx, id, t.labels)
	if err != nil {
		return nil, t.unknown(id, err)
	}
	return h, nil
}

// unknown adds advice to an error of kind NotFound about a document. It returns
// other errors unchanged, including those of a server that lacks the whole API.
func (t *Tools) unknown(id string, err error) error {
	var remote *errkind.Remote
	if !errors.Is(err, errkind.NotFound) || errors.As(err, &remote) {
		return err
	}
	return fmt.Errorf("%w: document %q in domain %s; search again, because %s", errkind.NotFound, id, t.domain.ID,
		t.choose("ids may change when documents are crawled again", "the file may have been moved or deleted"))
}

// sections returns the sections of a document.
func (t *Tools) sections(ctx context.Context, id string) ([]document.Section, error) {
	outliner, ok := t.backend.(search.Outliner)
	if !ok {
		return nil, nil
	}
	list, err := outliner.Sections(ctx, id, t.labels)
	return list, t.unknown(id, err)
}
