package invoke_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/invoke"
)

const benchBody = `{"server_id":"everything","tool_name":"echo","arguments":{"message":"hello from a caller of ` +
	`the bridge"}}`

// echoing is a far side that costs nothing.
func echoing() *farSide {
	result := json.RawMessage(`{"content":[{"type":"text","text":"Echo: hello from a caller of the bridge"}]}`)
	return &farSide{call: func(context.Context, string, string, json.RawMessage) (json.RawMessage,
		error) {
		return result, nil
	}}
}

// BenchmarkHandler is what the bridge itself costs.
func BenchmarkHandler(b *testing.B) {
	h := invoke.New(invoke.Options{Servers: echoing()})
	body := []byte(benchBody)
	r := newRequest("POST", "/invoke", "")
	reader := bytes.NewReader(body)
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		r.Body, r.ContentLength = io.NopCloser(reader), int64(len(body))
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 200 {
			b.Fatalf("answered %d %s", w.Code, w.Body)
		}
	}
}

// BenchmarkServe is a call over a connection that stays open, the client's work
// included.
func BenchmarkServe(b *testing.B) {
	url, client := serveBench(b)
	b.Run("sequential", func(b *testing.B) {
		for b.Loop() {
			post(b, client, url)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.SetParallelism(8) // of 2 processors: 16 callers
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				post(b, client, url)
			}
		})
	})
}

// serveBench serves a bridge until the benchmark ends.
func serveBench(b *testing.B) (url string, client *http.Client) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- guarded(invoke.Options{Servers: echoing()}).Serve(ctx, l) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return "http://" + l.Addr().String() + "/invoke", &http.Client{Transport: transport}
}

func post(b *testing.B, client *http.Client, url string) {
	response, err := client.Post(url, "application/json", bytes.NewReader([]byte(benchBody)))
	if err != nil {
		b.Error(err)
		return
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 200 {
		b.Errorf("answered %d (%v)", response.StatusCode, err)
	}
	response.Body.Close()
}
