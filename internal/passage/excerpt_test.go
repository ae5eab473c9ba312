package passage

import (
	"strings"
	"testing"

	"knowhow/internal/analysis"
)

// An excerpt has the text behind a word, and the beginning of a paragraph.
func TestExcerptOf(t *testing.T) {
	filler := strings.Repeat("Nothing of interest is in this line of text.\n", 8)
	words := newWords([]Condition{{Terms: []string{"walrus"}, Weight: 3}, {Terms: []string{"treati"}, Weight: 2}})
	for name, tt := range map[string]struct{ text, want string }{
		"a term and its definition": {filler + "WALRUS\nIt is a large mammal of the north.\n" + filler,
			"WALRUS\nIt is a large mammal of the north.\n"},
		"the beginning of a text": {"What it means is said here first, at length.\nThe walrus signs.\n" + filler +
			"A walrus is near a walrus.\n" + filler, "What it means"},
		"the beginning of paragraphs": {filler + "\nThe rule is said here first, and at length.\nThe walrus signs a treaty.\n" + filler, "\nThe rule is said"},
	} {
		from, to := excerptOf(tt.text, analysis.English, words, 300)
		if got := tt.text[max(from-1, 0):to] + "\n"; len(got) > 302 || !strings.Contains(got, tt.want) {
			t.Errorf("%s: excerpt %q, want one with %q", name, got, tt.want)
		}
	}
}
