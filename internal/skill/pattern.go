package skill

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// matching returns a text that matches a schema's pattern: text if it matches,
// otherwise one that is generated from the pattern. If neither matches, or the
// pattern is not supported by Go, it returns text.
func matching(pattern, text string) string {
	const maxPattern = 300
	if len(pattern) > maxPattern {
		return text
	}
	re, err := regexp.Compile(pattern)
	if err != nil || re.MatchString(text) {
		return text
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return text
	}
	var b strings.Builder
	writeMatch(&b, parsed)
	if made := b.String(); re.MatchString(made) {
		return made
	}
	return text
}

// writeMatch appends a short text that an expression matches, ignoring its
// conditions on the surrounding text. It stops at 200 bytes.
func writeMatch(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > 200 {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(classMember(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpPlus, syntax.OpCapture, syntax.OpAlternate:
		writeMatch(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			writeMatch(b, re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			writeMatch(b, sub)
		}
	}
}

// classMember returns a character of a class, given as pairs of limits: a
// letter or digit if there is one.
func classMember(bounds []rune) rune {
	for _, want := range "a1A" {
		for i := 0; i+1 < len(bounds); i += 2 {
			if bounds[i] <= want && want <= bounds[i+1] {
				return want
			}
		}
	}
	if len(bounds) == 0 {
		return 'x'
	}
	return max(bounds[0], min(bounds[1], ' '))
}
