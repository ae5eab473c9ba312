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
// to send a request to the bridge. Its numbers are calls in one round.
type path struct {
	name       string
	warm       int // calls that are not measured
	sequential int
	parallel   int // by all callers together; 0 skips this measurement
	open       func(b *testing.B) (*openPath, error)
	adds       bool // whether to report the time in addition to that of the first path
}

// callers is the number of concurrent callers.
const callers = 16

// An openPath is a path that is ready for calls.
type openPath struct {
	call   func() error
	pids   []int // the processes of the bridge, without the MCP server; nil skips the memory
	finish func()
}

// A measurement is the result of one round of a path.
type measurement struct {
	sequential, parallel Times
	rate                 float64 // calls per second of all callers together
	idle, loaded         float64 // MB; 0 for unknown
	failed               error   // why the path cannot be used
}

// round opens a path, measures it and closes it.
func (p *path) round(b *testing.B) measurement {
	b.Helper()
	o, err := p.open(b)
	if err != nil {
		return measurement{failed: err}
	}
	defer o.finish()
	if err := o.call(); err != nil {
		return measurement{failed: fmt.Errorf("the first call: %w", err)}
	}
	t := measurement{idle: residentSet(b, o.pids)}
	for range p.warm {
		o.mustCall(b)
	}
	for range p.sequential {
		began := time.Now()
		o.mustCall(b)
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
func (o *openPath) mustCall(b *testing.B) {
	if err := o.call(); err != nil {
		b.Fatal(err)
	}
}

// atOnce makes n calls in all with concurrent callers.
func (o *openPath) atOnce(b *testing.B, n int) Times {
	b.Helper()
	jobs := make(chan struct{}, n)
	for range n {
		jobs <- struct{}{}
	}
	close(jobs)
	all, errs := make([]Times, callers), make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range jobs {
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

// residentSet returns the memory of processes in MB (10^6 bytes), 0 if the
// system does not report it.
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

// memoryOf is [process.memory] for any process.
func memoryOf(b *testing.B, pid int, name string) float64 {
	b.Helper()
	p := &process{b: b, cmd: &exec.Cmd{Process: &os.Process{Pid: pid}}}
	return p.memory(name)
}

// BenchmarkBridgeInvoke measures calls of one tool of one MCP server on all
// paths. The paths take turns in -benchtime rounds, and each round opens them
// again. The first path uses no bridge and is the baseline.
func BenchmarkBridgeInvoke(b *testing.B) {
	alternate(b, findPeers(b).paths())
}

// BenchmarkBridgeCall measures the cost for an agent that starts a process for
// every call.
func BenchmarkBridgeCall(b *testing.B) {
	alternate(b, findPeers(b).commands())
}

// alternate measures all paths and reports each as a sub-benchmark. The first
// sub-benchmark takes all measurements.
func alternate(b *testing.B, paths []*path) {
	rounds := make([][]measurement, len(paths))
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
			reportRounds(b, rounds[i])
			if p.adds && rounds[0][0].failed == nil {
				reportAdded(b, rounds[i], rounds[0])
			}
		})
	}
}

// reportRounds reports the best and the median of the rounds.
func reportRounds(b *testing.B, rounds []measurement) {
	b.Helper()
	each := func(of func(measurement) float64) []float64 { return sortedBy(rounds, of) }
	p50 := each(func(t measurement) float64 { return ms(t.sequential.at(0.5)) })
	p99 := each(func(t measurement) float64 { return ms(t.sequential.at(0.99)) })
	b.ReportMetric(p50[0], "p50-best-ms")
	b.ReportMetric(median(p50), "p50-median-ms")
	b.ReportMetric(p99[0], "p99-best-ms")
	b.ReportMetric(median(p99), "p99-median-ms")
	if rounds[0].parallel != nil {
		rate := each(func(t measurement) float64 { return t.rate })
		b.ReportMetric(rate[len(rate)-1], "16-at-once-best-calls/s")
		b.ReportMetric(median(rate), "16-at-once-median-calls/s")
		b.ReportMetric(median(each(func(t measurement) float64 { return ms(t.parallel.at(0.5)) })), "16-at-once-p50-median-ms")
	}
	if rounds[0].loaded > 0 {
		b.ReportMetric(median(each(func(t measurement) float64 { return t.idle })), "idle-MB")
		loaded := each(func(t measurement) float64 { return t.loaded })
		b.ReportMetric(loaded[len(loaded)-1], "loaded-most-MB")
	}
}

// reportAdded reports how much longer a path takes than the baseline in the
// same round.
func reportAdded(b *testing.B, rounds, baseline []measurement) {
	b.Helper()
	var added []float64
	for i := range rounds {
		added = append(added, ms(rounds[i].sequential.at(0.5)-baseline[i].sequential.at(0.5)))
	}
	slices.Sort(added)
	b.ReportMetric(added[0], "added-p50-best-ms")
	b.ReportMetric(median(added), "added-p50-median-ms")
}

// sortedBy returns a value of all rounds, sorted.
func sortedBy[T any](rounds []T, of func(T) float64) []float64 {
	var all []float64
	for _, r := range rounds {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all
}

// median returns the middle of sorted values, the upper one of two.
func median[T cmp.Ordered](sorted []T) T { return sorted[len(sorted)/2] }
