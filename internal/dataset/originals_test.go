package dataset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOriginals checks which documents are parts of one original, and in which order.
func TestOriginals(t *testing.T) {
	doc := func(path, title string, chunk int) Document { return Document{Path: path, Title: title, Chunk: chunk} }
	for name, tt := range map[string]struct {
		docs []Document
		want [][]int32
	}{
		"none":         {nil, nil},
		"not numbered": {[]Document{doc("a", "A", 0), doc("a", "A", 0)}, [][]int32{{0}, {1}}},
		"no path":      {[]Document{doc("", "A", 1), doc("", "A", 2)}, [][]int32{{0}, {1}}},
		"other title":  {[]Document{doc("a", "A", 1), doc("a", "B", 2)}, [][]int32{{0}, {1}}},
		"one":          {[]Document{doc("a", "A", 2), doc("a", "A", 1)}, [][]int32{{1, 0}}},
		"mixed": {[]Document{doc("a", "A", 1), doc("b", "B", 3), doc("a", "A", 0), doc("b", "B", 1), doc("a", "A", 2),
			doc("b", "B", 1)}, [][]int32{{0, 4}, {3, 5, 1}, {2}}},
	} {
		o, err := group(tt.docs, &budget{left: 1 << 20})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got [][]int32
		for i := range o.len() {
			got = append(got, o.of(i))
			for k, d := range o.of(i) {
				if original, place := o.find(int(d)); original != i || place != k {
					t.Errorf("%s: document %d is part %d of %d, want %d of %d", name, d, place, original, k, i)
				}
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if _, err := group(make([]Document, 10), &budget{left: 100}); err == nil {
		t.Error("10 documents fit in 100 bytes")
	}
}

// TestSearchParts checks that a search finds the part of an original that has the words.
func TestSearchParts(t *testing.T) {
	dir := t.TempDir()
	s := newSample("parts")
	s.metadata = []map[string]any{
		{"id": "b2", "path": "b", "title": "B", "chunk": 2, "content": "The valve."},
		{"id": "a1", "path": "a", "title": "A", "chunk": 1, "content": "The gasket."},
		{"id": "b1", "path": "b", "title": "B", "chunk": 1, "content": "The rotor."},
	}
	s.write(t, dir, "parts")
	r := open(t, dir)
	for text, want := range map[string]string{"valve": "b2", "gasket": "a1", "rotor": "b1"} {
		res, err := r.Search(t.Context(), Query{Datasets: []string{"parts"}, Text: text})
		if err != nil || len(res.Hits) != 1 || res.Hits[0].ID != want {
			t.Errorf("Search(%q) = %+v, %v, want %s", text, res, err, want)
		}
	}
}
