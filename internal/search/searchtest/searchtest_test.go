package searchtest

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func TestCorpus(t *testing.T) {
	docs := Corpus()
	if len(docs) != 40 {
		t.Errorf("Corpus() has %d documents, want 40", len(docs))
	}
	seen := map[any]string{}
	types := map[string]int{}
	for _, d := range docs {
		for _, key := range []any{d.ID, d.URL, d.Filename, d.Size, d.Modified} {
			if other, ok := seen[key]; ok {
				t.Errorf("%s and %s share %v", other, place(d), key)
			}
			seen[key] = place(d)
		}
		types[d.FileType]++
		var text strings.Builder
		for _, c := range d.Chunks {
			if c.Offset != text.Len() {
				t.Errorf("%s: a chunk begins at %d, want %d", place(d), c.Offset, text.Len())
			}
			text.WriteString(d.Text[c.Offset : c.Offset+c.Length])
		}
		if text.String() != d.Text {
			t.Errorf("chunks of %s: (-text +chunks)\n%s", place(d), cmp.Diff(d.Text, text.String()))
		}
	}
	if want := map[string]int{"txt": 34, "html": 4, "pdf": 1, "word": 1}; !cmp.Equal(types, want) {
		t.Errorf("Corpus() by file type = %v, want %v", types, want)
	}
}

// TestWordsLieApart checks that the words in the cases differ enough from all
// others, because Fess matches words of four letters and more within two edits.
func TestWordsLieApart(t *testing.T) {
	var words []string
	for _, d := range Corpus() {
		words = append(words, strings.FieldsFunc(strings.ToLower(d.Title+" "+d.Text), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})...)
	}
	for _, w := range exactWords {
		if !slices.Contains(words, w) {
			t.Errorf("no document has the word %q", w)
		}
		for _, other := range words {
			if n := edits(w, other); n > 0 && n <= 2 {
				t.Errorf("%q and %q are %d edits apart, want more than 2", w, other, n)
			}
		}
	}
}

// edits counts the letters to change, add, drop or swap with their neighbours
// that make one word of the other.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case x[i-1] == y[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], 1+rows[i-2][j-2])
			}
		}
	}
	return rows[len(x)][len(y)]
}
