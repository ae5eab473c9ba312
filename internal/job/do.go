package job

import (
	"context"
	"math"
	"time"
)

// Do runs a task, or joins the job of the same Key if it is running, queued, or
// kept as done. If the job ends within the manager's threshold, Do returns its
// result or its error. The result of a kept job is returned at once. Otherwise
// Do returns a handle, the job's status, and the work continues. Exactly one of
// the three results is set.
//
// If ctx ends while Do waits, Do returns ctx's error. When no caller of the job
// is left and no handle was returned, the work is cancelled. After a handle was
// returned, only [Manager.Cancel] and [Manager.Close] end the work. So to
// implement the cancellation of a protocol, cancel ctx while the request is
// unanswered, and call Cancel if the handle cannot be delivered or the request
// is cancelled after its answer.
//
// A job that ends before a handle was returned is forgotten, including its
// result. A job that failed or was cancelled is never joined. The next caller
// with its Key starts a new job.
//
// Errors are those of Run, of kind Busy if too many jobs are queued, and of
// kind Unavailable if another caller cancelled the shared job or the manager is
// closed.
func (m *Manager) Do(ctx context.Context, t Task) (any, *Status, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	tell := &notifier{notify: t.Notify}
	st, version, err := m.wait(ctx, t, tell)
	switch {
	case err != nil:
		return nil, nil, err
	case st.State.Ended():
		tell.notifyIfDue(st, version)
		return st.Result, nil, st.Err
	}
	return nil, &st, nil
}

// wait joins a job and waits for its end, at most until the threshold.
func (m *Manager) wait(ctx context.Context, t Task, tell *notifier) (Status, int, error) {
	m.mu.Lock()
	j, err := m.joinLocked(ctx, t)
	if err != nil || m.opts.Threshold <= 0 {
		defer m.mu.Unlock()
		if err != nil {
			return Status{}, 0, err
		}
		// Started under the same lock as joining, so that even the quickest
		// work cannot end first.
		return m.partLocked(ctx, j, tell)
	}
	m.mu.Unlock()
	threshold := time.NewTimer(m.opts.Threshold)
	defer threshold.Stop()
	m.follow(ctx.Done(), threshold.C, j, tell)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.partLocked(ctx, j, tell)
}

// partLocked ends the wait of a caller. If the job continues, the caller gets a
// handle, and a goroutine keeps reporting its progress. If ctx has ended, the
// caller gets its error.
func (m *Manager) partLocked(ctx context.Context, j *job, tell *notifier) (Status, int, error) {
	j.waiters--
	if err := ctx.Err(); err != nil {
		if j.waiters == 0 && !j.handed {
			m.cancelLocked(j, err)
		}
		return Status{}, 0, err
	}
	if j.status.State.Ended() {
		return j.status, j.version, nil
	}
	j.handed = true
	j.handles++
	m.jobs[j.status.ID] = j
	if tell.notify != nil {
		m.active++
		go func() {
			defer m.leave()
			m.follow(nil, nil, j, tell)
		}()
	}
	return j.status, j.version, nil
}

// follow reports the progress of a job until it has ended or one of the
// channels is ready.
func (m *Manager) follow(gone <-chan struct{}, enough <-chan time.Time, j *job, tell *notifier) {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for {
		m.mu.Lock()
		st, version, changed := j.status, j.version, j.watchLocked()
		m.mu.Unlock()
		timer.Reset(tell.notifyIfDue(st, version))
		if st.State.Ended() {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
		case <-gone:
			return
		case <-enough:
			return
		}
	}
}

// A notifier calls one Notify function with increasing values. Only one
// goroutine uses it at a time.
type notifier struct {
	notify  func(Status) // may be nil
	at      time.Time    // of the last call
	version int          // version of the job at the last call
	value   float64      // Progress in the last call
}

// notifyIfDue calls Notify if it is due, and returns when the next call is due.
func (t *notifier) notifyIfDue(st Status, version int) time.Duration {
	first, ended := t.at.IsZero(), st.State.Ended()
	if t.notify == nil || st.State == Cancelled || ended && !first && version == t.version {
		return heartbeat
	}
	if !first && !ended {
		interval := heartbeat
		if version != t.version {
			interval = minInterval
		}
		if wait := time.Until(t.at.Add(interval)); wait > 0 {
			return wait
		}
	}
	if !ended && st.Total > 0 && st.Progress >= st.Total && t.value < st.Total {
		// The total itself is reserved for the end.
		st.Progress = st.Total - min(step, (st.Total-t.value)/2)
	}
	if !first && st.Progress <= t.value {
		st.Progress = above(t.value, st.Total)
	}
	if st.Progress > st.Total {
		st.Total = 0
	}
	t.notify(st)
	t.at, t.version, t.value = time.Now(), version, st.Progress
	return heartbeat
}

// step is the increase of a value without progress. It has a short decimal
// form.
// decimal form.
const step = 1.0 / 1024

// above returns a number slightly larger than v. It is smaller than the total
// if v is.
func above(v, total float64) float64 {
	next := v + step
	if v < total {
		next = v + min(step, (total-v)/2)
	}
	if next <= v {
		next = math.Nextafter(v, math.Inf(1))
	}
	return next
}
