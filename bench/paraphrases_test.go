package bench

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed/bert"
	"github.com/knowhow-mcp/knowhow/internal/embed/minilm"
	"github.com/knowhow-mcp/knowhow/internal/index"
	kquery "github.com/knowhow-mcp/knowhow/internal/query"
	ksearch "github.com/knowhow-mcp/knowhow/internal/search"
)

// paraphraseLines are notes, one JSON array a line: a note, a short query and a
// question. The queries share hardly a word with the note.
//
//go:embed testdata/paraphrases.jsonl
var paraphraseLines []byte

// BenchmarkParaphrases reports how well queries find notes with which they share
// hardly a word, among the paragraphs of the folder docs: MRR@10 and recall@10.
func BenchmarkParaphrases(b *testing.B) {
	e := minilm.New(bert.Options{MaxTokens: 128})
	x, err := index.Open(b.Context(), index.Options{Dir: b.TempDir(), Embedder: e})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	var changes []document.Change
	add := func(name, text string) {
		id, hash := sha256.Sum256([]byte(name)), sha256.Sum256([]byte(text))
		changes = append(changes, document.Change{Put: &document.Document{
			ID: hex.EncodeToString(id[:16]), Label: "notes", Path: name, Filename: name, URL: "file:///" + name, Lang: "en",
			MIMEType: "text/plain", FileType: "txt", Hash: "sha256:" + hex.EncodeToString(hash[:]), Size: int64(len(text)),
			Text: text, Chunks: []document.Chunk{{Length: len(text)}},
		}})
	}
	var notes [][3]string
	lines := bufio.NewScanner(bytes.NewReader(paraphraseLines))
	for lines.Scan() {
		var n [3]string
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			b.Fatal(err)
		}
		add(fmt.Sprintf("note-%d", len(notes)), n[0])
		notes = append(notes, n)
	}
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		b.Fatal("no files in docs", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		for i, p := range strings.Split(string(data), "\n\n") {
			if p = strings.TrimSpace(p); len(p) >= 100 && len(p) <= 1500 && !strings.HasPrefix(p, "```") {
				add(fmt.Sprintf("%s-%d", filepath.Base(f), i), p)
			}
		}
	}
	if err := x.Apply(b.Context(), changes); err != nil {
		b.Fatal(err)
	}
	vectors := 0
	for n := -1; n != 0; vectors += n {
		if n, err = x.EmbedNext(b.Context(), e, nil, 64); err != nil {
			b.Fatal(err)
		}
	}
	for i, kind := range []string{"short", "questions"} {
		b.Run(kind, func(b *testing.B) {
			var mrr, recall float64
			for b.Loop() {
				mrr, recall = 0, 0
				for n, note := range notes {
					p, err := x.Search(b.Context(), ksearch.Query{Text: kquery.MustParse(note[1+i]), Num: 10})
					if err != nil {
						b.Fatal(err)
					}
					at := slices.IndexFunc(p.Hits, func(h ksearch.Hit) bool { return h.Filename == fmt.Sprintf("note-%d", n) })
					if at >= 0 {
						mrr += 1 / float64(at+1)
						recall++
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(mrr/float64(len(notes)), "MRR@10")
			b.ReportMetric(recall/float64(len(notes)), "recall@10")
			b.ReportMetric(float64(vectors), "passages")
		})
	}
}
