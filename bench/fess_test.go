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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
)

// A recording returns the responses of another handler, from memory for
// repeated requests, so that the time of the fake does not affect the
// measurements.
type recording struct {
	handler http.Handler

	mu      sync.Mutex
	answers map[string]*httptest.ResponseRecorder
	last    *http.Request // the last search
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
	_, _ = w.Write(a.Body.Bytes()) // an error means that the client has gone
}

// A fakeFess is a fake Fess server and the configuration of a bridge to it.
type fakeFess struct {
	*recording
	config string // file
}

// startFess starts a fake Fess server with 200 documents, all of which contain
// the word "budget".
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

// listen starts the bridge as an HTTP server and returns its address.
func (f *fakeFess) listen(b *testing.B) (url string) {
	b.Helper()
	p := start(b, "fess", "--config", f.config, "--transport", "http")
	b.Cleanup(func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }) // runs before stop, which waits for the end
	return p.await(`^listening on (http://\S+)`)[1]
}

// BenchmarkLatency measures how much longer a search through the bridge takes
// than the HTTP call that the bridge makes, for one client and for many: many
// requests in flight over the pipes, or many sessions over HTTP. The results
// are differences of quantiles, as the median and the best of several rounds.
func BenchmarkLatency(b *testing.B) {
	f := startFess(b)
	for _, n := range []int{1, clients} {
		b.Run(fmt.Sprintf("fess-stdio-%d", n), func(b *testing.B) {
			p := f.stdio(b)
			params := searchParams(tool(b, p, "search"))
			plain := f.plain(b, p, params)
			latency(b, n, p.pipeline(b, params), plain)
		})
		b.Run(fmt.Sprintf("fess-http-%d", n), func(b *testing.B) {
			url := f.listen(b)
			var plain *plainCalls
			w := connectAll(b, url, func(c caller) any {
				params := searchParams(tool(b, c, "search"))
				if plain == nil {
					plain = f.plain(b, c, params)
				}
				return params
			})
			latency(b, n, w, plain)
		})
	}
}

// latency makes b.N calls in each round, and as many plain ones. One client
// alternates between them; many clients make all calls of one kind and then all
// of the other.
func latency(b *testing.B, n int, through, plain target) {
	calls(through, n, b.N/5+1) // warms up
	calls(plain, n, b.N/5+1)
	var p50, p99, direct []float64
	for range rounds {
		var ours, alone Times
		if n == 1 {
			for range b.N {
				ours, alone = append(ours, through.call(0)), append(alone, plain.call(0))
			}
		} else {
			ours, _ = calls(through, n, b.N)
			alone, _ = calls(plain, n, b.N)
		}
		p50, p99 = append(p50, ms(ours.at(0.5)-alone.at(0.5))), append(p99, ms(ours.at(0.99)-alone.at(0.99)))
		direct = append(direct, ms(alone.at(0.5)))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(p50), "added-p50-ms")
	b.ReportMetric(slices.Min(p50), "best-p50-ms")
	b.ReportMetric(middle(p99), "added-p99-ms")
	b.ReportMetric(middle(direct), "plain-p50-ms")
}

// A plainCalls makes the HTTP call that the bridge makes for a search.
type plainCalls struct {
	b       *testing.B
	request *http.Request
	client  *http.Client
}

// plain returns the plain calls for a search of c.
func (f *fakeFess) plain(b *testing.B, c caller, params any) *plainCalls {
	b.Helper()
	f.mu.Lock()
	before := f.asked
	f.mu.Unlock()
	result, _, _ := c.call("tools/call", params)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked != before+1 {
		b.Fatalf("a search sent %d requests to Fess, want 1", f.asked-before)
	}
	if n := bytes.Count(result, []byte(`doc_id`)); n != 20 {
		b.Fatalf("a search found %d documents, want 20", n)
	}
	req := f.last.Clone(b.Context())
	req.RequestURI, req.Body, req.URL.Scheme, req.URL.Host = "", nil, "http", req.Host
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: clients}}
	b.Cleanup(client.CloseIdleConnections)
	return &plainCalls{b, req, client}
}

// call implements target. It returns when the response has been read.
func (p *plainCalls) call(int) time.Duration {
	began := time.Now()
	res, err := p.client.Do(p.request)
	if err != nil {
		p.b.Error(err)
		return 0
	}
	_, err = io.Copy(io.Discard, res.Body)
	took := time.Since(began)
	res.Body.Close() // the body was read to its end
	if err != nil || res.StatusCode != http.StatusOK {
		p.b.Errorf("calling the fake server: %s, %v", res.Status, err)
	}
	return took
}

// BenchmarkSize reports the sizes in bytes of a search result with 20 hits, of
// its text, and of the list of tools.
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
		raw, result, _ = c.call("tools/call", map[string]any{"name": name, "arguments": map[string]any{"query": query, "pageSize": 20}})
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
