package static

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/safetensors"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// tokens is the tokenizer.json of a small model. Its tokens have a median length
// of 2.
const tokens = `{"normalizer":{"type":"BertNormalizer","lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},
	"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[UNK]"}},{"Sequence":{"id":"A"}}],"special_tokens":{"[UNK]":{"ids":[0]}}},
	"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"aa":1,"b":2,"##c":3,"!":4}}}`

// floats returns a tensor of float32.
func floats(v []float32, shape ...int) safetensors.Tensor {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return safetensors.Tensor{Type: "F32", Shape: shape, Data: b}
}

// model returns the folder of a small model.
func model(t testing.TB, tensors map[string]safetensors.Tensor) fstest.MapFS {
	t.Helper()
	data, err := safetensors.Append(nil, nil, slices.Sorted(maps.Keys(tensors)), tensors)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"model.safetensors": {Data: data}, "tokenizer.json": {Data: []byte(tokens)},
		"config.json": {Data: []byte(`{"model_type":"model2vec","normalize":true}`)}}
}

// table is the embeddings of the five tokens.
var table = floats([]float32{9, 9, 3, 4, 0, 5, -5, 0, 1, 0}, 5, 2)

func TestVectors(t *testing.T) {
	mapped := map[string]safetensors.Tensor{"embeddings": floats([]float32{3, 4, 0, 5}, 2, 2),
		"mapping": {Type: "I32", Shape: []int{5}, Data: []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
			0}},
		"weights": {Type: "F64", Shape: []int{5}, Data: slices.Repeat([]byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 5)}}
	// The weights of tokens 2 and 3 are 2 and 0.5.
	copy(mapped["weights"].Data[16:], []byte{0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f})
	long := strings.Repeat("b ", 500) + strings.Repeat(" ", 24) + "aa" // cut after 512 times 2 characters
	r2 := float32(math.Sqrt2)
	for _, tt := range []struct {
		name    string
		tensors map[string]safetensors.Tensor
		text    string
		want    []float32
	}{
		{"one token", map[string]safetensors.Tensor{"embeddings": table}, "AA", []float32{0.6, 0.8}},
		{"pieces", map[string]safetensors.Tensor{"embeddings": table}, "bc", []float32{-1 / r2, 1 / r2}},
		{"unknown", map[string]safetensors.Tensor{"embeddings": table}, "zzz aa zzz", []float32{0.6, 0.8}},
		{"nothing", map[string]safetensors.Tensor{"embeddings": table}, "", []float32{0, 0}},
		{"only unknown", map[string]safetensors.Tensor{"embeddings": table}, "zzz", []float32{0, 0}},
		{"sentence-transformers", map[string]safetensors.Tensor{"embedding.weight": table}, "aa", []float32{0.6, 0.8}},
		{"int8", map[string]safetensors.Tensor{"embeddings": {Type: "I8", Shape: []int{5, 2},
			Data: []byte{0, 0, 3, 4, 0, 5, 251, 0, 1, 0}}}, "aa b",
			[]float32{float32(3 / math.Sqrt(90)), float32(9 / math.Sqrt(90))}},
		{"mapping and weights", mapped, "aa b bc",
			[]float32{float32(3 / math.Hypot(3, 4+10+10+2.5)), float32(26.5 / math.Hypot(3, 26.5))}},
		{"cut", map[string]safetensors.Tensor{"embeddings": table}, long, []float32{0, 1}},
		{"more than 512 tokens", map[string]safetensors.Tensor{"embeddings": table}, strings.Repeat("!", 510) + "aaaa",
			[]float32{1, 0}},
	} {
		e, err := open(model(t, tt.tensors), "m")
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Embed(t.Context(), []string{tt.text}, embed.Query)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]float32{tt.want}, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Errorf("%s: Embed(%.20q) differs (-want +got):\n%s", tt.name, tt.text, diff)
		}
		if e.Dimension() != 2 || e.MaxTokens() != 512 || !strings.HasPrefix(e.ID(), "m@") {
			t.Errorf("Dimension() = %d, MaxTokens() = %d, ID() = %s", e.Dimension(), e.MaxTokens(), e.ID())
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	mapping := func(values ...byte) safetensors.Tensor {
		var b []byte
		for _, v := range values {
			b = append(b, v, 0, 0, v&128)
		}
		return safetensors.Tensor{Type: "I32", Shape: []int{len(values)}, Data: b}
	}
	for name, tt := range map[string]struct {
		tensors map[string]safetensors.Tensor
		kind    error
	}{
		"no table":  {map[string]safetensors.Tensor{"x": table}, errkind.Corrupt},
		"no matrix": {map[string]safetensors.Tensor{"embeddings": floats([]float32{1, 2}, 2)}, errkind.Corrupt},
		"empty":     {map[string]safetensors.Tensor{"embeddings": floats(nil, 5, 0)}, errkind.Corrupt},
		"few rows": {map[string]safetensors.Tensor{"embeddings": floats([]float32{1, 2}, 2, 1)},
			errkind.Corrupt},
		"type": {map[string]safetensors.Tensor{"embeddings": mapping(1, 2)}, errkind.Corrupt},
		"integers": {map[string]safetensors.Tensor{"embeddings": {Type: "I32", Shape: []int{1, 1},
			Data: make([]byte, 4)}}, errkind.Unsupported},
		"short mapping": {map[string]safetensors.Tensor{"embeddings": table, "mapping": mapping(0, 0)},
			errkind.Corrupt},
		"mapping too large": {map[string]safetensors.Tensor{"embeddings": table, "mapping": mapping(0, 0, 0, 5, 0)},
			errkind.Corrupt},
		"negative mapping": {map[string]safetensors.Tensor{"embeddings": table, "mapping": mapping(0, 0, 0, 128, 0)},
			errkind.Corrupt},
		"type of mapping": {map[string]safetensors.Tensor{"embeddings": table, "mapping": table}, errkind.Corrupt},
		"few weights": {map[string]safetensors.Tensor{"embeddings": table, "weights": floats([]float32{1}, 1)},
			errkind.Corrupt},
	} {
		if _, err := open(model(t, tt.tensors), "m"); !errors.Is(err, tt.kind) {
			t.Errorf("%s: open() = %v, want kind %v", name, err, tt.kind)
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Open() of an empty folder = %v, want kind NotFound", err)
	}
}

// TestFolders opens a model in the layout of sentence-transformers.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "0_StaticEmbedding")
	if err := os.CopyFS(sub, model(t, map[string]safetensors.Tensor{"embedding.weight": table})); err != nil {
		t.Fatal(err)
	}
	if !Is(dir) || !Is(sub) || Is(filepath.Join(dir, "missing")) {
		t.Errorf("Is() = %v, %v, %v, want true, true, false", Is(dir), Is(sub), Is(filepath.Join(dir, "missing")))
	}
	e, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if e.Foreign("aa b") || !e.Foreign("日本語") {
		t.Error("Foreign() is not that of the tokenizer")
	}
}

// FuzzOpen checks that no file makes opening or encoding panic.
func FuzzOpen(f *testing.F) {
	files := model(f, map[string]safetensors.Tensor{"embeddings": table})
	f.Add(files["model.safetensors"].Data, []byte(tokens))
	f.Fuzz(func(t *testing.T, weights, tokens []byte) {
		e, err := open(fstest.MapFS{"model.safetensors": {Data: weights}, "tokenizer.json": {Data: tokens}}, "m")
		if err != nil {
			return
		}
		if v, err := e.Embed(t.Context(), []string{"aa bc !"}, embed.Document); err != nil ||
			len(v[0]) != e.Dimension() {
			t.Errorf("Embed() = %v, %v", v, err)
		}
	})
}
