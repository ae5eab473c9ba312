package fessserver_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/index"
)

// corpusDocument is a document as it was loaded into the Fess servers that were
// recorded.
type corpusDocument struct {
	ID            string    `json:"id"`
	URL           string    `json:"url"`
	Title         string    `json:"title"`
	Content       string    `json:"content"`
	ContentRepeat *struct { // more text, said several times
		Text  string `json:"text"`
		Times int    `json:"times"`
	} `json:"content_repeat"`
	ContentTail string    `json:"content_tail"`
	Lang        []string  `json:"lang"`
	MIMEType    string    `json:"mimetype"`
	FileType    string    `json:"filetype"`
	Label       []string  `json:"label"`
	Size        int64     `json:"content_length"`
	Host        string    `json:"host"`
	Filename    string    `json:"filename"`
	Timestamp   time.Time `json:"timestamp"`
}

// corpus reads the recorded servers' documents. A document has one label here:
// of several the first, and "none" in place of none.
func corpus(t testing.TB) []document.Document {
	t.Helper()
	data, err := os.ReadFile("testdata/corpus.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Documents []corpusDocument }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	var docs []document.Document
	for _, c := range all.Documents {
		text := c.Content
		if c.ContentRepeat != nil {
			text += strings.Repeat(c.ContentRepeat.Text, c.ContentRepeat.Times)
		}
		text += c.ContentTail
		sum := sha256.Sum256([]byte(text))
		d := document.Document{
			ID: c.ID, Label: "none", Path: c.URL, URL: c.URL, Title: c.Title, MIMEType: c.MIMEType,
			FileType: c.FileType,
			Filename: c.Filename, Host: c.Host, Modified: c.Timestamp, Hash: "sha256:" + hex.EncodeToString(sum[:]),
			Text: text,
			Size: c.Size, Stamp: document.Stamp{Size: c.Size, ModTime: c.Timestamp},
		}
		if len(c.Label) > 0 {
			d.Label = c.Label[0]
		}
		if len(c.Lang) > 0 {
			d.Lang = c.Lang[0]
		}
		for off := 0; off < len(text); {
			n := len(text) - off
			if i := strings.IndexByte(text[min(off+1500, len(text)):], ' '); i >= 0 && off+1500 < len(text) {
				n = 1500 + i + 1
			}
			d.Chunks = append(d.Chunks, document.Chunk{Offset: off, Length: n})
			off += n
		}
		docs = append(docs, d)
	}
	return docs
}

// open returns an index that contains docs.
func open(t testing.TB, docs []document.Document) *index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("index.Open() = %v", err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("index.Close() = %v", err)
		}
	})
	changes := make([]document.Change, len(docs))
	for i := range docs {
		changes[i].Put = &docs[i]
	}
	if err := x.Apply(t.Context(), changes); err != nil {
		t.Fatalf("index.Apply() = %v", err)
	}
	return x
}

// handler serves the corpus without a prefix.
func handler(t testing.TB) http.Handler {
	t.Helper()
	return fessserver.New(fessserver.Options{Backend: open(t, corpus(t))})
}

// ask makes a request.
func ask(t testing.TB, h http.Handler, method, target string, headers map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	path, rawQuery, _ := strings.Cut(target, "?")
	unescaped, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	r.URL.Path, r.URL.RawQuery, r.RequestURI = unescaped, rawQuery, target
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// get asks for a JSON object and its status.
func get(t testing.TB, h http.Handler, target string) (int, map[string]any) {
	t.Helper()
	w := ask(t, h, http.MethodGet, target, nil)
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("GET %s = %d %q: %v", target, w.Code, w.Body, err)
	}
	return w.Code, v
}

// urls are the addresses of the hits of an answer, of API v1 or v2.
func urls(t testing.TB, answer map[string]any) []string {
	t.Helper()
	if inner, ok := answer["response"].(map[string]any); ok {
		answer = inner
	}
	data, ok := answer["data"].([]any)
	if !ok {
		t.Fatalf("the answer %v has no data", answer)
	}
	list := []string{}
	for _, row := range data {
		list = append(list, row.(map[string]any)["url"].(string))
	}
	return list
}

// number is a JSON number of an answer.
func number(v any) int {
	f, _ := v.(float64)
	return cmp.Or(int(f), 0)
}
