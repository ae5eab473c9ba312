package site

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func pagesOf(texts ...string) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, s := range texts {
			if !yield([]byte(s)) {
				return
			}
		}
	}
}

// What most pages repeat is cut, with the largest element around it. Short headings
// and what few pages repeat stay.
func TestBoilerplate(t *testing.T) {
	const page = `<body><div class=x><ul><li>Home <li>Guide and more <li>About us here</ul></div>
<div id=main><h2>Examples</h2><p>Page %d says something.<p>See also:
<p>Only the first pages say this sentence.</div>
<div><div>Accept all cookies of the site</div><div>No, thanks, not today</div></div>
<footer>Copyright 2026 by <b>someone</b></footer></body>`
	var texts []string
	for i := range 10 {
		text := fmt.Sprintf(page, i)
		if i >= 4 {
			text = strings.Replace(text, "Only the first pages say this sentence.", fmt.Sprint("Another page with number ", i), 1)
		}
		texts = append(texts, text)
	}
	hashes := map[uint64]bool{}
	for _, h := range repeated(pagesOf(texts...)) {
		hashes[h] = true
	}
	got := strings.Fields(string(cut([]byte(texts[0]), hashes)))
	want := strings.Fields(`<body> <div id=main><h2>Examples</h2><p>Page 0 says something.<p>See also:
		<p>Only the first pages say this sentence.</div> </body>`)
	if !slices.Equal(got, want) {
		t.Errorf("cut to %q, want %q", got, want)
	}
	if got := repeated(pagesOf(texts[:3]...)); got != nil {
		t.Errorf("%d parts of three pages are repeated, want none", len(got))
	}
	// A page that has nothing else stays.
	only := `<ul><li>Home <li>Guide and more <li>About us here</ul>`
	if got := string(cut([]byte(only), hashes)); got != only {
		t.Errorf("cut(%q) = %q", only, got)
	}
}

// Elements that are nested deeply, or not closed, take time in proportion to the page.
func TestBoilerplateHostile(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("<div>a b c d ", 100_000),
		strings.Repeat("<div>", 200_000) + "a b c d" + strings.Repeat("</div>", 200_000),
		strings.Repeat("<div>", 100_000) + strings.Repeat("</ul>", 100_000),
		strings.Repeat("<ul><div>a b c d</ul>", 50_000),
	} {
		began := time.Now()
		list, _ := pageParts([]byte(s))
		hashes := map[uint64]bool{}
		for _, p := range list {
			hashes[p.text] = true
		}
		cut([]byte(s+"<b>rest"), hashes)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%.20s...: %v", s, took)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("<div>a b c d<p>e f g h</div>i", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		list, words := pageParts([]byte(s))
		hashes := map[uint64]bool{}
		for i, p := range list {
			if p.start < 0 || p.start > p.end || p.end > len(s) || p.words > words {
				t.Fatalf("part %v of %d bytes and %d words", p, len(s), words)
			}
			if n != 0 && i%(n&7+1) == 0 {
				hashes[p.text] = true
			}
		}
		if out := cut([]byte(s), hashes); len(out) > len(s)+len(list) {
			t.Errorf("%d bytes became %d", len(s), len(out))
		}
	})
}
