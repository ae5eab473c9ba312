package mcpsettings

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	// maxPlaceholder is the maximum length of a placeholder, in bytes. It
	// limits the search for its end.
	maxPlaceholder = 1024

	// maxExpanded is the maximum size of the texts of one server, in bytes.
	maxExpanded = 1 << 20
)

// A piece is a part of a text that may contain placeholders.
type piece struct {
	text string // as in the file
	lit  string // the literal text; "" for a placeholder

	name     string // of the variable, or a name such as "workspaceFolder"
	fallback string // the text after ":-"
	optional bool   // $NAME: unchanged if there is no such variable
	env      bool   // ${env:NAME}: always a variable
	foreign  bool   // only an editor has the value, as of ${input:token}
	withFall bool
}

// pieces splits a text into literal text and placeholders. With braces,
// {env:NAME} and {file:NAME} are placeholders too, as in OpenCode.
func pieces(s string, braces bool) []piece {
	var parts []piece
	lit := 0
	for i := 0; i < len(s); {
		p := placeholder(s[i:], braces)
		if p.text == "" {
			i++
			continue
		}
		if lit < i {
			parts = append(parts, piece{text: s[lit:i], lit: s[lit:i]})
		}
		parts = append(parts, p)
		i += len(p.text)
		lit = i
	}
	if lit < len(s) {
		parts = append(parts, piece{text: s[lit:], lit: s[lit:]})
	}
	return parts
}

// placeholder returns the placeholder at the beginning of s; its text is "" if
// there is none.
func placeholder(s string, braces bool) piece {
	switch {
	case strings.HasPrefix(s, "$$"):
		return piece{text: "$$", lit: "$"}
	case strings.HasPrefix(s, "${"):
		return inBraces(s, s[2:])
	case braces && (strings.HasPrefix(s, "{env:") || strings.HasPrefix(s, "{file:")):
		return inBraces(s, s[1:])
	case strings.HasPrefix(s, "$"):
		n := 1
		for n < len(s) && isWord(s[n]) {
			n++
		}
		if isName(s[1:n]) {
			return piece{text: s[:n], name: s[1:n], optional: true}
		}
	}
	return piece{}
}

// inBraces returns the placeholder at the beginning of s. Its name begins at
// rest.
func inBraces(s, rest string) piece {
	end := strings.IndexByte(rest[:min(len(rest), maxPlaceholder)], '}')
	if end < 0 {
		return piece{}
	}
	p := piece{text: s[:len(s)-len(rest)+end+1]}
	inner, env := strings.CutPrefix(rest[:end], "env:")
	p.env = env
	p.name, p.fallback, p.withFall = strings.Cut(inner, ":-")
	if isName(p.name) || p.name == "/" {
		return p
	}
	editors := []string{"input", "command", "config", "secret", "file", "workspaceFolder"}
	if who, _, ok := strings.Cut(inner, ":"); ok && slices.Contains(editors, who) {
		return piece{text: p.text, name: p.text, foreign: true}
	}
	return piece{} // part of a script or a pattern
}

// isName reports whether s can be the name of a variable. Windows has
// ProgramFiles(x86), and packages have user_config.token.
func isName(s string) bool {
	if s == "" || !isWord(s[0]) || '0' <= s[0] && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !isWord(s[i]) && !strings.ContainsRune(".-()", rune(s[i])) {
			return false
		}
	}
	return true
}

// An expander expands environment variables in the texts of one server.
type expander struct {
	getenv    func(string) (string, bool)
	workspace string
	braces    bool

	used, missing, foreign map[string]bool
	size                   int
}

// newExpander returns an expander for one server.
func newExpander(getenv func(string) (string, bool), workspace string, braces bool) *expander {
	return &expander{getenv: getenv, workspace: workspace, braces: braces,
		used: map[string]bool{}, missing: map[string]bool{}, foreign: map[string]bool{}}
}

// expand returns s with its placeholders replaced. Placeholders without a value
// are recorded and left out.
func (x *expander) expand(s string) string {
	var b strings.Builder
	for _, p := range pieces(s, x.braces) {
		value := p.lit
		switch {
		case p.foreign:
			x.foreign[p.name] = true
		case p.name != "":
			value = x.value(p)
		}
		if x.size += len(value); x.size > maxExpanded {
			break
		}
		b.WriteString(value)
	}
	return b.String()
}

// path is expand for a path. A "~" at its start stands for the home folder.
func (x *expander) path(s string) string {
	s = x.expand(s)
	rest, ok := strings.CutPrefix(s, "~")
	if !ok || rest != "" && !os.IsPathSeparator(rest[0]) {
		return s
	}
	return filepath.Join(x.value(piece{name: "userHome"}), rest)
}

// value returns the value of a placeholder.
func (x *expander) value(p piece) string {
	name := p.name
	if !p.env && !p.optional {
		switch name {
		case "workspaceFolder", "workspaceRoot":
			return x.workspace
		case "workspaceFolderBasename":
			return filepath.Base(x.workspace)
		case "pathSeparator", "/":
			return string(os.PathSeparator)
		case "userHome":
			name = "HOME"
			if _, ok := x.getenv("USERPROFILE"); ok && runtime.GOOS == "windows" {
				name = "USERPROFILE"
			}
		}
	}
	value, ok := x.getenv(name)
	switch {
	case ok && (value != "" || !p.withFall):
		x.used[name] = true
		return value
	case p.withFall:
		return p.fallback
	case p.optional:
		return p.text
	}
	x.missing[name] = true
	return ""
}
