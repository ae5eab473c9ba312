package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Fess's own index settings need its four OpenSearch plugins (analysis-fess,
// analysis-extension, configsync, minhash). With search_engine.type=cloud, Fess
// does not need configsync and reads its settings from the folders named _cloud.
// This file replaces the settings there by the ordinary ones, and in these only
// what requires a plugin. As a result, words of Chinese, Japanese and Korean are
// always indexed as pairs of characters, as they are in the fields title and
// content, and similar documents are not grouped.

// An analysis is the part of an index's settings about text analysis.
type analysis struct {
	Analyzer   map[string]*analyzer      `json:"analyzer"`
	Tokenizer  map[string]map[string]any `json:"tokenizer"`
	Filter     map[string]map[string]any `json:"filter"`
	CharFilter map[string]map[string]any `json:"char_filter,omitempty"`
}

// An analyzer describes how a text is split into words.
type analyzer struct {
	Type       string   `json:"type,omitempty"`
	Tokenizer  string   `json:"tokenizer,omitempty"`
	CharFilter []string `json:"char_filter,omitempty"`
	Filter     []string `json:"filter,omitempty"`
}

// fromPlugin matches the types and names that OpenSearch does not have without
// plugins.
var fromPlugin = regexp.MustCompile(`^(fess_|kuromoji|nori|smartcn)`)

// scripts matches runs of one script, for the words of suggestions. Hiragana is
// not included because it is mostly grammar.
const scripts = `[\p{IsHan}々〆]+|[\p{IsKatakana}ー]+|\p{IsHangul}+|[\p{L}\p{N}&&[^\p{IsHan}\p{IsHiragana}\p{IsKatakana}\p{IsHangul}]]+`

// withoutPlugins replaces what requires a plugin. For suggestions, words are
// runs of one script, and the reading of a word is its spelling.
func (a *analysis) withoutPlugins(forSuggest bool) {
	replaced := map[string][]string{} // filters to add after a tokenizer
	for name, spec := range a.Tokenizer {
		typ, _ := spec["type"].(string)
		if !fromPlugin.MatchString(typ) {
			continue
		}
		a.Tokenizer[name] = map[string]any{"type": "standard"}
		switch {
		case forSuggest:
			a.Tokenizer[name] = map[string]any{"type": "pattern", "pattern": scripts, "group": 0}
			replaced[name] = nil
		case typ == "fess_vietnamese_tokenizer":
			replaced[name] = nil
		default:
			replaced[name] = []string{"cjk_width", "cjk_bigram"}
		}
	}
	gone := map[string]bool{}
	for _, part := range []map[string]map[string]any{a.Filter, a.CharFilter} {
		for name, spec := range part {
			typ, _ := spec["type"].(string)
			if typ == "alphanum_word" { // removes long words
				part[name] = map[string]any{"type": "truncate", "length": 20}
			} else if typ == "minhash" || fromPlugin.MatchString(typ) {
				delete(part, name)
				gone[name] = true
			}
		}
	}
	drop := func(name string) bool { return gone[name] || fromPlugin.MatchString(name) }
	delete(a.Analyzer, "minhash_analyzer")
	for name, z := range a.Analyzer {
		z.CharFilter = slices.DeleteFunc(z.CharFilter, drop)
		z.Filter = slices.DeleteFunc(z.Filter, drop)
		filters, ok := replaced[z.Tokenizer]
		if ok && forSuggest && strings.HasPrefix(name, "reading_") {
			z.Tokenizer = "keyword"
		}
		z.Filter = append(slices.Clone(filters), z.Filter...)
	}
}

// prepareIndex rewrites the index settings in the classes of Fess, and copies
// the dictionaries to OpenSearch's configuration, which configsync would do.
func prepareIndex(classes, conf string) error {
	indices, suggest := filepath.Join(classes, "fess_indices"), filepath.Join(classes, "suggest_indices")
	if err := rewrite(indices, "fess.json", func(m map[string]any) error {
		settings, ok := m["settings"].(map[string]any)
		if !ok {
			return errors.New("no settings")
		}
		return editAnalysis(settings, false)
	}); err != nil {
		return err
	}
	if err := rewrite(indices, "fess/doc.json", withoutMinhash); err != nil {
		return err
	}
	if err := rewrite(suggest, "suggest_analyzer.json", func(m map[string]any) error { return editAnalysis(m, true) }); err != nil {
		return err
	}
	return copyDictionaries(filepath.Join(indices, "fess"), conf)
}

// rewrite writes an edited copy of a JSON file in dir to the folder _cloud in
// dir.
func rewrite(dir, name string, edit func(map[string]any) error) error {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if err := edit(m); err != nil {
		return fmt.Errorf("editing %s: %w", name, err)
	}
	if data, err = json.Marshal(m); err != nil {
		return err
	}
	if left := regexp.MustCompile(`"type":"(fess_|kuromoji|nori|smartcn|minhash|alphanum)[^"]*`).Find(data); left != nil {
		return fmt.Errorf("editing %s: %s still requires a plugin", name, left)
	}
	return os.WriteFile(filepath.Join(dir, "_cloud", name), data, 0o644)
}

// editAnalysis replaces what requires a plugin in m's entry "analysis".
func editAnalysis(m map[string]any, forSuggest bool) error {
	data, err := json.Marshal(m["analysis"])
	if err != nil {
		return err
	}
	var a analysis
	if err := json.Unmarshal(data, &a); err != nil {
		return err
	}
	a.withoutPlugins(forSuggest)
	m["analysis"] = a
	return nil
}

// withoutMinhash removes the fields that group similar documents from a
// mapping.
func withoutMinhash(m map[string]any) error {
	fields, _ := m["properties"].(map[string]any)
	content, ok := fields["content"].(map[string]any)
	if !ok {
		return errors.New("no field content")
	}
	delete(content, "copy_to")
	fields["content_minhash"] = map[string]any{"type": "keyword"}
	fields["content_minhash_bits"] = map[string]any{"type": "keyword", "index": false}
	return nil
}

// copyDictionaries copies the text files of a folder tree.
func copyDictionaries(from, to string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".txt" {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return write(filepath.Join(to, name), data)
	})
}
