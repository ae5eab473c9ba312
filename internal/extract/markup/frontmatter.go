package markup

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Bounds on front matter. A longer block is text.
const (
	maxFrontLines = 500
	maxFrontBytes = 64 << 10
)

// frontKeys are the keys of front matter, in lower case, whose values are text
// for readers. Others, such as dates and layouts, are for programs.
var frontKeys = set(`title subtitle name description summary abstract excerpt tags tag keywords categories category
	topics aliases alias author authors`)

// A frontMatter has the values of the block of metadata at the start of a text.
type frontMatter struct {
	title, lang string
	values      []string // of frontKeys, in order
}

// splitFrontMatter splits off a leading block of YAML (---) or TOML (+++). A
// block without an end is text.
func splitFrontMatter(ctx context.Context, src string) (body string, m frontMatter) {
	first, rest, ok := strings.Cut(src, "\n")
	fence := strings.TrimRight(first, " \t")
	if !ok || fence != "---" && fence != "+++" {
		return src, m
	}
	block := rest
	for n := 0; n < maxFrontLines; n++ {
		line, more, ok := strings.Cut(rest, "\n")
		end := strings.TrimRight(line, " \t")
		if at := len(block) - len(rest); end == fence || fence == "---" && end == "..." {
			m.read(ctx, block[:at], fence == "+++")
			return more, m
		} else if !ok || n == 0 && end == "" || at > maxFrontBytes {
			return src, m // no end, or a rule at the top of the text
		}
		rest = more
	}
	return src, m
}

// read reads the block between the fences.
func (m *frontMatter) read(ctx context.Context, block string, isTOML bool) {
	var root yaml.Node
	var table map[string]any
	switch {
	case isTOML:
		if meta, err := toml.Decode(block, &table); err == nil {
			m.toml(ctx, table, meta.Keys())
			return
		}
	case yaml.Unmarshal([]byte(block), &root) == nil && len(root.Content) == 1 &&
		root.Content[0].Kind == yaml.MappingNode:
		m.yaml(ctx, root.Content[0], true)
		return
	}
	// People write values that need quotes without them.
	key, value := "", ""
	for line := range strings.Lines(block) {
		if i := strings.IndexAny(line, ":="); i > 0 && line[0] > ' ' && line[0] != '-' && line[0] != '#' {
			m.add(ctx, key, value, true)
			key = strings.ToLower(strings.TrimSpace(line[:i]))
			value = strings.Trim(strings.TrimSpace(line[i+1:]), `|>"'`)
		} else if item := strings.TrimSpace(line); strings.HasPrefix(item, "- ") && value != "" {
			value += ", " + item[2:]
		} else {
			value += " " + strings.TrimPrefix(item, "- ")
		}
	}
	m.add(ctx, key, value, true)
}

// yaml reads the keys of a mapping, and those of the mappings inside it.
func (m *frontMatter) yaml(ctx context.Context, mapping *yaml.Node, top bool) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := strings.ToLower(mapping.Content[i].Value), mapping.Content[i+1]
		switch {
		case value.Kind == yaml.MappingNode && !frontKeys[key]:
			m.yaml(ctx, value, false)
		case frontKeys[key] || key == "lang":
			m.add(ctx, key, strings.Join(yamlScalars(value, nil), ", "), top)
		}
	}
}

// yamlScalars appends the texts in a value to texts. An alias counts only if it
// stands for a scalar, so that the result is not longer than the block.
func yamlScalars(n *yaml.Node, texts []string) []string {
	switch n.Kind {
	case yaml.AliasNode:
		if n.Alias.Kind == yaml.ScalarNode && len(n.Alias.Value) <= plain.MaxTitle {
			return yamlScalars(n.Alias, texts)
		}
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			return append(texts, n.Value)
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			texts = yamlScalars(c, texts)
		}
	case yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			texts = yamlScalars(n.Content[i], texts)
		}
	}
	return texts
}

// toml reads the values of keys in a table and in the tables inside it.
func (m *frontMatter) toml(ctx context.Context, table map[string]any, keys []toml.Key) {
	for _, key := range keys {
		var value any = table
		for _, k := range key {
			t, _ := value.(map[string]any)
			value = t[k]
		}
		m.add(ctx, strings.ToLower(key[len(key)-1]), strings.Join(tomlStrings(value, nil), ", "), len(key) == 1)
	}
}

// tomlStrings appends the strings in a value to texts. Those in tables have keys
// of their own.
func tomlStrings(v any, texts []string) []string {
	switch v := v.(type) {
	case string:
		return append(texts, v)
	case []any:
		for _, e := range v {
			texts = tomlStrings(e, texts)
		}
	case []map[string]any:
		for _, e := range v {
			for _, k := range slices.Sorted(maps.Keys(e)) {
				texts = tomlStrings(e[k], texts)
			}
		}
	}
	return texts
}

// add adds the value of a key. top reports that the key is not inside another
// one.
func (m *frontMatter) add(ctx context.Context, key, value string, top bool) {
	value = strings.TrimSpace(plain.Clean(ctx, strings.ToValidUTF8(value, "")))
	switch {
	case value == "":
		return
	case key == "lang" && top:
		m.lang = value
	case key == "title" && top:
		m.title = plain.OneLine(strings.ToValidUTF8(value[:min(len(value), 4*plain.MaxTitle)], ""))
	}
	if frontKeys[key] && !slices.Contains(m.values, value) {
		m.values = append(m.values, value)
	}
}
