package markup

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// latexSections are the commands of headings with their levels.
var latexSections = map[string]int{
	"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5, "subparagraph": 6,
	"frametitle": 3, "addchap": 1, "addsec": 2,
}

// latexDropped are the commands whose arguments are no text, with the number of
// these arguments.
var latexDropped = arguments(
	"def institute vskip hskip footnotemark",
	`label ref eqref pageref autoref cref Cref cite citep citet parencite textcite autocite footcite nocite input
		include bibliography bibliographystyle addbibresource usepackage RequirePackage documentclass pagestyle
		thispagestyle vspace hspace index glossary hypersetup color textcolor colorbox pagenumbering hyphenation
		graphicspath usetikzlibrary tikzset geometry lstset selectlanguage cline rowcolor cellcolor columncolor href
		includeonly usetheme usecolortheme scalebox raisebox parbox bibitem hypertarget thanks phantom hphantom
		vphantom setmainfont`,
	`setlength addtolength setcounter addtocounter newcommand renewcommand providecommand newtheorem
		DeclareMathOperator rule fontsize multicolumn multirow resizebox`,
	"newenvironment renewenvironment definecolor",
)

// latexVerbatim are the environments whose content is kept as it is.
var latexVerbatim = set("verbatim verbatim* lstlisting minted Verbatim alltt")

// latexSkipped are the environments without text.
var latexSkipped = set("tikzpicture pgfpicture comment filecontents filecontents*")

// latexTables are the environments whose lines are rows.
var latexTables = set(`tabular tabular* tabularx tabulary xltabular longtable supertabular tabu longtabu tblr longtblr
	NiceTabular`)

// latexArguments are the numbers of arguments of environments that are no text.
var latexArguments = arguments(
	"",
	`tabular longtable supertabular tabu longtabu tblr longtblr NiceTabular array minipage thebibliography
		multicols multicols*`,
	"tabular* tabularx tabulary xltabular wrapfigure",
)

// arguments returns the numbers of arguments: the words of the first list have none,
// those of the second one, and so on.
func arguments(lists ...string) map[string]int {
	numbers := map[string]int{}
	for n, list := range lists {
		for word := range strings.FieldsSeq(list) {
			numbers[word] = n
		}
	}
	return numbers
}

// latexSigns are the commands that stand for characters.
var latexSigns = table(`ldots … dots … textellipsis … textendash – textemdash — textbackslash \ textasciitilde ~
	textasciicircum ^ textbar | textless < textgreater > textquotedbl " S § P ¶ copyright © textcopyright ©
	textregistered ® texttrademark ™ pounds £ euro € texteuro € textdegree ° ss ß ae æ AE Æ oe œ OE Œ o ø O Ø aa å
	AA Å l ł L Ł i ı j ȷ LaTeX LaTeX TeX TeX LaTeXe LaTeX2e BibTeX BibTeX guillemotleft « guillemotright »`)

// latexSpaces are the commands that stand for white space or nothing.
var latexSpaces = map[string]string{
	"today": "", "quad": " ", "qquad": " ", "newline": "\n", "item": "\n- ", "par": "\n\n", "hline": "",
	"tabularnewline": "\n", "linebreak": "\n", "enspace": " ", "thinspace": " ",
}

// LaTeX extracts the text of a LaTeX document, without the commands.
// Formulas are kept as they are written.
func LaTeX(ctx context.Context, t *plain.Text, src string) {
	l := &latex{ctx: ctx, src: src, out: plain.NewWriter(ctx)}
	body := src
	if i := strings.Index(src, `\begin{document}`); i >= 0 {
		l.preamble(t, src[:i])
		body = src[i+len(`\begin{document}`):]
		body, _, _ = strings.Cut(body, `\end{document}`)
	}
	l.src = body
	l.read()
	l.endParagraph()
	if t.Title == "" {
		t.Title = l.title
	}
	l.out.Finish(t)
}

// A latex is the state of a LaTeX document that is being read.
type latex struct {
	ctx   context.Context
	src   string
	at    int
	out   *plain.Writer
	b     strings.Builder // of the current paragraph
	title string

	depth  int // of inline
	tables int // that are open, one inside the other
	wasted int // bytes that were searched in vain for the end of an argument
}

// Bounds on arguments: those inside each other that are read, and the bytes that
// are searched in vain for their ends.
const (
	maxLaTeXDepth  = 5
	maxLaTeXWasted = 16 << 20
)

var latexLabel = regexp.MustCompile(`\s*\\label\{[^{}]*\}`)

// latexAlt matches the beginning of the alternative text of an image.
var latexAlt = regexp.MustCompile(`[\[,]\s*alt\s*=\s*\{`)

var latexTitle = regexp.MustCompile(`\\title\s*(?:\[[^\]]*\]\s*)?\{`)

var latexAnd = regexp.MustCompile(`\s*\\(and|And|AND)\b\s*`)

var latexAuthor = regexp.MustCompile(`\\author\s*(?:\[[^\]]*\]\s*)?\{`)

// preamble finds the title and the authors in the part before the text.
func (l *latex) preamble(t *plain.Text, src string) {
	if m := latexTitle.FindStringIndex(src); m != nil {
		t.Title = l.inline(group(src[m[1]-1:]))
	}
	if m := latexAuthor.FindStringIndex(src); m != nil {
		l.out.Line(l.inline(latexAnd.ReplaceAllString(group(src[m[1]-1:]), ", ")))
		l.out.Blank()
	}
}

// maxGroup is the maximum length of an argument in bytes.
const maxGroup = 10000

// group returns the content of the braces at the start of s, or "" if they are
// longer than maxGroup.
func group(s string) string {
	depth := 0
	for i := 0; i < len(s) && i < maxGroup; i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[1:i]
			}
		}
	}
	return ""
}

// inline returns the text of a short part, such as a title, on one line.
func (l *latex) inline(src string) string {
	if l.depth >= maxLaTeXDepth {
		return plain.OneLine(src)
	}
	sub := &latex{ctx: l.ctx, src: src, depth: l.depth + 1, out: plain.NewWriter(l.ctx)}
	sub.read()
	sub.endParagraph()
	return plain.OneLine(string(sub.out.Buf))
}

// endParagraph writes the paragraph.
func (l *latex) endParagraph() {
	for line := range strings.SplitSeq(l.b.String(), "\n") {
		cells := strings.Split(line, "\t")
		for i, c := range cells {
			cells[i] = plain.OneLine(c)
		}
		if line = plain.JoinCells(cells); line != "" {
			l.out.Line(line)
		}
	}
	l.out.Blank()
	l.b.Reset()
}

// read reads the source to its end.
func (l *latex) read() {
	for next := 0; l.at < len(l.src); {
		if l.at >= next {
			if next = l.at + plain.CheckLen; l.ctx.Err() != nil {
				return
			}
		}
		c := l.src[l.at]
		l.at++
		switch c {
		case '%':
			if i := strings.IndexByte(l.src[l.at:], '\n'); i >= 0 {
				l.at += i + 1
				l.at += plain.Blanks(l.src[l.at:])
			} else {
				l.at = len(l.src)
			}
		case '\\':
			l.command()
		case '{', '}':
		case '~', '\t':
			l.b.WriteByte(' ')
		case '$':
			l.math()
		case '&':
			if l.tables > 1 {
				l.b.WriteByte(' ')
			} else {
				l.b.WriteByte('\t') // the end of a cell
			}
		case '\n':
			rest := l.src[l.at:]
			if n := plain.Blanks(rest); n < len(rest) && rest[n] == '\n' && l.tables == 0 {
				l.endParagraph()
				l.at += n + 1
			} else {
				l.b.WriteByte(' ')
			}
		case '-':
			n := 1
			for n < 3 && l.at < len(l.src) && l.src[l.at] == '-' {
				n++
				l.at++
			}
			l.b.WriteString([]string{"-", "–", "—"}[n-1])
		case '`':
			l.quote('`', "‘", "“")
		case '\'':
			l.quote('\'', "’", "”")
		default:
			l.b.WriteByte(c)
		}
	}
}

// quote writes a quotation mark of one or two characters.
func (l *latex) quote(c byte, one, two string) {
	if l.at < len(l.src) && l.src[l.at] == c {
		l.at++
		one = two
	}
	l.b.WriteString(one)
}

// math copies a formula.
func (l *latex) math() {
	mark := "$"
	if strings.HasPrefix(l.src[l.at:], "$") {
		l.at++
		mark = "$$"
	}
	l.copyUntil(mark, mark)
}

// copyUntil copies the source up to end, and end itself as mark.
func (l *latex) copyUntil(end, mark string) {
	rest := l.src[l.at:]
	i := strings.Index(rest[:min(len(rest), 10000)], end)
	if i < 0 {
		return // a single mark
	}
	l.b.WriteString(strings.ReplaceAll(mark+rest[:i]+mark, "\t", " "))
	l.at += i + len(end)
}

// command processes the command after a backslash.
func (l *latex) command() {
	rest := l.src[l.at:]
	if rest == "" {
		return
	}
	n := letters(rest)
	if n == 0 {
		l.at++
		switch c := rest[0]; c {
		case '\\':
			l.at += len(l.optional())
			if l.tables > 1 {
				l.b.WriteByte(' ')
			} else {
				l.b.WriteByte('\n')
			}
		case '[':
			l.copyUntil(`\]`, "$$")
		case '(':
			l.copyUntil(`\)`, "$")
		case '\'', '`', '^', '"', '~', '=', '.':
			l.accent(c)
		case ' ', ',', ';', ':', '!', '/', '-', '\n', '@':
			if c == ' ' || c == ',' || c == '\n' {
				l.b.WriteByte(' ')
			}
		default:
			l.b.WriteByte(c) // an escaped character
		}
		return
	}
	name := rest[:n]
	l.at += n
	if strings.HasPrefix(l.src[l.at:], "*") {
		l.at++
	}
	if level, ok := latexSections[name]; ok {
		l.tables = 0 // if the end of one is missing
		l.skipOptional()
		text := l.inline(l.argument())
		l.endParagraph()
		l.out.Heading(level, text)
		return
	}
	s, ok := latexSpaces[name]
	if sign := latexSigns[name]; sign != "" {
		s, ok = sign, true
	}
	if ok {
		l.at += plain.Blanks(l.src[l.at:])
		if strings.HasPrefix(l.src[l.at:], "{}") {
			l.at += 2
		}
		if name == "item" {
			if o := l.optional(); o != "" {
				l.at += len(o)
				s += l.inline(strings.Trim(o, "[]")) + ": "
			}
		}
		if l.tables > 0 && name != "tabularnewline" && name != "item" && strings.TrimSpace(s) == "" && s != "" {
			s = " " // a line inside a cell
		}
		l.b.WriteString(s)
		return
	}
	switch name {
	case "title":
		l.skipOptional()
		l.title = l.inline(l.argument())
	case "includegraphics":
		for o := l.optional(); o != ""; o = l.optional() {
			l.at += len(o)
			if m := latexAlt.FindStringIndex(o); m != nil {
				l.b.WriteString(l.inline(group(o[m[1]-1:])))
			}
		}
		l.argument()
	case "makecell", "shortstack", "thead":
		l.skipOptional()
		l.b.WriteString(l.inline(l.argument()))
	case "cmidrule":
		l.skipOptional()
		if rest := l.src[l.at:]; strings.HasPrefix(rest, "(") { // where the line is trimmed
			if n := strings.IndexByte(rest[:min(len(rest), 20)], ')'); n > 0 {
				l.at += n + 1
			}
		}
		l.argument()
	case "footnote", "marginpar", "footnotetext", "sidenote":
		l.skipOptional()
		l.b.WriteString(" (" + l.inline(l.argument()) + ")") // in place, and not joined with the word before
	case "begin", "end":
		l.environment(name == "begin")
	case "c", "v", "u", "H", "r", "k", "d", "b", "t":
		l.accent(name[0])
	case "verb", "lstinline":
		if l.at < len(l.src) {
			mark := l.src[l.at]
			l.at++
			if i := strings.IndexByte(l.src[l.at:min(len(l.src), l.at+1000)], mark); i >= 0 {
				l.b.WriteString(l.src[l.at : l.at+i])
				l.at += i + 1
			}
		}
	default:
		if args, ok := latexDropped[name]; ok {
			for range args {
				l.skipOptional()
				l.argument()
			}
			return
		}
		l.skipOptional()
		if l.at < len(l.src) && l.src[l.at] == ' ' {
			// A blank ends a command without arguments, and is no text.
			if !strings.HasSuffix(l.b.String(), " ") {
				l.b.WriteByte(' ')
			}
			l.at++
		}
	}
}

// letters returns the number of ASCII letters at the start of s.
func letters(s string) int {
	n := 0
	for n < len(s) && s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' {
		n++
	}
	return n
}

// environment processes \begin or \end.
func (l *latex) environment(begin bool) {
	name := l.argument()
	end := `\end{` + name + `}`
	switch {
	case begin && (latexVerbatim[name] || latexSkipped[name]):
		l.skipOptional()
		if name == "minted" {
			l.argument()
		}
		rest := l.src[l.at:]
		text, _, found := strings.Cut(rest, end)
		l.at += len(text)
		if found {
			l.at += len(end)
		}
		if latexVerbatim[name] {
			l.endParagraph()
			l.out.Text(strings.Trim(text, "\n"))
			l.out.Blank()
		}
		return
	case begin:
		l.skipOptional()
		for range latexArguments[name] {
			l.skipOptional()
			l.argument()
		}
	}
	if latexTables[name] {
		if begin {
			l.tables++
		} else {
			l.tables = max(l.tables-1, 0)
		}
		if l.tables > 1 || !begin && l.tables > 0 { // inside a cell
			l.b.WriteByte(' ')
			return
		}
	}
	switch strings.TrimSuffix(name, "*") {
	case "equation", "align", "gather", "multline", "eqnarray", "math", "displaymath":
		if begin {
			l.endParagraph()
			text, _, found := strings.Cut(l.src[l.at:], end)
			l.at += len(text)
			if found {
				l.at += len(end)
			}
			l.out.Text(strings.TrimSpace(latexLabel.ReplaceAllString(text, "")))
			l.out.Blank()
		}
	default:
		l.endParagraph()
	}
}

// optional returns the brackets at the current place with their content, or "".
func (l *latex) optional() string {
	rest := l.src[l.at:]
	if !strings.HasPrefix(rest, "[") {
		return ""
	}
	depth := 0
	for i := 0; i < len(rest) && i < 2000; i++ {
		switch rest[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ']':
			if depth <= 0 {
				return rest[:i+1]
			}
		case '\n':
			if i+1 < len(rest) && rest[i+1] == '\n' {
				return ""
			}
		}
	}
	return ""
}

func (l *latex) skipOptional() {
	for o := l.optional(); o != ""; o = l.optional() {
		l.at += len(o)
	}
}

// argument returns the content of the braces at the current place and moves
// behind them. Without braces it returns "".
func (l *latex) argument() string {
	rest := strings.TrimLeft(l.src[l.at:min(len(l.src), l.at+20000)], " \n\t")
	if !strings.HasPrefix(rest, "{") {
		if strings.HasPrefix(rest, `\`) { // \newcommand\name
			l.at += strings.IndexByte(l.src[l.at:], '\\') + 1 + letters(rest[1:])
		}
		return ""
	}
	if l.wasted > maxLaTeXWasted {
		return ""
	}
	text := group(rest)
	if text == "" && !strings.HasPrefix(rest, "{}") {
		l.wasted += min(len(rest), maxGroup)
		return ""
	}
	l.at += strings.IndexByte(l.src[l.at:], '{') + len(text) + 2
	return text
}

// latexLetter matches the letter of an accent.
var latexLetter = regexp.MustCompile(`^ *(?:\{(?:\\([ij])|([A-Za-z]))\}|\\([ij])|([A-Za-z]))`)

// accent writes the letter at the current place with an accent.
func (l *latex) accent(mark byte) {
	if m := latexLetter.FindStringSubmatch(l.src[l.at:min(len(l.src), l.at+20)]); m != nil {
		letter := m[1] + m[2] + m[3] + m[4]
		l.b.WriteString(cmp.Or(accented(mark, letter), letter))
		l.at += len(m[0])
	}
}

// accents are the combining characters of the accents of LaTeX and roff.
var accents = map[byte]string{
	'\'': "\u0301", '`': "\u0300", '^': "\u0302", '"': "\u0308", ':': "\u0308", '~': "\u0303", '=': "\u0304",
	'.': "\u0307", 'c': "\u0327", ',': "\u0327", 'v': "\u030c", 'u': "\u0306", 'H': "\u030b", 'r': "\u030a",
	'k': "\u0328", 'd': "\u0323", 'b': "\u0331",
}

// accented returns a letter with an accent as one character, or "".
func accented(mark byte, letter string) string {
	a, ok := accents[mark]
	if !ok {
		return ""
	}
	return norm.NFC.String(letter + a)
}
