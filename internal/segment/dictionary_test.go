package segment

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// dictionaryOf returns a dictionary of sorted words. The number of chunks of a
// word is its place among them plus one.
func dictionaryOf(words []string) *dictionary {
	var data, index bytes.Buffer
	w := dictionaryWriter{data: &data, index: &index}
	for i, word := range words {
		w.add([]byte(word), i+1, i%3 == 0, i%300, i%5)
	}
	return &dictionary{data: data.Bytes(), index: index.Bytes(), n: w.n, most: w.n}
}

// madeUpWords returns n different words, sorted: many of few letters, so that
// they are near to each other, and with letters of one to four bytes.
func madeUpWords(rnd *rand.Rand, n int) []string {
	letters := []rune("abcdäéж検索語𝄞")
	words := map[string]bool{}
	for len(words) < n {
		var b strings.Builder
		for range rnd.IntN(7) {
			b.WriteRune(letters[rnd.IntN(4+rnd.IntN(len(letters)-3))])
		}
		words[b.String()] = true
	}
	out := make([]string, 0, n)
	for w := range words {
		out = append(out, w)
	}
	slices.Sort(out)
	return out
}

func TestDictionary(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 15, 16, 17, 1000} {
		words := madeUpWords(rnd, n)
		d := dictionaryOf(words)
		if !d.plausible() {
			t.Fatalf("%d words: the dictionary is not plausible", n)
		}
		var want []entry
		set, post, pos := 0, 0, 0
		for i := range words {
			e := entry{number: i, df: i + 1, set: -1, post: post, postSize: i % 300, pos: pos, posSize: i % 5}
			if i%3 == 0 {
				e.set = set
				set++
			}
			post, pos = post+e.postSize, pos+e.posSize
			want = append(want, e)
		}
		w := d.walk()
		for i, word := range words {
			if e, ok := d.find(word); !ok || e != want[i] {
				t.Errorf("find(%q) = %+v, %v, want %+v", word, e, ok, want[i])
			}
			if !w.next() || string(w.name) != word || w.entry != want[i] {
				t.Errorf("term %d is %q %+v, want %q %+v", i, w.name, w.entry, word, want[i])
			}
		}
		for range 3 {
			if w.next() {
				t.Errorf("%d words: next returned true at the end", n)
			}
		}
		for _, word := range append(madeUpWords(rnd, 300), "zzz", "", "\xff", "a\x00") {
			at, found := slices.BinarySearch(words, word)
			if _, ok := d.find(word); ok != found {
				t.Errorf("find(%q) = %v, want %v", word, ok, found)
			}
			if ok := w.seek([]byte(word)); ok != (at < len(words)) || ok &&
				(string(w.name) != words[at] || w.entry != want[at]) {
				t.Errorf("seek(%q) = %v, at %q", word, ok, w.name)
			}
			// The terms under a prefix, and the first one after them.
			from := w.seek([]byte(word))
			end := at
			for ; end < len(words) && strings.HasPrefix(words[end], word); end++ {
				if !from || !w.under([]byte(word)) || string(w.name) != words[end] {
					t.Fatalf("term %q is missing under %q", words[end], word)
				}
				from = w.next()
			}
			if w.under([]byte(word)) {
				t.Errorf("%q is not under %q", w.name, word)
			}
		}
	}
}

// distance is the optimal string alignment distance: the number of inserted,
// deleted and replaced characters and swapped neighbours.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		for j := range d[i] {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
				continue
			case x[i-1] == y[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}

func hasCJK(s string) bool { return strings.ContainsFunc(s, func(r rune) bool { return r >= cjk }) }

func TestNear(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	words := madeUpWords(rnd, 700)
	d := dictionaryOf(words)
	asked := append(madeUpWords(rnd, 30), "", "abab", "検索語", "ab検", "検ab", "aabbccdd", "not near to any", "\xff")
	for range 30 {
		asked = append(asked, words[rnd.IntN(len(words))])
	}
	for _, word := range asked {
		for edits := range 4 {
			got, want := map[string]int{}, map[string]int{}
			d.near(word, edits, func(w *walker, distance int) bool {
				if _, ok := got[string(w.name)]; ok {
					t.Errorf("near(%q, %d) finds %q twice", word, edits, w.name)
				}
				got[string(w.name)] = distance
				return true
			})
			for _, w := range words {
				if n := distance(word, w); n <= edits && (hasCJK(word) || !hasCJK(w)) {
					want[w] = n
				}
			}
			for w, n := range want {
				if m, ok := got[w]; !ok || m != n {
					t.Errorf("near(%q, %d): the distance of %q is %d (found: %v), want %d", word, edits, w, m, ok, n)
				}
			}
			if len(got) != len(want) {
				t.Errorf("near(%q, %d) finds %d words, want %d", word, edits, len(got), len(want))
			}
			n := 0
			d.near(word, edits, func(*walker, int) bool { n++; return n < 3 })
			if n > 3 {
				t.Errorf("near(%q, %d) does not stop", word, edits)
			}
		}
	}
}

func TestWords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	vocabulary := madeUpWords(rnd, 400)
	var docs []testDoc
	gone := map[int64]bool{}
	for i := range 300 {
		d := testDoc{row: int64(i * i), words: map[string]bool{}}
		for range rnd.IntN(12) {
			d.words[vocabulary[rnd.IntN(len(vocabulary))]] = rnd.IntN(3) == 0
		}
		gone[d.row] = rnd.IntN(4) == 0
		docs = append(docs, d)
	}
	for _, n := range []int{1, 3, 40} {
		t.Run(fmt.Sprintf("%d segments", n), func(t *testing.T) {
			c, _, _ := collect(t, split(docs, n), gone)
			count := map[string]int{}
			for _, d := range docs {
				for w := range d.words {
					count[w]++
				}
			}
			for _, prefix := range append(madeUpWords(rnd, 20), "", "zz") {
				var got, want []Word
				err := c.WordsWith(t.Context(), prefix, func(w Word) bool { got = append(got, w); return true })
				for _, w := range vocabulary {
					if count[w] > 0 && strings.HasPrefix(w, prefix) {
						want = append(want, Word{w, count[w]})
					}
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("WordsWith(%q): %v (%v), want %v", prefix, got, err, want)
				}
				calls := 0
				err = c.WordsWith(t.Context(), prefix, func(Word) bool { calls++; return calls < 2 })
				if err != nil || calls != min(2, len(want)) {
					t.Errorf("WordsWith(%q) calls f %d times (%v)", prefix, calls, err)
				}
				for edits := range 3 {
					got, err := c.WordsNear(t.Context(), prefix, edits, 10)
					want = nil
					for _, w := range vocabulary {
						if count[w] > 0 && distance(prefix, w) <= edits && (hasCJK(prefix) || !hasCJK(w)) {
							want = append(want, Word{w, count[w]})
						}
					}
					slices.SortFunc(want, func(a, b Word) int {
						return cmp.Or(cmp.Compare(distance(prefix, a.Text), distance(prefix, b.Text)),
							cmp.Compare(b.Docs, a.Docs), cmp.Compare(a.Text, b.Text))
					})
					if want = want[:min(10, len(want))]; err != nil || !slices.Equal(got, want) {
						t.Errorf("WordsNear(%q, %d) = %v (%v), want %v", prefix, edits, got, err, want)
					}
				}
			}
			for _, word := range append(slices.Clone(vocabulary), "absent") {
				for _, title := range []bool{false, true} {
					found, err := c.WordDocs(word, title)
					if err != nil {
						t.Fatal(err)
					}
					got, err := c.RowsOf(found)
					var want []int64
					for _, d := range docs {
						if inTitle, ok := d.words[word]; ok && (inTitle || !title) && !gone[d.row] {
							want = append(want, d.row)
						}
					}
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("WordDocs(%q, %v): %v (%v), want %v", word, title, got, err, want)
					}
				}
			}
		})
	}
}
