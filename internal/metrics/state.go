package metrics

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// fresh is how long the state is used for further scrapes.
const fresh = time.Second

// The metrics of the state.
var (
	callsInFlight  = desc("calls_in_flight", "Calls that are being answered.")
	sessions       = desc("sessions", "Sessions of MCP that are open.")
	streams        = desc("streams", "Streams of events that are open.")
	documents      = desc("source_documents", "Documents of a source that are indexed.", "label")
	textBytes      = desc("source_text_bytes", "Bytes of text of a source that are indexed.", "label")
	remaining      = desc("source_remaining_documents", "Documents of a source that are still to be indexed.", "label")
	incomplete     = desc("source_incomplete", "Whether indexing of a source has stopped before its end.", "label")
	leftOut        = desc("source_left_out", "Files and folders of a source that are not indexed.", "label", "reason")
	jobs           = desc("jobs", "Jobs of the knowledge base.", "state")
	passages       = desc("passages", "Passages of all sources, for searches by meaning.")
	vectors        = desc("passages_with_vector", "Passages that can be found by meaning.")
	storeUp        = desc("store_up", "Whether the store of the documents answers.")
	storeTime      = desc("store_response_seconds", "How long the store took to answer.")
	scrapeSuccess  = desc("scrape_success", "Whether a part of the state could be read.", "part")
	scrapeDuration = desc("scrape_duration_seconds", "How long reading a part of the state took.", "part")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("knowhow_"+name, help, labels, nil)
}

// A state is the state of the server at a time.
type state struct {
	taken   time.Time
	metrics []prometheus.Metric
}

// add adds a gauge.
func (s *state) add(d *prometheus.Desc, value float64, labels ...string) {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "?")
	}
	if m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, value, labels...); err == nil {
		s.metrics = append(s.metrics, m)
	}
}

// Describe implements [prometheus.Collector]. It declares nothing, because the parts that
// fail are left out.
func (s state) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (s state) Collect(to chan<- prometheus.Metric) {
	for _, m := range s.metrics {
		to <- m
	}
}

// measure asks for the state, or returns that of less than a second ago. If that takes
// too long, what is missing is left out.
func (m *Metrics) measure(ctx context.Context) state {
	ctx, cancel := context.WithTimeout(ctx, m.o.ScrapeTime)
	defer cancel()
	select {
	case m.scraping <- struct{}{}:
		defer func() { <-m.scraping }()
	case <-ctx.Done():
		return state{}
	}
	if m.state.taken.IsZero() || time.Since(m.state.taken) >= fresh {
		m.state = m.ask(ctx)
	}
	return m.state
}

// ask asks for all parts of the state at the same time.
func (m *Metrics) ask(ctx context.Context) state {
	parts := []func(context.Context) state{
		m.activity, m.store,
		read(m, "sources", m.o.Sources, addSources),
		read(m, "jobs", m.o.Jobs, addJobs),
		read(m, "vectors", m.o.Vectors, addVectors),
	}
	states := make([]state, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { states[i] = part(ctx) })
	}
	all.Wait()
	var s state
	for _, part := range states {
		s.metrics = append(s.metrics, part.metrics...)
	}
	if ctx.Err() == nil { // otherwise the next scrape asks again
		s.taken = time.Now()
	}
	return s
}

// read returns a function that reads a part of the state with get and adds it, and whether
// that succeeded.
func read[T any](m *Metrics, name string, get func(context.Context) (T, error),
	add func(*state, T)) func(context.Context) state {
	return func(ctx context.Context) (s state) {
		if get == nil {
			return s
		}
		start := time.Now()
		value, err := get(ctx)
		if err == nil {
			add(&s, value)
		} else {
			m.o.Log.Warn("reading the state for the metrics", "part", name, "error", err)
		}
		s.add(scrapeSuccess, number(err == nil), name)
		s.add(scrapeDuration, time.Since(start).Seconds(), name)
		return s
	}
}

// activity returns what clients are doing.
func (m *Metrics) activity(context.Context) (s state) {
	if m.o.Activity == nil {
		return s
	}
	a := m.o.Activity()
	s.add(callsInFlight, float64(a.Calls))
	s.add(sessions, float64(a.Sessions))
	s.add(streams, float64(a.Streams))
	return s
}

// store asks the store whether it answers.
func (m *Metrics) store(ctx context.Context) (s state) {
	if m.o.Store == nil {
		return s
	}
	start := time.Now()
	err := m.o.Store(ctx)
	s.add(storeTime, time.Since(start).Seconds())
	s.add(storeUp, number(err == nil))
	if err != nil {
		m.o.Log.Warn("asking the store for the metrics", "error", err)
	}
	return s
}

func addSources(s *state, list []Source) {
	seen := map[string]bool{}
	for _, src := range list {
		if seen[src.Label] {
			continue // a series may occur once only
		}
		seen[src.Label] = true
		s.add(documents, float64(src.Documents), src.Label)
		s.add(textBytes, float64(src.TextBytes), src.Label)
		s.add(remaining, float64(src.Remaining), src.Label)
		s.add(incomplete, number(src.Incomplete), src.Label)
		for reason, n := range src.LeftOut {
			s.add(leftOut, float64(n), src.Label, reason)
		}
	}
}

func addJobs(s *state, j Jobs) {
	s.add(jobs, float64(j.Queued), "queued")
	s.add(jobs, float64(j.Running), "running")
	s.add(jobs, float64(j.Failed), "failed")
}

func addVectors(s *state, v Vectors) {
	s.add(vectors, float64(v.Done))
	s.add(passages, float64(v.Total))
}

// number returns 1 for true.
func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
