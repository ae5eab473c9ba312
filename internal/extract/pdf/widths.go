package pdf

import (
	"cmp"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// widths contains the widths of characters, by code or CID. If ranges overlap,
// the last in the file counts.
type widths struct {
	ranges []widthRange // sorted by position if they do not overlap, otherwise in the order of the file
	sorted bool
}

// A widthRange has one width for all characters, or a list of widths.
type widthRange struct {
	lo, hi int
	width  float64
	list   []float64
}

const widthRangeSize = 2 * 48 // bytes, twice because slices grow

// widthsOf reads the W array of a CIDFont (ISO 32000-1, 9.7.4.3).
func widthsOf(f *cos.File, w cos.Array, missing float64, mem *cos.Share) widths {
	var ws widths
	for i := 0; i+1 < len(w) && f.Budget.Spend(10); {
		from, ok := cos.Integer(f.Resolve(w[i]))
		if !ok {
			break
		}
		if list, ok := f.Resolve(w[i+1]).(cos.Array); ok {
			ws.add(f, from, list, missing, mem)
			i += 2
			continue
		}
		to, ok := cos.Integer(f.Resolve(w[i+1]))
		if !ok || i+2 >= len(w) || !mem.Alloc(widthRangeSize) {
			break
		}
		if from <= to {
			ws.ranges = append(ws.ranges, widthRange{lo: from, hi: to, width: f.Number(w[i+2], missing)})
		}
		i += 3
	}
	disjoint := func(rs []widthRange) bool {
		for i := 1; i < len(rs); i++ {
			if rs[i].lo <= rs[i-1].hi {
				return false
			}
		}
		return true
	}
	if ws.sorted = disjoint(ws.ranges); !ws.sorted && f.Budget.Spend(20*len(ws.ranges)) &&
		mem.Alloc(widthRangeSize/2*len(ws.ranges)) {
		rs := slices.Clone(ws.ranges)
		slices.SortFunc(rs, func(a, b widthRange) int { return cmp.Compare(a.lo, b.lo) })
		if ws.sorted = disjoint(rs); ws.sorted {
			ws.ranges = rs
		}
	}
	return ws
}

// add adds a list of widths.
func (ws *widths) add(f *cos.File, from int, list cos.Array, missing float64, mem *cos.Share) {
	if len(list) == 0 || !f.Budget.Spend(2*len(list)) || !mem.Alloc(widthRangeSize+8*len(list)) {
		return
	}
	r := widthRange{lo: from, hi: from + len(list) - 1, list: make([]float64, len(list))}
	for i, o := range list {
		r.list[i] = f.Number(o, missing)
	}
	ws.ranges = append(ws.ranges, r)
}

// of returns the width of a character and reports whether there is one.
func (ws *widths) of(c int, b *cos.Budget) (float64, bool) {
	if ws.sorted {
		i, found := slices.BinarySearchFunc(ws.ranges, c, func(r widthRange, c int) int { return cmp.Compare(r.lo, c) })
		if !found {
			i--
		}
		if i < 0 || c > ws.ranges[i].hi {
			return 0, false
		}
		return ws.ranges[i].of(c), true
	}
	if !b.Spend(len(ws.ranges)) {
		return 0, false
	}
	for _, r := range slices.Backward(ws.ranges) {
		if r.lo <= c && c <= r.hi {
			return r.of(c), true
		}
	}
	return 0, false
}

func (r widthRange) of(c int) float64 {
	if r.list != nil {
		return r.list[c-r.lo]
	}
	return r.width
}
