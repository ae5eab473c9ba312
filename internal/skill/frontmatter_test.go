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
	} {
		if got, err := FrontmatterDescription([]byte(tc.in)); err != nil || got != tc.want {
			t.Errorf("FrontmatterDescription(%.60q) = %q, %v, want %q", tc.in, got, err, tc.want)
		}
	}
	for _, in := range []string{
		"", "---", "---\n", "---\ndescription: x\n", "name: x\n---\ndescription: y\n---\n", "---\n---\n",
		"---\nname: x\n---\n",
		"---\ndescription:\n---\n", "---\ndescription: '  '\n---\n", "---\ndescription: 5\n---\n",
		"---\ndescription: [a]\n---\n",
		"---\n- description\n---\n", "---\ndescription: \"\n---\n", "---\n\tdescription: x\n---\n",
		"---\ndescription: " + long + "x\n---\n", "---\n" + strings.Repeat("# long\n", 10000) + "description: x\n---\n",
	} {
		if got, err := FrontmatterDescription([]byte(in)); !errors.Is(err, errkind.Invalid) {
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
		"---\nmetadata:\n  mcp_server_id: \"a\"\n---\n":       "a",
		"---\r\nmetadata:\r\n  mcp_server_id: a b\r\n---\r\n": "a b",
		"---\nmetadata: &a [*a]\n---\n":                       "",
		"---\nmetadata:\n  mcp_server_id: [a]\n---\n":         "",
		"---\nmcp_server_id: a\n---\n":                        "",
		"metadata:\n  mcp_server_id: a\n":                     "",
	} {
		if got := FrontmatterServer([]byte(in)); got != want {
			t.Errorf("FrontmatterServer(%q) = %q, want %q", in, got, want)
		}
	}
}
