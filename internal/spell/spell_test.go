package spell_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/spell"
)

func TestNear(t *testing.T) {
	tools := []string{"fess_docs_search", "fess_docs_suggest", "kb_search", "kb_upload_start"}
	words := []string{"fess", "serve", "sources", "version", "maxPageSize", "id", "q", "namespace", "name"}
	long := strings.Repeat("n", 128)
	for _, tc := range []struct {
		name  string
		known []string
		n     int
		want  string
	}{
		{"fess_docs_serach", tools, 2, "fess_docs_search"},
		{"search", tools, 2, "fess_docs_search kb_search"},
		{"search", tools, 1, "fess_docs_search"},
		{"search", tools, 0, ""},
		{"search", tools, -1, ""},
		{"search", nil, 2, ""},
		{"kbSearch", tools, 2, "kb_search"},
		{"KB.search", tools, 2, "kb_search"},
		{"kb-upload-start", tools, 2, "kb_upload_start"},
		{"kb upload start", tools, 2, "kb_upload_start"},
		{"zzzzzz", tools, 2, ""},
		{"", tools, 2, ""},
		{strings.Repeat("x", 1<<20), tools, 2, ""},

		{"fses", words, 1, "fess"},    // swapped neighbours
		{"FESS", words, 1, "fess"},    // case
		{"server", words, 1, "serve"}, // one letter too many
		{"source", words, 1, "sources"},
		{"pageSize", words, 1, "maxPageSize"}, // a part of the name
		{"maxPgeSzie", words, 1, "maxPageSize"},
		{"ix", words, 1, "id"},
		{"nam", words, 2, "name namespace"}, // a missing letter is likelier than a part
		{"the_version_of_it", words, 1, "version"},
		{"", words, 1, ""},
		{"x", words, 1, ""},
		{"zz", words, 1, ""},
		{"hidden", words, 1, ""}, // that it contains "id" is no hint
		{strings.Repeat("version", 20), words, 1, ""},

		{long, []string{long + "n"}, 1, ""},
		{long[1:], []string{long}, 1, long},
	} {
		if got := strings.Join(spell.Near(tc.name, tc.known, tc.n), " "); got != tc.want {
			t.Errorf("Near(%.20q, %.20q, %d) = %q, want %q", tc.name, tc.known, tc.n, got, tc.want)
		}
	}
}

func TestList(t *testing.T) {
	for _, tc := range []struct {
		names []string
		want  string
	}{
		{nil, ``}, {[]string{"a"}, `"a"`}, {[]string{"a", "b"}, `"a" or "b"`},
		{[]string{"a", "b", "c\n"}, `"a", "b" or "c\n"`},
	} {
		if got := spell.List(tc.names); got != tc.want {
			t.Errorf("List(%q) = %s, want %s", tc.names, got, tc.want)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, tc := range []struct{ name, want string }{
		{"", `""`},
		{"a\"\n", `"a\"\n"`},
		{strings.Repeat("ä", 80), `"` + strings.Repeat("ä", 80) + `"`},
		{strings.Repeat("ä", 81), `"` + strings.Repeat("ä", 80) + `…"`},
	} {
		if got := spell.Quote(tc.name); got != tc.want {
			t.Errorf("Quote(%q) = %s, want %s", tc.name, got, tc.want)
		}
	}
}

// FuzzNear checks that a known name is near to some name, and that all results
// are known names.
func FuzzNear(f *testing.F) {
	for _, seed := range [][3]string{{"serach", "search", "index"}, {"", "", "a"}, {"\xff_", "\xff", "_"},
		{"ID", "id", "İd"}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, name, a, b string) {
		known := []string{a, b}
		for _, got := range spell.Near(name, known, 2) {
			if !slices.Contains(known, got) {
				t.Errorf("Near(%q, %q) has %q, which is not known", name, known, got)
			}
		}
		if near := spell.Near(a, known, 1); strings.Trim(a, "_-. ") != "" && len(a) <= 128 && len(near) == 0 {
			t.Errorf("Near(%q, %q) is empty, want a name", a, known)
		}
		if cut := spell.Cut(name); utf8.RuneCountInString(cut) > 81 {
			t.Errorf("Cut(%q) has %d characters, want at most 81", name, utf8.RuneCountInString(cut))
		}
	})
}
