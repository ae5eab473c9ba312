package data

import (
	"context"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Limits on CSV.
const (
	maxQuoted   = 1 << 16 // bytes of a quoted field; a longer one has a stray quote
	sampleLines = 20      // that determine the separator
)

// CSV reads a table with a row on each line. If there is no separator, the lines
// are text. It follows RFC 4180, but any separator and stray quotes are accepted.
func CSV(ctx context.Context, t *plain.Text, src string) {
	separator, rest := csvSeparator(src, t.MediaType)
	if separator == 0 {
		t.Body = plain.TrimBlankLines(src)
		return
	}
	w := plain.NewWriter(ctx)
	sheet := plain.Sheet{W: w, Level: 1}
	var cells []plain.Cell
	for rest != "" && ctx.Err() == nil && w.Err == nil {
		cells = cells[:0]
		for more := true; more; {
			var field string
			field, rest, more = Field(rest, separator)
			if len(cells) < plain.MaxColumns {
				cells = append(cells, plain.Cell{Text: field, Value: plain.IsValue(field)})
			}
		}
		sheet.Row(cells)
	}
	if w.Err != nil { // more text than there is in the file: the lines are no table
		t.Body = plain.TrimBlankLines(src)
		return
	}
	w.Finish(t)
}

// Field returns the first field of s, what follows it, and whether that is in
// the same row.
func Field(s string, separator byte) (field, rest string, more bool) {
	if strings.HasPrefix(s, `"`) {
		if field, rest, ok := quotedField(s[1:]); ok && (rest == "" || rest[0] == separator || rest[0] == '\n') {
			if rest == "" {
				return field, "", false
			}
			return field, rest[1:], rest[0] == separator
		}
	}
	for i := range len(s) {
		if s[i] == separator || s[i] == '\n' {
			return s[:i], s[i+1:], s[i] == separator
		}
	}
	return s, "", false
}

// quotedField returns a field up to its closing quote. A doubled quote is one in
// the field.
func quotedField(s string) (field, rest string, ok bool) {
	for i := 0; i < min(len(s), maxQuoted); i++ {
		if s[i] != '"' {
			continue
		}
		if i+1 == len(s) || s[i+1] != '"' {
			return strings.ReplaceAll(s[:i], `""`, `"`), s[i+1:], true
		}
		i++
	}
	return "", s, false
}

// csvSeparator returns the separator of a table, or 0 if there is none, and its rows.
func csvSeparator(src, media string) (separator byte, rows string) {
	line, rest, _ := strings.Cut(src, "\n")
	switch {
	case strings.HasPrefix(line, "sep=") && len(strings.TrimSpace(line)) == len("sep=;"): // written by and for Excel
		return line[4], rest
	case media == "text/tab-separated-values":
		return '\t', src
	}
	return likelySeparator(src), src
}

// likelySeparator returns the separator that every line contains at least once, the
// most frequent one, or 0.
func likelySeparator(s string) byte {
	const separators = ",;\t|"
	var least, total [len(separators)]int
	lines := 0
	for s != "" && lines < sampleLines {
		var line string
		if line, s, _ = strings.Cut(s, "\n"); strings.TrimSpace(line) == "" {
			continue
		}
		lines++
		var counts [len(separators)]int
		quoted := false
		for i := range len(line) {
			if line[i] == '"' {
				quoted = !quoted
			} else if n := strings.IndexByte(separators, line[i]); n >= 0 && !quoted {
				counts[n]++
			}
		}
		for i, n := range counts {
			total[i] += n
			if least[i] = min(least[i], n); lines == 1 {
				least[i] = n
			}
		}
	}
	best := -1
	for i := range separators {
		if total[i] > 0 && (best < 0 || least[i] > least[best] || least[i] == least[best] && total[i] > total[best]) {
			best = i
		}
	}
	if best < 0 {
		return 0
	}
	return separators[best]
}
