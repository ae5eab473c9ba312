package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/datasetmcp"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const datasetsHelp = `Usage: {cmd} [FLAGS]
       {cmd} create|list|search|check|export|delete ...

Serves the vector datasets of a folder to agents over MCP. A dataset is a folder
with a manifest, a FAISS index and the texts, as this program and MCPower write
it. Changes are served within 10 seconds.

{flags}

Commands for datasets; each has its own help, for example "{cmd} create --help":
  create   create a dataset from folders and files
  list     list the datasets
  search   search a dataset
  check    check every rule of the datasets
  export   write a dataset as one file
  delete   delete a dataset

Examples:
  {cmd}
  {cmd} --datasets ~/datasets --tool-names underscore
  {cmd} --transport http --addr 127.0.0.1:7412
  {cmd} create handbook ~/handbook
`

const listHelp = `Usage: {cmd} [FLAGS]

Lists the datasets of a folder: id, status, number of passages and vectors,
model and name.

{flags}

Examples:
  {cmd}
  {cmd} --datasets ~/datasets --json
`

const datasetSearchHelp = `Usage: {cmd} [FLAGS] ID QUERY

Searches a dataset. Several ids are separated by commas.

{flags}

Examples:
  {cmd} handbook "How many days of leave do I have?"
  {cmd} --top 3 --json handbook,policies travel expenses
`

const checkHelp = `Usage: {cmd} [FLAGS] [ID]

Checks every rule of one dataset or of all: the manifest, the index, the texts,
whether they belong together, and which model made the vectors. The exit status
is 1 if a dataset cannot be searched.

{flags}

Examples:
  {cmd}
  {cmd} handbook
`

// datasetsDir chooses the folder of the datasets.
type datasetsDir struct {
	Dir folder `flag:"datasets" value:"DIR" default:"./datasets" env:"KNOWHOW_DATASETS" help:"folder of the datasets"`
}

// A datasetsCommand serves datasets.
type datasetsCommand struct {
	datasetsDir
	noData        `why:"--datasets names the folder"`
	levelFlag     `standard:"info"`
	transportFlag `words:"stdio|http" standard:"stdio"`
	Addr          string `flag:"addr" value:"HOST:PORT" default:"127.0.0.1:7412" help:"HTTP: address to listen on"`
	tokenFlag     `http:"HTTP: " more:"; required to listen on other addresses than loopback"`
	Names         datasetmcp.Names `flag:"tool-names" value:"dotted|underscore" default:"dotted" help:"names of the tools: knowledge.search and knowledge.listDatasets, or knowledge_search and knowledge_list_datasets for clients that refuse dots"`
	revisionFlag  `words:"latest|2025-03-26|2024-11-05" standard:"latest"`
	httpFlags
	searchModelFlags
}

// run serves datasets until ctx ends or, on stdio, the client disconnects.
func (o *datasetsCommand) run(ctx context.Context, v *invocation) error {
	s, err := v.newServer(o.Transport, o.Addr, o.Level, o.Token, o.httpFlags)
	if err == nil {
		err = s.requireToken(o.Addr)
	}
	if err != nil {
		return err
	}
	embedders, err := o.embedders(v)
	if err != nil {
		return err
	}
	r, err := dataset.New(dataset.Options{Dir: string(o.Dir), Log: s.log, Embedders: embedders, Explain: explainModel})
	if err != nil {
		return err
	}
	s.mcp, s.path = mcpserver.New(mcpserver.Options{
		Name: "knowhow-datasets", Title: "knowhow datasets", Version: version(),
		Instructions: datasetmcp.Instructions(o.Names), Revision: o.Revision, Log: s.log,
	}), mcpPath
	datasetmcp.Register(s.mcp, datasetmcp.Options{Datasets: r, Names: o.Names})
	s.background = r.Watch
	s.ready = func(url string) {
		s.printSnippets("datasets", url, "KNOWHOW_TOKEN", datasetsOperands(o.Dir))
		if o.Names == datasetmcp.Dotted {
			fmt.Fprint(v.stderr, "Claude Desktop, Codex and Copilot refuse the dots in the names of the tools: "+
				"add --tool-names underscore for them.\n\n")
		}
	}
	return s.serve(ctx)
}

// datasetsOperands returns the operands of connect with which a client starts a server
// of datasets.
func datasetsOperands(dir folder) []string {
	return []string{"datasets", absolute(string(dir))}
}

// openDatasets reads the datasets of a folder. Without a model they are searched
// by words.
func (v *invocation) openDatasets(ctx context.Context, dir folder, model *modelFlags) (r *dataset.Registry, err error) {
	o := dataset.Options{Dir: string(dir), Explain: explainModel}
	if model != nil {
		if o.Embedders, err = model.embedders(v); err != nil {
			return nil, err
		}
	}
	if r, err = dataset.New(o); err != nil {
		return nil, err
	}
	return r, r.Scan(ctx)
}

// printJSON prints a value as one line of JSON.
func (v *invocation) printJSON(value any) error {
	line, err := compact.Marshal(value)
	if err != nil {
		return err
	}
	_, err = v.stdout.Write(append(sanitize.ShowJSON(line), '\n'))
	return err
}

// A listCommand lists the datasets.
type listCommand struct {
	datasetsDir
	jsonFlag
}

func (o *listCommand) run(ctx context.Context, v *invocation) error {
	r, err := v.openDatasets(ctx, o.Dir, nil)
	if err != nil {
		return err
	}
	infos, err := r.List(ctx)
	switch {
	case err != nil:
		return err
	case o.JSON:
		return v.printJSON(datasetmcp.ListResult(infos))
	case len(infos) == 0:
		return v.noDatasets(r)
	}
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	for _, d := range infos {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.State, terminal.Plural(d.Documents, "passage"),
			terminal.Plural(d.Vectors, "vector"), cmp.Or(sanitize.Escape(d.Model), "-"), sanitize.Escape(d.Name))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, d := range infos {
		for _, p := range d.Problems {
			fmt.Fprintf(v.stderr, "%s: %s: %s\n", d.ID, p.Status, sanitize.Escape(p.String()))
		}
	}
	return nil
}

// noDatasets prints what to do if there is no dataset.
func (v *invocation) noDatasets(r *dataset.Registry) error {
	_, err := fmt.Fprintf(v.stderr,
		"There are no datasets in %s. Create one with: %s datasets create ID FOLDER\n",
		sanitize.Escape(r.Dir()), v.Program)
	return err
}

// A datasetSearchCommand searches datasets.
type datasetSearchCommand struct {
	datasetsDir
	Top int `flag:"top,top-k" value:"N" range:"1-100" help:"number of results, from 1 to 100; by default that of the dataset"`
	jsonFlag
	searchModelFlags
	IDs   string `arg:"ID"`
	Query string `arg:"QUERY,many"`
}

func (o *datasetSearchCommand) run(ctx context.Context, v *invocation) error {
	q := dataset.Query{Datasets: strings.Split(o.IDs, ","), Text: o.Query, TopK: o.Top}
	if slices.Contains(q.Datasets, "") {
		return v.usagef("ID: got %q, want ids of datasets, separated by commas", o.IDs)
	}
	r, err := v.openDatasets(ctx, o.Dir, &o.modelFlags)
	if err != nil {
		return err
	}
	start := time.Now()
	found, err := r.Search(ctx, q)
	switch {
	case err != nil:
		return v.unknownDataset(err)
	case o.JSON:
		return v.printJSON(datasetmcp.SearchResult(q, found, time.Since(start)))
	}
	return v.printHits(found, len(q.Datasets) > 1)
}

// printHits prints the results of a search for people.
func (v *invocation) printHits(found *dataset.Result, several bool) error {
	for _, note := range found.Notes {
		fmt.Fprintf(v.stderr, "note: %s\n", sanitize.Escape(note))
	}
	if len(found.Hits) == 0 {
		_, err := fmt.Fprintln(v.stderr, "Nothing found. Try fewer or other words.")
		return err
	}
	screen := terminal.NewScreen(v.stdout, v.Lookup)
	var b strings.Builder
	for i, h := range found.Hits {
		where := h.Path
		if h.StartLine > 0 {
			where += fmt.Sprintf(":%d", h.StartLine)
		}
		if several {
			where = h.Dataset + ": " + where
		}
		line := fmt.Sprintf("%d. %s (%s %.2f)", i+1, sanitize.Escape(h.Title), found.Kind, h.Score)
		b.WriteString(hitText(screen, line, sanitize.Escape(where)+"\n", h.Snippet))
	}
	return screen.Show(b.String())
}

// hitText returns a line and, indented, the beginning of a passage after other lines.
func hitText(screen *terminal.Screen, line, more, passage string) string {
	const most = 300 // characters
	return screen.Wrap(line, "") + screen.Wrap(more+sanitize.Short(passage, most, 4*most), "   ")
}

// A checkCommand checks datasets.
type checkCommand struct {
	datasetsDir
	jsonFlag
	searchModelFlags
	ID string `arg:"ID,optional"`
}

func (o *checkCommand) run(ctx context.Context, v *invocation) error {
	r, err := v.openDatasets(ctx, o.Dir, &o.modelFlags)
	if err != nil {
		return err
	}
	checks, err := r.Check(ctx, o.ID)
	if err != nil {
		return v.unknownDataset(err)
	}
	bad := 0
	for _, c := range checks {
		if c.Failed() {
			bad++
		}
	}
	if o.JSON {
		if err := v.printJSON(map[string]any{"datasets": checks}); err != nil {
			return err
		}
	} else if len(checks) == 0 {
		return v.noDatasets(r)
	} else {
		w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
		for _, c := range checks {
			fmt.Fprintf(w, "%s (%s)\n", c.ID, sanitize.Escape(c.Folder))
			for _, x := range c.Rules {
				fmt.Fprintf(w, "  %s\t%s\t%s\n", x.Status, x.Rule, sanitize.Escape(x.Message))
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if bad > 0 {
		return &hintError{fmt.Errorf("%s cannot be searched", terminal.Plural(bad, "dataset")),
			"Correct what is marked as error, and check again."}
	}
	return nil
}
