package pdf

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// maxLabel is the maximum number of bytes of the prefix of a page label.
const maxLabel = 40

// A labelRange numbers the pages from one page to the next range (ISO 32000-1,
// 12.4.2).
type labelRange struct {
	from   int      // index of its first page
	style  cos.Name // "D", "R", "r", "A", "a" or "" for no number
	prefix string
	first  int // number of its first page
}

const labelRangeSize = 2 * (56 + maxLabel) // bytes, twice because slices grow

// pageLabels are the ranges of a document in order of their pages.
type pageLabels []labelRange

// labelsOf returns the labels of a document with a number of pages.
func labelsOf(f *cos.File, pages int) pageLabels {
	var labels pageLabels
	seen := map[cos.Ref]bool{}
	var walk func(o cos.Object, depth int)
	walk = func(o cos.Object, depth int) {
		if r, ok := o.(cos.Ref); ok {
			if seen[r] {
				return
			}
			seen[r] = true
		}
		if depth > maxTreeDepth || len(labels) > pages || !f.Budget.Spend(10) {
			return
		}
		d := f.Dict(o)
		nums := f.Array(d["Nums"])
		for i := 0; i+1 < len(nums) && len(labels) <= pages && f.Budget.Spend(10); i += 2 {
			from := f.Number(nums[i], -1)
			entry := f.Dict(nums[i+1])
			if entry == nil || from < 0 || from >= float64(pages) || !f.Budget.Spend(50) ||
				!f.Budget.Alloc(labelRangeSize) {
				continue
			}
			l := labelRange{from: int(from), style: f.Name(entry["S"]),
				first: int(max(1, min(f.Number(entry["St"], 1), 1e6)))}
			l.prefix = strings.Join(strings.Fields(metaString(f.Text(entry["P"]))), " ")
			for len(l.prefix) > maxLabel {
				_, n := utf8.DecodeLastRuneInString(l.prefix)
				l.prefix = l.prefix[:len(l.prefix)-n]
			}
			labels = append(labels, l)
		}
		for _, k := range f.Array(d["Kids"]) {
			walk(k, depth+1)
		}
	}
	walk(f.Root()["PageLabels"], 0)
	sort.SliceStable(labels, func(i, j int) bool { return labels[i].from < labels[j].from })
	return labels
}

// of returns the label of the page with an index from 0. A page without one has
// its number.
func (ls pageLabels) of(page int) string {
	i := sort.Search(len(ls), func(i int) bool { return ls[i].from > page }) - 1
	if i >= 0 {
		l := ls[i]
		if label := strings.TrimSpace(l.prefix + numeral(l.style, l.first+page-l.from)); label != "" {
			return label
		}
	}
	return strconv.Itoa(page + 1)
}

// numeral returns a number from 1 in a style of page labels. Large numbers are
// decimal in every style.
func numeral(style cos.Name, n int) string {
	switch {
	case style == "":
		return ""
	case style == "R" && n < 4000:
		return plain.Roman(n)
	case style == "r" && n < 4000:
		return strings.ToLower(plain.Roman(n))
	case style == "A" && n <= 8*26:
		return plain.Letters(n)
	case style == "a" && n <= 8*26:
		return strings.ToLower(plain.Letters(n))
	}
	return strconv.Itoa(n)
}
