package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/fess/fesstest"
)

// A recording answers like another handler, from memory where it has been asked
// before, so that the work of a fake does not blur what is measured.
type recording struct {
	handler http.Handler

	mu      sync.Mutex
	answers map[string]*httptest.ResponseRecorder
	last    *http.Request // a search, the last one
	asked   int           // searches
}

// ServeHTTP implements [http.Handler].
func (r *recording) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	a, ok := r.answers[req.RequestURI]
	if !ok {
		a = httptest.NewRecorder()
		r.handler.ServeHTTP(a, req)
		r.answers[req.RequestURI] = a
	}
	if req.URL.Query().Has("q") {
		r.last = req
		r.asked++
	}
	r.mu.Unlock()
	for name, values := range a.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body.Bytes()) // the client may have gone
}

// A fakeFess is a fake Fess server and the configuration of a bridge to it.
type fakeFess struct {
	*recording
	config string // file
}

// startFess starts a fake Fess server over 200 documents of which every one
// has the word "budget".
func startFess(b *testing.B) *fakeFess {
	b.Helper()
	words := strings.Fields("report quarter revenue cost forecast approval committee supplier contract invoice travel " +
		"policy department account audit liability margin interest balance payment review deadline signature and of the in for")
	rnd := rand.New(rand.NewPCG(3, 4))
	some := func(n int) string {
		s := make([]string, n)
		for i := range s {
			s[i] = words[rnd.IntN(len(words))]
		}
		return strings.Join(s, " ")
	}
	var docs []document.Document
	for i := range 200 {
		docs = append(docs, document.Document{
			ID: fmt.Sprintf("%032x", rnd.Uint64()), Label: "finance", Host: "intranet.example.com", Lang: "en",
			URL:   fmt.Sprintf("https://intranet.example.com/finance/%d/report-%04d.html", 2015+i%10, i),
			Title: "Budget " + some(5), Text: some(20) + " budget " + some(300),
			MIMEType: "text/html", FileType: "html", Filename: fmt.Sprintf("report-%04d.html", i),
			Modified: settled.AddDate(0, 0, i), Stamp: document.Stamp{Size: 2500},
		})
	}
	r := &recording{handler: fesstest.NewHandler(docs, fesstest.Options{}), answers: map[string]*httptest.ResponseRecorder{}}
	server := httptest.NewServer(r)
	b.Cleanup(server.Close)
	config, err := json.Marshal(map[string]any{"fessBaseUrl": server.URL,
		"domain": map[string]any{"id": "finance", "name": "Finance", "description": "Reports of the finance department", "labelFilter": "finance"}})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "config.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		b.Fatal(err)
	}
	return &fakeFess{r, path}
}

// stdio starts the bridge on pipes.
func (f *fakeFess) stdio(b *testing.B) *process {
	b.Helper()
	p := start(b, "fess", "--config", f.config)
	p.initialize()
	return p
}

// http starts the bridge as an HTTP server and connects to it.
func (f *fakeFess) http(b *testing.B) *webClient {
	b.Helper()
	p := start(b, "fess", "--config", f.config, "--transport", "http")
	b.Cleanup(func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }) // before stop waits for its end
	return connect(b, p.await(`^listening on (http://\S+)`)[1])
}

// BenchmarkLatency measures what a search costs more through the bridge than
// the plain HTTP call that the bridge makes. The two take turns, and the
// figures are differences of quantiles.
func BenchmarkLatency(b *testing.B) {
	f := startFess(b)
	b.Run("fess-stdio", func(b *testing.B) { f.latency(b, f.stdio(b)) })
	b.Run("fess-http", func(b *testing.B) { f.latency(b, f.http(b)) })
}

func (f *fakeFess) latency(b *testing.B, c caller) {
	params := map[string]any{"name": tool(b, c, "search"), "arguments": map[string]any{"query": "budget"}}
	plain, size := f.plain(b, c, params)
	var through, direct Times
	warm := 200
	for b.Loop() {
		_, _, took := c.call("tools/call", params)
		alone := plain()
		if warm--; warm < 0 {
			through, direct = append(through, took), append(direct, alone)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(through.at(0.5)-direct.at(0.5)), "added-p50-ms")
	b.ReportMetric(ms(through.at(0.99)-direct.at(0.99)), "added-p99-ms")
	b.ReportMetric(ms(direct.at(0.5)), "plain-p50-ms")
	b.ReportMetric(float64(size), "fake's-answer-bytes")
}

// plain returns a function that makes the HTTP call that the bridge makes for
// a search, and tells how long it took until the answer was read; and how many
// bytes the answer has.
func (f *fakeFess) plain(b *testing.B, c caller, params any) (call func() time.Duration, size int) {
	b.Helper()
	f.mu.Lock()
	before := f.asked
	f.mu.Unlock()
	result, _, _ := c.call("tools/call", params)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked != before+1 {
		b.Fatalf("a search asked Fess %d times, want once", f.asked-before)
	}
	if n := bytes.Count(result, []byte(`doc_id`)); n != 20 && n != 40 { // once more in structuredContent
		b.Fatalf("a search found %d documents, want 20", n)
	}
	size = f.answers[f.last.RequestURI].Body.Len()
	req := f.last.Clone(b.Context())
	req.RequestURI, req.Body, req.URL.Scheme, req.URL.Host = "", nil, "http", req.Host
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	b.Cleanup(client.CloseIdleConnections)
	return func() time.Duration {
		began := time.Now()
		res, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		took := time.Since(began)
		res.Body.Close() // read to its end
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatalf("asking the fake: %s, %v", res.Status, err)
		}
		return took
	}, size
}

// BenchmarkSize tells the bytes of a search result with 20 hits, of its text
// alone, and of the list of tools.
func BenchmarkSize(b *testing.B) {
	b.Run("fess", func(b *testing.B) {
		c := startFess(b).stdio(b)
		sizes(b, c, "budget")
	})
	b.Run("serve", func(b *testing.B) {
		sizes(b, generated(b).indexed(b).serve(b), "folder")
	})
}

func sizes(b *testing.B, c caller, query string) {
	var tools, result int
	var raw json.RawMessage
	name := tool(b, c, "search")
	for b.Loop() {
		_, tools, _ = c.call("tools/list", nil)
		raw, result, _ = c.call("tools/call", map[string]any{"name": name, "arguments": map[string]any{"query": query}})
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) != 1 {
		b.Fatalf("reading the result %.200s: %v", raw, err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(r.Content[0].Text)), "20-hits-bytes")
	b.ReportMetric(float64(result), "response-bytes")
	b.ReportMetric(float64(tools), "tools/list-bytes")
}
