package skill

import (
	"errors"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestFrontmatterDescription(t *testing.T) {
	long := strings.Repeat("é", 1024)
	for _, tc := range []struct{ in, want string }{
		{"---\nname: x\ndescription: plain words\n---\n# Body\n", "plain words"},
		{"\ufeff---\r\ndescription: \"a\\u002d--b\"\r\n---\r\n", "a---b"},
		{"---\ndescription: >-\n  folded\n  words\nname: x\n---", "folded words"},
		{"---\n# comment\ndescription: 'it''s' # comment\n---\ndescription: body\n", "it's"},
		{"---\nx: &a y\ndescription: *a\n---\n", "y"},
		{"---\ndescription: " + long + "\n---\n", long},
		{"---\ndescription: it rains\n  or snows\n---\n", "it rains or snows"},
		{"---\n{name: x, description: y}\n---\n", "y"},

		// What is not YAML, or not what YAML makes of it.
		{"---\ndescription: Use this: when it rains\nname: x\n---\n", "Use this: when it rains"},
		{"---\nname: x\ndescription: Use this: when\n  it rains\n\nor snows\n---\n", "Use this: when it rains or snows"},
		{"---\ndescription: [x] done\n---\n", "[x] done"},
		{"---\ndescription: [x]\n---\n", "[x]"},
		{"---\ndescription: {x}\n---\n", "{x}"},
		{"---\ndescription: *now*, not later\n---\n", "*now*, not later"},
		{"---\ndescription: @you\n---\n", "@you"},
		{"---\ndescription: &c and others\n---\n", "&c and others"},
		{"---\ndescription: !now or later\n---\n", "!now or later"},
		{"---\ndescription: - one\n---\n", "- one"},
		{"---\ndescription: > one\n---\n", "> one"},
		{"---\ndescription: 123\n---\n", "123"},
		{"---\ndescription: true\n---\n", "true"},
		{"---\ndescription: \"quoted\" then more\n---\n", "\"quoted\" then more"},
		{"---\ndescription: 'tis so\n---\n", "'tis so"},
		{"---\ndescription: a #b\n---\n", "a #b"},
		{"---\ndescription:words\nname: x\n---\n", "words"},
		{"---\ndescription: >-\n  folded\n  words\nname: [\n---\n", "folded words"},
	} {
		if got, shortened, err := FrontmatterDescription([]byte(tc.in)); err != nil || got != tc.want || shortened {
			t.Errorf("FrontmatterDescription(%.60q) = %q, %v, %v, want %q", tc.in, got, shortened, err, tc.want)
		}
	}
	words := strings.TrimSpace(strings.Repeat("123456789 ", 102))
	for in, want := range map[string]string{
		long + "x":            strings.TrimSuffix(long, "é") + "…",
		words + " 1234 end":   words + "…",
		words + " 12 \"end\"": words + " 12…",
	} {
		got, shortened, err := FrontmatterDescription([]byte("---\ndescription: " + in + "\n---\n"))
		if err != nil || got != want || !shortened {
			t.Errorf("FrontmatterDescription of %d bytes = %q, %v, %v, want %q", len(in), got, shortened, err, want)
		}
	}
	for _, in := range []string{
		"", "---", "---\n", "---\ndescription: x\n", "name: x\n---\ndescription: y\n---\n", "---\n---\n",
		"---\nname: x\n---\n",
		"---\ndescription:\n---\n", "---\ndescription: '  '\n---\n",
		"---\n- description\n---\n", "---\n\tdescription: x\n---\n",
		"---\n" + strings.Repeat("# long\n", 10000) + "description: x\n---\n",
	} {
		if got, _, err := FrontmatterDescription([]byte(in)); !errors.Is(err, errkind.Invalid) {
			t.Errorf("FrontmatterDescription(%.60q) = %q, %v, want an Invalid error", in, got, err)
		}
	}
}

func TestSetFrontmatterDescription(t *testing.T) {
	for _, tc := range []struct{ in, description, want string }{
		{"---\nname: x\ndescription: \"old\"\nmetadata:\n  description: inner\n---\nbody\n", "new: --- \"it\"",
			"---\nname: x\ndescription: \"new: \\u002d-- \\\"it\\\"\"\nmetadata:\n  description: inner\n---\nbody\n"},
		{"---\ndescription: \"a\"\n---\ndescription: \"b\"\n", "\u202enew\n$0",
			"---\ndescription: \"\\u202enew\\n$0\"\n---\ndescription: \"b\"\n"},
	} {
		got, err := SetFrontmatterDescription([]byte(tc.in), tc.description)
		if err != nil || string(got) != tc.want {
			t.Errorf("SetFrontmatterDescription(%q, %q) = %q, %v, want %q", tc.in, tc.description, got, err, tc.want)
		}
	}
	for _, tc := range []struct{ in, description string }{
		{"", "new"}, {"---\nname: x\n---\n", "new"},
		{"---\ndescription: x\n---\n", ""}, {"---\ndescription: x\n---\n", " \n"},
		{"---\ndescription: x\n---\n", strings.Repeat("x", 1025)},
	} {
		if got, err := SetFrontmatterDescription([]byte(tc.in), tc.description); !errors.Is(err, errkind.Invalid) {
			t.Errorf("SetFrontmatterDescription(%q, %.10q) = %q, %v, want an Invalid error", tc.in, tc.description,
				got, err)
		}
	}
}

func TestSameButDescription(t *testing.T) {
	const md = "---\nname: x\ndescription: \"old\"\nmetadata:\n  mcp_server_id: \"s\"\n---\nbody\n"
	for _, tc := range []struct {
		other string
		want  bool
	}{
		{md, true},
		{"---\nname: x\ndescription: new\nmetadata:\n  mcp_server_id: \"s\"\n---\nbody\n", true},
		{"---\r\nname: x\r\ndescription: |\r\n  new\r\n  words\r\nmetadata: {mcp_server_id: s}\r\n---\r\nbody\r\n",
			true},
		{strings.Replace(md, `"old"`, "Use this: now", 1), true},
		{strings.Replace(md, "body", "other", 1), false},
		{strings.Replace(md, "name: x", "name: y", 1), false},
		{strings.Replace(md, "name: x", "name: [", 1), false},
		{"body\n", false},
	} {
		if got := SameButDescription([]byte(md), []byte(tc.other)); got != tc.want {
			t.Errorf("SameButDescription(md, %q) = %v, want %v", tc.other, got, tc.want)
		}
	}
}

func TestFrontmatterServer(t *testing.T) {
	for in, want := range map[string]string{
		"---\nmetadata:\n  mcp_server_id: \"a\"\n---\n":                "a",
		"---\r\nmetadata:\r\n  mcp_server_id: a b\r\n---\r\n":          "a b",
		"---\nmetadata: &a [*a]\n---\n":                                "",
		"---\nmetadata:\n  mcp_server_id: [a]\n---\n":                  "",
		"---\nmcp_server_id: a\n---\n":                                 "",
		"---\ndescription: a: b\nmetadata:\n  mcp_server_id: a\n---\n": "a",
		"metadata:\n  mcp_server_id: a\n":                              "",
	} {
		if got := FrontmatterServer([]byte(in)); got != want {
			t.Errorf("FrontmatterServer(%q) = %q, want %q", in, got, want)
		}
	}
}
