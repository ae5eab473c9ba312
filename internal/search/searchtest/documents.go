package searchtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// find checks the look-up of one document.
func (s *suite) find(t *testing.T) {
	for _, d := range s.docs[:8] {
		for _, labels := range [][]string{nil, {d.Label}, {"nosuch", d.Label}} {
			h, err := s.svc.Find(t.Context(), d.ID, labels)
			if err != nil {
				t.Errorf("Find(%s, %v) = %v", place(d), labels, err)
				continue
			}
			if h.ID != d.ID {
				t.Errorf("Find(%s, %v) = %+v, want ID %s", place(d), labels, h, d.ID)
			}
			s.checkHit(t, *h)
			if s.o.NoText == (h.TextHash != "") {
				t.Errorf("Find(%s).TextHash = %q with NoText %v", place(d), h.TextHash, s.o.NoText)
			}
		}
		for _, labels := range [][]string{{"nosuch"}, {},
			{map[bool]string{true: "docs", false: "hr"}[d.Label == "hr"]}} {
			if h, err := s.svc.Find(t.Context(), d.ID, labels); !errors.Is(err, errkind.NotFound) {
				t.Errorf("Find(%s, %v) = %+v, %v, want an error of kind NotFound", place(d), labels, h, err)
			}
		}
	}
	for _, id := range badIDs {
		if h, err := s.svc.Find(t.Context(), id, nil); !errors.Is(err, errkind.NotFound) {
			t.Errorf("Find(%q) = %+v, %v, want an error of kind NotFound", id, h, err)
		}
		if x, err := s.svc.ReadText(t.Context(), id, nil, 0, 10); !errors.Is(err, errkind.NotFound) {
			t.Errorf("ReadText(%q) = %+v, %v, want an error of kind NotFound", id, x, err)
		}
	}
}

// badIDs are names that no document has.
var badIDs = [...]string{"", "nosuch", "-", "-x", "*", "a b", "x OR label:hr", `"`, `\`, "a:b", "a/b", "../x", "a\x00b",
	"検索",
	strings.Repeat("a", 5000)}

// readText checks that windows give back the whole text.
func (s *suite) readText(t *testing.T) {
	if s.o.NoText {
		d := s.docs[0]
		if x, err := s.svc.ReadText(t.Context(), d.ID, nil, 0, 10); !errors.Is(err, errkind.Unsupported) {
			t.Errorf("ReadText(%s) = %+v, %v, want an error of kind Unsupported", place(d), x, err)
		}
		return
	}
	for _, d := range s.docs[:len(rows)] {
		for _, n := range []int{7, 64, 1000, 1 << 20} {
			if n*100 < len(d.Text) {
				continue // so many requests take long, and shorter texts have similar windows
			}
			var all strings.Builder
			for off := int64(0); off < int64(len(d.Text)); {
				x, err := s.svc.ReadText(t.Context(), d.ID, []string{d.Label}, off, n)
				if err != nil {
					t.Fatalf("ReadText(%s, %d, %d) = %v", place(d), off, n, err)
				}
				if x.Window == "" || len(x.Window) > n || !utf8.ValidString(x.Window) || x.Offset != off {
					t.Fatalf("ReadText(%s, %d, %d) = window %q at %d", place(d), off, n, x.Window, x.Offset)
				}
				if x.Size != int64(len(d.Text)) || x.Hash != d.Hash || x.DocID != d.ID || x.URL != d.URL {
					t.Fatalf("ReadText(%s) = size %d, hash %s, id %s, url %s, want %d, %s, %s, %s",
						place(d), x.Size, x.Hash, x.DocID, x.URL, len(d.Text), d.Hash, d.ID, d.URL)
				}
				all.WriteString(x.Window)
				off += int64(len(x.Window))
			}
			if all.String() != d.Text {
				t.Errorf("windows of %d bytes of %s: (-text +windows)\n%s", n, place(d), cmp.Diff(d.Text, all.String()))
			}
			if sum := sha256.Sum256([]byte(all.String())); d.Hash != "sha256:"+hex.EncodeToString(sum[:]) {
				t.Errorf("windows of %s do not have the hash %s", place(d), d.Hash)
			}
		}
	}
	d := s.docs[0]
	for _, off := range []int64{int64(len(d.Text)), int64(len(d.Text)) + 1, math.MaxInt64} {
		if x, err := s.svc.ReadText(t.Context(), d.ID, nil, off, 100); err != nil || x.Window != "" ||
			x.Size != int64(len(d.Text)) {
			t.Errorf("ReadText(%s, %d) = %+v, %v, want an empty window", place(d), off, x, err)
		}
	}
	if x, err := s.svc.ReadText(t.Context(), d.ID, []string{"hr"}, 0, 100); !errors.Is(err, errkind.NotFound) {
		t.Errorf("ReadText(%s) in hr = %+v, %v, want an error of kind NotFound", place(d), x, err)
	}
}

// health checks that a working service says so.
func (s *suite) health(t *testing.T) {
	if h, err := s.svc.Health(t.Context()); err != nil || h.Status != "green" || h.TimedOut {
		t.Errorf("Health() = %+v, %v, want green", h, err)
	}
}

// cancelled checks that every method gives up with its context.
func (s *suite) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	id := s.docs[0].ID
	calls := map[string]func() error{
		"Search": func() error {
			_, err := s.svc.Search(ctx, search.Query{Text: query.MustParse("budget"), Num: 1})
			return err
		},
		"Find":         func() error { _, err := s.svc.Find(ctx, id, nil); return err },
		"ReadText":     func() error { _, err := s.svc.ReadText(ctx, id, nil, 0, 10); return err },
		"Suggest":      func() error { _, err := s.svc.Suggest(ctx, search.SuggestQuery{Prefix: "b", Num: 1}); return err },
		"PopularWords": func() error { _, err := s.svc.PopularWords(ctx, search.WordsQuery{}); return err },
		"Labels":       func() error { _, err := s.svc.Labels(ctx); return err },
		"Health":       func() error { _, err := s.svc.Health(ctx); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context = %v, want context.Canceled", name, err)
		}
	}
}

// concurrent checks that calls at the same time do not disturb each other; it
// says most under the race detector.
func (s *suite) concurrent(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 5 {
				word := exactWords[i]
				p, err := s.svc.Search(t.Context(), search.Query{Text: query.MustParse(word), Num: 100})
				if err != nil {
					t.Errorf("Search(%q) = %v", word, err)
				} else if want := len(s.want(has(word))); p.Total != want || len(p.Hits) != want {
					t.Errorf("Search(%q) = %d hits, total %d, want %d", word, len(p.Hits), p.Total, want)
				}
				if h, err := s.svc.Find(t.Context(), s.docs[i].ID, nil); err != nil || h.ID != s.docs[i].ID {
					t.Errorf("Find(%s) = %+v, %v", place(s.docs[i]), h, err)
				}
			}
		})
	}
	group.Wait()
}

// empty checks that a service without documents has nothing, and no errors.
func (s *suite) empty(t *testing.T) {
	svc := s.o.Open(t, nil)
	for _, text := range []string{"", "budget", "budget travel"} {
		for _, labels := range [][]string{nil, {"finance"}} {
			p, err := svc.Search(t.Context(), search.Query{Text: query.MustParse(text), Labels: labels, Num: 10})
			if err != nil || p.Total != 0 || len(p.Hits) != 0 {
				t.Errorf("Search(%q, %v) of nothing = %+v, %v, want an empty page", text, labels, p, err)
			}
		}
	}
	if labels, err := svc.Labels(t.Context()); err != nil || s.o.Label == "" && len(labels) != 0 {
		t.Errorf("Labels() of nothing = %v, %v, want none", labels, err)
	}
	if list, err := svc.Suggest(t.Context(), search.SuggestQuery{Prefix: "b", Num: 5}); err != nil || len(list) != 0 {
		t.Errorf("Suggest() of nothing = %v, %v, want none", list, err)
	}
	if words, err := svc.PopularWords(t.Context(), search.WordsQuery{}); err != nil || len(words) != 0 {
		t.Errorf("PopularWords() of nothing = %v, %v, want none", words, err)
	}
	if _, err := svc.Find(t.Context(), "nosuch", nil); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Find() of nothing = %v, want an error of kind NotFound", err)
	}
}

// locate checks that the path of a hit names its document, and that what users
// wrote has a path that they know.
func (s *suite) locate(t *testing.T) {
	if s.o.NoWritten {
		t.Skip("the service has no documents that users wrote")
	}
	label := s.docs[0].Label
	var docs []document.Document
	for i, path := range []string{"a.md", ".files/a.md", ".files/c.md", ".notes/1.md", ".notes/2.md"} {
		d := row{label: label, path: path, title: "About " + path, text: "Walrus " + path}.document(i)
		d.SourcePath = strings.TrimPrefix(path, ".files/")
		docs = append(docs, d)
	}
	docs[3].SourcePath, docs[3].Title = "", "50% of the/rules"
	docs[4].SourcePath, docs[4].Title = "log/2.md", "log/1.md"
	svc := s.o.Open(t, docs)
	outliner, ok := svc.(search.Outliner)
	if !ok {
		t.Skip("the service has no paths")
	}
	for i, want := range []string{"a.md", "a.md", "c.md", "50% of the/rules", "log/2.md"} {
		h, err := svc.Find(t.Context(), docs[i].ID, nil)
		if err != nil || h.Path != want {
			t.Errorf("Find(%s) has the path %q, %v, want %q", docs[i].Path, h.Path, err, want)
		}
		page, err := svc.Search(t.Context(), search.Query{Text: query.MustParse(`doc_id:"` + docs[i].ID + `"`), Num: 1})
		if err != nil || len(page.Hits) != 1 || page.Hits[0].Path != want {
			t.Errorf("Search(%s) = %+v, %v, want the path %q", docs[i].Path, page, err, want)
		}
	}
	for path, want := range map[string][]search.Place{
		"a.md":        {{ID: docs[0].ID, Label: label}, {ID: docs[1].ID, Label: label}},
		".files/a.md": {{ID: docs[1].ID, Label: label}},
		".files/c.md": {{ID: docs[2].ID, Label: label}},
		"c.md":        {{ID: docs[2].ID, Label: label}},
		"b.md":        nil,

		"50% of the/rules": {{ID: docs[3].ID, Label: label}},
		"log/2.md":         {{ID: docs[4].ID, Label: label}},
		"log/1.md":         nil,
	} {
		for _, labels := range [][]string{nil, {label}, {"other"}} {
			want := want
			if labels != nil && labels[0] == "other" {
				want = nil
			}
			got, err := outliner.Locate(t.Context(), path, labels)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("Locate(%q, %v) = %v, %v, want %v", path, labels, got, err, want)
			}
		}
	}
}

// written checks that of some labels, only what users wrote is found.
func (s *suite) written(t *testing.T) {
	if s.o.NoWritten {
		t.Skip("the service has no documents that users wrote")
	}
	label := s.docs[0].Label
	i := slices.IndexFunc(s.docs, func(d document.Document) bool { return d.Label != label })
	other := s.docs[i].Label
	var docs []document.Document
	for i, r := range []row{
		{label: label, path: "a.md", title: "Served", text: "Walrus of a file"},
		{label: other, path: "a.md", title: "Other", text: "Walrus of another file"},
		{label: other, path: ".notes/1.md", title: "Note", text: "Walrus of a note"},
	} {
		d := r.document(i)
		d.FromSource = !strings.HasPrefix(r.path, ".")
		docs = append(docs, d)
	}
	svc := s.o.Open(t, docs)
	if _, ok := svc.(search.Outliner); !ok {
		t.Skip("the service has no documents that users wrote")
	}
	for _, text := range []string{"", "walrus", "walrus NOT sheep", "walrus of the sea",
		"title:other OR title:note OR title:served"} {
		q := search.Query{Text: query.MustParse(text), Labels: []string{label, other}, Written: []string{other},
			Num: 10}
		page, err := svc.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var titles []string
		for _, h := range page.Hits {
			titles = append(titles, h.Title)
		}
		slices.Sort(titles)
		if !slices.Equal(titles, []string{"Note", "Served"}) || page.Total != 2 {
			t.Errorf("Search(%q) = %q of %d, want the note and the file of the label that is served", text, titles,
				page.Total)
		}
	}
}
