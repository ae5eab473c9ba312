package code

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"knowhow/internal/extract/plain"
)

// Read keeps source code as it is. Its headings are the declarations of
// types and functions.
func Read(ctx context.Context, t *plain.Text, src string) {
	t.Body = plain.TrimBlankLines(src)
	l, ok := codeLanguages()[t.MediaType]
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
		if l.quotes {
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

// A codeLanguage describes the declarations of a programming language.
type codeLanguage struct {
	comments []string // beginnings of lines that belong to the declaration below them
	quotes   bool     // texts between three quotes may have several lines
	patterns []*regexp.Regexp
}

// declares reports whether a line begins a declaration.
func (l codeLanguage) declares(line string) bool {
	for _, p := range l.patterns {
		if m := p.FindStringSubmatch(line); m != nil {
			return !slices.ContainsFunc(m[1:], func(word string) bool { return statements[word] })
		}
	}
	return false
}

// statements are words that stand where the name or type of a declaration
// stands. Patterns capture such words, because the syntax of package regexp
// cannot exclude them.
var statements = map[string]bool{
	"if": true, "else": true, "for": true, "foreach": true, "while": true, "do": true, "switch": true, "case": true, "catch": true, "try": true,
	"return": true, "throw": true, "new": true, "delete": true, "await": true, "yield": true, "using": true, "lock": true, "with": true,
	"function": true, "super": true, "typeof": true, "sizeof": true, "goto": true, "assert": true, "defer": true, "go": true,
}

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

// cComments are the beginnings of comments, annotations and attributes of
// languages with the syntax of C.
var cComments = []string{"//", "/*", "*", "@", "[", "#["}

// declarations returns a language whose declarations begin with one of the
// patterns.
func declarations(comments []string, patterns ...string) codeLanguage {
	l := codeLanguage{comments: comments}
	for _, p := range patterns {
		l.patterns = append(l.patterns, regexp.MustCompile(p))
	}
	return l
}

// Patterns that several languages share.
const (
	jsFunction = `^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:async\s+)?function\b\s*\*?\s*\w*\s*[<(]`
	jsClass    = `^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?class\s+\w`
	jsArrow    = `^(?:export\s+)?(?:const|let|var)\s+\w+\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|(?:\([^)]*\)|\w+)\s*(?::\s*[^=]+)?=>)`
	jsMethod   = `^\s+(?:(?:public|private|protected|static|async|readonly|override|abstract|get|set)\s+)*\*?([#\w$]+)\s*(?:<[^>]*>)?\([^;]*\)\s*(?::\s*[^{;]+)?\{(?:.*\})?\s*$`

	javaType   = `^\s*(?:(?:public|protected|private|internal|abstract|final|static|sealed|non-sealed|strictfp|partial|readonly|ref|file|unsafe)\s+)*(?:class|interface|enum|record|struct|@interface|namespace|delegate)\s+\w`
	javaMethod = `^\s+(?:(?:public|protected|private|internal|abstract|final|static|synchronized|native|default|override|virtual|async|sealed|extern|unsafe|partial)\s+)+(?:<[^>]+>\s+)?(?:[\w<>\[\],.?]+\s+)*\w+\s*(?:<[^>]*>)?\s*\(`
	javaPlain  = `^\s+([\w<>\[\],.?]+)\s+(\w+)\s*\([^;()]*\)\s*(?:throws\s+[\w,\s.]+)?\{\s*$`

	cFunction = `^([A-Za-z_]\w*)(?:[\w:<>,*&~\[\]]|[ \t])*[ \t*&](?:[\w~]+(?:<[^>]*>)?::)*~?(\w+|operator\s*\S+)\s*\([^=]*$`
	cPlain    = `^(?:[a-z_]\w*|(?:\w+(?:<[^>]*>)?::)+~?\w+)\s*\([^;="]*$`                                                               // the type is on the line above, or there is none
	cMethod   = `^\s+([A-Za-z_]\w*)(?:[\w:<>,*&\[\]]|[ \t])*[ \t*&]~?(\w+)\s*\([^;="]*\)\s*(?:(?:const|noexcept|override|final)\s*)*\{` // in the declaration of its class
	cType     = `^\s*(?:typedef\s+)?(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class|\s+struct)?|namespace)\s+\w[^;()={]*(?:\{.*)?$`
)

// codeLanguages are the languages whose declarations become headings, by media
// type.
var codeLanguages = sync.OnceValue(func() map[string]codeLanguage {
	js := declarations(cComments, jsFunction, jsClass, jsArrow, jsMethod)
	ts := declarations(cComments, jsFunction, jsClass, `^\s*(?:export\s+)?(?:declare\s+)?(?:default\s+)?(?:const\s+)?(?:interface|enum|namespace|module|type)\s+\w`, jsArrow, jsMethod)
	java := declarations(cComments, javaType, javaMethod, javaPlain)
	c := declarations([]string{"//", "/*", "*", "[[", "template"}, cType, cFunction, cPlain, cMethod)
	python := declarations([]string{"#", "@"}, `^\s*(?:async\s+)?def\s+\w`, `^\s*class\s+\w`)
	python.quotes = true
	return map[string]codeLanguage{
		"text/x-go":       declarations([]string{"//", "/*", "*"}, `^func\s`, `^type\s+\w`, `^\t[A-Za-z_]\w*(?:\[[^\]]*\])?\s+(?:struct|interface)\s*\{`),
		"text/x-python":   python,
		"text/x-java":     java,
		"text/x-csharp":   java,
		"text/javascript": js, "application/javascript": js, "application/x-javascript": js,
		"text/x-typescript": ts,
		"text/x-c":          c,
		"text/x-c++":        c,
		"text/x-rust": declarations(cComments, `^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|extern(?:\s+"[^"]*")?)\s+)*fn\s+\w`,
			`^\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait|union|mod|type)\s+\w`, `^\s*(?:unsafe\s+)?impl\b`, `^\s*macro_rules!\s*\w`),
		"text/x-ruby": declarations([]string{"#"}, `^\s*(?:class|module)\s+[\w:<]`, `^\s*(?:(?:private|protected|public)\s+)?def\s+\S`),
		"text/x-php": declarations(cComments, `^\s*(?:(?:abstract|final|public|protected|private|static|readonly)\s+)*function\s+&?\w`,
			`^\s*(?:(?:abstract|final|readonly)\s+)*(?:class|interface|trait|enum)\s+\w`, `^\s*namespace\s+\w`),
		"text/x-kotlin":    declarations(cComments, `^\s*(?:[a-z]+\s+)*(?:fun|class|interface|object)\s+[\w<.]`),
		"text/x-scala":     declarations(cComments, `^\s*(?:[a-z]+(?:\[\w+\])?\s+)*(?:def|class|object|trait|enum)\s+\w`),
		"text/x-swift":     declarations(cComments, `^\s*(?:@\w+\s+)*(?:[a-z]+(?:\([a-z]+\))?\s+)*(?:func|class|struct|enum|protocol|extension|actor)\s+\S`, `^\s*(?:[a-z]+\s+)*init[?!]?\s*[(<]`),
		"application/x-sh": declarations([]string{"#"}, `^\s*function\s+[\w:.-]+`, `^\s*[\w:.-]+\s*\(\)\s*(?:\{|\(|$)`),
		"application/sql": declarations([]string{"--", "/*", "*"}, `(?i)^\s*create\s+(?:or\s+replace\s+)?(?:\w+\s+){0,3}?(?:table|view|function|procedure|trigger|index|type|schema|sequence|domain|database|role|policy|extension)\s`,
			`(?i)^\s*alter\s+table\s`),
	}
})
