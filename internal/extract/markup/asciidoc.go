package markup

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"knowhow/internal/extract/plain"
)

var (
	adocHeading   = regexp.MustCompile(`^(={1,6}|#{1,6})[ \t]+(\S.*)$`)
	adocAttribute = regexp.MustCompile(`^:!?([\w][\w-]*)!?:(?:[ \t]+(.*))?$`)
	adocBlock     = regexp.MustCompile(`^(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|\x60{3,}.*|[|,:!]={3,})$`)
	adocList      = regexp.MustCompile(`^\[[^\[\]]*\]$|^\[\[[^\[\]]*\]\]$`)
	adocMacro     = regexp.MustCompile(`^(image|video|audio|include|toc|ifdef|ifndef|ifeval|endif|tag|end)::?` +
		`([^\[\]]*)\[(.*)\]$`)
	adocInline = regexp.MustCompile(`\b(?:link|xref|mailto|image|icon|footnote|kbd|btn|menu|pass|stem|anchor|` +
		`indexterm2?):+([^\s\[\]]*)\[([^\[\]]*)\]`)
	adocURL       = regexp.MustCompile(`\b(https?|ftp)://[^\s\[\]]+\[([^\[\]]*)\]`)
	adocXref      = regexp.MustCompile(`<<([^<>,]+)(?:,\s*([^<>]+))?>>`)
	adocAnchor    = regexp.MustCompile(`\[\[[^\[\]]*\]\]|\(\(\([^()]*\)\)\)`)
	adocStrong    = regexp.MustCompile(`(^|[^\w*])\*([^\s*](?:[^*]*[^\s*])?)\*([^\w*]|$)`)
	adocEmphasis  = regexp.MustCompile(`(^|[^\w_])_([^\s_](?:[^_]*[^\s_])?)_([^\w_]|$)`)
	adocDouble    = regexp.MustCompile("\\*\\*([^*]+)\\*\\*|__([^_]+)__|``([^`]+)``|##([^#]+)##")
	adocMono      = regexp.MustCompile("`([^`]+)`")
	adocRole      = regexp.MustCompile(`\[[.#][^\[\]]*\]#([^#]+)#`)
	adocReference = regexp.MustCompile(`\{([\w-]+)\}`)
)

// AsciiDoc extracts the text of an AsciiDoc document. Attributes, macros,
// delimiters and the marks inside lines are left out.
func AsciiDoc(ctx context.Context, t *plain.Text, src string) {
	out := plain.NewWriter(ctx)
	attributes := adocHeader(ctx, src)
	end := "" // delimiter of the current block that is kept as it is or left out
	keep := false
	table := false
	header := true // the lines after the title are those of the header
	for _, line := range plain.Lines(ctx, src) {
		line = strings.TrimRight(line, " \t")
		if len(line) > plain.MaxMarked {
			out.Line(line)
			continue
		}
		if end != "" {
			switch {
			case line == end:
				end = ""
				out.Blank()
			case keep:
				out.Line(line)
			}
			continue
		}
		// Most lines begin with a letter, and expressions are slow.
		marked := line != "" && strings.IndexByte("=#:-.*_+/`|,![", line[0]) >= 0
		if m := match(adocHeading, line, marked); m != nil {
			text := adocText(m[2], attributes)
			out.Heading(len(m[1]), text)
			if header = len(m[1]) == 1 && t.Title == ""; header {
				t.Title = plain.OneLine(text)
			}
			continue
		}
		if m := match(adocAttribute, line, marked); m != nil {
			if len(attributes) < 1000 {
				attributes[strings.ToLower(m[1])] = m[2]
			}
			switch strings.ToLower(m[1]) {
			case "author", "description", "keywords":
				if header {
					out.Line(adocText(m[2], attributes))
				}
			}
			continue
		}
		switch {
		case line == "" || line == "+" || line == "<<<" || line == "'''":
			header = false
			out.Blank()
		case marked && adocBlock.MatchString(line):
			out.Blank()
			switch line[0] {
			case '/':
				end, keep = line, false
			case '-', '.', '+':
				if line != "--" {
					end, keep = line, true
				}
			case '`':
				end, keep = "```", true
			case '|', ',', ':', '!':
				table = !table
			}
		case strings.HasPrefix(line, "//"):
		case marked && adocList.MatchString(line):
			out.Blank()
		case strings.HasSuffix(line, "]") && adocMacro.MatchString(line):
			m := adocMacro.FindStringSubmatch(line)
			if m[1] == "image" || m[1] == "video" || m[1] == "audio" {
				out.Line(adocText(adocAlt(m[3]), attributes))
			}
		case table:
			out.Line(strings.TrimSpace(strings.Join(adocCells(adocText(line, attributes)), "\t")))
		case len(line) > 1 && line[0] == '.' && line[1] != '.' && line[1] != ' ': // the title of a block
			out.Line(adocText(line[1:], attributes))
		default:
			out.Line(strings.TrimSuffix(adocText(line, attributes), " +"))
		}
	}
	out.Finish(t)
}

// adocHeader returns the attributes in the header of a document, which ends with
// the first blank line.
func adocHeader(ctx context.Context, src string) map[string]string {
	attributes := map[string]string{}
	for _, line := range plain.Lines(ctx, strings.TrimLeft(src, "\n")) {
		if line == "" {
			break
		}
		m := adocAttribute.FindStringSubmatch(line[:min(len(line), plain.MaxMarked)])
		if m != nil && len(attributes) < 1000 {
			attributes[strings.ToLower(m[1])] = m[2]
		}
	}
	return attributes
}

// adocNamed matches the alternative text in the attributes of an image that has a
// name.
var adocNamed = regexp.MustCompile(`(?:^|,)\s*alt=(?:"([^"]*)"|([^",]*))`)

// adocAlt returns the alternative text in the attributes of an image: the first
// one, unless it has a name.
func adocAlt(attributes string) string {
	if m := adocNamed.FindStringSubmatch(attributes); m != nil {
		return m[1] + m[2]
	}
	if rest, ok := strings.CutPrefix(attributes, `"`); ok {
		alt, _, _ := strings.Cut(rest, `"`)
		return alt
	}
	alt, _, _ := strings.Cut(attributes, ",")
	if strings.Contains(alt, "=") {
		return ""
	}
	return alt
}

var adocCell = regexp.MustCompile(`(^|[ \t])(?:\d+(?:\.\d+)?[+*]|\.\d+\+)?[<^>]?(?:\.[<^>])?[aehlmsv]?\|`)

// adocCells returns the cells in a line of a table.
func adocCells(line string) []string {
	var cells []string
	for i, c := range adocCell.Split(line, -1) {
		if c = strings.TrimSpace(c); i > 0 || c != "" {
			cells = append(cells, c)
		}
	}
	return cells
}

// adocText returns a line without the marks of links, macros and emphasis.
func adocText(s string, attributes map[string]string) string {
	s = replaceFunc(adocReference, s, "{", func(m []string) string {
		switch name := strings.ToLower(m[1]); name {
		case "nbsp", "empty", "sp", "zwsp":
			return " "
		default:
			if v, ok := attributes[name]; ok {
				return v
			}
		}
		return m[0]
	})
	if strings.ContainsAny(s, "[<(") {
		s = replace(adocAnchor, s, "", "[[", "(((")
		s = replaceFunc(adocInline, s, ":", func(m []string) string {
			text := m[2]
			if strings.HasPrefix(m[0], "image:") || strings.HasPrefix(m[0], "icon:") {
				text = adocAlt(text)
			}
			return cmp.Or(strings.TrimSuffix(text, "^"), m[1])
		})
		s = replaceFunc(adocURL, s, "://", func(m []string) string {
			return cmp.Or(strings.TrimSuffix(m[2], "^"), m[0][:strings.Index(m[0], "[")])
		})
		s = replaceFunc(adocXref, s, "<<", func(m []string) string {
			return cmp.Or(m[2], strings.TrimPrefix(m[1], "#"))
		})
		s = replace(adocRole, s, "$1", "]#")
	}
	if strings.ContainsAny(s, "*_`#") {
		s = replace(adocDouble, s, "$1$2$3$4", "**", "__", "``", "##")
		s = replace(adocMono, s, "$1", "`")
		s = replace(adocStrong, s, "$1$2$3", "*")
		s = replace(adocEmphasis, s, "$1$2$3", "_")
	}
	return s
}
