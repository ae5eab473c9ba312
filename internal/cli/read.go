package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/fessmcp"
	"knowhow/internal/sanitize"
	"knowhow/internal/search/scope"
	"knowhow/internal/terminal"
)

const readHelp = `Usage: {cmd} [FLAGS] DOC_ID|PATH

Prints the text of a document that serve has indexed, without a server. PATH is the
path of a hit, or the path of the file itself.

The exit status is 1 if there is no such document.

{flags}

Examples:
  {cmd} guides/install.md
  {cmd} guides/install.md --section "From source"
  {cmd} ~/handbook/guides/install.md --max-chars 2000
  {cmd} --json 82207913e2ec8ee0600239a70ed6370a | jq -r .text
`

// readOptions are the flags and operands of read.
type readOptions struct {
	data            string
	store           storeFlags
	labels          []string
	document        string
	section, cursor string
	from            *int
	chars           int // 0 means all
	json            bool
}

// maxReadChars is the maximum number of characters of one call of the tool.
const maxReadChars = 200_000

// readCommand prints the text of a document.
func readCommand(v *invocation, f *flagSet) func(context.Context) error {
	o := &readOptions{}
	var from int
	dataFlag(f, &o.data)
	o.store.define(f)
	labelFlag(f, &o.labels)
	f.String(&o.section, flag{Name: "section", Value: "HEADING", Help: `only the section with this heading, or path of headings such as "Install > From source"`})
	f.Int(&from, flag{Name: "from", Value: "OFFSET", Help: "begin at this offset in bytes, such as that of a passage"}, 0, math.MaxInt)
	f.Int(&o.chars, flag{Name: "max-chars", Value: "N", Help: "maximum number of characters; by default all, with --json 16000"}, 1, maxReadChars)
	f.String(&o.cursor, flag{Name: "cursor", Value: "CURSOR", Help: "with --json: continue at the nextCursor of the previous result"})
	f.Bool(&o.json, flag{Name: "json", Help: "print the JSON of the read_content tool"})
	f.Operand(&o.document, "DOC_ID or PATH")
	return func(ctx context.Context) error {
		n := 0
		for _, name := range []string{"section", "from", "cursor"} {
			if f.given(name) {
				n++
			}
		}
		switch {
		case n > 1:
			return v.usagef("--section, --from and --cursor exclude each other")
		case o.cursor != "" && !o.json:
			return v.usagef("--cursor requires --json")
		}
		if f.given("from") {
			o.from = &from
		}
		return v.withFolders(ctx, o.data, &o.store, serveModel{}, o.labels, func(d *folders) error { return v.runRead(ctx, d, o) })
	}
}

// A readPart is the result of the read_content tool.
type readPart struct {
	DocID      string `json:"doc_id"`
	Offset     int64  `json:"offset"`
	Text       string `json:"text"`
	NextCursor string `json:"nextCursor"`
}

// runRead prints the text of a document.
func (v *invocation) runRead(ctx context.Context, d *folders, o *readOptions) error {
	arguments := map[string]any{}
	if o.section != "" {
		arguments["section"] = o.section
	}
	if o.from != nil {
		arguments["from"] = *o.from
	}
	if o.cursor != "" {
		arguments["cursor"] = o.cursor
	}
	if o.chars > 0 || !o.json {
		arguments["maxChars"] = cmp.Or(o.chars, maxReadChars)
	}
	result, err := v.readFirst(ctx, d, o.document, arguments)
	if err != nil {
		return err
	}
	screen := terminal.NewScreen(v.stdout, v.Lookup)
	if o.json {
		return screen.Show(string(sanitize.ShowJSON(result)) + "\n")
	}
	text, err := d.readRest(ctx, result, o)
	if err != nil {
		return err
	}
	text = sanitize.Lines(text)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return screen.Show(text)
}

// readFirst calls the tool for the document that the operand names: by its path
// in a source, by its ID, or by the path of its file.
func (v *invocation) readFirst(ctx context.Context, d *folders, document string, arguments map[string]any) (json.RawMessage, error) {
	read := func(name, value string) (json.RawMessage, error) {
		delete(arguments, "path")
		arguments[name] = value
		result, err := d.call(ctx, "read_content", arguments)
		// The document decides what is allowed, so this is a failure, not wrong usage.
		if usage, ok := errors.AsType[*usageError](v.inArguments(err)); ok {
			err = errors.New(usage.message)
		}
		return result, err
	}
	result, err := read("path", filepath.ToSlash(document))
	if !errors.Is(err, errkind.NotFound) {
		return result, err
	}
	if id, err := d.locate(ctx, document); err != nil || id != "" {
		if err != nil {
			return nil, err
		}
		return read("docId", id)
	}
	if result, err := read("docId", document); err == nil || !errors.Is(err, errkind.NotFound) && !errors.Is(err, errkind.Invalid) {
		return result, err
	}
	return nil, &hintError{fmt.Errorf("no document has the path or ID %q", document),
		fmt.Sprintf("Find it with %q, or check with %q what is left out.", v.Program+" search", v.Program+" status --left-out")}
}

// locate returns the ID of the document of the file at a path, or "" if the file
// is in none of the sources, or not indexed.
func (d *folders) locate(ctx context.Context, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("reading a document: %w", err)
	}
	path = realPath(path)
	for _, src := range d.sources {
		rel, err := filepath.Rel(src.Path, path)
		switch {
		case err != nil || !filepath.IsLocal(rel):
			continue
		case rel == ".": // the source is a file
			rel = filepath.Base(path)
		}
		found, err := scope.New(d.backend, src.Label).Locate(ctx, filepath.ToSlash(rel), nil)
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

// readRest returns the text of the first result and, unless the number of
// characters is limited, of what follows it in the section or the document.
func (d *folders) readRest(ctx context.Context, first json.RawMessage, o *readOptions) (string, error) {
	var part readPart
	if err := json.Unmarshal(first, &part); err != nil {
		return "", fmt.Errorf("reading the result: %w", err)
	}
	if o.chars > 0 {
		return part.Text, nil
	}
	end := int64(0) // of what is wanted; 0 means the end of the text
	if o.section != "" {
		sections, err := d.backend.Sections(ctx, part.DocID, nil)
		if err != nil {
			return "", err
		}
		end = fessmcp.SectionEnd(sections, part.Offset)
	}
	text := strings.Builder{}
	text.WriteString(part.Text)
	size := part.Offset + int64(len(part.Text))
	for part.NextCursor != "" && (end == 0 || size < end) {
		result, err := d.call(ctx, "read_content", map[string]any{"docId": part.DocID, "cursor": part.NextCursor, "maxChars": maxReadChars})
		if err != nil {
			return "", err
		}
		part = readPart{}
		if err := json.Unmarshal(result, &part); err != nil {
			return "", fmt.Errorf("reading the result: %w", err)
		}
		more := part.Text
		if end > 0 && end < part.Offset+int64(len(more)) {
			more = more[:max(0, end-part.Offset)]
		}
		text.WriteString(more)
		size = part.Offset + int64(len(part.Text))
	}
	return text.String(), nil
}
