package fessbridge

import (
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// open returns a source with the label of a domain of a fake server, and what change
// makes of its configuration.
func open(t testing.TB, url, label string, change func(*fessconfig.Config)) *Source {
	t.Helper()
	c := fessconfig.New(url, label, "")
	if change != nil {
		change(c)
	}
	s, err := NewSource(SourceOptions{Config: c, Label: "ours", Version: "devel"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// members returns documents as those of a domain, and the same documents once more
// under another label.
func members(docs []document.Document) []document.Document {
	var all []document.Document
	for _, d := range docs {
		d.Label = "members"
		all = append(all, d)
		d.ID, d.Label = "other-"+d.ID, "others"
		all = append(all, d)
	}
	return all
}

func TestContract(t *testing.T) {
	for name, o := range map[string]fesstest.Options{
		"API v1":                       {SendContent: true},
		"API v2, below a path":         {SendContent: true, API: "v2", ContextPath: "/fess"},
		"a token":                      {SendContent: true, Token: "s3cret"},
		"small pages":                  {SendContent: true, MaxPageSize: 15},
		"small pages of configuration": {SendContent: true},
		"the whole index of a server":  {SendContent: true},
	} {
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, searchtest.Options{
				Open: func(t *testing.T, docs []document.Document) search.Service {
					label := "members"
					docs = members(docs)
					if name == "the whole index of a server" {
						label = ""
						for i := len(docs) - 1; i >= 0; i-- {
							if docs[i].Label == "others" {
								docs = append(docs[:i], docs[i+1:]...)
							}
						}
					}
					server := fesstest.New(t, docs, o)
					s := open(t, server.URL, label, func(c *fessconfig.Config) {
						c.FessAuth.AccessToken = o.Token
						if name == "small pages of configuration" {
							c.Limits.MaxPageSize = 7
						}
					})
					// A source knows the IDs of what it found.
					if _, err := s.Search(t.Context(), search.Query{Num: 100}); err != nil {
						t.Fatal(err)
					}
					return s
				},
				Served: func(d document.Document) document.Document {
					d.ID, d.Label = document.IDOf("ours", d.ID), "ours"
					return d
				},
				Label: "ours", NoTags: true, NoPassages: true, NoWritten: true,
			})
		})
	}
}
