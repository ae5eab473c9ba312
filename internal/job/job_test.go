package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// run is a test in a bubble with its own clock. The manager is closed at its
// end, which must leave nothing behind.
func run(t *testing.T, o Options, f func(t *testing.T, m *Manager)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := New(o)
		f(t, m)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if len(m.jobs)+len(m.byKey)+len(m.live)+len(m.waiting)+len(m.kept)+m.running+m.active != 0 || m.bytes != 0 {
			t.Errorf("after Close the manager contains %+v", m)
		}
	})
}

// lasting is work of that length, which ends early with its context.
func lasting(d time.Duration, result any) func(context.Context, Report) (any, error) {
	return func(ctx context.Context, _ Report) (any, error) {
		select {
		case <-time.After(d):
			return result, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// handle starts a task that must yield a handle.
func handle(t *testing.T, m *Manager, task Task) *Status {
	t.Helper()
	result, st, err := m.Do(t.Context(), task)
	if st == nil {
		t.Fatalf("Do() = %v, no handle, %v", result, err)
	}
	return st
}

func state(t *testing.T, m *Manager, id string) State {
	t.Helper()
	st, err := m.Status("", id)
	if errors.Is(err, errkind.NotFound) {
		return ""
	}
	if err != nil {
		t.Errorf("Status() = %v", err)
	}
	return st.State
}

func TestDo(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name      string
		threshold time.Duration
		run       func(context.Context, Report) (any, error)
		result    any
		state     State // of the handle, "" for none
		err       error
		took      time.Duration
	}{
		{"quick", 2 * time.Second, lasting(time.Second, "r"), "r", "", nil, time.Second},
		{"slow", 2 * time.Second, lasting(3*time.Second, "r"), nil, Running, nil, 2 * time.Second},
		{"threshold 0", 0, lasting(0, "r"), nil, Running, nil, 0},
		{"error", 2 * time.Second, func(context.Context, Report) (any, error) { return "r", broken }, nil, "", broken,
			0},
		{"panic", 2 * time.Second, func(context.Context, Report) (any, error) { panic("at the disco") }, nil, "",
			errAborted, 0},
		{"goexit", 2 * time.Second, func(context.Context, Report) (any, error) { runtime.Goexit(); return 1, nil }, nil,
			"",
			errAborted, 0},
	}
	for _, tt := range tests {
		run(t, Options{Threshold: tt.threshold}, func(t *testing.T, m *Manager) {
			start := time.Now()
			result, st, err := m.Do(t.Context(), Task{Run: tt.run})
			if result != tt.result || !errors.Is(err, tt.err) || (st != nil) != (tt.state != "") || st != nil &&
				st.State != tt.state {
				t.Errorf("%s: Do() = %v, %+v, %v, want %v, %q, %v", tt.name, result, st, err, tt.result, tt.state,
					tt.err)
			}
			if took := time.Since(start); took != tt.took {
				t.Errorf("%s: Do() took %v, want %v", tt.name, took, tt.took)
			}
			if st == nil && len(m.jobs)+len(m.kept) > 0 {
				t.Errorf("%s: a job that cannot be queried is kept", tt.name)
			}
		})
	}
}

// A job of which there is a handle is asked for until ten minutes after its end.
func TestStatus(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name string
		err  error
		end  Status
	}{
		{"done", nil, Status{State: Done, Progress: 4, Total: 4, Message: "done", Result: "text"}},
		{"failed", broken, Status{State: Failed, Progress: 1, Total: 4, Message: "failed", Err: broken}},
	}
	for _, tt := range tests {
		run(t, Options{Threshold: time.Second}, func(t *testing.T, m *Manager) {
			start := time.Now()
			st := handle(t, m, Task{Run: func(_ context.Context, report Report) (any, error) {
				time.Sleep(2 * time.Second) // in the bubble's time
				report(1, 4, "fetching")
				time.Sleep(10 * time.Second)
				return "text", tt.err
			}})
			if len(st.ID) < 26 {
				t.Errorf("ID = %q, want at least 128 bits", st.ID)
			}
			ignore := cmpopts.IgnoreFields(Status{}, "Err")
			want := Status{ID: st.ID, State: Running, Message: "running", StartedAt: start, UpdatedAt: start}
			if d := cmp.Diff(want, *st, ignore); d != "" {
				t.Errorf("%s: the handle (-want +got):\n%s", tt.name, d)
			}
			time.Sleep(2 * time.Second)
			got, err := m.Status("", st.ID)
			want.Progress, want.Total, want.Message, want.UpdatedAt = 1, 4, "fetching", start.Add(2*time.Second)
			if d := cmp.Diff(want, got, ignore); d != "" || err != nil {
				t.Errorf("%s: while it runs, %v (-want +got):\n%s", tt.name, err, d)
			}
			time.Sleep(10*time.Minute + 8*time.Second)
			got, err = m.Status("", st.ID)
			want = tt.end
			want.ID, want.StartedAt, want.UpdatedAt = st.ID, start, start.Add(12*time.Second)
			if d := cmp.Diff(want, got, ignore); d != "" || err != nil || !errors.Is(got.Err, tt.end.Err) {
				t.Errorf("%s: at the end, %v, Err %v (-want +got):\n%s", tt.name, err, got.Err, d)
			}
			time.Sleep(2 * time.Second)
			if _, err := m.Status("", st.ID); !errors.Is(err, errkind.NotFound) {
				t.Errorf("%s: ten minutes later: %v, want NotFound", tt.name, err)
			}
			if _, err := m.Wait(t.Context(), "", st.ID, time.Second); !errors.Is(err, errkind.NotFound) {
				t.Errorf("%s: ten minutes later Wait() = %v, want NotFound", tt.name, err)
			}
			if err := m.Cancel("", st.ID); !errors.Is(err, errkind.NotFound) {
				t.Errorf("%s: ten minutes later Cancel() = %v, want NotFound", tt.name, err)
			}
		})
	}
}

// Nobody finds a job by guessing, and a job without a handle by no means.
func TestStatusWithoutAHandle(t *testing.T) {
	run(t, Options{Threshold: time.Minute}, func(t *testing.T, m *Manager) {
		go m.Do(t.Context(), Task{Run: lasting(30*time.Second, 1)})
		synctest.Wait()
		for j := range m.live {
			if _, err := m.Status("", j.status.ID); !errors.Is(err, errkind.NotFound) {
				t.Errorf("Status() = %v, want NotFound", err)
			}
		}
		for _, id := range []string{"", "x", strings.Repeat("A", 1e6)} {
			if _, err := m.Status("", id); !errors.Is(err, errkind.NotFound) || len(err.Error()) > 200 {
				t.Errorf("Status(%.10q) = %.300v, want a short NotFound", id, err)
			}
		}
	})
}

// A job's id has no effect for another owner.
func TestOwner(t *testing.T) {
	run(t, Options{Threshold: time.Second}, func(t *testing.T, m *Manager) {
		st := handle(t, m, Task{Owner: "a", Run: lasting(time.Minute, 1)})
		_, unknown := m.Status("b", "made-up")
		for _, owner := range []string{"", "b"} {
			_, err := m.Status(owner, st.ID)
			if !errors.Is(err, errkind.NotFound) || err.Error() != unknown.Error() {
				t.Errorf("Status(%q) = %v, want what an unknown job gets, %v", owner, err, unknown)
			}
			if _, err := m.Wait(t.Context(), owner, st.ID, time.Second); !errors.Is(err, errkind.NotFound) {
				t.Errorf("Wait(%q) = %v, want NotFound", owner, err)
			}
			if err := m.Cancel(owner, st.ID); !errors.Is(err, errkind.NotFound) {
				t.Errorf("Cancel(%q) = %v, want NotFound", owner, err)
			}
		}
		if got, err := m.Status("a", st.ID); err != nil || got.State != Running {
			t.Errorf("Status() of the owner = %+v, %v, want running", got, err)
		}
		if err := m.Cancel("a", st.ID); err != nil {
			t.Errorf("Cancel() of the owner = %v", err)
		}
	})
}

func TestReport(t *testing.T) {
	nan, inf := nanInf()
	type step struct{ done, total float64 }
	tests := []struct{ say, want step }{
		{step{1, 10}, step{1, 10}},
		{step{0.5, 10}, step{1, 10}}, // never falls
		{step{nan, inf}, step{1, 0}}, // no numbers
		{step{inf, 10}, step{1, 10}}, // no number
		{step{-5, -5}, step{1, 0}},   // unknown
		{step{3, 2}, step{3, 0}},     // beyond its total
		{step{7, 7}, step{7, 7}},     //
		{step{7, 0}, step{7, 0}},     // unknown from now on
		{step{8, 1e300}, step{8, 1e300}},
	}
	run(t, Options{}, func(t *testing.T, m *Manager) {
		next := make(chan step)
		var late Report
		st := handle(t, m, Task{Run: func(_ context.Context, report Report) (any, error) {
			late = report
			for s := range next {
				report(s.done, s.total, "")
			}
			return nil, errors.New("the end")
		}})
		for _, tt := range tests {
			next <- tt.say
			synctest.Wait()
			if got, _ := m.Status("", st.ID); got.Progress != tt.want.done || got.Total != tt.want.total ||
				got.Message != "running" {
				t.Errorf("after %v: %v of %v, %q, want %v", tt.say, got.Progress, got.Total, got.Message, tt.want)
			}
		}
		close(next)
		synctest.Wait()
		before, _ := m.Status("", st.ID)
		late(1e9, 0, "late")
		if after, _ := m.Status("", st.ID); after.Progress != before.Progress || after.Message != "failed" {
			t.Errorf("a report after the end changed %+v to %+v", before, after)
		}
	})
}

func TestWait(t *testing.T) {
	run(t, Options{}, func(t *testing.T, m *Manager) {
		st := handle(t, m, Task{Run: func(_ context.Context, report Report) (any, error) {
			time.Sleep(10 * time.Second)
			report(1, 2, "half")
			time.Sleep(10 * time.Second)
			return "r", nil
		}})
		start := time.Now()
		for _, tt := range []struct {
			d    time.Duration
			at   time.Duration // since the start
			want string
		}{
			{0, 0, "running"}, {-1, 0, "running"}, {4 * time.Second, 4 * time.Second, "running"},
			{30 * time.Second, 10 * time.Second, "half"}, {time.Second, 11 * time.Second, "half"},
			{30 * time.Second, 20 * time.Second, "done"}, {30 * time.Second, 20 * time.Second, "done"},
		} {
			got, err := m.Wait(t.Context(), "", st.ID, tt.d)
			if at := time.Since(start); got.Message != tt.want || err != nil || at != tt.at {
				t.Errorf("Wait(%v) = %q, %v at %v, want %q at %v", tt.d, got.Message, err, at, tt.want, tt.at)
			}
		}

		st = handle(t, m, Task{Run: lasting(time.Hour, nil)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Wait(ctx, "", st.ID, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait() past its context = %v", err)
		}
		if got := state(t, m, st.ID); got != Running {
			t.Errorf("a Wait that was given up left the job %q", got)
		}
	})
}

func TestQueue(t *testing.T) {
	run(t, Options{MaxRunning: 2, MaxQueued: 2}, func(t *testing.T, m *Manager) {
		var ids []string
		for i := range 4 {
			ids = append(ids, handle(t, m, Task{Run: lasting(time.Duration(10+i)*time.Second, i)}).ID)
		}
		check := func(want ...State) {
			t.Helper()
			var got []State
			for _, id := range ids {
				got = append(got, state(t, m, id))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("states (-want +got):\n%s", d)
			}
		}
		check(Running, Running, Queued, Queued)
		if got, _ := m.Status("", ids[2]); got.Message != "queued" {
			t.Errorf("message of a queued job = %q", got.Message)
		}
		_, _, err := m.Do(t.Context(), Task{Run: lasting(0, 0)})
		if !errors.Is(err, errkind.Busy) || !errkind.Retryable(err) {
			t.Errorf("Do() with a full queue = %v, want Busy", err)
		}
		time.Sleep(10500 * time.Millisecond)
		check(Done, Running, Running, Queued)
		if err := m.Cancel("", ids[3]); err != nil {
			t.Errorf("Cancel() = %v", err)
		}
		check(Done, Running, Running, Cancelled)
		time.Sleep(20 * time.Second)
		check(Done, Done, Done, Cancelled)
	})
}

// A slot is free only when the cancelled work has returned.
func TestCancelHoldsTheSlot(t *testing.T) {
	run(t, Options{MaxRunning: 1}, func(t *testing.T, m *Manager) {
		var ended atomic.Bool
		a := handle(t, m, Task{Run: func(ctx context.Context, _ Report) (any, error) {
			<-ctx.Done()
			ended.Store(true)
			time.Sleep(time.Second) // tidying up
			return "too late", nil
		}})
		b := handle(t, m, Task{Run: lasting(time.Second, "b")})
		if err := m.Cancel("", a.ID); err != nil {
			t.Errorf("Cancel() = %v", err)
		}
		synctest.Wait()
		if !ended.Load() || state(t, m, a.ID) != Cancelled || state(t, m, b.ID) != Queued {
			t.Errorf("after Cancel: notified %t, %q, %q", ended.Load(), state(t, m, a.ID), state(t, m, b.ID))
		}
		time.Sleep(1500 * time.Millisecond)
		if got := state(t, m, b.ID); got != Running {
			t.Errorf("after the work returned the next job is %q", got)
		}
		time.Sleep(time.Second)
		got, err := m.Status("", a.ID)
		if got.State != Cancelled || got.Result != nil || !errors.Is(got.Err, errkind.Unavailable) || err != nil {
			t.Errorf("a cancelled job = %+v, %v", got, err)
		}
		if err := m.Cancel("", b.ID); err != nil || state(t, m, b.ID) != Done {
			t.Errorf("Cancel() of a done job = %v, now %q", err, state(t, m, b.ID))
		}
	})
}

func TestKept(t *testing.T) {
	size := func(r any) int64 { return int64(len(r.(string))) }
	tests := []struct {
		name  string
		o     Options
		sizes []int
		want  []State
	}{
		{"number", Options{MaxKept: 2}, []int{1, 1, 1}, []State{"", Done, Done}},
		{"bytes", Options{MaxBytes: 10}, []int{4, 4, 4}, []State{"", Done, Done}},
		{"bytes of several", Options{MaxBytes: 10}, []int{3, 3, 10}, []State{"", "", Done}},
		{"too large alone", Options{MaxBytes: 10}, []int{3, 11, 3}, []State{Done, Failed, Done}},
	}
	for _, tt := range tests {
		run(t, tt.o, func(t *testing.T, m *Manager) {
			var ids []string
			for i, n := range tt.sizes {
				ids = append(ids, handle(t, m, Task{Key: fmt.Sprint(i),
					Run:  lasting(time.Second, strings.Repeat("x", n)),
					Size: size}).ID)
				time.Sleep(2 * time.Second)
			}
			for i, id := range ids {
				if got := state(t, m, id); got != tt.want[i] {
					t.Errorf("%s: job %d is %q, want %q", tt.name, i, got, tt.want[i])
				}
				if got, _ := m.Status("", id); got.State == Failed && !errors.Is(got.Err, errkind.TooLarge) {
					t.Errorf("%s: job %d: %v, want TooLarge", tt.name, i, got.Err)
				}
			}
			if len(m.kept) != len(m.jobs) {
				t.Errorf("%s: %d kept, %d to be found", tt.name, len(m.kept), len(m.jobs))
			}
		})
	}
}

// Many small results are all kept for ten minutes.
func TestManyKept(t *testing.T) {
	run(t, Options{MaxRunning: 1000}, func(t *testing.T, m *Manager) {
		for range 1000 {
			handle(t, m, Task{Run: lasting(time.Second, "r")})
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(m.kept); n != 1000 {
			t.Errorf("%d of 1000 jobs are kept", n)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Threshold: time.Minute, MaxRunning: 1})
		errs := make(chan error)
		for range 2 { // one runs, one waits
			go func() {
				_, _, err := m.Do(t.Context(), Task{Run: func(ctx context.Context, _ Report) (any, error) {
					<-ctx.Done()
					time.Sleep(5 * time.Second)
					return nil, ctx.Err()
				}})
				errs <- err
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close() while work tidies up = %v", err)
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, errkind.Unavailable) {
				t.Errorf("Do() of a closed manager = %v, want Unavailable", err)
			}
		}
		start := time.Now()
		if err := m.Close(t.Context()); err != nil || time.Since(start) != 4*time.Second {
			t.Errorf("Close() = %v after %v, want nil after 4s", err, time.Since(start))
		}
		if _, _, err := m.Do(t.Context(), Task{Run: lasting(0, 0)}); !errors.Is(err, errkind.Unavailable) {
			t.Errorf("Do() after Close = %v, want Unavailable", err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Errorf("Close() once more = %v", err)
		}
	})
}
