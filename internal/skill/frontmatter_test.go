package skill

import (
	"errors"
	"strings"
	"testing"

	"knowhow/internal/errkind"
)

func TestFrontmatterDescription(t *testing.T) {
	long := strings.Repeat("é", 1024)
	for _, tc := range []struct{ in, want string }{
		{"---\nname: x\ndescription: plain words\n---\n# Body\n", "plain words"},
		{"\ufeff---\r\ndescription: \"a\\u002d--b\"\r\n---\r\n", "a---b"},
		{"---\ndescription: >-\n  folded\n  words\nname: x\n---", "folded words"},
		{"---\n# comment\ndescription: 'it''s' # comment\n---\ndescription: body\n", "it's"},
		{"---\ndescription: " + long + "\n---\n", long},
	} {
		if got, err := FrontmatterDescription([]byte(tc.in)); err != nil || got != tc.want {
			t.Errorf("FrontmatterDescription(%.60q) = %q, %v, want %q", tc.in, got, err, tc.want)
		}
	}
	for _, in := range []string{
		"", "---", "---\n", "---\ndescription: x\n", "name: x\n---\ndescription: y\n---\n", "---\n---\n", "---\nname: x\n---\n",
		"---\ndescription:\n---\n", "---\ndescription: '  '\n---\n", "---\ndescription: 5\n---\n", "---\ndescription: [a]\n---\n",
		"---\nx: &a y\ndescription: *a\n---\n", "---\n- description\n---\n", "---\ndescription: \"\n---\n", "---\n\tdescription: x\n---\n",
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
		{"---\ndescription: |\n  old\n  words\n\n# next\nname: x\n---\n", "new", "---\ndescription: \"new\"\n# next\nname: x\n---\n"},
		{"---\r\nname: x\r\ndescription: old\r\n---\r\nbody", "new", "---\r\nname: x\r\ndescription: \"new\"\r\n---\r\nbody"},
		{"---\ndescription: \"a\n\n  b\"\n---\n", "\u202enew\n\xff", "---\ndescription: \"\\u202enew\\n\ufffd\"\n---\n"},
	} {
		got, err := SetFrontmatterDescription([]byte(tc.in), tc.description)
		if err != nil || string(got) != tc.want {
			t.Errorf("SetFrontmatterDescription(%q, %q) = %q, %v, want %q", tc.in, tc.description, got, err, tc.want)
		}
	}
	for _, in := range []string{"", "---\nname: x\n---\n", "---\n{name: x, description: y}\n---\n", "---\n{description: y,\nname: x}\n---\n"} {
		if got, err := SetFrontmatterDescription([]byte(in), "new"); !errors.Is(err, errkind.Invalid) {
			t.Errorf("SetFrontmatterDescription(%q) = %q, %v, want an Invalid error", in, got, err)
		}
	}
	for _, description := range []string{"", " \n", strings.Repeat("x", 1025)} {
		_, err := SetFrontmatterDescription([]byte("---\ndescription: x\n---\n"), description)
		if _, ok := errors.AsType[*errkind.Argument](err); !ok {
			t.Errorf("SetFrontmatterDescription(x, %.10q): error %v, want an Argument", description, err)
		}
	}
}
