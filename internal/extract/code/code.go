// Package code finds the declarations in source code.
package code

import (
	"context"
	_ "embed" // languages.txt
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Read keeps source code as it is. Its headings are the declarations of
// types and functions.
func Read(ctx context.Context, t *plain.Text, src string) {
	t.Body = plain.TrimBlankLines(src)
	l, ok := languages()[t.MediaType]
	if !ok {
		return
	}
	var outer []int // indentations of the declarations around the current line
	comment := -1   // offset of the comment above the current line
	inside := ""    // end of the comment or text that the current line is inside of
	prevBlank := true
	for start, line := range plain.Lines(ctx, t.Body) {
		trimmed := strings.TrimLeft(line, " \t")
		if inside != "" {
			if strings.Contains(line, inside) {
				inside = ""
			}
			continue
		}
		isComment := hasAnyPrefix(trimmed, l.comments)
		if isComment && (comment < 0 || prevBlank) {
			comment = start
		}
		prevBlank = trimmed == ""
		if t.MediaType == "text/x-python" {
			if q := plain.OpenQuote(line); q != "" {
				inside = q
			}
		} else if strings.HasPrefix(trimmed, "/*") && !strings.Contains(trimmed, "*/") {
			inside = "*/"
		}
		switch {
		case isComment:
			continue
		case trimmed == "":
			comment = -1
			continue
		case len(line) > maxCodeLine || !l.declares(line):
			comment = -1
			continue
		}
		indent := plain.Indentation(line)
		for len(outer) > 0 && outer[len(outer)-1] >= indent {
			outer = outer[:len(outer)-1]
		}
		outer = append(outer, indent)
		if comment < 0 {
			comment = start
		}
		t.Mark(comment, min(len(outer), 6), declaration(trimmed))
		comment = -1
	}
}

// maxCodeLine is the length of a line, in bytes, from which it is no
// declaration.
const maxCodeLine = 2000

// A language describes the declarations of a programming language.
type language struct {
	comments []string // beginnings of lines that belong to the declaration below them
	patterns []*regexp.Regexp
}

// declares reports whether a line begins a declaration.
func (l language) declares(line string) bool {
	for _, p := range l.patterns {
		if m := p.FindStringSubmatch(line); m != nil {
			return !slices.ContainsFunc(m[1:], func(word string) bool { return slices.Contains(statements, word) })
		}
	}
	return false
}

// statements are words that stand where the name or type of a declaration stands.
var statements = strings.Fields(`if else for foreach while do switch case catch try return throw new delete await yield using
	lock with function super typeof sizeof goto assert defer go`)

// declaration returns the text of a heading for the first line of a declaration.
func declaration(line string) string {
	if i := strings.Index(line, "{"); i > 0 {
		line = line[:i]
	}
	return plain.OneLine(strings.TrimRight(line, " \t:;=,(\\"))
}

func hasAnyPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

//go:embed languages.txt
var languagesFile string

// languages returns the languages of languages.txt by media type.
var languages = sync.OnceValue(func() map[string]language {
	all := map[string]language{}
	for block := range strings.SplitSeq(strings.TrimSpace(languagesFile), "\n\n") {
		if strings.HasPrefix(block, "# ") {
			continue
		}
		lines := strings.Split(block, "\n")
		l := language{comments: strings.Fields(lines[1])}
		for _, p := range lines[2:] {
			l.patterns = append(l.patterns, regexp.MustCompile(p))
		}
		for _, media := range strings.Fields(lines[0]) {
			all[media] = l
		}
	}
	return all
})
