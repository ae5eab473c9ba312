package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"knowhow/internal/compact"
	"knowhow/internal/dataset"
	"knowhow/internal/datasetmcp"
	"knowhow/internal/httpguard"
	"knowhow/internal/mcpserver"
	"knowhow/internal/sanitize"
	"knowhow/internal/terminal"
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
  {cmd} create --id handbook --source ~/handbook
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
  {cmd} --top-k 3 --json handbook,policies travel expenses
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

// datasetsDirFlag declares the flag for the folder of the datasets.
func datasetsDirFlag(f *flagSet, dir *string) {
	f.Func(flag{Name: "datasets", Value: "DIR", Default: "./datasets", Env: "KNOWHOW_DATASETS", Help: "folder of the datasets"}, func(s string) error {
		if *dir = f.expand(s); s == "" {
			return errors.New("want a folder")
		}
		return nil
	})
}

// jsonFlag declares the flag for JSON.
func jsonFlag(f *flagSet, asJSON *bool) {
	f.Bool(asJSON, flag{Name: "json", Help: "print JSON"})
}

// topKFlag declares the flag for the number of results.
func topKFlag(f *flagSet, topK *int, help string) {
	f.Int(topK, flag{Name: "top-k", Value: "N", Help: help}, 1, 100)
}

// datasetsFlags are the flags of the server.
type datasetsFlags struct {
	dir, level, transport, addr, token, names, revision string
	hosts, origins                                      []string
	model                                               modelFlags
}

// datasetsCommand serves datasets.
func datasetsCommand(v *invocation, f *flagSet) func(context.Context) error {
	o := &datasetsFlags{}
	datasetsDirFlag(f, &o.dir)
	var ignored string
	f.String(&ignored, flag{Name: "data", Value: "DIR", Help: "accepted, as by every server, and ignored: --datasets names the folder"})
	logLevelFlag(f, &o.level, "info", levelHelp)
	transportFlag(f, &o.transport, "stdio", "http")
	f.String(&o.addr, flag{Name: "addr", Value: "HOST:PORT", Default: defaultHost + ":7412", Help: "HTTP: address to listen on"})
	f.Token(&o.token, flag{Name: "token", Value: "TOKEN", Env: "KNOWHOW_TOKEN",
		Help: "HTTP: token that every caller must send as Authorization: Bearer; required to listen on other addresses than loopback"})
	f.Choice(&o.names, flag{Name: "tool-names", Help: "names of the tools: knowledge.search and knowledge.listDatasets, or knowledge_search and knowledge_list_datasets for clients that refuse dots"},
		string(datasetmcp.Dotted), string(datasetmcp.Underscore))
	f.Choice(&o.revision, flag{Name: "revision", Help: "MCP revision; latest negotiates every revision"},
		string(mcpserver.Latest), string(mcpserver.Pinned), string(mcpserver.Cody))
	httpFlags(f, &o.hosts, &o.origins)
	o.model.define(f, searchModelHelp)
	return func(ctx context.Context) error { return v.serveDatasets(ctx, o) }
}

// serveDatasets serves datasets until ctx ends or, on stdio, the client
// disconnects.
func (v *invocation) serveDatasets(ctx context.Context, o *datasetsFlags) (err error) {
	log := slog.New(terminal.NewHandler(terminal.NewLines(v.stderr, nil), logLevel(o.level)))
	host, port := "", 0
	if o.transport == "http" {
		if host, port, err = v.listener(o.addr, o.token); err != nil {
			return err
		}
	}
	embedders, err := o.model.embedders(v)
	if err != nil {
		return err
	}
	r, err := dataset.New(dataset.Options{Dir: o.dir, Log: log, Embedders: embedders, Explain: explainModel})
	if err != nil {
		return err
	}
	names := datasetmcp.Names(o.names)
	server := mcpserver.New(mcpserver.Options{
		Name: "knowhow-datasets", Title: "knowhow datasets", Version: version(),
		Instructions: datasetmcp.Instructions(names), Revision: mcpserver.Revision(o.revision), Log: log,
	})
	datasetmcp.Register(server, datasetmcp.Options{Datasets: r, Names: names})

	watchCtx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { r.Watch(watchCtx) })
	if o.transport == "stdio" {
		return v.serveStdio(ctx, server)
	}
	return v.serveHTTP(ctx, httpService{
		host: host, port: port, path: mcpPath,
		guard: httpguard.Options{
			Token: o.token, AllowedHosts: o.hosts, AllowedOrigins: o.origins, Refuse: mcpserver.Refuse,
			Routes: []httpguard.Route{server.HTTP(mcpserver.HTTPOptions{}).Route(mcpPath)},
		},
		ready: func(url string) {
			fmt.Fprint(v.stderr, snippets("datasets", url, tokenVariable("KNOWHOW_TOKEN", o.token)))
			if names == datasetmcp.Dotted {
				fmt.Fprint(v.stderr, "Claude Desktop, Codex and Copilot refuse the dots in the names of the tools: add --tool-names underscore for them.\n\n")
			}
		},
		log: log,
	})
}

// openDatasets reads the datasets of a folder. Without a model they are searched
// by words.
func (v *invocation) openDatasets(ctx context.Context, dir string, model *modelFlags) (r *dataset.Registry, err error) {
	o := dataset.Options{Dir: dir, Explain: explainModel}
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

// listCommand lists the datasets.
func listCommand(v *invocation, f *flagSet) func(context.Context) error {
	var dir string
	var asJSON bool
	datasetsDirFlag(f, &dir)
	jsonFlag(f, &asJSON)
	return func(ctx context.Context) error {
		r, err := v.openDatasets(ctx, dir, nil)
		if err != nil {
			return err
		}
		infos, err := r.List(ctx)
		switch {
		case err != nil:
			return err
		case asJSON:
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
}

// noDatasets prints what to do if there is no dataset.
func (v *invocation) noDatasets(r *dataset.Registry) error {
	_, err := fmt.Fprintf(v.stderr, "There are no datasets in %s. Create one with: %s datasets create --id ID --source FOLDER\n",
		sanitize.Escape(r.Dir()), v.Program)
	return err
}

// datasetSearchCommand searches datasets.
func datasetSearchCommand(v *invocation, f *flagSet) func(context.Context) error {
	var dir, ids, query string
	var asJSON bool
	var topK int
	var model modelFlags
	datasetsDirFlag(f, &dir)
	topKFlag(f, &topK, "number of results, from 1 to 100; by default that of the dataset")
	jsonFlag(f, &asJSON)
	model.define(f, searchModelHelp)
	f.Operand(&ids, "ID")
	f.Text(&query, "QUERY")
	return func(ctx context.Context) error {
		q := dataset.Query{Datasets: strings.Split(ids, ","), Text: query, TopK: topK}
		if slices.Contains(q.Datasets, "") {
			return v.usagef("ID: got %q, want ids of datasets, separated by commas", ids)
		}
		r, err := v.openDatasets(ctx, dir, &model)
		if err != nil {
			return err
		}
		start := time.Now()
		found, err := r.Search(ctx, q)
		switch {
		case err != nil:
			return v.unknownDataset(err)
		case asJSON:
			return v.printJSON(datasetmcp.SearchResult(q, found, time.Since(start)))
		}
		return v.printHits(found, len(q.Datasets) > 1)
	}
}

// printedSnippet is how many characters of a passage are printed for people.
const printedSnippet = 300

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
		b.WriteString(screen.Wrap(fmt.Sprintf("%d. %s (%s %.2f)", i+1, sanitize.Escape(h.Title), found.Kind, h.Score), ""))
		b.WriteString(screen.Wrap(sanitize.Escape(where)+"\n"+sanitize.Short(h.Snippet, printedSnippet, 4*printedSnippet), "   "))
	}
	return screen.Show(b.String())
}

// checkCommand checks datasets.
func checkCommand(v *invocation, f *flagSet) func(context.Context) error {
	var dir, id string
	var asJSON bool
	var model modelFlags
	datasetsDirFlag(f, &dir)
	jsonFlag(f, &asJSON)
	model.define(f, searchModelHelp)
	f.Optional(&id, "ID")
	return func(ctx context.Context) error {
		r, err := v.openDatasets(ctx, dir, &model)
		if err != nil {
			return err
		}
		checks, err := r.Check(ctx, id)
		if err != nil {
			return v.unknownDataset(err)
		}
		bad := 0
		for _, c := range checks {
			if c.Failed() {
				bad++
			}
		}
		if asJSON {
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
			return &hintError{fmt.Errorf("%s cannot be searched", terminal.Plural(bad, "dataset")), "Correct what is marked as error, and check again."}
		}
		return nil
	}
}
