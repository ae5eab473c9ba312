package opensearch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
	"github.com/knowhow-mcp/knowhow/internal/storecopy"
)

// TestEngines checks that several engines with one store have one document for a
// source path, one collection for each document, and no number twice.
func TestEngines(t *testing.T) {
	a := address(t)
	var bases []*kb.Local
	for range 4 {
		b, _ := openBase(t, t.TempDir(), open(t, a))
		bases = append(bases, b)
	}
	var group sync.WaitGroup
	for n, b := range bases {
		group.Go(func() {
			for i := range 3 {
				job, err := b.AddFile(t.Context(),
					kb.File{Filename: "shared.md", Tags: []string{fmt.Sprintf("collection:c%d", n)}},
					strings.NewReader(fmt.Sprintf("# Version %d of engine %d", i, n)))
				if err != nil {
					t.Error(err)
					continue
				}
				if j := kbtest.Await(t, b, job); j.Status != kb.Done {
					t.Errorf("job = %+v", j)
				}
				kbtest.Note(t, b, fmt.Sprintf("A note of engine %d.", n))
			}
		})
	}
	group.Wait()
	list, err := bases[0].Documents(t.Context(), kb.DocumentFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	numbers, shared := map[int64]bool{}, int64(0)
	for _, d := range list.Documents {
		numbers[d.ID] = true
		if d.SourcePath == "shared.md" {
			shared = d.ID
		}
	}
	if list.Total != 13 || len(numbers) != 13 {
		t.Errorf("%d documents with %d numbers, want 12 notes and one file", list.Total, len(numbers))
	}
	for n, b := range bases {
		group.Go(func() {
			for i := range 5 {
				if _, err := b.AddTags(t.Context(), shared, []string{fmt.Sprintf("collection:x%d-%d", n, i),
					fmt.Sprintf("tag%d-%d", n, i)}); err != nil && !errors.Is(err, errkind.Conflict) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	d, err := bases[0].Document(t.Context(), shared, 0, kb.AllChunks)
	if err != nil {
		t.Fatal(err)
	}
	collections := slices.DeleteFunc(slices.Clone(d.Tags), func(tag string) bool {
		return !strings.HasPrefix(tag,
			"collection:")
	})
	if len(collections) != 1 {
		t.Errorf("the document has the collections %q, want one", collections)
	}
	if r := kbtest.Find(t, bases[1], kb.SearchQuery{Query: "version", Tags: collections}); r.Total != 1 {
		t.Errorf("%d documents are found in %s, want 1", r.Total, collections)
	}
}

// outage is a proxy before the server that can fail.
type outage struct {
	proxy  *httputil.ReverseProxy
	down   atomic.Bool
	refuse atomic.Int32 // requests that are refused because of their credentials
}

func (o *outage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o.down.Load() {
		panic(http.ErrAbortHandler)
	}
	if o.refuse.Add(-1) >= 0 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	o.proxy.ServeHTTP(w, r)
}

// TestOutage checks that a job that was accepted while the cluster is down is
// done when it is back, also if the cluster refuses the credentials for some time,
// and that searches meanwhile fail with an error that can be retried.
func TestOutage(t *testing.T) {
	a := address(t)
	u, err := url.Parse(strings.TrimPrefix(a, "opensearch+"))
	if err != nil {
		t.Fatal(err)
	}
	prefix := u.Path
	u.Path = ""
	o := &outage{proxy: httputil.NewSingleHostReverseProxy(u)}
	server := httptest.NewServer(o)
	defer server.Close()
	o.down.Store(true)
	s, err := opensearch.New(opensearch.Options{Address: "opensearch+" + server.URL + prefix})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := openBase(t, t.TempDir(), s)
	job, err := b.AddNote(t.Context(), kb.Note{Text: "Written during the outage.", Tags: []string{"collection:memory"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Search(t.Context(), kb.SearchQuery{Query: "outage", Top: 1}); !errkind.Retryable(err) {
		t.Errorf("Search() = %v, want an error that can be retried", err)
	}
	j, err := b.Job(t.Context(), job)
	if err != nil || j.Ended() {
		t.Errorf("Job() = %+v, %v during the outage", j, err)
	}
	o.refuse.Store(2)
	o.down.Store(false)
	kbtest.Stored(t, b, job)
	if n := o.refuse.Load(); n >= 0 {
		t.Errorf("%d refusals are left", n)
	}
	if r := kbtest.Find(t, b, kb.SearchQuery{Query: "outage"}); r.Total != 1 {
		t.Errorf("%d documents are found after the outage, want 1", r.Total)
	}
}

// TestVersions checks that a late write does not overwrite a newer one, and that
// an interrupted one leaves nothing that is found.
func TestVersions(t *testing.T) {
	a := address(t)
	first, second := open(t, a), open(t, a)
	put := func(s *opensearch.Store, text string) error {
		return s.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: "x", Label: "l", Path: "p",
			Title: "title",
			Text:  text, Chunks: []document.Chunk{{Length: len(text)}}}}})
	}
	if err := put(first, "walrus"); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var failed atomic.Int32
	for i := range 8 {
		group.Go(func() {
			s := first
			if i%2 == 0 {
				s = second
			}
			if err := put(s, fmt.Sprintf("penguin number%d", i)); errors.Is(err, errkind.Conflict) {
				failed.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	r, chunks, _, err := first.Chunks(t.Context(), 1, 0, kb.AllChunks)
	if err != nil || len(chunks) != 1 || !strings.HasPrefix(chunks[0], "penguin") {
		t.Fatalf("Chunks() = %+v, %q, %v", r, chunks, err)
	}
	p, err := second.Search(t.Context(), search.Query{Text: query.MustParse("walrus OR penguin"), Num: 10})
	if err != nil || p.Total != 1 || p.Hits[0].Digest.Text != chunks[0] {
		t.Errorf("Search() = %+v, %v, want the document with %q", p, err, chunks[0])
	}
	if s, err := first.Stats(t.Context()); err != nil || s.Chunks != 1 {
		t.Errorf("Stats() = %+v, %v, want one chunk", s, err)
	}
}

// TestIsolation checks that no generated query finds a document of another label.
func TestIsolation(t *testing.T) {
	s := open(t, address(t))
	var changes []document.Change
	for _, d := range searchtest.Corpus() {
		changes = append(changes, document.Change{Put: &d})
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	parts := []string{"budget", "zeppelin", "OR", "AND", "NOT", "(", ")", "*", "label:hr", "label:*", "*:*", `"`, "-",
		"+",
		"||", "&&", "!", "infra*", "?alrus", "walrs~", "^2",
		"timestamp:[* TO *]", "url:*", "_id:*", "_exists_:label", `\`, "label:(hr OR docs)", "-label:finance",
		"inurl:hr",
		"site:hr.example.com", "検索", "doc_id:*"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var words []string
		for range 1 + random.IntN(6) {
			words = append(words, parts[random.IntN(len(parts))])
		}
		text := strings.Join(words, " ")
		asked, err := query.Parse(text)
		if err != nil {
			continue
		}
		p, err := s.Search(t.Context(), search.Query{Text: asked, Labels: []string{"finance"}, Num: 50,
			Distinct: random.IntN(2) == 0, Passages: 1000})
		if err != nil {
			if !errors.Is(err, errkind.Invalid) {
				t.Errorf("Search(%q) = %v, want a page or an error of kind Invalid", text, err)
			}
			continue
		}
		for _, h := range p.Hits {
			if !slices.Equal(h.Labels, []string{"finance"}) {
				t.Errorf("Search(%q) in finance found %s of %v", text, h.Path, h.Labels)
			}
		}
		chunks, err := s.SearchChunks(t.Context(), search.ChunkQuery{Text: asked, Labels: []string{"finance"}, Top: 20})
		if err != nil {
			t.Errorf("SearchChunks(%q) = %v", text, err)
			continue
		}
		for _, h := range chunks.Hits {
			if h.Label != "finance" {
				t.Errorf("SearchChunks(%q) in finance found %s of %s", text, h.Path, h.Label)
			}
		}
	}
}

// TestCopy checks that documents are the same after they were copied to a
// cluster and back.
func TestCopy(t *testing.T) {
	open2 := func() *index.Index {
		x, err := index.Open(t.Context(), index.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		return x
	}
	from, back := open2(), open2()
	var changes []document.Change
	for i, d := range searchtest.Corpus() {
		d.FromSource = i%3 == 0
		d.Sections = []document.Section{{Offset: 0, Heading: "A > B"}}
		d.Pages = []document.Page{{Offset: 0, Label: "iv"}}
		d.Stamp.ModTime = d.Stamp.ModTime.Add(123 * time.Nanosecond)
		changes = append(changes, document.Change{Put: &d})
	}
	if err := from.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	s := open(t, address(t))
	for _, pair := range [][2]storecopy.Store{{from, s}, {s, back}} {
		r, err := storecopy.Copy(t.Context(), storecopy.Options{From: pair[0], To: pair[1]})
		if diff := cmp.Diff(&storecopy.Result{Copied: 40, Compared: 40}, r); err != nil || diff != "" {
			t.Fatalf("Copy() = %v\n%s", err, diff)
		}
		r, err = storecopy.Copy(t.Context(), storecopy.Options{From: pair[0], To: pair[1]})
		if diff := cmp.Diff(&storecopy.Result{Unchanged: 40, Compared: 40}, r); err != nil || diff != "" {
			t.Fatalf("Copy() again = %v\n%s", err, diff)
		}
	}
	if pages, err := s.Pages(t.Context(), searchtest.Corpus()[0].ID); err != nil || len(pages) != 1 || pages[0].Label != "iv" {
		t.Errorf("Pages() = %v, %v", pages, err)
	}
	if _, err := s.Pages(t.Context(), "none"); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Pages() of a document that does not exist = %v", err)
	}
	for n := int64(1); n <= 40; n++ {
		want, err := from.Document(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		r, err := back.RecordOf(t.Context(), want.ID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := back.Document(t.Context(), r.Number)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("document %s: %v (-original +copy)\n%s", want.Path, err, diff)
		}
	}
}

// TestDuplicates checks that documents with the same text are one hit.
func TestDuplicates(t *testing.T) {
	s := open(t, address(t))
	var changes []document.Change
	for i, text := range []string{"walrus one", "walrus one", "walrus two", "walrus one", ""} {
		changes = append(changes, document.Change{Put: &document.Document{ID: fmt.Sprint("id", i), Label: "l",
			Path: fmt.Sprintf("%d.txt", i), Title: "walrus", Text: text, Hash: "sha256:" + text}})
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"walrus", "what does the walrus say", ""} {
		for _, num := range []int{10, 2} {
			p, err := s.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: num, Distinct: true,
				Labels: []string{"l"}})
			total := 3
			if p != nil && p.Total == 5 && num == 2 {
				total = 5 // copies count as documents unless all documents were read
			}
			if err != nil || p.Total != total || len(p.Hits) != min(num, 3) {
				t.Errorf("Search(%q) = %+v, %v, want %d documents", text, p, err, total)
				continue
			}
			for _, h := range p.Hits {
				if n := len(h.Also); strings.HasSuffix(h.Digest.Text, "one") != (n == 2) {
					t.Errorf("Search(%q): %s with the text %q is also %q", text, h.Path, h.Digest.Text, h.Also)
				}
			}
		}
	}
}

// TestManyDuplicates checks a search whose best documents almost all have the same text.
func TestManyDuplicates(t *testing.T) {
	s := open(t, address(t))
	var changes []document.Change
	for i := range 205 {
		text := "walrus walrus walrus"
		if i >= 202 {
			text = fmt.Sprintf("walrus and other animals of the number %d", i)
		}
		changes = append(changes, document.Change{Put: &document.Document{ID: fmt.Sprint(i), Label: "l",
			Path: fmt.Sprintf("%03d", i), Title: "animals", Text: text, Hash: "sha256:" + text}})
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("walrus"), Num: 10, Distinct: true})
	if err != nil || p.Total != 4 || len(p.Hits) != 4 || p.Hits[0].ID != "0" || len(p.Hits[0].Also) != 20 ||
		p.Hits[0].Also[0] != "001" {
		t.Errorf("Search() = %+v, %v, want four documents, and first the 202 with the same text", p, err)
	}
}

// TestLongQueries checks queries with very many words, languages and operators.
func TestLongQueries(t *testing.T) {
	s := open(t, address(t))
	var changes []document.Change
	for i, lang := range []string{"en", "de", "fr", "es", "it", "ru", "nl", "pt", "sv", "fi", "ja"} {
		changes = append(changes, document.Change{Put: &document.Document{ID: lang, Label: "l", Path: fmt.Sprint(i),
			Title: "walrus", Lang: lang, Text: "The walrus sleeps."}})
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	words := func(n int) []string {
		out := []string{"walrus"}
		for i := range n {
			out = append(out, fmt.Sprintf("word%cing%dations", 'a'+i%26, i))
		}
		return out
	}
	for name, text := range map[string]string{
		"a question":    strings.Join(words(400), " "),
		"alternatives":  strings.Join(words(500), " OR "),
		"prefixes":      strings.Join(words(200), "* OR "),
		"phrases":       `"` + strings.Join(words(200), ` walrus" OR "`) + `"`,
		"a long phrase": `walrus OR "` + strings.Join(words(600), " ") + `"`,
		"fuzzy words":   strings.Join(words(100), "~ OR "),
		"one word":      strings.Repeat("walrus", 1),
	} {
		asked, err := query.Parse(text)
		if errors.Is(err, errkind.Invalid) {
			continue // no store gets it
		}
		for _, by := range []search.Ranking{search.ByBoth, search.ByWords} {
			p, err := s.SearchChunks(t.Context(), search.ChunkQuery{Text: asked, Top: 20, Ranking: by})
			if err != nil && !errors.Is(err, errkind.Invalid) || err == nil && p.Total != 11 {
				t.Errorf("%s: %d documents, %v, want 11 or an error of kind Invalid", name, total(p), err)
			}
		}
		if name == "a question" {
			if _, err := s.Search(t.Context(), search.Query{Text: asked, Num: 1}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		p, err := s.Search(t.Context(), search.Query{Text: asked, Num: 20, Distinct: true})
		if err != nil && !errors.Is(err, errkind.Invalid) || err == nil && p.Total != 11 {
			t.Errorf("%s: %v, want 11 documents or an error of kind Invalid", name, err)
		}
	}
}

func total(p *search.ChunkPage) int {
	if p == nil {
		return 0
	}
	return p.Total
}

// TestSwitch checks that the indexes of an older version are refused, and that their
// documents are used again, with their present IDs, after they were copied to new ones.
func TestSwitch(t *testing.T) {
	a := address(t)
	openAs := func(version int, move opensearch.Move) (*opensearch.Store, error) {
		s, err := opensearch.New(opensearch.WithVersion(opensearch.Options{Address: a, Move: move}, version))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s, s.Open(t.Context())
	}
	mustOpen := func(version int, move opensearch.Move) *opensearch.Store {
		s, err := openAs(version, move)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	put := func(s *opensearch.Store, id string) error {
		return s.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: id, Label: "l", Path: id,
			Title: "title",
			Text:  "walrus " + id}}})
	}
	old := mustOpen(2, opensearch.Stay)
	const oldID = "38ac3698fb8ca3534f1c31cb75a5599e"
	for _, id := range []string{"a", oldID} {
		if err := put(old, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openAs(3, opensearch.Stay); !errors.Is(err, errkind.Conflict) ||
		!strings.Contains(err.Error(), "knowhow store copy") {
		t.Errorf("Open() of a newer version = %v, want an error of kind Conflict that says how to copy the documents",
			err)
	}
	for i := range 2 { // the second copy continues the first one
		from, to := mustOpen(3, opensearch.From), mustOpen(3, opensearch.To)
		r, err := storecopy.Copy(t.Context(), storecopy.Options{From: from, To: to})
		if diff := cmp.Diff(&storecopy.Result{Copied: 2 - 2*i, Unchanged: 2 * i, Compared: 2}, r); err != nil ||
			diff != "" {
			t.Fatalf("Copy() = %v\n%s", err, diff)
		}
		if i == 0 {
			continue
		}
		prefix := a[strings.LastIndex(a, "/")+1:]
		names, err := to.Switch(t.Context())
		if err != nil || names[0] != prefix+"-documents-1" {
			t.Fatalf("Switch() = %v, %v, want the names of the old indexes", names, err)
		}
	}
	now := mustOpen(3, opensearch.Stay)
	if r, err := now.RecordOf(t.Context(), document.PresentID(oldID)); err != nil || r.Path != oldID {
		t.Errorf("RecordOf(%s) = %+v, %v, want the document that had the ID %s", document.PresentID(oldID), r, err, oldID)
	}
	if err := put(now, "c"); err != nil {
		t.Fatal(err)
	}
	p, err := now.Search(t.Context(), search.Query{Text: query.MustParse("walrus"), Num: 10})
	if err != nil || p.Total != 3 {
		t.Errorf("Search() = %+v, %v, want three documents", p, err)
	}
	if err := put(old, "late"); !errkind.Retryable(err) {
		t.Errorf("Apply() of the older version = %v, want an error that is retryable", err)
	}
	if err := put(old, "late"); !errkind.Retryable(err) || !strings.Contains(err.Error(), "update this program") {
		t.Errorf("Apply() of the older version = %v, want an error that is retryable and says to update", err)
	}
}
