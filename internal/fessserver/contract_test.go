package fessserver_test

import (
	"html"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// client returns our client of our server, over HTTP.
func client(t *testing.T, docs []document.Document, api string) *fess.Client {
	t.Helper()
	server := httptest.NewServer(fessserver.New(fessserver.Options{Backend: open(t, docs), Prefix: "/fess"}))
	t.Cleanup(server.Close)
	c, err := fess.New(fess.Options{BaseURL: server.URL + "/fess", API: api})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestContract runs the contract of package search through HTTP: our client over
// our server over the index.
func TestContract(t *testing.T) {
	for _, api := range []string{"v1", "v2"} {
		t.Run(api, func(t *testing.T) {
			searchtest.Run(t, searchtest.Options{
				Open: func(t *testing.T, docs []document.Document) search.Service {
					return client(t, docs, api)
				},
				NoTags:     true,
				NoPassages: true,
			})
		})
	}
}

// TestStoredCopy reads whole texts through our client.
func TestStoredCopy(t *testing.T) {
	docs := searchtest.Corpus()
	for _, api := range []string{"v1", "v2"} {
		c := client(t, docs, api)
		if _, err := c.Labels(t.Context()); err != nil { // finds the version
			t.Fatal(err)
		}
		for _, d := range docs {
			got, err := c.StoredCopy(t.Context(), d.ID, []string{d.Label})
			if err != nil {
				t.Errorf("%s: StoredCopy(%s) = %v", api, d.Path, err)
				continue
			}
			if !strings.Contains(html.UnescapeString(string(got.Data)), "<pre>\n"+d.Text+"</pre>") {
				t.Errorf("%s: StoredCopy(%s) = %.200q, want it to contain %.200q", api, d.Path, got.Data, d.Text)
			}
		}
	}
}
