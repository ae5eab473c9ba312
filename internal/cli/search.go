package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/fessmcp"
	"knowhow/internal/index"
	"knowhow/internal/mcpserver"
	"knowhow/internal/query"
	"knowhow/internal/sanitize"
	"knowhow/internal/search"
	"knowhow/internal/search/scope"
	"knowhow/internal/terminal"
)

const searchHelp = `Usage: {cmd} [FLAGS] QUERY

Searches the documents that serve has indexed, as agents do, without a server. A
QUERY is a question or words; quotes of the shell are not needed. "a phrase", OR,
NOT, title:word and word* have their meaning if the shell leaves them as they are.

The exit status is 0 if documents are found, and 1 if there are none.

{flags}

Examples:
  {cmd} how do I reset my password
  {cmd} --label handbook --top 3 travel budget
  {cmd} 'title:report NOT draft' --sort timestamp.desc
  {cmd} --json annual report | jq -r '.results[].path'
  {cmd} -- report -draft
`

// searchOptions are the flags and operands of search.
type searchOptions struct {
	data       string
	store      storeFlags
	model      serveModel
	labels     []string
	query      string
	top, start int
	chars      int
	lang, sort string
	json       bool
}

// searchCommand searches the index.
func searchCommand(v *invocation, f *flagSet) func(context.Context) error {
	o := &searchOptions{}
	dataFlag(f, &o.data)
	o.store.define(f)
	o.model.declare(f, flag{Help: "model for searches by meaning, as for serve"})
	labelFlag(f, &o.labels)
	f.Int(&o.top, flag{Name: "top", Value: "N", Default: strconv.Itoa(folderPage), Help: "number of documents to show"}, 1, search.MaxNum)
	f.Int(&o.start, flag{Name: "start", Value: "N", Default: "0", Help: "number of documents to skip"}, 0, search.Window-1)
	f.Int(&o.chars, flag{Name: "max-chars", Value: "N", Default: "6000",
		Help: "number of characters of all passages together; with 0, an excerpt of each document is shown"}, 0, 100_000)
	f.String(&o.lang, flag{Name: "lang", Value: "CODES", Help: "only documents in these languages, such as en or en,ja"})
	f.String(&o.sort, flag{Name: "sort", Value: "FIELDS", Help: "order, such as timestamp.desc (newest first) or filename.asc; by default the most relevant first"})
	f.Bool(&o.json, flag{Name: "json", Help: "print the JSON of the search tool"})
	f.Text(&o.query, "QUERY")
	return func(ctx context.Context) error {
		return v.withFolders(ctx, o.data, &o.store, o.model, o.labels, func(d *folders) error { return v.runSearch(ctx, d, o) })
	}
}

// labelFlag declares the flag for the sources to search.
func labelFlag(f *flagSet, labels *[]string) {
	f.List(labels, flag{Name: "label", Value: "NAME", Help: "only documents of the source with this label"})
}

// folders are the indexed folders of a data folder, for one command.
type folders struct {
	sources []document.Source // that the command searches
	backend *scope.Scope
	server  *mcpserver.Server // has the tools
}

// withFolders opens the index or the store and calls f with those of its sources
// that have one of the labels, or with all of them if there are no labels. Searches
// by meaning use the model.
func (v *invocation) withFolders(ctx context.Context, data string, store *storeFlags, model serveModel, labels []string, f func(*folders) error) error {
	queries, _, wait, err := model.open()
	if err != nil {
		return err
	}
	wait = max(wait, modelTime)
	if store.address != "" {
		return v.withStoredFolders(ctx, store, queries, wait, labels, f)
	}
	x, _, err := v.openExistingWith(ctx, data, index.Options{Embedder: queries, EmbedTime: wait})
	if err != nil {
		return err
	}
	if x == nil {
		return v.nothingIndexed()
	}
	d, err := v.openFolders(ctx, x, x, labels)
	if err == nil {
		err = f(d)
	}
	return errors.Join(err, x.Close())
}

// withStoredFolders is withFolders for the sources of all data folders whose
// documents are in a store.
func (v *invocation) withStoredFolders(ctx context.Context, store *storeFlags, queries embed.Embedder, wait time.Duration, labels []string,
	f func(*folders) error) error {
	s, err := store.open(queries, wait, v.warnings())
	if err != nil {
		return err
	}
	d, err := v.openFolders(ctx, storedFolders{Store: s}, s, labels)
	if err == nil {
		err = f(d)
	}
	return errors.Join(explainStore(err), s.Close())
}

// A sourceLister lists sources.
type sourceLister interface {
	Sources(ctx context.Context) ([]document.Source, error)
}

// nothingIndexed returns the error for a data folder without sources.
func (v *invocation) nothingIndexed() error {
	return &hintError{errors.New("nothing is indexed yet"), fmt.Sprintf("Index a folder with: %s serve FOLDER", v.Program)}
}

// openFolders is withFolders with an open service, and what lists its sources.
func (v *invocation) openFolders(ctx context.Context, service scope.Service, list sourceLister, labels []string) (*folders, error) {
	sources, err := list.Sources(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(sources) == 0:
		return nil, v.nothingIndexed()
	}
	for _, label := range labels {
		if !slices.ContainsFunc(sources, func(s document.Source) bool { return s.Label == label }) {
			return nil, unknownLabel(label)
		}
	}
	if len(labels) > 0 {
		sources = slices.DeleteFunc(sources, func(s document.Source) bool { return !slices.Contains(labels, s.Label) })
	}
	s := &serving{invocation: v, o: &serveOptions{groups: []fessmcp.Group{fessmcp.SearchTools}}, sources: sources}
	s.backend = scope.New(service, s.labels()...)
	domain := s.mainDomain()
	domain.ID, domain.Label = toolDomain, ""
	if len(sources) == 1 {
		domain.Label = sources[0].Label
	}
	return &folders{sources: sources, backend: s.backend, server: s.server(domain, s.backend, nil)}, nil
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
}

// A foundHit is a document in the result of the search tool.
type foundHit struct {
	Title, Path, Source, URL, Digest string
	Lang                             []string
	Also                             []string
	Passages                         []struct{ Heading, Text string }
}

// runSearch searches, and prints what is found.
func (v *invocation) runSearch(ctx context.Context, d *folders, o *searchOptions) error {
	arguments := map[string]any{"query": o.query, "pageSize": o.top, "start": o.start, "maxChars": o.chars, "lang": o.lang, "sort": o.sort}
	if !o.json {
		arguments["includeFields"] = []string{"title", "url", "digest", "lang"}
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
	case o.json:
		err = screen.Show(string(sanitize.ShowJSON(result)) + "\n")
	case len(page.Results) > 0:
		err = screen.Show(page.text(screen, wantedWords(o.query)))
	}
	if err != nil {
		return err
	}
	if len(page.Results) == 0 {
		return o.nothingFound(page)
	}
	if !o.json {
		_, err = fmt.Fprintln(v.stderr, page.summary())
	}
	return err
}

// nothingFound returns the error for a page without hits.
func (o *searchOptions) nothingFound(p foundPage) error {
	switch {
	case p.Total > 0:
		return &hintError{fmt.Errorf("no documents after the first %d", p.Start), fmt.Sprintf("There are %d in all: use a smaller --start.", p.Total)}
	case p.Partial:
		return &hintError{errors.New("nothing found so far"), partialHint}
	case p.Indexing != nil:
		return &hintError{errors.New("nothing found so far"), fmt.Sprintf("Indexing has done %d of %s: search again later.",
			p.Indexing.Done, terminal.Plural(p.Indexing.Total, "document"))}
	}
	hint := "Try fewer or other words."
	if len(p.DidYouMean) > 0 {
		hint = "Did you mean " + sanitize.Escape(strings.Join(p.DidYouMean, ", ")) + "? " + hint
	}
	if len(o.labels) > 0 || o.lang != "" {
		hint = strings.TrimSuffix(hint, ".") + ", or leave out --label and --lang."
	}
	return &hintError{errors.New("nothing found"), hint}
}

// summary describes the page in one line.
func (p foundPage) summary() string {
	s := fmt.Sprintf("%d to %d of %s", p.Start+1, p.Start+len(p.Results), terminal.Plural(p.Total, "document"))
	if p.AllWords != nil && *p.AllWords < p.Total {
		s += fmt.Sprintf(", %d with all words", *p.AllWords)
	} else if p.Relaxed {
		s += ", none with all words"
	}
	if p.NextStart > 0 {
		s += fmt.Sprintf("; for the next ones add --start %d", p.NextStart)
	}
	if p.Indexing != nil {
		s += fmt.Sprintf("; indexing has done %d of %d", p.Indexing.Done, p.Indexing.Total)
	}
	switch {
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
		b.WriteString(screen.Wrap(title, "", terminal.Mark{End: len(title)}))
		b.WriteString(screen.Link(sanitize.Escape(path), h.URL) + "\n")
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
	n, err := query.Parse(r.Text)
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
	walk(n)
	return analysis.NewWanted(terms, prefixes)
}
