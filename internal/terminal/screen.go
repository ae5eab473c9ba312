package terminal

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// A Screen is where the result of a command is shown. On a terminal, texts are
// wrapped and styled, and a long result is shown in a pager. Elsewhere, as in a
// pipe or a file, texts stay plain. The texts must not contain characters that
// control a terminal; see package sanitize.
type Screen struct {
	out           io.Writer
	columns, rows int      // 0 if out is not a terminal
	styled        bool     // styles and links are written
	pager         []string // program and arguments; nil for none
}

// Escape sequences: bold, faint and colored text (ECMA-48, SGR) and links (OSC 8).
// Bold and faint have the same end.
const (
	softOn   = "\x1b[2m"
	accentOn = "\x1b[36m" // cyan, which is legible on dark and on light backgrounds
	colorOff = "\x1b[39m"
	boldOn   = "\x1b[1m"
	boldOff  = "\x1b[22m"
	linkPart = "\x1b]8;;"
	linkEnd  = "\x1b\\"
)

// NewScreen returns a Screen that writes to out. lookup looks up an environment
// variable, as os.LookupEnv does. If NO_COLOR is set (https://no-color.org) or
// TERM is dumb, nothing is styled. PAGER is the command of the pager, in words
// separated by blanks; if it is set but empty, or cat, there is none. Without
// PAGER, less is used if it is installed.
func NewScreen(out io.Writer, lookup func(name string) (value string, ok bool)) *Screen {
	s := &Screen{out: out}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.columns, s.rows = 80, 24 // if the terminal does not report its size
	if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
		s.columns, s.rows = columns, rows
	}
	noColor, _ := lookup("NO_COLOR")
	kind, _ := lookup("TERM")
	s.styled = noColor == "" && kind != "dumb"
	if kind == "dumb" {
		return s // a pager cannot move the cursor
	}
	if pager, ok := lookup("PAGER"); ok {
		if s.pager = strings.Fields(pager); len(s.pager) == 0 || s.pager[0] == "cat" {
			s.pager = nil
		}
	} else if less, err := exec.LookPath("less"); err == nil {
		s.pager = []string{less}
	}
	return s
}

// Terminal reports whether the screen is a terminal.
func (s *Screen) Terminal() bool { return s.columns > 0 }

// Bold returns a text in bold.
func (s *Screen) Bold(text string) string {
	if !s.styled || text == "" {
		return text
	}
	return boldOn + text + boldOff
}

// Soft returns a text of less importance, in faint letters.
func (s *Screen) Soft(text string) string {
	if !s.styled || text == "" {
		return text
	}
	return softOn + text + boldOff
}

// Accent returns a text in a color.
func (s *Screen) Accent(text string) string {
	if !s.styled || text == "" {
		return text
	}
	return accentOn + text + colorOff
}

// Link returns a text that leads to a URL. Only URLs of files and of the web
// become links.
func (s *Screen) Link(text, url string) string {
	scheme, _, _ := strings.Cut(url, ":")
	if !s.styled || scheme != "file" && scheme != "http" && scheme != "https" {
		return text
	}
	var b strings.Builder
	for _, c := range []byte(url) {
		if c <= ' ' || c >= 0x7f { // OSC 8 permits only printable ASCII
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return linkPart + b.String() + linkEnd + text + linkPart + linkEnd
}

// A Mark is a part of a text that is written in bold, in bytes.
type Mark struct{ Start, End int }

// Wrap returns a text of one or more lines with an indent before each line and a
// line feed after each. On a terminal, lines are wrapped to its width and the
// marks, which are in order and do not overlap, are in bold.
func (s *Screen) Wrap(text, indent string, marks ...Mark) string {
	w := wrapper{screen: s, indent: indent, marks: marks}
	for line := range strings.Lines(text) {
		w.line(strings.TrimRight(line, "\n"))
		w.at += len(line)
	}
	return w.String()
}

// A wrapper wraps the lines of a text.
type wrapper struct {
	strings.Builder
	screen *Screen
	indent string
	marks  []Mark // not yet passed
	at     int    // in the text, in bytes, of the current line
	column int    // of the output
	bold   bool
}

// tabStop is the number of columns in place of a tab at the start of a line.
const tabStop = 4

// line writes a line, in several lines if it is too long. Blanks at its start
// are repeated before each of them.
func (w *wrapper) line(line string) {
	text := strings.TrimLeftFunc(line, unicode.IsSpace)
	start := w.at + len(line) - len(text)
	lead := w.indent + strings.ReplaceAll(line[:len(line)-len(text)], "\t", strings.Repeat(" ", tabStop))
	if !w.screen.Terminal() {
		w.WriteString(strings.TrimRight(w.indent+line, " ") + "\n")
		return
	}
	limit := w.screen.columns
	if lead = lead[:min(len(lead), limit/2)]; text == "" {
		w.WriteByte('\n')
		return
	}
	w.begin(lead)
	blank := false // is due before the next part
	for len(text) > 0 {
		part, rest := cutPart(text)
		if strings.TrimSpace(part) == "" {
			blank = w.column > len(lead)
		} else {
			n := Width(part)
			if blank && w.column+1+n > limit || !blank && w.column+n > limit && w.column > len(lead) {
				w.end()
				w.begin(lead)
				blank = false
			}
			if blank {
				w.put(start-1, ' ')
				blank = false
			}
			for i, r := range part {
				if w.column+runeWidth(r) > limit { // a word wider than the terminal
					w.end()
					w.begin(lead)
				}
				w.put(start+i, r)
			}
		}
		start += len(part)
		text = rest
	}
	w.end()
}

// begin begins a line of the output.
func (w *wrapper) begin(lead string) {
	w.WriteString(lead)
	w.column = len(lead)
}

// end ends a line of the output.
func (w *wrapper) end() {
	w.style(false)
	w.WriteByte('\n')
}

// put writes the character at an offset of the text.
func (w *wrapper) put(at int, r rune) {
	for len(w.marks) > 0 && w.marks[0].End <= at {
		w.marks = w.marks[1:]
	}
	w.style(len(w.marks) > 0 && w.marks[0].Start <= at)
	w.WriteRune(r)
	w.column += runeWidth(r)
}

// style switches bold on or off.
func (w *wrapper) style(bold bool) {
	if bold == w.bold || !w.screen.styled {
		return
	}
	w.bold = bold
	if bold {
		w.WriteString(boldOn)
	} else {
		w.WriteString(boldOff)
	}
}

// cutPart returns the first part of a text that must stay on one line, and the
// rest: white space, a word, or a wide character, which needs no blank before
// the next one.
func cutPart(text string) (part, rest string) {
	end := 0
	space := false
	for i, r := range text {
		isSpace, wide := unicode.IsSpace(r), runeWidth(r) > 1
		if i > 0 && (isSpace != space || wide) {
			break
		}
		space = isSpace
		end = i + utf8.RuneLen(r)
		if wide {
			for end < len(text) { // with what belongs to it
				next, size := utf8.DecodeRuneInString(text[end:])
				if runeWidth(next) > 0 {
					break
				}
				end += size
			}
			break
		}
	}
	return text[:end], text[end:]
}

// Width returns the number of columns of a text of one line.
func Width(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth returns the number of columns of a character (Unicode Standard
// Annex 11).
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// sequences matches the escape sequences of a Screen.
var sequences = regexp.MustCompile("\x1b\\[[0-9]*m|\x1b\\]8;;[^\x1b]*\x1b\\\\")

// Show writes a result. On a terminal with fewer rows than the result has lines,
// it runs the pager and waits until it ends. A pager that cannot be started is
// not an error.
func (s *Screen) Show(text string) error {
	if s.pager != nil && s.height(text) >= s.rows && s.page(text) {
		return nil
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// height returns the number of rows that a text takes.
func (s *Screen) height(text string) (n int) {
	for line := range strings.Lines(sequences.ReplaceAllString(text, "")) {
		n += 1 + max(0, Width(strings.TrimRight(line, "\n"))-1)/s.columns
	}
	return n
}

// page shows a text in the pager. It reports whether the pager has started. less
// understands the escape sequences; other pagers are given plain text.
func (s *Screen) page(text string) (started bool) {
	cmd := exec.Command(s.pager[0], s.pager[1:]...)
	cmd.Stdout, cmd.Stderr = s.out, os.Stderr
	cmd.Env = os.Environ()
	if strings.TrimSuffix(filepath.Base(s.pager[0]), ".exe") != "less" {
		text = sequences.ReplaceAllString(text, "")
	} else if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	} else {
		cmd.Env = append(cmd.Env, "LESS="+os.Getenv("LESS")+" -R") // otherwise it would show the sequences
	}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return false
	}
	// Errors are ignored: they mean that the user has ended the pager.
	_, _ = io.WriteString(stdin, text)
	_ = stdin.Close()
	_ = cmd.Wait()
	return true
}
