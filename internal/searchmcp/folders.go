package searchmcp

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/search"
	"knowhow/internal/spell"
)

// addFolderReading adds the tools that read documents of folders, which have
// paths and sections.
func (b *bridge) addFolderReading(s *mcpserver.Server, document, content mcpserver.Tool) {
	content.Meta = nil // results are short by default
	document.Description = "Get the dates, hash and sections (headings with offsets) of a document." + b.about()
	content.Description = "Read a document: all of it, from the offset of a passage, or a section. While isLast is false, call again with nextCursor as cursor." + b.about()
	mcpserver.AddTool(s, document, b.getFolderDocument)
	mcpserver.AddTool(s, content, b.readFolderContent)
}

// folderArgs identify a document of a folder.
type folderArgs struct {
	DocID string `json:"docId,omitempty" jsonschema:"doc_id of a hit"`
	Path  string `json:"path,omitempty" jsonschema:"path of a hit"`
}

// id returns the ID of the document that the arguments name.
func (b *bridge) folderID(ctx context.Context, a folderArgs) (string, error) {
	switch {
	case a.DocID != "" && a.Path != "":
		return "", &errkind.Argument{Name: "path", Value: a.Path, Want: "only one of docId and path"}
	case a.DocID == "" && a.Path == "":
		return "", &errkind.Argument{Name: "docId", Want: "the doc_id or the path of a search hit, in docId or path"}
	case a.Path == "":
		return documentArgs{DocID: pointerTo(a.DocID)}.id()
	}
	outliner, ok := b.backend.(search.Outliner)
	if !ok {
		return "", fmt.Errorf("finding a document by its path: %w", errkind.Unsupported)
	}
	found, err := outliner.Locate(ctx, a.Path, b.labels)
	if err != nil {
		return "", err
	}
	if plain, err := url.PathUnescape(a.Path); len(found) == 0 && err == nil && plain != a.Path {
		// In hits, invisible characters of a path are encoded.
		if found, err = outliner.Locate(ctx, plain, b.labels); err != nil {
			return "", err
		}
	}
	if len(found) == 0 {
		// Where hits name their source, a path may begin with it.
		if source, rest, ok := strings.Cut(a.Path, "/"); ok {
			if found, err = outliner.Locate(ctx, rest, b.labels); err != nil {
				return "", err
			}
			found = slices.DeleteFunc(found, func(p search.Place) bool { return p.Label != source })
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: no document has the path %s; use the path of a hit as it is", errkind.NotFound, spell.Quote(a.Path))
	case 1:
		return found[0].ID, nil
	}
	ids := make([]string, len(found))
	for i, p := range found {
		ids[i] = p.ID + " in " + p.Label
	}
	return "", &errkind.Argument{Name: "path", Value: a.Path, Want: "a path of one document; use docId: " + strings.Join(ids, ", ")}
}

func pointerTo(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

// sections returns the sections of a document.
func (b *bridge) sections(ctx context.Context, id string) ([]document.Section, error) {
	outliner, ok := b.backend.(search.Outliner)
	if !ok {
		return nil, nil
	}
	list, err := outliner.Sections(ctx, id, b.labels)
	return list, b.unknown(id, err)
}

// A folderSummary is a document of a folder with its sections.
type folderSummary struct {
	summary
	Sections []section `json:"sections"`
	More     int       `json:"moreSections,omitempty"` // that are not listed
}

type section struct {
	Heading string `json:"heading"`
	Offset  int64  `json:"offset"`
}

// listedSections is how many sections get_document lists.
const listedSections = 500

func (b *bridge) getFolderDocument(ctx context.Context, in folderArgs) (any, error) {
	return b.do(ctx, work{run: func(ctx context.Context, _ job.Report) (any, error) {
		id, err := b.folderID(ctx, in)
		if err != nil {
			return nil, err
		}
		h, err := b.find(ctx, id)
		if err != nil {
			return nil, err
		}
		list, err := b.sections(ctx, id)
		if err != nil {
			return nil, err
		}
		s := folderSummary{summary: b.summary(h), Sections: []section{}}
		for _, sec := range list {
			if sec.Continues {
				continue
			}
			if len(s.Sections) == listedSections {
				s.More++
				continue
			}
			s.Sections = append(s.Sections, section{digest(sec.Heading, headingRunes), int64(sec.Offset)})
		}
		return s, nil
	}})
}

type folderContentArgs struct {
	folderArgs
	From     *int64 `json:"from,omitempty" jsonschema:"Offset, as in a passage" limits:"minimum=0"`
	Section  string `json:"section,omitempty" jsonschema:"Heading of a section"`
	MaxChars int    `json:"maxChars,omitempty" limits:"minimum=1 maximum=200000 default=16000"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"nextCursor"`
}

func (b *bridge) readFolderContent(ctx context.Context, in folderContentArgs) (any, error) {
	n := 0
	for _, given := range []bool{in.From != nil, in.Section != "", in.Cursor != ""} {
		if given {
			n++
		}
	}
	if n > 1 {
		return nil, &errkind.Argument{Name: "from", Want: "at most one of from, section and cursor"}
	}
	return b.do(ctx, work{run: func(ctx context.Context, report job.Report) (any, error) {
		id, err := b.folderID(ctx, in.folderArgs)
		if err != nil {
			return nil, err
		}
		wanted := part{id: id, chars: in.MaxChars}
		if wanted.from, err = b.textPlace(id, in.Cursor); err != nil {
			return nil, err
		}
		list, err := b.sections(ctx, id)
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
		p, err := b.readPart(ctx, wanted, report)
		if err != nil {
			return nil, err
		}
		p.position = &position{Offset: p.offset}
		for _, s := range list {
			if int64(s.Offset) > p.offset {
				break
			}
			p.Heading = digest(s.Heading, headingRunes)
		}
		return p, nil
	}})
}

// findSection returns where a section begins and where it ends, sections below
// it included; an end of 0 means the end of the text. The name is the path of
// the headings or the last of them, in any case.
func findSection(list []document.Section, name string) (from, end int64, err error) {
	i := -1
	for _, same := range []func(heading string) bool{
		func(h string) bool { return plain(h) == plain(name) },
		func(h string) bool { return plain(lastHeading(h)) == plain(name) },
		func(h string) bool { return strings.HasSuffix(plain(h), plain(headingSeparator+name)) },
	} {
		if i = slices.IndexFunc(list, func(s document.Section) bool { return same(s.Heading) }); i >= 0 {
			break
		}
	}
	if i < 0 {
		return 0, 0, &errkind.Argument{Name: "section", Value: name, Want: wantSection(list, name)}
	}
	return int64(list[i].Offset), sectionEnd(list, i), nil
}

// sectionEnd returns where the i-th section ends, the sections below it included;
// 0 means the end of the text.
func sectionEnd(list []document.Section, i int) int64 {
	for j := i + 1; j < len(list); j++ {
		if !below(list[j], list[i]) && (list[j].Heading != list[i].Heading || !list[j].Continues) {
			return int64(list[j].Offset)
		}
	}
	return 0
}

// below reports whether section s is inside section t.
func below(s, t document.Section) bool {
	return strings.HasPrefix(s.Heading, t.Heading+headingSeparator)
}

// SectionEnd returns where the section that begins at an offset of a text ends,
// the sections below it included; 0 means the end of the text. It returns 0 if no
// section begins there.
func SectionEnd(list []document.Section, offset int64) int64 {
	i := slices.IndexFunc(list, func(s document.Section) bool { return int64(s.Offset) == offset })
	if i < 0 {
		return 0
	}
	return sectionEnd(list, i)
}

// headingSeparator stands between the headings of a path.
const headingSeparator = " > "

// lastHeading returns the last heading of a path.
func lastHeading(path string) string {
	if i := strings.LastIndex(path, headingSeparator); i >= 0 {
		return path[i+len(headingSeparator):]
	}
	return path
}

// plain returns a heading in the form in which headings are compared.
func plain(heading string) string { return strings.ToLower(strings.Join(strings.Fields(heading), " ")) }

// wantSection returns what to request instead of a section that does not exist.
func wantSection(list []document.Section, name string) string {
	if len(list) == 0 {
		return "no section: this document has no headings; use from"
	}
	var known []string
	for _, s := range list {
		known = append(known, lastHeading(s.Heading))
	}
	near := spell.Near(name, known, 3)
	if len(near) == 0 {
		near = known[:min(len(known), 5)]
	}
	for i, h := range near {
		near[i] = strconv.Quote(digest(h, headingRunes))
	}
	return "a heading of the document, such as " + strings.Join(near, ", ")
}
