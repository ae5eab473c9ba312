package site

import (
	"bytes"
	"hash/fnv"
	"math/bits"
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits and rules of finding what the pages of a site repeat.
const (
	minPages    = 4      // on which a part must be, besides more than half of them
	minWords    = 4      // of a part: short headings such as "Examples" are repeated, too
	maxSample   = 200    // pages that are compared
	maxElements = 20_000 // of a page
)

// parts are the elements that are left out if many pages have them with the same text.
var parts = map[atom.Atom]bool{atom.Div: true, atom.Section: true, atom.Nav: true, atom.Header: true, atom.Footer: true,
	atom.Aside: true, atom.Ul: true, atom.Ol: true, atom.Table: true, atom.Form: true, atom.P: true, atom.Dialog: true}

// A part is an element of a page.
type part struct {
	start, end int    // in the bytes of the page, with the tags
	text       uint64 // hash of its words
	words      int
}

// pageParts returns the parts of a page in the order of their ends, and the number of
// words of the page.
//
// The hash of a range of words is computed from those of two beginnings of the page,
// so that the cost does not depend on how deeply elements are nested.
func pageParts(data []byte) (list []part, words int) {
	type open struct {
		tag           atom.Atom
		start, before int
	}
	var stack []open
	counts := map[atom.Atom]int{}
	sums := []uint64{0} // by the number of words before
	powers := []uint64{1}
	var hidden atom.Atom
	closeTop := func(end int) {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		counts[top.tag]--
		n := len(sums) - 1 - top.before
		if n >= minWords && len(list) < maxElements {
			sum := addMod(sums[len(sums)-1], modulus-mulMod(sums[top.before], powers[n]))
			list = append(list, part{top.start, end, sum, n})
		}
	}
	z := html.NewTokenizer(bytes.NewReader(data))
	z.SetMaxBuf(maxToken)
	at := 0
	for {
		kind := z.Next()
		start := at
		at += len(z.Raw())
		switch kind {
		case html.ErrorToken:
			for len(stack) > 0 {
				closeTop(start)
			}
			return list, len(sums) - 1
		case html.TextToken:
			if hidden != 0 {
				continue
			}
			for _, word := range bytes.Fields(z.Text()) {
				h := fnv.New64a()
				h.Write(bytes.ToLower(word))
				sums = append(sums, addMod(mulMod(sums[len(sums)-1], hashBase), h.Sum64()%modulus))
				powers = append(powers, mulMod(powers[len(powers)-1], hashBase))
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			tag := atom.Lookup(name)
			if isHidden(tag) {
				hidden = tag
			}
			if !parts[tag] {
				continue
			}
			if n := len(stack); n > 0 && stack[n-1].tag == atom.P { // its end tag may be omitted
				closeTop(start)
			}
			stack = append(stack, open{tag, start, len(sums) - 1})
			counts[tag]++
		case html.EndTagToken:
			name, _ := z.TagName()
			tag := atom.Lookup(name)
			if tag == hidden {
				hidden = 0
			}
			if !parts[tag] || counts[tag] == 0 {
				continue
			}
			for stack[len(stack)-1].tag != tag {
				closeTop(start)
			}
			closeTop(at)
		}
	}
}

// The hash of words is a polynomial modulo a prime.
const (
	modulus  = 1<<61 - 1
	hashBase = 0x1d3a5b7c9e2f4061
)

func addMod(a, b uint64) uint64 {
	if a += b; a >= modulus {
		a -= modulus
	}
	return a
}

func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return addMod(lo&modulus, (hi<<3|lo>>61)%modulus)
}

// repeated returns the hashes, in order, of the parts that are on at least minPages
// and on more than half of the pages. yield is called with each page.
func repeated(pages func(yield func(data []byte) bool)) []uint64 {
	counts := map[uint64]int{}
	n := 0
	for data := range pages {
		n++
		list, _ := pageParts(data)
		seen := map[uint64]bool{}
		for _, p := range list {
			if !seen[p.text] {
				seen[p.text] = true
				counts[p.text]++
			}
		}
	}
	var out []uint64
	for text, count := range counts {
		if count >= minPages && 2*count > n {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

// cut returns a page without the parts with these hashes. A page without anything
// else is returned unchanged: loss is worse than boilerplate.
func cut(data []byte, hashes map[uint64]bool) []byte {
	if len(hashes) == 0 {
		return data
	}
	list, words := pageParts(data)
	var out []part // those that are cut, none inside another
	cutWords := 0
	for _, p := range list {
		if !hashes[p.text] {
			continue
		}
		for n := len(out); n > 0 && out[n-1].start >= p.start; n-- { // inside p
			cutWords -= out[n-1].words
			out = out[:n-1]
		}
		out = append(out, p)
		cutWords += p.words
	}
	if len(out) == 0 || cutWords >= words {
		return data
	}
	var b bytes.Buffer
	last := 0
	for _, p := range out {
		b.Write(data[last:p.start])
		b.WriteByte(' ')
		last = p.end
	}
	b.Write(data[last:])
	return b.Bytes()
}
