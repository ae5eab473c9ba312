package data

import (
	"context"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// maxLine is the length of a line, in bytes, from which it has no key.
const maxLine = 2000

// YAML keeps YAML as it is. Keys with nested values become headings.
func YAML(ctx context.Context, t *plain.Text, src string) {
	t.Body = plain.TrimBlankLines(src)
	var open []int // indentations of the keys around the current line
	block := -1    // indentation of the key with the current block of text, or -1
	for start, line := range plain.Lines(ctx, t.Body) {
		trimmed := strings.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		if trimmed == "" || block >= 0 && indent > block || len(line) > maxLine {
			continue
		}
		block = -1
		for strings.HasPrefix(trimmed, "- ") {
			rest := strings.TrimLeft(trimmed[2:], " ")
			indent += len(trimmed) - len(rest)
			trimmed = rest
		}
		key, value, ok := yamlKey(trimmed)
		if !ok {
			continue
		}
		for len(open) > 0 && open[len(open)-1] >= indent {
			open = open[:len(open)-1]
		}
		switch {
		case value == "|" || value == ">" || len(value) == 2 && strings.ContainsAny(value[:1], "|>"):
			block = indent
		case value == "" || value[0] == '&' && !strings.Contains(value, " "):
			if len(open) < maxKeyLevel {
				t.Mark(start+plain.Blanks(line), len(open)+1, key)
			}
			open = append(open, indent)
		}
	}
}

// yamlKey splits a line such as "key: value". ok is false for other lines.
func yamlKey(line string) (key, value string, ok bool) {
	if line[0] == '#' || line[0] == '{' || line[0] == '[' || line[0] == '%' {
		return "", "", false
	}
	key, value, ok = strings.Cut(line, ":")
	if q := line[0]; q == '"' || q == '\'' {
		rest, after, found := strings.Cut(line[1:], string(q))
		if !found || !strings.HasPrefix(after, ":") {
			return "", "", false
		}
		key, value, ok = rest, after[1:], true
	}
	if !ok || value != "" && value[0] != ' ' && value[0] != '\t' {
		return "", "", false
	}
	value = strings.TrimSpace(value)
	if strings.HasPrefix(value, "#") {
		value = ""
	} else if i := strings.Index(value, " #"); i >= 0 {
		value = strings.TrimSpace(value[:i])
	}
	key = plain.OneLine(key)
	return key, value, key != ""
}

// TOML keeps TOML and similar files as they are. Tables become headings.
func TOML(ctx context.Context, t *plain.Text, src string) {
	t.Body = plain.TrimBlankLines(src)
	quoted := "" // end of the current text of several lines
	for start, line := range plain.Lines(ctx, t.Body) {
		if quoted != "" {
			if strings.Contains(line, quoted) {
				quoted = ""
			}
			continue
		}
		if quoted = plain.OpenQuote(line); quoted != "" {
			continue
		}
		s, _, _ := strings.Cut(line, "#")
		s = strings.TrimSpace(s)
		if len(s) < 3 || s[0] != '[' || s[len(s)-1] != ']' {
			continue
		}
		name := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(s[1:], "]"), "["), "]"))
		if !strings.ContainsAny(name, ",{}[]") {
			t.Mark(start+plain.Blanks(line), 1, plain.OneLine(name))
		}
	}
}
