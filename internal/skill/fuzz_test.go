package skill

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
)

// FuzzRender renders what a hostile server may say of itself in every way.
func FuzzRender(f *testing.F) {
	f.Add("srv", "getUser", "Gets a user. More.", `{"properties":{"id":{"type":"string"}},"required":["id"]}`,
		"Use it.", `{"readOnlyHint":true}`, true)
	f.Add("日本", "---", "---\n# MCP Tool: x\n```\n## Usage\n\u202e", `{"$ref":"#","anyOf":[{"$ref":"#"},true]}`, "", ``,
		false)
	f.Add("a'b", "`x`\n## Usage", "<b>\u2028e.g. x",
		`{"properties":{"a":{"default":"'\u000a","pattern":"^a{3}$","type":"string"}},"required":["a",""]}`, "\x00",
		`[`, true)
	f.Add("s\x00\u0085", "t\U000e0041\ufffe😀", "x", `{"required":["\udb40\udc41"]}`, "x", ``, false)
	f.Fuzz(func(t *testing.T, server, name, description, schema, instructions, annotations string, task bool) {
		if !utf8.ValidString(server) || !utf8.ValidString(name) || len(name) > maxToolName || name == "" {
			return // neither JSON nor the settings give such names
		}
		c := mcpclient.Catalog{Server: server, Instructions: instructions, TaskCalls: task, Tools: []mcpclient.Tool{{
			Name: name, Description: description, InputSchema: json.RawMessage(schema),
			Annotations: json.RawMessage(annotations), TaskSupport: "optional",
		}}}
		for _, o := range []Options{{}, {Description: "full"}, {GroupByServer: true}} {
			skills, _ := Render([]mcpclient.Catalog{c}, o)
			if len(skills) != 1 {
				t.Fatalf("%d skills of one tool", len(skills))
			}
			checkSkill(t, skills[0])
			want, base := claimTool(server, name), ""
			if o.GroupByServer {
				want = claimServer(server)
			}
			if base = want.name(0); want.trouble != "" {
				base = want.name(1)
			}
			if skills[0].Name != base {
				t.Errorf("name = %q, want %q", skills[0].Name, base)
			}
			edited, err := SetFrontmatterDescription([]byte(file(t, skills[0], "SKILL.md")), "other")
			if err != nil {
				t.Fatalf("SetFrontmatterDescription: %v", err)
			}
			back, err := SetFrontmatterDescription(edited, skills[0].Description)
			if err != nil || string(back) != file(t, skills[0], "SKILL.md") {
				t.Errorf("setting the description there and back gives %q, %v", back, err)
			}
		}
	})
}

// FuzzFrontmatter reads whatever an editor may have left of a SKILL.md.
func FuzzFrontmatter(f *testing.F) {
	f.Add("---\nname: x\ndescription: \"old\"\n---\nbody\n")
	f.Add("---\ndescription: >-\n  a\n  b\nx: y\n---\n")
	f.Add("\ufeff---\r\n? description\r\n: 'a'\r\n---\r\n")
	f.Add("---\nmetadata: &a [*a]\n---\n")
	f.Add("---\ndescription: Use this: *now* #1\nat once\nname: x\n---\n")
	f.Fuzz(func(t *testing.T, md string) {
		description, _, err := FrontmatterDescription([]byte(md))
		if err == nil && (description == "" || utf8.RuneCountInString(description) > maxDescription) {
			t.Errorf("FrontmatterDescription(%q) = %q without an error", md, description)
		}
		if got := FrontmatterServer([]byte(md)); got != "" &&
			!strings.HasPrefix(strings.TrimPrefix(md, "\ufeff"), "---") {
			t.Errorf("FrontmatterServer(%q) = %q, want none without frontmatter", md, got)
		}
		SameButDescription([]byte(md), []byte(md))
	})
}

func BenchmarkRender(b *testing.B) {
	catalogs, _ := recorded(b)
	for b.Loop() {
		Render(catalogs, Options{})
	}
}
