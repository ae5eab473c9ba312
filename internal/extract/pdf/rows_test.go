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
			column[i] = append(column[i], painted{72 + 250*float64(i), 700 - 12*float64(n),
				fmt.Sprintf("line %d of the text in column %d, which goes", n, i+1)})
		}
	}
	for name, tt := range map[string]struct {
		lines [][]painted
		want  string // beginning of the text
	}{
		"aligned at the top": {[][]painted{
			cell(72, 720, "A sentence before the table."),
			cell(72, 690, "Item"), cell(200, 690, "Description"), cell(400, 690, "Price"),
			cell(72, 660, "Season", "ticket"), cell(200, 660, "Valid on all", "lines of the", "network"),
			cell(400, 660, "365 euros"),
			cell(72, 612, "Bicycle"), cell(200, 612, "Any"), cell(400, 612, "2 euros"),
			cell(72, 582, "Day", "ticket"), cell(200, 582, "Valid until", "four"), cell(400, 582, "8 euros"),
			cell(72, 540, "A sentence after the table."),
		}, "A sentence before the table.\n\nItem\tDescription\tPrice\nSeason ticket\tValid on all lines of the network\t365 euros\nBicycle\tAny\t2 euros\nDay ticket\tValid until four\t8 euros\n\nA sentence after the table."},
		"in the middle": {[][]painted{
			cell(72, 654, "One"), cell(200, 660, "Words that are di-", "vided"), cell(400, 654, "1"),
			cell(72, 614, "Two"), cell(200, 620, "Two", "lines"), cell(400, 614, "2"),
		}, "One\tWords that are divided\t1\nTwo\tTwo lines\t2"},
		"columns": {[][]painted{column[0], column[1]},
			"line 0 of the text in column 1, which goes line 1 of the text in column 1"},
		"one step": {[][]painted{
			cell(72, 660, "The address", "of the sender"), cell(300, 660, "The address", "of the reader"),
			cell(72, 600, "Dear reader,"),
		}, "The address of the sender\n\nThe address of the reader\n\nDear reader,"},
	} {
		var lines []painted
		for _, l := range tt.lines {
			lines = append(lines, l...)
		}
		x, err := Read(t.Context(), paintedPage(lines...), 0)
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

// A table that was painted column by column has the rows that its reader sees, if
// it has figures. Columns of text, an index and numbers of lines are no table.
func TestRowsOfColumns(t *testing.T) {
	column := func(x, y, lead float64, cells ...string) (c []painted) {
		for i, s := range cells {
			if s != "" {
				c = append(c, painted{x, y - lead*float64(i), s})
			}
		}
		return c
	}
	labels := []string{"Personnel", "Buildings and roads", "Interest", "Other expenses", "Total"}
	var prose [2][]string
	for i := range 2 {
		for n := range 12 {
			prose[i] = append(prose[i], fmt.Sprintf("line %d of the text in column %d, a long one", n, i+1))
		}
	}
	const budget = "Personnel\t1,200\t1,250\nBuildings and roads\t340\t(12)\nInterest\t–\t7\nOther expenses\t21\t20\nTotal\t1,561\t1,265"
	tests := []struct {
		name  string
		lines [][]painted
		want  string
	}{
		{"two columns of figures", [][]painted{column(72, 700, 14, labels...),
			column(300, 700, 14, "1,200", "340", "\\226", "21", "1,561"),
			column(400, 700, 14, "1,250", "\\(12\\)", "7", "20", "1,265")}, budget},
		{"far apart", [][]painted{column(72, 700, 40, labels...),
			column(400, 700, 40, "1,200", "340", "\\226", "21", "1,561"),
			column(500, 700, 40, "1,250", "\\(12\\)", "7", "20", "1,265")}, budget},
		{"close figures", [][]painted{column(72, 700, 14, labels...),
			column(300, 700, 14, "1,200", "340", "\\226", "21", "1,561"),
			column(330, 700, 14, "1,250", "\\(12\\)", "7", "20", "1,265")}, budget},
		{"the figures row by row", [][]painted{column(72, 700, 14, labels...), column(300, 700, 14, "1,200"),
			column(400, 700, 14, "1,250"),
			column(300, 686, 14, "340"), column(400, 686, 14, "\\(12\\)"), column(300, 672, 14, "\\226"),
			column(400, 672, 14, "7"),
			column(300, 658, 14, "21"), column(400, 658, 14, "20"), column(300, 644, 14, "1,561"),
			column(400, 644, 14, "1,265")}, budget},
		{"titles of columns, a column of words, empty cells",
			[][]painted{column(72, 700, 14, "", "Roads", "Schools", "Parks", "Total"),
				column(200, 700, 14, "Department", "Works", "", "Works"),
				column(300, 700, 14, "2024", "5", "6", "7", "18"), column(400, 700, 14, "2025", "8", "", "1", "9")},
			"Department\t2024\t2025\nRoads\tWorks\t5\t8\nSchools\t6\nParks\tWorks\t7\t1\nTotal\t18\t9"},
		{"text around it", [][]painted{column(72, 728, 14, "The budget of the town", "", "Personnel", "Interest",
			"Total", "", "Source: the treasurer"),
			column(300, 700, 14, "12", "3", "15"), column(72, 560, 14, "A new paragraph.")},
			"The budget of the town\n\nPersonnel\t12\nInterest\t3\nTotal\t15\n\nSource: the treasurer\n\nA new paragraph."},
		{"two tables", [][]painted{column(72, 700, 14, "A", "B", "C"), column(300, 700, 14, "1", "2", "3"),
			column(72, 600, 14, "D", "E", "F"), column(300, 600, 14, "4", "5", "6")},
			"A\t1\nB\t2\nC\t3\n\nD\t4\nE\t5\nF\t6"},
		{"columns of text", [][]painted{column(72, 700, 12, prose[0]...), column(310, 700, 12, prose[1]...)},
			strings.Join(prose[0], " ") + "\n\n" + strings.Join(prose[1], " ")},
		{"an index", [][]painted{column(72, 700, 12, "apples, 12", "bread, 3", "cheese, 45"),
			column(300, 700, 12, "milk, 4", "nuts, 100", "oranges, 7")},
			"apples, 12\nbread, 3\ncheese, 45\n\nmilk, 4\nnuts, 100\noranges, 7"},
		{"an index with many pages", [][]painted{column(72, 700, 12, "apples, 12, 13, 14", "15, 17, 18, 19, 20,",
			"22, 24, 25"), column(300, 700, 12, "102, 105, 107,", "109, 110, 111,", "120, 121")},
			"apples, 12, 13, 14\n15, 17, 18, 19, 20,\n22, 24, 25\n\n102, 105, 107,\n109, 110, 111,\n120, 121"},
		{"numbers of lines on the left", [][]painted{column(50, 700, 12, "1", "2", "3", "4"),
			column(72, 700, 12, prose[0][:4]...)},
			"1\n2\n3\n4\n\n" + strings.Join(prose[0][:4], " ")},
		{"numbers of lines on the right", [][]painted{column(72, 700, 12, prose[0][:4]...),
			column(266, 700, 12, "1", "2", "3", "4")},
			strings.Join(prose[0][:4], " ") + "\n\n1\n2\n3\n4"},
	}
	for _, tt := range tests {
		var lines []painted
		for _, l := range tt.lines {
			lines = append(lines, l...)
		}
		x, err := Read(t.Context(), paintedPage(lines...), 0)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := x.Body
		switch tt.name {
		case "columns of text", "an index", "an index with many pages", "numbers of lines on the left",
			"numbers of lines on the right":
			if strings.Contains(got, "\t") {
				t.Errorf("%s: read as a table: %q", tt.name, got)
			}
			got = strings.Join(strings.Fields(got), " ")
			tt.want = strings.Join(strings.Fields(tt.want), " ")
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
