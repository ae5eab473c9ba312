package skill

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	// maxDescription is the maximum length of a description in the Agent Skills
	// specification, in characters.
	maxDescription = 1024

	// maxFrontmatter limits the input of the YAML parser, in bytes.
	maxFrontmatter = 64 << 10
)

// A pair is a member of the metadata in the frontmatter.
type pair struct{ key, value string }

// writeFrontmatter writes the frontmatter of a SKILL.md. The top level contains
// only the keys of the specification, because clients and the official
// validator refuse other keys.
func writeFrontmatter(b *strings.Builder, s Skill, o Options, metadata []pair) {
	program := "knowhow start"
	if len(o.Start) > 1 {
		program = plainLine(o.Start[0]+" "+o.Start[1], 100)
	}
	fmt.Fprintf(b, "---\nname: %s\ndescription: %s\ncompatibility: %s\nmetadata:\n",
		sanitize.QuoteYAML(s.Name), sanitize.QuoteYAML(s.Description),
		sanitize.QuoteYAML("Requires curl and a running bridge to the MCP server ("+program+")."))
	for _, p := range metadata {
		fmt.Fprintf(b, "  %s: %s\n", p.key, sanitize.QuoteYAML(p.value))
	}
	b.WriteString("---\n")
}

// FrontmatterDescription returns the description in the frontmatter of a
// SKILL.md, in any form of YAML. It returns an error of kind [errkind.Invalid]
// if there is no frontmatter of at most 64 KiB, if it is not a mapping with a
// description that is a string, or if the description is blank or has more than
// 1,024 characters.
func FrontmatterDescription(skillMD []byte) (string, error) {
	head, _, err := readFrontmatter(skillMD)
	if err != nil {
		return "", err
	}
	switch d := head["description"].(type) {
	case nil:
		return "", fmt.Errorf("reading frontmatter: it has no description: %w", errkind.Invalid)
	case string:
		return d, checkDescription(d)
	default:
		return "", fmt.Errorf("reading frontmatter: the description is not a string; put it in quotes: %w",
			errkind.Invalid)
	}
}

// FrontmatterServer returns the server id in the metadata of a generated
// SKILL.md, or "" if there is none or it cannot be read.
func FrontmatterServer(skillMD []byte) string {
	head, _, _ := readFrontmatter(skillMD)
	metadata, _ := head["metadata"].(map[string]any)
	server, _ := metadata["mcp_server_id"].(string)
	return server
}

// SameButDescription reports whether two SKILL.md are equal except for their
// descriptions, in any form of YAML.
func SameButDescription(a, b []byte) bool {
	headA, bodyA, errA := readFrontmatter(a)
	headB, bodyB, errB := readFrontmatter(b)
	if errA != nil || errB != nil {
		return false
	}
	delete(headA, "description")
	delete(headB, "description")
	return bodyA == bodyB && reflect.DeepEqual(headA, headB)
}

// descriptionLine matches the line of the description in a rendered SKILL.md.
var descriptionLine = regexp.MustCompile(`(?m)^description: .*$`)

// SetFrontmatterDescription returns a SKILL.md from [Render] with another
// description. If the description is blank or has more than 1,024 characters,
// the error is of kind [errkind.Invalid].
func SetFrontmatterDescription(skillMD []byte, description string) ([]byte, error) {
	if err := checkDescription(description); err != nil {
		return nil, err
	}
	at := descriptionLine.FindIndex(skillMD)
	if at == nil {
		return nil, fmt.Errorf("setting the description: there is none: %w", errkind.Invalid)
	}
	return slices.Concat(skillMD[:at[0]], []byte("description: "+sanitize.QuoteYAML(description)), skillMD[at[1]:]), nil
}

// readFrontmatter returns the frontmatter of a SKILL.md, which is the YAML
// between two lines "---" at its beginning, and the rest of the file.
func readFrontmatter(skillMD []byte) (head map[string]any, body string, err error) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(skillMD), "\ufeff"), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return nil, "", fmt.Errorf("reading frontmatter: the file does not start with a line ---: %w", errkind.Invalid)
	}
	end := 0
	for line := range strings.SplitAfterSeq(rest, "\n") {
		if strings.TrimRight(line, " \t\n") == "---" {
			if err := yaml.Unmarshal([]byte(rest[:end]), &head); err != nil {
				return nil, "", fmt.Errorf("reading frontmatter: %w: %w", err, errkind.Invalid)
			}
			return head, rest[end+len(line):], nil
		}
		if end += len(line); end > maxFrontmatter {
			break
		}
	}
	return nil, "", fmt.Errorf("reading frontmatter: no line --- ends it within 64 KiB: %w", errkind.Invalid)
}

// checkDescription checks a description against the specification.
func checkDescription(description string) error {
	n := utf8.RuneCountInString(description)
	if n > maxDescription || strings.TrimSpace(description) == "" {
		return fmt.Errorf("the description has %d characters, want 1 to 1,024, not all blank: %w", n, errkind.Invalid)
	}
	return nil
}
