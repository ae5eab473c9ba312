package query_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

func TestPlain(t *testing.T) {
	for _, s := range []string{"test", "a b", "  a\u3000b\n", "don't panic", "it’s", "C", "全文検索", "検索 設定",
		"full-text search", "R&D",
		"Node.js, Deno and go1.26.", ".NET", "C#", "snake_case", "and or not to", "50% off", "e\u0301", "設定、検索。", "1"} {
		if !isPlain(s) {
			t.Errorf("Plain(%q) = false, want true", s)
		}
	}
	for _, s := range []string{"", "  ", "\u3000", "C++", "why?", "a OR b", "a AND", "NOT a", "x TO y", `"a b"`, "a*",
		"a:b", "(a)", "-a", "a-", "a -b", "a - b",
		"a--b", "a&&b", "&&", "a && b", "a || b", "a|b", "+a", "a+b", "!a", "a!", `a\`, "a^2", "a~", "[a", "{a}", "a/b",
		"*:*", ".", "' '", "a ' b",
		"\u0301", "a\xff", "a<b", "&a", "a&", "-", strings.Repeat("a", 10_001)} {
		if isPlain(s) {
			t.Errorf("Plain(%q) = true, want false", s)
		}
	}
}

func TestWords(t *testing.T) {
	for in, want := range map[string][]string{"": {}, " a\u3000don't\n\x01c ": {"a", "don't", "c"}, "全文検索": {"全文検索"}} {
		if diff := cmp.Diff(want, query.Fields(in)); diff != "" {
			t.Errorf("Fields(%q) (-want +got):\n%s", in, diff)
		}
	}
}

func TestQuoteAndAnyOf(t *testing.T) {
	for in, want := range map[string]string{"a b": `"a b"`, ` a "b\ ` + "\n": `"a \"b\\"`, "": `""`} {
		got := query.Quote(in)
		if got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
	tests := []struct {
		in   []string
		want string
	}{
		{nil, ""},
		{[]string{"", " "}, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "don't", "a"}, "(a OR don't)"},
		{[]string{"OR", "a b", `x"`, "C++"}, `("OR" OR "a b" OR "x\"" OR "C++")`},
		{[]string{"C++"}, `("C++")`},
	}
	for _, tt := range tests {
		got := query.AnyOf(tt.in).String()
		if got != tt.want {
			t.Errorf("AnyOf(%q) = %s, want %s", tt.in, got, tt.want)
		}
		if got == "" {
			continue
		}
		if g, err := query.Guard(got); err != nil || g.Q != got || g.Extra != "" {
			t.Errorf("Guard(%s) = %v, %v, want it unchanged", got, g, err)
		}
	}
}

func TestGuard(t *testing.T) {
	tests := []struct{ in, q, extra string }{
		{"test", "test", ""},
		{" a\u3000\n b\t", "a b", ""},
		{"don't", "don't", ""},
		{"test OR", "test", ""},
		{"a && b ||", "(a && b)", ""},
		{"OR AND a NOT - + ! ", "a", ""},
		{"NOT a", "(NOT a)", ""},
		{`a\`, "a", ""},
		{`a\\`, `(a\\)`, ""},
		{`a \ OR \`, `(a \ OR)`, ""},
		{"C++", "(C++)", ""},
		{"Hello world!", "Hello world", ""},
		{`a\!`, `(a\!)`, ""},
		{`"a b"-`, `("a b")`, ""},
		{`a\"-`, `(a\"-)`, ""},
		{"why?", "(why?)", ""},
		{"(a OR b)", "(a OR b)", ""},
		{"(a) OR (b)", "((a) OR (b))", ""},
		{"a) OR (b", `(a\) OR \(b)`, ""},
		{"(a", `(\(a)`, ""},
		{"a)", `(a\))`, ""},
		{`title:(a`, `(title:\(a)`, ""},
		{`"a (b"`, `("a (b")`, ""},
		{`"a`, `("a)`, ""},
		{"a ^", "(a ^)", ""},
		{"allintitle:a b", "allintitle:a b", "*:*"},
		{" allinurl:a OR", "allinurl:a", "*:*"},
		{"a allinurl:b", "(a allinurl:b)", ""},
		{"*:*", "(*:*)", ""},
		{"a\x00OR", "a", ""},
	}
	for _, tt := range tests {
		got, err := query.Guard(tt.in)
		if want := (query.Guarded{Q: tt.q, Extra: tt.extra}); err != nil || got != want {
			t.Errorf("Guard(%q) = %q, %v, want %q", tt.in, got, err, want)
		}
	}
	for _, in := range []string{"", " \u3000", "OR", "NOT", `\`, "- + !", `&& || \ `, "!!!",
		strings.Repeat("a", 10_001)} {
		if got, err := query.Guard(in); !errors.Is(err, errkind.Invalid) {
			t.Errorf("Guard(%q) = %v, %v, want an error of kind Invalid", in, got, err)
		}
	}
}

// The queries in label_leak.json were sent to Fess 15.4.0. "leaks" is true if
// the server returned documents of other labels for the unchanged query. "sent"
// is a form for which it returned none.
func TestGuardLikeRecorded(t *testing.T) {
	data, err := os.ReadFile("testdata/label_leak.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Q, Sent string
		Leaks   bool
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	leaks := 0
	for _, r := range rows {
		if r.Leaks {
			leaks++
		}
		g, err := query.Guard(r.Q)
		if r.Sent == "" {
			if !errors.Is(err, errkind.Invalid) {
				t.Errorf("Guard(%q) = %q, %v, want an error of kind Invalid", r.Q, g, err)
			}
			continue
		}
		// Guard differs: it puts a phrase into parentheses, but not a group that
		// has them, escapes unbalanced parentheses, and removes an exclamation
		// mark at the end of a word.
		same := g.Q == r.Sent || g.Q == "("+r.Sent+")" || "("+g.Q+")" == r.Sent ||
			strings.ReplaceAll(strings.ReplaceAll(g.Q, `\(`, "("), `\)`,
				")") == strings.ReplaceAll(strings.ReplaceAll(r.Sent, `\(`, "("), `\)`, ")")
		if err != nil || !same {
			t.Errorf("Guard(%q) = %q, %v, want %q", r.Q, g.Q, err, r.Sent)
		}
	}
	if leaks < 50 {
		t.Errorf("the file has %d leaking queries, want at least 50", leaks)
	}
}

// The evaluator of these tests must reproduce what a real server does with a
// label condition after the query. Otherwise the tests below would prove
// nothing.
func TestFessMatchReproducesLeaks(t *testing.T) {
	const all, own, foreign, none, bad = "all labels", "own label only", "other labels", "nothing", "status 400"
	for q, want := range map[string]string{
		"test OR": all, "test ||": all, "test\u3000OR": all, "test\tOR": all,
		"NOT": foreign, "test NOT": foreign, "test AND NOT": foreign, "test -": none, "test !": none, "test AND": own,
		"test label:hr OR": all, `foo\`: none, `\`: none, "test OR(b)": own, `"test`: bad, "OR": bad,
		"test ) OR": all, "(test OR": all, "test) OR (b": own, "(test) OR": all,
	} {
		m, err := fessMatch(q, "", "finance")
		got := bad
		if err == nil {
			o := m(doc{" test ", "finance"})
			f := m(doc{" test ", "hr"})
			got = map[[2]bool]string{{true, true}: all, {true, false}: own, {false, true}: foreign,
				{false, false}: none}[[2]bool{o, f}]
		}
		if q == "OR" {
			// It is an error both alone and followed by the label condition.
			want = bad
		}
		if got != want {
			t.Errorf("fessMatch(%q) finds %s, want %s", q, got, want)
		}
	}
}

var strictlyPlain = regexp.MustCompile(`^[\p{L}\p{N}_]+( [\p{L}\p{N}_]+)*$`)

// checkGuard checks that the guarded query finds only documents of its label,
// and reports whether the unguarded query finds others.
func checkGuard(t *testing.T, q string, ds []doc) (leaks bool) {
	t.Helper()
	if m, err := fessMatch(q, "", "finance"); err == nil {
		leaks = foreign(m, ds, "finance") != nil
	}
	g, err := query.Guard(q)
	if err != nil {
		return leaks
	}
	again, err := query.Guard(g.Q)
	if err != nil || again != g {
		t.Fatalf("Guard(%q) = %q, but Guard of that = %q, %v", q, g, again, err)
	}
	if strictlyPlain.MatchString(q) && !regexp.MustCompile(`\b(AND|OR|NOT|TO)\b`).MatchString(q) && g.Q != q {
		t.Fatalf("Guard(%q) = %q, want a plain query unchanged", q, g.Q)
	}
	if m, err := fessMatch(g.Q, g.Extra, "finance"); err == nil {
		if d := foreign(m, ds, "finance"); d != nil {
			t.Fatalf("Guard(%q) = %q finds %v with label finance", q, g, *d)
		}
	}
	if m, err := fessMatch(g.Q, g.Extra, "finance", "docs"); err == nil {
		if d := foreign(m, ds, "finance"); d != nil {
			t.Fatalf("Guard(%q) = %q finds %v with labels finance and docs", q, g, *d)
		}
	}
	if isPlain(q) {
		checkPlain(t, q, ds)
	}
	return leaks
}

// foreign returns a document of another label that a query finds, or nil.
func foreign(m matcher, ds []doc, label string) *doc {
	for _, d := range ds {
		if d.label != label && m(d) {
			return &d
		}
	}
	return nil
}

// checkPlain checks that Lucene parses a plain query as terms joined by AND.
func checkPlain(t *testing.T, q string, ds []doc) {
	t.Helper()
	ps, err := pieces(strings.Join(query.Fields(q), " "))
	if err != nil || len(ps) != len(query.Fields(q))+1 {
		t.Fatalf("plain query %q has the tokens %v, %v; want one term for each word", q, ps, err)
	}
	for _, p := range ps[:len(ps)-1] {
		if p.name != "TERM" {
			t.Fatalf("plain query %q has the token %v, want only terms", q, p)
		}
	}
}

// checkMeaning checks that a valid query has the same meaning when guarded.
func checkMeaning(t *testing.T, q string, ds []doc) {
	t.Helper()
	q = strings.Join(query.Fields(q), " ") // white space is expected to change
	before, err := luceneParse(q, "")
	if err != nil || before == nil || strings.HasPrefix(q, "allin") || strings.HasSuffix(q, " TO") {
		return
	}
	g, err := query.Guard(q)
	if err != nil {
		t.Fatalf("Guard(%q): %v, want no error", q, err)
	}
	after, err := fessMatch(g.Q, g.Extra, "finance")
	if err != nil {
		t.Fatalf("Guard(%q) = %q is an error for Fess", q, g)
	}
	for _, d := range ds {
		if got, want := after(d), before(d) && d.label == "finance"; got != want {
			t.Fatalf("Guard(%q) = %q: match of %v = %v, want %v", q, g, d, got, want)
		}
	}
}

func TestGuardNeverLeavesLabel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ds := docs()
	leaks := 0
	const n = 3000
	for range n {
		q := randomQuery(r)
		if checkGuard(t, q, ds) {
			leaks++
		}
		checkMeaning(t, q, ds)
	}
	if leaks < n/100 {
		t.Errorf("%d of %d queries leave their label unguarded; too few to prove anything", leaks, n)
	}
}

func FuzzGuard(f *testing.F) {
	for _, s := range scraps {
		f.Add(s)
		f.Add("test " + s)
		f.Add("test OR " + s)
	}
	f.Fuzz(func(t *testing.T, q string) {
		if len(q) > 300 {
			return
		}
		ds := docs()
		checkGuard(t, strings.ToValidUTF8(q, "\uFFFD"), ds)
		checkMeaning(t, q, ds)
	})
}

// isPlain reports whether a query consists of words.
func isPlain(q string) bool {
	t, err := query.Parse(q)
	return err == nil && t.Kind() == query.Words
}
