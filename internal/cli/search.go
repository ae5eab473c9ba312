package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/datafolder"
	"knowhow/internal/document"
	"knowhow/internal/fessmcp"
	"knowhow/internal/index"
	"knowhow/internal/ingest"
	"knowhow/internal/mcpserver"
	"knowhow/internal/query"
	"knowhow/internal/sanitize"
	"knowhow/internal/search/scope"
	"knowhow/internal/serving"
	"knowhow/internal/source"
	"knowhow/internal/terminal"
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
	return v.withFolders(ctx, &o.folderFlags, &o.embedderFlags, func(d *folders) error { return v.runSearch(ctx, d, o) })
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
	server  *mcpserver.Server // has the tools over sources

	// leftOut returns what is left out of a source; nil if that is not known.
	leftOut func(ctx context.Context, label string) (index.LeftOut, error)
}

// withFolders opens the index or the store and calls f with the sources that the
// flags choose. Searches by meaning use the model.
func (v *invocation) withFolders(ctx context.Context, o *folderFlags, model *embedderFlags, f func(*folders) error) error {
	if o.All && len(o.Labels) > 0 {
		return v.usagef("--all and --label exclude each other")
	}
	m, err := model.open()
	if err != nil {
		return err
	}
	m.Wait = max(m.Wait, modelTime)
	source := &datafolder.Folder{Model: m}
	if source.Store, err = o.storeFlags.open(m, v.warnings()); err != nil {
		return err
	}
	if source.Store == nil {
		if source.Index, _, err = v.openExisting(ctx, o.Data, m); err != nil {
			return err
		}
		if source.Index == nil {
			return v.nothingIndexed()
		}
	}
	d, err := v.openFolders(ctx, source, o)
	if err == nil {
		if source.Index != nil {
			d.leftOut = source.Index.LeftOut
		}
		err = f(d)
	}
	return errors.Join(explainStore(err), source.Close())
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
		d = d.of(slices.DeleteFunc(slices.Clone(known), func(s document.Source) bool { return !slices.Contains(o.Labels, s.Label) }))
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
	c.server = serving.New(serving.Options{Folder: d.folder, Sources: sources, Groups: []fessmcp.Group{fessmcp.SearchTools}, Domain: toolDomain, Version: version()}).MCP()
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
		return fmt.Sprintf("Only the source of this folder was searched: %s. To search all sources, add --all.", d.sources[0].Label)
	case len(d.sources) < len(d.known):
		return "Only some sources were searched: " + strings.Join(serving.Labels(d.sources), ", ") + "."
	}
	return ""
}

// toolDomain is the beginning of the names of tools that are called without a
// client.
const toolDomain = "all"

// call calls a tool of the folders.
func (d *folders) call(ctx context.Context, tool string, arguments map[string]any) (json.RawMessage, error) {
	in, err := json.Marshal(arguments)
	if err != nil {
		return nil, fmt.Errorf("writing the arguments of %s: %w", tool, err)
	}
	return d.server.Call(ctx, toolDomain+"_"+tool, in)
}

// A foundPage is the result of the search tool.
type foundPage struct {
	Total, Start int
	Results      []foundHit
	NextStart    int
	Relaxed      bool
	Partial      bool
	AllWords     *int
	Hint         string
	DidYouMean   []string
	Indexing     *struct{ Done, Total int }
	Incomplete   []datafolder.Incomplete
}

// A foundHit is a document in the result of the search tool.
type foundHit struct {
	Title, Path, Source, URL, Digest string
	Modified                         time.Time `json:"last_modified"`
	Lang                             []string
	Also                             []string
	Passages                         []struct{ Heading, Text string }
}

// runSearch searches, and prints what is found.
func (v *invocation) runSearch(ctx context.Context, d *folders, o *searchCommand) error {
	arguments := map[string]any{"query": o.Query, "pageSize": o.Top, "start": o.Start, "maxChars": o.Chars, "lang": o.Lang, "sort": o.Sort}
	if !o.JSON {
		arguments["includeFields"] = []string{"title", "url", "digest", "lang", "last_modified"}
	}
	result, err := d.call(ctx, "search", arguments)
	if err != nil {
		return err
	}
	var page foundPage
	if err := json.Unmarshal(result, &page); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	screen := terminal.NewScreen(v.stdout, v.Lookup)
	switch {
	case o.JSON:
		err = screen.Show(string(sanitize.ShowJSON(result)) + "\n")
	case len(page.Results) > 0:
		err = screen.Show(page.text(screen, wantedWords(o.Query)))
	}
	if err != nil {
		return err
	}
	if len(page.Results) == 0 {
		return v.nothingFound(ctx, d, o, page)
	}
	if !o.JSON {
		summary := page.summary()
		if len(page.Incomplete) > 0 {
			summary += "\n" + v.incompleteText(d.sources, page.Incomplete)
		}
		fmt.Fprint(v.stderr, terminal.NewScreen(v.stderr, v.Lookup).Wrap(summary, ""))
	}
	if note := d.searched(); note != "" && (d.here || !o.JSON) {
		fmt.Fprintln(v.stderr, note)
	}
	return nil
}

// nothingFound returns the error for a page without hits, with what to do next.
func (v *invocation) nothingFound(ctx context.Context, d *folders, o *searchCommand, p foundPage) error {
	switch {
	case p.Total > 0:
		return &hintError{fmt.Errorf("no documents after the first %d", p.Start), fmt.Sprintf("There are %d in all: use a smaller --start.", p.Total)}
	case len(p.Incomplete) > 0:
		return &hintError{errors.New("nothing found so far"), v.incompleteText(d.sources, p.Incomplete)}
	case p.Partial:
		return &hintError{errors.New("nothing found so far"), partialHint}
	case p.Indexing != nil:
		return &hintError{errors.New("nothing found so far"), fmt.Sprintf("Indexing has done %d of %s: search again later.",
			p.Indexing.Done, terminal.Plural(p.Indexing.Total, "document"))}
	}
	hint := "Try fewer or other words."
	_, advice, _ := strings.Cut(p.Hint, hint)
	hint += sanitize.Escape(advice) // the values of a field, and what has vectors
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
		if d.leftOut == nil {
			continue
		}
		left, err := d.leftOut(ctx, src.Label)
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
		hint += fmt.Sprintf("\nSearched: %s. To search another folder, index it with: %s", strings.Join(labels, ", "), v.advised("serve", "FOLDER"))
	}
	if leftOut > 0 {
		hint += fmt.Sprintf("\n%s left out of the index. List the reasons with: %s", areLeft(leftOut), v.advised("status", "--left-out"))
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
func (v *invocation) incompleteText(sources []document.Source, list []datafolder.Incomplete) string {
	var lines []string
	for _, i := range list {
		line := fmt.Sprintf("Documents of %s are missing: %s.", i.Source, i.Text())
		for _, src := range sources {
			if src.Label == i.Source {
				line += " To continue: " + v.advised("serve", commandWord(sanitize.Escape(src.Path)))
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// summary describes the page in one line.
func (p foundPage) summary() string {
	s := fmt.Sprintf("%d to %d of %s", p.Start+1, p.Start+len(p.Results), terminal.Plural(p.Total, "document"))
	switch {
	case p.AllWords != nil && *p.AllWords > 0 && *p.AllWords < p.Total:
		s += fmt.Sprintf(", %d with all words", *p.AllWords)
	case p.Relaxed, p.AllWords != nil && *p.AllWords == 0:
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

// text returns the page for people: of each document the title, the path and
// the passages.
func (p foundPage) text(screen *terminal.Screen, wanted *analysis.Wanted) string {
	var b strings.Builder
	for i, h := range p.Results {
		if i > 0 {
			b.WriteByte('\n')
		}
		path := h.Path
		if h.Source != "" {
			path = h.Source + "/" + h.Path
		}
		title := sanitize.Line(h.Title)
		path = sanitize.Escape(path)
		if screen.Terminal() {
			number := fmt.Sprintf("%d. ", p.Start+i+1)
			b.WriteString(screen.Wrap(number+title, "", terminal.Mark{Start: len(number), End: len(number) + len(title)}))
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
		language := analysis.English
		if len(h.Lang) > 0 {
			language = analysis.LanguageOf(h.Lang[0])
		}
		marked := func(text string) {
			var marks []terminal.Mark
			for _, s := range analysis.Matches(text, language, wanted) {
				marks = append(marks, terminal.Mark(s))
			}
			b.WriteString(screen.Wrap(text, "  ", marks...))
		}
		for j, passage := range h.Passages {
			if j > 0 {
				b.WriteByte('\n')
			}
			heading := strings.TrimPrefix(sanitize.Line(passage.Heading), title+" > ")
			if heading != "" && heading != title {
				b.WriteString(screen.Wrap(heading, "  ", terminal.Mark{End: len(heading)}))
			}
			marked(sanitize.Text(passage.Text))
		}
		if digest := sanitize.Line(h.Digest); digest != "" {
			marked(digest)
		}
	}
	return b.String()
}

// wantedWords returns the words of a query that are in bold in passages, or nil
// if there are none.
func wantedWords(text string) *analysis.Wanted {
	r, err := query.Read(text)
	if err != nil {
		return nil
	}
	var terms, prefixes []string
	languages := append([]analysis.Language{analysis.English}, analysis.Stemmed()...)
	add := func(field, text string, prefix bool) {
		if field != "" && field != "title" && field != "content" {
			return
		}
		for _, variant := range analysis.Variants(text, languages, prefix) {
			last := len(variant) - 1
			if prefix && !analysis.Lone(variant[last]) {
				prefixes, variant = append(prefixes, variant[last]), variant[:last]
			}
			terms = append(terms, variant...)
		}
	}
	var walk func(n query.Node)
	walk = func(n query.Node) {
		switch n := n.(type) {
		case query.And:
			for _, m := range slices.Concat(n.Nodes, n.Optional) {
				walk(m)
			}
		case query.Or:
			for _, m := range n.Nodes {
				walk(m)
			}
		case query.Boost:
			walk(n.Node)
		case query.Term:
			parts, _ := query.Divide([]string{n.Text})
			for _, p := range parts {
				add(n.Field, p, false)
			}
		case query.Phrase:
			add(n.Field, n.Text, false)
		case query.Fuzzy:
			add(n.Field, n.Text, false)
		case query.Prefix:
			add(n.Field, n.Text, true)
		}
	}
	walk(r.Tree())
	return analysis.NewWanted(terms, prefixes)
}
