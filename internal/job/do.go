package job

import (
	"context"
	"math"
	"time"
)

// Do runs a task, or joins the job of the same Key that runs, waits or is kept
// as done. If that ends within the manager's threshold, Do returns its result
// or its error; a result kept from before comes at once. Otherwise it returns
// a handle, the job's status, and the work goes on. One of the three results
// is given.
//
// While Do waits, the end of ctx takes this caller out: Do returns ctx's error,
// and when the last caller of the job has gone and none has a handle, the work
// is cancelled. After a handle was returned only [Manager.Cancel] and
// [Manager.Close] end the work. Who maps a protocol's cancellation must
// therefore cancel ctx while the request is unanswered, and call Cancel where
// the handle can't be delivered or where the request is cancelled after its
// answer.
//
// A job that ends before a handle was given out is forgotten, its result
// included: only handles are kept for. A job that failed or was cancelled is
// never joined; the next caller of its Key starts anew.
//
// Errors are those of Run, of kind Busy where too many jobs wait already, and of
// kind Unavailable where somebody else cancelled the shared job or the manager
// is closed.
func (m *Manager) Do(ctx context.Context, t Task) (any, *Status, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	tell := &teller{notify: t.Notify}
	st, version, err := m.wait(ctx, t, tell)
	switch {
	case err != nil:
		return nil, nil, err
	case st.State.Ended():
		tell.tell(st, version)
		return st.Result, nil, st.Err
	}
	return nil, &st, nil
}

// wait joins a job and waits for its end, but no longer than the threshold.
func (m *Manager) wait(ctx context.Context, t Task, tell *teller) (Status, int, error) {
	m.mu.Lock()
	j, err := m.joinLocked(ctx, t)
	if err != nil || m.opts.Threshold <= 0 {
		defer m.mu.Unlock()
		if err != nil {
			return Status{}, 0, err
		}
		// In one step with joining: not even the quickest work ends first.
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

// partLocked ends a caller's wait. Where the job goes on, the caller gets a
// handle, and somebody who goes on telling; or ctx's error, if it no longer
// cares.
func (m *Manager) partLocked(ctx context.Context, j *job, tell *teller) (Status, int, error) {
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

// follow tells how a job goes until it has ended or one of the channels is
// ready.
func (m *Manager) follow(gone <-chan struct{}, enough <-chan time.Time, j *job, tell *teller) {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for {
		m.mu.Lock()
		st, version, changed := j.status, j.version, j.watchLocked()
		m.mu.Unlock()
		timer.Reset(tell.tell(st, version))
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

// A teller calls one Notify, with values that rise. One goroutine uses it at a
// time.
type teller struct {
	notify  func(Status) // nil to tell nothing
	at      time.Time    // of the last call
	version int          // of the job at the last call
	value   float64      // what the last call said
}

// tell calls Notify if it is time to, and returns when to look again.
func (t *teller) tell(st Status, version int) time.Duration {
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
		// The total itself is kept for the end.
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

// step is by how much a value rises where nothing has happened. It has a short
// decimal form.
const step = 1.0 / 1024

// above returns a number a little larger than v, and smaller than a total that
// v has not reached.
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
