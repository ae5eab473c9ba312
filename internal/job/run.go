package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A job is one piece of work. The manager's mutex guards all of its fields that
// change.
type job struct {
	key    string
	owner  string
	begin  func()             // starts the work in a goroutine
	cancel context.CancelFunc // ends the context of the work

	status  Status
	changed chan struct{} // closed on the next change; nil if nothing waits for it
	version int           // counts the changes
	waiters int           // callers in Do without a handle
	handles int           // callers that have a handle and have not cancelled
	handed  bool          // a caller has or had a handle
	bytes   int64         // size of the result
	expiry  *time.Timer   // drops the job when it is no longer kept
}

// watchLocked returns a channel that is closed on the next change.
func (j *job) watchLocked() <-chan struct{} {
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	return j.changed
}

// touchLocked records a change and wakes the callers that wait for it.
func (j *job) touchLocked() {
	j.version++
	j.status.UpdatedAt = time.Now()
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// joinLocked returns the job with the task's key and adds a waiter to it. If
// there is no such job, it creates one.
func (m *Manager) joinLocked(ctx context.Context, t Task) (*job, error) {
	if m.closed {
		return nil, errClosed
	}
	if t.Key != "" {
		if j := m.byKey[t.Key]; j != nil {
			j.waiters++
			return j, nil
		}
	}
	free := m.running < m.opts.MaxRunning
	if !free && len(m.waiting) >= m.opts.MaxQueued {
		return nil, fmt.Errorf("too much work is going on (%d running, %d waiting), try again in a little while: %w",
			m.running, len(m.waiting), errkind.Busy)
	}
	now := time.Now()
	j := &job{key: t.Key, owner: t.Owner, waiters: 1, status: Status{ID: rand.Text(), StartedAt: now, UpdatedAt: now,
		State: Queued, Message: string(Queued)}}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	j.cancel = cancel
	j.begin = func() { go m.work(work, j, t) }
	m.live[j] = true
	if t.Key != "" {
		m.byKey[t.Key] = j
	}
	if free {
		m.startLocked(j)
	} else {
		m.waiting = append(m.waiting, j)
	}
	return j, nil
}

// startLocked gives j a slot.
func (m *Manager) startLocked(j *job) {
	m.running++
	m.active++
	j.status.State, j.status.Message = Running, string(Running)
	j.touchLocked()
	j.begin()
}

// An outcome is the result of a task's function.
type outcome struct {
	result any
	size   int64
	err    error
}

// work runs the task, ends its job and releases its slot, even if the task's
// function panics.
func (m *Manager) work(ctx context.Context, j *job, t Task) {
	o := outcome{err: errAborted}
	defer func() { m.settle(ctx, j, o) }()
	o = m.run(ctx, t, func(done, total float64, message string) { m.report(j, done, total, message) })
}

// run calls the functions of the task and recovers from their panics.
func (m *Manager) run(ctx context.Context, t Task, report Report) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			m.log.ErrorContext(ctx, "a job panicked", "panic", p, "stack", string(debug.Stack()))
			o = outcome{err: errAborted}
		}
	}()
	o.result, o.err = t.Run(ctx, report)
	if o.err == nil && t.Size != nil {
		o.size = max(t.Size(o.result), 0)
	}
	return o
}

var errAborted = errors.New("running a job: its function did not return")

// settle ends a job whose work has returned, and gives its slot to the next
// job.
func (m *Manager) settle(ctx context.Context, j *job, o outcome) {
	m.mu.Lock()
	if !j.status.State.Ended() {
		m.finishLocked(j, o)
	}
	m.running--
	if len(m.waiting) > 0 {
		next := m.waiting[0]
		m.waiting = slices.Delete(m.waiting, 0, 1)
		m.startLocked(next)
	}
	st, handed := j.status, j.handed
	m.mu.Unlock()
	if handed {
		m.log.DebugContext(ctx, "a job ended", "state", string(st.State), "took", st.UpdatedAt.Sub(st.StartedAt))
	}
	m.leave()
}

// report records the progress of running work.
func (m *Manager) report(j *job, done, total float64, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.status.State != Running {
		return
	}
	st := &j.status
	if finite(done) {
		st.Progress = max(st.Progress, done)
	}
	st.Total = 0
	if finite(total) && total >= st.Progress {
		st.Total = total
	}
	if message != "" {
		st.Message = message
	}
	j.touchLocked()
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// finishLocked ends a job whose work has returned.
func (m *Manager) finishLocked(j *job, o outcome) {
	if o.err == nil && j.handed && o.size > m.opts.MaxBytes {
		o.err = fmt.Errorf("the result of %d bytes is larger than the %d bytes that can be kept, ask for less: %w",
			o.size, m.opts.MaxBytes, errkind.TooLarge)
	}
	st := &j.status
	if o.err != nil {
		st.State, st.Message, st.Err = Failed, string(Failed), o.err
	} else {
		st.State, st.Message, st.Result, j.bytes = Done, string(Done), o.result, o.size
		st.Progress = max(st.Progress, st.Total)
	}
	m.endLocked(j)
}

// cancelLocked cancels a job that has not ended. If its work is running, it
// keeps its slot until the work returns.
func (m *Manager) cancelLocked(j *job, why error) {
	if j.status.State.Ended() {
		return
	}
	if i := slices.Index(m.waiting, j); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
	j.status.State, j.status.Message, j.status.Err = Cancelled, string(Cancelled), why
	m.endLocked(j)
}

// endLocked updates the state after the end of a job. If no handle was
// returned, the job is dropped, because no caller could query it.
func (m *Manager) endLocked(j *job) {
	j.cancel()
	j.begin, j.cancel = nil, nil // they refer to the caller's request
	j.touchLocked()
	delete(m.live, j)
	if m.byKey[j.key] == j && (!j.handed || j.status.State != Done) {
		delete(m.byKey, j.key)
	}
	if !j.handed {
		return
	}
	m.kept = append(m.kept, j)
	m.bytes += j.bytes
	for len(m.kept) > m.opts.MaxKept || m.bytes > m.opts.MaxBytes {
		m.dropLocked(m.kept[0])
	}
	j.expiry = time.AfterFunc(m.opts.Keep, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dropLocked(j)
	})
}

// dropLocked drops a kept job.
func (m *Manager) dropLocked(j *job) {
	i := slices.Index(m.kept, j)
	if i < 0 {
		return
	}
	m.kept = slices.Delete(m.kept, i, i+1)
	m.bytes -= j.bytes
	delete(m.jobs, j.status.ID)
	if m.byKey[j.key] == j {
		delete(m.byKey, j.key)
	}
	if j.expiry != nil {
		j.expiry.Stop()
	}
}

// leave records that a goroutine of the manager is about to return.
func (m *Manager) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active--
	m.checkIdleLocked()
}

// checkIdleLocked notifies Close when the last goroutine has returned.
func (m *Manager) checkIdleLocked() {
	if m.closed && m.active == 0 {
		close(m.idle)
	}
}
