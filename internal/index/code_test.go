package index_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// pathsOf returns the paths of the hits for a text as it is typed.
func pathsOf(t *testing.T, svc search.Searcher, typed string) (paths []string) {
	t.Helper()
	r, err := query.Read(typed)
	if err != nil {
		t.Fatalf("Read(%q) = %v", typed, err)
	}
	p, err := search.Relax(t.Context(), svc, search.Query{Text: r, Num: 10})
	if err != nil {
		t.Fatalf("Search(%q) = %v", typed, err)
	}
	for _, h := range p.Hits {
		paths = append(paths, h.Path)
	}
	return paths
}

// Identifiers are found as a whole and by their parts, and a document with the
// whole comes first.
func TestIdentifiers(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x,
		doc("a", "class.md", "Class", "The call InvoicePrinter.printAll does it."),
		doc("a", "words.md", "Words", "An invoice goes to the printer, all of them print. Print all the invoices."),
		doc("a", "parse.md", "Parse", "Then parseHTTPResponse2 reads it, and snake_case is a style."),
		doc("a", "reads.md", "Reads", "To parse an HTTP response is hard. The snake is in its case."))
	for _, tt := range []struct {
		typed string
		want  []string
	}{
		{"InvoicePrinter", []string{"class.md", "words.md"}},
		{"InvoicePrinter.printAll", []string{"class.md", "words.md"}},
		{"what does InvoicePrinter.printAll do?", []string{"class.md", "words.md"}},
		{"printer", []string{"class.md", "words.md"}},
		{`"invoiceprinter printall does"`, []string{"class.md"}},
		{`"call printer"`, []string{"class.md"}},
		{"parseHTTPResponse2", []string{"parse.md", "reads.md"}},
		{"HTTP response", []string{"parse.md", "reads.md"}},
		{"snake_case", []string{"parse.md", "reads.md"}},
	} {
		got := pathsOf(t, x, tt.typed)
		if tt.typed == "printer" || tt.typed == "HTTP response" { // parts, in any order
			slices.Sort(got)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("hits for %q = %q, want %q", tt.typed, got, tt.want)
		}
	}
}

// Of documents with the same words, those with the signs of the query come first.
func TestSignsOfQueries(t *testing.T) {
	x := open(t, t.TempDir())
	signs := []string{"C++", "C#", "F", ".NET", "--amend", "-Xmx", "%02d", "<VirtualHost>", "a::b", "$HOME"}
	for i, s := range signs {
		words := "The letters c, f, net, amend, xmx, 02d, virtualhost, a, b and home are here"
		put(t, x, doc("a", fmt.Sprint(i, ".md"), "Note", words+", and the sign "+s+" too. "+words+"."))
	}
	for _, tt := range []struct{ typed, want string }{
		{"how do I use C++?", "C++"},
		{"how do I use C# here?", "C#"},
		{"the sign .NET is here", ".NET"},
		{"what does the letters --amend do", "--amend"},
		{"the letters -Xmx", "-Xmx"},
		{"the letters with %02d or so", "%02d"},
		{"letters of a <VirtualHost> block", "<VirtualHost>"},
		{"what does :: mean in letters", "a::b"},
		{"where is $HOME in letters", "$HOME"},
	} {
		if got := pathsOf(t, x, tt.typed); len(got) == 0 || got[0] != fmt.Sprint(slices.Index(signs, tt.want), ".md") {
			t.Errorf("hits for %q = %q, want %q first", tt.typed, got, tt.want)
		}
	}
}
