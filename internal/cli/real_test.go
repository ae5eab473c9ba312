package cli_test

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// TestRealFessScripts runs the acceptance tests that a live server can show
// against a real Fess server, which contains searchtest.Corpus. .ci/real-fess starts
// one and sets
//
//	KNOWHOW_REAL_FESS        its URL
//	KNOWHOW_REAL_FESS_SETUP  plain; content, where it sends texts and labels; or down, without its engine
//	KNOWHOW_PROGRAM          the built program; this package's own if unset
//
// The folder of the scripts is named after the setup. They have FESS_URL and
// PROGRAM, and besides the usual commands
//
//	checktext LABEL/PATH N   the answers in stdout contain the document's text in N chunks
func TestRealFessScripts(t *testing.T) {
	base := os.Getenv("KNOWHOW_REAL_FESS")
	if base == "" {
		t.Skip("KNOWHOW_REAL_FESS is not set; run .ci/real-fess")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "../../.ci/real.d/acceptance/" + os.Getenv("KNOWHOW_REAL_FESS_SETUP"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("FESS_URL", base)
			env.Setenv("PROGRAM", cmp.Or(os.Getenv("KNOWHOW_PROGRAM"), "knowhow"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"checktext": checkText},
	})
}

// checkText checks that the answers in stdout contain a document's text in so many
// chunks.
func checkText(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: checktext LABEL/PATH N")
	}
	docs := searchtest.Corpus()
	i := slices.IndexFunc(docs, func(d document.Document) bool { return d.Label+"/"+d.Path == args[0] })
	if i < 0 {
		ts.Fatalf("the corpus has no %s", args[0])
	}
	var text strings.Builder
	chunks := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var m struct {
			Result struct {
				Contents []struct{ Text string }
			}
		}
		ts.Check(json.Unmarshal([]byte(line), &m))
		for _, c := range m.Result.Contents {
			text.WriteString(c.Text)
			chunks++
		}
	}
	if text.String() != docs[i].Text {
		ts.Fatalf("the chunks make up %q, want %q", text.String(), docs[i].Text)
	}
	if strconv.Itoa(chunks) != args[1] {
		ts.Fatalf("%d chunks, want %s", chunks, args[1])
	}
}
