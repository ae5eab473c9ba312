package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// maxWord is the default of max_input_chars_per_word, in characters.
const maxWord = 100

// Options are the settings of a WordPiece tokenizer that has no tokenizer.json.
// They are keys of tokenizer_config.json.
type Options struct {
	KeepCase     bool  // do_lower_case is false
	KeepCJK      bool  // tokenize_chinese_chars is false
	StripAccents *bool // strip_accents; nil means only if the text becomes lower case
}

// ReadVocabulary returns the WordPiece tokenizer of a BERT model with a
// vocabulary of one token a line. The strings of the tokenizer refer to vocab.
func ReadVocabulary(vocab string, o Options) (*Tokenizer, error) {
	tokens := make(map[string]int32, strings.Count(vocab, "\n")+1)
	id := int32(0)
	for line := range strings.Lines(vocab) {
		tokens[strings.TrimRight(line, "\r\n")] = id
		id++
	}
	n := normalizer{clean: true, cjk: !o.KeepCJK, lower: !o.KeepCase, stripAccents: !o.KeepCase}
	if o.StripAccents != nil {
		n.stripAccents = *o.StripAccents
	}
	unknown, ok := tokens["[UNK]"]
	cls, hasCLS := tokens["[CLS]"]
	sep, hasSEP := tokens["[SEP]"]
	if !ok || !hasCLS || !hasSEP {
		return nil, fmt.Errorf("reading the vocabulary: it has no [UNK], [CLS] and [SEP]: %w", errkind.Corrupt)
	}
	t := &Tokenizer{vocab: tokens, unknown: unknown, model: newWordPiece(tokens, "##", unknown, maxWord),
		prepare: n.apply, words: bertWords, before: []int32{cls}, after: []int32{sep}}
	for _, s := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		if id, ok := tokens[s]; ok {
			t.specials = append(t.specials, special{s, id})
		}
	}
	t.english = sync.OnceValue(t.isEnglish)
	return t, nil
}

// A file has the members of a tokenizer.json that this package reads.
type file struct {
	Added []struct {
		ID      int32  `json:"id"`
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer   *component      `json:"normalizer"`
	PreTokenizer *component      `json:"pre_tokenizer"`
	Processor    json.RawMessage `json:"post_processor"`
	Model        struct {
		Type      string          `json:"type"`
		Unknown   string          `json:"unk_token"`
		UnknownID *int32          `json:"unk_id"`
		Prefix    *string         `json:"continuing_subword_prefix"`
		MaxWord   int             `json:"max_input_chars_per_word"`
		Vocab     json.RawMessage `json:"vocab"`
	} `json:"model"`
}

// A component is a normalizer or a pre-tokenizer.
type component struct {
	Type string `json:"type"`

	// Of a Sequence.
	Normalizers   []*component `json:"normalizers"`
	PreTokenizers []*component `json:"pretokenizers"`

	// Of a BertNormalizer.
	Clean        *bool `json:"clean_text"`
	CJK          *bool `json:"handle_chinese_chars"`
	StripAccents *bool `json:"strip_accents"`
	Lower        *bool `json:"lowercase"`

	// Of Replace.
	Pattern struct {
		String *string `json:"String"`
		Regex  string  `json:"Regex"`
	} `json:"pattern"`
	Content string `json:"content"`

	// Of Precompiled, in base64.
	Charsmap string `json:"precompiled_charsmap"`

	// Of Metaspace.
	Replacement   string `json:"replacement"`
	PrependScheme string `json:"prepend_scheme"`
	AddPrefix     *bool  `json:"add_prefix_space"`
}

// Read returns the tokenizer of a tokenizer.json. Truncation and padding that the
// file contains are ignored.
func Read(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("reading tokenizer.json: %v: %w", err, errkind.Corrupt)
	}
	t := &Tokenizer{unknown: -1}
	var err error
	if t.prepare, err = f.Normalizer.prepare(0); err != nil {
		return nil, err
	}
	switch f.Model.Type {
	case "WordPiece", "": // older files of WordPiece models name no type
		err = f.wordPiece(t)
	case "Unigram":
		err = f.unigram(t)
	default:
		err = unsupported("the model %.50q", f.Model.Type)
	}
	if err != nil {
		return nil, err
	}
	for _, a := range f.Added {
		if a.ID < 0 || a.ID > maxTokens || a.Content == "" {
			return nil, fmt.Errorf("reading tokenizer.json: an added token has the number %d: %w", a.ID,
				errkind.Corrupt)
		}
		if len(t.specials) < maxSpecials {
			t.specials = append(t.specials, special{a.Content, a.ID})
		}
	}
	t.before, t.after = f.around(t)
	t.english = sync.OnceValue(t.isEnglish)
	return t, nil
}

const (
	maxTokens   = 1 << 22 // the highest token number
	maxSpecials = 1000    // special tokens that are read; others are plain text
	maxDepth    = 3       // nesting of components
	maxSteps    = 100     // components of a sequence
	maxGrowth   = 1 << 14 // how much one component makes a part of a text longer, in bytes
)

// wordPiece reads a WordPiece model.
func (f *file) wordPiece(t *Tokenizer) error {
	if err := json.Unmarshal(f.Model.Vocab, &t.vocab); err != nil {
		return fmt.Errorf("reading the vocabulary of tokenizer.json: %v: %w", err, errkind.Corrupt)
	}
	for _, id := range t.vocab {
		if id < 0 || id > maxTokens {
			return fmt.Errorf("reading the vocabulary of tokenizer.json: a token has the number %d: %w", id,
				errkind.Corrupt)
		}
	}
	id, ok := t.vocab[f.Model.Unknown]
	if !ok {
		return fmt.Errorf("reading tokenizer.json: the unknown token is not in the vocabulary: %w", errkind.Corrupt)
	}
	t.unknown = id
	prefix, limit := "##", maxWord
	if f.Model.Prefix != nil {
		prefix = *f.Model.Prefix
	}
	if f.Model.MaxWord > 0 {
		limit = min(f.Model.MaxWord, 1000)
	}
	t.model = newWordPiece(t.vocab, prefix, id, limit)
	t.words = bertWords
	if p := f.PreTokenizer; p == nil || p.Type != "BertPreTokenizer" {
		return unsupported("WordPiece without the BertPreTokenizer")
	}
	return nil
}

// prepare returns the function of a normalizer. It is the identity if there is
// none.
func (c *component) prepare(depth int) (func(string) string, error) {
	if c == nil {
		return func(s string) string { return s }, nil
	}
	is := func(b *bool, otherwise bool) bool {
		if b == nil {
			return otherwise
		}
		return *b
	}
	switch c.Type {
	case "BertNormalizer":
		lower := is(c.Lower, true)
		return normalizer{clean: is(c.Clean, true), cjk: is(c.CJK, true), lower: lower,
			stripAccents: is(c.StripAccents, lower)}.apply, nil
	case "Lowercase":
		return strings.ToLower, nil
	case "Strip":
		return strings.TrimSpace, nil
	case "Precompiled":
		return precompiled(c.Charsmap)
	case "Replace":
		if (c.Pattern.Regex == `\s+` || c.Pattern.Regex == " {2,}") && c.Content == " " {
			return func(s string) string { return s }, nil // words are split at any white space
		}
		if c.Pattern.String == nil || *c.Pattern.String == "" {
			return nil, unsupported("replacing by a regular expression")
		}
		from, to := *c.Pattern.String, c.Content
		limit := -1
		if grows := len(to) - len(from); grows > 0 {
			limit = maxGrowth / grows
		}
		return func(s string) string { return strings.Replace(s, from, to, limit) }, nil
	case "Sequence":
		if depth >= maxDepth || len(c.Normalizers) > maxSteps {
			return nil, unsupported("a normalizer of this size")
		}
		var steps []func(string) string
		for _, n := range c.Normalizers {
			step, err := n.prepare(depth + 1)
			if err != nil {
				return nil, err
			}
			steps = append(steps, step)
		}
		return func(s string) string {
			for _, step := range steps {
				s = step(s)
			}
			return s
		}, nil
	}
	return nil, unsupported("the normalizer %.50q", c.Type)
}

// around returns the tokens before and after each text. A file without a
// post-processor adds none.
func (f *file) around(t *Tokenizer) (before, after []int32) {
	var p struct {
		Type   string `json:"type"`
		CLS    []any  `json:"cls"` // the token and its number
		SEP    []any  `json:"sep"`
		Single []struct {
			Special *struct {
				ID string `json:"id"`
			} `json:"SpecialToken"`
		} `json:"single"`
		Specials map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if json.Unmarshal(f.Processor, &p) != nil {
		return nil, nil
	}
	number := func(pair []any) []int32 {
		if len(pair) == 2 {
			if n, ok := pair[1].(float64); ok && n >= 0 && n <= maxTokens {
				return []int32{int32(n)}
			}
		}
		return nil
	}
	if p.Type == "BertProcessing" {
		return number(p.CLS), number(p.SEP)
	}
	list := &before
	for _, part := range p.Single {
		if part.Special == nil {
			list = &after
			continue
		}
		for _, id := range p.Specials[part.Special.ID].IDs {
			if id >= 0 && id <= maxTokens && len(*list) < maxSpecials {
				*list = append(*list, id)
			}
		}
	}
	return slices.Clip(before), slices.Clip(after)
}

// unsupported returns an error of kind Unsupported.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("reading tokenizer.json: "+format+" is not supported; use a model with a WordPiece or Unigram tokenizer: %w",
		append(args, errkind.Unsupported)...)
}
