package pdf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A painted is a line of a test page.
type painted struct {
	x, y float64
	text string
}

func paintedPage(lines ...painted) []byte {
	var b strings.Builder
	b.WriteString("BT /F1 10 Tf ")
	for _, l := range lines {
		fmt.Fprintf(&b, "1 0 0 1 %g %g Tm (%s) Tj ", l.x, l.y, l.text)
	}
	b.WriteString("ET")
	return newMaker(helvetica, b.String()).bytes()
}

// The cells of a row stay together if they have several lines. Columns of text
// are no cells.
func TestRowsWithWrappedCells(t *testing.T) {
	cell := func(x, y float64, lines ...string) (c []painted) {
		for i, l := range lines {
			c = append(c, painted{x, y - 12*float64(i), l})
		}
		return c
	}
	var column [2][]painted
	for i := range 2 {
		for n := range 20 {
			column[i] = append(column[i], painted{72 + 250*float64(i), 700 - 12*float64(n), fmt.Sprintf("line %d of the text in column %d, which goes", n, i+1)})
		}
	}
	for name, tt := range map[string]struct {
		lines [][]painted
		want  string // beginning of the text
	}{
		"aligned at the top": {[][]painted{
			cell(72, 720, "A sentence before the table."),
			cell(72, 690, "Item"), cell(200, 690, "Description"), cell(400, 690, "Price"),
			cell(72, 660, "Season", "ticket"), cell(200, 660, "Valid on all", "lines of the", "network"), cell(400, 660, "365 euros"),
			cell(72, 612, "Bicycle"), cell(200, 612, "Any"), cell(400, 612, "2 euros"),
			cell(72, 582, "Day", "ticket"), cell(200, 582, "Valid until", "four"), cell(400, 582, "8 euros"),
			cell(72, 540, "A sentence after the table."),
		}, "A sentence before the table.\n\nItem\tDescription\tPrice\nSeason ticket\tValid on all lines of the network\t365 euros\nBicycle\tAny\t2 euros\nDay ticket\tValid until four\t8 euros\n\nA sentence after the table."},
		"in the middle": {[][]painted{
			cell(72, 654, "One"), cell(200, 660, "Words that are di-", "vided"), cell(400, 654, "1"),
			cell(72, 614, "Two"), cell(200, 620, "Two", "lines"), cell(400, 614, "2"),
		}, "One\tWords that are divided\t1\nTwo\tTwo lines\t2"},
		"columns": {[][]painted{column[0], column[1]}, "line 0 of the text in column 1, which goes line 1 of the text in column 1"},
		"one step": {[][]painted{
			cell(72, 660, "The address", "of the sender"), cell(300, 660, "The address", "of the reader"), cell(72, 600, "Dear reader,"),
		}, "The address of the sender\n\nThe address of the reader\n\nDear reader,"},
	} {
		var lines []painted
		for _, l := range tt.lines {
			lines = append(lines, l...)
		}
		x, err := Read(t.Context(), paintedPage(lines...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, x.Body[:min(len(tt.want), len(x.Body))]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if name == "columns" && strings.Contains(x.Body, "\t") {
			t.Errorf("columns are read as cells: %q", x.Body)
		}
	}
}
