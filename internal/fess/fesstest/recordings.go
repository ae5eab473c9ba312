package fesstest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"os"
	"testing"
)

// A Recording is a recorded exchange with a real Fess server.
type Recording struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Query   string            `json:"query"` // as sent
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`

	Status        int               `json:"status"`
	AnswerHeaders map[string]string `json:"answer_headers"` // without those about the transfer of the body
	Answer        string            `json:"answer"`
	Note          string            `json:"note"`
}

// Recordings reads a gzipped file with one recording as a JSON object in each
// line.
func Recordings(t testing.TB, file string) []Recording {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	var all []Recording
	for d := json.NewDecoder(bufio.NewReader(z)); d.More(); {
		var r Recording
		if err := d.Decode(&r); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		all = append(all, r)
	}
	return all
}

// ServeHTTP implements [http.Handler]: it answers any request with the
// recording.
func (r Recording) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for name, value := range r.AnswerHeaders {
		w.Header().Set(name, value)
	}
	if r.AnswerHeaders["Content-Type"] == "" {
		w.Header()["Content-Type"] = nil // keeps net/http from guessing one
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write([]byte(r.Answer)) // an error means that the client has gone
}
