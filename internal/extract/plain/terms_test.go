package plain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKeepTerms checks that lists of short texts make no headings.
func TestKeepTerms(t *testing.T) {
	long := strings.Repeat("long ", 10)
	for _, tt := range []struct {
		name  string
		lines string // of depth and term, or a text
		want  []string
	}{
		{"options", "0 -a|" + long + long + "|0 -b|short|end 0|after", []string{"7 -a", "7 -b", "7 "}},
		{"keys", "0 x|delete|0 p|put it|end 0|after", nil},
		{"a table of contents", "0 1. First|0 2. Second|0 3. " + long, nil},
		{"keys in the text of an option", "0 -a|" + long + "|1 x|delete|1 p|put|end 1|" + long,
			[]string{"7 -a"}},
		{"options in a text", "0 -a|" + long + "|1 b|" + long + "|end 1|and|end 0|after",
			[]string{"7 -a", "8 b", "8 ", "7 "}},
		{"a list after keys", "0 x|delete|end 0|after|0 -a|" + long, []string{"7 -a"}},
		{"terms of one text", "0 -a|0 --all|" + long, []string{"7 -a, --all"}},
		{"a bullet, a number and a list that is too deep", "0 •|" + long + "|0 1.|" + long + "|2 c|" + long, nil},
	} {
		w := NewWriter(t.Context())
		for line := range strings.SplitSeq(tt.lines, "|") {
			switch depth := int(line[0] - '0'); {
			case strings.HasPrefix(line, "end "):
				w.EndTerms(int(line[4] - '0'))
			case depth <= 2 && line[1] == ' ':
				w.Term(depth, line[2:])
			default:
				w.Line(line)
			}
		}
		var x Text
		w.Finish(&x)
		x.KeepTerms()
		var got []string
		for _, h := range x.Headings {
			got = append(got, string(rune('0'+h.Level))+" "+h.Text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: headings of %q (-want +got):\n%s", tt.name, x.Body, diff)
		}
	}
}
