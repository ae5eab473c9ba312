package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/scope"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/spell"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const readHelp = `Usage: {cmd} [FLAGS] DOC_ID|PATH

Prints the text of a document that serve has indexed, without a server. PATH is the
path of a hit, the path of the file itself, or the name of a file if only one
document has it. In a folder that belongs to a source, names and paths of hits are
those of that source, unless --all is given.

The exit status is 1 if there is no such document.

{flags}

Examples:
  {cmd} guides/install.md
  {cmd} install.md
  {cmd} guides/install.md --section "From source"
  {cmd} ~/handbook/guides/install.md --max-chars 2000
  {cmd} --json fc194oz157dm25eh | jq -r .text
`

// A readCommand prints the text of a document.
type readCommand struct {
	folderFlags
	Section  string `flag:"section" value:"HEADING" help:"only the section with this heading, or path of headings such as \"Install > From source\""`
	From     int    `flag:"from" value:"OFFSET" range:"0-9223372036854775807" help:"begin at this offset in bytes, such as that of a passage"`
	Chars    int    `flag:"max-chars" value:"N" range:"1-200000" help:"maximum number of characters; by default all, with --json 16000"`
	Cursor   string `flag:"cursor" value:"CURSOR" help:"with --json: continue at the nextCursor of the previous result"`
	JSON     bool   `flag:"json" help:"print the JSON of the read_content tool"`
	Document string `arg:"DOC_ID or PATH"`
}

// maxReadChars is the maximum number of characters of one call of the tool.
const maxReadChars = 200_000

func (o *readCommand) run(ctx context.Context, v *invocation) error {
	n := 0
	for _, name := range []string{"section", "from", "cursor"} {
		if v.given(name) {
			n++
		}
	}
	switch {
	case n > 1:
		return v.usagef("--section, --from and --cursor exclude each other")
	case o.Cursor != "" && !o.JSON:
		return v.usagef("--cursor requires --json")
	}
	return v.withFolders(ctx, &o.folderFlags, nil, func(d *folders) error { return v.runRead(ctx, d, o) })
}

// runRead prints the text of a document.
func (v *invocation) runRead(ctx context.Context, d *folders, o *readCommand) error {
	in := searchmcp.ReadArgs{Section: o.Section, Cursor: o.Cursor, MaxChars: cmp.Or(o.Chars, maxReadChars)}
	if o.JSON {
		in.MaxChars = cmp.Or(o.Chars, searchmcp.ReadChars)
	}
	if v.given("from") {
		in.From = new(int64(o.From))
	}
	piece, err := d.readFirst(ctx, v.expand(o.Document), in)
	if err != nil {
		return err
	}
	screen := terminal.NewScreen(v.stdout, v.Lookup)
	if o.JSON {
		return showJSON(screen, piece)
	}
	text, err := d.readRest(ctx, piece, o.Chars == 0)
	if err != nil {
		return err
	}
	text = sanitize.Lines(text)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if screen.Terminal() {
		text = screen.Wrap(text, "")
	}
	return screen.Show(text)
}

// readFirst calls the tool for a document that is named by the path of a hit, the
// path of its file, its ID or its file name. The path of a file and an ID name
// documents of all sources, unless labels were chosen.
func (d *folders) readFirst(ctx context.Context, operand string, in searchmcp.ReadArgs) (*searchmcp.Piece, error) {
	read := func(d *folders, document searchmcp.DocumentArgs) (*searchmcp.Piece, error) {
		in.DocumentArgs = document
		result, err := d.tools.Read(ctx, in)
		// The document decides what is allowed, so this is a failure, not wrong usage.
		if usage, ok := errors.AsType[usageError](d.inArguments(err)); ok {
			err = errors.New(string(usage))
		}
		return result, err
	}
	if len(d.sources) > 1 && filepath.Base(operand) == operand {
		// Paths of hits begin with the source, so this is a file or a name.
		if id, err := d.locate(ctx, operand); err == nil && id != "" {
			return read(d, searchmcp.DocumentArgs{DocID: id})
		}
		if found, err := d.named(ctx, operand); err == nil && len(found) > 1 {
			return nil, d.severalNamed(operand, found)
		}
	}
	path := searchmcp.DocumentArgs{Path: filepath.ToSlash(operand)}
	result, err := read(d, path)
	if !errors.Is(err, errkind.NotFound) {
		return result, err
	}
	wide := d
	if d.here {
		wide = d.of(d.known)
		label, _, _ := strings.Cut(operand, "/")
		if slices.ContainsFunc(d.known, func(s document.Source) bool { return s.Label == label }) {
			if result, err := read(wide, path); !errors.Is(err, errkind.NotFound) {
				return result, err
			}
		}
	}
	if id, err := wide.locate(ctx, operand); err != nil || id != "" {
		if err != nil {
			return nil, err
		}
		return read(wide, searchmcp.DocumentArgs{DocID: id})
	}
	if result, err := read(wide, searchmcp.DocumentArgs{DocID: operand}); err == nil ||
		!errors.Is(err, errkind.NotFound) && !errors.Is(err, errkind.Invalid) {
		return result, err
	}
	switch found, err := d.named(ctx, operand); {
	case err != nil:
		return nil, err
	case len(found) == 1:
		return read(d, searchmcp.DocumentArgs{DocID: found[0].ID})
	case len(found) > 1:
		return nil, d.severalNamed(operand, found)
	}
	return nil, d.notFound(ctx, wide, operand)
}

// maxNamed is how many documents with a name are listed.
const maxNamed = 20

// named returns up to maxNamed+1 documents whose path is, or ends with, a file
// name or a path.
func (d *folders) named(ctx context.Context, name string) ([]search.Hit, error) {
	name = norm.NFC.String(filepath.ToSlash(filepath.Clean(name)))
	// macOS writes names with separate accents, keyboards and agents with composed
	// letters.
	base := path.Base(name)
	text, err := query.Parse("filename:" + query.Quote(base) + " OR filename:" + query.Quote(norm.NFD.String(base)))
	if err != nil {
		return nil, nil // no file has such a name
	}
	var found []search.Hit
	for start := 0; start < search.Window && len(found) <= maxNamed; start += search.MaxNum { // many notes have one file name
		page, err := d.backend.Search(ctx, search.Query{Text: text, Start: start, Num: search.MaxNum,
			Sort: []search.SortKey{{Field: "filename"}}})
		if err != nil {
			return nil, err
		}
		for _, h := range page.Hits {
			if strings.HasSuffix("/"+norm.NFC.String(h.Path), "/"+name) {
				found = append(found, h)
			}
		}
		if len(page.Hits) < search.MaxNum {
			break
		}
	}
	slices.SortFunc(found, func(a, b search.Hit) int {
		return cmp.Or(slices.Compare(a.Labels, b.Labels), strings.Compare(a.Path, b.Path))
	})
	return found[:min(len(found), maxNamed+1)], nil
}

// inside returns the first document in the mailbox or the archive with a file name or a
// path, or nil if there is none.
func (d *folders) inside(ctx context.Context, name string) *search.Hit {
	name = norm.NFC.String(filepath.ToSlash(filepath.Clean(name)))
	// The URL of such a document is that of the file with a fragment.
	pattern := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '%' {
			return r
		}
		return '?'
	}, (&url.URL{Path: path.Base(name)}).EscapedPath())
	text, err := query.Parse("url:*" + pattern + "#*")
	if err != nil {
		return nil
	}
	page, err := d.backend.Search(ctx, search.Query{Text: text, Num: search.MaxNum,
		Sort: []search.SortKey{{Field: "filename"}}})
	if err != nil {
		return nil
	}
	for _, h := range page.Hits {
		if strings.Contains("/"+norm.NFC.String(h.Path), "/"+name+"/") {
			return &h
		}
	}
	return nil
}

// severalNamed returns the error for a name that several documents have.
func (d *folders) severalNamed(name string, found []search.Hit) error {
	count := strconv.Itoa(len(found))
	if len(found) > maxNamed {
		count, found = fmt.Sprintf("more than %d", maxNamed), found[:maxNamed]
	}
	var paths strings.Builder
	for _, h := range found {
		paths.WriteString("\n  ")
		if len(d.sources) > 1 && len(h.Labels) > 0 {
			paths.WriteString(h.Labels[0] + "/")
		}
		paths.WriteString(sanitize.Escape(h.Path))
	}
	return &hintError{fmt.Errorf("%s documents have the name %s", count, spell.Quote(name)),
		"Name one of them by its path:" + paths.String()}
}

// notFound returns the error for a document that does not exist. wide has the
// sources in which files were looked up by their paths.
func (d *folders) notFound(ctx context.Context, wide *folders, name string) error {
	err := fmt.Errorf("no document has the path, name or ID %s", spell.Quote(name))
	if why, lerr := wide.whyLeftOut(ctx, name); lerr != nil || why != nil {
		return cmp.Or(lerr, why)
	}
	if h := wide.inside(ctx, name); h != nil {
		path := h.Path
		if len(wide.sources) > 1 && len(h.Labels) > 0 {
			path = h.Labels[0] + "/" + path
		}
		return &hintError{fmt.Errorf("%s contains several documents", spell.Quote(name)),
			"Name one of them by its path, such as: " + sanitize.Escape(path)}
	}
	if d.here {
		if found, err := wide.named(ctx, name); err == nil && len(found) > 0 {
			h := found[0]
			return &hintError{fmt.Errorf("the source of this folder, %s, has no document %s", d.sources[0].Label,
				spell.Quote(name)),
				fmt.Sprintf("The source %s has one: %s. To read documents of all sources, add --all.", h.Labels[0],
					sanitize.Escape(h.Path))}
		}
	}
	hint := fmt.Sprintf("Find it with %q, or check with %q what is left out.", d.advised("search"),
		d.advised("status", "--left-out"))
	if path, aerr := filepath.Abs(name); aerr == nil && fileExists(path) {
		indexed := slices.ContainsFunc(wide.sources, func(src document.Source) bool { return pathIn(src, path) != "" })
		switch folder := isFolder(path); {
		case folder && indexed:
			hint = "It is a folder. Name a document in it."
		case folder:
			hint = "It is a folder. Index it with: " + d.advised("serve", commandWord(sanitize.Escape(name)))
		case indexed:
			hint = fmt.Sprintf("The file is not indexed yet. Index it with: %s. Follow the progress with: %s",
				d.advised("serve"), d.advised("status"))
		default:
			hint = "The file belongs to no source. Index its folder with: " + d.advised("serve", "FOLDER")
		}
	}
	return &hintError{err, hint}
}

// whyLeftOut returns the error for a file that is left out, or nil if no such file
// is.
func (d *folders) whyLeftOut(ctx context.Context, name string) (why, err error) {
	if d.folder.Index == nil {
		return nil, nil
	}
	wanted := filepath.ToSlash(filepath.Clean(name))
	file, err := filepath.Abs(name)
	if err != nil {
		return nil, nil // there is no working directory
	}
	for _, src := range d.sources {
		left, err := d.folder.Index.LeftOut(ctx, src.Label)
		if err != nil {
			return nil, err
		}
		inSource, rel := strings.TrimPrefix(wanted, src.Label+"/"), pathIn(src, file)
		for _, p := range left.Paths {
			folder := strings.HasSuffix(p.Path, "/")
			if p.Path != inSource && p.Path != rel && !strings.HasSuffix(p.Path, "/"+wanted) &&
				!(folder && (strings.HasPrefix(inSource+"/", p.Path) || strings.HasPrefix(rel+"/", p.Path))) {
				continue
			}
			hint := "List all that is left out with: " + d.advised("status", "--left-out")
			if p.Message != "" {
				hint = printableLines(p.Message)
			}
			return &hintError{fmt.Errorf("%s in the source %s is left out (%s)", spell.Quote(p.Path), src.Label,
				p.Reason), hint}, nil
		}
	}
	return nil, nil
}

// pathIn returns the path in a source of the file at an absolute path, or "" if the
// file is not in the source.
func pathIn(src document.Source, path string) string {
	rel, err := filepath.Rel(realPath(src.Path), realPath(path))
	switch {
	case err != nil || !filepath.IsLocal(rel):
		return ""
	case rel == ".": // the source is a file
		rel = filepath.Base(path)
	}
	return filepath.ToSlash(rel)
}

// locate returns the ID of the document of the file at a path, or "" if the file
// is in none of the sources, or not indexed.
func (d *folders) locate(ctx context.Context, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("reading a document: %w", err)
	}
	for _, src := range d.sources {
		rel := pathIn(src, path)
		if rel == "" {
			continue
		}
		found, err := scope.New(d.backend, src.Label).Locate(ctx, rel, nil)
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return found[0].ID, nil
		}
	}
	return "", nil
}

// realPath returns an absolute path without links. What follows the last file
// that exists, such as a path in an archive, is unchanged.
func realPath(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// readRest returns the text of the first piece and, if all is true, of what follows
// it in the section or the document.
func (d *folders) readRest(ctx context.Context, p *searchmcp.Piece, all bool) (string, error) {
	var text strings.Builder
	text.WriteString(p.Text)
	end := p.End
	for all && p.NextCursor != "" && (end == 0 || p.Offset+int64(len(p.Text)) < end) {
		in := searchmcp.ReadArgs{DocumentArgs: searchmcp.DocumentArgs{DocID: p.DocID}, Cursor: p.NextCursor,
			MaxChars: maxReadChars}
		var err error
		if p, err = d.tools.Read(ctx, in); err != nil {
			return "", err
		}
		more := p.Text
		if end > 0 && end < p.Offset+int64(len(more)) {
			more = more[:max(0, end-p.Offset)]
		}
		text.WriteString(more)
	}
	return text.String(), nil
}
