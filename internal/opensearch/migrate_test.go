package opensearch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/opensearch"
	"knowhow/internal/query"
	"knowhow/internal/search"
	"knowhow/internal/search/searchtest"
)

// The fields that the indexes of the older version do not have in these tests.
var laterFields = []string{"around", "before", "title_words"}

// openVersion opens a store with a version, 1 for the older one.
func openVersion(t *testing.T, address string, version int, e embed.Embedder, copied func() error) *opensearch.Store {
	t.Helper()
	o := opensearch.WithVersion(opensearch.Options{Address: address, Embedder: e}, version)
	if version == 1 {
		o = opensearch.WithVersion(o, version, laterFields...)
	}
	s, err := opensearch.New(opensearch.WithMigration(o, 3*time.Second, copied))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// numbered returns a document with two short chunks.
func numbered(id, text string) document.Change {
	text = "walrus " + text + "\n\nsleeps"
	n := strings.Index(text, "sleeps")
	return document.Change{Put: &document.Document{ID: id, Label: "l", Path: id, Title: "title " + id, Text: text, Hash: "sha256:" + id + text,
		Chunks: []document.Chunk{{Length: n}, {Offset: n, Length: len(text) - n}}}}
}

// contents returns everything that is stored of the documents, by ID.
func contents(t *testing.T, s *opensearch.Store) map[string]*document.Document {
	t.Helper()
	out := map[string]*document.Document{}
	after := int64(0)
	for {
		numbers, err := s.Numbers(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(numbers) == 0 {
			return out
		}
		for _, n := range numbers {
			d, err := s.Document(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			out[d.ID], after = d, n
		}
	}
}

// TestMigrate checks that a store of an older version is moved to indexes of this
// version, after a process that was killed and one that failed, while programs of
// both versions search and change documents, and that none of the changes that
// were confirmed is lost.
func TestMigrate(t *testing.T) {
	a := address(t)
	old := openVersion(t, a, 1, constant{}, nil)
	var changes []document.Change
	for _, d := range searchtest.Corpus() {
		changes = append(changes, document.Change{Put: &d})
	}
	for i := range 150 {
		changes = append(changes, numbered(fmt.Sprint("n", i), fmt.Sprint("number", i)))
	}
	changes = append(changes, document.Change{Tag: &document.Tagging{ID: "n7", Add: []string{"seven"}}})
	if err := old.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	if old.HasVectors() {
		if _, err := old.EmbedNext(t.Context(), constant{}, nil, 10_000); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	batches := 0
	failing := openVersion(t, a, 2, nil, func() error {
		if batches++; batches == 2 {
			return errors.New("killed")
		}
		return nil
	})
	// A program of the new version uses the old indexes meanwhile.
	if err := failing.Apply(t.Context(), []document.Change{numbered("early", "early")}); err != nil {
		t.Fatal(err)
	}
	want := contents(t, old)
	if diff := cmp.Diff(want, contents(t, failing)); diff != "" {
		t.Fatalf("before the migration (-old +new program)\n%s", diff)
	}
	server, prefix := strings.TrimPrefix(a, "opensearch+"), a[strings.LastIndex(a, "/")+1:]
	server = strings.TrimSuffix(server, "/"+prefix)
	// A process that was killed has left its lease.
	resp, err := http.Post(server+"/"+prefix+"-state/_doc/migration", "application/json", strings.NewReader(`{"kept":{"owner":"killed","beats":1}}`))
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	begin := time.Now()
	if err := failing.Migrate(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("Migrate() = %v, want an error", err)
	}
	if took := time.Since(begin); took < 3*time.Second {
		t.Errorf("Migrate() took the lease of another process after %v", took)
	}
	found := slices.Sorted(maps.Keys(indexes(t, server, prefix)))
	if diff := cmp.Diff([]string{prefix + "-chunks-1", prefix + "-chunks-2", prefix + "-documents-1", prefix + "-documents-2", prefix + "-state"}, found); diff != "" {
		t.Errorf("indexes after the failure (-want +got)\n%s", diff)
	}

	// Programs of both versions change documents all the time, and others search.
	idle := openVersion(t, a, 2, nil, nil)
	var mu sync.Mutex
	done := make(chan struct{})
	var group sync.WaitGroup
	write := func(name string, s *opensearch.Store, outdated bool) {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			c := numbered(fmt.Sprintf("%s%d", name, i%50), fmt.Sprint("change", i))
			if i%7 == 6 {
				c = document.Change{Delete: &document.Ref{Label: "l", Path: fmt.Sprintf("%s%d", name, i%50-1)}}
			}
			err := s.Apply(ctx, []document.Change{c})
			switch {
			case err == nil:
				mu.Lock()
				if c.Put != nil {
					want[c.Put.ID] = c.Put
				} else {
					delete(want, c.Delete.Path)
				}
				mu.Unlock()
			case !errkind.Retryable(err):
				t.Errorf("Apply() of %s = %v, want an error that is retryable", name, err)
				return
			case outdated && strings.Contains(err.Error(), "update this program"):
				return
			default:
				time.Sleep(20 * time.Millisecond) // as the queue does
				i--
			}
		}
	}
	group.Go(func() { write("old", old, true) })
	group.Go(func() { write("new", openVersion(t, a, 2, nil, nil), false) })
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			p, err := idle.Search(ctx, search.Query{Text: query.MustParse("number11"), Num: 10})
			if err != nil || p.Total != 1 || len(p.Hits) != 1 || p.Hits[0].ID != "n11" {
				t.Errorf("Search() = %+v, %v during the migration, want one document", p, err)
				return
			}
		}
	})
	var migrating sync.WaitGroup
	for range 2 { // one does it, the other waits
		migrating.Go(func() {
			if err := openVersion(t, a, 2, nil, nil).Migrate(ctx); err != nil {
				t.Errorf("Migrate() = %v", err)
			}
		})
	}
	migrating.Wait()
	time.Sleep(300 * time.Millisecond) // some changes after the migration
	close(done)
	group.Wait()
	if err := old.Apply(ctx, []document.Change{numbered("late", "late")}); !errkind.Retryable(err) || !strings.Contains(err.Error(), "newer version of knowhow: update this program") {
		t.Errorf("Apply() of the older version = %v, want an error that is retryable and says to update", err)
	}
	if _, err := old.Search(ctx, search.Query{Text: query.MustParse("walrus"), Num: 1}); !errkind.Retryable(err) || !strings.Contains(err.Error(), "update this program") {
		t.Errorf("Search() of the older version = %v, want an error that is retryable and says to update", err)
	}
	found = slices.Sorted(maps.Keys(indexes(t, server, prefix)))
	if diff := cmp.Diff([]string{prefix + "-chunks-2", prefix + "-documents-2", prefix + "-state"}, found); diff != "" {
		t.Errorf("indexes (-want +got)\n%s", diff)
	}
	got := contents(t, idle)
	for id, d := range got {
		if w := want[id]; w != nil && w.Tags == nil {
			d.Tags, d.Pages, d.Sections = nil, w.Pages, w.Sections
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after the migration (-want +got)\n%s", diff)
	}
	if p, err := idle.Search(ctx, search.Query{Text: query.MustParse("title:n13"), Num: 10, Tags: nil}); err != nil || p.Total != 1 {
		t.Errorf("Search() = %+v, %v after the migration, want one document", p, err)
	}
	if words, err := idle.Suggest(ctx, search.SuggestQuery{Prefix: "n13", Num: 20, Fields: []string{"title"}}); err != nil || len(words) != 11 {
		t.Errorf("Suggest() = %v, %v, want 11 words, in a field that the old indexes did not have", words, err)
	}
	if idle.HasVectors() {
		if n, total, err := idle.Embedded(ctx, constant{}, nil); err != nil || n < 300 {
			t.Errorf("%d of %d chunks have a vector, %v, want at least 300", n, total, err)
		}
	}
	if st, err := idle.Stats(ctx); err != nil || st.Documents != len(want) {
		t.Errorf("Stats() = %+v, %v, want %d documents", st, err, len(want))
	}
	s, err := opensearch.New(opensearch.WithVersion(opensearch.Options{Address: a}, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(ctx); !errors.Is(err, errkind.Conflict) || errkind.Retryable(err) {
		t.Errorf("Open() of the older version = %v, want an error of kind Conflict", err)
	}
	if err := idle.Migrate(ctx); err != nil {
		t.Errorf("Migrate() again = %v", err)
	}
}
