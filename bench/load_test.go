package bench

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clients is the number of clients in measurements with many.
const clients = 16

// A target can be called by several workers concurrently. call makes one call
// and returns the time from the first byte sent to the last one received.
type target interface {
	call(worker int) time.Duration
}

// calls makes n calls with a number of workers. Each worker makes its next call
// when it has the response to the last one. calls returns the time of each call
// and of all together.
func calls(t target, workers, n int) (each Times, all time.Duration) {
	each = make(Times, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for worker := range workers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				each[i-1] = t.call(worker)
			}
		})
	}
	wg.Wait()
	return each, time.Since(began)
}

// A pipeline is called by several workers over the pipes of a process. It reads
// the process's output, so the process must not be called otherwise.
type pipeline struct {
	p       *process
	message [][]byte // by worker
	size    int      // of a correct response

	mu      sync.Mutex // held while writing
	answers []chan int // sizes, by worker
}

// pipeline returns a pipeline that calls a tool of p.
func (p *process) pipeline(b *testing.B, params any) *pipeline {
	b.Helper()
	_, size, _ := p.call("tools/call", params)
	l := &pipeline{p: p, size: size}
	for worker := range clients {
		// All ids have the same length, so all responses have the same size.
		l.message = append(l.message, request(b, worker+100, "tools/call", params))
		l.answers = append(l.answers, make(chan int, 1))
	}
	id := len(`{"jsonrpc":"2.0","id":`)
	go func() {
		for {
			line, err := p.stdout.ReadSlice('\n')
			if err != nil {
				for _, c := range l.answers {
					close(c)
				}
				return
			}
			if worker, err := strconv.Atoi(string(line[id : id+3])); err == nil && 100 <= worker && worker < 100+clients {
				l.answers[worker-100] <- len(line)
			}
		}
	}()
	return l
}

// call implements target.
func (l *pipeline) call(worker int) time.Duration {
	began := time.Now()
	l.mu.Lock()
	_, err := l.p.stdin.Write(l.message[worker])
	l.mu.Unlock()
	size := <-l.answers[worker]
	took := time.Since(began)
	if err != nil || size < l.size || size > l.size+2 {
		l.p.b.Errorf("a response has %d bytes, want %d: %v", size, l.size, err)
	}
	return took
}

// A web is a set of clients of an MCP endpoint over HTTP.
type web struct {
	clients []*webClient // by worker
	message [][]byte     // by worker
	size    int
}

// connectAll connects clients to the endpoint at url.
func connectAll(b *testing.B, url string, params func(c caller) any) *web {
	b.Helper()
	w := &web{}
	for worker := range clients {
		c := connect(b, url)
		p := params(c)
		_, w.size, _ = c.call("tools/call", p)
		w.clients, w.message = append(w.clients, c), append(w.message, request(b, worker+100, "tools/call", p))
	}
	return w
}

// call implements target.
func (w *web) call(worker int) time.Duration {
	began := time.Now()
	body := w.clients[worker].post(w.message[worker])
	took := time.Since(began)
	// The ids of calls and of events differ in length.
	if len(body) < w.size-8 || len(body) > w.size+8 || bytes.Contains(body, []byte(`"error":{`)) {
		w.clients[worker].b.Errorf("a response has %d bytes, want about %d", len(body), w.size)
	}
	return took
}

// rounds is how often each value is measured, in turn with the others. The median
// of the rounds is reported, and the best, which other programs on the machine
// disturbed the least.
const rounds = 7

// middle returns the median of values, which must not be empty.
func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// BenchmarkThroughput measures how many calls a second this program's MCP layer
// serves, and how many the bare SDK serves with the same tool, which returns 20
// hits. The two take turns. The processor time is that of the server.
func BenchmarkThroughput(b *testing.B) {
	stdio := func(b *testing.B, role, gogc string) (*process, target) {
		p := serveAs(b, role+"-stdio", gogc)
		p.initialize()
		return p, p.pipeline(b, searchParams("search"))
	}
	web := func(b *testing.B, role, gogc string) (*process, target) {
		p := serveAs(b, role+"-http", gogc)
		return p, connectAll(b, p.await(`^listening on (http://\S+)`)[1], func(caller) any { return searchParams("search") })
	}
	for _, n := range []int{1, clients} {
		b.Run(fmt.Sprintf("stdio-%d", n), func(b *testing.B) { throughput(b, n, stdio) })
		b.Run(fmt.Sprintf("http-%d", n), func(b *testing.B) { throughput(b, n, web) })
	}
}

// searchParams returns the params of a search with a tool.
func searchParams(name string) any {
	return map[string]any{"name": name, "arguments": map[string]any{"query": "budget"}}
}

// throughput makes b.N calls in each round to each server, with n of them in
// flight.
func throughput(b *testing.B, n int, start func(b *testing.B, role, gogc string) (*process, target)) {
	servers := []struct{ name, role, gogc string }{{"layer", "layer", ""}, {"sdk", "sdk", ""}, {"sdk-GOGC-400", "sdk", "400"}}
	perSecond, micros := map[string][]float64{}, map[string][]float64{}
	processes, targets := make([]*process, len(servers)), make([]target, len(servers))
	for i, s := range servers {
		processes[i], targets[i] = start(b, s.role, s.gogc)
		calls(targets[i], n, b.N/4) // warms up
	}
	for range rounds {
		for i, s := range servers {
			before := processes[i].used()
			_, took := calls(targets[i], n, b.N)
			perSecond[s.name] = append(perSecond[s.name], float64(b.N)/took.Seconds())
			micros[s.name] = append(micros[s.name], 1e6*(processes[i].used()-before)/float64(b.N))
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, s := range servers {
		b.ReportMetric(middle(perSecond[s.name]), s.name+"-calls/s")
		b.ReportMetric(slices.Max(perSecond[s.name]), s.name+"-best-calls/s")
		b.ReportMetric(middle(micros[s.name]), s.name+"-processor-µs")
	}
	b.ReportMetric(middle(perSecond["layer"])/middle(perSecond["sdk"]), "against-sdk-times")
}
