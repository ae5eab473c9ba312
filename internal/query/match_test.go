package query

import "testing"

func TestGlob(t *testing.T) {
	tests := []struct {
		pattern, word string
		want          bool
	}{
		{"a*z", "abcz", true}, {"a*z", "az", true}, {"a*z", "abcy", false}, {"*b*", "abc", true}, {"?b?", "abc",
			true}, {"?b?", "ab", false},
		{"a*b*c", "aXbXbYc", true}, {"a*b*c", "aXbXbY", false}, {`a\*b`, "a*b", true}, {`a\*b`, "axb", false}, {"検*",
			"検索", true}, {"*", "", true},
		{"", "", true}, {"", "a", false}, {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false},
	}
	for _, test := range tests {
		g, err := ParseGlob(test.pattern)
		if err != nil {
			t.Fatalf("ParseGlob(%q) = %v", test.pattern, err)
		}
		if got := g.Match(test.word); got != test.want {
			t.Errorf("%q matches %q: %v, want %v", test.pattern, test.word, got, test.want)
		}
	}
}
