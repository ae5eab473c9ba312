package metrics_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/metrics"
)

// full returns options with a state of each kind.
func full() metrics.Options {
	return metrics.Options{
		Version:  "1.2.3",
		Tools:    func() []string { return []string{"search", "read_content", "kb_search"} },
		Activity: func() metrics.Activity { return metrics.Activity{Calls: 3, Sessions: 2, Streams: 1} },
		Sources: func(context.Context) ([]metrics.Source, error) {
			return []metrics.Source{
				{Label: "handbook", Documents: 433, TextBytes: 1 << 20, LeftOut: map[string]int{"hidden": 2, "too large": 1}},
				{Label: "docs", Documents: 10, Remaining: 5, Incomplete: true},
				{Label: "docs", Documents: 11},
				{Label: "\xff\""},
			}, nil
		},
		Jobs: func(context.Context) (metrics.Jobs, error) {
			return metrics.Jobs{Queued: 4, Running: 1, Failed: 2}, nil
		},
		Vectors: func(context.Context) (metrics.Vectors, error) { return metrics.Vectors{Done: 80, Total: 100}, nil },
		Store:   func(context.Context) error { return nil },
	}
}

// get returns the text of the metrics.
func get(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("status = %d %s:\n%s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	return w.Body.String()
}

// ours returns the samples of the program's own metrics, without those that depend on
// time.
func ours(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "knowhow_") && !strings.Contains(line, "_seconds") &&
			!strings.HasPrefix(line, "knowhow_build_info") && !strings.HasSuffix(line, " 0") {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

func TestMetrics(t *testing.T) {
	m := metrics.New(full())
	found := &audit.Call{User: "ann", Path: "/mcp/handbook", Tool: "my_handbook_search", Took: 30 * time.Millisecond}
	found.SetQuery("secret")
	found.AddDocuments("d1", "d2")
	for _, c := range []struct {
		call *audit.Call
		kind string
	}{
		{found, ""},
		{&audit.Call{Path: "/mcp", Tool: "kb_search", Status: -32602}, "INVALID_ARGUMENT"},
		{&audit.Call{Path: "/mcp", Tool: "resources/read", Status: -32002}, "DATASET_NOT_FOUND"},
		{&audit.Call{Path: "/mcp", Tool: "search", Status: -32000}, ""},
		{&audit.Call{Path: "/mcp", Tool: "search", Status: -32000}, "UPSTREAM_TIMEOUT"},
		{&audit.Call{Path: "/mcp", Tool: "search", Status: -32000}, "made up"},
		{&audit.Call{Path: "/kb/documents/7", Tool: "GET", Status: 404}, ""},
		{&audit.Call{Path: "/", Tool: "GET", Status: 503}, ""},
		{&audit.Call{Path: "/../ann", Tool: "ann", Status: 200}, ""},
		{&audit.Call{Path: "", Tool: "", Status: 1000000}, ""},
	} {
		m.Observe(c.call, c.kind)
	}
	text := get(t, m)
	want := []string{
		`knowhow_calls_in_flight 3`,
		`knowhow_calls_total{route="/console",status="5xx",tool="GET"} 1`,
		`knowhow_calls_total{route="/kb",status="4xx",tool="GET"} 1`,
		`knowhow_calls_total{route="/mcp",status="2xx",tool="search"} 1`,
		`knowhow_calls_total{route="/mcp",status="error",tool="kb_search"} 1`,
		`knowhow_calls_total{route="/mcp",status="error",tool="resources/read"} 1`,
		`knowhow_calls_total{route="/mcp",status="error",tool="search"} 3`,
		`knowhow_calls_total{route="other",status="2xx",tool="other"} 1`,
		`knowhow_calls_total{route="other",status="error",tool="other"} 1`,
		`knowhow_documents_returned_total{tool="search"} 2`,
		`knowhow_errors_total{kind="invalid"} 1`,
		`knowhow_errors_total{kind="not_found"} 2`,
		`knowhow_errors_total{kind="other"} 3`,
		`knowhow_errors_total{kind="unavailable"} 1`,
		`knowhow_errors_total{kind="upstream"} 1`,
		`knowhow_jobs{state="failed"} 2`,
		`knowhow_jobs{state="queued"} 4`,
		`knowhow_jobs{state="running"} 1`,
		`knowhow_passages 100`,
		`knowhow_passages_with_vector 80`,
		`knowhow_scrape_success{part="jobs"} 1`,
		`knowhow_scrape_success{part="sources"} 1`,
		`knowhow_scrape_success{part="vectors"} 1`,
		`knowhow_sessions 2`,
		`knowhow_source_documents{label="docs"} 10`,
		`knowhow_source_documents{label="handbook"} 433`,
		`knowhow_source_incomplete{label="docs"} 1`,
		`knowhow_source_left_out{label="handbook",reason="hidden"} 2`,
		`knowhow_source_left_out{label="handbook",reason="too large"} 1`,
		`knowhow_source_remaining_documents{label="docs"} 5`,
		`knowhow_source_text_bytes{label="handbook"} 1.048576e+06`,
		`knowhow_store_up 1`,
		`knowhow_streams 1`,
	}
	if diff := cmp.Diff(want, ours(text)); diff != "" {
		t.Errorf("metrics differ (-want +got):\n%s", diff)
	}
	for _, part := range []string{`knowhow_call_duration_seconds_bucket{tool="search",le="0.05"} 4`, "go_goroutines ",
		`version="1.2.3"`} {
		if !strings.Contains(text, part) {
			t.Errorf("the metrics lack %s", part)
		}
	}
	for _, private := range []string{"ann", "secret", "d1"} {
		if strings.Contains(text, `"`+private+`"`) {
			t.Errorf("the metrics contain %q", private)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// A part that fails is left out; one that does not answer is given up.
func TestParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := full()
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Sources = func(context.Context) ([]metrics.Source, error) { return nil, errors.New("damaged") }
		o.Store = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		start := time.Now()
		m := metrics.New(o)
		got := ours(get(t, m))
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("a scrape took %v, want 5s", took)
		}
		for _, metric := range []string{`knowhow_jobs{state="queued"} 4`, `knowhow_scrape_success{part="jobs"} 1`} {
			if !slices.Contains(got, metric) {
				t.Errorf("metrics lack %s: %q", metric, got)
			}
		}
		for _, metric := range got {
			if strings.Contains(metric, "source_documents") || strings.Contains(metric, "store_up") {
				t.Errorf("metrics contain %s", metric)
			}
		}
		if text := get(t, m); !strings.Contains(text, "\nknowhow_store_up 0\n") ||
			!strings.Contains(text, "\nknowhow_scrape_success{part=\"sources\"} 0\n") {
			t.Error("the failures are not among the metrics")
		}
		if !strings.Contains(log.String(), "damaged") {
			t.Errorf("log = %s", log.String())
		}
		if got := ours(get(t, metrics.New(metrics.Options{}))); len(got) > 0 {
			t.Errorf("metrics without a state = %q", got)
		}
	})
}

// Many scrapes at the same time ask for the state once. One whose client goes away does not
// spoil the others.
func TestScrapesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		o := full()
		o.Vectors = func(ctx context.Context) (metrics.Vectors, error) {
			asked.Add(1)
			select {
			case <-time.After(time.Second):
				return metrics.Vectors{Total: 1}, nil
			case <-ctx.Done():
				return metrics.Vectors{}, ctx.Err()
			}
		}
		m := metrics.New(o)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			m.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		})
		synctest.Wait()
		for range 20 {
			all.Go(func() {
				if !strings.Contains(get(t, m), "\nknowhow_passages 1\n") {
					t.Error("a scrape beside others lacks a part")
				}
			})
		}
		synctest.Wait()
		cancel()
		all.Wait()
		if n := asked.Load(); n != 2 {
			t.Errorf("the state was asked for %d times, want 2", n)
		}
		time.Sleep(time.Second)
		get(t, m)
		if n := asked.Load(); n != 3 {
			t.Errorf("the state was asked for %d times, want again after a second", n)
		}
	})
}

func TestHTTP(t *testing.T) {
	h := metrics.New(full()).Handler()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST = %d", w.Code)
	}
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || !strings.Contains(string(text), "knowhow_jobs") {
		t.Errorf("compressed: %v", err)
	}
}

// TestDocumentation compares the table in docs/monitoring.md with the metrics.
func TestDocumentation(t *testing.T) {
	m := metrics.New(full())
	m.Observe(&audit.Call{Path: "/mcp", Tool: "search"}, "")
	types, labels := map[string]string{}, map[string]map[string]bool{}
	sample := regexp.MustCompile(`^(knowhow_\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	pair := regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
	for line := range strings.Lines(get(t, m)) {
		line = strings.TrimSpace(line)
		if f := strings.Fields(line); f[0] == "#" && f[1] == "TYPE" && strings.HasPrefix(f[2], "knowhow_") {
			types[f[2]], labels[f[2]] = f[3], map[string]bool{}
		} else if s := sample.FindStringSubmatch(line); s != nil {
			for _, p := range pair.FindAllStringSubmatch(s[3], -1) {
				if p[1] != "le" {
					labels[s[1]][p[1]] = true
				}
			}
		}
	}
	var want []string
	for name, kind := range types {
		var quoted []string
		for _, label := range slices.Sorted(maps.Keys(labels[name])) {
			quoted = append(quoted, "`"+label+"`")
		}
		want = append(want, strings.Join(strings.Fields(fmt.Sprintf("| `%s` | %s | %s |", name, kind,
			strings.Join(quoted, ", "))), " "))
	}
	slices.Sort(want)
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile("(?m)^\\| `knowhow_\\w+` \\| (?:counter|gauge|histogram) \\|[^|]*\\|").FindAllString(
		string(page), -1)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table in docs/monitoring.md differs from the metrics (-want +got):\n%s", diff)
	}
	for _, name := range regexp.MustCompile(`knowhow_[a-z_]+`).FindAllString(string(page), -1) {
		if name = strings.TrimSuffix(name, "_bucket"); types[name] == "" {
			t.Errorf("docs/monitoring.md names %s, which does not exist", name)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	m := metrics.New(full())
	c := &audit.Call{Path: "/mcp/handbook", Tool: "handbook_search", Status: 200, Took: 12 * time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(c, "")
	}
}
