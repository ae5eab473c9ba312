package tokenizer

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A unigram model splits a word into the pieces with the highest sum of scores.
type unigram struct {
	pieces  map[string]scored
	unknown int32   // -1 if there is none: unknown characters are left out
	penalty float64 // the score of an unknown character
	longest int     // of all pieces, in bytes
}

// A scored is a piece of a unigram model.
type scored struct {
	id    int32
	score float64
}

// unknownPenalty is how far the score of an unknown character is below the lowest
// score (kUnkPenalty of SentencePiece).
const unknownPenalty = 10

// unigram reads a Unigram model.
func (f *file) unigram(t *Tokenizer) error {
	var vocab []json.RawMessage
	if err := json.Unmarshal(f.Model.Vocab, &vocab); err != nil {
		return fmt.Errorf("reading the vocabulary of tokenizer.json: %v: %w", err, errkind.Corrupt)
	}
	m := &unigram{pieces: make(map[string]scored, len(vocab)), unknown: -1}
	t.vocab = make(map[string]int32, len(vocab))
	lowest := 0.0
	for id, raw := range vocab {
		var text string
		var score float64
		if err := json.Unmarshal(raw, &[]any{&text, &score}); err != nil || math.IsNaN(score) {
			return fmt.Errorf("reading the vocabulary of tokenizer.json: token %d is not a text and a score: %w", id,
				errkind.Corrupt)
		}
		m.pieces[text] = scored{int32(id), score}
		t.vocab[text] = int32(id)
		m.longest = max(m.longest, len(text))
		lowest = min(lowest, score)
	}
	if u := f.Model.UnknownID; u != nil {
		if *u < 0 || int(*u) >= len(vocab) {
			return fmt.Errorf("reading tokenizer.json: the unknown token is not in the vocabulary: %w", errkind.Corrupt)
		}
		m.unknown, t.unknown = *u, *u
	}
	m.penalty = lowest - unknownPenalty
	t.model = m
	var err error
	t.words, err = f.PreTokenizer.split()
	return err
}

// split returns the function of the pre-tokenizer of a Unigram model.
func (c *component) split() (func(string) iter.Seq[string], error) {
	if c != nil && c.Type == "Sequence" && len(c.PreTokenizers) > 0 {
		// WhitespaceSplit before Metaspace changes nothing: pieces contain no
		// white space.
		last := c.PreTokenizers[len(c.PreTokenizers)-1]
		for _, p := range c.PreTokenizers[:len(c.PreTokenizers)-1] {
			if p == nil || p.Type != "WhitespaceSplit" && p.Type != "Whitespace" {
				return nil, unsupported("this sequence of pre-tokenizers")
			}
		}
		c = last
	}
	if c == nil || c.Type != "Metaspace" {
		return nil, unsupported("Unigram without the Metaspace pre-tokenizer")
	}
	if c.PrependScheme == "never" || c.AddPrefix != nil && !*c.AddPrefix && c.PrependScheme == "" {
		return nil, unsupported("Metaspace without a mark before words")
	}
	mark := c.Replacement
	if mark == "" {
		mark = "▁"
	}
	return func(s string) iter.Seq[string] {
		return func(yield func(string) bool) {
			for word := range strings.FieldsSeq(s) {
				if !yield(mark + word) {
					return
				}
			}
		}
	}, nil
}

// maxUnigramWord is the length at which words are cut, in bytes. The work for a
// word grows with its length times that of the longest piece.
const maxUnigramWord = 4096

func (m *unigram) appendWord(ids []int32, word string) []int32 {
	for len(word) > maxUnigramWord {
		cut := maxUnigramWord
		for !utf8.RuneStart(word[cut]) {
			cut--
		}
		ids = m.best(ids, word[:cut])
		word = word[cut:]
	}
	return m.best(ids, word)
}

// best appends the pieces of the best split of a word (Viterbi).
func (m *unigram) best(ids []int32, word string) []int32 {
	type node struct {
		score float64
		start int // of the piece that ends here
		id    int32
	}
	nodes := make([]node, len(word)+1)
	for i := range nodes {
		nodes[i].score = math.Inf(-1)
	}
	nodes[0].score = 0
	for start := 0; start < len(word); {
		_, width := utf8.DecodeRuneInString(word[start:])
		here := nodes[start].score
		single := false
		for end := start + width; ; {
			if p, ok := m.pieces[word[start:end]]; ok {
				if s := here + p.score; s > nodes[end].score {
					nodes[end] = node{s, start, p.id}
				}
				single = single || end == start+width
			}
			if end == len(word) || end-start >= m.longest {
				break
			}
			_, w := utf8.DecodeRuneInString(word[end:])
			end += w
		}
		if end := start + width; !single && here+m.penalty > nodes[end].score {
			nodes[end] = node{here + m.penalty, start, m.unknown}
		}
		start += width
	}
	first := len(ids)
	for end := len(word); end > 0; end = nodes[end].start {
		// Unknown characters that follow each other are one token.
		if id := nodes[end].id; id >= 0 && (id != m.unknown || len(ids) == first || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	for i, j := first, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids
}
