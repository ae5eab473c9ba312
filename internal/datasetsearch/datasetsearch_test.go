package datasetsearch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/datasetsearch"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestDocuments checks that the chunks of a text are one document, and its facts.
func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "one", []dataset.Document{
		{Title: "Guide", Path: "docs/guide.md", Heading: "Guide > Run", Content: "Run the turbine.", Chunk: 2,
			StartLine: 4, EndLine: 4},
		{Title: "Guide", Path: "docs/guide.md", Heading: "Guide > Install", Content: "Install the boiler.", Chunk: 1,
			StartLine: 1, EndLine: 2},
		{Title: "Page", Path: "https://Docs.example.com/a/valve.html?x=1", Content: "The valve of the boiler."},
		{Title: "Page", Path: "https://user:pass@example.com/a.html", Content: "The valve."},
		{ID: "rec-1", Title: "Loose", Content: "A gasket."},
		{Title: "Guide", Path: "same.txt", Content: "First rotor."},
		{Title: "Guide", Path: "same.txt", Content: "Second rotor."},
	})
	s, _ := open(t, dataset.Options{Dir: dir})
	p := find(t, s, "turbine AND boiler") // in different chunks
	if got := paths(p); !cmp.Equal(got, []string{"docs/guide.md"}) || p.Total != 1 {
		t.Fatalf("Search(turbine AND boiler) = %q, total %d, want the guide", got, p.Total)
	}
	h := p.Hits[0]
	want := search.Hit{ID: document.IDOf("data", "one/docs/guide.md"), Path: "docs/guide.md", Title: "Guide",
		Filename: "guide.md", FileType: "txt", MIMEType: "text/markdown", Labels: []string{"data"},
		Size: int64(len("Install the boiler.\n\nRun the turbine."))}
	h.Score, h.Digest, h.TitleExcerpt, h.TextHash = 0, search.Excerpt{}, search.Excerpt{}, ""
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("hit (-want +got)\n%s", diff)
	}
	if got, want := read(t, s, h.ID), "Install the boiler.\n\nRun the turbine."; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
	sections, err := s.Sections(t.Context(), h.ID, nil)
	if diff := cmp.Diff([]document.Section{{Offset: 0, Heading: "Guide > Install"},
		{Offset: 21, Heading: "Guide > Run"}}, sections); diff != "" || err != nil {
		t.Errorf("Sections() = %v (-want +got)\n%s", err, diff)
	}

	h = find(t, s, "valve boiler").Hits[0]
	page := "https://Docs.example.com/a/valve.html?x=1"
	if h.URL != page || h.Host != "docs.example.com" || h.Filename != "valve.html" || h.FileType != "html" {
		t.Errorf("hit = %+v, want the facts of the page", h)
	}
	for _, h := range find(t, s, "*:*").Hits {
		if strings.Contains(h.URL, "pass") {
			t.Errorf("hit %s has the URL %s", h.Path, h.URL)
		}
	}
	for text, want := range map[string][]string{
		"url:*valve*": {page}, "site:Docs.example.com": {page}, "filename:guide.md": {"docs/guide.md"},
		"filetype:html valve": {page, "https://user:pass@example.com/a.html"},
		"label:data gasket":   {"rec-1"}, "label:other gasket": {}, "lang:en": {}, "timestamp:[* TO *]": {},
		"host:[* TO *] gasket": {},
		"title:guide -rotor":   {"docs/guide.md"}, "content_length:[* TO 9]": {"rec-1"}, "turbin~": {"docs/guide.md"},
		"tur*ne": {"docs/guide.md"}, `"install the boiler"`: {"docs/guide.md"}, `"boiler install"`: {},
		"turbine OR gasket": {"docs/guide.md", "rec-1"}, "doc_id:" + want.ID: {"docs/guide.md"},
	} {
		got := paths(find(t, s, text))
		slices.Sort(got)
		if !cmp.Equal(got, want) {
			t.Errorf("Search(%q) = %q, want %q", text, got, want)
		}
	}

	places, err := s.Locate(t.Context(), "same.txt", nil)
	if err != nil || len(places) != 2 || places[0].ID == places[1].ID {
		t.Fatalf("Locate(same.txt) = %v, %v, want two documents", places, err)
	}
	if a, b := read(t, s, places[0].ID), read(t, s, places[1].ID); a != "First rotor." || b != "Second rotor." {
		t.Errorf("texts of same.txt = %q, %q", a, b)
	}
	for _, where := range []string{"one/docs/guide.md", "../one/docs/guide.md", "docs", ""} {
		if places, err := s.Locate(t.Context(), where, nil); err != nil || places != nil {
			t.Errorf("Locate(%q) = %v, %v, want none", where, places, err)
		}
	}
}

// TestLabels checks that a call for other labels finds nothing.
func TestLabels(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "one", []dataset.Document{{Path: "a.txt", Content: "The valve."}})
	s, _ := open(t, dataset.Options{Dir: dir})
	id := find(t, s, "valve").Hits[0].ID
	for _, labels := range [][]string{{}, {"other"}, {"one"}, {"DATA"}, {""}} {
		p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("valve"), Labels: labels, Num: 10,
			Facets: &search.Facets{Fields: []string{"label", "filename"}, Queries: []string{"valve"}}})
		if err != nil || p.Total != 0 || len(p.Hits) != 0 || p.Facets.Queries[0].Count != 0 ||
			len(p.Facets.Fields[0].Counts)+len(p.Facets.Fields[1].Counts) > 0 {
			t.Errorf("Search(valve, %q) = %+v, %v, want nothing", labels, p, err)
		}
		if _, err := s.Find(t.Context(), id, labels); !errors.Is(err, errkind.NotFound) {
			t.Errorf("Find(%q) = %v, want an error of kind NotFound", labels, err)
		}
		if _, err := s.Sections(t.Context(), id, labels); !errors.Is(err, errkind.NotFound) {
			t.Errorf("Sections(%q) = %v, want an error of kind NotFound", labels, err)
		}
		if places, err := s.Locate(t.Context(), "a.txt", labels); err != nil || places != nil {
			t.Errorf("Locate(%q) = %v, %v, want none", labels, places, err)
		}
	}
	for tag, want := range map[string]int{"collection:data": 1, "collection:other": 0} {
		p, err := s.Search(t.Context(), search.Query{Tags: []string{tag}, Num: 10})
		if err != nil || p.Total != want {
			t.Errorf("Search with the tag %s = %+v, %v, want %d", tag, p, err, want)
		}
	}
	if p, err := s.Search(t.Context(), search.Query{Langs: []string{"en"}, Num: 10}); err != nil || p.Total != 0 {
		t.Errorf("Search in English = %+v, %v, want nothing: no language is known", p, err)
	}
}

// TestSegment checks that a search can be restricted to a dataset.
func TestSegment(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "pumps", []dataset.Document{{Path: "a.txt", Content: "a valve"}, {Path: "b.txt", Content: "a rotor"}})
	write(t, dir, "pipes", []dataset.Document{{Path: "a.txt", Content: "another valve"}})
	s, r := open(t, dataset.Options{Dir: dir})
	for text, want := range map[string][]string{
		`segment:"pumps"`:        {"pumps/a.txt", "pumps/b.txt"},
		`segment:pumps valve`:    {"pumps/a.txt"},
		`valve -segment:"pumps"`: {"pipes/a.txt"},
		`segment:p*`:             {"pipes/a.txt", "pumps/a.txt", "pumps/b.txt"},
		`segment:none`:           nil,
	} {
		got := paths(find(t, s, text))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("Search(%s) = %q, want %q", text, got, want)
		}
	}
	// A dataset that cannot be searched is not missing in a search in others.
	if err := os.WriteFile(filepath.Join(dir, "pipes", "manifest.json"), []byte(`{"id": "pipes"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for text, failed := range map[string]int{`valve`: 1, `segment:"pumps"`: 0, `segment:pumps valve`: 0,
		`segment:pipes valve`:                    1,
		`valve (segment:pumps OR segment:pipes)`: 1, `valve (segment:pumps OR segment:p)`: 0, `valve OR segment:pumps`: 1} {
		if p := find(t, s, text); len(p.Failed) != failed {
			t.Errorf("Search(%s) has the failures %v, want %d", text, p.Failed, failed)
		}
	}
}

// TestCreated checks that a text that Create cut into chunks is read as it was.
func TestCreated(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	var b strings.Builder
	b.WriteString("# Manual\n\nThe preface.\n")
	for i := range 60 {
		fmt.Fprintf(&b, "\n## Chapter %d\n\nEngine %d has a rotor of its own kind. %s\n\n", i, i,
			strings.Repeat("It turns and turns. ", i%20*5))
		fmt.Fprintf(&b, "- item %d\n- another item\n\n```\nrun %d {\n}\n```\n", i, i)
	}
	for name, text := range map[string]string{"manual.md": b.String(),
		"leave.txt": "Employees have thirty days of leave."} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := dataset.Create(t.Context(), dataset.CreateOptions{Dir: dir, ID: "made", Sources: []string{source},
		Embedder: fakeModel{}, Model: "fake"})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, dataset.Options{Dir: dir,
		Embedders: func(string) []embed.Embedder { return []embed.Embedder{fakeModel{}} }})
	p := find(t, s, "rotor engine")
	if len(p.Hits) != 1 || p.Total != 1 {
		t.Fatalf("Search(rotor engine) = %q, total %d, want one document", paths(p), p.Total)
	}
	got := read(t, s, p.Hits[0].ID)
	if diff := cmp.Diff(strings.Fields(b.String()), strings.Fields(got)); diff != "" {
		t.Errorf("words of the text (-want +got)\n%s", diff)
	}
	if strings.Count(got, "\n") > strings.Count(b.String(), "\n") || !strings.Contains(got, "```\nrun 7 {\n}\n```") {
		t.Errorf("the text has other lines:\n%s", got)
	}
	sections, err := s.Sections(t.Context(), p.Hits[0].ID, nil)
	if err != nil || len(sections) < 20 {
		t.Fatalf("Sections() = %d, %v", len(sections), err)
	}
	for i, x := range sections {
		if x.Heading == "" || x.Offset >= len(got) || i > 0 && x.Offset <= sections[i-1].Offset {
			t.Errorf("section %d = %+v, want headings in order", i, x)
		}
	}
	// Two words that count, neither of which a document has, find it by its meaning.
	p = find(t, s, "vacation holiday zzz")
	if got := paths(p); !slices.Contains(got, "leave.txt") || p.Total != len(got) {
		t.Errorf("Search by meaning = %q, total %d, want leave.txt", got, p.Total)
	}
}

// TestHostile checks metadata that tries to look like something else.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 5000)
	write(t, dir, "evil", []dataset.Document{
		{Path: "../../etc/passwd", Content: "valve one"},
		{Path: "javascript:alert(1)", Content: "valve two"},
		{Path: "http://\x1b[31mexample.com/\x00", Content: "valve \x1b[31m three\u202e"},
		{Path: "a.txt", Title: "T", Chunk: 1 << 40, Content: "valve four"},
		{Path: "a.txt", Title: "T", Chunk: 1, StartLine: 1 << 60, EndLine: -5, Content: "valve five"},
		{Path: "a.txt", Title: "T", Chunk: 1, Content: "valve five"},
		{ID: "same", Content: "valve six"}, {ID: "same", Content: "valve seven"}, {ID: "a.txt", Content: "valve eight"},
		{Path: long + "a", Content: "valve nine"}, {Path: long + "b", Content: "valve ten"},
		{Path: "\xff\xfe", Title: "\xff", Content: "valve \xff eleven"},
		{Path: "b\u0000.txt", Heading: "H\x1b\nI > " + long, Content: "valve twelve"},
		{Path: "empty.txt", Title: "valve", Content: ""},
		{}, {}, {Path: "/", Content: "valve"}, {Path: ".", Content: "valve"}, {Path: "https://", Content: "valve"},
	})
	s, _ := open(t, dataset.Options{Dir: dir})
	p := find(t, s, "*:*")
	if p.Total != 17 || len(p.Hits) != 17 {
		t.Errorf("Search(*:*) = %d hits, total %d, want 17", len(p.Hits), p.Total)
	}
	seen := map[string]bool{}
	for _, h := range p.Hits {
		if seen[h.ID] || len(h.ID) != 16 {
			t.Errorf("hit %q has the ID %q", h.Path, h.ID)
		}
		seen[h.ID] = true
		for _, x := range []string{h.Path, h.Title, h.URL, h.Filename, h.Host} {
			if sanitize.Line(x) != x || len(x) > 2048 {
				t.Errorf("hit %q has %q", h.Path, x)
			}
		}
		if h.URL != "" && !strings.HasPrefix(h.URL, "http") {
			t.Errorf("hit %q has the URL %q", h.Path, h.URL)
		}
		if text := read(t, s, h.ID); text != sanitize.Text(text) {
			t.Errorf("text of %q = %q, which is not clean", h.Path, text)
		}
		if g, err := s.Find(t.Context(), h.ID, nil); err != nil || g.Path != h.Path {
			t.Errorf("Find(%q) = %+v, %v", h.Path, g, err)
		}
		places, err := s.Locate(t.Context(), h.Path, nil)
		if err != nil || !slices.ContainsFunc(places, func(p search.Place) bool { return p.ID == h.ID }) {
			t.Errorf("Locate(%q) = %v, %v", h.Path, places, err)
		}
		sections, err := s.Sections(t.Context(), h.ID, nil)
		for _, x := range sections {
			if sanitize.Line(x.Heading) != x.Heading || len(x.Heading) > 300 || x.Offset > int(h.Size) {
				t.Errorf("section of %q: %+v", h.Path, x)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestFolders checks a folder that does not exist yet, several datasets, a bad one, and
// that IDs stay the same.
func TestFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	s, r := open(t, dataset.Options{Dir: dir})
	state := func(want string) {
		t.Helper()
		if h, err := s.Health(t.Context()); err != nil || h.Status != want {
			t.Errorf("Health() = %+v, %v, want %s", h, err, want)
		}
	}
	scan := func() {
		t.Helper()
		if err := r.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	state("red")
	if _, err := s.Search(t.Context(), search.Query{Num: 1}); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("Search in no folder = %v, want an error of kind Unavailable", err)
	}
	write(t, dir, "one", []dataset.Document{{Path: "a.txt", Content: "The valve."}})
	scan()
	state("green")
	first := find(t, s, "valve").Hits[0]
	if first.Path != "a.txt" {
		t.Errorf("path = %q, want a.txt", first.Path)
	}
	write(t, dir, "two", []dataset.Document{{Path: "a.txt", Content: "The valve of another dataset."}})
	write(t, dir, "bad", nil)
	if err := os.WriteFile(filepath.Join(dir, "bad", "metadata.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	scan()
	state("yellow")
	p := find(t, s, "valve")
	if got := paths(p); !cmp.Equal(got, []string{"one/a.txt", "two/a.txt"}) || p.Hits[0].ID != first.ID {
		t.Errorf("Search() = %q, IDs %q and %q, want both datasets and the same ID", got, first.ID, p.Hits[0].ID)
	}
	if len(p.Failed) != 1 || !p.Partial || p.Failed[0].Label != "data" ||
		!strings.HasPrefix(p.Failed[0].Err.Error(), `the dataset "bad" cannot be searched`) {
		t.Errorf("with a bad dataset, the page has partial %v, failed %v", p.Partial, p.Failed)
	}
	// A dataset with the ID of another one is named by its folder.
	if err := os.CopyFS(filepath.Join(dir, "zz"), os.DirFS(filepath.Join(dir, "two"))); err != nil {
		t.Fatal(err)
	}
	scan()
	if p := find(t, s, "valve"); len(p.Failed) != 1 ||
		!strings.HasPrefix(p.Failed[0].Err.Error(), `the datasets "bad", "zz" cannot be searched`) {
		t.Errorf("with a copy of a dataset, the page has failed %v", p.Failed)
	}
	if err := os.RemoveAll(filepath.Join(dir, "zz")); err != nil {
		t.Fatal(err)
	}
	scan()
	write(t, dir, "one", []dataset.Document{{Path: "0.txt", Content: "A gasket."},
		{Path: "a.txt", Content: "The valve is new."}})
	scan()
	if got := read(t, s, first.ID); got != "The valve is new." {
		t.Errorf("after a change, the text is %q", got)
	}
	s.Close()
	again := datasetsearch.New(r, "data", nil)
	defer again.Close()
	if h, err := again.Find(t.Context(), first.ID, []string{"data"}); err != nil || h.Path != "one/a.txt" {
		t.Errorf("Find() of another service = %+v, %v", h, err)
	}
	for _, id := range []string{"one", "two"} {
		if err := os.RemoveAll(filepath.Join(dir, id)); err != nil {
			t.Fatal(err)
		}
	}
	scan()
	if _, err := again.Search(t.Context(), search.Query{Num: 1}); !errors.Is(err, errkind.Corrupt) {
		t.Errorf("Search() with a bad dataset alone = %v, want an error of kind Corrupt", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	scan()
	if _, err := again.Find(t.Context(), first.ID, nil); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Find() in a removed folder = %v, want an error of kind NotFound", err)
	}
}

// TestNotAFolder checks that a folder that cannot be read is an error at once.
func TestNotAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := dataset.New(dataset.Options{Dir: file, Written: true})
	if err != nil {
		t.Fatal(err)
	}
	s := datasetsearch.New(r, "data", nil)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Search(ctx, search.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Search() before the first scan = %v, want context.Canceled", err)
	}
	if err := r.Scan(t.Context()); err == nil {
		t.Fatal("Scan() of a file succeeded")
	}
	if _, err := s.Search(t.Context(), search.Query{}); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("Search() = %v, want an error of kind Unavailable", err)
	}
	if h, err := s.Health(t.Context()); err != nil || h.Status != "red" {
		t.Errorf("Health() = %+v, %v, want red", h, err)
	}
}

// TestForeign checks the dataset of MCPower.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "sample"), os.DirFS("../dataset/testdata/mcpower-sample")); err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, dataset.Options{Dir: dir})
	p := find(t, s, "how do I configure the datasets directory")
	if len(p.Hits) == 0 || p.Hits[0].Path != "docs/getting-started.md" && p.Hits[0].Path != "docs/datasets.md" ||
		p.Total > 5 {
		t.Errorf("Search() = %q, total %d", paths(p), p.Total)
	}
	for _, h := range p.Hits {
		if h.Size != int64(len(read(t, s, h.ID))) || h.Digest.Text == "" {
			t.Errorf("hit = %+v", h)
		}
	}
}

// TestReload checks that searches see a whole state while datasets change.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	state := func(n int) {
		var records []dataset.Document
		for i := range 50 {
			records = append(records, dataset.Document{Path: fmt.Sprintf("%d.txt", i),
				Content: fmt.Sprintf("The valve of state %d.", n)})
		}
		write(t, dir, "one", records[n:])
	}
	state(0)
	s, r := open(t, dataset.Options{Dir: dir})
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("valve"), Num: 100})
				if err != nil || p.Total < 40 || p.Total != len(p.Hits) {
					t.Errorf("Search() = %+v, %v, want all documents of a state", p, err)
					return
				}
				for _, h := range p.Hits {
					if h.ID != document.IDOf("data", "one/"+h.Path) || h.TextHash != p.Hits[0].TextHash {
						t.Errorf("hit %s is %s with the hash %s", h.Path, h.ID, h.TextHash)
					}
				}
			}
		})
	}
	for n := range 10 {
		state(n)
		if err := r.Scan(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(done)
	group.Wait()
}
