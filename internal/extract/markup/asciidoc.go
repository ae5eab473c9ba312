package markup

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

var (
	adocHeading   = regexp.MustCompile(`^(={1,6}|#{1,6})[ \t]+(\S.*)$`)
	adocTerm      = regexp.MustCompile(`^[ \t]*(\S.*?)(:{2,4}|;;)(?:[ \t]+(.*))?$`)
	adocListItem  = regexp.MustCompile(`^(?:[*.-]+|\d+\.|[a-zA-Z]\.|<[\d.]+>|[ivxIVX]+\))[ \t]`)
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
	list := adocTerms{out: out}
	blank, skip := true, false // the line before was blank; the next line underlines the one before it
	for off, line := range plain.Lines(ctx, src) {
		next, _, _ := strings.Cut(src[min(off+len(line)+1, len(src)):], "\n")
		line = strings.TrimRight(line, " \t")
		afterBlank := blank
		blank = line == ""
		if skip {
			skip = false
			continue
		}
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
		title, level := "", 0
		if m := match(adocHeading, line, marked); m != nil {
			title, level = m[2], len(m[1])
		} else if level = adocUnderlined(line, next); level > 0 && afterBlank {
			title, skip = line, true
		}
		if title != "" {
			text := adocText(title, attributes)
			out.Heading(level, text)
			list = adocTerms{out: out}
			if header = level == 1 && t.Title == ""; header {
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
		if m := match(adocTerm, line, !table && (strings.Contains(line, "::") || strings.Contains(line, ";;"))); m != nil &&
			len(m[1]) <= maxAdocTerm && !strings.HasPrefix(line, "//") {
			if afterBlank {
				out.Blank()
			}
			list.term(m[2], adocText(m[1], attributes))
			if m[3] != "" {
				out.Line(adocText(m[3], attributes))
				list.filled = true
			}
			continue
		}
		switch {
		case line == "" || line == "+" || line == "<<<" || line == "'''":
			header = false
			list.blank(line)
			out.Blank()
		case marked && adocBlock.MatchString(line):
			out.Blank()
			list.delimiter(line)
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
			list.text(line)
			out.Line(strings.TrimSpace(strings.Join(adocCells(adocText(line, attributes)), "\t")))
		case len(line) > 1 && line[0] == '.' && line[1] != '.' && line[1] != ' ': // the title of a block
			list.text(line)
			out.Line(adocText(line[1:], attributes))
		default:
			list.text(line)
			out.Line(strings.TrimSuffix(adocText(line, attributes), " +"))
		}
	}
	out.Finish(t)
}

// adocUnderlined returns the level of a title whose next line underlines it, or 0.
func adocUnderlined(line, next string) int {
	next = strings.TrimRight(next, " \t")
	if len(next) < 2 || line == "" || strings.IndexByte(" \t.[|*-/+", line[0]) >= 0 {
		return 0
	}
	level := strings.IndexByte("=-~^+", next[0]) + 1
	if n := utf8.RuneCountInString(line) - len(next); level == 0 || n < -2 || n > 2 || !plain.HasLetter(line) ||
		strings.Trim(next, next[:1]) != "" {
		return 0
	}
	return level
}

// maxAdocTerm is the number of bytes of a term of a description list.
const maxAdocTerm = 200

// An adocTerms are the description lists that are open.
type adocTerms struct {
	out        *plain.Writer
	separators []string // of their terms, by depth
	filled     bool     // the last term has a text
	apart      bool     // a blank line is behind it, so another paragraph is not a part of it
	block      string   // delimiter of the block that belongs to a list
	depth      int      // of the lists outside of the block
}

// term adds a term.
func (l *adocTerms) term(separator, text string) {
	depth := slices.Index(l.separators, separator)
	if depth < 0 {
		depth = len(l.separators)
		l.separators = append(l.separators, separator)
	}
	l.separators = l.separators[:depth+1]
	l.filled, l.apart = false, false
	l.out.Term(depth, text)
}

// blank reads a blank line, or one that attaches a paragraph.
func (l *adocTerms) blank(line string) { l.apart = line != "+" && (l.apart || line == "") }

// delimiter reads a delimiter of a block.
func (l *adocTerms) delimiter(line string) {
	switch l.block {
	case line:
		l.block = ""
		if l.depth < len(l.separators) {
			l.separators = l.separators[:l.depth]
			l.out.EndTerms(l.depth)
		}
	case "":
		if l.text(line); len(l.separators) > 0 && strings.IndexByte("-=*_", line[0]) >= 0 {
			l.block, l.depth = line, len(l.separators)
		}
	}
}

// text reads a line of text, which ends the lists if it is not a part of them.
func (l *adocTerms) text(line string) {
	if len(l.separators) == 0 || l.block != "" {
		return
	}
	if l.filled && l.apart && line[0] != ' ' && line[0] != '\t' && !adocListItem.MatchString(line) {
		l.separators = nil
		l.out.EndTerms(0)
		return
	}
	l.filled, l.apart = true, false
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
