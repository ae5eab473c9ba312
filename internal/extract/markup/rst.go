package markup

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/data"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

var (
	rstDirective = regexp.MustCompile(`^\.\.[ \t]+(?:\|([^|]+)\|[ \t]+)?([\w:.+-]+)::[ \t]*(.*)$`)
	rstTarget    = regexp.MustCompile("^\\.\\.[ \t]+(_[^:]*:|_`[^`]*`:|__:|\\[[^\\]]+\\])")
	rstOption    = regexp.MustCompile(`^[ \t]+:([\w-]+):( .*)?$`)
	rstRole      = regexp.MustCompile(":[\\w:.+-]+:`([^`]*)`|`([^`]*)`:[\\w:.+-]+:")
	rstLink      = regexp.MustCompile("`([^`<]*)<[^`>]*>`_{1,2}")
	rstQuoted    = regexp.MustCompile("``([^`]+)``|`([^`]+)`_{0,2}")
	rstStrong    = regexp.MustCompile(`\*\*([^\s*][^*]*)\*\*|\*([^\s*][^*]*)\*`)
	rstReference = regexp.MustCompile(`\b([A-Za-z](?:[\w-]*[A-Za-z0-9])?)__?([^\w]|$)|\|([^|\s][^|]*)\|_{0,2}`)
	rstFootnote  = regexp.MustCompile(` ?\[(?:#[\w-]*|\*|\d+)\]_`)
	rstLiteral   = regexp.MustCompile("``[^`]+``")
	rstEscape    = regexp.MustCompile(`\\(\S)`)
	rstTable     = regexp.MustCompile(`^[ \t]*(\+[-=+]{2,}\+|=[= ]+=|-[- ]+-)[ \t]*$`)
)

// rstWithoutContent are the directives whose content is no text.
var rstWithoutContent = set(`toctree contents include literalinclude highlight index raw automodule autoclass
	autofunction automethod autosummary currentmodule module default-role role sectnum section-numbering header
	footer target-notes image graphviz mermaid plantuml tabularcolumns unicode py:currentmodule`)

// rstCode are the directives whose content is kept as it is, and whose argument
// is the name of a language.
var rstCode = set("code code-block sourcecode math prompt console")

// rstObjects are the directives that describe what their arguments name, without the
// domain before them: the names of Sphinx and of tools that follow it.
var rstObjects = set(`function method class classmethod staticmethod decorator decoratormethod attribute property
	data exception module option cmdoption program envvar confval setting macro type struct enum enum-class
	enum-struct enumerator union member var alias concept object describe directive role
	get post put delete patch head options django-admin django-admin-option templatetag templatefilter
	fieldlookup signal event command action parameter target variable`)

// rstOptions matches the options at the beginning of an item of an option list, and
// the text behind them.
var rstOptions = regexp.MustCompile(`^((?:--?[\w?][\w-]*(?:[= ](?:<[^<>]+>|\w[\w-]*))?(?:, )?)+)(?: {2,}(\S.*))?$`)

// rstNoTerm matches the beginnings of lines that are no terms although the next line
// is indented: items of lists, tests, lines of tables, fields and directives.
var rstNoTerm = regexp.MustCompile(`^(?:[*+\-•] |\(?(?:\d+|[a-zA-Z#]|[ivxIVX]+)[.)] |>>>|\.\.\.|[|:+=]|\.\. )`)

// An rst is the state of a reStructuredText document that is being read.
type rst struct {
	lines         []string // without white space at their ends
	substitutions map[string]string
	out           *plain.Writer
	paragraph     []string // its lines, because the marks of a link may be on several
	terms         []int    // indentations of the terms whose text the next line may belong to
}

// RST extracts the text of a reStructuredText document. Directives, targets,
// comments and the marks inside lines are left out.
func RST(ctx context.Context, t *plain.Text, src string) {
	r := &rst{out: plain.NewWriter(ctx)}
	for _, line := range plain.Lines(ctx, src) {
		r.lines = append(r.lines, strings.TrimRight(line, " \t"))
	}
	r.findSubstitutions()
	var styles []string // of headings, by level
	for i := 0; i < len(r.lines); i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return
		}
		line := r.lines[i]
		if line == "" || len(r.paragraph) > 200 {
			r.flush()
			r.out.Blank()
		}
		if len(line) > plain.MaxMarked {
			r.flush()
			r.out.Line(line)
			continue
		}
		if text, style, n := rstHeading(r.lines[i:]); n > 0 {
			r.flush()
			r.terms = r.terms[:0]
			level := slices.Index(styles, style) + 1
			if level == 0 {
				styles = append(styles, style)
				level = len(styles)
			}
			r.out.Heading(level, r.inline(text))
			i += n - 1
			continue
		}
		i = r.line(i)
	}
	r.flush()
	r.out.Finish(t)
}

// line adds the text of line i, which is no heading. It returns the number of the
// last line that it has read.
func (r *rst) line(i int) int {
	line := r.lines[i]
	trimmed := strings.TrimLeft(line, " \t")
	indent := plain.Indentation(line)
	if r.isTerm(i, indent, trimmed) {
		r.flush()
		term, text := trimmed, ""
		if m := match(rstOptions, trimmed, trimmed[0] == '-'); m != nil {
			term, text = m[1], m[2]
		}
		r.term(indent, r.inline(term))
		if text != "" {
			r.out.Line(r.inline(text))
		}
		return i
	}
	if line != "" && len(r.paragraph) == 0 && !strings.HasPrefix(trimmed, "..") {
		r.endTerms(indent)
	}
	switch {
	case trimmed == "::":
		r.flush()
		return r.literal(i+1, indent)
	case strings.HasPrefix(trimmed, ".."):
		r.flush()
		if m := rstDirective.FindStringSubmatch(trimmed); m != nil {
			return r.directive(i, indent, m)
		}
		if rstTarget.MatchString(trimmed) {
			if strings.HasPrefix(trimmed[2:], " [") { // a footnote or citation
				r.out.Line(strings.Repeat(" ", indent) + r.inline(trimmed[3:]))
			}
			return i
		}
		if trimmed == ".." || trimmed[2] == ' ' { // a comment
			return r.block(i+1, indent) - 1
		}
	case line == "", rstRule(line, trimmed):
		return i
	}
	literal := strings.HasSuffix(trimmed, "::")
	if literal {
		line = strings.TrimSuffix(strings.TrimRight(line, " \t"), ":")
		line = strings.TrimSuffix(line, " :")
	}
	r.paragraph = append(r.paragraph, line)
	if literal && i+1 < len(r.lines) && r.lines[i+1] == "" {
		r.flush()
		r.out.Blank()
		return r.literal(i+1, indent)
	}
	return i
}

// maxRSTTerm is the number of bytes of a term of a definition list.
const maxRSTTerm = 200

// isTerm reports whether line i is a term of a definition list, whose text is indented
// on the next line, or an option with its text.
func (r *rst) isTerm(i, indent int, trimmed string) bool {
	if trimmed == "" || len(trimmed) > maxRSTTerm {
		return false
	}
	if n := len(r.paragraph); n > 0 && (!slices.Contains(r.terms, indent) ||
		plain.Indentation(r.paragraph[n-1]) <= indent) {
		return false
	}
	next := ""
	if i+1 < len(r.lines) {
		next = r.lines[i+1]
	}
	if trimmed[0] == '-' {
		if m := rstOptions.FindStringSubmatch(trimmed); m != nil && m[2] != "" {
			return true
		}
	}
	return next != "" && plain.Indentation(next) > indent && !strings.HasSuffix(trimmed, "::") &&
		!rstNoTerm.MatchString(trimmed)
}

// term adds a term.
func (r *rst) term(indent int, text string) {
	for n := len(r.terms); n > 0 && r.terms[n-1] >= indent; n-- {
		r.terms = r.terms[:n-1]
	}
	r.out.Term(len(r.terms), text)
	r.terms = append(r.terms, indent)
}

// endTerms ends the definition lists whose terms are not above a text with an
// indentation.
func (r *rst) endTerms(indent int) {
	for n := len(r.terms); n > 0 && r.terms[n-1] >= indent; n-- {
		r.terms = r.terms[:n-1]
		r.out.EndTerms(n - 1)
	}
}

// flush adds the paragraph.
func (r *rst) flush() {
	r.out.Text(r.inline(strings.Join(r.paragraph, "\n")))
	r.paragraph = r.paragraph[:0]
}

// findSubstitutions finds the texts that stand for names between bars.
func (r *rst) findSubstitutions() {
	r.substitutions = map[string]string{}
	for i, line := range r.lines {
		if !strings.HasPrefix(line, ".. |") || len(line) > plain.MaxMarked || len(r.substitutions) > 1000 {
			continue
		}
		switch m := rstDirective.FindStringSubmatch(line); {
		case m == nil:
		case m[2] == "replace":
			r.substitutions[m[1]] = m[3]
		case m[2] == "image":
			options, _ := r.options(i+1, r.block(i+1, 0))
			r.substitutions[m[1]] = options["alt"]
		}
	}
}

// rstHeading returns the text and style of the heading at the start of lines, and
// the number of its lines. n is 0 if there is none.
func rstHeading(lines []string) (text, style string, n int) {
	if len(lines) >= 3 && rstAdornment(lines[0]) && lines[2] == lines[0] && lines[1] != "" &&
		utf8.RuneCountInString(lines[0]) >= 2 {
		return strings.TrimSpace(lines[1]), lines[0][:1] + "over", 3
	}
	if len(lines) < 2 || lines[0] == "" || lines[0][0] == ' ' || strings.HasPrefix(lines[0], ".. ") {
		return "", "", 0
	}
	if !rstAdornment(lines[1]) || rstAdornment(lines[0]) ||
		utf8.RuneCountInString(lines[1]) < min(utf8.RuneCountInString(lines[0]), 4) {
		return "", "", 0
	}
	return lines[0], lines[1][:1], 2
}

// rstAdornment reports whether a line consists of one punctuation character.
func rstAdornment(line string) bool {
	const marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	return line != "" && strings.Contains(marks, line[:1]) && strings.Trim(line, line[:1]) == ""
}

// rstRule reports whether a line, without white space at its start trimmed, is a
// rule of a table or between two parts of the text.
func rstRule(line, trimmed string) bool {
	return strings.IndexByte("+=-", trimmed[0]) >= 0 && (strings.Contains(trimmed, " ") || trimmed[0] == '+') &&
		rstTable.MatchString(line) || len(line) >= 4 && rstAdornment(line)
}

// block returns the number of the first line from i on that is not indented by
// more than indent.
func (r *rst) block(i, indent int) int {
	end := i
	for ; i < len(r.lines); i++ {
		if r.lines[i] == "" {
			continue
		}
		if plain.Indentation(r.lines[i]) <= indent {
			break
		}
		end = i + 1
	}
	return end
}

// literal adds the block from line i on as it is. It returns the number of its last
// line.
func (r *rst) literal(i, indent int) int {
	end := r.block(i, indent)
	for _, line := range r.lines[i:end] {
		r.out.Line(line)
	}
	r.out.Blank()
	return end - 1
}

// directive adds the text of the directive in line i, which m matches. It returns
// the number of the last line of the directive that is not to be read as text.
func (r *rst) directive(i, indent int, m []string) int {
	name, argument := strings.ToLower(m[2]), m[3]
	end := r.block(i+1, indent)
	r.out.Blank()
	if m[1] != "" { // defines a substitution
		return end - 1
	}
	kind := name[strings.LastIndexByte(name, ':')+1:]
	if rstObjects[kind] && argument != "" {
		return r.object(i+1, end, indent, argument)
	}
	r.endTerms(indent)
	options, next := r.options(i+1, end)
	if name == "meta" {
		r.out.Line(options["description"])
		r.out.Line(options["keywords"])
		return end - 1
	}
	r.out.Line(r.inline(options["alt"]))
	switch {
	case rstWithoutContent[name]:
		return end - 1
	case rstCode[name]:
		return r.literal(next, indent)
	case name == "figure":
	case name == "csv-table":
		r.out.Line(r.inline(argument))
		r.out.Blank()
		r.csvTable(r.lines[next:end], options)
		r.out.Blank()
		return end - 1
	case name == "list-table" || name == "flat-table":
		r.out.Line(r.inline(argument))
		r.out.Blank()
		if r.listTable(r.lines[next:end]) {
			r.out.Blank()
			return end - 1
		}
	case argument != "":
		r.out.Line(strings.Repeat(" ", indent) + r.inline(argument))
	}
	return next - 1 // the content is read as text
}

// object adds the names in the argument of a directive, and in the lines from i on
// that continue it, as terms. It returns the number of the last line that is not to be
// read as text. end is the number of the line after the directive.
func (r *rst) object(i, end, indent int, argument string) int {
	for {
		r.term(indent, r.inline(argument))
		if i == end || r.lines[i] == "" || len(r.lines[i]) > plain.MaxMarked || rstOption.MatchString(r.lines[i]) {
			break
		}
		argument = strings.TrimSpace(r.lines[i])
		i++
	}
	_, next := r.options(i, end)
	return next - 1
}

// options returns the options of a directive, which are on the lines from i up to
// end at most, by their names, and the number of the line after them.
func (r *rst) options(i, end int) (options map[string]string, next int) {
	options = map[string]string{}
	name, indent := "", 0
	for ; i < end; i++ {
		line := r.lines[i]
		switch m := match(rstOption, line, len(line) <= plain.MaxMarked); {
		case m != nil:
			name, indent = m[1], plain.Indentation(line)
			options[name] = strings.TrimSpace(m[2])
		case name != "" && line != "" && plain.Indentation(line) > indent:
			if value := options[name]; len(value) < plain.MaxMarked {
				options[name] = strings.TrimSpace(value + " " + strings.TrimSpace(line))
			}
		default:
			return options, i
		}
	}
	return options, i
}

// inline returns a text without the marks of links, roles and emphasis.
func (r *rst) inline(s string) string {
	if !strings.ContainsAny(s, "`*_|\\") || len(s) > 4*plain.MaxMarked {
		return s
	}
	s = replace(rstFootnote, s, "", "]_")
	var code []string // literals, which are not examined further
	if strings.Contains(s, "``") {
		s = rstLiteral.ReplaceAllStringFunc(s, func(m string) string {
			code = append(code, m[2:len(m)-2])
			return "\x00"
		})
	}
	if strings.Contains(s, ":`") || strings.Contains(s, "`:") {
		s = replaceFunc(rstRole, s, "", func(m []string) string { return rstTitle(m[1] + m[2]) })
	}
	s = replaceFunc(rstLink, s, ">`_", func(m []string) string { return strings.TrimSpace(m[1]) })
	s = replace(rstQuoted, s, "$1$2", "`")
	s = replace(rstStrong, s, "$1$2", "*")
	if strings.ContainsAny(s, "_|") {
		s = replaceFunc(rstReference, s, "", func(m []string) string {
			if m[3] == "" {
				return m[1] + m[2]
			}
			if text, ok := r.substitutions[m[3]]; ok {
				return text
			}
			return m[0]
		})
	}
	s = replace(rstEscape, s, "$1", `\`)
	for _, c := range code {
		s = strings.Replace(s, "\x00", c, 1)
	}
	return strings.ReplaceAll(s, "\x00", "")
}

// rstTitle returns the text of a role: what stands before a target in angle
// brackets, or else all of it.
func rstTitle(s string) string {
	if i := strings.LastIndex(s, "<"); i > 0 && strings.HasSuffix(s, ">") {
		return strings.TrimSpace(s[:i])
	}
	return strings.TrimLeft(s, "~!")
}

// listTable adds the rows of a list-table, whose lines are content: an item of a
// list for each row, with a list of cells. It returns false if content is no such
// list.
func (r *rst) listTable(content []string) bool {
	var cells []string
	row, bullet := -1, "" // indentation and bullet of the items that are rows
	mark := ""            // bullet of cells
	for _, line := range content {
		if line == "" {
			continue
		}
		at, rest := plain.Indentation(line), strings.TrimLeft(line, " \t")
		if row < 0 {
			if row, bullet = at, rest[:1]; !isBullet(rest) {
				return false
			}
		}
		if at == row && isBullet(rest) && rest[:1] == bullet {
			r.row(cells)
			cells = cells[:0]
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
	r.row(cells)
	return row >= 0
}

// row adds a row of a table.
func (r *rst) row(cells []string) {
	for i, c := range cells {
		cells[i] = plain.OneLine(r.inline(c))
	}
	if row := plain.JoinCells(cells); row != "" {
		r.out.Line(row)
	}
}

// isBullet reports whether a line begins an item of a list.
func isBullet(line string) bool {
	return line != "" && strings.Contains("*-+", line[:1]) && (len(line) == 1 || line[1] == ' ')
}

// csvTable adds the rows of a csv-table: those in its options and those on the lines
// of its content.
func (r *rst) csvTable(content []string, options map[string]string) {
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
	r.csvRows(options["header"], ',')
	r.csvRows(strings.Join(trimmed, "\n"), separator)
}

// csvRows adds rows in the syntax of CSV.
func (r *rst) csvRows(src string, separator byte) {
	for src != "" {
		var cells []string
		for more := true; more; {
			var field string
			field, src, more = data.Field(strings.TrimLeft(src, " "), separator)
			if len(cells) < plain.MaxColumns {
				cells = append(cells, field)
			}
		}
		r.row(cells)
	}
}
