package index

import (
	"context"
	"errors"
	"slices"
	"sync"

	"knowhow/internal/analysis"
	"knowhow/internal/segment"
)

// A view is what a search under some labels sees of one generation of the
// index.
type view struct {
	*segment.Collection
	handles    []*handle
	refs       int
	incomplete bool // a segment is left out because it is damaged or of another version, or its documents are not indexed again yet

	mu    sync.Mutex
	sets  map[string]segment.Docs // by condition
	langs []analysis.Language     // see languages; nil until then
	twins *twins                  // see evaluator.twins; nil until then

	stemmed map[string]segment.Bits // by Prefix of a language: the segments with stems of it; set with langs
}

// maxViews is how many views are kept, and maxViewSets how many sets of
// documents each of them keeps.
const (
	maxViews    = 32
	maxViewSets = 64
)

// view returns the view of the documents with one of the labels (nil: all) in a
// transaction. The caller must call closeView.
func (x *Index) view(ctx context.Context, q querier, labels []string) (*view, error) {
	v, err := x.cachedView(ctx, q, labels)
	if err != nil {
		return nil, err
	}
	if err := x.checkFiles(v); err != nil {
		x.closeView(v)
		return nil, err
	}
	return v, nil
}

// cachedView is view without a look at the files.
func (x *Index) cachedView(ctx context.Context, q querier, labels []string) (*view, error) {
	generation, err := kvValue(ctx, q, keyGeneration)
	if err != nil {
		return nil, err
	}
	key := conditions{}.key()
	if labels != nil { // an empty list admits no document
		key = conditions{labels: slices.Compact(append([]string{}, slices.Sorted(slices.Values(labels))...))}.key()
	}
	x.open.mu.Lock()
	if x.open.of == generation {
		if v := x.open.views[key]; v != nil {
			v.refs++
			x.open.mu.Unlock()
			return v, nil
		}
	}
	x.open.mu.Unlock()
	v, err := x.makeView(ctx, q, labels)
	if err != nil {
		return nil, err
	}
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	if x.open.of != generation || len(x.open.views) >= maxViews {
		// A search that began before the last change may bring back an older
		// generation. Then the views alternate, which is only slower.
		x.closeViewsLocked()
		x.open.views, x.open.of = map[string]*view{}, generation
	}
	if other := x.open.views[key]; other != nil {
		x.closeLocked(other)
	}
	v.refs++
	x.open.views[key] = v
	return v, nil
}

func (x *Index) makeView(ctx context.Context, q querier, labels []string) (*view, error) {
	rows, err := segmentRows(ctx, q, labels)
	if err != nil {
		return nil, err
	}
	rebuild, err := kvValue(ctx, q, keyRebuild)
	if err != nil {
		return nil, err
	}
	v := &view{refs: 1, sets: map[string]segment.Docs{}, incomplete: rebuild != ""}
	var segments []*segment.Segment
	var deleted []segment.Bits
	left := x.verifiedSize
	for _, r := range rows {
		if r.format != segment.Version {
			v.incomplete = true // until Maintain builds it again
			continue
		}
		h, err := x.openWithin(ctx, q, r, &left)
		if err == nil {
			v.handles = append(v.handles, h)
			var set segment.Bits
			if set, err = deletions(ctx, q, r); err == nil {
				segments, deleted = append(segments, h.seg), append(deleted, set)
				continue
			}
		} else if errors.Is(err, errCondemned) {
			v.incomplete = true
			continue
		}
		for _, h := range v.handles {
			x.release(h)
		}
		return nil, err
	}
	v.Collection = segment.NewCollection(segments, deleted)
	return v, nil
}

// closeView ends the use of a view.
func (x *Index) closeView(v *view) {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	x.closeLocked(v)
}

func (x *Index) closeLocked(v *view) {
	if v.refs--; v.refs > 0 {
		return
	}
	for _, h := range v.handles {
		x.releaseLocked(h)
	}
}

// closeSegments closes all segments. Nothing may use them any more.
func (x *Index) closeSegments() {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	x.closeViewsLocked()
}

// closeViewsLocked closes the views that are kept. The caller must have locked
// open.mu.
func (x *Index) closeViewsLocked() {
	for _, v := range x.open.views {
		x.closeLocked(v)
	}
	x.open.views, x.open.of = nil, ""
}

// set returns the cached documents of a condition, or else those that make
// returns. The result must not be changed.
func (v *view) set(key string, make func() (segment.Docs, error)) (segment.Docs, error) {
	v.mu.Lock()
	d, ok := v.sets[key]
	v.mu.Unlock()
	if ok {
		return d, nil
	}
	d, err := make()
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.sets) < maxViewSets {
		v.sets[key] = d
	}
	return d, nil
}

// rowOfSegment returns the row of a segment of the view.
func (v *view) rowOfSegment(s *segment.Segment) (segmentRow, bool) {
	for _, h := range v.handles {
		if h.seg == s {
			return h.row, true
		}
	}
	return segmentRow{}, false
}

// verify compares the checksums of all segments. The error is a
// *damagedSegment.
func (v *view) verify() error {
	for _, h := range v.handles {
		if err := h.verify(); err != nil {
			return &damagedSegment{row: h.row, err: err}
		}
	}
	return nil
}
