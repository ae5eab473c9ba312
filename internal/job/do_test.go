package job

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/google/go-cmp/cmp"
)

func nanInf() (nan, inf float64) { return math.NaN(), math.Inf(1) }

type ctxKey struct{}

// The end of a request's context before a handle was given cancels its work;
// afterwards it doesn't.
func TestCallerGoes(t *testing.T) {
	for _, tt := range []struct {
		threshold time.Duration
		want      bool
	}{{10 * time.Second, true}, {2 * time.Second, false}} {
		run(t, Options{Threshold: tt.threshold}, func(t *testing.T, m *Manager) {
			var cancelled, value atomic.Bool
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, true))
			time.AfterFunc(5*time.Second, cancel)
			_, st, err := m.Do(ctx, Task{Key: "k", Run: func(ctx context.Context, _ Report) (any, error) {
				value.Store(ctx.Value(ctxKey{}) == true)
				select {
				case <-ctx.Done():
					cancelled.Store(true)
					return nil, ctx.Err()
				case <-time.After(20 * time.Second):
					return "r", nil
				}
			}})
			if tt.want != errors.Is(err, context.Canceled) || tt.want != (st == nil) {
				t.Errorf("threshold %v: Do() = %+v, %v", tt.threshold, st, err)
			}
			time.Sleep(10 * time.Second)
			if cancelled.Load() != tt.want || !value.Load() {
				t.Errorf("threshold %v: work cancelled %t, want %t; context has the caller's values: %t",
					tt.threshold, cancelled.Load(), tt.want, value.Load())
			}
			if tt.want && len(m.byKey) != 0 {
				t.Errorf("threshold %v: cancelled work can be joined", tt.threshold)
			}
			time.Sleep(time.Minute)
		})
	}
}

func TestCallerHasGone(t *testing.T) {
	run(t, Options{}, func(t *testing.T, m *Manager) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, st, err := m.Do(ctx, Task{Run: func(context.Context, Report) (any, error) {
			t.Error("work was started without a caller")
			return nil, nil
		}})
		if st != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("Do() = %v, %v", st, err)
		}
	})
}

func TestJoin(t *testing.T) {
	run(t, Options{Threshold: 5 * time.Second}, func(t *testing.T, m *Manager) {
		var runs atomic.Int32
		task := Task{Key: "k", Run: func(ctx context.Context, r Report) (any, error) {
			runs.Add(1)
			return lasting(7*time.Second, "r")(ctx, r)
		}}
		var wg sync.WaitGroup
		first := handleLater(t, m, &wg, task)
		time.Sleep(4 * time.Second)
		// It ends within the threshold of this one.
		wg.Go(func() {
			if result, st, err := m.Do(t.Context(), task); result != "r" || st != nil || err != nil {
				t.Errorf("the second caller got %v, %+v, %v", result, st, err)
			}
		})
		wg.Wait()
		// Kept, because the first one has a handle.
		if got, err := m.Status("", <-first); got.Result != "r" || err != nil {
			t.Errorf("Status() = %+v, %v", got, err)
		}
		start := time.Now()
		if result, _, err := m.Do(t.Context(), task); result != "r" || err != nil || time.Since(start) != 0 {
			t.Errorf("the third caller got %v, %v after %v", result, err, time.Since(start))
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("the work ran %d times, want once", n)
		}
		// Another key, and no key, share nothing.
		for i, key := range []string{"other", "", ""} {
			other := task
			other.Key = key
			handle(t, m, other)
			if n := runs.Load(); int(n) != i+2 {
				t.Errorf("the work ran %d times, want %d", n, i+2)
			}
		}
		time.Sleep(11 * time.Minute)
		handle(t, m, task)
		if n := runs.Load(); n != 5 {
			t.Errorf("the work ran %d times, want another run after ten minutes", n)
		}
	})
}

// handleLater calls Do in a goroutine, which must yield a handle; its id comes
// through the channel.
func handleLater(t *testing.T, m *Manager, wg *sync.WaitGroup, task Task) <-chan string {
	id := make(chan string, 1)
	wg.Go(func() {
		_, st, err := m.Do(t.Context(), task)
		if st == nil {
			t.Errorf("Do() = no handle, %v", err)
			st = &Status{}
		}
		id <- st.ID
	})
	return id
}

// With a threshold of 0, what is kept still comes at once.
func TestJoinKeptAtOnce(t *testing.T) {
	run(t, Options{}, func(t *testing.T, m *Manager) {
		task := Task{Key: "k", Run: lasting(time.Second, "r")}
		id := handle(t, m, task).ID
		if again := handle(t, m, task).ID; again != id {
			t.Errorf("the same work has the ids %s and %s", id, again)
		}
		time.Sleep(2 * time.Second)
		if result, st, err := m.Do(t.Context(), task); result != "r" || st != nil || err != nil {
			t.Errorf("Do() = %v, %v, %v, want the kept result", result, st, err)
		}
	})
}

// With a threshold of 0 even work that ends at once gets a handle, so that a
// client can rely on it.
func TestThresholdZero(t *testing.T) {
	run(t, Options{MaxRunning: 1000}, func(t *testing.T, m *Manager) {
		for range 1000 {
			st := handle(t, m, Task{Run: func(context.Context, Report) (any, error) { return 1, nil }})
			if st.State != Running {
				t.Fatalf("State = %q, want running", st.State)
			}
		}
	})
}

// A failure is not shared with those who come later.
func TestJoinAfterFailure(t *testing.T) {
	run(t, Options{}, func(t *testing.T, m *Manager) {
		fail := Task{Key: "k", Run: func(context.Context, Report) (any, error) { return nil, errkind.Timeout }}
		a := handle(t, m, fail)
		synctest.Wait()
		b := handle(t, m, Task{Key: "k", Run: lasting(time.Minute, 1)})
		if a.ID == b.ID || state(t, m, a.ID) != Failed || state(t, m, b.ID) != Running {
			t.Errorf("after a failure: %q, then %q", state(t, m, a.ID), state(t, m, b.ID))
		}
		if err := m.Cancel("", b.ID); err != nil {
			t.Error(err)
		}
		if c := handle(t, m, fail); c.ID == b.ID {
			t.Errorf("a cancelled job was joined")
		}
	})
}

// Work continues until the last of its callers has gone, and if one of
// them has a handle, beyond that.
func TestJoinedCallersGo(t *testing.T) {
	run(t, Options{Threshold: time.Minute}, func(t *testing.T, m *Manager) {
		for _, handed := range []bool{false, true} {
			var cancelled atomic.Bool
			task := Task{Key: "k", Run: func(ctx context.Context, r Report) (any, error) {
				defer func() { cancelled.Store(ctx.Err() != nil) }()
				return lasting(time.Hour, "r")(ctx, r)
			}}
			var wg sync.WaitGroup
			if handed {
				handle(t, m, task)
			}
			var cancels []context.CancelFunc
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				cancels = append(cancels, cancel)
				wg.Go(func() {
					if _, _, err := m.Do(ctx, task); !errors.Is(err, context.Canceled) {
						t.Errorf("Do() = %v, want context.Canceled", err)
					}
				})
			}
			synctest.Wait()
			if len(m.live) != 1 {
				t.Fatalf("%d jobs, want one", len(m.live))
			}
			cancels[0]()
			synctest.Wait()
			if cancelled.Load() {
				t.Errorf("handle %t: cancelled while one still waits", handed)
			}
			cancels[1]()
			synctest.Wait()
			if cancelled.Load() == handed {
				t.Errorf("handle %t: cancelled when the last one went: %t", handed, cancelled.Load())
			}
			wg.Wait()
		}
	})
}

// A caller that waits for a job that another one cancels is advised to try again.
func TestJoinedJobIsCancelled(t *testing.T) {
	run(t, Options{Threshold: time.Minute}, func(t *testing.T, m *Manager) {
		task := Task{Key: "k", Run: lasting(time.Hour, nil)}
		id := handle(t, m, task).ID
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, st, err := m.Do(t.Context(), task); st != nil || !errkind.Retryable(err) {
				t.Errorf("Do() = %+v, %v, want a retryable error", st, err)
			}
		})
		synctest.Wait()
		if err := m.Cancel("", id); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// A note is one call of Notify, with its time.
type note struct {
	At       time.Duration
	State    State
	Progress float64
	Total    float64
	Message  string
}

// listen makes a Notify and a function that returns its notifications.
func listen() (notify func(Status), notified func() []note) {
	var mu sync.Mutex
	var notes []note
	start := time.Now()
	return func(st Status) {
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, note{time.Since(start), st.State, st.Progress, st.Total, st.Message})
		}, func() []note {
			mu.Lock()
			defer mu.Unlock()
			return notes
		}
}

func TestNotify(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	tests := []struct {
		name string
		run  func(context.Context, Report) (any, error)
		want []note
	}{
		{"at once", lasting(0, nil), []note{{0, Running, 0, 0, "running"}, {0, Done, step, 0, "done"}}},
		{"silent", lasting(12*s, nil), []note{
			{0, Running, 0, 0, "running"}, {5 * s, Running, step, 0, "running"},
			{10 * s, Running, 2 * step, 0, "running"}, {12 * s, Done, 3 * step, 0, "done"}}},
		{"phases", func(_ context.Context, report Report) (any, error) {
			time.Sleep(s)
			report(1, 3, "fetching")
			time.Sleep(s)
			report(2, 3, "converting")
			time.Sleep(6 * s)
			report(3, 3, "chunking")
			time.Sleep(s)
			return nil, nil
		}, []note{
			{0, Running, 0, 0, "running"}, {s, Running, 1, 3, "fetching"}, {2 * s, Running, 2, 3, "converting"},
			{7 * s, Running, 2 + step, 3, "converting"}, {8 * s, Running, 3 - step, 3, "chunking"}, {9 * s, Done, 3,
				3, "done"}}},
		{"flood", func(_ context.Context, report Report) (any, error) {
			for i := range 25 {
				report(float64(i), 0, "reading")
				time.Sleep(10 * ms)
			}
			return nil, errors.New("x")
		}, []note{
			{0, Running, 0, 0, "reading"}, {100 * ms, Running, 9, 0, "reading"},
			{200 * ms, Running, 19, 0, "reading"}, {250 * ms, Failed, 24, 0, "failed"}}},
	}
	for _, tt := range tests {
		for _, threshold := range []time.Duration{time.Hour, 3 * s} { // reported by Do, and after it
			run(t, Options{Threshold: threshold}, func(t *testing.T, m *Manager) {
				notify, notified := listen()
				if _, st, _ := m.Do(t.Context(), Task{Run: tt.run, Notify: notify}); st != nil {
					time.Sleep(time.Minute)
				}
				got := notified()
				if len(got) > 0 && tt.name == "flood" {
					// Whether the first report or the start is reported, and whether
					// the one of the same moment is, the scheduler decides.
					got[0].Message = "reading"
					for i := 1; i < len(got)-1; i++ {
						got[i].Progress = tt.want[min(i, len(tt.want)-1)].Progress
					}
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("%s, threshold %v (-want +got):\n%s", tt.name, threshold, d)
				}
			})
		}
	}
}

// Each caller gets increasing values, including callers that join later. A caller
// whose Notify blocks does not delay the others.
func TestNotifySeveral(t *testing.T) {
	run(t, Options{Threshold: 20 * time.Second}, func(t *testing.T, m *Manager) {
		task := Task{Key: "k", Run: func(_ context.Context, report Report) (any, error) {
			for i := range 10 {
				time.Sleep(time.Second)
				report(float64(i), 9, "reading")
			}
			return "r", nil
		}}
		release := make(chan struct{})
		var wg sync.WaitGroup
		stuck := task
		stuck.Notify = func(Status) { <-release }
		wg.Go(func() { m.Do(t.Context(), stuck) })
		synctest.Wait()
		for range 2 {
			time.Sleep(2 * time.Second)
			wg.Go(func() {
				notify, notified := listen()
				mine := task
				mine.Notify = notify
				if result, _, err := m.Do(t.Context(), mine); result != "r" || err != nil {
					t.Errorf("Do() = %v, %v", result, err)
				}
				notes := notified()
				if len(notes) < 7 || notes[len(notes)-1].Progress != 9 || notes[len(notes)-1].State != Done {
					t.Errorf("a caller was notified of %v", notes)
				}
				for i := 1; i < len(notes); i++ {
					if notes[i].Progress <= notes[i-1].Progress {
						t.Errorf("%v came after %v", notes[i], notes[i-1])
					}
				}
			})
		}
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if len(m.live) != 0 {
			t.Errorf("a caller that does not listen holds up the job")
		}
		close(release)
		wg.Wait()
	})
}

// A cancelled request hears nothing more.
func TestNotifyCancelled(t *testing.T) {
	run(t, Options{}, func(t *testing.T, m *Manager) {
		notify, notified := listen()
		st := handle(t, m, Task{Run: lasting(time.Hour, nil), Notify: notify})
		time.Sleep(time.Second)
		if err := m.Cancel("", st.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if got := notified(); len(got) != 1 || got[0].State != Running {
			t.Errorf("notified of %v, want the start alone", got)
		}
	})
}

func TestAbove(t *testing.T) {
	tests := []struct{ v, total float64 }{
		{0, 0}, {0, 1}, {0, 1e-300}, {1, 1}, {5, 1}, {1e300, 0}, {math.Nextafter(1, 0), 1}, {0, 5e-324},
		{1 << 60, 1 << 61},
	}
	for _, tt := range tests {
		v := tt.v
		for range 1000 {
			next := above(v, tt.total)
			if next <= v {
				t.Errorf("above(%v, %v) = %v, want more", v, tt.total, next)
				break
			}
			v = next
		}
	}
	for v, i := 0.0, 0; i < 40; i++ {
		if v = above(v, 1.0/256); v >= 1.0/256 {
			t.Errorf("after %d steps %v has reached its total", i, v)
		}
	}
}

// Many callers at once, for the race detector.
func TestLoad(t *testing.T) {
	m := New(Options{Threshold: time.Millisecond, MaxRunning: 4, MaxQueued: 1000, MaxKept: 10, MaxBytes: 100})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				cancel()
			}
			_, st, err := m.Do(ctx, Task{
				Key: string(rune('a' + i%7)),
				Run: func(ctx context.Context, report Report) (any, error) {
					for n := range 50 {
						report(float64(n), 50, "x")
					}
					return i, ctx.Err()
				},
				Size:   func(any) int64 { return 30 },
				Notify: func(Status) {},
			})
			if st == nil {
				if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, errkind.Unavailable) {
					t.Errorf("Do() = %v", err)
				}
				return
			}
			if _, err := m.Wait(t.Context(), "", st.ID, time.Millisecond); err != nil &&
				!errors.Is(err, errkind.NotFound) {
				t.Errorf("Wait() = %v", err)
			}
			if err := m.Cancel("", st.ID); err != nil && !errors.Is(err, errkind.NotFound) {
				t.Errorf("Cancel() = %v", err)
			}
		})
	}
	wg.Wait()
	if err := m.Close(t.Context()); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

func BenchmarkDo(b *testing.B) {
	m := New(Options{Threshold: time.Second})
	task := Task{Run: func(context.Context, Report) (any, error) { return 1, nil }}
	for b.Loop() {
		if _, _, err := m.Do(b.Context(), task); err != nil {
			b.Fatal(err)
		}
	}
}
