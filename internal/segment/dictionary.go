package segment

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
	"sync/atomic"
	"unicode/utf8"
)

// A dictionary has sorted terms in blocks of 16, each with the prefix that it
// shares with the one before left out. The index has an entry for each block:
// its offset and the offsets of the data of its first term.
type dictionary struct {
	data, index []byte
	n           int
	most        int                      // chunks of a term, or documents of a word, at most
	heads       atomic.Pointer[[]uint64] // of the first term of each block; nil until they are needed
	signatures  atomic.Pointer[[]uint32] // of all terms; likewise
}

const (
	termsInBlock = 16
	indexEntry   = 4 + 4 + 8 + 8 // offset of the block, number of sets, offsets of postings and positions before it
)

// An entry describes a term of a dictionary.
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
	w.name, w.entry = w.name[:0], entry{number: block*termsInBlock - 1, post: int(le.Uint64(e[8:])),
		pos: int(le.Uint64(e[16:]))}
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

// head returns the first eight bytes of a term as a number. Terms with different
// heads are in the order of these.
func head[T string | []byte](term T) uint64 {
	var b [8]byte
	copy(b[:], term)
	return binary.BigEndian.Uint64(b[:])
}

// headsOfBlocks returns the heads of the first terms of all blocks. The first
// call makes them.
func (d *dictionary) headsOfBlocks() []uint64 {
	if all := d.heads.Load(); all != nil {
		return *all
	}
	all := make([]uint64, d.blocks())
	for i := range all {
		all[i] = head(d.first(i))
	}
	d.heads.Store(&all)
	return all
}

// blockOf returns the last block whose first term is not greater than key, or 0
// if there is none.
func (d *dictionary) blockOf(key []byte) int {
	heads, h := d.headsOfBlocks(), head(key)
	lo, hi := 0, len(heads)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); heads[m] < h {
			lo = m + 1
		} else {
			hi = m
		}
	}
	same := 0 // blocks with the head of key
	for same < len(heads)-lo && heads[lo+same] == h {
		same++
	}
	same = sort.Search(same, func(i int) bool { return string(d.first(lo+i)) > string(key) })
	return max(lo+same-1, 0)
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
	w.enter(w.d.blockOf(key))
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
	if d.n == 0 {
		return e, false
	}
	block := d.blockOf([]byte(term))
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

// cjk is the first character of the scripts with thousands of characters.
const cjk = 0x2e80

// near calls f with the terms at a distance of at most edits from word, in
// order, until f returns false. The distance counts inserted, deleted and
// replaced characters and swapped neighbours. Terms with a character of a script
// with thousands of characters are only found if word has one, too.
//
// Most terms differ from word in more letters than edits permit, which their
// signatures show.
func (d *dictionary) near(word string, edits int, f func(w *walker, distance int) bool) {
	a := alignment{word: []rune(word), edits: edits}
	wide := slices.ContainsFunc(a.word, isWide)
	want := signatureOf(a.word)
	w := d.walk()
	for i, have := range *d.signed() {
		different := (want ^ have) & letters
		if bits.OnesCount32(different) > 2*edits {
			continue // most terms
		}
		if bits.OnesCount32(different&want) > edits || bits.OnesCount32(different&have) > edits ||
			abs(int(want>>letterBits)-int(have>>letterBits)) > edits {
			continue
		}
		w.at(i)
		a.term = appendRunes(a.term[:0], w.name)
		if !wide && slices.ContainsFunc(a.term, isWide) {
			continue
		}
		if n := a.distance(); n <= edits && !f(w, n) {
			return
		}
	}
}

func abs(n int) int { return max(n, -n) }

func isWide(r rune) bool { return r >= cjk }

func appendRunes(to []rune, term []byte) []rune {
	for len(term) > 0 {
		r, n := utf8.DecodeRune(term)
		to, term = append(to, r), term[n:]
	}
	return to
}

// A signature is the set of the letters of a term, each of which stands for all
// characters with the same remainder, and above it the number of characters, at
// most maxSigned. An edit adds a letter, removes one, or does both, and changes
// the number by at most one.
const (
	letterBits = 26
	letters    = 1<<letterBits - 1
	maxSigned  = 1<<(32-letterBits) - 1
)

func signatureOf(term []rune) (signature uint32) {
	for _, r := range term {
		signature |= 1 << (uint32(r) % letterBits)
	}
	return signature | uint32(min(len(term), maxSigned))<<letterBits
}

// signed returns the signatures of all terms. The first call makes them, which
// reads the whole dictionary.
func (d *dictionary) signed() *[]uint32 {
	if all := d.signatures.Load(); all != nil {
		return all
	}
	all := make([]uint32, 0, d.n)
	var term []rune
	for w := d.walk(); w.next(); {
		term = appendRunes(term[:0], w.name)
		all = append(all, signatureOf(term))
	}
	d.signatures.Store(&all)
	return &all
}

// at goes to term number i, which is the current one or a later one.
func (w *walker) at(i int) {
	block := i / termsInBlock
	if !w.ok || block != w.block {
		w.enter(block)
	}
	for last := min(termsInBlock, w.d.n-block*termsInBlock) - 1; last-w.left < i%termsInBlock; {
		w.next()
	}
}

// An alignment computes distances to a word.
type alignment struct {
	word, term []rune
	edits      int
	rows       [3][]int // of the distances of the beginning of term to those of word
}

// distance returns the distance of term to word, or a greater number than edits
// if it is greater.
func (a *alignment) distance() int {
	before, row, next := a.rows[0], a.rows[1], a.rows[2]
	if len(row) == 0 {
		before, row, next = make([]int, len(a.word)+1), make([]int, len(a.word)+1), make([]int, len(a.word)+1)
	}
	for i := range row {
		row[i] = i
	}
	for j, r := range a.term {
		next[0] = j + 1
		least := next[0]
		for i, x := range a.word {
			cost := 1
			if x == r {
				cost = 0
			}
			next[i+1] = min(row[i]+cost, row[i+1]+1, next[i]+1)
			if i > 0 && j > 0 && x == a.term[j-1] && a.word[i-1] == r {
				next[i+1] = min(next[i+1], before[i-1]+1)
			}
			least = min(least, next[i+1])
		}
		before, row, next = row, next, before
		if least > a.edits {
			break
		}
	}
	a.rows = [3][]int{before, row, next}
	return max(row[len(a.word)], slices.Min(row))
}
