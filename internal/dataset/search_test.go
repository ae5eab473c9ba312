package dataset

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/google/go-cmp/cmp"
)

func TestSearchChecksQuery(t *testing.T) {
	root := t.TempDir()
	newSample("one").write(t, root, "one")
	r := open(t, root)
	for _, tt := range []struct {
		name  string
		q     Query
		wrong string // argument; "" if the query is valid
	}{
		{"valid", Query{Datasets: []string{"one"}, Text: "x", TopK: 1}, ""},
		{"longest", Query{Datasets: []string{"one"}, Text: strings.Repeat("語", 1024), TopK: 100}, ""},
		{"blanks around", Query{Datasets: []string{"one"}, Text: " " + strings.Repeat("x", 1024) + " "}, ""},
		{"empty", Query{Datasets: []string{"one"}}, "query"},
		{"blank", Query{Datasets: []string{"one"}, Text: " \n\u200b"}, "query"},
		{"too long", Query{Datasets: []string{"one"}, Text: strings.Repeat("x", 1025)}, "query"},
		{"topK negative", Query{Datasets: []string{"one"}, Text: "x", TopK: -1}, "topK"},
		{"topK 101", Query{Datasets: []string{"one"}, Text: "x", TopK: 101}, "topK"},
		{"no dataset", Query{Text: "x"}, "dataset"},
	} {
		_, err := r.Search(t.Context(), tt.q)
		arg, _ := errors.AsType[*errkind.Argument](err)
		if tt.wrong == "" && err != nil || tt.wrong != "" && (arg == nil || arg.Name != tt.wrong) {
			t.Errorf("%s: %v, want an error about %q", tt.name, err, tt.wrong)
		}
	}
}

func TestUnknownDataset(t *testing.T) {
	root := t.TempDir()
	for _, id := range []string{"handbook", "api-docs"} {
		newSample(id).write(t, root, id)
	}
	bad := newSample("bad")
	bad.manifest["name"] = ""
	bad.write(t, root, "bad")
	r := open(t, root)
	for id, want := range map[string]string{
		"handbok": `there is no dataset "handbok", did you mean "handbook"? Available datasets: api-docs, handbook`,
		"zzz":     `there is no dataset "zzz"; available datasets: api-docs, handbook`,
	} {
		if _, err := r.Search(t.Context(), Query{Datasets: []string{"handbook", id}, Text: "x"}); !errors.Is(err,
			errkind.NotFound) || err.Error() != want {
			t.Errorf("%s: %v, want %s", id, err, want)
		}
	}
	err := unknown("zzz", []string{"f", "b", "c", "d", "e", "a", "g"})
	if want := `there is no dataset "zzz"; available datasets: a, b, c, d, e and 2 more`; err.Error() != want {
		t.Errorf("of many: %v, want %s", err, want)
	}
	if _, err := r.Search(t.Context(), Query{Datasets: []string{"bad"}, Text: "x"}); !errors.Is(err, errkind.Corrupt) ||
		!strings.Contains(err.Error(), "name: it is empty") {
		t.Errorf("a dataset with a bad manifest: %v", err)
	}
}

// Scores are from 0 to 1, and hits have what the data model requires.
func TestHits(t *testing.T) {
	root := t.TempDir()
	s := newSample("one")
	s.metadata = map[string]any{"documents": []map[string]any{
		{"id": 7, "path": `docs\deep\file.md`, "text": "leave leave leave"},
		{"content": "leave of absence", "start_line": 3, "end_line": 4, "heading": "A > B"},
		{"id": "x", "title": " ", "content": "leave " + strings.Repeat("something else ", 500)},
		{"title": strings.Repeat("語", 300) + "\u202e", "path": strings.Repeat("p", 600),
			"content": "leave\u0000\x1b[31m now"},
		{"snippet": "the leave of a tree", "title": nil, "id": map[string]any{}},
		{"unrelated": true},
	}}
	s.write(t, root, "one")
	res, err := open(t, root).Search(t.Context(), Query{Datasets: []string{"one"}, Text: "leave", TopK: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Hits) != 5 || res.Kind != ByWords {
		t.Fatalf("%d hits of kind %s", len(res.Hits), res.Kind)
	}
	byID := map[string]Hit{}
	last := 1.0
	for _, h := range res.Hits {
		byID[h.ID] = h
		if h.Score <= 0 || h.Score > last {
			t.Errorf("score of %s = %v after %v", h.ID, h.Score, last)
		}
		last = h.Score
		for what, text := range map[string]string{"title": h.Title, "path": h.Path} {
			if n := utf8.RuneCountInString(text); n == 0 || n > map[string]int{"title": 256, "path": 512}[what] {
				t.Errorf("%s of %s has %d characters", what, h.ID, n)
			}
		}
		if n := utf8.RuneCountInString(h.Snippet); n > 2048 || !strings.Contains(h.Snippet, "leave") ||
			strings.ContainsAny(h.Snippet+h.Title, "\x00\x1b\u202e") {
			t.Errorf("snippet of %s: %q", h.ID, h.Snippet)
		}
	}
	want := map[string][2]string{
		"7":          {"file.md", `docs\deep\file.md`},
		"document-2": {"document-2", "document-2"},
		"x":          {"x", "x"},
		"document-5": {"document-5", "document-5"},
	}
	for id, w := range want {
		if got := [2]string{byID[id].Title, byID[id].Path}; got != w {
			t.Errorf("title and path of %s = %q, want %q", id, got, w)
		}
	}
	if h := byID["document-2"]; h.StartLine != 3 || h.EndLine != 4 || h.Heading != "A > B" {
		t.Errorf("got %+v", h)
	}
}

// Several datasets are searched as one: words are rare or frequent in all of
// them together.
func TestSeveralDatasets(t *testing.T) {
	root := t.TempDir()
	for id, texts := range map[string][]string{
		"one": {"alpha beta", "beta gamma", "beta"},
		"two": {"alpha alpha", "delta"},
	} {
		s := newSample(id)
		var docs []map[string]any
		for i, text := range texts {
			docs = append(docs, map[string]any{"id": id + string(rune('0'+i)), "content": text})
		}
		s.metadata = docs
		s.write(t, root, id)
	}
	r := open(t, root)
	res, err := r.Search(t.Context(), Query{Datasets: []string{"one", "two", "one"}, Text: "alpha", TopK: 5})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range res.Hits {
		got = append(got, h.Dataset+"/"+h.ID)
	}
	if diff := cmp.Diff([]string{"two/two0", "one/one0"}, got); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
}

// Words of every question do not count, and texts without blanks are found.
func TestWordsOfQuestions(t *testing.T) {
	root := t.TempDir()
	s := newSample("one")
	s.metadata = []map[string]any{
		{"id": "noise", "content": "What is it that the and of to in what is the"},
		{"id": "leave", "content": "Thirty days of leave."},
		{"id": "ja", "content": "東京で会議が開かれた。全文検索の設定を確認した。"},
		{"id": "code", "content": "Set max_in_flight to 32."},
	}
	s.write(t, root, "one")
	r := open(t, root)
	for query, want := range map[string][]string{
		"What is the leave?": {"leave"},
		"what is the":        {"noise"},
		"会議の設定":              {"ja"},
		"会":                  {"ja"},
		"max_in_flight":      {"code"},
		"nothing like this ": {},
		"?!":                 {},
	} {
		got := find(t, r, query, "one")
		if len(got) > len(want) {
			got = got[:len(want)]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// Every layout of metadata that MCPower's tools write or read is read.
func TestLayoutsOfMetadata(t *testing.T) {
	for name, text := range map[string]string{
		"list":       `[{"id":"a","title":"T","path":"p","content":"word","snippet":"w"}]`,
		"object":     `{"datasetId":"x","model":"sentence-transformers/all-MiniLM-L6-v2","stats":{"totalChunks":1},"documents":[{"id":"a","title":"T","path":"p","content":"word"}]}`,
		"enhanced":   `{"stats":{"model":"sentence-transformers/all-MiniLM-L6-v2","embeddingDimensions":384},"documents":[{"id":"a","title":"T","text":"word","originalDoc":"p","chunkTotal":3}]}`,
		"quickstart": `{"documents":[{"id":"a","title":"T","path":"p","text":"word"}]}`,
		"snippet":    `{"documents":[{"id":"a","title":"T","path":"p","snippet":"word"}],"more":{"deep":[1,2,{"x":null}]}}`,
	} {
		m, err := parseMetadata(strings.NewReader(text), &budget{left: 1 << 30})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := m.Documents[0]
		title, path, id := d.label(0)
		if len(m.Documents) != 1 || d.Content != "word" || title != "T" || path != "p" || id != "a" {
			t.Errorf("%s: %+v", name, m)
		}
		if wantModel := name == "object" || name == "enhanced"; wantModel != (m.Model == "sentence-transformers/all-MiniLM-L6-v2") {
			t.Errorf("%s: model %q", name, m.Model)
		}
	}
}

func FuzzMetadata(f *testing.F) {
	for _, seed := range []string{`[]`, `{"documents":[{"id":1,"content":"x","chunk":"2"}],"model":null,"stats":[]}`,
		`{"documents":[],"documents":[{}]}`, "[[", `{"a":{"b":`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMetadata(strings.NewReader(text), &budget{left: 1 << 30})
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		for i, d := range m.Documents {
			title, path, id := d.label(i)
			if title == "" || path == "" || id == "" || !utf8.ValidString(title+path+id+newWordQuery("x").excerpt(&d)) {
				t.Errorf("document %d: %q %q %q", i, title, path, id)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add(`{"id":"a","name":"b","description":"c","index":"d","metadata":"e","defaultTopK":5}`)
	f.Add(`{"id":null,"defaultTopK":1e400}`)
	name := filepath.Join(f.TempDir(), "manifest.json")
	f.Fuzz(func(t *testing.T, text string) {
		put(t, name, text)
		m, found := readManifest(name)
		if found.failed() {
			return
		}
		if CheckID(m.ID) != nil || CheckText(m.Name, 128) != nil || CheckText(m.Description, 512) != nil ||
			m.DefaultTopK < 1 || m.DefaultTopK > 100 {
			t.Errorf("%q is accepted as %+v", text, m)
		}
	})
}
