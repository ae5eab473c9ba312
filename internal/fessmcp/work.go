package fessmcp

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

// The phases of an upstream call (FRS 9.2), as its progress names them; the
// states queued and done come from the job.
const (
	phaseFetching   = "fetching"
	phaseConverting = "converting"
	phaseChunking   = "chunking"
)

// A work is an upstream call that may outlast the request that asks for it.
type work struct {
	// what names the call and its arguments, for callers who want the same
	// and share it and its result; nil shares nothing.
	what []string

	// run does the call. Its result is the tool's or the resource's answer.
	run func(ctx context.Context, report job.Report) (any, error)

	// still asks the service whether the caller may still have a result that
	// was shared, and returns what to answer: nil where the document has
	// changed, so that run must be called. Required with what.
	still func(ctx context.Context, shared any) (any, error)
}

// do runs an upstream call. It returns what that returned, or a *handle where
// it goes on beyond the threshold. The request's progress token is told of it
// before and after the answer; the request's cancellation ends it, unless
// others wait for it too.
//
// A result that is kept from before may be minutes old, in which a document can
// have moved to another label, or the caller's token have lost its meaning: no
// such result is given out before the service has been asked.
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
		if answer, err = w.still(ctx, answer); answer != nil || err != nil {
			return answer, b.explained(err)
		}
		b.changes.Add(1)
	}
}

// explained returns the error of a call as the caller sees it.
func (b *bridge) explained(err error) error {
	if err == nil {
		return nil
	}
	return b.explain(err)
}

// share runs an upstream call, or joins one that was started before. It says
// whether the result is one of those.
func (b *bridge) share(ctx context.Context, w work) (answer any, shared bool, err error) {
	var watch watcher
	var ran atomic.Bool
	outlasting := context.WithoutCancel(ctx)
	value, st, err := b.jobs.Do(ctx, job.Task{
		Key:   b.key(ctx, w.what),
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
			// NotFound means that it has ended long since.
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

// A failure is an error of a work with the object that describes it to the caller
// who started the work.
type failure struct {
	error
	object *mcpserver.ErrorObject
}

func (f *failure) Unwrap() error { return f.error }

// key names the work of reading something. It holds who asks, because what a
// service shows may depend on that, and how often documents were seen to have
// changed: what was read before that is not shared any more.
func (b *bridge) key(ctx context.Context, what []string) string {
	if what == nil {
		return ""
	}
	return strings.Join(append(slices.Clone(what), callerOf(ctx), strconv.FormatInt(b.changes.Load(), 10)), "\x00")
}

// callerOf stands for who asks: a hash of the token that he would have the
// service asked with.
func callerOf(ctx context.Context) string {
	sum := sha256.Sum256([]byte(search.TokenFrom(ctx)))
	return hex.EncodeToString(sum[:])
}

// A watcher calls a function once its job has ended, however that coincides
// with finding out which function that is.
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

// interests count the requests that were answered with a handle, by the id of
// the job, so that one of several callers cannot cancel the work of the others.
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

// remove reports whether the last one has gone.
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

// sizeOf returns about how many bytes an answer takes while it is kept.
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

// A handle is the answer in the place of one that is not ready yet.
type handle struct {
	JobID     string  `json:"jobId"`
	State     string  `json:"state"`
	Progress  float64 `json:"progress"`
	Message   string  `json:"message"`
	StartedAt string  `json:"startedAt"` // RFC 3339, as UpdatedAt
	UpdatedAt string  `json:"updatedAt"`
}

func newHandle(st *job.Status) handle {
	return handle{st.ID, string(st.State), st.Progress, st.Message, instant(st.StartedAt), instant(st.UpdatedAt)}
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
