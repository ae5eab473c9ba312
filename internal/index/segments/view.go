package segments

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A View is the segments of some labels in one generation of the index.
type View struct {
	*segment.Collection
	Segments []*Segment // in the order of the collection
	// a segment is left out because it is damaged or of another version, or its documents are not
	// indexed again yet
	Incomplete bool
	Memo       // of what was derived from the view

	s       *Store
	deleted []segment.Bits // by segment; nil if no document is deleted
	refs    int
}

// maxViews is how many views are kept.
const maxViews = 32

// View returns the view of the documents with one of the labels (nil: all) in a
// transaction of [Store.Retry]. The caller must call Close.
func (s *Store) View(ctx context.Context, q database.Querier, labels []string) (*View, error) {
	v, err := s.cachedView(ctx, q, labels)
	if err != nil {
		return nil, err
	}
	for _, g := range v.Segments {
		if err := s.checkFile(g); err != nil {
			v.Close()
			return nil, &damaged{row: g.row, err: err}
		}
	}
	return v, nil
}

// cachedView is View without a look at the files.
func (s *Store) cachedView(ctx context.Context, q database.Querier, labels []string) (*View, error) {
	generation, err := Generation(ctx, q)
	if err != nil {
		return nil, err
	}
	if labels != nil { // an empty list admits no document
		labels = slices.Compact(append([]string{}, slices.Sorted(slices.Values(labels))...))
	}
	list, _ := json.Marshal(labels) // strings always marshal
	key := string(list)
	s.mu.Lock()
	if s.of == generation {
		if v := s.views[key]; v != nil {
			v.refs++
			s.mu.Unlock()
			return v, nil
		}
	}
	s.mu.Unlock()
	v, err := s.makeView(ctx, q, labels)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of != generation || len(s.views) >= maxViews {
		// A search that began before the last change may bring back an older
		// generation. Then the views alternate, which is only slower.
		s.closeViews()
		s.views, s.of = map[string]*View{}, generation
	}
	if other := s.views[key]; other != nil {
		other.closeLocked()
	}
	v.refs++
	s.views[key] = v
	return v, nil
}

// makeView returns a new view of the segments with one of the labels that can be
// read.
func (s *Store) makeView(ctx context.Context, q database.Querier, labels []string) (*View, error) {
	rows, err := rowsOf(ctx, q, labels)
	if err != nil {
		return nil, err
	}
	rebuild, err := database.Value(ctx, q, keyRebuild)
	if err != nil {
		return nil, err
	}
	readable := slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		return r.format != segment.Version || s.isLeftOut(r.id)
	})
	v, err := s.viewOf(ctx, q, readable)
	if err != nil {
		return nil, err
	}
	v.Incomplete = rebuild != "" || len(readable) < len(rows) // until Maintain builds them again
	return v, nil
}

// viewOf returns a view of the segments of some rows.
func (s *Store) viewOf(ctx context.Context, q database.Querier, rows []row) (*View, error) {
	v := &View{s: s, refs: 1}
	var segments []*segment.Segment
	left := s.o.VerifiedSize
	for _, r := range rows {
		g, err := s.acquire(ctx, q, r, &left)
		if err != nil {
			v.Close()
			return nil, err
		}
		v.Segments, segments = append(v.Segments, g), append(segments, g.Segment)
		deleted, err := deletions(ctx, q, r)
		if err != nil {
			v.Close()
			return nil, err
		}
		v.deleted = append(v.deleted, deleted)
	}
	v.Collection = segment.NewCollection(segments, v.deleted)
	return v, nil
}

// Close ends the use of a view.
func (v *View) Close() {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.closeLocked()
}

func (v *View) closeLocked() {
	if v.refs--; v.refs > 0 {
		return
	}
	for _, g := range v.Segments {
		v.s.releaseLocked(g)
	}
}

// closeViews closes the views that are kept. The caller must have locked mu.
func (s *Store) closeViews() {
	for _, v := range s.views {
		v.closeLocked()
	}
	s.views, s.of = nil, ""
}

// stems are the languages of the documents of a view.
type stems struct {
	languages []analysis.Language
	segments  map[string]segment.Bits // by Prefix of a language other than English: the segments with stems of it
}

func (v *View) stems() (stems, error) {
	return Remember(&v.Memo, "stems", func() (stems, error) {
		all := stems{[]analysis.Language{analysis.English}, map[string]segment.Bits{}}
		for i, g := range v.Segments {
			languages, err := g.languages()
			if err != nil {
				return stems{}, err
			}
			all.languages = append(all.languages, languages...)
			for _, l := range languages[1:] {
				if all.segments[l.Prefix()] == nil {
					all.segments[l.Prefix()] = segment.NewBits(len(v.Segments))
				}
				all.segments[l.Prefix()].Set(i)
			}
		}
		slices.Sort(all.languages)
		all.languages = slices.Compact(all.languages)
		return all, nil
	})
}

// Languages returns English and the other languages of the documents of the
// view. Words of queries are stemmed in all of them.
func (v *View) Languages() ([]analysis.Language, error) {
	all, err := v.stems()
	return all.languages, err
}

// SegmentsOf returns the segments that may have tokens in sequence: if one is a
// stem of another language than English, those with stems of that language, and
// otherwise nil, for all.
func (v *View) SegmentsOf(tokens []string) segment.Bits {
	for _, t := range tokens {
		if code, _, ok := strings.Cut(t, ":"); ok {
			all, _ := v.stems() // without it, all segments
			return all.segments[code+":"]
		}
	}
	return nil
}
