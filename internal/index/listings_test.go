package index_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A list of names counts less than a text, except at the beginning of a document.
func TestListingsCountLess(t *testing.T) {
	begin := "Beginning of the page.\n\n"
	names := strings.Repeat("nistp256-cert, nistp384-cert, nistp521-cert, rsa-cert, dsa-cert, x509-cert, ", 4)
	text := strings.Repeat("Keys of the kind nistp256 are for the host and not for the user of it. ", 4) +
		strings.Repeat("They are made with the program, and they are kept in a file. ", 5)
	second := func(path, text string) document.Document {
		d := doc("a", path, "Note", begin+text)
		d.Lang = "en"
		d.Chunks = []document.Chunk{{Length: len(begin)}, {Offset: len(begin), Length: len(text)}}
		return d
	}
	first := func(path, text string) document.Document {
		d := doc("a", path, "Note", text)
		d.Lang = "en"
		return d
	}
	for _, tt := range []struct {
		name string
		docs []document.Document
		want []string
	}{
		{"a list", []document.Document{second("list.md", names), second("text.md", text)},
			[]string{"text.md", "list.md"}},
		{"a list at the beginning", []document.Document{first("list.md", names), first("text.md", text)},
			[]string{"list.md", "text.md"}},
	} {
		x := open(t, t.TempDir())
		put(t, x, tt.docs...)
		p, err := x.Search(t.Context(), search.Query{Text: query.MustParse("nistp256"), Num: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range p.Hits {
			got = append(got, h.Path)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: paths (-want +got):\n%s", tt.name, diff)
		}
	}
}
