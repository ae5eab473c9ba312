package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/query"
)

func TestFilter(t *testing.T) {
	for _, tt := range []struct {
		in       string
		words    []string
		text     string // in the query language
		question string
	}{
		{"rotate logs filetype:pdf", []string{"rotate", "logs"}, "rotate logs filetype:pdf", "rotate logs"},
		{`label:"a b" rotate lang:en logs`, []string{"rotate", "logs"}, `rotate logs label:"a b" lang:en`, "rotate logs"},
		{"How do I rotate logs (weekly)? filetype:txt", []string{"How", "do", "I", "rotate", "logs", "weekly"},
			"How do I rotate logs weekly filetype:txt", "How do I rotate logs (weekly)?"},
		{"logs (filetype:pdf OR filetype:word)", []string{"logs"}, "logs (filetype:pdf OR filetype:word)", "logs"},
		{"logs -filetype:pdf timestamp:[now-7d TO *}", []string{"logs"}, "logs -filetype:pdf timestamp:[now-7d TO *}", "logs"},
		{"LDAP timeout? host:example.org", []string{"LDAP", "timeout"}, "LDAP timeout host:example.org", "LDAP timeout?"},
		{"in C++ and Go, errors are values url:*.md", []string{"in", "C", "and", "Go", "errors", "are", "values"},
			"in C and Go errors are values url:*.md", "in C++ and Go, errors are values"},
	} {
		got, err := query.Read(tt.in)
		if err != nil || got.Kind() != query.Words || got.Filter() == nil {
			t.Errorf("Read(%q) = %+v, %v, want words and a filter", tt.in, got, err)
			continue
		}
		if diff := cmp.Diff(tt.words, got.Words()); diff != "" {
			t.Errorf("Read(%q).Words() (-want +got):\n%s", tt.in, diff)
		}
		if got.String() != tt.text || got.Question() != tt.question || got.Typed() != tt.in {
			t.Errorf("Read(%q) = %q, question %q, typed %q", tt.in, got, got.Question(), got.Typed())
		}
		if any, _, ok := got.Any(); ok && cmp.Equal(any.Conditions(), got.Conditions()) == false {
			t.Errorf("Read(%q).Any() = %q, want the same conditions", tt.in, any)
		}
	}
}

func TestFilterOthers(t *testing.T) {
	for _, in := range []string{"rotate logs", "filetype:pdf", "rotate AND logs filetype:pdf", "rotate OR logs filetype:pdf",
		"rotate title:logs", "rotate title:logs filetype:pdf", `"rotate logs" filetype:pdf`, "rotat* filetype:pdf",
		"rotate -logs filetype:pdf", "rotate +logs filetype:pdf", "rotate logs filetype:", "rotate logs NOT filetype:pdf",
		"(rotate logs filetype:pdf)", "rotate (filetype:pdf OR logs)", "rotate logs (filetype:pdf", "10:30 at the host",
		`how do I "rotate logs" filetype:pdf`, "allintitle:rotate filetype:pdf", "rotate logs sort:title"} {
		if got, err := query.Read(in); err != nil || got.Filter() != nil {
			t.Errorf("Read(%q) = %+v, %v, want no filter", in, got, err)
		}
	}
	if got := query.MustParse("rotate logs filetype:pdf"); got.Filter() != nil || got.Kind() != query.Expression {
		t.Errorf("Parse = %+v, want an expression", got)
	}
}

func TestFilterWithLabel(t *testing.T) {
	id := func(id string) string { return "their-" + id }
	for _, tt := range []struct {
		in, want string
		ok       bool
	}{
		{"rotate the logs label:a", "rotate the logs", true},
		{"rotate the logs label:b", "", false},
		{"rotate the logs (label:a OR label:b) filetype:pdf", "rotate the logs filetype:pdf", true},
		{"rotate the logs label:a filetype:pdf lang:en", "rotate the logs (filetype:pdf AND lang:en)", true},
		{"rotate the logs doc_id:7", "rotate the logs doc_id:their\\-7", true},
		{"rotate the logs filetype:pdf", "rotate the logs filetype:pdf", true},
	} {
		text, err := query.Read(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := text.WithLabel("a", id)
		if err != nil || ok != tt.ok || got.String() != tt.want {
			t.Errorf("WithLabel of %q = %q, %t, %v, want %q, %t", tt.in, got, ok, err, tt.want, tt.ok)
		}
		if ok && got.Kind() != query.Words {
			t.Errorf("WithLabel of %q = %+v, want words", tt.in, got)
		}
	}
}
