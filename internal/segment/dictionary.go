package segment

import (
	"slices"
	"sort"
	"unicode/utf8"
)

// A dictionary has sorted terms in blocks of 16, each with the prefix that it
// shares with the one before left out. The index has an entry for each block:
// its offset and the offsets of the data of its first term.
type dictionary struct {
	data, index []byte
	n           int
	most        int // chunks of a term, or documents of a word, at most
}

const (
	termsInBlock = 16
	indexEntry   = 4 + 4 + 8 + 8 // offset of the block, number of sets, offsets of postings and positions before it
)

// An entry is what a dictionary has for a term.
type entry struct {
	number    int // of the term in the order of the dictionary
	df        int // chunks with the term; for words: documents
	set       int // number of the set of its documents, -1 if there is none
	post, pos int // offsets
	postSize  int
	posSize   int
}

func (d *dictionary) blocks() int { return len(d.index) / indexEntry }

// plausible reports whether the index has as many blocks as the terms need.
func (d *dictionary) plausible() bool {
	return len(d.index)%indexEntry == 0 && d.blocks() == (d.n+termsInBlock-1)/termsInBlock && d.n <= len(d.data)
}

// A walker goes over the terms of a dictionary in order.
type walker struct {
	d     *dictionary
	block int // that rest is a part of
	left  int // terms in rest
	rest  []byte
	sets  int // number of the next set
	steps int // calls of next

	// name and entry are those of the current term if ok is true. The bytes
	// of name change with the next call.
	name []byte
	entry
	ok bool
}

// walk returns a walker before the first term.
func (d *dictionary) walk() *walker {
	w := &walker{d: d, name: make([]byte, 0, 64)}
	w.enter(0)
	return w
}

// enter goes before the first term of a block.
func (w *walker) enter(block int) {
	w.block, w.left, w.ok = block, 0, false
	if block >= w.d.blocks() {
		return
	}
	e := w.d.index[block*indexEntry:]
	w.left = min(termsInBlock, w.d.n-block*termsInBlock)
	w.rest = w.d.data[le.Uint32(e):]
	w.sets = int(le.Uint32(e[4:]))
	w.name, w.entry = w.name[:0], entry{number: block*termsInBlock - 1, post: int(le.Uint64(e[8:])), pos: int(le.Uint64(e[16:]))}
}

// next goes to the next term. It returns false if there is none.
func (w *walker) next() bool {
	ok, last, e := w.ok, w.name, w.entry
	if w.left == 0 {
		if w.enter(w.block + 1); w.left == 0 {
			return false
		}
		if ok && (w.post != e.post+e.postSize || w.pos != e.pos+e.posSize) {
			panic(damaged("the blocks of its dictionary do not follow each other"))
		}
	}
	// Seeks may go to any block of a dictionary that is not sorted.
	if w.steps++; w.steps > 1<<22+64*w.d.n {
		panic(damaged("its dictionary is not sorted"))
	}
	w.left--
	w.number++
	shared, b := uvarint(w.rest)
	n, b := uvarint(b)
	if shared > len(w.name) {
		panic(damaged("a term shares more than the term before has"))
	}
	if ok && string(b[:n]) <= string(last[shared:]) {
		panic(damaged("its dictionary is not sorted"))
	}
	w.name = append(w.name[:shared], b[:n]...)
	df, b := uvarint(b[n:])
	if w.df, w.set = df>>1, -1; w.df < 1 || w.df > w.d.most {
		panic(damaged("a term has no postings, or more than there can be"))
	}
	if df&1 != 0 {
		w.set = w.sets
		w.sets++
	}
	w.post += w.postSize
	w.pos += w.posSize
	w.postSize, b = uvarint(b)
	w.posSize, w.rest = uvarint(b)
	w.ok = true
	return true
}

// first returns the first term of a block.
func (d *dictionary) first(block int) []byte {
	b := d.data[le.Uint32(d.index[block*indexEntry:]):]
	_, b = uvarint(b) // shared: 0
	n, b := uvarint(b)
	return b[:n]
}

// seek goes to the first term that is not less than key. It returns false if
// there is none.
func (w *walker) seek(key []byte) bool {
	if w.ok && string(w.name) <= string(key) { // it may be in the same block
		for string(w.name) < string(key) && w.left > 0 {
			w.next()
		}
		if string(w.name) >= string(key) {
			return true
		}
	}
	block := sort.Search(w.d.blocks(), func(i int) bool { return string(w.d.first(i)) > string(key) })
	w.enter(max(block-1, 0))
	for w.next() {
		if string(w.name) >= string(key) {
			return true
		}
	}
	w.ok = false
	return false
}

// find returns the entry of a term. It compares terms without building them: a
// term that shares more with the one before than key does is before key, too.
func (d *dictionary) find(term string) (e entry, ok bool) {
	block := sort.Search(d.blocks(), func(i int) bool { return string(d.first(i)) > term }) - 1
	if block < 0 {
		return e, false
	}
	index := d.index[block*indexEntry:]
	b := d.data[le.Uint32(index):]
	sets := int(le.Uint32(index[4:]))
	e.post, e.pos = int(le.Uint64(index[8:])), int(le.Uint64(index[16:]))
	same := 0 // bytes that the term before has in common with key
	for i := range min(termsInBlock, d.n-block*termsInBlock) {
		e.number = block*termsInBlock + i
		var shared, n, df int
		shared, b = uvarint(b)
		n, b = uvarint(b)
		rest := b[:n]
		df, b = uvarint(b[n:])
		e.df, e.set = df>>1, -1
		if df&1 != 0 {
			e.set = sets
			sets++
		}
		e.postSize, b = uvarint(b)
		e.posSize, b = uvarint(b)
		if shared < same {
			return entry{}, false
		}
		if shared == same {
			i := 0
			for i < len(rest) && same < len(term) && rest[i] == term[same] {
				i, same = i+1, same+1
			}
			switch {
			case i == len(rest) && same == len(term):
				if e.df < 1 || e.df > d.most {
					panic(damaged("a term has no postings, or more than there can be"))
				}
				return e, true
			case i < len(rest) && (same == len(term) || rest[i] > term[same]):
				return entry{}, false
			}
		}
		e.post += e.postSize
		e.pos += e.posSize
	}
	return entry{}, false
}

// each calls f with the entries of the terms that are in a set of numbers.
func (d *dictionary) each(terms Bits, f func(e entry) error) error {
	w := d.walk()
	for n := terms.Next(0); n >= 0; n = terms.Next(n + 1) {
		if block := n / termsInBlock; block != w.block || !w.ok {
			w.enter(block)
		}
		for w.number < n {
			if !w.next() {
				panic(damaged("its dictionary has fewer terms than it should have"))
			}
		}
		if err := f(w.entry); err != nil {
			return err
		}
	}
	return nil
}

// under reports whether the current term begins with prefix.
func (w *walker) under(prefix []byte) bool {
	return w.ok && len(w.name) >= len(prefix) && string(w.name[:len(prefix)]) == string(prefix)
}

// skip goes behind the terms that begin with prefix.
func (w *walker) skip(prefix []byte) {
	if w.under(prefix) {
		w.seek(append(slices.Clone(prefix), 0xff)) // no UTF-8 text has this byte
	}
	for w.under(prefix) && w.next() {
	}
}

// cjk is the first character of the scripts with thousands of characters.
const cjk = 0x2e80

// near calls f with the terms at a distance of at most edits from word, until f
// returns false. The distance counts inserted, deleted and replaced characters
// and swapped neighbours. Terms with a character of a script with thousands of
// characters are only found if word has one, too.
//
// It walks the sorted terms as a trie, with a row of distances for each
// character, and skips what is too far.
func (d *dictionary) near(word string, edits int, f func(w *walker, distance int) bool) {
	n := nearby{word: []rune(word), edits: edits, w: d.walk(), found: f}
	n.wide = slices.ContainsFunc(n.word, func(r rune) bool { return r >= cjk })
	row := make([]int, len(n.word)+1)
	for i := range row {
		row[i] = i
	}
	n.walk(nil, 0, nil, row)
}

// A nearby is the state of one call of near.
type nearby struct {
	word  []rune
	wide  bool // the word has a character of a script with thousands
	edits int
	w     *walker
	found func(w *walker, distance int) bool
	done  bool
}

// walk visits the terms that begin with prefix. last is the last character of
// prefix, row the distances of prefix to the beginnings of the word, and before
// the same without the last character.
func (n *nearby) walk(prefix []byte, last rune, before, row []int) {
	if n.w.seek(prefix); !n.w.under(prefix) {
		return
	}
	if len(n.w.name) == len(prefix) {
		if d := row[len(n.word)]; d <= n.edits && !n.found(n.w, d) {
			n.done = true
			return
		}
		n.w.next()
	}
	if slices.Min(row) < n.edits {
		for !n.done && n.w.under(prefix) {
			r, size := utf8.DecodeRune(n.w.name[len(prefix):])
			switch {
			case r == utf8.RuneError && size <= 1:
				n.w.next()
			case r >= cjk && !n.wide:
				n.w.skip(prefix)
			default:
				n.w.skip(n.step(prefix, r, last, before, row)) // the rest is too far
			}
		}
		return
	}
	// No edit is left: the next character is one of the word, or the first
	// of a swap.
	var letters []rune
	for i, r := range n.word {
		if row[i] <= n.edits && !slices.Contains(letters, r) {
			letters = append(letters, r)
		}
		if i > 0 && before != nil && before[i-1] < n.edits && n.word[i] == last && !slices.Contains(letters, n.word[i-1]) {
			letters = append(letters, n.word[i-1])
		}
	}
	slices.Sort(letters)
	for _, r := range letters {
		if n.done {
			return
		}
		n.step(prefix, r, last, before, row)
	}
}

// step visits the terms that begin with prefix and r, and returns the longer
// prefix.
func (n *nearby) step(prefix []byte, r, last rune, before, row []int) []byte {
	next := make([]int, len(row))
	next[0] = row[0] + 1
	least := next[0]
	for i, x := range n.word {
		cost := 1
		if x == r {
			cost = 0
		}
		next[i+1] = min(row[i]+cost, row[i+1]+1, next[i]+1)
		if i > 0 && before != nil && x == last && n.word[i-1] == r {
			next[i+1] = min(next[i+1], before[i-1]+1)
		}
		least = min(least, next[i+1])
	}
	child := utf8.AppendRune(append(make([]byte, 0, len(prefix)+8), prefix...), r)
	if least <= n.edits {
		n.walk(child, r, row, next)
	}
	return child
}
