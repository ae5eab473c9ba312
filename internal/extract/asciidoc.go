package extract

import (
	"context"
	"regexp"
	"strings"
)

var (
	adocHeading   = regexp.MustCompile(`^(={1,6}|#{1,6})[ \t]+(\S.*)$`)
	adocAttribute = regexp.MustCompile(`^:!?([\w][\w-]*)!?:(?:[ \t]+(.*))?$`)
	adocBlock     = regexp.MustCompile(`^(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|\x60{3,}.*|[|,:!]={3,})$`)
	adocList      = regexp.MustCompile(`^\[[^\[\]]*\]$|^\[\[[^\[\]]*\]\]$`)
	adocMacro     = regexp.MustCompile(`^(image|video|audio|include|toc|ifdef|ifndef|ifeval|endif|tag|end)::?([^\[\]]*)\[(.*)\]$`)
	adocInline    = regexp.MustCompile(`\b(?:link|xref|mailto|image|icon|footnote|kbd|btn|menu|pass|stem|anchor|indexterm2?):+([^\s\[\]]*)\[([^\[\]]*)\]`)
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

// extractAsciiDoc extracts the text of an AsciiDoc document. Attributes, macros,
// delimiters and the marks inside lines are left out.
func extractAsciiDoc(ctx context.Context, t *Text, src string) {
	var out lines
	attributes := adocHeader(ctx, src)
	end := "" // delimiter of the current block that is kept as it is or left out
	keep := false
	table := false
	header := true // the lines after the title are those of the header
	for line := range eachLine(ctx, src) {
		line = strings.TrimRight(line, " \t")
		if len(line) > maxMarkupLine {
			out.add(line)
			continue
		}
		if end != "" {
			switch {
			case line == end:
				end = ""
				out.blank()
			case keep:
				out.add(line)
			}
			continue
		}
		// Most lines begin with a letter, and expressions are slow.
		marked := line != "" && strings.IndexByte("=#:-.*_+/`|,![", line[0]) >= 0
		if m := match(adocHeading, line, marked); m != nil {
			text := adocText(m[2], attributes)
			out.heading(len(m[1]), text)
			if header = len(m[1]) == 1 && t.Title == ""; header {
				t.Title = oneLine(text)
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
					out.add(adocText(m[2], attributes))
				}
			}
			continue
		}
		switch {
		case line == "" || line == "+" || line == "<<<" || line == "'''":
			header = false
			out.blank()
		case marked && adocBlock.MatchString(line):
			out.blank()
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
			out.blank()
		case strings.HasSuffix(line, "]") && adocMacro.MatchString(line):
			m := adocMacro.FindStringSubmatch(line)
			if m[1] == "image" || m[1] == "video" || m[1] == "audio" {
				out.add(adocText(adocAlt(m[3]), attributes))
			}
		case table:
			out.add(strings.TrimSpace(strings.Join(adocCells(adocText(line, attributes)), "\t")))
		case len(line) > 1 && line[0] == '.' && line[1] != '.' && line[1] != ' ': // the title of a block
			out.add(adocText(line[1:], attributes))
		default:
			out.add(strings.TrimSuffix(adocText(line, attributes), " +"))
		}
	}
	out.finish(t)
}

// adocHeader returns the attributes in the header of a document, which ends with
// the first blank line.
func adocHeader(ctx context.Context, src string) map[string]string {
	attributes := map[string]string{}
	for line := range eachLine(ctx, strings.TrimLeft(src, "\n")) {
		if line == "" {
			break
		}
		if m := adocAttribute.FindStringSubmatch(line[:min(len(line), maxMarkupLine)]); m != nil && len(attributes) < 1000 {
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
	if strings.Contains(s, "{") {
		s = adocReference.ReplaceAllStringFunc(s, func(m string) string {
			switch name := strings.ToLower(m[1 : len(m)-1]); name {
			case "nbsp", "empty", "sp", "zwsp":
				return " "
			default:
				if v, ok := attributes[name]; ok {
					return v
				}
			}
			return m
		})
	}
	if strings.ContainsAny(s, "[<(") {
		s = replace(adocAnchor, s, "", "[[", "(((")
		if strings.Contains(s, ":") {
			s = adocMacros(s)
		}
		if strings.Contains(s, "<<") {
			s = adocXrefs(s)
		}
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

// adocMacros replaces the macros and links in a line by their texts.
func adocMacros(s string) string {
	s = adocInline.ReplaceAllStringFunc(s, func(m string) string {
		sub := adocInline.FindStringSubmatch(m)
		if strings.HasPrefix(m, "image:") || strings.HasPrefix(m, "icon:") {
			sub[2] = adocAlt(sub[2])
		}
		if sub[2] == "" {
			return sub[1]
		}
		return strings.TrimSuffix(sub[2], "^")
	})
	if !strings.Contains(s, "://") {
		return s
	}
	return adocURL.ReplaceAllStringFunc(s, func(m string) string {
		text := adocURL.FindStringSubmatch(m)[2]
		if text == "" {
			return m[:strings.Index(m, "[")]
		}
		return strings.TrimSuffix(text, "^")
	})
}

// adocXrefs replaces the references in a line by their texts.
func adocXrefs(s string) string {
	return adocXref.ReplaceAllStringFunc(s, func(m string) string {
		sub := adocXref.FindStringSubmatch(m)
		if sub[2] == "" {
			return strings.TrimPrefix(sub[1], "#")
		}
		return sub[2]
	})
}
