package markup

import (
	"context"
	"regexp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// isVimHelp reports whether a text is a help file of Vim: it begins with its name as a
// tag, or ends with a modeline.
func isVimHelp(s string) bool {
	first, _, _ := strings.Cut(s[:min(len(s), 200)], "\n")
	if name, _, ok := strings.Cut(strings.TrimPrefix(first, "*"), "*"); ok && first[0] == '*' &&
		(strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, "x")) && !strings.Contains(name, " ") {
		return true
	}
	for line := range strings.SplitSeq(s[max(len(s)-1000, 0):], "\n") {
		if _, settings, ok := strings.Cut(line, "vim:"); ok && (strings.Contains(settings, "ft=help") ||
			strings.Contains(settings, "filetype=help")) {
			return true
		}
	}
	return false
}

// maxVimTerm is the number of bytes of the heading for tags on successive lines.
const maxVimTerm = 120

// maxVimTitle is the number of bytes of a title without tags.
const maxVimTitle = 60

// maxVimTermWords is the number of words of a text that is a term. The tags of a line
// with more stand for it.
const maxVimTermWords = 4

// vimHelp marks the headings of a help file of Vim: the lines below rules, those in
// capitals or with a tilde at the end, and those with tags, which are terms.
func vimHelp(ctx context.Context, t *plain.Text) {
	ruled := 0    // level of the heading that comes next, below a rule, or 0
	first := true // no rule has been read
	code, blank, term := false, true, false
	for off, line := range plain.Lines(ctx, t.Body) {
		line = strings.TrimRight(line, " \t\r")
		wasBlank, wasTerm := blank, term
		blank, term = line == "", false
		if code && (blank || line[0] == ' ' || line[0] == '\t') {
			continue
		}
		code = line == ">" || strings.HasSuffix(line, " >")
		switch {
		case off == 0 || blank || len(line) > plain.MaxMarked:
			continue
		case len(line) >= 20 && isRule(line) && (line[0] == '=' || line[0] == '-'):
			ruled, first = 2, false
			if line[0] == '=' {
				ruled = 1
			}
			continue
		}
		text, tags := vimTags(line)
		indented := line[0] == ' ' || line[0] == '\t'
		column := text
		if i := strings.Index(text, "  "); i >= 0 {
			column = strings.TrimSpace(text[:i])
		}
		title := plain.OneLine(strings.TrimSuffix(text, "~"))
		number := sectionNumber(title)
		switch {
		case ruled > 0 && text == "":
		case ruled > 0:
			if !indented && !strings.HasPrefix(title, "vim:") && (tags != "" || !strings.HasSuffix(title, ".") &&
				len(title) <= maxVimTitle) {
				t.Mark(off, ruled, title)
			}
			ruled = 0
		case !indented && tags != "" && title == column && (first || number != nil):
			t.Mark(off, max(len(number), 1), title)
		case !indented && (tags != "" || wasBlank) && title == column && isCapitals(title):
			t.Mark(off, 3, title)
		case !indented && text != title && strings.HasSuffix(text, " ~") && column == text && len(text) <= maxTextHeading:
			t.Mark(off, 4, title)
		case tags != "":
			if column == "" || column == ">" || len(strings.Fields(column)) > maxVimTermWords {
				column = tags
			}
			term = true
			if n := len(t.Headings); !wasTerm {
				t.Mark(off+plain.Blanks(line), document.TermLevel, column)
			} else if h := &t.Headings[n-1]; len(h.Text)+len(", ")+len(column) <= maxVimTerm {
				h.Text += ", " + column
			}
		}
	}
}

// vimError matches the number of an error.
var vimError = regexp.MustCompile(`^E\d+$`)

// vimTags returns the text of a line without its tags, with two blanks between
// columns, and the tags, without the numbers of errors if there are others. A tag at the
// beginning of a text is a part of it.
func vimTags(line string) (text, tags string) {
	if strings.Count(line, "*") < 2 {
		return strings.ReplaceAll(line, "\t", "  "), ""
	}
	var list, errors []string
	var b strings.Builder
	for rest := line; rest != ""; {
		n := len(rest) - len(strings.TrimLeft(rest, " \t"))
		space := strings.ReplaceAll(rest[:n], "\t", "  ")
		rest = rest[n:]
		word, _, _ := strings.Cut(rest, " ")
		word, _, _ = strings.Cut(word, "\t")
		rest = rest[len(word):]
		if len(word) < 3 || word[0] != '*' || word[len(word)-1] != '*' || strings.ContainsAny(word[1:len(word)-1], "*|") {
			b.WriteString(space + word)
			continue
		}
		word = word[1 : len(word)-1]
		if vimError.MatchString(word) {
			errors = append(errors, word)
		} else {
			list = append(list, word)
		}
		if next := strings.TrimLeft(rest, " \t"); b.Len() == 0 && space == "" && next != "" && next[0] != '*' {
			b.WriteString(word)
			rest = " " + next
		}
	}
	if len(list) == 0 {
		list = errors
	}
	return strings.TrimSpace(b.String()), strings.Join(list, ", ")
}
