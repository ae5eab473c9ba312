package skill

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"knowhow/internal/errkind"
)

const (
	// maxDescription is the length in characters that the Agent Skills
	// specification allows for a description.
	maxDescription = 1024

	// maxFrontmatter bounds in bytes what is given to the YAML reader.
	maxFrontmatter = 64 << 10

	// compatibility tells an agent, and people, what must be there.
	compatibility = "Requires a running knowhow bridge (mcp-bridge start) or the mcp-bridge command."
)

// A pair is a member of the frontmatter's metadata.
type pair struct{ key, value string }

// writeFrontmatter writes the head of a SKILL.md. Only what every reader of
// skills knows stands at the top level: clients and the official validator
// refuse other keys there.
func writeFrontmatter(b *strings.Builder, name, description string, metadata []pair) {
	fmt.Fprintf(b, "---\nname: %s\ndescription: %s\ncompatibility: %s\nmetadata:\n",
		quoteYAML(name), quoteYAML(description), quoteYAML(compatibility))
	for _, p := range metadata {
		fmt.Fprintf(b, "  %s: %s\n", p.key, quoteYAML(p.value))
	}
	b.WriteString("---\n")
}

// FrontmatterDescription returns the description in the frontmatter of a
// SKILL.md, in whatever form of YAML an editor left it. It is an error of kind
// [errkind.Invalid] if there is no frontmatter of at most 64 KiB, if that is no
// mapping with a description of text, or if the description is blank or has
// more than 1,024 characters.
func FrontmatterDescription(skillMD []byte) (string, error) {
	head, _, err := splitFrontmatter(string(skillMD))
	if err != nil {
		return "", err
	}
	_, value, _, err := findDescription(head)
	if err != nil {
		return "", err
	}
	return value, checkDescription(value)
}

// SetFrontmatterDescription returns the SKILL.md with another description and
// everything else as it was. A description that is blank or has more than 1,024
// characters is an [errkind.Argument]; a SKILL.md without frontmatter or
// without a description, on lines of its own, is of kind [errkind.Invalid].
func SetFrontmatterDescription(skillMD []byte, description string) ([]byte, error) {
	description = strings.ToValidUTF8(description, "\ufffd")
	if err := checkDescription(description); err != nil {
		return nil, &errkind.Argument{Name: "description", Want: "1 to 1,024 characters, not all blank"}
	}
	text := string(skillMD)
	head, start, err := splitFrontmatter(text)
	if err != nil {
		return nil, err
	}
	key, _, next, err := findDescription(head)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(head, "\n")
	if next == 0 || next > len(lines) {
		next = len(lines)
	}
	for next > key.Line && strings.HasPrefix(lines[next-1], "#") {
		next-- // a comment belongs to what follows
	}
	if key.Column != 1 || next <= key.Line-1 {
		return nil, fmt.Errorf("setting the description: it shares its line with others: %w", errkind.Invalid)
	}
	old := strings.Join(lines[key.Line-1:next], "")
	line := "description: " + quoteYAML(description)
	if strings.HasSuffix(old, "\r\n") {
		line += "\r"
	}
	before := start + len(strings.Join(lines[:key.Line-1], ""))
	edited := text[:before] + line + "\n" + text[before+len(old):]
	if got, err := FrontmatterDescription([]byte(edited)); err != nil || got != description {
		return nil, fmt.Errorf("setting the description: the frontmatter has a form that can't be edited: %w", errkind.Invalid)
	}
	return []byte(edited), nil
}

// splitFrontmatter returns the YAML between the two lines "---" at the top of a
// SKILL.md and where it starts.
func splitFrontmatter(text string) (head string, start int, err error) {
	const bom = "\ufeff"
	rest := strings.TrimPrefix(text, bom)
	first, rest, _ := strings.Cut(rest, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return "", 0, fmt.Errorf("reading frontmatter: the file does not start with a line ---: %w", errkind.Invalid)
	}
	start = len(text) - len(rest)
	end := 0
	for line := range strings.SplitAfterSeq(rest, "\n") {
		if strings.TrimRight(line, " \t\r\n") == "---" {
			return rest[:end], start, nil
		}
		if end += len(line); end > maxFrontmatter {
			break
		}
	}
	return "", 0, fmt.Errorf("reading frontmatter: no line --- ends it within 64 KiB: %w", errkind.Invalid)
}

// findDescription returns the key and the value of the description, and the
// number of lines before the key that follows it, 0 if it is the last.
func findDescription(head string) (key *yaml.Node, value string, next int, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		return nil, "", 0, fmt.Errorf("reading frontmatter: %w: %w", err, errkind.Invalid)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, "", 0, fmt.Errorf("reading frontmatter: it has no keys: %w", errkind.Invalid)
	}
	content := doc.Content[0].Content
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value != "description" {
			continue
		}
		if v := content[i+1]; v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" {
			return nil, "", 0, fmt.Errorf("reading frontmatter: the description is no text; put it in quotes: %w", errkind.Invalid)
		}
		if i+2 < len(content) {
			next = content[i+2].Line - 1
		}
		return content[i], content[i+1].Value, next, nil
	}
	return nil, "", 0, fmt.Errorf("reading frontmatter: there is no description: %w", errkind.Invalid)
}

// checkDescription holds a description against the specification.
func checkDescription(description string) error {
	n := utf8.RuneCountInString(description)
	if n > maxDescription || strings.TrimSpace(description) == "" {
		return fmt.Errorf("the description has %d characters, want 1 to 1,024, not all blank: %w", n, errkind.Invalid)
	}
	return nil
}
