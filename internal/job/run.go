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

	"knowhow/internal/errkind"
)

// A job is one piece of work. Its manager's mutex guards all of it that
// changes.
type job struct {
	key    string
	owner  string
	begin  func()             // starts the work in a goroutine of its own
	cancel context.CancelFunc // ends the context of the work

	status  Status
	changed chan struct{} // closed on the next change; nil while nobody looks
	version int           // counts the changes
	waiters int           // callers in Do without a handle
	handed  bool          // somebody has a handle
	bytes   int64         // size of the result
	expiry  *time.Timer   // drops the job once it is kept
}

// watchLocked returns a channel that is closed on the next change.
func (j *job) watchLocked() <-chan struct{} {
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	return j.changed
}

// touchLocked notes a change and tells those who watch.
func (j *job) touchLocked() {
	j.version++
	j.status.UpdatedAt = time.Now()
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// joinLocked returns the job of the task's key with one waiter more; where
// there is none it makes one.
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

// An outcome is what a task's function came to.
type outcome struct {
	result any
	size   int64
	err    error
}

// work runs the task, ends its job and hands its slot on, whatever the task's
// function does.
func (m *Manager) work(ctx context.Context, j *job, t Task) {
	o := outcome{err: errAborted}
	defer func() { m.settle(ctx, j, o) }()
	o = m.run(ctx, t, func(done, total float64, message string) { m.report(j, done, total, message) })
}

// run calls the task's functions and survives their panics.
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

// settle ends a job whose work is over and hands its slot to the next.
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

// report notes what running work says.
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

// finishLocked ends a job whose work has returned by itself.
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

// cancelLocked ends a job that has not ended yet. Its work, if it runs, keeps
// its slot until it returns.
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

// endLocked does what follows from a final state. A job of which nobody has a
// handle is forgotten: nobody could ask for it.
func (m *Manager) endLocked(j *job) {
	j.cancel()
	j.begin, j.cancel = nil, nil // they hold the caller's request
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

// dropLocked forgets a kept job.
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

// leave notes that a goroutine of ours is about to return.
func (m *Manager) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active--
	m.checkIdleLocked()
}

// checkIdleLocked tells Close when the last goroutine has gone.
func (m *Manager) checkIdleLocked() {
	if m.closed && m.active == 0 {
		close(m.idle)
	}
}
