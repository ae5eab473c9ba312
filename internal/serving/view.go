package serving

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/federated"
	"github.com/knowhow-mcp/knowhow/internal/search/scope"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/site"
	"github.com/knowhow-mcp/knowhow/internal/source"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

// A view is the part of the server that a caller may read. To the caller it looks like
// a server of these sources alone.
type view struct {
	*Server
	caller    *access.Caller
	sources   []document.Source
	documents scope.Service // of the sources
	fess      http.Handler  // the Fess API over documents

	latestStatus latestStatus
}

// view returns what a caller may read.
func (s *Server) view(c *access.Caller) *view {
	v := &view{Server: s, caller: c, sources: slices.DeleteFunc(slices.Clone(s.o.Sources),
		func(src document.Source) bool { return !s.readable(c, src) })}
	v.documents = v.over(v.sources)
	v.fess = fessserver.New(fessserver.Options{Backend: v.documents, Prefix: fessPath, Log: s.o.Log})
	return v
}

// readable reports whether a source exists for a caller: whether the caller may read its
// label or, of notes, collections that may be in it. Only the notes in collections that
// the caller may read are documents of it.
func (s *Server) readable(c *access.Caller, src document.Source) bool {
	kind, collection := source.KindOf(src.Path)
	switch {
	case c.MayRead(src.Label):
		return true
	case kind != source.Notes:
		return false
	case collection != "":
		return c.MayRead(collection)
	}
	labels := Labels(s.o.Sources)
	return slices.ContainsFunc(c.Read, func(l string) bool { return !slices.Contains(labels, l) })
}

// over returns the documents of some of the sources of the view.
func (v *view) over(sources []document.Source) scope.Service {
	own := federated.Member{Labels: Labels(sources)} // in the data folder
	var asked []federated.Member
	for _, src := range sources {
		if service := v.o.Asked[src.Label]; service != nil {
			one := []string{src.Label}
			asked = append(asked, federated.Member{Labels: one, Sources: one, Service: service})
		} else {
			own.Sources = append(own.Sources, src.Label)
		}
	}
	labels, notes := v.stored(sources)
	documents := scope.Service(scope.WithNotes(v.o.Folder.Service(), labels, notes))
	if asked != nil {
		own.Service = documents
		documents = federated.New(federated.Options{Members: append([]federated.Member{own}, asked...),
			Timeout: v.o.SourceTimeout, Log: v.o.Log})
	}
	return recorded{documents, Labels(sources)}
}

// stored returns what the data folder has of sources: the labels of which it has all
// documents, and the notes of the others.
func (v *view) stored(sources []document.Source) (labels []string, notes []scope.Notes) {
	var of []scope.Notes // come first: a collection belongs to the source that has its label
	for _, src := range sources {
		switch kind, collection := source.KindOf(src.Path); kind {
		case source.Indexed:
			labels = append(labels, src.Label) // with the notes of the collection that has the label
		case source.Notes:
			notes = append(notes, scope.Notes{Label: src.Label, Collections: v.collections(collection)})
		default: // the notes of that collection, but no files: another process may have indexed a folder with the label
			of = append(of, scope.Notes{Label: src.Label, Collections: v.collections(src.Label)})
		}
	}
	return labels, append(of, notes...)
}

// collections returns the function that lists the label of a collection, or of all that
// users have written in if it is "", without those that the caller may not read: the right
// to the label of a source is none to the collections in it.
func (v *view) collections(one string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		labels := []string{one}
		if one == "" {
			written, err := v.o.Folder.WrittenLabels(ctx)
			if err != nil {
				return nil, err
			}
			labels = slices.Clone(written)
		}
		return slices.DeleteFunc(labels, func(c string) bool { return !v.caller.MayRead(c) }), nil
	}
}

// A recorded service adds what is asked for and what is found to the record of the
// call.
type recorded struct {
	scope.Service
	labels []string // of its documents
}

// asked records the labels of a call; nil means all.
func (r recorded) asked(ctx context.Context, labels []string) {
	if labels == nil {
		labels = r.labels
	}
	audit.From(ctx).AddLabels(labels...)
}

// Search implements [search.Service].
func (r recorded) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	r.asked(ctx, q.Labels)
	r.typed(ctx, q.Text)
	page, err := r.Service.Search(ctx, q)
	if err == nil {
		for _, h := range page.Hits {
			audit.From(ctx).AddDocuments(h.ID)
		}
	}
	return page, err
}

// typed records the first text that is searched for: a search may be repeated with
// another form of it.
func (recorded) typed(ctx context.Context, t query.Text) {
	audit.From(ctx).SetQuery(cmp.Or(t.Typed(), t.String()))
}

// Find implements [search.Service].
func (r recorded) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	h, err := r.Service.Find(ctx, id, labels)
	r.found(ctx, id, labels, err)
	return h, err
}

// found records a document that was looked up.
func (r recorded) found(ctx context.Context, id string, labels []string, err error) {
	r.asked(ctx, labels)
	if err == nil {
		audit.From(ctx).AddDocuments(id)
	}
}

// ReadText implements [search.Service].
func (r recorded) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	text, err := r.Service.ReadText(ctx, id, labels, off, n)
	r.found(ctx, id, labels, err)
	return text, err
}

// Sections implements [search.Outliner].
func (r recorded) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	sections, err := r.Service.Sections(ctx, id, labels)
	r.found(ctx, id, labels, err)
	return sections, err
}

// Suggest implements [search.Service].
func (r recorded) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	r.asked(ctx, q.Labels)
	audit.From(ctx).SetQuery(q.Prefix)
	return r.Service.Suggest(ctx, q)
}

// PopularWords implements [search.Service].
func (r recorded) PopularWords(ctx context.Context, q search.WordsQuery) ([]string, error) {
	r.asked(ctx, q.Labels)
	return r.Service.PopularWords(ctx, q)
}

// maxDescription is the maximum length of the description of several sources, in
// characters. With it, the instructions of a server stay within what clients show.
const maxDescription = 1000

// domain returns the domain of all sources.
func (v *view) domain() searchmcp.Domain {
	d := searchmcp.Domain{ID: "all", Name: "all"}
	switch len(v.sources) {
	case 0:
	case 1:
		d = sourceDomain(v.sources[0])
	default:
		about := make([]string, len(v.sources))
		for i, src := range v.sources {
			about[i] = src.Label
			if src.Description != "" {
				about[i] += " (" + src.Description + ")"
			}
		}
		d.Description = "Documents of the sources " + strings.Join(about, ", ")
		if runes := []rune(d.Description); len(runes) > maxDescription {
			d.Description = string(runes[:maxDescription-1]) + "…"
		}
	}
	d.ID, d.Name = cmp.Or(v.o.Domain, d.ID), cmp.Or(v.o.DomainName, v.o.Domain, d.Name)
	return d
}

// sourceDomain returns the domain of one source.
func sourceDomain(src document.Source) searchmcp.Domain {
	d := searchmcp.Domain{ID: source.Domain(src.Label), Name: src.Label, Label: src.Label, Description: src.Description}
	if d.Description == "" {
		what, name := "Documents in the folder ", filepath.Base(src.Path)
		kind, rest := source.KindOf(src.Path)
		switch {
		case kind == source.Notes && rest == "":
			what, name = "Notes and files that users and agents have added", ""
		case kind == source.Notes:
			what, name = "Notes and files that users and agents have added to the collection ", rest
		case kind == source.Datasets:
			what = "Datasets in the folder "
		case kind == source.Fess:
			what, name = "Documents of the Fess domain ", src.Label
		}
		if kind != source.Indexed {
			d.Description = what + name
			return d
		}
		if r, err := repository.Parse(src.Path); err == nil {
			what, name = "Documents in the repository ", r.Name()
		} else if site.Is(src.Path) {
			what, name = "Pages of the web site ", src.Path
		} else if info, err := os.Stat(src.Path); err == nil && !info.IsDir() {
			what = "The file "
		}
		d.Description = what + name
	}
	return d
}

// pageSize is the default number of hits on a page.
const pageSize = 8

// jobThreshold is the time after which a call becomes a job.
const jobThreshold = 2 * time.Second

// MCP implements [users.View]. The name is the label of the only source, or "" for all
// sources.
func (v *view) MCP(label string) *users.MCP {
	d, documents, tools, path := v.domain(), v.documents, v.o.Tools, MCPPath
	if label != "" {
		i := slices.IndexFunc(v.sources, func(src document.Source) bool { return src.Label == label })
		if i < 0 {
			return nil
		}
		d, documents, tools, path = sourceDomain(v.sources[i]), v.over(v.sources[i:i+1]), nil, path+"/"+label
	}
	o := searchmcp.Options{
		Domain:     d,
		Backend:    documents,
		Wording:    searchmcp.OfFolders,
		Groups:     v.groups(tools != nil),
		Owner:      v.caller.Owner(),
		NameSource: d.Label == "",
		PageSize:   pageSize,
		Log:        v.o.Log,
	}
	m := &users.MCP{Path: path}
	if slices.Contains(o.Groups, searchmcp.FessTools) {
		o.Jobs = job.New(job.Options{Threshold: jobThreshold, Log: v.o.Log})
		m.Close = o.Jobs.Close
	}
	found := searchmcp.New(o)
	var instructions []string
	if len(o.Groups) > 0 {
		instructions = append(instructions, found.Instructions())
	}
	if tools != nil {
		instructions = append(instructions, kbmcp.Instructions(v.caller))
	}
	m.Options = mcpserver.Options{
		Name: "knowhow", Title: "knowhow: " + d.Name, Version: v.o.Version,
		Instructions: strings.Join(instructions, "\n\n"),
		Domain:       &mcpserver.Domain{ID: d.ID, Name: d.Name, Description: d.Description, LabelFilter: d.Label},
		Revision:     mcpserver.Latest,
		Log:          v.o.Log,
		Header:       v.o.Header,
	}
	m.Add = func(server *mcpserver.Server) {
		found.Register(server)
		if tools != nil {
			all := *tools
			all.Base, all.Version, all.Caller = v.base, v.o.Version, v.caller
			kbmcp.Register(server, all)
		}
	}
	return m
}

// groups returns the groups of tools over documents, never nil. withKB reports whether
// there are tools of the knowledge base beside them.
func (v *view) groups(withKB bool) []searchmcp.Group {
	switch {
	case v.caller != nil && len(v.sources) == 0:
	case len(v.o.Groups) > 0:
		return v.o.Groups
	case !withKB:
		return []searchmcp.Group{searchmcp.SearchTools}
	}
	return []searchmcp.Group{}
}

// MCP returns the MCP server over all sources, for a server without users.
func (s *Server) MCP() *mcpserver.Server { return s.users.User(context.Background()).MCP("") }
