package extract

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
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
	rstTable     = regexp.MustCompile(`^[ \t]*(\+[-=+]{2,}\+|=[= ]+=|-[- ]+-)[ \t]*$`)
)

// rstWithoutContent are the directives whose content is no text.
var rstWithoutContent = map[string]bool{
	"toctree": true, "contents": true, "include": true, "literalinclude": true, "highlight": true, "index": true, "raw": true,
	"automodule": true, "autoclass": true, "autofunction": true, "automethod": true, "autosummary": true, "currentmodule": true, "module": true,
	"default-role": true, "role": true, "sectnum": true, "section-numbering": true, "header": true, "footer": true, "target-notes": true,
	"image": true, "figure": false, "graphviz": true, "mermaid": true, "plantuml": true, "tabularcolumns": true, "unicode": true, "py:currentmodule": true,
}

// rstCode are the directives whose content is kept as it is, and whose argument
// is the name of a language.
var rstCode = map[string]bool{"code": true, "code-block": true, "sourcecode": true, "math": true, "prompt": true, "console": true}

// extractRST extracts the text of a reStructuredText document. Directives,
// targets, comments and the marks inside lines are left out.
func extractRST(ctx context.Context, t *Text, src string) {
	all := rstLines(ctx, src)
	substitutions := rstSubstitutions(all)
	var out lines
	var styles []string    // of headings, by level
	var paragraph []string // its lines, because the marks of a link may be on several
	flush := func() {
		out.text(ctx, rstInline(strings.Join(paragraph, "\n"), substitutions))
		paragraph = paragraph[:0]
	}
	for i := 0; i < len(all); i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return
		}
		line := all[i]
		if line == "" || len(paragraph) > 200 {
			flush()
			out.blank()
		}
		if len(line) > maxMarkupLine {
			flush()
			out.add(line)
			continue
		}
		if text, style, n := rstHeading(all[i:]); n > 0 {
			flush()
			level := slices.Index(styles, style) + 1
			if level == 0 {
				styles = append(styles, style)
				level = len(styles)
			}
			out.heading(level, rstInline(text, substitutions))
			i += n - 1
			continue
		}
		trimmed := strings.TrimLeft(line, " \t")
		indent := indentation(line)
		switch {
		case trimmed == "::":
			flush()
			i = rstLiteral(all, i+1, indent, &out)
			continue
		case strings.HasPrefix(trimmed, ".."):
			flush()
			if m := rstDirective.FindStringSubmatch(trimmed); m != nil {
				i = rstDirectiveBlock(all, i, indent, m, substitutions, &out)
				continue
			}
			if rstTarget.MatchString(trimmed) && !strings.HasPrefix(trimmed[2:], " [") {
				continue
			}
			if m := rstTarget.FindString(trimmed); m != "" { // a footnote or citation
				out.add(strings.Repeat(" ", indent) + rstInline(trimmed[3:], substitutions))
				continue
			}
			if trimmed == ".." || trimmed[2] == ' ' { // a comment
				i = rstBlock(all, i+1, indent) - 1
				continue
			}
		case line == "":
			continue
		case strings.IndexByte("+=-", trimmed[0]) >= 0 && rstTable.MatchString(line) && (strings.Contains(trimmed, " ") || trimmed[0] == '+'), rstTransition(all, i):
			continue
		}
		literal := strings.HasSuffix(trimmed, "::")
		if literal {
			line = strings.TrimSuffix(strings.TrimRight(line, " \t"), ":")
			line = strings.TrimSuffix(line, " :")
		}
		paragraph = append(paragraph, line)
		if literal && i+1 < len(all) && all[i+1] == "" {
			flush()
			out.blank()
			i = rstLiteral(all, i+1, indent, &out)
		}
	}
	flush()
	out.finish(t)
}

// rstLines returns all lines without white space at their ends.
func rstLines(ctx context.Context, src string) []string {
	var all []string
	for line := range eachLine(ctx, src) {
		all = append(all, strings.TrimRight(line, " \t"))
	}
	return all
}

// rstSubstitutions returns the texts that stand for names between bars.
func rstSubstitutions(all []string) map[string]string {
	s := map[string]string{}
	for i, line := range all {
		if !strings.HasPrefix(line, ".. |") || len(line) > maxMarkupLine || len(s) > 1000 {
			continue
		}
		switch m := rstDirective.FindStringSubmatch(line); {
		case m == nil:
		case m[2] == "replace":
			s[m[1]] = m[3]
		case m[2] == "image":
			options, _ := rstOptions(all, i+1, rstBlock(all, i+1, 0))
			s[m[1]] = options["alt"]
		}
	}
	return s
}

// rstHeading returns the text and style of the heading at the start of all, and
// the number of its lines. n is 0 if there is none.
func rstHeading(all []string) (text, style string, n int) {
	adorns := func(line, title string) bool {
		return rstAdornment(line) && utf8.RuneCountInString(line) >= min(utf8.RuneCountInString(title), 4) && title != "" && !rstAdornment(title)
	}
	if len(all) >= 3 && rstAdornment(all[0]) && all[2] == all[0] && all[1] != "" && utf8.RuneCountInString(all[0]) >= 2 {
		return strings.TrimSpace(all[1]), all[0][:1] + "over", 3
	}
	if len(all) >= 2 && all[0] != "" && all[0][0] != ' ' && adorns(all[1], all[0]) && !strings.HasPrefix(all[0], ".. ") {
		return all[0], all[1][:1], 2
	}
	return "", "", 0
}

// rstAdornment reports whether a line consists of one punctuation character.
func rstAdornment(line string) bool {
	return line != "" && strings.Contains("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", line[:1]) && strings.Trim(line, line[:1]) == ""
}

// rstTransition reports whether line i is a line between two parts of the text.
func rstTransition(all []string, i int) bool {
	return len(all[i]) >= 4 && rstAdornment(all[i])
}

// rstBlock returns the number of the first line from i on that is not indented
// by more than indent.
func rstBlock(all []string, i, indent int) int {
	end := i
	for ; i < len(all); i++ {
		if all[i] == "" {
			continue
		}
		if indentation(all[i]) <= indent {
			break
		}
		end = i + 1
	}
	return end
}

// rstLiteral adds the block from line i on as it is. It returns the number of
// its last line.
func rstLiteral(all []string, i, indent int, out *lines) int {
	end := rstBlock(all, i, indent)
	for _, line := range all[i:end] {
		out.add(line)
	}
	out.blank()
	return end - 1
}

// rstDirectiveBlock adds the text of the directive in line i, which m matches.
// It returns the number of the last line of the directive that is not to be read
// as text.
func rstDirectiveBlock(all []string, i, indent int, m []string, substitutions map[string]string, out *lines) int {
	name, argument := strings.ToLower(m[2]), m[3]
	end := rstBlock(all, i+1, indent)
	out.blank()
	if m[1] != "" { // defines a substitution
		return end - 1
	}
	options, next := rstOptions(all, i+1, end)
	if name == "meta" {
		out.add(options["description"])
		out.add(options["keywords"])
		return end - 1
	}
	out.add(rstInline(options["alt"], substitutions))
	switch {
	case rstWithoutContent[name]:
		return end - 1
	case rstCode[name]:
		for _, line := range all[next:end] {
			out.add(line)
		}
		out.blank()
		return end - 1
	case name == "figure":
	case name == "csv-table":
		out.add(rstInline(argument, substitutions))
		out.blank()
		rstCSVTable(all[next:end], options, substitutions, out)
		out.blank()
		return end - 1
	case name == "list-table" || name == "flat-table":
		out.add(rstInline(argument, substitutions))
		out.blank()
		if rstListTable(all[next:end], substitutions, out) {
			out.blank()
			return end - 1
		}
	case argument != "":
		out.add(strings.Repeat(" ", indent) + rstInline(argument, substitutions))
	}
	return next - 1 // the content is read as text
}

// rstOptions returns the options of a directive, which are on the lines from i up
// to end at most, by their names, and the number of the line after them.
func rstOptions(all []string, i, end int) (options map[string]string, next int) {
	options = map[string]string{}
	name, indent := "", 0
	for ; i < end; i++ {
		line := all[i]
		switch m := match(rstOption, line, len(line) <= maxMarkupLine); {
		case m != nil:
			name, indent = m[1], indentation(line)
			options[name] = strings.TrimSpace(m[2])
		case name != "" && line != "" && indentation(line) > indent:
			if value := options[name]; len(value) < maxMarkupLine {
				options[name] = strings.TrimSpace(value + " " + strings.TrimSpace(line))
			}
		default:
			return options, i
		}
	}
	return options, i
}

// rstInline returns a line without the marks of links, roles and emphasis.
func rstInline(s string, substitutions map[string]string) string {
	if !strings.ContainsAny(s, "`*_|\\") || len(s) > 4*maxMarkupLine {
		return s
	}
	s = replace(rstFootnote, s, "", "]_")
	var code []string // literals, which are not examined further
	if strings.Contains(s, "``") {
		s = rstQuotedLiteral.ReplaceAllStringFunc(s, func(m string) string {
			code = append(code, m[2:len(m)-2])
			return "\x00"
		})
	}
	if strings.Contains(s, ":`") || strings.Contains(s, "`:") {
		s = rstRole.ReplaceAllStringFunc(s, func(m string) string {
			sub := rstRole.FindStringSubmatch(m)
			return rstTitle(sub[1] + sub[2])
		})
	}
	if strings.Contains(s, ">`_") {
		s = rstLink.ReplaceAllStringFunc(s, func(m string) string { return strings.TrimSpace(rstLink.FindStringSubmatch(m)[1]) })
	}
	s = replace(rstQuoted, s, "$1$2", "`")
	s = replace(rstStrong, s, "$1$2", "*")
	s = rstReferences(s, substitutions)
	s = replace(rstEscape, s, "$1", `\`)
	for _, c := range code {
		s = strings.Replace(s, "\x00", c, 1)
	}
	return strings.ReplaceAll(s, "\x00", "")
}

// rstReferences removes the marks of references, and replaces substitutions.
func rstReferences(s string, substitutions map[string]string) string {
	if !strings.ContainsAny(s, "_|") {
		return s
	}
	return rstReference.ReplaceAllStringFunc(s, func(m string) string {
		sub := rstReference.FindStringSubmatch(m)
		if sub[3] == "" {
			return sub[1] + sub[2]
		}
		if text, ok := substitutions[sub[3]]; ok {
			return text
		}
		return m
	})
}

var (
	rstQuotedLiteral = regexp.MustCompile("``[^`]+``")
	rstEscape        = regexp.MustCompile(`\\(\S)`)
)

// rstTitle returns the text of a role: what stands before a target in angle
// brackets, or else all of it.
func rstTitle(s string) string {
	if i := strings.LastIndex(s, "<"); i > 0 && strings.HasSuffix(s, ">") {
		return strings.TrimSpace(s[:i])
	}
	return strings.TrimLeft(s, "~!")
}
