package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestPartial checks that a search whose time is over returns what it has
// found.
func TestPartial(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	for i := range 3 {
		apply(t, x, simple(fmt.Sprint(i), 3))
	}
	x.searchTime = 0
	for _, text := range []string{"happy", "happy OR paragraph", "happy paragraph of", "p* NOT x", "hap~2",
		`"of happy"`} {
		p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 10})
		if err != nil || !p.Partial || !p.AtLeast {
			t.Errorf("Search(%q) without time = %+v, %v, want a partial result", text, p, err)
		}
	}
	x.searchTime = maxSearchTime
	if p, err := x.Search(t.Context(), search.Query{Text: query.MustParse("happy"), Num: 10}); err != nil ||
		p.Partial || p.Total != 3 {
		t.Errorf("Search(happy) = %+v, %v, want all of 3 documents", p, err)
	}
}

// TestRepeatedWildcards checks that a condition which a query repeats takes no
// longer than once.
func TestRepeatedWildcards(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	apply(t, x, large(300)...)
	apply(t, x, simple("one", 3))
	for _, text := range []string{strings.Repeat("*a* ", 1000), strings.Repeat("(p* NOT *x1) OR ", 300) + "z",
		strings.Repeat("hap~2^3 ", 800)} {
		p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 10})
		if err != nil || p.Partial || p.Total == 0 {
			t.Errorf("Search(%.20q...) = %+v, %v, want all documents", text, p, err)
		}
	}
}

// TestExpensive checks that many expensive searches at the same time do not
// keep others waiting, whatever they do.
func TestExpensive(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	apply(t, x, simple("one", 3))
	for range cap(x.expensive) {
		x.expensive <- struct{}{}
	}
	if n := total(t, x, "happy"); n != 1 {
		t.Errorf("Search(happy) = %d, want 1", n)
	}
	for range cap(x.expensive) {
		<-x.expensive
	}
	for _, text := range []string{strings.Repeat("hap~1 ", 200), strings.Repeat("p* ", 200),
		strings.Repeat("*a*b* OR ", 200) + "happy", strings.Repeat("happy ", 1000)} {
		if _, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 10}); err != nil {
			t.Errorf("Search(%.20q...) = %v", text, err)
		}
	}
}

// TestManyWords checks that a condition on words finds all words that match it,
// however many there are.
func TestManyWords(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	letters := func(n int) string { // three letters
		return string([]byte{byte('a' + n/676%26), byte('a' + n/26%26), byte('a' + n%26)})
	}
	const docs = 2600
	var batch []document.Change
	for i := range docs {
		c := simple(fmt.Sprint(i), 1)
		c.Put.Text = fmt.Sprintf("common qx%sx happiness%s", letters(i), letters(i))
		if i < 200 {
			c.Put.Text += " abcdef" + letters(i)[2:] + letters(i)[1:2]
		}
		c.Put.Chunks[0].Length = len(c.Put.Text)
		if batch = append(batch, c); len(batch) == 200 {
			apply(t, x, batch...)
			batch = nil
		}
	}
	if len(batch) > 0 {
		apply(t, x, batch...)
	}
	for text, want := range map[string]int{
		"qx*":                 docs,
		"qx*x":                docs,
		"q?*x":                docs,
		"*x* qx???x":          docs,
		"common NOT qx*x":     0,
		"common NOT qx?a?":    docs,
		"happiness*":          docs,
		`"common qx*"`:        0, // an asterisk in quotes is no wildcard
		"abcdef~2":            200,
		"common NOT abcdef~2": docs - 200,
		"content:qx*x":        docs,
		"title:qx*x":          0,
	} {
		p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 10})
		if err != nil || p.Total != want || p.Partial || len(p.Hits) != min(want, 10) {
			t.Errorf("Search(%s) = %+v, %v, want %d documents", text, p, err, want)
		}
	}
}

// TestBoosts checks that no boost, however great, loses documents.
func TestBoosts(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	apply(t, x, simple("one", 2), simple("two", 2))
	nested := "happy"
	for range 20 {
		nested = "(" + nested + "^1000000)"
	}
	for _, text := range []string{"happy^100000000000000000000000000000000000000000", "happy^0", nested, "(" +
		nested + " OR one)^9999999 title^0"} {
		p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 10})
		if err != nil || p.Total != 2 || len(p.Hits) != 2 {
			t.Errorf("Search(%s) = %+v, %v, want 2 documents", text, p, err)
		}
		for _, h := range p.Hits {
			if math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
				t.Errorf("Search(%s): a hit has the score %v", text, h.Score)
			}
		}
	}
}

// TestWaiting checks that a search does not wait longer for other searches than
// it may take itself, and that the error says what to do. A client that has gone
// does not wait.
func TestWaiting(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	apply(t, x, simple("one", 3))
	for range cap(x.expensive) {
		x.expensive <- struct{}{}
	}
	x.waitTime = 10 * time.Millisecond
	for _, text := range []string{"*a*", "p*", "content:p* of", strings.Repeat("happy ", 200),
		strings.Repeat("hap~1 ", 20)} {
		_, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 10})
		if !errors.Is(err, errkind.Busy) || !strings.Contains(err.Error(), "try again") {
			t.Errorf("Search(%.20q) = %v, want an error of kind Busy that says what to do", text, err)
		}
	}
	x.waitTime = time.Hour
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Search(gone, search.Query{Text: query.MustParse("*a*")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Search() of a client that has gone = %v, want context.Canceled", err)
	}
	for range cap(x.expensive) {
		<-x.expensive
	}

	// Searches that are not expensive wait for a connection only.
	var conns []*sql.Conn
	for range x.db.Readers() {
		c, err := x.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	x.waitTime = 10 * time.Millisecond
	if _, err := x.Search(t.Context(), search.Query{Text: query.MustParse("happy")}); !errors.Is(err, errkind.Busy) {
		t.Errorf("Search() without a free connection = %v, want an error of kind Busy", err)
	}
	for _, c := range conns {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	x.waitTime = maxSearchTime
	if n := total(t, x, "happy"); n != 1 {
		t.Errorf("Search(happy) = %d, want 1", n)
	}
}
