package query_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		// Sentences, whatever characters they contain.
		{"How do I configure LDAP?", "How do I configure LDAP"},
		{"heat , flow - and more!", "heat flow and more"},
		{"is the (current) policy for Japan/Korea real?", "is the current policy for Japan Korea real"},
		{`what is "this thing" about?`, "what is this thing about"},
		{"(red green blue) yellow", "red green blue yellow"},
		{"what's the difference: GET vs. POST (HTTP)", "what's the difference GET vs POST HTTP"},
		{`why does "go build fail here`, "why does go build fail here"},
		{"how to exclude -draft from the results", "how to exclude draft from the results"},
		{"how does the --port flag of serve work", "how does the port flag of serve work"},
		{"where is C:\\Users\\me stored on disk", "where is C Users me stored on disk"},
		{"what does {braces} in [lists] mean", "what does braces in lists mean"},
		{"see http://example.com/a for the rest", "see http example.com a for the rest"},
		{"can I use && and || in bash", "can I use and in bash"},
		{"what does * mean in a glob", "what does mean in a glob"},
		{"is it te?t or not here", "is it te t or not here"},
		{"Title: how to write one", "Title how to write one"},
		{"what is the title: a word or more", "what is the title a word or more"},
		{"the TO line of an email", "the to line of an email"},
		{`is "title:policy text" a phrase here`, "is title policy text a phrase here"},
		{"full-text search, Node.js and R&D don't", "full-text search Node.js and R&D don't"},
		{"does C++ or C# or .NET fit", "does C or C# or .NET fit"},
		{"a\xffb c d e", "a b c d e"},
		{"one\u3000two three four？", "one two three four"},
		{"Is 2.4~beta2 older or newer than 2.4 in apt?", "Is 2.4 beta2 older or newer than 2.4 in apt"},
		{"what does ~/.bashrc do at login", "what does .bashrc do at login"},
		{"how to plot x^2+1 in a sheet", "how to plot x 2 1 in a sheet"},
		{"how do I delete *.log files here?", "how do I delete .log files here"},
		{"why does C* or x^2 or y~ fail", "why does C or x 2 or y fail"},
		{"red green blue yell*, black", "red green blue yell black"},
		{"予算(来年度)/経費: 出張の日当?", "予算 来年度 経費 出張の日当"},

		// Not sentences: they have an operator in capitals, a known field with a
		// value, or an operator character attached to a word or before the first one.
		{"red green OR blue yellow", "red green OR blue yellow"},
		{"(NOT red) green blue yellow", "(NOT red) green blue yellow"},
		{"title:policy travel costs in Japan?", "title:policy travel costs in Japan?"},
		{"travel costs (-title:policy) in Japan", "travel costs (-title:policy) in Japan"},
		{`where is title:"travel policy" used`, `where is title:"travel policy" used`},
		{"sort:score.desc red green blue", "sort:score.desc red green blue"},
		{"allintitle: red green blue yellow", "allintitle: red green blue yellow"},
		{"red green blue yell*", "red green blue yell*"},
		{"red green blue~ yellow", "red green blue~ yellow"},
		{`"red green" blue^2 yellow black`, `"red green" blue^2 yellow black`},
		{"(red green blue yell*) black", "(red green blue yell*) black"},
		{"red green blue roam~0.8", "red green blue roam~0.8"},
		{"red green blue~2 yellow", "red green blue~2 yellow"},
		{"-draft policy of the year", "-draft policy of the year"},
		{"(+draft policy) of the year", "(+draft policy) of the year"},

		// Fewer than four words. Punctuation at the ends of words is not an operator.
		{"設定 方法？ ", "設定 方法"},
		{"日当はいくらですか？", "日当はいくらですか"},
		{"会議はどこ?", "会議はどこ"},
		{"会議?", "会議"},
		{"予算*", "予算*"},
		{`"海外出張の日当の規程の改定"`, `"海外出張の日当の規程の改定"`},
		{"two words", "two words"},
		{"heat flow .", "heat flow"},
		{"Note: travel policy", "Note travel policy"},
		{"why ??", "why ??"},
		{"te?", "te?"},
		{"LDAP or te?t", "LDAP or te?t"},
		{`what "this"?`, `what "this"?`},
		{"a AND b?", "a AND b?"},
		{"(red green blue)", "(red green blue)"},
		{"-draft policy?", "-draft policy?"},
		{"title:policy travel?", "title:policy travel?"},
		{"pol?cy travel", "pol?cy travel"},
		{"C++ manual", "C++ manual"},
		{"allintitle: red green?", "allintitle: red green?"},
		{"src/main.go", `src\/main.go`},
		{`title:a/b c\/d`, `title:a\/b c\/d`},
		{"full-text search, Node.js", "full-text search, Node.js"},
		{"*", "*"},
		{"*:*", "*:*"},
		{"* sort:timestamp.desc", "* sort:timestamp.desc"},
		{"sort:timestamp.desc", "sort:timestamp.desc"},
	} {
		got, err := query.Read(tt.in)
		if err != nil || got.String() != tt.want || got.Relaxed() {
			t.Errorf("Read(%q) = %+v, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

// A query that cannot be parsed is replaced by its words.
func TestReadUnparsable(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"pears OR", "pears"},
		{"AND pears", "pears"},
		{`"pears`, "pears"},
		{`title:"annual report`, "title annual report"},
		{`(pears AND "apples`, "pears apples"},
		{`pears" NOT`, "pears"},
		{"--port", "port"},
		{"(pears apples", "pears apples"},
		{"pears (apples", "pears apples"},
		{"pears apples)", "pears apples"},
		{"a:b:c", "a b c"},
		{"pears^ apples", "pears apples"},
		{"OR", "or"},
		{"NOT", "not"},
		{`TO "x`, "to x"},
		{`NOT ""`, "not"},
		{`lake "-red`, "lake -red"},
		{"lake -red OR", "lake -red"},
		{"lake NOT red AND", "lake !red"},
		{"java NOT -Xmx", "java !Xmx"},
		{"lake !red (boat", "lake boat !red"},
		{strings.Repeat("- ", 5_001) + "end", "end"},
		{strings.Repeat("a", 10_001), strings.Repeat("a", 10_000)},
		{strings.Repeat("pears* OR ", 1_000) + "end", strings.TrimSpace(strings.Repeat("pears ", 1_000))},
	} {
		got, err := query.Read(tt.in)
		if err != nil || got.String() != tt.want || !got.Relaxed() {
			t.Errorf("Read(%q) = %+v, %v, want %q, relaxed", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"", " ", `"`, "!", "-", "&&", `|| "`, `""`, `" "`, "...", "—", ",", "/", "//", "()",
		"??", "!=", "😀", strings.Repeat("- ", 5_001)} {
		if got, err := query.Read(in); !errors.Is(err, errkind.Invalid) {
			t.Errorf("Read(%q) = %+v, %v, want an error of kind Invalid", in, got, err)
		}
	}
}

// excluded matches the sign before a word that is excluded.
var excluded = regexp.MustCompile(`(^| )[-!]([^ ])`)

// checkRead checks that the result of Read can be parsed, finds only documents
// of its label when it is sent to Fess, and is not changed by Read.
func checkRead(t *testing.T, q string, ds []doc) (relaxed bool) {
	t.Helper()
	r, err := query.Read(q)
	if err != nil {
		return false
	}
	if _, err := query.Parse(r.String()); err != nil {
		t.Fatalf("Read(%q) = %q, which does not parse: %v", q, r.String(), err)
	}
	if again, err := query.Read(r.String()); isPlain(r.String()) &&
		(err != nil || again.String() != r.String() || again.Relaxed()) {
		t.Fatalf("Read(%q) = %q, but Read of that = %q, %v", q, r.String(), again.String(), err)
	}
	included := excluded.ReplaceAllString(r.Plain(), "$1$2")
	if r.Plain() != q && !isPlain(included) {
		if strings.ReplaceAll(r.Plain(), `\/`, "/") != strings.ReplaceAll(q, `\/`, "/") {
			t.Fatalf("Read(%q) = %q, want words only", q, r.Plain())
		}
	}
	checkGuard(t, r.String(), ds)
	return r.Relaxed()
}

func TestReadNeverLeavesLabel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	ds := docs()
	relaxed := 0
	const n = 3000
	for range n {
		if checkRead(t, randomQuery(r), ds) {
			relaxed++
		}
	}
	if relaxed < n/100 {
		t.Errorf("%d of %d queries could not be parsed; too few to prove anything", relaxed, n)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range scraps {
		f.Add(s)
		f.Add("what does " + s + " mean here?")
	}
	f.Fuzz(func(t *testing.T, q string) {
		if len(q) <= 300 {
			checkRead(t, q, docs())
		}
	})
}

func TestPhrases(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{`where is the "quarterly forecast" in the vault`, []string{"quarterly forecast"}},
		{`what do "no space left" and "read-only file system" mean`, []string{"no space left", "read-only file system"}},
		{"was heißt „nicht gefunden“ in “plain words” here", []string{"nicht gefunden", "plain words"}},
		{"予算の「来年度の東京都」はいくらですか", []string{"来年度の東京都"}},
		{`where is the "vault" of the bank`, nil},
		{`where is the "quarterly forecast in the vault`, nil},
		{`where is the "" of the "- -" bank`, nil},
		{`"quarterly forecast"`, nil}, // a query, which requires it
		{"where is the quarterly forecast", nil},
	} {
		text, err := query.Read(tt.in)
		if err != nil {
			t.Errorf("Read(%q) = %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, text.Phrases()); diff != "" {
			t.Errorf("Read(%q).Phrases() (-want +got):\n%s", tt.in, diff)
		}
		if any, _, _ := text.Any(); tt.want != nil && !strings.Contains(any.String(), `"`+tt.want[0]+`"^30`) {
			t.Errorf("Read(%q).Any() = %q, want the phrase too", tt.in, any)
		}
	}
}

// Words beside excluded ones that cannot be parsed are words.
func TestReadExcluded(t *testing.T) {
	for in, want := range map[string]string{
		"(red zebra -blue":       "(red OR zebra) -blue",
		`"-blue red zebra apple`: "(red OR zebra OR apple) -blue",
		"red zebra NOT blue (":   "(red OR zebra) !blue",
	} {
		text, err := query.Read(in)
		any, _, ok := text.Any()
		if err != nil || !ok || text.Kind() != query.Words || !text.Relaxed() || any.String() != want {
			t.Errorf("Read(%q) = %q, %v, any of its words %q, want %q", in, text, err, any, want)
		}
	}
}

// A quoted part that is too long for a query is not preferred, and its words are found.
func TestLongPhrase(t *testing.T) {
	text, err := query.Read(`where is "` + strings.Repeat("forecast ", 1107) + `vaults" in the vault`)
	any, _, ok := text.Any()
	if err != nil || !ok || len(text.Phrases()) != 1 || any.Kind() != query.Expression || strings.Contains(any.String(), `"`) {
		t.Errorf("any of the words = %.60q of kind %v, %v, want the words", any, any.Kind(), err)
	}
}
