package index

import (
	"slices"

	"knowhow/internal/analysis"
)

// languages returns English and the other languages whose stems a segment has.
func (h *handle) languages() ([]analysis.Language, error) {
	if langs := h.langs.Load(); langs != nil {
		return *langs, nil
	}
	out := []analysis.Language{analysis.English}
	for _, l := range analysis.Stemmed() {
		has, err := h.seg.HasPrefix(l.Prefix())
		if err != nil {
			return nil, err
		}
		if has {
			out = append(out, l)
		}
	}
	h.langs.Store(&out)
	return out, nil
}

// languages returns English and the other languages of the documents of the
// view. Words of queries are stemmed in all of them.
func (v *view) languages() ([]analysis.Language, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.langs != nil {
		return v.langs, nil
	}
	all := []analysis.Language{analysis.English}
	for _, h := range v.handles {
		langs, err := h.languages()
		if err != nil {
			return nil, err
		}
		all = append(all, langs...)
	}
	slices.Sort(all)
	v.langs = slices.Compact(all)
	return v.langs, nil
}
