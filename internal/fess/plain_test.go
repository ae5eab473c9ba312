package fess

import (
	"regexp"
	"strings"
	"testing"
)

// tag is what counts as a tag, said in another way.
var tag = regexp.MustCompile(`(?i)</?(a|b|br|code|dd|div|dl|dt|em|font|h[1-6]|hr|i|img|li|mark|ol|p|pre|small|span|strong|sub|sup|` +
	`table|tbody|td|th|thead|tr|u|ul)(\s[^<>]*)?/?>`)

var tagged = []string{
	"", "a < b", "<", "</", "<b", "<b>", "</b>", "<b/>", "<b />", "<b / >", "<b/ >", "< b>", "</ b>", "<//b>", "<B CLASS='x'>y</B>", "<h1><h6><h7><h0>", "<strong>x</strong>y",
	"<strongx>", "<strong<b>>", "<p\nid=1>x<p\v>", "<p x<b>", "map<string, T>", "<a href='/>'>", "<<b>>", "<b>>", "<u\xff>", "<ul\u00a0>", "<table", "<li\x0c>", "<small/", "x<em>",
}

func TestUntag(t *testing.T) {
	for _, s := range tagged {
		if got, want := untag(s), tag.ReplaceAllString(s, ""); got != want {
			t.Errorf("untag(%q) = %q, want %q", s, got, want)
		}
	}
}

func FuzzUntag(f *testing.F) {
	for _, s := range tagged {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsAny(s, "\u017f\u212a") {
			return // to package regexp they are an s and a k
		}
		if got, want := untag(s), tag.ReplaceAllString(s, ""); got != want {
			t.Errorf("untag(%q) = %q, want %q", s, got, want)
		}
	})
}
