package bench

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// A path is one way to call the tool echo of the server everything, or one way
// to ask the bridge something. Its sizes say how often in a round.
type path struct {
	name       string
	warm       int // calls that are not measured
	sequential int
	parallel   int // by callers at once; 0 leaves that out
	open       func(b *testing.B) (*opened, error)
	adds       bool // whether it is told what it costs more than the first path
}

// callers is how many callers call at once.
const callers = 16

// opened is a path in use.
type opened struct {
	call   func() error
	pids   []int // the processes of the bridge, without the MCP server; nil has its memory left out
	finish func()
}

// A taken is what one round of a path came to.
type taken struct {
	sequential, parallel Times
	rate                 float64 // calls per second by all callers
	idle, loaded         float64 // MB; 0 for unknown
	failed               error   // that it cannot be used at all
}

// round opens a path, takes its figures and closes it.
func (p *path) round(b *testing.B) taken {
	b.Helper()
	o, err := p.open(b)
	if err != nil {
		return taken{failed: err}
	}
	defer o.finish()
	if err := o.call(); err != nil {
		return taken{failed: fmt.Errorf("the first call: %w", err)}
	}
	t := taken{idle: residentSet(b, o.pids)}
	for range p.warm {
		o.must(b)
	}
	for range p.sequential {
		began := time.Now()
		o.must(b)
		t.sequential = append(t.sequential, time.Since(began))
	}
	if p.parallel > 0 {
		began := time.Now()
		t.parallel = o.atOnce(b, p.parallel)
		t.rate = float64(p.parallel) / time.Since(began).Seconds()
	}
	t.loaded = residentSet(b, o.pids)
	return t
}

// must calls once.
func (o *opened) must(b *testing.B) {
	if err := o.call(); err != nil {
		b.Fatal(err)
	}
}

// atOnce has all callers make n calls between them.
func (o *opened) atOnce(b *testing.B, n int) Times {
	b.Helper()
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	all, errs := make([]Times, callers), make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range work {
				began := time.Now()
				if errs[i] = o.call(); errs[i] != nil {
					return
				}
				all[i] = append(all[i], time.Since(began))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	return slices.Concat(all...)
}

// residentSet returns the memory of processes in MB (10^6 bytes), 0 where the
// system does not tell.
func residentSet(b *testing.B, pids []int) (sum float64) {
	b.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return 0
	}
	for _, pid := range pids {
		sum += memoryOf(b, pid, "VmRSS")
	}
	return sum
}

// memoryOf is [process.memory] of any process.
func memoryOf(b *testing.B, pid int, name string) float64 {
	b.Helper()
	p := &process{b: b, cmd: &exec.Cmd{Process: &os.Process{Pid: pid}}}
	return p.memory(name)
}

// BenchmarkBridgeInvoke measures calls of one tool of one MCP server by all the
// ways there are. The ways take turns, in rounds as many as -benchtime says, and
// each round starts them anew. The first way is the floor: no bridge at all.
func BenchmarkBridgeInvoke(b *testing.B) {
	alternate(b, findPeers(b).paths())
}

// BenchmarkBridgeCall measures what an agent pays that starts a process for
// every call.
func BenchmarkBridgeCall(b *testing.B) {
	alternate(b, findPeers(b).commands())
}

// alternate takes the figures of all paths and tells them, a sub-benchmark a
// path. The first sub-benchmark does the work for all.
func alternate(b *testing.B, paths []*path) {
	rounds := make([][]taken, len(paths))
	for i, p := range paths {
		b.Run(p.name, func(b *testing.B) {
			first := rounds[i] == nil
			for b.Loop() {
				for j := 0; first && j < len(paths); j++ {
					rounds[j] = append(rounds[j], paths[j].round(b))
				}
			}
			b.ReportMetric(0, "ns/op")
			for _, t := range rounds[i] {
				if t.failed != nil {
					b.Skipf("%.200s", t.failed)
				}
			}
			tell(b, rounds[i])
			if p.adds && rounds[0][0].failed == nil {
				tellAdded(b, rounds[i], rounds[0])
			}
		})
	}
}

// tell reports the best and the median of some rounds.
func tell(b *testing.B, rounds []taken) {
	b.Helper()
	each := func(of func(taken) float64) []float64 { return sortedBy(rounds, of) }
	p50 := each(func(t taken) float64 { return ms(t.sequential.at(0.5)) })
	p99 := each(func(t taken) float64 { return ms(t.sequential.at(0.99)) })
	b.ReportMetric(p50[0], "p50-best-ms")
	b.ReportMetric(median(p50), "p50-median-ms")
	b.ReportMetric(p99[0], "p99-best-ms")
	b.ReportMetric(median(p99), "p99-median-ms")
	if rounds[0].parallel != nil {
		rate := each(func(t taken) float64 { return t.rate })
		b.ReportMetric(rate[len(rate)-1], "16-at-once-best-calls/s")
		b.ReportMetric(median(rate), "16-at-once-median-calls/s")
		b.ReportMetric(median(each(func(t taken) float64 { return ms(t.parallel.at(0.5)) })), "16-at-once-p50-median-ms")
	}
	if rounds[0].loaded > 0 {
		b.ReportMetric(median(each(func(t taken) float64 { return t.idle })), "idle-MB")
		loaded := each(func(t taken) float64 { return t.loaded })
		b.ReportMetric(loaded[len(loaded)-1], "loaded-most-MB")
	}
}

// tellAdded reports what a path costs more than the floor in the same round.
func tellAdded(b *testing.B, rounds, floor []taken) {
	b.Helper()
	var added []float64
	for i := range rounds {
		added = append(added, ms(rounds[i].sequential.at(0.5)-floor[i].sequential.at(0.5)))
	}
	slices.Sort(added)
	b.ReportMetric(added[0], "added-p50-best-ms")
	b.ReportMetric(median(added), "added-p50-median-ms")
}

// sortedBy returns a figure of all rounds, the least first.
func sortedBy[T any](rounds []T, of func(T) float64) []float64 {
	var all []float64
	for _, r := range rounds {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all
}

// median returns the middle of sorted figures, the upper one of two.
func median[T cmp.Ordered](sorted []T) T { return sorted[len(sorted)/2] }
