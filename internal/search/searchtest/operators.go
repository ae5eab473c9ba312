package searchtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Secrets returns documents of the labels finance and hr, with IDs that begin with
// them, in the words that [OperatorQuery] uses.
func Secrets() []document.Document {
	var docs []document.Document
	for i, text := range []string{"alpha", "beta", "alpha beta", "gamma", "alpha AND beta or not", "label hr finance",
		"(alpha)", "delta TO"} {
		for _, label := range []string{"finance", "hr"} {
			docs = append(docs, document.Document{ID: fmt.Sprintf("%s%d", label, i), Label: label, Title: text,
				Text: text + " " + label,
				URL:  "file:///" + label, Filename: "f", FileType: "txt", MIMEType: "text/plain",
				Modified: time.Unix(1_700_000_000, 0)})
		}
	}
	return docs
}

// pieces are what operator queries are made of, the words and the operators that are
// words first.
var pieces = []string{"alpha", "beta", "gamma", "nosuch", "alpha", "a", "AND", "OR", "NOT", "&&", "||", "+", "-", "!",
	"OR", "NOT",
	"(", ")", `"`, `\`, `\\`, ":", "*", "?", "~", "^", "^2", "~1", "[", "]", "{", "}", "/", "TO", "*:*", "label:hr",
	`label:"hr"`, "label:",
	"label:finance", "title:", "title:alpha", "-label:finance", "NOT label:finance", "allintitle:", "allinurl:",
	"[a TO b]", "{* TO *}",
	"content_length:[0 TO *]", "sort:", "sort:score.desc", "sort:nope", "(alpha OR", "beta)", `"alpha beta"`, "al*",
	"検索", "&", "|", "<b>", "%22", "\x00"}

// gaps stand between the pieces.
var gaps = []string{" ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", "", "", "  ", "\t", "\n", "\u3000",
	"\u00a0", "\r\n", "\u2003", "\v"}

// OperatorQuery returns a query of up to seven words and operators, which is often not
// a valid one.
func OperatorQuery(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(7) {
		piece := pieces[r.IntN(len(pieces))]
		if r.IntN(3) == 0 {
			piece = pieces[r.IntN(10)]
		}
		b.WriteString(piece + gaps[r.IntN(len(gaps))])
	}
	return b.String()
}

// corpusPieces are what queries for documents of the corpus are made of, the frequent
// ones first.
var corpusPieces = []string{"budget", "travel", "zeppelin", "walrus", "handbook", "nosuch", "AND", "OR", "NOT", "||",
	"&&",
	"+", "-", "!", "(", ")", `"`, `\`, `\\`, ":", "*", "?", "~", "^", "^2", "~1", "[", "]", "{", "}", "/", "TO", "&",
	"|", "a", "*:*",
	"label:hr", `label:"hr"`, "label:", "label:*", "label:finance", "-label:finance", "NOT label:finance", "title:",
	"title:handbook",
	"allintitle:", "allinurl:", "[a TO z]", "{* TO *}", "content_length:[0 TO *]", "timestamp:[* TO now]", "doc_id:*",
	"inurl:hr",
	"sort:", "sort:score.desc", "sort:nope", "(budget OR", "travel)", `"quarterly budget"`, "z*", "検索", "休暇", "<b>",
	"%22", "\x00"}

// CorpusQuery returns a query like [OperatorQuery] in the words of [Corpus], one in
// four with an operator at its end.
func CorpusQuery(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(7) {
		piece := corpusPieces[r.IntN(len(corpusPieces))]
		if r.IntN(3) == 0 {
			piece = corpusPieces[r.IntN(10)]
		}
		b.WriteString(piece + gaps[r.IntN(len(gaps))])
	}
	if r.IntN(4) == 0 {
		b.WriteString([...]string{" OR", " NOT", " ||", " AND"}[r.IntN(4)])
	}
	return b.String()
}

// An Isolation is a service that must not show some documents.
type Isolation struct {
	Service search.Service
	Labels  []string               // of every call
	Own     func(search.Hit) bool  // reports whether a hit may be shown
	Total   int                    // number of such documents
	Queries int                    // how many are sent
	After   func(text string) bool // called after each query; true ends the test; may be nil
}

// Run sends operator queries, as they are and as the tools send them, and checks that
// neither hits nor counts are of other documents. Half of the queries are repeated as
// [search.Relax] does. The documents of Own must be those with one label of [Secrets].
func (o Isolation) Run(t *testing.T) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	found, refused := 0, 0
	for i := range o.Queries {
		text := OperatorQuery(random)
		read := query.Parse
		if i%2 == 0 { // as the tools send it
			read = query.Read
		}
		asked, err := read(text)
		var p *search.Page
		if err == nil {
			p, err = o.search(t, asked, i)
		}
		switch {
		case errors.Is(err, errkind.Invalid):
			refused++
		case err != nil:
			t.Fatalf("Search(%q) = %v, want a page or an error of kind Invalid", text, err)
		default:
			o.check(t, text, p)
			if len(p.Hits) > 0 {
				found++
			}
		}
		if t.Failed() || o.After != nil && o.After(text) {
			return
		}
	}
	t.Logf("%d of %d queries found documents, %d were refused", found, o.Queries, refused)
	if found < o.Queries/10 || refused > o.Queries/2 {
		t.Errorf("of %d queries %d found documents and %d were refused: the test has no teeth", o.Queries, found,
			refused)
	}
}

// search sends the query with a number. Some queries ask for counts, too.
func (o Isolation) search(t *testing.T, text query.Text, i int) (*search.Page, error) {
	q := search.Query{Text: text, Labels: o.Labels, Num: 100}
	if i%8 < 2 {
		q.Facets = &search.Facets{Fields: []string{"label", "url"},
			Queries: []string{"label:hr", "label:finance", "alpha"}}
	}
	if i%4 < 2 {
		return search.Relax(t.Context(), o.Service, q)
	}
	return o.Service.Search(t.Context(), q)
}

// check checks a page.
func (o Isolation) check(t *testing.T, text string, p *search.Page) {
	t.Helper()
	for _, h := range p.Hits {
		if !o.Own(h) {
			t.Errorf("Search(%q) found %+v", text, h)
		}
	}
	if p.Total > o.Total || len(p.Hits) != p.Total {
		t.Errorf("Search(%q) found %d documents, %d of them hits, want all and at most %d", text, p.Total,
			len(p.Hits), o.Total)
	}
	if p.Facets == nil {
		return
	}
	counts := p.Facets.Queries
	for _, f := range p.Facets.Fields {
		if n := len(f.Counts); n > 1 {
			t.Errorf("Search(%q) counts %d values of %s, want those of one label", text, n, f.Name)
		}
		counts = append(counts, f.Counts...)
	}
	for _, c := range counts {
		if c.Count > p.Total {
			t.Errorf("Search(%q) counts %d of %q, want at most %d", text, c.Count, c.Value, p.Total)
		}
	}
}
