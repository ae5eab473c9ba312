// Package data reads tables, structured data and subtitles.
package data

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// maxShortLine is the length from which a list of numbers or strings is
// continued on another line, in bytes.
const maxShortLine = 120

// maxKeyLevel is the depth of keys that become headings.
const maxKeyLevel = 3

// JSON keeps JSON as it is, except that escaped characters are decoded,
// and that the text is indented if it has very long lines. Keys with objects and
// arrays become headings. Damaged JSON and JSON with comments is kept too.
func JSON(ctx context.Context, t *plain.Text, src string) {
	w := jsonWriter{t: t, src: src, headings: t.MediaType != "application/x-ndjson"}
	w.reformat = w.headings && longLines(ctx, src)
	w.write(ctx)
	t.Body = strings.TrimRight(w.out.String(), " \t\n")
}

// longLines reports whether people can hardly read a JSON text because of its
// lines.
func longLines(ctx context.Context, src string) bool {
	lines, long := 0, 0
	for _, line := range plain.Lines(ctx, src) {
		lines++
		if len(line) > 1000 {
			long += len(line)
		}
	}
	return long*2 > len(src) || lines < 3 && len(src) > 200
}

// A jsonWriter writes a JSON text.
type jsonWriter struct {
	t                  *plain.Text // gets the headings
	src                string
	reformat, headings bool

	out   strings.Builder
	stack []byte // open brackets
	line  int    // offset of the current line in out
	key   string // the last string
	keyAt int    // its offset in out
	names int    // open objects that are values of keys
	named []bool // for each of stack, whether it is counted in names
	after byte   // the last character that is not white space
}

// write writes the whole text.
func (w *jsonWriter) write(ctx context.Context) {
	w.out.Grow(len(w.src))
	for i, next := 0, 0; i < len(w.src); {
		if i >= next {
			if next = i + plain.CheckLen; ctx.Err() != nil {
				return
			}
		}
		c := w.src[i]
		switch c {
		case '"':
			i += w.text(w.src[i:])
			w.after = '"'
			continue
		case ' ', '\t', '\r', '\n':
			if !w.reformat {
				w.put(c)
			}
			i++
			continue
		case '{', '[':
			named := w.after == ':'
			first := w.line + plain.Blanks(w.out.String()[w.line:])
			if named && w.headings && w.names < maxKeyLevel && first == w.keyAt {
				w.t.Mark(first, w.names+1, plain.OneLine(w.key))
			}
			if named {
				w.names++
			}
			w.named = append(w.named, named)
			w.stack = append(w.stack, c)
			w.put(c)
			if next := w.next(i + 1); next != '}' && next != ']' && (c == '{' || next == '{' || next == '[') {
				w.newLine()
			}
		case '}', ']':
			if n := len(w.stack); n > 0 {
				if w.named[n-1] {
					w.names--
				}
				w.stack, w.named = w.stack[:n-1], w.named[:n-1]
			}
			if c == '}' && w.after != '{' || w.after == '}' || w.after == ']' {
				w.newLine()
			}
			w.put(c)
		case ',':
			w.put(c)
			if n := len(w.stack); n > 0 && w.stack[n-1] == '[' && w.after != '}' && w.after != ']' &&
				w.out.Len()-w.line < maxShortLine {
				w.space()
			} else {
				w.newLine()
			}
		case ':':
			w.put(c)
			w.space()
		default:
			w.put(c)
		}
		w.after = c
		i++
	}
}

func (w *jsonWriter) put(c byte) {
	w.out.WriteByte(c)
	if c == '\n' {
		w.line = w.out.Len()
	}
}

// space writes a blank if the text is reformatted.
func (w *jsonWriter) space() {
	if w.reformat {
		w.put(' ')
	}
}

// next returns the first character from i on that is not white space, or 0.
func (w *jsonWriter) next(i int) byte {
	for ; i < len(w.src); i++ {
		if c := w.src[i]; c > ' ' {
			return c
		}
	}
	return 0
}

// maxIndented is how many bytes longer than its source an indented text may
// become. It may also not become longer than four times the source.
const maxIndented = 16 << 20

// newLine begins a line if the text is reformatted. A text that has become too
// long is continued without reformatting.
func (w *jsonWriter) newLine() {
	n := len(w.src)
	w.reformat = w.reformat && w.out.Len() <= min(4*n, n+maxIndented)
	if w.reformat {
		w.put('\n')
		for range min(len(w.stack), 20) {
			w.out.WriteString("  ")
		}
	}
}

// text writes the string at the start of s and returns its length in s. A string
// without an end ends with its line.
func (w *jsonWriter) text(s string) int {
	w.keyAt = w.out.Len()
	w.out.WriteByte('"')
	start := w.out.Len()
	i := 1
	for i < len(s) && s[i] != '"' && s[i] != '\n' {
		if s[i] != '\\' {
			w.out.WriteByte(s[i])
			i++
			continue
		}
		r, n := unescape(s[i:])
		if n == 0 {
			n = min(2, len(s)-i)
			w.out.WriteString(s[i : i+n])
		} else {
			w.out.WriteRune(r)
		}
		i += n
	}
	w.key = w.out.String()[start:]
	if i < len(s) && s[i] == '"' {
		w.out.WriteByte('"')
		i++
	}
	return i
}

// unescape decodes an escaped character such as é at the start of s, if it
// needs no escape in a text: a letter or a sign that is not ASCII. Otherwise n
// is 0.
func unescape(s string) (r rune, n int) {
	code := func(s string) rune {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return -1
		}
		v, err := strconv.ParseUint(s[2:6], 16, 16)
		if err != nil {
			return -1
		}
		return rune(v)
	}
	r, n = code(s), 6
	if utf16.IsSurrogate(r) {
		if r, n = utf16.DecodeRune(r, code(s[6:])), 12; r == utf8.RuneError {
			return 0, 0
		}
	}
	if r < 0xa0 || plain.Cleaned(r) {
		return 0, 0
	}
	return r, n
}
