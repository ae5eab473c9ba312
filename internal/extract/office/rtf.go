package office

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// ReadRTF reads a document in Rich Text Format (version 1.9.1).
func ReadRTF(ctx context.Context, t *plain.Text, data []byte) error {
	r := &rtf{doc: newDoc(ctx), data: data, fonts: map[int]int{}, outlines: map[int]int{}, charset: 1252}
	r.group = rtfGroup{uc: 1, font: -1}
	r.read()
	if r.Err != nil {
		return fmt.Errorf("RTF document: %w", r.Err)
	}
	r.finish(t, string(r.title))
	t.Damaged = len(r.outer) > 0 // groups without an end
	return nil
}

// A destination is the purpose of the text of a group.
type destination int

const (
	toBody    destination = iota
	toNothing             // with all groups inside
	toNobody              // but groups inside may have another destination
	toTitle
	toFonts
	toStyles
	toMark // the number or bullet of an item of a list
	toNote
	toComment
	toAuthor
	toMargin // header or footer
	toName   // of a property of a shape
	toValue
)

// An rtfGroup is the state that the end of a group restores.
type rtfGroup struct {
	to      destination
	uc      int // characters after \u that replace it
	font    int
	deleted bool
}

// An rtf reads one document.
type rtf struct {
	*doc
	data  []byte
	at    int
	group rtfGroup
	outer []rtfGroup

	charset  int         // of the document
	fonts    map[int]int // code pages of fonts
	outlines map[int]int // levels of headings, by style
	style    int         // that is being defined, in the table of styles
	raw      []byte      // bytes of text in the charset of a font
	rawPage  int
	high     uint16 // first half of a surrogate pair

	par     []byte // the paragraph that is being read
	level   int    // its level as a heading, 0 for body text
	mark    []byte // the mark of the item of a list that it is
	isItem  bool
	depth   int // of the list
	inTable bool
	cells   []string
	title   []byte
	name    []byte // of the font, style or property that is being defined
	aside   []byte // a note, comment, header or footer
	author  []byte
	shape   string // name of the property of a shape that comes next
	margins []string
}

func (r *rtf) read() {
	for r.at < len(r.data) && r.Err == nil {
		if r.at%256 == 0 && r.ctx.Err() != nil {
			return
		}
		switch c := r.data[r.at]; c {
		case '{':
			r.flush()
			r.outer = append(r.outer, r.group)
			if r.at++; len(r.outer) > plain.MaxDepth {
				r.Fail(errNested)
			}
		case '}':
			r.flush()
			r.endGroup()
			r.at++
		case '\\':
			r.control()
		case '\r', '\n':
			r.at++
		default:
			r.at++
			r.byte(c)
		}
	}
	r.flush()
	r.endParagraph()
	r.endRow()
	r.addNotes()
	for _, s := range r.margins {
		r.Block(plain.Paragraph, s)
	}
}

// control reads a control word or symbol.
func (r *rtf) control() {
	r.at++
	if r.at >= len(r.data) {
		return
	}
	start := r.at
	for r.at < len(r.data) && r.data[r.at]|0x20 >= 'a' && r.data[r.at]|0x20 <= 'z' && r.at-start < 40 {
		r.at++
	}
	if r.at == start {
		r.at++
		r.symbol(r.data[start])
		return
	}
	word := string(r.data[start:r.at])
	start = r.at
	if r.at < len(r.data) && r.data[r.at] == '-' {
		r.at++
	}
	for r.at < len(r.data) && r.data[r.at] >= '0' && r.data[r.at] <= '9' && r.at-start < 11 {
		r.at++
	}
	n, err := strconv.Atoi(string(r.data[start:r.at]))
	if r.at < len(r.data) && r.data[r.at] == ' ' {
		r.at++
	}
	if word == "u" {
		r.unicode(n)
		return
	}
	r.flush()
	r.word(word, n, err == nil)
}

// symbol processes a control symbol.
func (r *rtf) symbol(c byte) {
	switch c {
	case '\'':
		if r.at+2 <= len(r.data) {
			if b, err := strconv.ParseUint(string(r.data[r.at:r.at+2]), 16, 8); err == nil {
				r.at += 2
				r.byte(byte(b))
			}
		}
	case '\\', '{', '}':
		r.byte(c)
	case '~':
		r.flush()
		r.text(" ")
	case '_':
		r.flush()
		r.text("-")
	case '\r', '\n':
		r.flush()
		r.word("par", 0, false)
	case '*':
		r.flush()
		r.starred()
	}
}

// starred processes \*, before a destination that readers may ignore.
func (r *rtf) starred() {
	rest := string(r.data[r.at:min(r.at+40, len(r.data))])
	rest = strings.TrimLeft(rest, " \r\n")
	word := strings.TrimPrefix(rest, `\`)
	if i := strings.IndexFunc(word, func(c rune) bool { return c|0x20 < 'a' || c|0x20 > 'z' }); i >= 0 {
		word = word[:i]
	}
	if to, ok := rtfDestinations[word]; (!ok || to == toNothing) && word != "cs" && word != "ts" {
		r.group.to = toNothing
	}
}

// byte processes a byte of text.
func (r *rtf) byte(c byte) {
	if r.group.to == toNothing || r.group.to == toNobody || r.group.deleted {
		return
	}
	page := r.charset
	if p, ok := r.fonts[r.group.font]; ok {
		page = p
	}
	if page != r.rawPage {
		r.flush()
	}
	r.rawPage = page
	if r.raw = append(r.raw, c); len(r.raw) >= 4096 && c < 0x80 {
		r.flush()
	}
}

// flush decodes the bytes of text that were read.
func (r *rtf) flush() {
	r.high = 0
	if len(r.raw) == 0 {
		return
	}
	raw := r.raw
	r.raw = r.raw[:0]
	if s, err := codePage(r.rawPage).NewDecoder().Bytes(raw); err == nil {
		r.text(string(s))
	}
}

// unicode processes \u, and skips the characters that replace it in old readers.
func (r *rtf) unicode(n int) {
	high := r.high
	r.flush()
	c := uint16(n)
	switch {
	case c >= 0xd800 && c < 0xdc00:
		r.high = c
	case c >= 0xdc00 && c < 0xe000:
		r.text(string(utf16.DecodeRune(rune(high), rune(c))))
	case c >= 0xf000 && c < 0xf100: // a picture of a symbol font
	default:
		r.text(string(rune(c)))
	}
	for n := r.group.uc; n > 0 && r.at < len(r.data); n-- {
		switch c := r.data[r.at]; {
		case c == '{' || c == '}':
			return
		case c != '\\':
			r.at++
		case r.at+1 < len(r.data) && r.data[r.at+1] == '\'':
			r.at = min(r.at+4, len(r.data))
		default:
			return
		}
	}
}

// text adds text to the destination of the group.
func (r *rtf) text(s string) {
	if r.group.deleted {
		return
	}
	var to *[]byte
	switch r.group.to {
	case toBody:
		to = &r.par
	case toTitle:
		to = &r.title
	case toMark:
		to = &r.mark
	case toNote, toComment, toMargin:
		to = &r.aside
	case toAuthor:
		to = &r.author
	case toFonts, toStyles, toName, toValue:
		to = &r.name
	default:
		return
	}
	if *to = append(*to, s...); !r.Fits(len(*to)) {
		*to = nil
	}
}

// word processes a control word with its parameter, if it has one.
func (r *rtf) word(word string, n int, has bool) {
	if r.group.to == toNothing && word != "bin" {
		return
	}
	if s, ok := rtfCharacters[word]; ok {
		r.text(s)
		return
	}
	if to, ok := rtfDestinations[word]; ok {
		if to == toBody && r.group.to != toNobody {
			return // the result of a field in a note belongs to the note
		}
		if to == toNote || to == toComment || to == toMargin {
			r.aside = r.aside[:0]
		}
		if to == toMark {
			r.mark, r.isItem = r.mark[:0], true
		}
		r.name = r.name[:0]
		r.group.to = to
		return
	}
	switch word {
	case "bin":
		r.at = min(r.at+max(n, 0), len(r.data))
	case "par", "sect", "page":
		switch {
		case r.group.to != toBody:
			r.text("\n")
		case r.inTable:
			r.text(" ")
		default:
			r.endParagraph()
		}
	case "cell":
		r.endCell()
	case "nestcell":
		r.text(", ")
	case "row":
		r.endRow()
	case "pard", "intbl", "outlinelevel", "s", "ilvl":
		switch r.group.to {
		case toStyles:
			r.styleProperty(word, n)
		case toBody:
			r.property(word, n)
		}
	case "f":
		r.group.font = n
	case "fcharset":
		if page, ok := rtfCharsets[n]; ok && len(r.fonts) < maxStyles {
			r.fonts[r.group.font] = page
		}
	case "ansicpg":
		r.charset = n
	case "mac":
		r.charset = 10000
	case "pc":
		r.charset = 437
	case "pca":
		r.charset = 850
	case "uc":
		r.group.uc = min(max(n, 0), 10)
	case "deleted":
		r.group.deleted = !has || n != 0
	case "plain":
		r.group.deleted = false
	}
}

// property processes a property of the paragraph.
func (r *rtf) property(word string, n int) {
	switch word {
	case "pard":
		r.level, r.inTable, r.depth = 0, false, 0
	case "intbl":
		r.inTable = true
	case "outlinelevel":
		if r.level = 0; n >= 0 && n < 9 {
			r.level = n + 1
		}
	case "s":
		if level := r.outlines[n]; level > 0 && level < 10 {
			r.level = level
		}
	case "ilvl":
		r.depth = min(max(n, 0), 8)
	}
}

// styleProperty processes a property of the style that is being defined.
func (r *rtf) styleProperty(word string, n int) {
	switch word {
	case "s":
		r.style = n
	case "outlinelevel":
		if len(r.outlines) < maxStyles {
			r.outlines[r.style] = n + 1
		}
	}
}

// endGroup restores the state of the group around.
func (r *rtf) endGroup() {
	ended := r.group.to
	if len(r.outer) > 0 {
		r.group, r.outer = r.outer[len(r.outer)-1], r.outer[:len(r.outer)-1]
	}
	switch {
	case ended == toStyles:
		// The names of the built-in styles are the same in every language.
		name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(string(r.name))), ";")
		if n, ok := strings.CutPrefix(name, "heading "); ok && len(r.outlines) < maxStyles {
			if level, err := strconv.Atoi(n); err == nil && level > 0 {
				r.outlines[r.style] = level
			}
		} else if name == "title" {
			r.outlines[r.style] = 1
		}
		r.name, r.style = r.name[:0], 0
	case ended == r.group.to:
	case ended == toName:
		r.shape = string(r.name)
	case ended == toValue && r.shape == "wzDescription":
		if s := strings.TrimSpace(string(r.name)); s != "" {
			r.par = append(append(r.par, ' '), bracketed(s)...)
		}
	case ended == toNote:
		r.par = append(r.par, r.footnote(strings.TrimSpace(string(r.aside)))...)
	case ended == toComment:
		s := "Comment"
		if len(r.author) > 0 {
			s += " by " + plain.OneLine(string(r.author))
		}
		r.pending = append(r.pending, s+": "+strings.TrimSpace(string(r.aside)))
		r.author = r.author[:0]
	case ended == toMargin:
		if s := strings.TrimSpace(string(r.aside)); r.isNew(s) {
			r.margins = append(r.margins, s)
		}
	}
	if len(r.pending) > plain.MaxHeadings {
		r.addNotes()
	}
}

func (r *rtf) endParagraph() {
	text := strings.TrimSpace(string(r.par))
	r.par = r.par[:0]
	if text == "" {
		return
	}
	switch {
	case r.level > 0:
		if r.isItem && len(r.mark) > 0 {
			text = strings.TrimSpace(string(r.mark)) + " " + text
		}
		r.Put(plain.Block{Level: r.level, Text: text}, nil)
	case r.isItem:
		mark := strings.TrimSpace(string(r.mark))
		if !plain.IsValue(mark) && !letterMark.MatchString(mark) {
			mark = "-"
		}
		r.Block(plain.Item, strings.Repeat("  ", r.depth)+mark+" "+text)
	default:
		r.Block(plain.Paragraph, text)
	}
	r.isItem, r.mark = false, r.mark[:0]
	r.addNotes()
}

// letterMark matches the mark of an item that is a letter or a Roman number, such as
// "a)" or "iv.".
var letterMark = regexp.MustCompile(`^[a-zIVXLCDM]{1,5}[.)]$`)

func (r *rtf) endCell() {
	if s := plain.OneLine(string(r.par)); len(r.cells) < plain.MaxColumns {
		r.cells = append(r.cells, s)
	}
	r.par, r.isItem = r.par[:0], false
}

func (r *rtf) endRow() {
	if len(r.cells) > 0 {
		r.Block(plain.TableRow, plain.JoinCells(r.cells))
	}
	r.cells = r.cells[:0]
}

// rtfCharacters are the control words for characters.
var rtfCharacters = map[string]string{
	"tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“",
	"rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ", "qmspace": " ",
}

// rtfDestinations are the control words that begin a destination.
var rtfDestinations = destinations(map[destination]string{
	toBody:    "shptxt result",
	toNobody:  "info shpinst pict picprop sp object nesttableprops",
	toTitle:   "title",
	toFonts:   "fonttbl",
	toStyles:  "stylesheet",
	toMark:    "listtext pntext",
	toNote:    "footnote",
	toComment: "annotation",
	toAuthor:  "atnauthor",
	toMargin:  "header headerl headerr headerf footer footerl footerr footerf",
	toName:    "sn",
	toValue:   "sv",
	toNothing: `shprslt nonshppict nonesttables colortbl fldinst datafield objdata xe tc txe rxe author operator
		subject keywords doccomm filetbl revtbl listtable listoverridetable themedata falt panose fname fontemb
		ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn template private nextfile`,
})

// destinations returns the destinations by their control words.
func destinations(words map[destination]string) map[string]destination {
	all := map[string]destination{}
	for to, list := range words {
		for word := range strings.FieldsSeq(list) {
			all[word] = to
		}
	}
	return all
}

// rtfCharsets are the code pages of the charsets of fonts.
var rtfCharsets = map[int]int{
	0: 1252, 77: 10000, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255,
	178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
}

// codePages are the names of code pages other than those of Windows with letters of
// one byte.
var codePages = map[int]string{
	866: "ibm866", 932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5", 1361: "euc-kr", 10000: "macintosh",
	65001: "utf-8",
}

// codePage returns a code page, windows-1252 if it is not known.
func codePage(n int) encoding.Encoding {
	switch n {
	case 437:
		return charmap.CodePage437
	case 850:
		return charmap.CodePage850
	case 852:
		return charmap.CodePage852
	}
	if e, err := htmlindex.Get(cmp.Or(codePages[n], "windows-"+strconv.Itoa(n))); err == nil {
		return e
	}
	return charmap.Windows1252
}
