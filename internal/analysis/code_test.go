package analysis_test

import (
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/analysis"

	"github.com/google/go-cmp/cmp"
)

// beside returns the tokens of s that stand beside others.
func beside(s string) (all []string) {
	for x := range analysis.Analyze(s, analysis.English) {
		if x.Beside {
			all = append(all, x.Token)
		}
	}
	return all
}

func TestIdentifiers(t *testing.T) {
	for _, tt := range []struct {
		in    string
		want  []string // tokens beside others
		parts []string
	}{
		{"invoice", nil, nil},
		{"Invoice", nil, nil},
		{"INVOICE", nil, nil},
		{"utf8", nil, nil},
		{"InvoicePrinter", []string{"invoic", "printer"}, []string{"Invoice", "Printer"}},
		{"InvoicePrinter.printAll", []string{"invoic", "printer", "print", "all"},
			[]string{"Invoice", "Printer", "print", "All"}},
		{"parseHTTPResponse2", []string{"pars", "http", "respons"}, []string{"parse", "HTTP", "Response"}},
		{"snake_case", nil, []string{"snake", "case"}},
		{"os.path", nil, []string{"os", "path"}},
		{"v1.2.3", nil, nil},
		{"aB", nil, nil},
		{"__init__", nil, nil},
	} {
		if diff := cmp.Diff(tt.want, beside(tt.in)); diff != "" {
			t.Errorf("Analyze(%q) beside others (-want +got):\n%s", tt.in, diff)
		}
		if diff := cmp.Diff(tt.parts, analysis.Parts(tt.in)); diff != "" {
			t.Errorf("Parts(%q) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestSigns(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"well-known words, e.g. these (a/b): 50% of $5 - or #3", nil},
		{"java -Xmx", []string{"=-xmx"}},
		{"`git commit --amend`, --no-ff- and [-I] -i", []string{"=--amend", "=--no-ff", "=-I", "=-i"}},
		{"a <VirtualHost> with %02d, ${HOME} $PATH @property",
			[]string{"=<virtualhost", "=%02d", "=$path", "=@property"}},
		{"C++, C#; F# page#anchor i++x", []string{"=c++", "=c#", "=f#", "=++"}},
		{".NET (.gitignore) node.js ...and", []string{"=.net", "=.gitignore"}},
		{"std::vector a->b x != y && z ->> w", []string{"=::", "=->", "=!=", "=&&", "=->>"}},
		{"---------- -- :: ::", []string{"=--", "=::"}},
		{"é++ 漢--x", []string{"=++", "=--"}},
	} {
		if diff := cmp.Diff(tt.want, analysis.Signs(tt.in)); diff != "" {
			t.Errorf("Signs(%q) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func FuzzSigns(f *testing.F) {
	addTexts(f)
	for _, s := range []string{"--", "C++", "a#", "%", "<", "-", "é-a", "--a-", "$$_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, sign := range analysis.Signs(s) {
			for tok := range analysis.Tokens(s, analysis.English) {
				if tok.Text == sign {
					t.Fatalf("Signs(%q) has the word %q", s, sign)
				}
			}
		}
		analysis.Parts(s)
	})
}
