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
// SKILL.md: a string in any form of YAML, or else the text as it stands there. One
// of more than 1,024 characters is cut and shortened is true. The error
// is of kind [errkind.Invalid] if there is no frontmatter of at most 64 KiB, or no
// description in it that is not blank.
func FrontmatterDescription(skillMD []byte) (description string, shortened bool, err error) {
	head, _, err := splitFrontmatter(skillMD)
	if err != nil {
		return "", false, err
	}
	description = readDescription(head)
	short := sanitize.Cut(description, maxDescription, 4*maxDescription)
	return short, short != description, checkDescription(short)
}

// FrontmatterServer returns the server id in the metadata of a generated
// SKILL.md, or "" if there is none or it cannot be read.
func FrontmatterServer(skillMD []byte) string {
	fields, _, _ := readFrontmatter(skillMD)
	metadata, _ := fields["metadata"].(map[string]any)
	server, _ := metadata["mcp_server_id"].(string)
	return server
}

// SameButDescription reports whether two SKILL.md are equal except for their
// descriptions, in any form of YAML.
func SameButDescription(a, b []byte) bool {
	fieldsA, bodyA, errA := readFrontmatter(a)
	fieldsB, bodyB, errB := readFrontmatter(b)
	return errA == nil && errB == nil && bodyA == bodyB && reflect.DeepEqual(fieldsA, fieldsB)
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

// splitFrontmatter returns the frontmatter of a SKILL.md, which is the YAML
// between two lines "---" at its beginning, and the rest of the file.
func splitFrontmatter(skillMD []byte) (head, body string, err error) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(skillMD), "\ufeff"), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", "", fmt.Errorf("reading frontmatter: the file does not start with a line ---: %w", errkind.Invalid)
	}
	end := 0
	for line := range strings.SplitAfterSeq(rest, "\n") {
		if strings.TrimRight(line, " \t\n") == "---" {
			return rest[:end], rest[end+len(line):], nil
		}
		if end += len(line); end > maxFrontmatter {
			break
		}
	}
	return "", "", fmt.Errorf("reading frontmatter: no line --- ends it within 64 KiB: %w", errkind.Invalid)
}

// readFrontmatter returns the members of the frontmatter of a SKILL.md, except the
// description, and the rest of the file. The description need not be YAML.
func readFrontmatter(skillMD []byte) (fields map[string]any, body string, err error) {
	head, body, err := splitFrontmatter(skillMD)
	if err != nil {
		return nil, "", err
	}
	before, _, after := cutDescription(head)
	for _, text := range []string{head, before + after} {
		fields = nil
		if err = yaml.Unmarshal([]byte(text), &fields); err == nil {
			delete(fields, "description")
			return fields, body, nil
		}
	}
	return nil, "", fmt.Errorf("reading frontmatter: %w: %w", err, errkind.Invalid)
}

// key matches the beginning of a line of frontmatter that is another member or a
// comment.
var key = regexp.MustCompile(`^(?:[A-Za-z_][\w.-]*[ \t]*:(?:[ \t\n]|$)|#)`)

// cutDescription returns the lines of the description in frontmatter, and what
// is before and after them.
func cutDescription(head string) (before, description, after string) {
	start, end := -1, 0
	for line := range strings.SplitAfterSeq(head, "\n") {
		switch {
		case start < 0 && strings.HasPrefix(line, "description:"):
			start = end
		case start >= 0 && key.MatchString(line):
			return head[:start], head[start:end], head[end:]
		}
		end += len(line)
	}
	if start < 0 {
		return head, "", ""
	}
	return head[:start], head[start:], ""
}

// readDescription returns the description in frontmatter, "" if there is none. What
// is not a string in YAML, or would lose a part as a comment, is taken as it stands:
// people write "Use this: when it rains" or "#1 of all" without quotes.
func readDescription(head string) string {
	_, lines, _ := cutDescription(head)
	_, written, _ := strings.Cut(lines, ":")
	var parts []string
	for line := range strings.SplitSeq(written, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	written = strings.Join(parts, " ")
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	for _, text := range []string{head, lines} {
		var fields struct{ Description yaml.Node }
		if yaml.Unmarshal([]byte(text), &fields) != nil {
			continue
		}
		n, alias := &fields.Description, ""
		switch {
		case n.Kind == yaml.AliasNode && n.Decode(&alias) == nil:
			return alias
		case n.Kind == yaml.ScalarNode && (n.Style&quoted != 0 || written == "" ||
			slices.Equal(strings.Fields(n.Value), strings.Fields(written))):
			return n.Value
		}
		break
	}
	return written
}

// checkDescription checks a description against the specification.
func checkDescription(description string) error {
	n := utf8.RuneCountInString(description)
	if n > maxDescription || strings.TrimSpace(description) == "" {
		return fmt.Errorf("the description has %d characters, want 1 to 1,024, not all blank: %w", n, errkind.Invalid)
	}
	return nil
}
