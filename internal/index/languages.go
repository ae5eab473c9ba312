package index

import (
	"slices"
	"strings"

	"knowhow/internal/analysis"
	"knowhow/internal/segment"
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
	v.stemmed = map[string]segment.Bits{}
	for i, h := range v.handles {
		langs, err := h.languages()
		if err != nil {
			return nil, err
		}
		all = append(all, langs...)
		for _, l := range langs[1:] {
			if v.stemmed[l.Prefix()] == nil {
				v.stemmed[l.Prefix()] = segment.NewBits(len(v.handles))
			}
			v.stemmed[l.Prefix()].Set(i)
		}
	}
	slices.Sort(all)
	v.langs = slices.Compact(all)
	return v.langs, nil
}

// segmentsOf returns the segments that may have tokens in sequence: if one is a
// stem of another language than English, those with stems of that language, and
// otherwise nil, for all. It must be called after languages.
func (v *view) segmentsOf(tokens []string) segment.Bits {
	for _, t := range tokens {
		if code, _, ok := strings.Cut(t, ":"); ok {
			return v.stemmed[code+":"]
		}
	}
	return nil
}
