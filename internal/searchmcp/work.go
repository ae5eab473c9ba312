package searchmcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"knowhow/internal/compact"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/search"
)

// The phases of an upstream call (FRS 9.2), as reported in its progress. The
// states queued and done come from the job.
const (
	phaseFetching   = "fetching"
	phaseConverting = "converting"
	phaseChunking   = "chunking"
)

// A work is an upstream call that may outlast its request.
type work struct {
	// key names the call and its arguments. Callers of the same work share it
	// and its result. nil shares nothing.
	key []string

	// run makes the call. Its result is the result of the tool or the resource.
	run func(ctx context.Context, report job.Report) (any, error)

	// recheck asks the service whether the caller may still have a shared
	// result, and returns that result, or nil if the document has changed and
	// run must be called. It is required if key is set.
	recheck func(ctx context.Context, shared any) (any, error)
}

// do runs an upstream call. It returns the result, or a *handle if the call
// takes longer than the threshold. Progress is reported to the request's
// progress token before and after the answer. Cancelling the request cancels
// the call, unless other requests wait for it.
//
// A cached result may be minutes old. In the meantime, the document may have
// moved to another label, or the caller's token may have become invalid. So the
// service is asked before such a result is returned.
func (b *bridge) do(ctx context.Context, w work) (any, error) {
	if b.jobs == nil {
		answer, err := w.run(ctx, func(float64, float64, string) {})
		return answer, b.explained(err)
	}
	for {
		answer, shared, err := b.share(ctx, w)
		if err != nil || !shared {
			return answer, err
		}
		if answer, err = w.recheck(ctx, answer); answer != nil || err != nil {
			return answer, b.explained(err)
		}
		b.changes.Add(1)
	}
}

// explained returns the error of a call in the form that the caller receives.
func (b *bridge) explained(err error) error {
	if err == nil {
		return nil
	}
	return b.explain(err)
}

// share runs an upstream call, or joins one that was started before. It reports
// whether the result is that of an earlier call.
func (b *bridge) share(ctx context.Context, w work) (answer any, shared bool, err error) {
	var watch watcher
	var ran atomic.Bool
	outlasting := context.WithoutCancel(ctx)
	value, st, err := b.jobs.Do(ctx, job.Task{
		Key:   b.key(ctx, w.key),
		Owner: callerOf(ctx),
		Run: func(ctx context.Context, report job.Report) (any, error) {
			ran.Store(true)
			report(0, 0, phaseFetching)
			answer, err := w.run(ctx, report)
			if err = b.explained(err); err != nil {
				err = &failure{err, mcpserver.DescribeError(outlasting, err)}
			}
			return answer, err
		},
		Size: sizeOf,
		Notify: func(st job.Status) {
			mcpserver.Progress(outlasting, st.Progress, st.Total, st.Message)
			if st.State.Ended() {
				watch.end()
			}
		},
	})
	if err != nil || st == nil {
		return value, !ran.Load(), err
	}
	b.interests.add(st.ID)
	stop := mcpserver.AfterCancel(ctx, func() {
		if b.interests.remove(st.ID) {
			// NotFound means that the job ended long ago.
			_ = b.jobs.Cancel(callerOf(ctx), st.ID)
		}
	})
	watch.begin(func() {
		stop()
		b.interests.forget(st.ID)
	})
	h := newHandle(st)
	return &h, false, nil
}

// A failure is the error of a work, with the object that describes it to the
// caller that started the work.
type failure struct {
	error
	object *mcpserver.ErrorObject
}

func (f *failure) Unwrap() error { return f.error }

// key returns the key of reading something. It contains the caller, because the
// result may depend on it, and the number of times that documents were found to
// have changed, so that texts read before a change are no longer shared.
func (b *bridge) key(ctx context.Context, work []string) string {
	if work == nil {
		return ""
	}
	return strings.Join(append(slices.Clone(work), callerOf(ctx), strconv.FormatInt(b.changes.Load(), 10)), "\x00")
}

// callerOf identifies the caller: it returns a hash of the token that the
// caller sends to the service.
func callerOf(ctx context.Context) string {
	sum := sha256.Sum256([]byte(search.TokenFrom(ctx)))
	return hex.EncodeToString(sum[:])
}

// A watcher calls a function when its job has ended. The function may be set
// before or after the end.
type watcher struct {
	mu    sync.Mutex
	ended bool
	f     func()
}

func (w *watcher) begin(f func()) {
	w.mu.Lock()
	w.f = f
	ended := w.ended
	w.mu.Unlock()
	if ended {
		f()
	}
}

func (w *watcher) end() {
	w.mu.Lock()
	w.ended = true
	f := w.f
	w.mu.Unlock()
	if f != nil {
		f()
	}
}

// interests count the requests that were answered with a handle, by job id, so
// that one of several callers cannot cancel the work of the others.
type interests struct {
	mu    sync.Mutex
	count map[string]int
}

func (i *interests) add(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count == nil {
		i.count = map[string]int{}
	}
	i.count[id]++
}

// remove reports whether no request is left.
func (i *interests) remove(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count[id]--; i.count[id] > 0 {
		return false
	}
	delete(i.count, id)
	return true
}

func (i *interests) forget(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.count, id)
}

// sizeOf returns the approximate size of a cached answer, in bytes.
func sizeOf(answer any) int64 {
	const small = 4 << 10
	n := small
	switch a := answer.(type) {
	case *mcpserver.Result:
		return sizeOf(a.Value)
	case *compact.Object:
		n += a.Len()
	case *piece:
		n += len(a.Text)
	case *pieceContents:
		n += len(a.piece.Text)
	case *mcpserver.Contents:
		n += len(a.Text)
	}
	return int64(n)
}

// A handle is the answer to a call that is still running.
type handle struct {
	JobID     string  `json:"jobId"`
	State     string  `json:"state"`
	Progress  float64 `json:"progress"`
	Message   string  `json:"message"`
	StartedAt string  `json:"startedAt"` // RFC 3339, like UpdatedAt
	UpdatedAt string  `json:"updatedAt"`
}

func newHandle(st *job.Status) handle {
	return handle{st.ID, string(st.State), st.Progress, st.Message, instant(st.StartedAt), instant(st.UpdatedAt)}
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
