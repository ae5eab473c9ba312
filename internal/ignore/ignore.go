// Package ignore matches paths against patterns in the syntax of .gitignore
// files (gitignore(5), git 2.39).
//
// Matching takes time in proportion to the product of the lengths of pattern and
// path, whatever the pattern, because the patterns may come from foreign files.
package ignore

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Limits on patterns. Longer patterns, and patterns after the last permitted
// one, are dropped.
const (
	maxPattern  = 1000 // bytes
	maxPatterns = 10000
)

// A Verdict is the result of matching patterns against a path.
type Verdict int

// Verdicts.
const (
	None     Verdict = iota // no pattern matches
	Ignored                 // the last pattern that matches excludes the path
	Included                // the last pattern that matches begins with "!"
)

// Patterns are the patterns of one file or one list. The zero value contains
// none.
type Patterns struct{ list []pattern }

// A pattern is one line.
type pattern struct {
	parts  []string // between slashes
	name   bool     // matches the last element of a path at any depth
	dir    bool     // matches only folders
	negate bool
}

// Parse parses the lines of an ignore file. Every text is valid: a line that is
// not a pattern matches nothing, as in git.
func Parse(text string) Patterns {
	var p Patterns
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if pt, ok := parse(line); ok && len(p.list) < maxPatterns {
			p.list = append(p.list, pt)
		}
	}
	return p
}

// Check returns an error of kind [errkind.Invalid] if a line is not a pattern that
// can match: a comment, an empty or long line, a class without its end such as
// "[ab", or a backslash at the end. git accepts such lines silently.
func Check(line string) error {
	p, ok := parse(line)
	switch {
	case strings.ContainsAny(line, "\r\n"):
		return fmt.Errorf("pattern with more than one line: %w", errkind.Invalid)
	case len(line) > maxPattern:
		return fmt.Errorf("pattern of more than %d bytes: %w", maxPattern, errkind.Invalid)
	case !ok:
		return fmt.Errorf("no pattern: %w", errkind.Invalid)
	}
	for _, part := range p.parts {
		for i := 0; i < len(part); i++ {
			switch part[i] {
			case '\\':
				if i++; i == len(part) {
					return fmt.Errorf(`"\" without a character after it: %w`, errkind.Invalid)
				}
			case '[':
				_, width := matchClass(part[i:], 'a')
				if width == 0 {
					return fmt.Errorf(`class of characters without its end or with an unknown name: write "\[" for a bracket: %w`, errkind.Invalid)
				}
				i += width - 1
			}
		}
	}
	return nil
}

// parse parses a line. ok is false for a comment and an empty line.
func parse(line string) (p pattern, ok bool) {
	if strings.HasPrefix(line, "#") || len(line) > maxPattern {
		return p, false
	}
	line = trimBlanks(line)
	line, p.negate = strings.CutPrefix(line, "!")
	line, p.dir = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false
	}
	p.name = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	p.parts = strings.Split(strings.ReplaceAll(line, `\/`, "/"), "/")
	return p, true
}

// trimBlanks removes the blanks at the end that no backslash precedes.
func trimBlanks(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			end = i + 1
		case s[i] != ' ':
			end = i + 1
		}
	}
	return s[:end]
}

// Empty reports whether there are no patterns.
func (p Patterns) Empty() bool { return len(p.list) == 0 }

// Match returns the verdict on a path relative to the folder of the patterns,
// with forward slashes. dir reports whether it is a folder. The verdict does not
// consider the folders above the path: git never enters a folder that is
// ignored.
func (p Patterns) Match(path string, dir bool) Verdict {
	if len(p.list) == 0 {
		return None
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	var parts []string
	for i := len(p.list) - 1; i >= 0; i-- {
		pt := &p.list[i]
		if pt.dir && !dir {
			continue
		}
		matches := false
		if pt.name {
			matches = matchName(pt.parts[0], name)
		} else {
			if parts == nil {
				parts = strings.Split(path, "/")
			}
			matches = matchParts(pt.parts, parts)
		}
		switch {
		case matches && pt.negate:
			return Included
		case matches:
			return Ignored
		}
	}
	return None
}

// matchParts matches the elements of a pattern with those of a path. An element
// "**" stands for any number of elements, at the end for at least one.
func matchParts(pattern, path []string) bool {
	p, s := 0, 0
	star, from := -1, 0 // the last "**", and the first element after those that it stands for
	for s < len(path) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			if p == len(pattern)-1 {
				return true
			}
			star, from = p, s
			p++
		case p < len(pattern) && matchName(pattern[p], path[s]):
			p++
			s++
		case star >= 0:
			from++
			p, s = star+1, from
		default:
			return false
		}
	}
	return p == len(pattern)
}

// matchName matches a pattern with one element of a path.
func matchName(pattern, name string) bool {
	p, s := 0, 0
	star, from := -1, 0 // the last "*", and the end of what it stands for
	for s < len(name) {
		r, n := utf8.DecodeRuneInString(name[s:])
		ok, width := matchRune(pattern[p:], r, name[s:s+n])
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, s
			p++
		case ok:
			p += width
			s += n
		case star >= 0:
			_, n = utf8.DecodeRuneInString(name[from:])
			from += n
			p, s = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchRune matches the start of a pattern, which is not a star, with a
// character, whose bytes are raw. width is the length of what matched it.
func matchRune(pattern string, r rune, raw string) (ok bool, width int) {
	if pattern == "" {
		return false, 0
	}
	switch pattern[0] {
	case '?':
		return true, 1
	case '[':
		return matchClass(pattern, r)
	case '\\':
		if len(pattern) == 1 {
			return false, 0
		}
		return strings.HasPrefix(pattern[1:], raw), 1 + len(raw)
	}
	return strings.HasPrefix(pattern, raw), len(raw)
}

// matchClass matches the class at the start of a pattern, such as [a-z] or
// [!0-9], with a character.
func matchClass(pattern string, r rune) (ok bool, width int) {
	i := 1
	negate := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negate {
		i++
	}
	next := func() (c rune, ok bool) { // the next character, which a backslash may precede
		if i < len(pattern) && pattern[i] == '\\' {
			i++
		}
		if i >= len(pattern) {
			return 0, false
		}
		c, n := utf8.DecodeRuneInString(pattern[i:])
		i += n
		return c, true
	}
	for first := true; ; first = false {
		switch {
		case i >= len(pattern):
			return false, 0 // no end
		case pattern[i] == ']' && !first:
			return ok != negate, i + 1
		case strings.HasPrefix(pattern[i:], "[:"):
			name, _, found := strings.Cut(pattern[i+2:], ":]")
			if !found {
				return false, 0
			}
			in, known := namedClass(name, r)
			if !known {
				return false, 0
			}
			ok = ok || in
			i += len("[:") + len(name) + len(":]")
			continue
		}
		lo, valid := next()
		hi := lo
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			i++
			hi, valid = next()
		}
		if !valid {
			return false, 0
		}
		ok = ok || lo <= r && r <= hi
	}
}

// namedClass reports whether r is in an ASCII class with a name, such as alpha.
func namedClass(name string, r rune) (in, known bool) {
	lower, upper, digit := r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9'
	graph := r > ' ' && r < 0x7f
	switch name {
	case "alpha":
		return lower || upper, true
	case "alnum":
		return lower || upper || digit, true
	case "blank":
		return r == ' ' || r == '\t', true
	case "cntrl":
		return r < ' ' || r == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || r == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return r == ' ' || r >= '\t' && r <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F', true
	}
	return false, false
}
