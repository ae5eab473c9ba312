package bert

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/safetensors"
	"github.com/knowhow-mcp/knowhow/internal/embed/tokenizer"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Limits of the size of files, in bytes.
const (
	maxJSON    = 1 << 20
	maxVocab   = 64 << 20 // tokenizer.json and vocab.txt
	maxWeights = 4 << 30
)

// Open reads the model in a folder. It needs config.json, model.safetensors and
// tokenizer.json or vocab.txt; if modules.json, sentence_bert_config.json,
// 1_Pooling/config.json and config_sentence_transformers.json are missing, it
// takes the mean of all tokens, as the sentence-transformers library does.
//
// A missing folder or file is an error of kind NotFound, a damaged file one of
// kind Corrupt, and a model of another type one of kind Unsupported.
func Open(dir string, o Options) (*Encoder, error) {
	return open(os.DirFS(dir), folderName(dir), o)
}

// open reads the model in a folder with this name.
func open(files fs.FS, name string, o Options) (*Encoder, error) {
	configData, err := embed.ReadFile(files, "config.json", maxJSON)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(configData)
	if err != nil {
		return nil, err
	}
	s, err := readSettings(files)
	if err != nil {
		return nil, err
	}
	tok, err := readTokenizer(files)
	if err != nil {
		return nil, err
	}
	data, err := embed.ReadFile(files, "model.safetensors", maxWeights)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("reading model.safetensors: %w", err)
	}
	m, err := load(f.Tensors, c, false)
	if err != nil {
		return nil, err
	}
	m.pooling, m.normalize = s.pooling, s.normalize
	if err := m.setTokenizer(tok, cmp.Or(s.maxTokens, c.Positions), c); err != nil {
		return nil, err
	}
	hash := sha256.New()
	hash.Write(configData)
	fmt.Fprintln(hash, s.pooling, s.prompts)
	hash.Write(data)
	return newEncoder(m, fmt.Sprintf("%s@%x", embed.ModelName(name), hash.Sum(nil)[:6]), s.prompts, o), nil
}

// setTokenizer sets the tokenizer of the model and the maximum length of texts.
func (m *model) setTokenizer(t *tokenizer.Tokenizer, limit int, c *config) error {
	if t.Size() > c.Vocabulary {
		return fmt.Errorf("reading the model: the tokenizer has %d tokens, the model %d: %w", t.Size(), c.Vocabulary,
			errkind.Corrupt)
	}
	m.tokenizer = t
	m.maxTokens = min(limit, c.Positions, maxTokens)
	if m.maxTokens < minTokens {
		return fmt.Errorf("reading the model: it reads at most %d tokens: %w", m.maxTokens, errkind.Corrupt)
	}
	if len(t.Encode(nil, "", m.maxTokens)) == 0 {
		return unsupported("a tokenizer without [CLS] and [SEP]")
	}
	return nil
}

// maxTokens is the maximum length of a text, in tokens. The memory for its
// attention grows with the square.
const maxTokens = 4096

// readJSON decodes a file. A missing file leaves v as it is.
func readJSON(files fs.FS, name string, v any) error {
	data, err := embed.ReadFile(files, name, maxJSON)
	if errors.Is(err, errkind.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading the model: %s: %v: %w", name, err, errkind.Corrupt)
	}
	return nil
}

// readTokenizer reads tokenizer.json, or else vocab.txt.
func readTokenizer(files fs.FS) (*tokenizer.Tokenizer, error) {
	data, err := embed.ReadFile(files, "tokenizer.json", maxVocab)
	if err == nil {
		return tokenizer.Read(data)
	}
	if !errors.Is(err, errkind.NotFound) {
		return nil, err
	}
	vocab, err := embed.ReadFile(files, "vocab.txt", maxVocab)
	if err != nil {
		return nil, err
	}
	var c struct {
		Lower        *bool `json:"do_lower_case"`
		CJK          *bool `json:"tokenize_chinese_chars"`
		StripAccents *bool `json:"strip_accents"`
	}
	if err := readJSON(files, "tokenizer_config.json", &c); err != nil {
		return nil, err
	}
	return tokenizer.ReadVocabulary(string(vocab), tokenizer.Options{
		KeepCase: c.Lower != nil && !*c.Lower, KeepCJK: c.CJK != nil && !*c.CJK, StripAccents: c.StripAccents})
}

// settings are those of the files of sentence-transformers.
type settings struct {
	pooling   pooling
	normalize bool
	maxTokens int // 0 if there is no limit
	prompts   map[embed.Kind]string
}

// readSettings reads the files of sentence-transformers.
func readSettings(files fs.FS) (*settings, error) {
	s := &settings{}
	var modules []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if err := readJSON(files, "modules.json", &modules); err != nil {
		return nil, err
	}
	poolingFile := "1_Pooling/config.json"
	for _, m := range modules {
		switch typ := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; typ {
		case "Transformer":
			if m.Path != "" {
				return nil, unsupported("a transformer in a folder of its own")
			}
		case "Pooling":
			if !fs.ValidPath(m.Path) {
				return nil, fmt.Errorf("reading the model: modules.json: the path %.100q is outside the folder: %w",
					m.Path, errkind.Corrupt)
			}
			poolingFile = m.Path + "/config.json"
		case "Normalize":
			s.normalize = true
		default:
			return nil, unsupported("the module %.50q", typ)
		}
	}
	var p struct {
		CLS      bool  `json:"pooling_mode_cls_token"`
		Mean     *bool `json:"pooling_mode_mean_tokens"`
		Max      bool  `json:"pooling_mode_max_tokens"`
		MeanRoot bool  `json:"pooling_mode_mean_sqrt_len_tokens"`
		Weighted bool  `json:"pooling_mode_weightedmean_tokens"`
		Last     bool  `json:"pooling_mode_lasttoken"`
	}
	if err := readJSON(files, poolingFile, &p); err != nil {
		return nil, err
	}
	mean := p.Mean != nil && *p.Mean || p.MeanRoot
	switch {
	case p.Weighted || p.Last || mean && p.CLS || mean && p.Max || p.CLS && p.Max:
		return nil, unsupported("this pooling")
	case p.CLS:
		s.pooling = poolFirst
	case p.Max:
		s.pooling = poolMax
	}
	s.normalize = s.normalize || p.MeanRoot // whose lengths are not computed
	var sentence struct {
		MaxTokens int `json:"max_seq_length"`
	}
	if err := readJSON(files, "sentence_bert_config.json", &sentence); err != nil {
		return nil, err
	}
	s.maxTokens = max(sentence.MaxTokens, 0)
	var prompts struct {
		Prompts map[string]string `json:"prompts"`
		Default string            `json:"default_prompt_name"`
	}
	if err := readJSON(files, "config_sentence_transformers.json", &prompts); err != nil {
		return nil, err
	}
	named := prompts.Prompts
	s.prompts = map[embed.Kind]string{
		embed.Query:    cmp.Or(named["query"], named[prompts.Default]),
		embed.Document: cmp.Or(named["document"], named["passage"], named["corpus"], named[prompts.Default]),
	}
	return s, nil
}

// cachePrefix begins the names of folders in the cache of Hugging Face.
const cachePrefix = "models--"

// folderName returns the name of the model in a folder. That of a snapshot in the
// cache of Hugging Face is models--ORGANIZATION--NAME/snapshots/REVISION.
func folderName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	snapshots := filepath.Dir(dir)
	if repo, ok := strings.CutPrefix(filepath.Base(filepath.Dir(snapshots)), cachePrefix); ok &&
		filepath.Base(snapshots) == "snapshots" {
		return strings.ReplaceAll(repo, "--", "/")
	}
	return filepath.Base(dir)
}

// Find returns the folder of a model in the cache that the libraries of Hugging
// Face fill. A name without an organization is one of sentence-transformers. It
// returns "" if the model is not there.
//
// getenv returns environment variables: the cache is HF_HUB_CACHE, the folder hub
// in HF_HOME, or .cache/huggingface/hub in the home folder.
func Find(name string, getenv func(string) string) string {
	if !strings.Contains(name, "/") {
		name = "sentence-transformers/" + name
	}
	folder := cachePrefix + strings.ReplaceAll(name, "/", "--")
	if !filepath.IsLocal(folder) || strings.ContainsAny(folder, `/\`) {
		return ""
	}
	cache := getenv("HF_HUB_CACHE")
	if home := getenv("HF_HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, "hub")
	}
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		cache = filepath.Join(cmp.Or(getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "huggingface", "hub")
	}
	repo := os.DirFS(filepath.Join(cache, folder))
	revision, err := embed.ReadFile(repo, "refs/main", 1000)
	if err != nil {
		return ""
	}
	dir := filepath.Join("snapshots", strings.TrimSpace(string(revision)))
	if !filepath.IsLocal(dir) {
		return ""
	}
	if _, err := fs.Stat(repo, filepath.ToSlash(dir)+"/model.safetensors"); err != nil {
		return ""
	}
	return filepath.Join(cache, folder, dir)
}
