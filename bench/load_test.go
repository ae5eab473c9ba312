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

// clients is how many clients there are where there are many.
const clients = 16

// A target is something that can be called by several workers at once. call makes
// one call and returns how long it took from the first byte sent to the last one
// received.
type target interface {
	call(worker int) time.Duration
}

// calls makes n calls by so many workers, each of which makes the next one when it
// has the answer to the last. It returns how long each took, and all together.
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

// A pipeline is the far side of pipes, called by several workers over them. It has
// a reader of its own from then on: the process must not be called otherwise.
type pipeline struct {
	p       *process
	message [][]byte // by worker
	size    int      // of an answer that is right

	mu      sync.Mutex // held while writing
	answers []chan int // sizes, by worker
}

// pipeline makes the calls of a tool with p.
func (p *process) pipeline(b *testing.B, params any) *pipeline {
	b.Helper()
	_, size, _ := p.call("tools/call", params)
	l := &pipeline{p: p, size: size}
	for worker := range clients {
		// Ids of one length make answers of one size.
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
		l.p.b.Errorf("a call was answered with %d bytes, want %d: %v", size, l.size, err)
	}
	return took
}

// A web is the clients of an MCP endpoint over HTTP.
type web struct {
	clients []*webClient // by worker
	message [][]byte     // likewise
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
		w.clients[worker].b.Errorf("a call was answered with %d bytes, want about %d", len(body), w.size)
	}
	return took
}

// rounds is how often a figure is taken, all others in turn with it. The median of
// the rounds is reported, and the best of them, which other programs on the machine
// have disturbed the least.
const rounds = 7

// middle returns the median of values, which must not be empty.
func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// BenchmarkThroughput measures how many calls a second our layer serves, and how
// many the bare SDK does with the same tool, which answers with 20 hits. The two
// take turns. The processor time is that of the server.
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

// searchParams are the params of a search with a tool.
func searchParams(name string) any {
	return map[string]any{"name": name, "arguments": map[string]any{"query": "budget"}}
}

// throughput makes b.N calls a round of each server with n of them in flight.
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
