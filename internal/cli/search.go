package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/scope"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/serving"
	"github.com/knowhow-mcp/knowhow/internal/source"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const searchHelp = `Usage: {cmd} [FLAGS] QUERY

Searches the documents that serve has indexed, as agents do, without a server. In
a folder that belongs to a source, it searches that source, otherwise all. A QUERY
is a question or words; quotes of the shell are not needed. "a phrase", OR, NOT,
title:word and word* have their meaning if the shell leaves them as they are.

The exit status is 0 if documents are found, and 1 if there are none.

{flags}

Examples:
  {cmd} how do I reset my password
  {cmd} --all travel budget
  {cmd} --label handbook --top 3 travel budget
  {cmd} 'title:report NOT draft' --sort timestamp.desc
  {cmd} --json annual report | jq -r '.results[].path'
  {cmd} -- report -draft
`

// A searchCommand searches the index.
type searchCommand struct {
	folderFlags
	embedderFlags `model:"model for searches by meaning, as for serve"`
	Top           int    `flag:"top" value:"N" default:"8" range:"1-100" help:"number of documents to show"`
	Start         int    `flag:"start" value:"N" default:"0" range:"0-9999" help:"number of documents to skip"`
	Chars         int    `flag:"max-chars" value:"N" default:"6000" range:"0-100000" help:"number of characters of all passages together; with 0, an excerpt of each document is shown"`
	Lang          string `flag:"lang" value:"CODES" help:"only documents in these languages, such as en or en,ja"`
	Sort          string `flag:"sort" value:"FIELDS" help:"order, such as timestamp.desc (newest first) or filename.asc; by default the most relevant first"`
	JSON          bool   `flag:"json" help:"print the JSON of the search tool"`
	Query         string `arg:"QUERY,many"`
}

func (o *searchCommand) run(ctx context.Context, v *invocation) error {
	return v.withFolders(ctx, &o.folderFlags, &o.embedderFlags,
		func(d *folders) error { return v.runSearch(ctx, d, o) })
}

// folderFlags choose the sources of a command.
type folderFlags struct {
	dataFlag
	storeFlags
	Labels []string `flag:"label" value:"NAME" help:"only documents of the source with this label"`
	All    bool     `flag:"all" help:"documents of all sources, also in a folder that belongs to one"`
}

// folders are the indexed folders of a data folder, for one command.
type folders struct {
	*invocation
	folder  *datafolder.Folder
	known   []document.Source // all
	sources []document.Source // that the command uses
	here    bool              // these are the source of the working directory, and there are others
	backend *scope.Scope      // over sources
	tools   *searchmcp.Tools  // over sources
}

// withFolders opens the index or the store and calls f with the sources that the
// flags choose. Searches by meaning use the model.
func (v *invocation) withFolders(ctx context.Context, o *folderFlags, model *embedderFlags,
	f func(*folders) error) error {
	if o.All && len(o.Labels) > 0 {
		return v.usagef("--all and --label exclude each other")
	}
	m, err := model.open()
	if err != nil {
		return err
	}
	m.Wait = max(m.Wait, modelTime)
	folder := &datafolder.Folder{Model: m}
	if folder.Store, err = o.storeFlags.open(m, v.warnings()); err != nil {
		return err
	}
	if folder.Store == nil {
		if folder.Index, _, err = v.openExisting(ctx, o.Data, m); err != nil {
			return err
		}
		if folder.Index == nil {
			return v.nothingIndexed()
		}
	}
	d, err := v.openFolders(ctx, folder, o)
	if err == nil {
		err = f(d)
	}
	return errors.Join(explainStore(err), folder.Close())
}

// nothingIndexed returns the error for a data folder without sources.
func (v *invocation) nothingIndexed() error {
	return &hintError{errors.New("nothing is indexed yet"), "Index a folder with: " + v.advised("serve", "FOLDER")}
}

// openFolders is withFolders with an open data folder.
func (v *invocation) openFolders(ctx context.Context, f *datafolder.Folder, o *folderFlags) (*folders, error) {
	known, err := f.Sources(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(known) == 0:
		return nil, v.nothingIndexed()
	}
	for _, label := range o.Labels {
		if !slices.ContainsFunc(known, func(s document.Source) bool { return s.Label == label }) {
			return nil, v.unknownLabel(label)
		}
	}
	d := (&folders{invocation: v, folder: f, known: known}).of(known)
	switch {
	case len(o.Labels) > 0:
		d = d.of(slices.DeleteFunc(slices.Clone(known),
			func(s document.Source) bool { return !slices.Contains(o.Labels, s.Label) }))
	case !o.All && len(known) > 1:
		if src := currentSource(known); src != nil {
			d = d.of([]document.Source{*src})
			d.here = true
		}
	}
	return d, nil
}

// of returns folders of the same data folder with these sources.
func (d *folders) of(sources []document.Source) *folders {
	c := *d
	c.sources, c.here, c.backend = sources, false, scope.New(d.folder.Service(), serving.Labels(sources)...)
	domain := searchmcp.Domain{ID: "all"}
	if len(sources) == 1 {
		domain.Label = sources[0].Label
	}
	c.tools = searchmcp.New(searchmcp.Options{Domain: domain, Backend: c.backend, Wording: searchmcp.OfFolders,
		Groups: []searchmcp.Group{searchmcp.SearchTools}, NameSource: domain.Label == ""})
	return &c
}

// currentSource returns the innermost source that the working directory belongs
// to, or nil if there is none.
func currentSource(known []document.Source) *document.Source {
	dir, err := os.Getwd()
	if err != nil {
		return nil // it was removed
	}
	dir = realPath(dir)
	var best *document.Source
	for i := range known {
		path := realPath(known[i].Path)
		if (path == dir || source.Inside(dir, path)) && (best == nil || len(path) > len(realPath(best.Path))) {
			best = &known[i]
		}
	}
	return best
}

// searched describes which sources were used, if these are not all. Otherwise it
// returns "".
func (d *folders) searched() string {
	switch {
	case d.here:
		return fmt.Sprintf("Only the source of this folder was searched: %s. To search all sources, add --all.",
			d.sources[0].Label)
	case len(d.sources) < len(d.known):
		return "Only some sources were searched: " + strings.Join(serving.Labels(d.sources), ", ") + "."
	}
	return ""
}

// showJSON prints a value as the JSON of a tool.
func showJSON(screen *terminal.Screen, v any) error {
	text, err := compact.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return screen.Show(string(sanitize.ShowJSON(text)) + "\n")
}

// runSearch searches, and prints what is found.
func (v *invocation) runSearch(ctx context.Context, d *folders, o *searchCommand) error {
	r, err := d.tools.Search(ctx, searchmcp.SearchArgs{Query: o.Query, PageSize: o.Top, Start: o.Start,
		MaxChars: o.Chars, Lang: o.Lang, Sort: o.Sort})
	if err != nil {
		return err
	}
	screen := terminal.NewScreen(v.stdout, v.Lookup)
	switch {
	case o.JSON:
		err = showJSON(screen, r)
	case len(r.Hits) > 0:
		err = screen.Show(pageText(screen, r, len(d.sources) > 1))
	}
	if err != nil {
		return err
	}
	if len(r.Hits) == 0 {
		return v.nothingFound(ctx, d, o, r)
	}
	if !o.JSON {
		summary := summaryOf(r)
		if len(r.Incomplete) > 0 {
			summary += "\n" + v.incompleteText(d.sources, r.Incomplete)
		}
		fmt.Fprint(v.stderr, terminal.NewScreen(v.stderr, v.Lookup).Wrap(summary, ""))
	}
	if note := d.searched(); note != "" && (d.here || !o.JSON) {
		fmt.Fprintln(v.stderr, note)
	}
	return nil
}

// nothingFound returns the error for a page without hits, with what to do next.
func (v *invocation) nothingFound(ctx context.Context, d *folders, o *searchCommand, p *searchmcp.SearchResult) error {
	switch {
	case p.Total > 0:
		return &hintError{fmt.Errorf("no documents after the first %d", o.Start),
			fmt.Sprintf("There are %d in all: use a smaller --start.", p.Total)}
	case len(p.Incomplete) > 0:
		return &hintError{errors.New("nothing found so far"), v.incompleteText(d.sources, p.Incomplete)}
	case p.Partial:
		return &hintError{errors.New("nothing found so far"), partialHint}
	case p.Indexing != nil:
		return &hintError{errors.New("nothing found so far"),
			fmt.Sprintf("Indexing has done %d of %s: search again later.",
				p.Indexing.Done, terminal.Plural(p.Indexing.Total, "document"))}
	}
	hint := "Try fewer or other words." + sanitize.Escape(p.Advice) // the values of a field, and what has vectors
	if len(p.DidYouMean) > 0 {
		hint = "Did you mean " + sanitize.Escape(strings.Join(p.DidYouMean, ", ")) + "? " + hint
	}
	if len(o.Labels) > 0 || o.Lang != "" {
		hint = strings.TrimSuffix(hint, ".") + ", or leave out --label and --lang."
	}
	var labels []string
	leftOut := 0
	for _, src := range d.sources {
		labels = append(labels, src.Label)
		if d.folder.Index == nil {
			continue
		}
		left, err := d.folder.Index.LeftOut(ctx, src.Label)
		if err != nil {
			return err
		}
		counts, _ := ingest.SplitInPart(left.Counts)
		for _, n := range counts {
			leftOut += n
		}
	}
	if d.here {
		hint += "\n" + d.searched()
	} else {
		hint += fmt.Sprintf("\nSearched: %s. To search another folder, index it with: %s", strings.Join(labels, ", "),
			v.advised("serve", "FOLDER"))
	}
	if leftOut > 0 {
		hint += fmt.Sprintf("\n%s left out of the index. List the reasons with: %s", areLeft(leftOut),
			v.advised("status", "--left-out"))
	}
	return &hintError{errors.New("nothing found"), hint}
}

// areLeft counts files and folders, with the verb.
func areLeft(n int) string {
	if n == 1 {
		return "1 file or folder is"
	}
	return fmt.Sprintf("%d files and folders are", n)
}

// commandWord returns a word of a command, in quotes if a shell would split it.
func commandWord(s string) string {
	if strings.ContainsAny(s, " '&;()") {
		return `"` + s + `"`
	}
	return s
}

// incompleteText describes sources that are not completely indexed, and how to
// continue.
func (v *invocation) incompleteText(sources []document.Source, list []search.Unfinished) string {
	var lines []string
	for _, u := range list {
		u.Message = "" // status shows it
		line := fmt.Sprintf("Documents of %s are missing: %s.", u.Label, datafolder.Incomplete(u).Text())
		for _, src := range sources {
			if src.Label == u.Label {
				line += " To continue: " + v.advised("serve", commandWord(sanitize.Escape(src.Path)))
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// summaryOf describes a page in one line.
func summaryOf(p *searchmcp.SearchResult) string {
	start := p.Query.Start
	s := fmt.Sprintf("%d to %d of %s", start+1, start+len(p.Hits), terminal.Plural(p.Total, "document"))
	switch {
	case p.Staged && p.AllWords > 0 && p.AllWords < p.Total:
		s += fmt.Sprintf(", %d with all words", p.AllWords)
	case p.Relaxed, p.Staged && p.AllWords == 0:
		s += ", none with all words"
	}
	if p.NextStart > 0 {
		s += fmt.Sprintf("; for the next ones add --start %d", p.NextStart)
	}
	if p.Indexing != nil {
		s += fmt.Sprintf("; indexing has done %d of %d", p.Indexing.Done, p.Indexing.Total)
	}
	switch {
	case len(p.Incomplete) > 0: // the caller describes it
	case p.Partial:
		s += "\n" + partialHint
	case p.Hint != "":
		s += "\n" + sanitize.Escape(p.Hint)
	}
	return s
}

// partialHint is the advice for a partial page. Unlike that of the tool, it
// regards a data folder that no server uses.
const partialHint = "Not all documents were searched: there was not enough time, or a part of the index is to be built again, " +
	"which happens while a server uses the data folder. Use fewer words, or search again later."

// pageText returns a page for people: of each document the title, the path and
// the passages. Paths begin with their source if there are several.
func pageText(screen *terminal.Screen, p *searchmcp.SearchResult, several bool) string {
	var b strings.Builder
	for i, h := range p.Hits {
		if i > 0 {
			b.WriteByte('\n')
		}
		path := h.Path
		if several && len(h.Labels) == 1 {
			path = h.Labels[0] + "/" + h.Path
		}
		title := sanitize.Line(h.Title)
		path = sanitize.Escape(path)
		if screen.Terminal() {
			number := fmt.Sprintf("%d. ", p.Query.Start+i+1)
			b.WriteString(screen.Wrap(number+title, "",
				terminal.Mark{Start: len(number), End: len(number) + len(title)}))
			b.WriteString(screen.Link(screen.Accent(path), h.URL))
			if !h.Modified.IsZero() {
				b.WriteString(screen.Soft("  " + h.Modified.Local().Format(time.DateOnly)))
			}
			b.WriteByte('\n')
		} else { // for programs, a line is the title or the path alone
			b.WriteString(screen.Wrap(title, "") + path + "\n")
		}
		if len(h.Also) > 0 {
			b.WriteString(screen.Wrap("also: "+sanitize.Escape(strings.Join(h.Also, ", ")), ""))
		}
		marked := func(x search.Excerpt) {
			var marks []terminal.Mark
			for _, s := range x.Matches {
				marks = append(marks, terminal.Mark(s))
			}
			b.WriteString(screen.Wrap(x.Text, "  ", marks...))
		}
		for j, passage := range h.Passages {
			if j > 0 {
				b.WriteByte('\n')
			}
			heading := strings.TrimPrefix(sanitize.Line(passage.Heading), title+" > ")
			if heading != "" && heading != title {
				b.WriteString(screen.Wrap(heading, "  ", terminal.Mark{End: len(heading)}))
			}
			marked(search.Excerpt{Text: passage.Text, Matches: passage.Matches}.Map(sanitize.Text))
		}
		if digest := h.Digest.Map(sanitize.Line); digest.Text != "" && len(h.Passages) == 0 {
			marked(digest)
		}
	}
	return b.String()
}
