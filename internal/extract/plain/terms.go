package plain

import (
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// leastText is the mean number of bytes of the texts of a definition list's terms from
// which on the terms are headings. A list of shorter ones, such as one of keys or of
// the statuses of a program, is a table, and one without texts a table of contents.
const leastText = 32

// KeepTerms removes the headings of definition lists whose texts are short.
func (t *Text) KeepTerms() {
	t.Headings = keepTerms(t.Headings, document.NestedTermLevel, len(t.Body))
	t.Headings = keepTerms(t.Headings, document.TermLevel, len(t.Body))
}

// keepTerms returns the headings without those of lists of a level whose texts are
// short, and without those of the lists in these. size is the number of bytes of the
// body.
func keepTerms(hs []document.Heading, level, size int) []document.Heading {
	kept := hs[:0]
	for i := 0; i < len(hs); {
		if hs[i].Level < level || hs[i].Text == "" {
			kept = append(kept, hs[i])
			i++
			continue
		}
		first, least, end := i, 0, size
		for ; i < len(hs); i++ {
			if h := hs[i]; h.Level < level || h.Level == level && h.Text == "" {
				end = h.Offset
				break
			}
			if hs[i].Level == level {
				least += leastText + len(hs[i].Text)
			}
		}
		short := end-hs[first].Offset < least
		if short && i < len(hs) && hs[i].Level == level {
			i++ // the end of the list
		} else if !short {
			kept = append(kept, hs[first:i]...)
		}
	}
	return slices.Clip(kept)
}
