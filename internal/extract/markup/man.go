package markup

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// manualExtension matches the extensions of manual pages.
var manualExtension = regexp.MustCompile(`^\.([1-9n][a-z]*|man|mdoc|roff|me|ms)$`)

// IsManual reports whether head is the start of a manual page: its extension is
// that of one, and it begins with a comment or a request.
func IsManual(head []byte, ext string) bool {
	if !manualExtension.MatchString(ext) {
		return false
	}
	head = bytes.TrimLeft(head, "\r\n")
	return bytes.HasPrefix(head, []byte(".")) || bytes.HasPrefix(head, []byte(`'\"`))
}

// Man extracts a manual page in the macros man or mdoc. Its headings are
// the sections.
func Man(ctx context.Context, t *plain.Text, src string) {
	m := &manual{t: t, out: plain.NewWriter(ctx), strings: map[string]string{}, insets: make([]inset, 1)}
	for _, line := range plain.Lines(ctx, src) {
		m.line(line)
	}
	m.endParagraph()
	m.out.Finish(t)
}

// A manual is the state of a manual page that is being read.
type manual struct {
	t         *plain.Text
	out       *plain.Writer
	words     []string          // of the current paragraph
	noSpace   bool              // the next word follows without a blank
	asIs      bool              // lines are kept as they are
	until     string            // request that ends the part that is left out
	tag       bool              // the next line is the tag of a paragraph
	insets    []inset           // the section, and the indented parts and lists that are open in it
	tooDeep   int               // parts inside of more than maxInsets others
	fresh     bool              // no line of the paragraph has been written
	head      bool              // the term of an item extends over several lines, between .Xo and .Xc
	name      string            // of the page, for .Nm of mdoc
	heading   int               // level of the heading that the next line is the text of
	strings   map[string]string // defined by .ds
	skipped   int               // depth of conditions that are left out
	otherwise bool              // the other part of a condition applies
	table     *manualTable      // nil outside of tables
	inCell    bool              // the text is that of a cell
}

// An inset is an indented part or a list.
type inset struct {
	tagged  bool // the items of a list of mdoc have terms
	columns bool // they are rows of a table
	terms   bool // a term has been written, to which what follows belongs
	before  bool // the last term stands before the indented part that is its text
}

// maxInsets is the number of insets one inside the other: people do not write more.
const maxInsets = 50

// inset returns the innermost inset.
func (m *manual) inset() *inset { return &m.insets[len(m.insets)-1] }

// depth returns the number of terms whose text the innermost inset is a part of.
func (m *manual) depth() int {
	n := 0
	for _, x := range m.insets[:len(m.insets)-1] {
		if x.terms {
			n++
		}
	}
	return n
}

// openInset begins an inset.
func (m *manual) openInset(x inset) {
	if len(m.insets) > maxInsets {
		m.tooDeep++
		return
	}
	m.insets = append(m.insets, x)
}

// closeInset ends the innermost inset, and its definition list.
func (m *manual) closeInset() {
	if m.tooDeep > 0 {
		m.tooDeep--
		return
	}
	if len(m.insets) > 1 {
		m.endTerms()
		m.insets = m.insets[:len(m.insets)-1]
	}
	if m.inset().before {
		m.endTerms()
	}
}

// endTerms ends the definition list of the innermost inset, if there is one.
func (m *manual) endTerms() {
	if x := m.inset(); x.terms {
		x.terms, x.before = false, false
		m.out.EndTerms(m.depth())
	}
}

// line processes a line.
func (m *manual) line(line string) {
	if len(line) > plain.MaxMarked {
		m.text(line)
		return
	}
	trimmed := strings.TrimRight(line, " \t")
	if m.until != "" {
		if trimmed == m.until {
			m.until = ""
		}
		return
	}
	if m.skipped > 0 {
		m.skipped += strings.Count(line, `\{`) - strings.Count(line, `\}`)
		return
	}
	if m.table != nil && m.tableLine(trimmed) {
		return
	}
	if trimmed == "" {
		m.endParagraph()
		m.out.Blank()
		return
	}
	if trimmed[0] != '.' && trimmed[0] != '\'' {
		if s := m.unescape(trimmed); s != "" || m.asIs {
			m.text(s)
		}
		return
	}
	request := strings.TrimLeft(trimmed[1:], " \t")
	if request == "" || strings.HasPrefix(request, `\"`) || strings.HasPrefix(request, `\}`) {
		return
	}
	tab := " "
	if m.inset().columns {
		tab = " Ta "
	}
	name, rest, _ := strings.Cut(strings.ReplaceAll(request, "\t", tab), " ")
	switch name {
	case "if", "ie":
		condition, then, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		m.otherwise = condition != "n" && condition != "!t" // n is true on terminals
		m.conditional(then, !m.otherwise)
	case "el":
		m.conditional(rest, m.otherwise)
	default:
		m.request(name, m.arguments(rest))
	}
}

// conditional processes the rest of the line of a condition, or leaves it out,
// with the lines up to the end of its block.
func (m *manual) conditional(rest string, applies bool) {
	if !applies {
		m.skipped = max(strings.Count(rest, `\{`)-strings.Count(rest, `\}`), 0)
		return
	}
	rest = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(rest, " "), `\{`), " ")
	if rest = strings.TrimSuffix(rest, `\`); rest != "" && !nestedCondition.MatchString(rest) {
		m.line(rest)
	}
}

// nestedCondition matches a condition inside another one on the same line, which
// is left out.
var nestedCondition = regexp.MustCompile(`^[.'][ \t]*(if|ie|el)\b`)

// text adds a line of text.
func (m *manual) text(s string) {
	switch {
	case m.heading > 0:
		m.out.Heading(m.heading, s)
		m.heading = 0
	case m.asIs:
		m.out.Line(s)
	default:
		m.lineOf(strings.TrimSpace(s))
		if m.tag {
			m.term()
		}
	}
}

// lineOf adds the words of a line to the paragraph. The end of the line before is a blank,
// except between two characters of Chinese or Japanese.
func (m *manual) lineOf(s string) {
	if n := len(m.words); n > 0 {
		last, _ := utf8.DecodeLastRuneInString(m.words[n-1])
		first, _ := utf8.DecodeRuneInString(s)
		m.noSpace = m.noSpace || plain.IsCJK(last) && plain.IsCJK(first)
	}
	m.word(s)
}

// word adds a word, or several, to the paragraph.
func (m *manual) word(s string) {
	if s == "" {
		return
	}
	if m.asIs && !m.noSpace && len(m.words) == 0 {
		m.words = append(m.words, s)
		return
	}
	if n := len(m.words); m.noSpace && n > 0 {
		m.words[n-1] += s
	} else {
		m.words = append(m.words, s)
	}
	m.noSpace = false
}

// term ends the line with a term.
func (m *manual) term() {
	m.tag, m.head, m.fresh = false, false, false
	if len(m.words) > 0 {
		m.out.Term(m.depth(), strings.Join(m.words, " "))
		m.inset().terms = true
		m.words = nil
	}
	m.noSpace = false
}

// endLine writes the words since the last one.
func (m *manual) endLine() {
	if len(m.words) > 0 {
		m.out.Line(strings.Join(m.words, " "))
		m.words = nil
	}
	m.noSpace, m.fresh = false, false
}

func (m *manual) endParagraph() {
	m.endLine()
	m.tag, m.head, m.fresh = false, false, true
}

// indent begins an indented part. A short line before it, such as DocBook writes, is
// a term.
func (m *manual) indent() {
	s := strings.Join(m.words, " ")
	if !m.fresh || s == "" || len(s) > maxTermBefore || strings.Contains(".:;,!?", s[len(s)-1:]) &&
		!strings.HasSuffix(s, "...") {
		m.endParagraph()
		m.openInset(inset{})
		m.out.Blank()
		return
	}
	m.term()
	m.inset().before = true
	m.openInset(inset{})
}

// maxTermBefore is the number of bytes of a term before an indented part. Longer
// lines are sentences.
const maxTermBefore = 200

// request processes a request or macro.
func (m *manual) request(name string, args []string) {
	switch name {
	case "TH", "Dt":
		if len(args) > 0 && m.t.Title == "" {
			title := args[0]
			if strings.ToUpper(title) == title {
				title = strings.ToLower(title) // as users type it
			}
			if len(args) > 1 {
				title += "(" + args[1] + ")"
			}
			m.t.Title = title
		}
	case "SH", "Sh":
		m.section(1, args)
	case "SS", "Ss":
		m.section(2, args)
	case "PP", "P", "LP", "Pp", "HP":
		m.endParagraph()
		if !m.inset().tagged {
			m.endTerms()
		}
		m.out.Blank()
	case "sp", "bp":
		m.endParagraph()
		m.out.Blank()
	case "RS":
		m.indent()
	case "RE":
		m.endParagraph()
		m.closeInset()
		m.out.Blank()
	case "IX":
		m.endParagraph()
	case "br", "TQ":
		m.endLine()
		m.tag = name == "TQ"
	case "TP":
		m.endParagraph()
		m.out.Blank()
		m.tag = true
	case "IP":
		m.endParagraph()
		m.out.Blank()
		if len(args) > 0 {
			m.words = append(m.words, strings.Trim(args[0], " "))
			if plain.IsTerm(m.words[0]) {
				m.term()
			}
		}
	case "nf", "EX", "Vb", "fi", "EE", "Ve":
		m.endParagraph()
		m.out.Blank()
		m.asIs = name == "nf" || name == "EX" || name == "Vb"
	case "TS", "TE":
		m.endParagraph()
		m.out.Blank()
		if name == "TS" && !m.inCell {
			m.table = &manualTable{separator: "\t"}
		}
	case "B", "I", "SM", "SB", "R", "CW":
		if len(args) == 0 {
			return // for the next line
		}
		m.inline(strings.Join(args, " "))
	case "BR", "BI", "IB", "IR", "RB", "RI":
		m.inline(strings.Join(args, ""))
	case "UR", "MT":
		if len(args) > 0 {
			m.word(args[0])
		}
	case "UE", "ME":
		if len(args) > 0 {
			m.noSpace = true
			m.word(args[0])
		}
	case "SY":
		m.endLine()
		m.inline(strings.Join(args, " "))
	case "OP":
		m.inline("[" + strings.Join(args, " ") + "]")
	case "de", "de1", "ami", "am", "ig":
		m.until = ".."
		if len(args) > 0 && name == "ig" {
			m.until = "." + args[0]
		}
	case "ds":
		if len(args) > 1 && len(m.strings) < 1000 {
			m.strings[args[0]] = strings.Join(args[1:], " ")
		}
	default:
		m.mdoc(name, args)
	}
}

// section begins a section. Without arguments, its heading is the next line.
func (m *manual) section(level int, args []string) {
	m.endParagraph()
	m.asIs, m.insets, m.tooDeep = false, m.insets[:1], 0
	m.insets[0] = inset{}
	if len(args) == 0 {
		m.heading = level
		return
	}
	m.out.Heading(level, strings.Join(args, " "))
}

// inline adds the text of a macro that sets a font.
func (m *manual) inline(s string) {
	if m.heading > 0 || m.asIs {
		m.text(s)
		return
	}
	m.lineOf(strings.TrimSpace(s))
	if m.tag {
		m.term()
	}
}

// mdoc processes a macro of mdoc(7). Unknown requests are left out.
func (m *manual) mdoc(name string, args []string) {
	switch name {
	case "Bl", "El":
		m.endParagraph()
		m.out.Blank()
		if name == "El" {
			m.closeInset()
		} else {
			m.openInset(listOf(args))
		}
		return
	case "Bd", "Ed":
		m.endParagraph()
		m.out.Blank()
		m.asIs = name == "Bd" && len(args) > 0 && (args[0] == "-literal" || args[0] == "-unfilled")
		return
	case "It":
		m.item(args)
		return
	case "D1", "Dl":
		m.endLine()
		m.macros(args)
		m.endLine()
		return
	case "Nd":
		m.word("–")
		m.macros(args)
		return
	case "Nm":
		if len(args) > 0 && m.name == "" && !isMacro(args[0]) {
			m.name = args[0]
		}
	case "Dd", "Os", "Bk", "Ek", "Sm", "Rs", "Re", "Rv", "Ex", "Db", "Tg":
		return
	}
	if !isMacro(name) {
		return
	}
	m.macros(append([]string{name}, args...))
	if m.head && (name == "Xc" || slices.Contains(args, "Xc")) {
		m.term()
	}
	if m.asIs {
		m.endLine()
	}
}

// listOf returns the inset of a list with the arguments of .Bl.
func listOf(args []string) (x inset) {
	for _, a := range args {
		switch a {
		case "-tag", "-hang", "-ohang", "-inset", "-diag":
			x.tagged = true
		case "-column":
			x.columns = true
		}
	}
	return x
}

// item begins an item of a list.
func (m *manual) item(args []string) {
	m.endParagraph()
	x := m.inset()
	switch {
	case x.columns:
		m.macros(args)
		return
	case x.tagged:
		m.out.Blank()
	}
	if len(args) == 0 {
		return
	}
	m.macros(args)
	switch {
	case !x.tagged:
		m.endLine()
	case slices.Contains(args, "Xo") && !slices.Contains(args, "Xc"):
		m.head = true
	default:
		m.term()
	}
}

// An mdocMacro has the texts that a macro writes around its arguments.
type mdocMacro struct{ before, after string }

// mdocMacros are the macros inside lines that write something.
var mdocMacros = map[string]mdocMacro{
	"Fl": {"-", ""}, "Fn": {"", "()"}, "Fo": {"", "("}, "Fc": {")", ""}, "Aq": {"<", ">"}, "Ql": {"‘", "’"},
	"Sq": {"‘", "’"}, "Dq": {"“", "”"}, "Qq": {`"`, `"`}, "Pq": {"(", ")"}, "Bq": {"[", "]"}, "Brq": {"{", "}"},
	"Op": {"[", "]"}, "Oo": {"[", ""}, "Oc": {"", "]"}, "Po": {"(", ""}, "Pc": {"", ")"},
	"So": {"‘", ""}, "Sc": {"", "’"}, "Do": {"“", ""}, "Dc": {"", "”"}, "Qo": {`"`, ""}, "Qc": {"", `"`},
	"Bo": {"[", ""}, "Bc": {"", "]"}, "Bro": {"{", ""}, "Brc": {"", "}"}, "Ao": {"<", ""}, "Ac": {"", ">"},
	"In": {"#include <", ">"}, "At": {"AT&T UNIX", ""}, "Bx": {"BSD", ""}, "Ux": {"UNIX", ""},
	"Nx": {"NetBSD", ""}, "Fx": {"FreeBSD", ""}, "Ox": {"OpenBSD", ""}, "Ap": {"'", ""},
}

// mdocFonts are the other macros inside lines, which only choose a font.
var mdocFonts = set("Nm Cm Ar Pa Va Vt Ft Fa Dv Er Ev Ic Li Em Sy Tn Xr Sx An Lk Mt Ad No Ns Cd St Ms Xo Xc Pf Ta " +
	"Eo Ec")

// isMacro reports whether a word is a macro inside lines.
func isMacro(word string) bool { return mdocFonts[word] || mdocMacros[word] != mdocMacro{} }

// macros processes the words of a line, some of which are macros that apply to
// those after them.
func (m *manual) macros(args []string) {
	var ends []string // of enclosures, which end with the line, before its punctuation
	last := len(args)
	for last > 1 && isPunctuation(args[last-1]) {
		last--
	}
	closeAll := func() {
		for i := len(ends) - 1; i >= 0; i-- {
			m.noSpace = true
			m.word(ends[i])
		}
		ends = nil
	}
	for i := 0; i < len(args); i++ {
		if i == last {
			closeAll()
		}
		if !isMacro(args[i]) {
			m.punctuated(args[i])
			continue
		}
		macro, next := mdocMacros[args[i]], ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch name := args[i]; name {
		case "Ns":
			m.noSpace = true
		case "Ap":
			m.noSpace = true
			m.word("'")
			m.noSpace = true
		case "Nm":
			if next == "" || isMacro(next) || len(next) == 1 && strings.Contains(".,:;()[]?!", next) {
				m.word(m.name)
			}
		case "Xr":
			if i+2 < len(args) && len(args[i+2]) <= 4 {
				m.word(next + "(" + args[i+2] + ")")
				i += 2
			}
		case "Fl":
			if next == "" || isMacro(next) {
				m.word("-")
				continue
			}
			for i+1 < len(args) && !isMacro(args[i+1]) {
				i++
				if len(args[i]) == 1 && strings.Contains(".,:;()[]|?!", args[i]) {
					m.punctuated(args[i])
				} else {
					m.word("-" + args[i])
				}
			}
		case "Ta":
			m.noSpace = false
			m.word("|")
		case "Pf":
			if next != "" {
				m.word(next)
				m.noSpace = true
				i++
			}
		case "Oo", "Po", "So", "Do", "Qo", "Bo", "Bro", "Ao", "Fo", "In":
			if name == "Fo" && next != "" {
				m.word(next + "(")
				i++
			}
			m.word(macro.before)
			m.noSpace = true
			if name == "In" {
				ends = append(ends, macro.after)
			}
		case "Oc", "Pc", "Sc", "Dc", "Qc", "Bc", "Brc", "Ac", "Fc":
			m.noSpace = true
			m.word(macro.before + macro.after)
		case "Fn":
			if next != "" {
				m.word(next + "(" + strings.Join(args[i+2:], ", ") + ")")
				i = len(args)
			}
		default:
			if macro.before != "" {
				m.word(macro.before)
				m.noSpace = true
			}
			if macro.after != "" {
				ends = append(ends, macro.after)
			}
		}
	}
	closeAll()
	if m.tag {
		m.term()
	}
}

// isPunctuation reports whether an argument of a macro is a closing punctuation
// mark.
func isPunctuation(s string) bool { return len(s) == 1 && strings.Contains(".,:;)]?!", s) }

// punctuated adds a word of a macro line. A punctuation mark follows the word
// before without a blank.
func (m *manual) punctuated(s string) {
	if isPunctuation(s) {
		m.noSpace = len(m.words) > 0
	}
	m.word(s)
	if s == "(" || s == "[" {
		m.noSpace = true
	}
}

// arguments splits the arguments of a request. Quotes enclose an argument with
// blanks.
func (m *manual) arguments(s string) []string {
	var args []string
	for s = strings.TrimLeft(s, " "); s != "" && len(args) < 1000; s = strings.TrimLeft(s, " ") {
		if strings.HasPrefix(s, `\"`) {
			break
		}
		var b strings.Builder
		i := 0
		if s[0] == '"' {
			for i = 1; i < len(s); i++ {
				if s[i] == '"' {
					if i+1 < len(s) && s[i+1] == '"' {
						i++
					} else {
						break
					}
				}
				b.WriteByte(s[i])
			}
			i = min(i+1, len(s))
		} else {
			for ; i < len(s) && s[i] != ' '; i++ {
				b.WriteByte(s[i])
				if s[i] == '\\' && i+1 < len(s) {
					i++
					b.WriteByte(s[i])
				}
			}
		}
		args = append(args, m.unescape(b.String()))
		s = s[i:]
	}
	return args
}

// unescape replaces the escape sequences of roff(7).
func (m *manual) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i >= len(s) {
			break
		}
		switch c := s[i]; c {
		case '"', '#':
			return b.String()
		case '-', '\\', '.', '\'', '`', '_':
			b.WriteByte(c)
		case 'e', 'E':
			b.WriteByte('\\')
		case ' ', '~', '0':
			b.WriteByte(' ')
		case 'f', 'F', 'g', 'k', 'm', 'M', 'n', 'Y', 'V':
			_, n := escapeName(s[i+1:])
			i += n
		case '*':
			name, n := escapeName(s[i+1:])
			i += n
			if v, ok := m.strings[name]; ok {
				b.WriteString(strings.ReplaceAll(v, `\`, ""))
			} else {
				b.WriteString(roffStrings[name])
			}
		case '(', '[':
			name, n := escapeName(s[i:])
			i += n - 1
			b.WriteString(roffCharacter(name))
		case 's':
			rest := s[i+1:]
			n := len(rest) - len(strings.TrimLeft(rest, "+-"))
			for n < len(rest) && n < 3 && rest[n] >= '0' && rest[n] <= '9' {
				n++
			}
			i += n
		case 'h', 'v', 'w', 'o', 'b', 'D', 'l', 'L', 'x', 'X', 'Z', 'A', 'B', 'C', 'H', 'N', 'R', 'S':
			if i+1 < len(s) {
				delimiter := firstRune(s[i+1:])
				rest := s[i+1+len(delimiter):]
				if end := strings.Index(rest, delimiter); end >= 0 {
					if c == 'C' {
						b.WriteString(roffCharacter(rest[:end]))
					}
					i += end + 2*len(delimiter)
				}
			}
		default:
			if c >= utf8.RuneSelf { // not an escape sequence
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

// escapeName returns the name at the start of s, which follows an escape: one
// character, two after "(", or any number in brackets. n is the length of all.
func escapeName(s string) (name string, n int) {
	switch {
	case s == "":
		return "", 0
	case s[0] == '(' && len(s) >= 3:
		name = firstRune(s[1:])
		name += firstRune(s[1+len(name):])
		return name, 1 + len(name)
	case s[0] == '[':
		if end := strings.IndexByte(s, ']'); end > 0 {
			return s[1:end], end + 1
		}
	}
	name = firstRune(s)
	return name, len(name)
}

// firstRune returns the first character of s.
func firstRune(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// roffCharacter returns a character by its name.
func roffCharacter(name string) string {
	if s, ok := roffCharacters[name]; ok {
		return s
	}
	if hex, ok := strings.CutPrefix(name, "u"); ok && len(hex) >= 4 && len(hex) <= 6 {
		if v, err := strconv.ParseUint(hex, 16, 21); err == nil && v >= 0xa0 && !plain.Cleaned(rune(v)) {
			return string(rune(v))
		}
	}
	if len(name) == 2 && strings.Contains("'`^:~,", name[:1]) {
		if s := accented(name[0], name[1:]); s != "" {
			return s
		}
	}
	return ""
}

// roffStrings are the strings that the macros define.
var roffStrings = map[string]string{"lq": "“", "rq": "”", "R": "®", "Tm": "™", "S": ""}

// roffCharacters are the characters with names of groff_char(7).
var roffCharacters = table("ga ` " + `
	em — en – hy - mi − aq ' dq " lq “ rq ” oq ‘ cq ’ ha ^ ti ~ bu • co © rg ® tm ™ de ° sc § dg † rs \ sl /
	ba | br | or | at @ sh # Do $ Eu € Po £ Ye ¥ ct ¢ mu × di ÷ +- ± <= ≤ >= ≥ != ≠ -> → <- ← ua ↑ da ↓ fo ‹
	fc › Fo « Fc » ss ß ae æ AE Æ oe œ OE Œ o/ ø O/ Ø oa å oA Å 12 ½ 14 ¼ 34 ¾ pl + eq = lB [ rB ] lC { rC }
	la ⟨ ra ⟩ *a α *b β *g γ *d δ *l λ *m μ *p π *s σ *w ω if ∞ u2010 -`)
