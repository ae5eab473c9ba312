// Package metrics counts the calls of a server and describes its state, for Prometheus.
//
// No metric contains the name of a user, a query or the ID of a document, and callers
// cannot add time series: what is not known is counted as "other".
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/knowhow-mcp/knowhow/internal/audit"
)

// Options configure Metrics.
type Options struct {
	Version string // of the program

	// Tools returns the names of the tools. A name with a domain before it, as in
	// handbook_search, counts as search. It is called once, for the first call of a tool.
	Tools func() []string

	// The state of the server is asked for at each scrape. The functions must return
	// when their context ends. What is nil or fails is left out of the response.
	Activity func() Activity
	Sources  func(context.Context) ([]Source, error)
	Jobs     func(context.Context) (Jobs, error)
	Vectors  func(context.Context) (Vectors, error)
	Store    func(context.Context) error // asks the store of the documents whether it answers

	// ScrapeTime is the maximum time for the state; 0 means 5 seconds.
	ScrapeTime time.Duration

	Log *slog.Logger // nil discards
}

// An Activity is what clients are doing.
type Activity struct {
	Calls    int // in flight
	Sessions int
	Streams  int // that are open
}

// A Source is how far a source is indexed.
type Source struct {
	Label      string
	Documents  int
	TextBytes  int64
	Remaining  int            // documents that are still to be indexed
	Incomplete bool           // indexing has stopped before the end
	LeftOut    map[string]int // files and folders that are not indexed, by reason
}

// Jobs are numbers of jobs of the knowledge base.
type Jobs struct{ Queued, Running, Failed int }

// Vectors is how many passages can be found by meaning.
type Vectors struct{ Done, Total int }

// Metrics are the metrics of a server. The methods are safe for concurrent use.
type Metrics struct {
	o        Options
	tools    func() map[string]bool // calls Options.Tools once
	registry *prometheus.Registry
	scraping chan struct{} // holds a value while the state is asked for
	state    state         // of the last scrape; guarded by scraping

	calls     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	documents *prometheus.CounterVec
	errors    *prometheus.CounterVec
}

// New returns metrics that are all zero.
func New(o Options) *Metrics {
	if o.ScrapeTime <= 0 {
		o.ScrapeTime = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Metrics{
		o: o, registry: prometheus.NewRegistry(), scraping: make(chan struct{}, 1),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "knowhow_calls_total",
			Help: "Calls that were answered."}, []string{"route", "tool", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "knowhow_call_duration_seconds",
			Help:    "Time until calls were answered.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"tool"}),
		documents: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "knowhow_documents_returned_total",
			Help: "Documents in answers."}, []string{"tool"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "knowhow_errors_total",
			Help: "Calls that failed."}, []string{"kind"}),
	}
	m.tools = sync.OnceValue(func() map[string]bool {
		tools := map[string]bool{}
		if o.Tools != nil {
			for _, name := range o.Tools() {
				tools[name] = true
			}
		}
		return tools
	})
	for _, kind := range kinds { // so that rates can be computed from the first error on
		m.errors.WithLabelValues(kind)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "knowhow_build_info", Help: "The program; the value is 1.",
		ConstLabels: prometheus.Labels{"version": strings.ToValidUTF8(o.Version, "?"), "go": runtime.Version()}})
	build.Set(1)
	m.registry.MustRegister(m.calls, m.durations, m.documents, m.errors, build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Observe counts a call that has been answered. kind is the name of its error, such as
// NOT_FOUND; if it is "", it follows from a status of HTTP.
func (m *Metrics) Observe(c *audit.Call, kind string) {
	tool := m.tool(c.Tool)
	m.calls.WithLabelValues(route(c.Path), tool, class(c.Status)).Inc()
	m.durations.WithLabelValues(tool).Observe(c.Took.Seconds())
	m.documents.WithLabelValues(tool).Add(float64(c.Documents()))
	if kind = kindOf(kind, c.Status); kind != "" {
		m.errors.WithLabelValues(kind).Inc()
	}
}

// Handler returns a handler that sends the metrics in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this method is not allowed here, use GET or HEAD", http.StatusMethodNotAllowed)
			return
		}
		measured := prometheus.NewRegistry()
		measured.MustRegister(m.measure(r.Context()))
		promhttp.HandlerFor(prometheus.Gatherers{m.registry, measured}, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError,
			ErrorLog:      slog.NewLogLogger(m.o.Log.Handler(), slog.LevelError),
		}).ServeHTTP(w, r)
	})
}
