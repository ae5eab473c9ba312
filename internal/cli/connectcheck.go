package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const (
	// serverTime is the time limit for the start of a server, and for one answer.
	serverTime = 30 * time.Second

	// indexTime is how long the check waits for documents that are being indexed.
	indexTime = 30 * time.Second

	// pollEvery is the time between two questions whether they are.
	pollEvery = 200 * time.Millisecond
)

// pinned are the variables whose values an entry contains if the server needs them.
// The check starts a server without those of the shell.
var pinned = []string{"KNOWHOW_DATA", "KB_DATA_DIR", "KNOWHOW_DATASETS", "KNOWHOW_TRANSPORT", "XDG_DATA_HOME"}

// A found is what a server answered.
type found struct {
	tools      int
	what       string // for example "12 documents"; "" if it is not known
	query      string
	hits       int
	unfinished string // what is still being indexed; "" if nothing is
	took       time.Duration
}

// String describes it in one line.
func (f found) String() string {
	var b strings.Builder
	if f.what != "" {
		b.WriteString(f.what + ", ")
	}
	fmt.Fprintf(&b, "%s, %.1f s; a search for %q found %s", terminal.Plural(f.tools, "tool"), f.took.Seconds(), f.query,
		terminal.Plural(f.hits, "result"))
	if f.hits == 0 {
		b.WriteString(", which is an answer")
	}
	return b.String()
}

// checkServer starts a server as a client does, or connects to one that runs, and
// searches once. progress is called with the number of documents that are indexed.
func (v *invocation) checkServer(ctx context.Context, t target, progress func(done, total int)) (f found, err error) {
	s := mcpsettings.Server{ID: t.server.Name, Transport: mcpsettings.Stdio, Command: t.server.Command,
		Args: t.server.Args, Env: map[string]string{}}
	for _, name := range pinned {
		s.Env[name] = "" // an empty variable counts as not set
	}
	for _, e := range t.server.Env {
		s.Env[e.Name] = e.Value
	}
	if t.server.URL != "" {
		s = mcpsettings.Server{ID: t.server.Name, Transport: mcpsettings.HTTP, URL: t.server.URL}
		if name := t.server.TokenEnv; name != "" {
			token := v.get(name)
			if token == "" {
				return f, &hintError{fmt.Errorf("the server was not asked, because the variable %s is not set here", name),
					"Set it and repeat the command, to check the connection."}
			}
			s.Headers = map[string]string{"Authorization": "Bearer " + token}
		}
	}
	pool := mcpclient.New(mcpclient.Options{Servers: []mcpsettings.Server{s}, Version: version(),
		CallTimeout: serverTime, ConnectTimeout: serverTime})
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), disconnectTime)
		defer cancel()
		err = errors.Join(err, pool.Close(ending))
	}()
	start := time.Now()
	catalog, err := pool.Catalog(ctx, s.ID)
	if err != nil {
		return f, err
	}
	f.tools, f.query = len(catalog.Tools), t.query
	q := &questioner{pool: pool, server: s.ID, tools: catalog.Tools}
	err = q.search(ctx, &f, progress)
	f.took = time.Since(start)
	return f, err
}

// A questioner calls the tools of one server.
type questioner struct {
	pool   *mcpclient.Pool
	server string
	tools  []mcpclient.Tool
}

// has reports whether the server has a tool.
func (q *questioner) has(name string) bool {
	return slices.ContainsFunc(q.tools, func(t mcpclient.Tool) bool { return t.Name == name })
}

// An answer is what the tools of the servers answer, as far as it is used here.
type answer struct {
	Total   *int `json:"total"`
	Results []struct {
		Title string `json:"title"`
	} `json:"results"`
	Indexing  *struct{ Done, Total int }    `json:"indexing"`
	Datasets  []struct{ ID, Status string } `json:"datasets"`
	Documents struct {
		Total int `json:"total"`
	} `json:"documents"`
}

// call calls a tool and reads the JSON of its answer.
func (q *questioner) call(ctx context.Context, tool string, arguments map[string]any) (a answer, err error) {
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return a, err
	}
	raw, err := q.pool.Call(ctx, q.server, "tools/call", params)
	if err != nil {
		return a, err
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) == 0 {
		return a, fmt.Errorf("the answer of %s is not one of a tool", tool)
	}
	text := result.Content[0].Text
	if result.IsError {
		return a, fmt.Errorf("%s failed: %s", tool, sanitize.Short(text, 300, 1200))
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return a, fmt.Errorf("the answer of %s is not JSON, want a server of this program", tool)
	}
	return a, nil
}

// search finds out what the server has, and searches once.
func (q *questioner) search(ctx context.Context, f *found, progress func(done, total int)) error {
	documents := slices.IndexFunc(q.tools, func(t mcpclient.Tool) bool {
		return t.Name == "search" || strings.HasSuffix(t.Name, "_search") && t.Name != "kb_search" &&
			t.Name != "knowledge_search"
	})
	switch {
	case documents >= 0:
		return q.documents(ctx, f, q.tools[documents].Name, progress)
	case q.has("kb_search") && q.has("kb_status"):
		a, err := q.call(ctx, "kb_status", map[string]any{})
		if err != nil {
			return err
		}
		f.what = terminal.Plural(a.Documents.Total, "document")
		return q.once(ctx, f, "kb_search", map[string]any{})
	case q.has("knowledge_search"), q.has("knowledge.search"):
		search, list := "knowledge_search", "knowledge_list_datasets"
		if !q.has(search) {
			search, list = "knowledge.search", "knowledge.listDatasets"
		}
		a, err := q.call(ctx, list, map[string]any{})
		if err != nil {
			return err
		}
		f.what = terminal.Plural(len(a.Datasets), "dataset")
		i := slices.IndexFunc(a.Datasets, func(d struct{ ID, Status string }) bool { return d.Status == "ready" })
		if i < 0 {
			return errors.New("no dataset can be searched; make one with: knowhow datasets create")
		}
		return q.once(ctx, f, search, map[string]any{"dataset": a.Datasets[i].ID})
	}
	return errors.New("the server has no tool for searches, want a server of this program")
}

// documents waits until the documents are indexed, and searches for a word of one of
// them.
func (q *questioner) documents(ctx context.Context, f *found, tool string, progress func(done, total int)) error {
	var a answer
	ticks := time.NewTicker(pollEvery)
	defer ticks.Stop()
	for until := time.Now().Add(indexTime); ; {
		var err error
		if a, err = q.call(ctx, tool, map[string]any{"query": "*:*"}); err != nil {
			return err
		}
		if a.Indexing == nil {
			break
		}
		progress(a.Indexing.Done, a.Indexing.Total)
		if time.Now().After(until) {
			f.unfinished = fmt.Sprintf("%s of %s documents are indexed; the client continues",
				thousands(a.Indexing.Done), thousands(a.Indexing.Total))
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticks.C:
		}
	}
	progress(0, 0)
	if a.Total != nil {
		f.what = thousands(*a.Total) + strings.TrimLeft(terminal.Plural(*a.Total, "document"), "0123456789")
	}
	for _, r := range a.Results {
		if word := longestWord(r.Title); word != "" {
			f.query = word
			break
		}
	}
	return q.once(ctx, f, tool, map[string]any{})
}

// once searches for f.query.
func (q *questioner) once(ctx context.Context, f *found, tool string, arguments map[string]any) error {
	arguments["query"] = f.query
	a, err := q.call(ctx, tool, arguments)
	if err != nil {
		return err
	}
	f.hits = len(a.Results)
	if a.Total != nil {
		f.hits = *a.Total
	}
	return nil
}

// longestWord returns the longest word of a text of at most 40 letters, or "".
func longestWord(text string) (longest string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if n := utf8.RuneCountInString(word); n > utf8.RuneCountInString(longest) && n <= 40 {
			longest = word
		}
	}
	return longest
}
