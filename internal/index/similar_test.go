package index_test

import (
	"fmt"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
)

// A result lists words that are similar to those of a plain query that no
// document has. They come from the searched labels alone, and nothing is matched
// by them.
func TestDidYouMean(t *testing.T) {
	x := open(t, t.TempDir())
	for i := range 5 {
		put(t, x, doc("a", fmt.Sprint(i, ".md"), "Note", "The connection uses a certificate of the server."))
	}
	put(t, x, doc("a", "rare.md", "Note", "The connector sees max_connections and a severe delay."),
		doc("b", "b.md", "Note", "connektion"))
	put(t, x, doc("a", "gone.md", "Note", "certifikate"))
	if err := x.Apply(t.Context(), []document.Change{{Delete: &document.Ref{Label: "a",
		Path: "gone.md"}}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text   string
		labels []string
		want   []string
		total  int
	}{
		{"certficate", nil, []string{"certificate"}, 0},
		{"certifciate", nil, []string{"certificate"}, 0},
		{"connecton", nil, []string{"connection", "connector", "connections"}, 0},
		{"connekton", []string{"a"}, []string{"connection", "connector"}, 0},
		{"connekton", []string{"b"}, []string{"connektion"}, 0},
		{"certificates", nil, nil, 5},
		{"srver", nil, []string{"server"}, 0},
		{"xerver", nil, nil, 0},
		{"srv", nil, nil, 0},
		{"serv3r", nil, nil, 0},
		{"max_conections", nil, []string{"connections", "connection"}, 0},
		{"the certficate of a server", nil, []string{"certificate"}, 5},
		{"certficate server", nil, []string{"certificate"}, 5},
		{"certficate AND server", nil, nil, 0},
	} {
		p, err := search.Relax(t.Context(), x, search.Query{Text: query.MustParse(tt.text), Labels: tt.labels, Num: 1})
		if err != nil {
			t.Fatalf("Search(%q) = %v", tt.text, err)
		}
		if diff := cmp.Diff(tt.want, p.DidYouMean); diff != "" || p.Total != tt.total {
			t.Errorf("Search(%q) has %d documents, want %d; words (-want +got):\n%s", tt.text, p.Total, tt.total, diff)
		}
	}
}

// The word that is most similar to one that no document has counts in the ranking,
// but finds no documents.
func TestSimilarWordsRank(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x,
		doc("a", "backup.md", "Note", "Note the server and the default of its backups, and the default of the server."),
		doc("a", "limit.md", "Note", "Beside other values, a server that is new has a default for its connections."),
		doc("a", "connections.md", "Note", "Connections of clients."))
	p, err := x.Search(t.Context(), search.Query{Text: query.MustParse("server conections default"), Num: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range p.Hits {
		got = append(got, h.Path)
	}
	if diff := cmp.Diff([]string{"limit.md", "backup.md"}, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}
