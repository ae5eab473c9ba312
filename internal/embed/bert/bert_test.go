package bert

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/kernel"
	"github.com/knowhow-mcp/knowhow/internal/embed/safetensors"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Files of a small model with random weights.
const (
	tinyConfig = `{"model_type":"bert","hidden_size":32,"num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":64,"hidden_act":"gelu",
		"max_position_embeddings":40,"type_vocab_size":2,"vocab_size":12,"layer_norm_eps":1e-12}`
	tinyVocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n##e\nquery\n:\n"
)

// tinyTensors returns the tensors of a small model.
func tinyTensors() map[string]safetensors.Tensor {
	rnd := rand.New(rand.NewPCG(7, 8))
	tensors := map[string]safetensors.Tensor{}
	put := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		var b []byte
		for range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(rnd.NormFloat64()/4)))
		}
		tensors[name] = safetensors.Tensor{Type: "F32", Shape: shape, Data: b}
	}
	linear := func(name string, inner, columns int) { put(name+".weight", columns, inner); put(name+".bias", columns) }
	norm := func(name string) { put(name+".weight", 32); put(name+".bias", 32) }
	put(wordEmbeddings, 12, 32)
	put("embeddings.position_embeddings.weight", 40, 32)
	put("embeddings.token_type_embeddings.weight", 2, 32)
	norm("embeddings.LayerNorm")
	for i := range 2 {
		p := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value",
			"attention.output.dense"} {
			linear(p+name, 32, 32)
		}
		linear(p+"intermediate.dense", 32, 64)
		linear(p+"output.dense", 64, 32)
		norm(p + "attention.output.LayerNorm")
		norm(p + "output.LayerNorm")
	}
	return tensors
}

// fileOf returns a safetensors file.
func fileOf(t testing.TB, tensors map[string]safetensors.Tensor) *fstest.MapFile {
	t.Helper()
	data, err := safetensors.Append(nil, nil, slices.Sorted(maps.Keys(tensors)), tensors)
	if err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: data}
}

// text returns a file.
func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// tiny returns the folder of a small model.
func tiny(t testing.TB) fstest.MapFS {
	return fstest.MapFS{"config.json": text(tinyConfig), "vocab.txt": text(tinyVocab),
		"model.safetensors": fileOf(t, tinyTensors())}
}

// vectors returns the vectors of texts.
func vectors(t *testing.T, files fs.FS, o Options, kind embed.Kind, texts ...string) [][]float32 {
	t.Helper()
	e, err := open(files, "tiny", o)
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.Embed(t.Context(), texts, kind)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSettings checks that the files of sentence-transformers have an effect, and
// the right one.
func TestSettings(t *testing.T) {
	base := vectors(t, tiny(t), Options{}, embed.Query, "a b", "query: a b", "a b c d a b c d")
	for _, tt := range []struct {
		name  string
		files fstest.MapFS
		same  bool
	}{
		{"mean", fstest.MapFS{"modules.json": text(`[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"x.Pooling"},{"path":"2_Normalize","type":"x.Normalize"}]`),
			"1_Pooling/config.json": text(`{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false}`)}, true},
		{"CLS", fstest.MapFS{"1_Pooling/config.json": text(`{"pooling_mode_cls_token":true}`)}, false},
		{"max", fstest.MapFS{"1_Pooling/config.json": text(`{"pooling_mode_max_tokens":true}`)}, false},
		{"other folder", fstest.MapFS{"modules.json": text(`[{"path":"p","type":"Pooling"}]`),
			"p/config.json": text(`{"pooling_mode_cls_token":true}`)}, false},
		{"prompts for documents", fstest.MapFS{"config_sentence_transformers.json": text(`{"prompts":{"document":"d"}}`)}, true},
	} {
		files := tiny(t)
		maps.Copy(files, tt.files)
		if got := vectors(t, files, Options{}, embed.Query, "a b", "query: a b", "a b c d a b c d"); cmp.Equal(got,
			base) != tt.same {
			t.Errorf("%s: the same vectors: %v, want %v", tt.name, !tt.same, tt.same)
		}
	}
	files := tiny(t)
	files["modules.json"] = text(`[{"path":"2_Normalize","type":"x.Normalize"}]`)
	for want, files := range map[bool]fstest.MapFS{true: files, false: tiny(t)} {
		e, err := open(files, "tiny", Options{})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := embed.Raw(t.Context(), e, []string{"a b", "a b c d a b c d a b c d"}, embed.Document)
		if err != nil {
			t.Fatal(err)
		}
		if r := embed.Norm(raw[0]) / embed.Norm(raw[1]); r < 0.6 || r > 1.6 {
			t.Errorf("the ratio of the norms of a short and a long text is %v, but the mean grows little", r)
		}
		if n := embed.Norm(raw[0]); math.Abs(n-1) < 1e-6 != want {
			t.Errorf("Raw() has the norm %v, want 1: %v", n, want)
		}
		if embed.Normalize(raw[0]); !near(raw[0], base[0]) {
			t.Errorf("Raw() = %v has another direction than %v", raw[0], base[0])
		}
	}
	files = tiny(t)
	files["config_sentence_transformers.json"] = text(`{"prompts":{"query":"query: "}}`)
	if got := vectors(t, files, Options{}, embed.Query, "a b"); !cmp.Equal(got[0], base[1]) {
		t.Error("the prompt is not put before a query")
	}
	files = tiny(t)
	files["sentence_bert_config.json"] = text(`{"max_seq_length":4}`)
	cut := vectors(t, files, Options{}, embed.Document, "a b", "a b c d a b c d")
	if !cmp.Equal(cut[0], cut[1]) || !cmp.Equal(cut[0], base[0]) {
		t.Error("texts are not cut to 4 tokens")
	}
	if got := vectors(t, tiny(t), Options{MaxTokens: 4}, embed.Document, "a b c d"); !cmp.Equal(got[0], base[0]) {
		t.Error("texts are not cut to the tokens of the option")
	}
}

// near reports whether the values of two vectors differ by less than 1e-6.
func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-6 })
}

// TestNames checks tensors with other names and types.
func TestNames(t *testing.T) {
	want := vectors(t, tiny(t), Options{}, embed.Document, "a b c")
	renamed := map[string]safetensors.Tensor{}
	for name, v := range tinyTensors() {
		name = strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias",
			"LayerNorm.beta").Replace(name)
		renamed["bert."+name] = v
	}
	files := tiny(t)
	files["model.safetensors"] = fileOf(t, renamed)
	if got := vectors(t, files, Options{}, embed.Document, "a b c"); !cmp.Equal(got, want) {
		t.Error("tensors with other names give other vectors")
	}
	short := tinyTensors()
	for name, v := range short {
		var b []byte
		for i := 2; i < len(v.Data); i += 4 {
			b = append(b, v.Data[i:i+2]...)
		}
		short[name] = safetensors.Tensor{Type: "BF16", Shape: v.Shape, Data: b}
	}
	files["model.safetensors"] = fileOf(t, short)
	if got := vectors(t, files, Options{}, embed.Document, "a b c"); distance(got[0], want[0]) > 0.02 {
		t.Errorf("tensors of type BF16 change the vectors by %v", distance(got[0], want[0]))
	}
}

// TestPack compares a packed model with the original.
func TestPack(t *testing.T) {
	files := tiny(t)
	weights := files["model.safetensors"].Data
	factors, err := Smooth(t.Context(), weights, []byte(tinyConfig), 20)
	if err != nil {
		t.Fatal(err)
	}
	data, err := Pack(weights, []byte(tinyConfig), tinyVocab, 20, factors)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := ReadPacked(data, "tiny@packed", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if packed.MaxTokens() != 20 || packed.ID() != "tiny@packed" || packed.Dimension() != 32 {
		t.Errorf("MaxTokens() = %d, ID() = %s, Dimension() = %d", packed.MaxTokens(), packed.ID(), packed.Dimension())
	}
	texts := []string{"", "a", "a b c", "d ae query"}
	got, err := packed.Embed(t.Context(), texts, embed.Document)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range vectors(t, files, Options{}, embed.Document, texts...) {
		if d := distance(got[i], want); d > 0.02 {
			t.Errorf("%q: a component is off by %v", texts[i], d)
		}
	}
	if _, err := Pack(weights, []byte(tinyConfig), tinyVocab, 20, factors[1:]); !errors.Is(err, errkind.Invalid) {
		t.Errorf("with too few factors: %v, want kind Invalid", err)
	}
	for name, bad := range map[string][]byte{"empty": nil, "another file": files["model.safetensors"].Data,
		"cut": data[:len(data)/2]} {
		if _, err := ReadPacked(bad, "x", Options{}); !errors.Is(err, errkind.Corrupt) {
			t.Errorf("%s: ReadPacked() = %v, want kind Corrupt", name, err)
		}
	}
}

// TestOpenRefuses checks the kinds of errors for folders that cannot be used.
func TestOpenRefuses(t *testing.T) {
	config := func(from, to string) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			if !strings.Contains(tinyConfig, from) {
				t.Errorf("the configuration does not contain %s", from)
			}
			f["config.json"] = text(strings.Replace(tinyConfig, from, to, 1))
		}
	}
	file := func(name, content string) func(fstest.MapFS) { return func(f fstest.MapFS) { f[name] = text(content) } }
	for name, tt := range map[string]struct {
		change func(fstest.MapFS)
		kind   error
	}{
		"no configuration": {func(f fstest.MapFS) { delete(f, "config.json") }, errkind.NotFound},
		"no weights":       {func(f fstest.MapFS) { delete(f, "model.safetensors") }, errkind.NotFound},
		"no tokenizer":     {func(f fstest.MapFS) { delete(f, "vocab.txt") }, errkind.NotFound},
		"folder": {func(f fstest.MapFS) { delete(f, "vocab.txt"); f["vocab.txt/x"] = text("") },
			errkind.Invalid},
		"large file": {func(f fstest.MapFS) { f["config.json"] = text(strings.Repeat(" ", maxJSON+1)) },
			errkind.TooLarge},
		"not JSON":    {file("config.json", "x"), errkind.Corrupt},
		"other model": {config(`"bert"`, `"mpnet"`), errkind.Unsupported},
		"activation":  {config(`"gelu"`, `"tanh"`), errkind.Unsupported},
		"relative positions": {config(`"gelu"`, `"gelu","position_embedding_type":"relative_key"`),
			errkind.Unsupported},
		"heads":            {config(`heads":2`, `heads":3`), errkind.Unsupported},
		"no heads":         {config(`heads":2`, `heads":0`), errkind.Corrupt},
		"negative size":    {config(`size":32`, `size":-32`), errkind.Corrupt},
		"huge size":        {config(`size":64`, `size":9000000000000000000`), errkind.Corrupt},
		"other size":       {config(`size":64`, `size":128`), errkind.Corrupt},
		"more layers":      {config(`layers":2`, `layers":3`), errkind.Corrupt},
		"epsilon":          {config(`1e-12`, `-1`), errkind.Corrupt},
		"small vocabulary": {file("vocab.txt", tinyVocab+"more\n"), errkind.Corrupt},
		"tokenizer":        {file("tokenizer.json", `{"model":{"type":"BPE"}}`), errkind.Unsupported},
		"pooling":          {file("1_Pooling/config.json", `{"pooling_mode_lasttoken":true}`), errkind.Unsupported},
		"two poolings": {file("1_Pooling/config.json",
			`{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true}`), errkind.Unsupported},
		"module":         {file("modules.json", `[{"path":"2_Dense","type":"x.Dense"}]`), errkind.Unsupported},
		"path":           {file("modules.json", `[{"path":"../..","type":"x.Pooling"}]`), errkind.Corrupt},
		"absolute path":  {file("modules.json", `[{"path":"/etc","type":"x.Pooling"}]`), errkind.Corrupt},
		"broken modules": {file("modules.json", `{}`), errkind.Corrupt},
		"tokens":         {file("sentence_bert_config.json", `{"max_seq_length":2}`), errkind.Corrupt},
		"weights":        {file("model.safetensors", "12345678"), errkind.Corrupt},
		"special tokens": {file("tokenizer.json", `{"normalizer":null,"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":{"type":"BertProcessing","cls":["[CLS]",4000000],"sep":["[SEP]",3]},
			"model":{"type":"WordPiece","unk_token":"a","vocab":{"a":0}}}`), errkind.Corrupt},
	} {
		files := tiny(t)
		tt.change(files)
		if _, err := open(files, "x", Options{}); !errors.Is(err, tt.kind) {
			t.Errorf("%s: open() = %v, want kind %v", name, err, tt.kind)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing"), Options{}); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Open() of a missing folder = %v, want kind NotFound", err)
	}
}

// FuzzOpen checks that no file makes opening or encoding panic.
func FuzzOpen(f *testing.F) {
	files := tiny(f)
	f.Add([]byte(tinyConfig), []byte(`[{"path":"p","type":"Pooling"}]`), []byte(`{"max_seq_length":4}`),
		files["model.safetensors"].Data[:9000])
	f.Fuzz(func(t *testing.T, config, modules, sentence, weights []byte) {
		m := maps.Clone(files)
		m["config.json"], m["modules.json"], m["sentence_bert_config.json"] = &fstest.MapFile{Data: config},
			&fstest.MapFile{Data: modules}, &fstest.MapFile{Data: sentence}
		// The header of the weights changes, and the values are complete.
		data := slices.Clone(files["model.safetensors"].Data)
		copy(data, weights)
		m["model.safetensors"] = &fstest.MapFile{Data: data}
		e, err := open(m, "x", Options{MaxTokens: 8, Threads: 1})
		if err != nil {
			return
		}
		if v, err := e.Embed(t.Context(), []string{"a b c"}, embed.Document); err != nil || len(v) != 1 ||
			len(v[0]) != e.Dimension() {
			t.Errorf("Embed() = %v, %v", v, err)
		}
	})
}

// readBuiltin returns the built-in model.
func readBuiltin(t *testing.T, o Options) (*Encoder, []byte) {
	t.Helper()
	data, err := os.ReadFile("../minilm/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	e, err := ReadPacked(data, "builtin", o)
	if err != nil {
		t.Fatal(err)
	}
	return e, data
}

// TestTokens compares the tokens of the built-in vocabulary with the reference.
func TestTokens(t *testing.T) {
	e, _ := readBuiltin(t, Options{})
	for _, tt := range readReference(t).Texts {
		if ids := e.model.tokenizer.Encode(nil, tt.Text, 256); !slices.Equal(ids, tt.IDs) {
			t.Errorf("%s: tokens are %v, want %v", tt.Name, ids, tt.IDs)
		}
	}
}

// TestFloat32 computes the weights of the built-in model in float32 and compares
// the vectors with the reference, in which the weights are not rounded.
func TestFloat32(t *testing.T) {
	if testing.Short() {
		t.Skip("the weights in float32 are large")
	}
	_, data := readBuiltin(t, Options{})
	f, err := safetensors.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	tensors := map[string]safetensors.Tensor{}
	for name, v := range f.Tensors {
		if v.Type != "I8" {
			tensors[name] = v
			continue
		}
		scale, err := f.Tensors[name+scaleSuffix].Float32()
		if err != nil {
			t.Fatal(err)
		}
		factors := f.Tensors[strings.TrimSuffix(name, ".weight")+factorsSuffix]
		if layer, _, ok := strings.Cut(name, ".query"); ok || strings.Contains(name, ".key") ||
			strings.Contains(name, ".value") {
			layer, _, _ = strings.Cut(layer, "self.")
			factors = f.Tensors[strings.TrimSuffix(layer, "self")+"self"+factorsSuffix]
		} else if strings.Contains(name, "intermediate") {
			factors = f.Tensors[strings.TrimSuffix(name, ".dense.weight")+factorsSuffix]
		}
		tensors[name] = unpacked(t, v, scale, factors)
	}
	config := text(f.Metadata["config"])
	files := fstest.MapFS{"config.json": config, "vocab.txt": &fstest.MapFile{Data: f.Tensors[vocabularyName].Data},
		"model.safetensors": fileOf(t, tensors)}
	r := readReference(t)
	r.Texts = slices.DeleteFunc(r.Texts, func(x referenceText) bool { return len(x.IDs) > 40 }) // long ones take long
	var texts []string
	for _, tt := range r.Texts {
		texts = append(texts, tt.Text)
	}
	for i, got := range vectors(t, files, Options{}, embed.Document, texts...) {
		cosine := 0.0
		for j, x := range got {
			cosine += float64(x) * float64(r.Texts[i].Embedding[j])
		}
		if cosine < 0.995 {
			t.Errorf("%s: cosine %.4f to the reference, want at least 0.995", r.Texts[i].Name, cosine)
		}
	}
}

// unpacked returns a tensor of a packed file in float32 and in the order of
// PyTorch.
func unpacked(t *testing.T, v safetensors.Tensor, scale []float32, factors safetensors.Tensor) safetensors.Tensor {
	t.Helper()
	rows, inner := len(scale), len(v.Data)/len(scale)
	factor := slices.Repeat([]float32{1}, inner)
	if factors.Data != nil {
		var err error
		if factor, err = factors.Float32(); err != nil || len(factor) != inner {
			t.Fatalf("%d factors for %d components: %v", len(factor), inner, err)
		}
	}
	var b []byte
	for r := range rows {
		for k := range inner {
			at := r*inner + k
			if len(v.Shape) == 4 {
				at = ((r/kernel.Columns*inner/4+k/4)*kernel.Columns+r%kernel.Columns)*4 + k%4
			}
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(int8(v.Data[at]))*scale[r]*factor[k]))
		}
	}
	return safetensors.Tensor{Type: "F32", Shape: []int{rows, inner}, Data: b}
}

// TestBatches checks that the vector of a text does not depend on the other texts
// and on the number of threads.
func TestBatches(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var texts []string
	for range 100 {
		texts = append(texts, strings.Repeat("a b c d query ", rnd.IntN(20))+string(rune('a'+rnd.IntN(5))))
	}
	e, err := open(tiny(t), "tiny", Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	var want [][]float32
	for _, text := range texts {
		v, err := e.Embed(t.Context(), []string{text}, embed.Document)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, v[0])
	}
	for _, threads := range []int{1, 3, 50} {
		got, err := e.With(Options{Threads: threads}).Embed(t.Context(), texts, embed.Document)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("the vectors of one call with %d threads differ from those of single calls, error %v", threads,
				err)
		}
	}
	covered := 0
	for _, r := range batches(texts) {
		if r[0] != covered || r[1] <= r[0] || r[1]-r[0] > batchTexts {
			t.Errorf("batches() has the range %v after %d texts", r, covered)
		}
		covered = r[1]
	}
	if covered != len(texts) || batches(nil) != nil {
		t.Errorf("batches() covers %d of %d texts", covered, len(texts))
	}
}

// A countdown is a context that ends after some calls of Err.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancel checks that encoding ends between layers and between texts.
func TestCancel(t *testing.T) {
	e, err := open(tiny(t), "tiny", Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for left := range 5 {
		ctx := &countdown{t.Context(), left}
		v, err := e.Embed(ctx, []string{strings.Repeat("a ", 400), strings.Repeat("b ", 400)}, embed.Document)
		if !errors.Is(err, context.Canceled) || v != nil || ctx.left != -1 {
			t.Errorf("Embed() with a context that ends after %d checks = %v, %v after %d more", left, v, err,
				-1-ctx.left)
		}
	}
	// A call that waits for a thread ends as well.
	s := <-e.slots
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := e.Embed(ctx, []string{"a"}, embed.Query)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Embed() = %v, want the error of the context", err)
	}
	e.slots <- s
}

// TestFind looks models up in a cache of Hugging Face.
func TestFind(t *testing.T) {
	home := t.TempDir()
	repo := filepath.Join(home, "hub", "models--sentence-transformers--all-MiniLM-L6-v2")
	snapshot := filepath.Join(repo, "snapshots", "abc123")
	for name, content := range map[string]string{filepath.Join(repo, "refs", "main"): "abc123\n",
		filepath.Join(snapshot, "model.safetensors"):                      "x",
		filepath.Join(home, "hub", "models--evil--model", "refs", "main"): "../../../.."} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(vars map[string]string) func(string) string {
		return func(name string) string { return vars[name] }
	}
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"all-MiniLM-L6-v2", map[string]string{"HF_HOME": home}, snapshot},
		{"sentence-transformers/all-MiniLM-L6-v2", map[string]string{"HF_HUB_CACHE": filepath.Join(home, "hub")},
			snapshot},
		{"all-MiniLM-L6-v2", map[string]string{"HF_HOME": t.TempDir()}, ""},
		{"evil/model", map[string]string{"HF_HOME": home}, ""},
		{"../x", map[string]string{"HF_HOME": home}, ""},
		{`..\x/y`, map[string]string{"HF_HOME": home}, ""},
		{"", map[string]string{"HF_HOME": home}, ""},
	} {
		if got := Find(tt.name, getenv(tt.env)); got != tt.want {
			t.Errorf("Find(%q) with %v = %q, want %q", tt.name, tt.env, got, tt.want)
		}
	}
	if got := folderName(snapshot); got != "sentence-transformers/all-MiniLM-L6-v2" {
		t.Errorf("folderName() of a snapshot = %q", got)
	}
	if got := folderName(filepath.Join(home, "bge-small")); got != "bge-small" {
		t.Errorf("folderName() = %q", got)
	}
}

// TestBackground checks that an encoder in the background waits for one that is not, for
// some time.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := open(tiny(t), "tiny", Options{})
		if err != nil {
			t.Fatal(err)
		}
		background := e.With(Options{Background: true})
		took := func(ctx context.Context, e *Encoder) (time.Duration, error) {
			begin := time.Now()
			_, err := e.Embed(ctx, []string{"a b"}, embed.Document)
			return time.Since(begin), err
		}
		for _, test := range []struct {
			query, limit time.Duration // of the query, which is being encoded, and of the context
			want         time.Duration
			err          error
		}{
			{0, time.Minute, 0, nil},
			{10 * time.Millisecond, time.Minute, 10 * time.Millisecond, nil},
			{time.Second, time.Minute, waitLimit, nil},
			{time.Second, 20 * time.Millisecond, 20 * time.Millisecond, context.DeadlineExceeded},
		} {
			if test.query > 0 {
				e.first.Add(1)
				time.AfterFunc(test.query, func() { e.first.Add(-1) })
			}
			if got, err := took(t.Context(), e.With(Options{})); got != 0 || err != nil {
				t.Errorf("Embed() of another query = %v after %v", err, got)
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.limit)
			got, err := took(ctx, background)
			cancel()
			if got < test.want || got > test.want+2*waitInterval || !errors.Is(err, test.err) {
				t.Errorf("query of %v: Embed() in the background = %v after %v, want %v after %v", test.query, err, got,
					test.err, test.want)
			}
			time.Sleep(2 * time.Second) // until the query has ended
			if n := e.first.Load(); n != 0 {
				t.Errorf("%d queries are being encoded at the end", n)
			}
		}
	})
}
