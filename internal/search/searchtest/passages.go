package searchtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// filler is a paragraph of about 400 characters without a word that a case
// searches for.
var filler = strings.Repeat("Nothing of interest is said in this sentence of the text. ", 7) + "\n\n"

// passageDocs are documents whose passages are known. Each has something of its
// own: long and short chunks, sections inside of chunks, pages, and texts without
// sentences.
func passageDocs() []document.Document {
	texts := []row{
		{"docs", "manual.md", "Manual", "Preface\n\n" + filler + "Heating\n\nThe boiler needs a valve. " + filler +
			filler + "Cooling\n\n" + filler + "A condenser cools the vapour. " + filler + filler},
		{"docs", "note.md", "Note", "The valve is in the cellar."},
		{"docs", "list.md", "List", "The first line of the list.\n\nA gasket costs two coins.\n\nThe valve costs nine coins.\n\nA bolt costs one coin.\n\n" + filler},
		{"docs", "line.txt", "Transcript", strings.Repeat("filler ", 150) + "turbine " + strings.Repeat("filler ", 50)},
		{"docs", "kikai.md", "機械", strings.Repeat("この文章には何も書いてありません。", 20) + "圧縮機は三階にあります。" +
			strings.Repeat("この文章には何も書いてありません。", 20)},
		{"docs", "report.md", "Report", ""},
		{"docs", "parts.md", "Parts", "An engine beside an engine beside an engine. " + strings.TrimSpace(filler) +
			" " + strings.TrimSpace(filler) + " A sprocket is here. " + filler},
		{"docs", "pair.md", "Pair", "The lantern hangs in the north. The walls have three windows, but the harbour has none. It is cold.\n" + filler +
			"The lantern harbour is in the south. The walls have three windows, and there are none elsewhere. It is warm.\n" + filler},
	}
	for i := range 12 {
		texts[5].text += fmt.Sprintf("Chapter %d\n\nInspection %d found that the rotor of engine %d is worn. ", i+1,
			i+1, i+1) + filler + "\n\n"
	}
	for i := range 9 {
		texts = append(texts, row{"docs", fmt.Sprintf("engine%d.md", i), fmt.Sprint("Engine ", i),
			fmt.Sprintf("Engine %d runs at the site. ", i) + filler})
	}
	var docs []document.Document
	for i, r := range texts {
		d := r.document(i)
		d.Tags = nil
		switch r.path {
		case "manual.md":
			heating, cooling := strings.Index(d.Text, "Heating"), strings.Index(d.Text, "Cooling")
			d.Sections = []document.Section{{Offset: heating, Heading: "Manual > Heating"},
				{Offset: cooling, Heading: "Manual > Cooling"}}
			d.Pages = []document.Page{{Label: "i"}, {Offset: heating + 30, Label: "1"},
				{Offset: cooling + 500, Label: "2"}}
			d.Chunks = []document.Chunk{{Length: cooling, Heading: "Manual"},
				{Offset: cooling, Length: len(d.Text) - cooling, Heading: "Manual > Cooling"}}
		case "report.md":
			d.Chunks = nil
			for off := 0; off < len(d.Text); {
				n := strings.Index(d.Text[off+1:], "Chapter") + 1
				if n == 0 {
					n = len(d.Text) - off
				}
				heading := "Report > " + strings.SplitN(d.Text[off:], "\n", 2)[0]
				d.Chunks = append(d.Chunks, document.Chunk{Offset: off, Length: n, Heading: heading})
				d.Sections = append(d.Sections, document.Section{Offset: off, Heading: heading})
				off += n
			}
		}
		docs = append(docs, d)
	}
	return docs
}

// passages compares the passages of fixed documents, so that all services with
// passages choose and cut them in the same way.
func (s *suite) passages(t *testing.T) {
	if s.o.NoPassages {
		t.Skip("the service has no passages")
	}
	docs := passageDocs()
	texts := suite{o: s.o, docs: docs, svc: s.o.Open(t, docs)}
	for _, c := range []struct {
		query      string
		num, chars int
		want       []string // path, offset, characters, page and heading
	}{
		{"turbine", 8, 6000, []string{"line.txt 882 525"}},
		{"turbine", 8, 250, []string{"line.txt 980 245"}},
		{"turbine", 8, 199, nil},
		{"gasket", 8, 6000, []string{"list.md 29 253"}},
		{"condenser vapour", 8, 6000, []string{"manual.md 1451 1077 1 Manual > Cooling"}},
		{"condenser vapour", 8, 300, []string{"manual.md 1625 263 1 Manual > Cooling"}},
		{"boiler valve", 8, 6000, []string{"manual.md 183 1082 i"}},
		{"valve", 8, 6000, []string{
			"list.md 56 226",
			"manual.md 357 268 i",
			"note.md 0 27",
		}},
		{"圧縮機", 8, 6000, []string{"kikai.md 0 692"}},
		{"rotor", 8, 6000, []string{
			"report.md 0 1249  Report > Chapter 1",
			"report.md 1428 297  Report > Chapter 4",
			"report.md 1904 297  Report > Chapter 5",
			"report.md 2380 297  Report > Chapter 6",
			"report.md 2856 297  Report > Chapter 7",
			"report.md 3332 297  Report > Chapter 8",
			"report.md 3808 297  Report > Chapter 9",
			"report.md 4284 300  Report > Chapter 10",
			"report.md 4763 300  Report > Chapter 11",
		}},
		{"rotor", 8, 1500, []string{"report.md 0 947  Report > Chapter 1"}},
		{"engine rotor worn", 8, 6000, []string{
			"engine0.md 0 258",
			"engine1.md 0 258",
			"engine2.md 0 258",
			"engine3.md 0 258",
			"report.md 0 1249  Report > Chapter 1",
			"report.md 1428 297  Report > Chapter 4",
			"report.md 1904 297  Report > Chapter 5",
			"report.md 2380 297  Report > Chapter 6",
			"report.md 2856 297  Report > Chapter 7",
			"report.md 3332 297  Report > Chapter 8",
			"report.md 3808 297  Report > Chapter 9",
			"report.md 4284 300  Report > Chapter 10",
			"report.md 4763 300  Report > Chapter 11",
		}},
		{"engine rotor worn", 8, 1500, []string{"report.md 0 947  Report > Chapter 1"}},
		{"inspection 7", 8, 6000, []string{"report.md 2856 471  Report > Chapter 7"}},
		{"engine sprocket", 8, 300, []string{"parts.md 857 251"}}, // the rare word counts more than the frequent one
		{"lantern harbour", 8, 6000, []string{"pair.md 0 1022"}},
		{`"nine coins"`, 8, 6000, []string{"list.md 56 226"}},
		{"turbin*", 8, 400, []string{"line.txt 798 399"}},
		{"filename:note.md", 8, 6000, []string{"note.md 0 27"}},
	} {
		hits := texts.search(t, search.Query{Text: query.MustParse(c.query), Num: c.num, Passages: c.chars}).Hits
		// The order of documents with about equal scores may differ.
		slices.SortFunc(hits, func(a, b search.Hit) int { return strings.Compare(a.Path, b.Path) })
		var got []string
		for _, h := range hits {
			d := texts.byID(h.ID)
			if h.Score < 0 || h.Score > 30 {
				t.Errorf("%q: %s has the score %g, want one of BM25", c.query, h.Path, h.Score)
			}
			for _, p := range h.Passages {
				got = append(got, strings.TrimRight(fmt.Sprintf("%s %d %d %s %s", h.Path, p.Offset,
					utf8.RuneCountInString(p.Text), p.Page, p.Heading), " "))
				for _, m := range p.Matches {
					// The stems of the words of these queries are beginnings of the words.
					word := strings.ToLower(p.Text[m.Start:m.End])
					if stem := word[:min(len(word), 3)]; !strings.Contains(strings.ToLower(c.query), stem) {
						t.Errorf("%q: a passage of %s has a match %q", c.query, h.Path, word)
					}
				}
				if !strings.Contains(c.query, "filename:") && len(h.Passages) == 1 && len(p.Matches) == 0 {
					t.Errorf("%q: the only passage of %s has no match", c.query, h.Path)
				}
				if !strings.HasPrefix(d.Text[p.Offset:], p.Text) {
					t.Errorf("%q: the text of %s at %d is not %q", c.query, h.Path, p.Offset, p.Text)
				}
			}
			if (len(h.Passages) > 0) == (h.Digest.Text != "") {
				t.Errorf("%q: %s has %d passages and the digest %q, want one or the other", c.query, h.Path,
					len(h.Passages), h.Digest.Text)
			}
		}
		if diff := gocmp.Diff(c.want, got); diff != "" {
			t.Errorf("passages of %q, %d characters (-want +got)\n%s", c.query, c.chars, diff)
		}
	}
}
