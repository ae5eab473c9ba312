package index_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// in returns a document in a language.
func in(lang, label, file, title, text string) document.Document {
	d := doc(label, file, title, text)
	d.Lang = lang
	return d
}

func TestLanguages(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x,
		in("de", "mixed", "haus", "Alte Häuser", "Die Häuser der Stadt stehen leer. Der Mieter kündigt den Vertrag."),
		in("de", "mixed", "buch", "Bücherei", "Viele Bücher über Utf8 und ein altes Haus."),
		in("fr", "mixed", "cheval", "Les chevaux", "Un new cheval et les informations utilisées."),
		in("fr", "mixed", "news", "Nouvelles", "Les news du jour."),
		in("es", "mixed", "cancion", "Canciones", "Las canciones de los libros."),
		in("ru", "mixed", "kniga", "Книги", "Ёлка и книги о Windows."),
		in("en", "mixed", "reports", "Reports", "The new reports about houses and utf8."),
		in("", "mixed", "plain", "Plain", "Connections of unknown language."),
		in("ja", "mixed", "ja", "検索", "検索とconnections。"),
		in("en", "english", "other", "Other", "Ein new report without a language."))
	for _, tt := range []struct {
		text string
		want string // paths, sorted
	}{
		{"Haus", "buch haus"},
		{"hauser", "buch haus"},
		{"BUECHER", ""},
		{"Bücher", "buch"},
		{"Buch", "buch"},
		{"bucher", "buch"},
		{"cheval", "cheval"},
		{"chevaux", "cheval"},
		{"utilisé", "cheval"},
		{"canción", "cancion"},
		{"cancion", "cancion"},
		{"libro", "cancion"},
		{"книгой", "kniga"},
		{"елки", "kniga"},
		{"window", "kniga"},
		{"report", "other reports"},
		{"reporting", "other reports"},
		{"new", "cheval news other reports"}, // new is the French stem of news
		{"news", "cheval news"},              // not what is new in English
		{"utf8", "buch reports"},
		{"connection", "ja plain"},
		{`"alte Häuser"`, "buch haus"},
		{`"altes haus"`, "buch haus"},
		{`"Häuser der Stadt"`, "haus"},
		{`"Haus Stadt"~1`, "haus"},
		{"Häus*", "buch haus"},
		{"hau*", "buch haus"},
		{"b?cher", "buch"},
		{"буки*", ""},
		{"кни*", "kniga"},
		{"Hauser~1", "buch haus"},
		{"title:Haus", "haus"},
		{"content:Haus", "buch haus"},
		{"title:reporting", "reports"},
		{"Haus NOT Bücher", "haus"},
		{"Haus OR report", "buch haus other reports"},
		{"lang:de Haus", "buch haus"},
	} {
		got := find(t, x, search.Query{Text: query.MustParse(tt.text)})
		slices.Sort(got)
		if diff := cmp.Diff(strings.Fields(tt.want), got, cmp.Transformer("",
			func(s []string) string { return strings.Join(s, " ") })); diff != "" {
			t.Errorf("Search(%q) (-want +got):\n%s", tt.text, diff)
		}
	}

	p := page(t, x, search.Query{Text: query.MustParse("Wie leer sind die Häuser")})
	if !p.Staged || p.AllWords != 1 || len(p.Hits) == 0 || p.Hits[0].Path != "haus" {
		t.Errorf("the German question has %d documents with all words, want 1; hits %+v", p.AllWords, p.Hits)
	}
	if got, want := bracketed(page(t, x, search.Query{Text: query.MustParse("Haus der Stadt")}).Hits[0].Digest),
		"Die [Häuser] der [Stadt] stehen leer. Der Mieter kündigt den Vertrag."; got != want {
		t.Errorf("the digest is %q, want %q", got, want)
	}
	if got, want := bracketed(page(t, x,
		search.Query{Text: query.MustParse("title:haus")}).Hits[0].TitleExcerpt), "Alte [Häuser]"; got != want {
		t.Errorf("the excerpt of the title is %q, want %q", got, want)
	}
	if h := page(t, x, search.Query{Text: query.MustParse("alte haus")}).Hits; len(h) == 0 || h[0].Path != "haus" {
		t.Errorf("the title that is the query in German does not come first: %+v", h)
	}
	// What one label has is analysed without the languages of others.
	if got := find(t, x, search.Query{Text: query.MustParse("ein report"),
		Labels: []string{"english"}}); !slices.Equal(got, []string{"other"}) {
		t.Errorf("Search under the English label = %q", got)
	}
}

// TestRareLanguage checks that a word of few documents of one language has the
// weight of all documents with the word.
func TestRareLanguage(t *testing.T) {
	x := open(t, t.TempDir())
	var docs []document.Document
	for i := range 50 {
		docs = append(docs, in("en", "a", fmt.Sprint("en", i), "Text", "The server and something else."))
	}
	docs = append(docs, in("de", "a", "de", "Text", "Der Server und noch etwas."))
	put(t, x, docs...)
	p := page(t, x, search.Query{Text: query.MustParse("server")})
	if p.Total != 51 {
		t.Fatalf("Total = %d, want 51", p.Total)
	}
	for _, h := range p.Hits[1:] {
		if d := h.Score - p.Hits[0].Score; d > 0.01 || d < -0.01 {
			t.Errorf("%s has the score %v, want %v as the first", h.Path, h.Score, p.Hits[0].Score)
		}
	}
}

// FuzzExactWords checks that a word of a document finds it, in every language.
func FuzzExactWords(f *testing.F) {
	for _, lang := range []string{"en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "hu", "ro", "ru",
		"tr", "ja", ""} {
		f.Add(lang, "Häuser chevaux canciones città 検索 книги running İstanbul ﬁne l'été")
	}
	x := open(f, f.TempDir())
	put(f, x, in("de", "other", "other", "Andere", "Ein anderes Dokument."),
		in("fr", "other", "third", "Autre", "Un autre document."))
	f.Fuzz(func(t *testing.T, lang, text string) {
		text = strings.ToValidUTF8(text, "")
		put(t, x, in(lang, "a", "a", "Title", text))
		words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\r\"\\'’", r) })
		for _, w := range words[:min(len(words), 20)] {
			for _, q := range []string{`"` + w + `"`, `content:"` + w + `"`} {
				p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(q), Labels: []string{"a"}, Num: 1})
				if err != nil || p.Total == 0 && analysis.Variants(w, []analysis.Language{analysis.English},
					false) != nil {
					t.Fatalf("in %q: Search(%q) = %+v, %v, want the document with the text %q", lang, q, p, err, text)
				}
			}
		}
	})
}

// Of a document and its translations, the one in the language of the question comes
// first.
func TestQuestionLanguage(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x,
		in("de", "d", "core.de", "Options",
			"Options: die Direktive Options Indexes ist für die Liste der Dateien, Options Indexes."),
		in("fr", "d", "core.fr", "Options",
			"Options : la directive Options Indexes est pour la liste des fichiers, Options Indexes."),
		in("en", "d", "core.en", "Options", "Options: the directive Options Indexes is for the list of the files of a folder, and without it there is none."))
	for _, tt := range []struct{ text, first string }{
		{"what does Options Indexes do", "core.en"},
		{"was ist die Direktive Options Indexes", "core.de"},
		{"que fait la directive Options Indexes dans les fichiers", "core.fr"},
	} {
		p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(tt.text), Num: 3})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Hits) != 3 || p.Hits[0].Path != tt.first {
			t.Errorf("Search(%q) found %d documents, first %q, want 3, first %q", tt.text, len(p.Hits),
				p.Hits[0].Path, tt.first)
		}
	}
}
