package extract

import "strings"

// rstListTable adds the rows of a list-table, whose lines are content: an item of
// a list for each row, with a list of cells. It returns false if content is no
// such list.
func rstListTable(content []string, substitutions map[string]string, out *lines) bool {
	var cells []string
	row, bullet := -1, "" // indentation and bullet of the items that are rows
	flush := func() {
		for i, c := range cells {
			cells[i] = oneLine(rstInline(c, substitutions))
		}
		if row := joinCells(cells); row != "" {
			out.add(row)
		}
		cells = cells[:0]
	}
	mark := "" // bullet of cells
	for _, line := range content {
		if line == "" {
			continue
		}
		at, rest := indentation(line), strings.TrimLeft(line, " \t")
		if row < 0 {
			if row, bullet = at, rest[:1]; !isBullet(rest) {
				return false
			}
		}
		if at == row && isBullet(rest) && rest[:1] == bullet {
			flush()
			at, rest = row+2, strings.TrimLeft(rest[1:], " ")
		}
		switch cell := isBullet(rest) && at == row+2 && (mark == "" || rest[:1] == mark); {
		case cell:
			mark = rest[:1]
			cells = append(cells, strings.TrimLeft(rest[1:], " "))
		case len(cells) > 0 && rest != "":
			cells[len(cells)-1] += " " + rest
		case rest != "":
			cells = append(cells, rest)
		}
	}
	flush()
	return row >= 0
}

// isBullet reports whether a line begins an item of a list.
func isBullet(line string) bool {
	return line != "" && strings.Contains("*-+", line[:1]) && (len(line) == 1 || line[1] == ' ')
}

// rstCSVTable adds the rows of a csv-table: those in its options and those on the
// lines of its content.
func rstCSVTable(content []string, options, substitutions map[string]string, out *lines) {
	separator := byte(',')
	switch delim := options["delim"]; {
	case delim == "tab":
		separator = '\t'
	case delim == "space":
		separator = ' '
	case len(delim) == 1:
		separator = delim[0]
	}
	var trimmed []string
	for _, line := range content {
		trimmed = append(trimmed, strings.TrimLeft(line, " \t"))
	}
	rstCSVRows(options["header"], ',', substitutions, out)
	rstCSVRows(strings.Join(trimmed, "\n"), separator, substitutions, out)
}

// rstCSVRows adds rows in the syntax of CSV.
func rstCSVRows(src string, separator byte, substitutions map[string]string, out *lines) {
	for src != "" {
		var cells []string
		for more := true; more; {
			var field string
			field, src, more = csvField(strings.TrimLeft(src, " "), separator)
			if len(cells) < maxColumns {
				cells = append(cells, oneLine(rstInline(field, substitutions)))
			}
		}
		if row := joinCells(cells); row != "" {
			out.add(row)
		}
	}
}
