package searchmcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/content"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// phaseChunking is the last phase of an upstream call (FRS 9.2), as reported in its
// progress. The phases before it are those of package content, and the states queued and
// done come from the job.
const phaseChunking = "chunking"

// A work is an upstream call that may outlast its request.
type work struct {
	// key names the call and its arguments. Callers of the same work share it
	// and its result. nil shares nothing.
	key []string

	// run makes the call. Its result is that of the tool, or a document or chunk
	// that was read as a resource.
	run func(ctx context.Context, report job.Report) (any, error)

	// current asks the service whether the caller may still have a shared result,
	// and whether it is that of the document as it is now. nil means that the call
	// is made again, because it takes no longer than asking.
	current func(ctx context.Context, shared any) (bool, error)
}

// call runs an upstream call that shares nothing.
func (t *Tools) call(ctx context.Context, run func(ctx context.Context) (any, error)) (any, error) {
	return t.do(ctx, work{run: func(ctx context.Context, _ job.Report) (any, error) { return run(ctx) }})
}

// do runs an upstream call. It returns the result, or a *handle if the call
// takes longer than the threshold. Progress is reported to the request's
// progress token before and after the answer. Cancelling the request cancels
// the call, unless other requests wait for it.
//
// A cached result may be minutes old. In the meantime, the document may have
// moved to another label, or the caller's token may have become invalid. So the
// service is asked before such a result is returned.
func (t *Tools) do(ctx context.Context, w work) (any, error) {
	if t.jobs == nil {
		answer, err := w.run(ctx, noReport)
		return answer, t.explained(err)
	}
	for {
		answer, shared, err := t.share(ctx, w)
		if err != nil || !shared {
			return answer, err
		}
		if w.current == nil {
			answer, err = w.run(ctx, noReport)
			return answer, t.explained(err)
		}
		if ok, err := w.current(ctx, answer); err != nil || ok {
			return answer, t.explained(err)
		}
		t.changes.Add(1)
	}
}

// noReport ignores the progress of a call.
func noReport(float64, float64, string) {}

// explained returns the error of a call in the form that the caller receives.
func (t *Tools) explained(err error) error {
	if err == nil {
		return nil
	}
	return t.explain(err)
}

// share runs an upstream call, or joins one that was started before. It reports
// whether the result is that of an earlier call.
func (t *Tools) share(ctx context.Context, w work) (answer any, shared bool, err error) {
	var ran atomic.Bool
	outlasting, owner := context.WithoutCancel(ctx), callerOf(ctx)
	value, st, err := t.jobs.Do(ctx, job.Task{
		Key:   t.key(ctx, w.key),
		Owner: owner,
		Run: func(ctx context.Context, report job.Report) (any, error) {
			ran.Store(true)
			report(0, content.ProgressTotal, content.PhaseFetching)
			call := new(audit.Call)
			answer, err := w.run(audit.With(ctx, call), report)
			if err = t.explained(err); err != nil {
				err = &failure{err, mcpserver.DescribeError(outlasting, err)}
			}
			return recorded{answer, call}, err
		},
		Size:   sizeOf,
		Notify: func(st job.Status) { mcpserver.Progress(outlasting, st.Progress, totalOf(&st), st.Message) },
	})
	if err != nil || st == nil {
		return received(ctx, value), !ran.Load(), err
	}
	mcpserver.AfterCancel(ctx, func() {
		_ = t.jobs.Cancel(owner, st.ID) // NotFound means that the job ended long ago
	})
	h := newHandle(st)
	return &h, false, nil
}

// A recorded answer is that of a work, with what is recorded of each call that
// receives it.
type recorded struct {
	answer any
	call   *audit.Call
}

// received returns an answer that the call of ctx receives.
func received(ctx context.Context, result any) any {
	r, ok := result.(recorded)
	if !ok {
		return result
	}
	audit.From(ctx).Add(r.call)
	return r.answer
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
func (t *Tools) key(ctx context.Context, work []string) string {
	if work == nil {
		return ""
	}
	return strings.Join(append(slices.Clone(work), callerOf(ctx), strconv.FormatInt(t.changes.Load(), 10)), "\x00")
}

// callerOf identifies the caller: it returns a hash of the token that the
// caller sends to the service.
func callerOf(ctx context.Context) string {
	sum := sha256.Sum256([]byte(search.TokenFrom(ctx)))
	return hex.EncodeToString(sum[:])
}

// sizeOf returns the approximate size of a cached answer, in bytes.
func sizeOf(answer any) int64 {
	const small = 4 << 10
	switch a := answer.(type) {
	case recorded:
		return sizeOf(a.answer)
	case *mcpserver.Result:
		return sizeOf(a.Value)
	case resource:
		return sizeOf(a.value)
	case *compact.Object:
		return int64(small + a.Len())
	case *Piece:
		return int64(small + len(a.Text))
	}
	return small
}

// A handle is the answer to a call that is still running.
type handle struct {
	JobID     string  `json:"jobId"`
	State     string  `json:"state"`
	Progress  float64 `json:"progress"`
	Total     float64 `json:"total,omitempty"` // in the job_get tool
	Message   string  `json:"message"`
	StartedAt string  `json:"startedAt"` // RFC 3339, like UpdatedAt
	UpdatedAt string  `json:"updatedAt"`
}

func newHandle(st *job.Status) handle {
	return handle{JobID: st.ID, State: string(st.State), Progress: st.Progress, Message: st.Message,
		StartedAt: instant(st.StartedAt), UpdatedAt: instant(st.UpdatedAt)}
}

// totalOf returns the value of Progress at the end of a job. It is not known to the job
// itself before its work begins.
func totalOf(st *job.Status) float64 { return cmp.Or(st.Total, content.ProgressTotal) }

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func (t *Tools) addJobs(s *mcpserver.Server) {
	if t.jobs == nil {
		return
	}
	get := t.tool("job_get", "Get the state of a job",
		"Retrieve progress information for a long-running operation. Use it when a result contains a jobId. "+
			"Call it until state is done; result is then the answer.")
	mcpserver.AddTool(s, get, func(ctx context.Context, in jobArgs) (any, error) { return t.getJob(ctx, s, in) })
}

type jobArgs struct {
	JobID string `json:"jobId" limits:"minLength=1 maxLength=100"`

	// The maximum is less than the time limit of clients for a call.
	WaitMs int `json:"waitMs,omitempty" jsonschema:"Milliseconds to wait for a change" limits:"minimum=0 maximum=30000 default=0"`
}

// A jobResult is a job as returned by the job_get tool.
type jobResult struct {
	handle
	Result any                    `json:"result,omitempty"` // if done
	Error  *mcpserver.ErrorObject `json:"error,omitempty"`  // if failed
}

// getJob returns a job to the caller that started it. For other callers the job
// does not exist, because its result contains what the roles of the first
// caller permit.
func (t *Tools) getJob(ctx context.Context, s *mcpserver.Server, in jobArgs) (any, error) {
	st, err := t.jobs.Status(callerOf(ctx), in.JobID)
	if err == nil && in.WaitMs > 0 {
		err = s.Wait(ctx, func() (err error) {
			st, err = t.jobs.Wait(ctx, callerOf(ctx), in.JobID, time.Duration(in.WaitMs)*time.Millisecond)
			return err
		})
	}
	switch {
	case errors.Is(err, errkind.NotFound):
		return nil, fmt.Errorf("job %q: %w", sanitize.Short(in.JobID, 100, 100), err)
	case err != nil:
		return nil, err
	}
	r := jobResult{handle: newHandle(&st)}
	r.Total = totalOf(&st)
	switch st.State {
	case job.Done:
		r.Result, err = asResult(received(ctx, st.Result))
	case job.Failed:
		t.log.Info("a job failed", "job", st.ID, "error", st.Err)
		if f, ok := errors.AsType[*failure](st.Err); ok {
			r.Error = f.object
		} else { // an error of the job itself, for example that it was cancelled
			r.Error = mcpserver.DescribeError(ctx, st.Err)
		}
	}
	return r, err
}

// A readResult is the result of resources/read in a job.
type readResult struct {
	Contents   []readContents `json:"contents"`
	NextCursor string         `json:"nextCursor,omitempty"`
	IsLast     bool           `json:"isLast"`
	Meta       map[string]any `json:"_meta"`
}

type readContents struct {
	URI      string         `json:"uri"`
	MIMEType string         `json:"mimeType"`
	Text     string         `json:"text"`
	Meta     map[string]any `json:"_meta,omitempty"`
}

// asResult returns the result that the request of a job would have had.
func asResult(answer any) (any, error) {
	switch a := answer.(type) {
	case *mcpserver.Result:
		return a.Value, nil
	case resource:
		c, err := a.contents()
		if err != nil {
			return nil, err
		}
		return readResult{[]readContents{{c.URI, c.MIMEType, c.Text, c.Meta}}, c.NextCursor, c.IsLast, c.MetaOfResult()},
			nil
	}
	return answer, nil
}
