package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// vocabulary is that of a small model. The number of a token is that of its line.
var vocabulary = strings.Join([]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "able",
	"cafe", ",", "!", "日", "##本", "a", "##b", "αβ",
	"straße", "x"}, "\n") + "\n"

// read returns the tokenizer of vocabulary.
func read(t testing.TB, o Options) *Tokenizer {
	t.Helper()
	tok, err := ReadVocabulary(vocabulary, o)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestWordPiece(t *testing.T) {
	tok := read(t, Options{})
	for _, tt := range []struct {
		text string
		want []int32
	}{
		{"", nil},
		{" \t\r\n  ", nil},
		{"unaffable", []int32{5, 6, 7}},
		{"UNAFFABLE able", []int32{5, 6, 7, 8}},
		{"unknown", []int32{1}},                                       // un, but not ##known
		{"café,cafe\u0301!", []int32{9, 10, 9, 11}},                   // both forms of é
		{"日本", []int32{12, 1}},                                        // ideographs are words
		{"a\u00adb a\u200bb a\x00b", []int32{14, 15, 14, 15, 14, 15}}, // removed without a space
		{"a\u00a0a\u2028a\u3000a", []int32{14, 14, 14, 14}},
		{"a\xffb", []int32{14, 15}}, // invalid UTF-8 is removed
		{"[CLS]a[SEP] [mask]", []int32{2, 14, 3, 1, 1, 1}},
		{"ΑΒ", []int32{16}},
		{strings.Repeat("b", 100), []int32{1}},
		{"a" + strings.Repeat("b", 99), append([]int32{14}, repeat(15, 99)...)},
		{"a" + strings.Repeat("b", 100), []int32{1}},
	} {
		if got := tok.Append(nil, tt.text, 1000); !cmp.Equal(got, tt.want) {
			t.Errorf("Append(%q) = %v, want %v", tt.text, got, tt.want)
		}
	}
	if got, want := tok.Encode(nil, "able able able", 4), []int32{2, 8, 8, 3}; !cmp.Equal(got, want) {
		t.Errorf("Encode() with 4 tokens = %v, want %v", got, want)
	}
	if got, want := tok.Encode([]int32{7}, "", 100), []int32{7, 2, 3}; !cmp.Equal(got, want) {
		t.Errorf("Encode() of no text = %v, want %v", got, want)
	}
	if got := tok.Encode(nil, "able", 1); len(got) != 1 {
		t.Errorf("Encode() with 1 token = %v", got)
	}
	if tok.Size() != 19 || tok.Unknown() != 1 {
		t.Errorf("Size() = %d, Unknown() = %d, want 19 and 1", tok.Size(), tok.Unknown())
	}
	no := false
	keep := read(t, Options{KeepCase: true, KeepCJK: true, StripAccents: &no})
	if got, want := keep.Append(nil, "日本 café X x", 100), []int32{12, 13, 1, 1, 18}; !cmp.Equal(got, want) {
		t.Errorf("Append() with case, accents and CJK words = %v, want %v", got, want)
	}
}

// repeat returns n times v.
func repeat(v int32, n int) []int32 {
	var s []int32
	for range n {
		s = append(s, v)
	}
	return s
}

// wordPieceJSON is a tokenizer.json with the tokens of vocabulary.
func wordPieceJSON() string {
	var vocab []string
	for i, token := range strings.Fields(vocabulary) {
		vocab = append(vocab, fmt.Sprintf("%q:%d", token, i))
	}
	return `{"truncation":{"max_length":2},"added_tokens":[{"id":2,"content":"[CLS]"},{"id":3,"content":"[SEP]"}],
		"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
		"pre_tokenizer":{"type":"BertPreTokenizer"},
		"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]"}},{"Sequence":{"id":"A"}},{"SpecialToken":{"id":"[SEP]"}}],
			"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2]},"[SEP]":{"id":"[SEP]","ids":[3]}}},
		"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{` + strings.Join(vocab, ",") + `}}}`
}

// unigramJSON is a tokenizer.json with a Unigram model, as newer model2vec models
// have.
const unigramJSON = `{"normalizer":{"type":"Sequence","normalizers":[{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"lowercase":true},
		{"type":"Replace","pattern":{"String":"!"},"content":" ! "},{"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"Strip"}]},
	"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":false},
	"model":{"type":"Unigram","unk_id":1,"vocab":[["[PAD]",0],["[UNK]",0],["▁",-3],["▁to",-1],["k",-3],["en",-2],["▁t",-2],["oken",-2.5],["s",-1],["!",-1]]}}`

func TestRead(t *testing.T) {
	tok, err := Read([]byte(wordPieceJSON()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.Encode(nil, "Unaffable café", 100), []int32{2, 5, 6, 7, 9, 3}; !cmp.Equal(got, want) {
		t.Errorf("Encode() = %v, want %v", got, want)
	}
	tok, err = Read([]byte(unigramJSON))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want []int32
	}{
		{"tokens", []int32{6, 7, 8}}, // -2-2.5-1 and not -1-3-2-1
		{"Tokens  to!", []int32{6, 7, 8, 3, 2, 9}},
		{"token日本z", []int32{6, 7, 2, 1, 2, 1, 2, 1}},
		{"zz", []int32{2, 1}}, // one unknown token for both
	} {
		if got := tok.Append(nil, tt.text, 100); !cmp.Equal(got, tt.want) {
			t.Errorf("Unigram: Append(%q) = %v, want %v", tt.text, got, tt.want)
		}
	}
	long := strings.Repeat("s", 3*maxUnigramWord)
	if got := len(tok.Append(nil, long, len(long)+1)); got != len(long)+1 {
		t.Errorf("Unigram: a long word has %d tokens, want %d", got, len(long)+1)
	}
}

func TestReadRefuses(t *testing.T) {
	replace := func(from, to string) string {
		s := strings.Replace(wordPieceJSON(), from, to, 1)
		if s == wordPieceJSON() {
			t.Fatalf("the file does not contain %q", from)
		}
		return s
	}
	for name, tt := range map[string]struct {
		data string
		kind error
	}{
		"not JSON":    {"{", errkind.Corrupt},
		"other model": {replace(`"WordPiece"`, `"BPE"`), errkind.Unsupported},
		"normalizer":  {replace(`"BertNormalizer"`, `"Nmt"`), errkind.Unsupported},
		"no table":    {replace(`"BertNormalizer"`, `"Precompiled"`), errkind.Corrupt},
		"cut off table": {replace(`"BertNormalizer"`, `"Precompiled","precompiled_charsmap":"/////w=="`),
			errkind.Corrupt},
		"pre-tokenizer":  {replace(`"BertPreTokenizer"`, `"ByteLevel"`), errkind.Unsupported},
		"unknown token":  {replace(`"unk_token":"[UNK]"`, `"unk_token":"x y"`), errkind.Corrupt},
		"negative token": {replace(`"able":8`, `"able":-8`), errkind.Corrupt},
		"huge token":     {replace(`"able":8`, `"able":2000000000`), errkind.Corrupt},
		"added token":    {replace(`"id":2,`, `"id":-2,`), errkind.Corrupt},
		"list of words":  {replace(`"vocab":{`, `"vocab":[], "x":{`), errkind.Corrupt},
		"deep normalizer": {replace(`{"type":"BertNormalizer"`,
			strings.Repeat(`{"type":"Sequence","normalizers":[`, 20)+`{"type":"BertNormalizer"`), errkind.Corrupt},
	} {
		if _, err := Read([]byte(tt.data)); !errors.Is(err, tt.kind) {
			t.Errorf("%s: Read() = %v, want kind %v", name, err, tt.kind)
		}
	}
	if _, err := ReadVocabulary("a\nb\n", Options{}); !errors.Is(err, errkind.Corrupt) {
		t.Errorf("ReadVocabulary() = %v, want kind Corrupt", err)
	}
}

func TestForeign(t *testing.T) {
	english := vocabulary
	for i := range 30 {
		english += fmt.Sprintf("word%d\n", i)
	}
	tok, err := ReadVocabulary(english, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"": false, "?!": false, "a able cafe": false, "a unaffable 日": false, "パスワード a": true, "日本語 a": true,
		"αβ able":   false,
		"zzz qqq a": true, "пароль a": false, "пароль сменить a": true, "비밀번호": true, "able कुंजी": false,
	} {
		if got := tok.Foreign(text); got != want {
			t.Errorf("Foreign(%q) = %v, want %v", text, got, want)
		}
	}
	// A model with many tokens in other scripts knows the languages.
	for c := 'а'; c <= 'я'; c++ {
		english += string(c) + "\n##" + string(c) + "\n"
	}
	if tok, err = ReadVocabulary(english, Options{}); err != nil {
		t.Fatal(err)
	}
	if tok.Foreign("сменить пароль") || !tok.Foreign("비밀번호 변경") {
		t.Error("Foreign() does not depend on the vocabulary")
	}
}

// FuzzAppend checks that tokens are in the vocabulary, that a limit only cuts, and
// that pieces are as long as the text at most.
func FuzzAppend(f *testing.F) {
	f.Add("unaffable café [CLS]", 3)
	f.Add("日本\xff\u0301 a", 100)
	wp := read(f, Options{})
	uni, err := Read([]byte(unigramJSON))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(max(limit, 0), 1000)
		for _, tok := range []*Tokenizer{wp, uni} {
			all := tok.Append(nil, text, 1<<20)
			for _, id := range all {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("token %d, want less than %d", id, tok.Size())
				}
			}
			if got := tok.Append(nil, text, limit); !cmp.Equal(got, all[:min(len(all), limit)]) && limit > 0 {
				t.Errorf("Append(%q, %d) = %v, want the start of %v", text, limit, got, all)
			}
			tok.Foreign(text)
		}
		if n := len(wp.Append(nil, text, 1<<20)); n > 6*utf8.RuneCountInString(text) {
			t.Errorf("%d tokens for %d characters", n, utf8.RuneCountInString(text))
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(wordPieceJSON()))
	f.Add([]byte(unigramJSON))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Read(data)
		if err != nil {
			if !errors.Is(err, errkind.Corrupt) && !errors.Is(err, errkind.Unsupported) {
				t.Errorf("Read() = %v without a kind", err)
			}
			return
		}
		for _, id := range tok.Encode(nil, "Able, tokens! 日本", 50) {
			if id < 0 || int(id) >= tok.Size() {
				t.Errorf("token %d, want less than %d", id, tok.Size())
			}
		}
	})
}
