package kbserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"knowhow/internal/kb"
)

// A document is written as the encoder writes it, without another copy in memory.
func TestWriteDocument(t *testing.T) {
	for _, chunks := range [][]string{{"a"}, {"<b>\n\"", "日本", "\x01\u2028"}} {
		d := &kb.Document{ID: 7, Title: "a & b", Tags: []string{"x"}}
		for i, text := range chunks {
			d.Chunks = append(d.Chunks, kb.Chunk{Index: i, Text: text})
		}
		var got, want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(d); err != nil {
			t.Fatal(err)
		}
		if writeDocument(&got, d); got.String() != want.String() {
			t.Errorf("writeDocument() = %s, want %s", &got, &want)
		}
	}
	if testing.Short() {
		return // with the race detector, the buffers of encoders are not used again
	}
	d := &kb.Document{}
	for i := range 8 << 10 {
		d.Chunks = append(d.Chunks, kb.Chunk{Index: i, Text: strings.Repeat("a", 1000)})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	write(response{io.Discard}, 200, d)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes were allocated for 8 MiB", n)
	}
}

// A response is an http.ResponseWriter that keeps nothing.
type response struct{ io.Writer }

func (response) Header() http.Header { return http.Header{} }
func (response) WriteHeader(int)     {}
