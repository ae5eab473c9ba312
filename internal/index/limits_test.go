package index

import (
	"fmt"
	"strings"
	"testing"

	"knowhow/internal/search"
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
	for _, text := range []string{"happy", "happy OR paragraph", "happy paragraph of", "p* NOT x", "hap~2", `"of happy"`} {
		p, err := x.Search(t.Context(), search.Query{Text: text, Num: 10})
		if err != nil || !p.Partial || !p.AtLeast {
			t.Errorf("Search(%q) without time = %+v, %v, want a partial result", text, p, err)
		}
	}
	x.searchTime = maxSearchTime
	if p, err := x.Search(t.Context(), search.Query{Text: "happy", Num: 10}); err != nil || p.Partial || p.Total != 3 {
		t.Errorf("Search(happy) = %+v, %v, want all of 3 documents", p, err)
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
	for _, text := range []string{strings.Repeat("hap~1 ", 200), strings.Repeat("p* ", 200), strings.Repeat("*a*b* OR ", 200) + "happy", strings.Repeat("happy ", 1000)} {
		if _, err := x.Search(t.Context(), search.Query{Text: text, Num: 10}); err != nil {
			t.Errorf("Search(%.20q...) = %v", text, err)
		}
	}
}
