package office

import (
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A numbering counts the items of the numbered lists and headings of a word
// processing document (ECMA-376, part 1, 17.9).
type numbering struct {
	lists    map[string]*numberedList // by abstractNumId
	abstract map[string]string        // numId to abstractNumId
	restart  map[string]int           // numId to the level at which it restarts the list once, plus 1
}

// A numberedList has a counter for each level.
type numberedList struct {
	levels [9]numberLevel
	counts [9]int
}

type numberLevel struct {
	format, text string // such as "decimal" and "%1.%2."
	start        int
}

// maxLists is the maximum number of lists whose numbers are known.
const maxLists = 10000

func (n *numbering) read(x *xmlReader) {
	*n = numbering{lists: map[string]*numberedList{}, abstract: map[string]string{}, restart: map[string]int{}}
	var list *numberedList
	var level *numberLevel
	num := ""
	for x.next() && len(n.lists)+len(n.abstract) < maxLists {
		switch {
		case x.starts("abstractnum"):
			list = &numberedList{}
			n.lists[x.attr("abstractnumid")] = list
		case x.starts("num"):
			num, list = x.attr("numid"), nil
		case x.starts("abstractnumid"):
			n.abstract[num] = x.attr("val")
		case x.starts("lvloverride"):
			n.restart[num] = levelIndex(x.attr("ilvl")) + 1
		case x.starts("lvl"):
			if level = nil; list != nil {
				level = &list.levels[levelIndex(x.attr("ilvl"))]
				level.start = 1
			}
		case level == nil:
		case x.starts("start"):
			level.start, _ = strconv.Atoi(x.attr("val"))
		case x.starts("numfmt"):
			level.format = x.attr("val")
		case x.starts("lvltext"):
			level.text = x.attr("val")
		}
	}
}

func levelIndex(s string) int {
	i, _ := strconv.Atoi(s)
	return min(max(i, 0), 8)
}

// mark counts an item and returns its number, "-" for a bullet, or "" if the
// list is not known.
func (n *numbering) mark(num, level string) string {
	list := n.lists[n.abstract[num]]
	if list == nil || num == "" || num == "0" {
		return ""
	}
	at := levelIndex(level)
	if n.restart[num] == at+1 {
		n.restart[num], list.counts[at] = 0, 0
	}
	if list.counts[at] == 0 {
		list.counts[at] = list.levels[at].start - 1
	}
	list.counts[at]++
	clear(list.counts[at+1:])
	l := list.levels[at]
	switch l.format {
	case "bullet":
		return "-"
	case "none":
		return ""
	}
	s := l.text
	if len(s) > 100 || !strings.Contains(s, "%") {
		return "-"
	}
	for i := range at + 1 {
		n := max(list.counts[i], list.levels[i].start)
		s = strings.ReplaceAll(s, "%"+strconv.Itoa(i+1), ordinal(n, list.levels[i].format))
	}
	return s
}

// ordinal returns a number in a format of numbering; other formats than letters
// and Roman numerals are shown as decimal numbers.
func ordinal(n int, format string) string {
	switch {
	case n < 1 || n > 3999:
	case format == "lowerLetter" && n <= 260:
		return strings.ToLower(plain.Letters(n))
	case format == "upperLetter" && n <= 260:
		return plain.Letters(n)
	case format == "lowerRoman":
		return strings.ToLower(plain.Roman(n))
	case format == "upperRoman":
		return plain.Roman(n)
	}
	return strconv.Itoa(n)
}
