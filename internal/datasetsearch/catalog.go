package datasetsearch

import (
	"bytes"
	"context"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A catalog is the datasets that are searched at one time. It is immutable, but for the
// texts that it keeps.
type catalog struct {
	tables  []*table
	words   *segment.Collection // of the tables, in their order
	byBase  map[int64]int       // place of a table by the first row of its words
	popular func() []segment.Word
	texts   textCache
}

// A table has the documents of a dataset by their IDs and paths. A document is an
// original of the dataset and has its number.
type table struct {
	set   *dataset.Set
	base  int64         // row of document 0
	ready chan struct{} // closed when the rest is there
	err   error

	ids    [][idSize]byte
	sorted []int32            // documents by ID
	shared map[string][]int32 // documents of the paths that several have
	sizes  []atomic.Int64     // of the texts plus one, 0 if not known
}

// idSize is the length of an ID.
const idSize = 16

// newCatalog returns the catalog of tables.
func newCatalog(tables []*table) *catalog {
	c := &catalog{tables: tables, byBase: map[int64]int{}}
	segments := make([]*segment.Segment, len(tables))
	for i, t := range tables {
		segments[i], _ = t.set.Segment()
		c.byBase[t.base] = i
	}
	c.words = segment.NewCollection(segments, make([]segment.Bits, len(segments)))
	c.popular = sync.OnceValue(c.frequentWords)
	return c
}

// current returns the catalog of the datasets that are loaded.
func (s *Service) current(ctx context.Context) (*catalog, error) {
	sets, err := s.registry.Sets(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.catalog
	if c == nil || !slices.EqualFunc(c.tables, sets, func(t *table, set *dataset.Set) bool { return t.set == set }) {
		c = s.reload(c, sets)
	}
	s.mu.Unlock()
	for _, t := range c.tables {
		select {
		case <-t.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if t.err != nil {
			return nil, t.err
		}
	}
	return c, ctx.Err()
}

// reload replaces the catalog by that of other sets. The lock is held.
func (s *Service) reload(old *catalog, sets []*dataset.Set) *catalog {
	known := map[*dataset.Set]*table{}
	if old != nil {
		for _, t := range old.tables {
			known[t.set] = t
		}
	}
	tables := make([]*table, len(sets))
	for i, set := range sets {
		t := known[set]
		if t == nil {
			t = &table{set: set, ready: make(chan struct{})}
			_, t.base = set.Segment()
			s.start(func(ctx context.Context) {
				defer close(t.ready)
				t.err = t.fill(ctx, s.label)
			})
		}
		tables[i] = t
	}
	s.catalog = newCatalog(tables)
	return s.catalog
}

// fill names the documents of a table. The ID of a document depends on the label, the
// dataset and the path; if several documents have the path, also on what tells them
// apart.
func (t *table) fill(ctx context.Context, label string) error {
	n := t.set.Originals()
	t.ids, t.sorted, t.sizes = make([][idSize]byte, n), make([]int32, n), make([]atomic.Int64, n)
	t.shared = map[string][]int32{}
	first := make(map[string]int32, n)
	for i := range n {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		_, where, _ := t.name(i)
		if f, ok := first[where]; !ok {
			first[where] = int32(i)
		} else if t.shared[where] == nil {
			t.shared[where] = []int32{f, int32(i)}
		} else {
			t.shared[where] = append(t.shared[where], int32(i))
		}
	}
	same := map[string]int{}
	for i := range n {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		title, where, id := t.name(i)
		key := t.set.ID() + "/" + where
		if t.shared[where] != nil {
			key += "\x00" + title + "\x00" + id
			if same[key]++; same[key] > 1 {
				key += "\x00" + strconv.Itoa(same[key])
			}
		}
		copy(t.ids[i][:], document.IDOf(label, key))
		t.sorted[i] = int32(i)
	}
	slices.SortFunc(t.sorted, func(a, b int32) int { return bytes.Compare(t.ids[a][:], t.ids[b][:]) })
	return nil
}

// name returns the title and the path of a document, and the id of its first part.
func (t *table) name(doc int) (title, path, id string) { return t.set.Label(int(t.set.Parts(doc)[0])) }

// find returns the document with an ID.
func (t *table) find(id string) (doc int, ok bool) {
	i, ok := slices.BinarySearchFunc(t.sorted, id, func(d int32, id string) int {
		return strings.Compare(string(t.ids[d][:]), id)
	})
	if !ok {
		return 0, false
	}
	return int(t.sorted[i]), true
}

// find returns the document with an ID and its table.
func (c *catalog) find(id string) (t *table, doc int, ok bool) {
	for _, t := range c.tables {
		if doc, ok := t.find(id); ok {
			return t, doc, true
		}
	}
	return nil, 0, false
}

// at returns the document with a row of the words and the place of its table.
func (c *catalog) at(row int64) (table, doc int) {
	table = c.byBase[row-row%dataset.RowsEach]
	return table, int(row - c.tables[table].base)
}

// path returns the path of a document in hits: with the dataset, if there are several.
func (c *catalog) path(t *table, doc int) string {
	_, where, _ := t.name(doc)
	if len(c.tables) > 1 {
		return t.set.ID() + "/" + where
	}
	return where
}

// locate returns the IDs of the documents with a path, as it is in hits.
func (c *catalog) locate(label, where string) []string {
	var ids []string
	for _, t := range c.tables {
		in, ok := where, true
		if len(c.tables) > 1 {
			in, ok = strings.CutPrefix(where, t.set.ID()+"/")
		}
		if !ok {
			continue
		}
		for _, doc := range t.shared[in] {
			ids = append(ids, string(t.ids[doc][:]))
		}
		// The ID of a document whose path is its own is made of the path.
		id := document.IDOf(label, t.set.ID()+"/"+in)
		if doc, ok := t.find(id); ok && t.shared[in] == nil {
			if _, is, _ := t.name(doc); is == in {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// facts are what the path of a document says about it. Each is "" if it is not known.
type facts struct{ url, host, filename, fileType, mimeType string }

// factsOf returns the facts of a path.
func factsOf(where string) facts {
	f := facts{}
	name := where
	if scheme, _, ok := strings.Cut(where, "://"); ok && (strings.EqualFold(scheme, "http") ||
		strings.EqualFold(scheme, "https")) {
		if u, err := url.Parse(where); err == nil && u.Hostname() != "" && u.User == nil {
			f.url, f.host, name = where, strings.ToLower(u.Hostname()), u.Path
		}
	}
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if name != "." && name != "/" {
		f.filename = name
	}
	f.mimeType, f.fileType = extract.TypeOf(f.filename)
	return f
}
