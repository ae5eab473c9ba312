package serving_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/document"
)

// TestReadNotes checks who sees what of a source of notes: those who may read its label or
// a collection of it see it, and in it the notes in the collections that they may read, also
// if the label is the name of a collection.
func TestReadNotes(t *testing.T) {
	t.Parallel()
	one, other := teamLabel(teamSources), teamLabel(teamSources+1)
	// What a user sees: the tools that search, the collections of the notes that are found
	// at /mcp, at /mcp/LABEL and at /fess, and those of /kb.
	type sight struct{ Tools, All, Source, Fess, KB string }
	const no = "404"
	labNotes := []document.Source{{Label: "lab", Path: "kb:" + one}}
	tests := []struct {
		notes []document.Source
		read  []string
		want  sight
	}{
		{allNotes, []string{"kb"}, sight{"kb_docs_search kb_search", "kb", "kb", "kb", "kb"}},
		{allNotes, []string{one}, sight{"kb_docs_search kb_search", one, one, one, one}},
		{allNotes, []string{"kb", one}, sight{"kb_docs_search kb_search", "kb " + one, "kb " + one, "kb " + one, "kb " + one}},
		{allNotes, []string{"lab"}, sight{"kb_docs_search kb_search", "", "", "", ""}}, // may become a collection
		{allNotes, []string{access.All}, sight{"kb_docs_search kb_search", "kb " + one + " " + other, "kb " + one + " " + other,
			"kb " + one + " " + other, "kb " + one + " " + other}},
		{labNotes, []string{"kb"}, sight{"kb_search", "", no, "", "kb"}},
		{labNotes, []string{one}, sight{"kb_search lab_search", one, one, one, one}},
		{labNotes, []string{"lab"}, sight{"kb_search lab_search", "", "", "", ""}},
		{labNotes, []string{"lab", other}, sight{"kb_search lab_search", "", "", "", other}},
		{labNotes, []string{"lab", one}, sight{"kb_search lab_search", one, one, one, one}},
		{labNotes, []string{access.All}, sight{"kb_search lab_search", one, one, one, "kb " + one + " " + other}},
	}
	for _, test := range tests {
		label := test.notes[0].Label
		t.Run(fmt.Sprint(label, test.read), func(t *testing.T) {
			t.Parallel()
			site := newTeamSite(t, func(i int) bool { return i == teamSources || i == teamSources+1 }, test.notes,
				[]access.User{accessUser(0, teamRight{test.read, nil})})
			called := file("kb", ".notes/kb", "common note", "A common note in a collection with the name kb.")
			if err := site.folder.Index.Apply(t.Context(), []document.Change{{Put: &called}}); err != nil {
				t.Fatal(err)
			}
			c := newTeamClient(site, 0)
			// in returns the collections whose notes are in an answer.
			in := func(answer string) string {
				if strings.HasPrefix(answer, no) {
					return no
				}
				var found []string
				for _, name := range []string{"kb", one, other} {
					mark := strings.TrimPrefix(name, "col")
					if name == "kb" {
						mark = "common note"
					}
					if strings.Contains(answer, mark) {
						found = append(found, name)
					}
				}
				return strings.Join(found, " ")
			}
			domain := map[string]string{"kb": "kb_docs", "lab": "lab"}[label]
			search := func(path, domain string) string {
				return in(c.tool(path, domain+"_search", map[string]any{"query": "common", "pageSize": 100}))
			}
			listed := regexp.MustCompile(`"name":"(\w+_search)"`).FindAllStringSubmatch(c.mcp("/mcp", "tools/list", map[string]any{}), -1)
			var tools []string
			for _, m := range listed {
				tools = append(tools, strings.Replace(m[1], "all_", domain+"_", 1)) // the domain of all sources is "all"
			}
			slices.Sort(tools)
			got := sight{
				Tools:  strings.Join(tools, " "),
				All:    search("/mcp", "all"),
				Source: search("/mcp/"+label, domain),
				Fess:   in(c.http("GET", "/fess/api/v1/documents?q=common&num=100", "")),
				KB:     in(c.http("GET", "/kb/api/v1/documents?limit=1000", "")),
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			labels := c.http("GET", "/fess/api/v1/labels", "")
			if has := strings.Contains(labels, `"`+label+`"`); has != (got.Source != no) {
				t.Errorf("labels = %s", labels)
			}
		})
	}
}
