package kbserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbserver"
)

// A longBase has one document, of many chunks.
type longBase struct {
	kbserver.Base
	chunks  int
	text    func(i int) string
	changed atomic.Bool
	most    atomic.Int64 // chunks of one call
}

func (b *longBase) Document(_ context.Context, id int64, from, to int) (*kb.Document, error) {
	d := &kb.Document{ID: id, Title: "a & b", Tags: []string{"x"}, Chunks: []kb.Chunk{}, TotalChunks: b.chunks}
	if from > 0 && b.changed.Load() {
		d.UpdatedAt = kb.Time{Time: time.Unix(1, 0)}
	}
	for i := from; i < min(to, b.chunks); i++ {
		d.Chunks = append(d.Chunks, kb.Chunk{Index: i, Text: b.text(i)})
	}
	b.most.Store(max(b.most.Load(), int64(len(d.Chunks))))
	return d, nil
}

// A document is read and written in parts, in the form in which the encoder writes it
// at once.
func TestLongDocument(t *testing.T) {
	text := []string{"<b>\n\"", "日本", "\x01\u2028", strings.Repeat("a", 1000)}
	for _, chunks := range []int{0, 1, 999, 1000, 1001, 2000, 4711} {
		b := &longBase{chunks: chunks, text: func(i int) string { return text[i%len(text)] }}
		s := httptest.NewServer(kbserver.New(kbserver.Options{Base: b, TempDir: t.TempDir()}))
		resp, err := http.Get(s.URL + "/api/v1/documents/7")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		s.Close()
		all, _ := b.Document(t.Context(), 7, 0, kb.AllChunks) // never fails
		var want strings.Builder
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(all); err != nil {
			t.Fatal(err)
		}
		if string(got) != want.String() {
			t.Errorf("%d chunks: the answer of %d bytes differs from that of the encoder, of %d bytes",
				chunks, len(got), want.Len())
		}
	}
}

// The answers to six requests for a document of 98 MiB never have more than a part
// of it in memory.
func TestLongDocumentsAtOnce(t *testing.T) {
	text := strings.Repeat("a", 1000)
	b := &longBase{chunks: 98 << 20 / len(text), text: func(int) string { return text }}
	s := httptest.NewServer(kbserver.New(kbserver.Options{Base: b, TempDir: t.TempDir()}))
	defer s.Close()
	var requests sync.WaitGroup
	for range 6 {
		requests.Go(func() {
			resp, err := http.Get(fmt.Sprint(s.URL, "/api/v1/documents/7"))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < int64(b.chunks*len(text)) {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	requests.Wait()
	if n := b.most.Load(); n > 1000 {
		t.Errorf("%d chunks were read at once", n)
	}
}

// The answer is broken off if the document changes while it is written.
func TestLongDocumentChanges(t *testing.T) {
	b := &longBase{chunks: 3000, text: func(int) string { return "text" }}
	b.changed.Store(true)
	s := httptest.NewServer(kbserver.New(kbserver.Options{Base: b, TempDir: t.TempDir()}))
	defer s.Close()
	resp, err := http.Get(s.URL + "/api/v1/documents/7")
	if err == nil {
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err == nil {
		t.Error("the answer is complete")
	}
}
