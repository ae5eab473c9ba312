package searchmcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/sanitize"
)

func (b *bridge) addJobs(s *mcpserver.Server) {
	if b.jobs == nil {
		return
	}
	get := b.tool("job_get", "Get the state of a job",
		"Retrieve progress information for a long-running operation. Use it when a result contains a jobId. "+
			"Call it until state is done; result is then the answer.")
	mcpserver.AddTool(s, get, func(ctx context.Context, in jobArgs) (any, error) { return b.getJob(ctx, s, in) })
}

type jobArgs struct {
	JobID string `json:"jobId" limits:"minLength=1 maxLength=100"`

	// The maximum is less than the time limit of clients for a call.
	WaitMs int `json:"waitMs,omitempty" jsonschema:"Milliseconds to wait for a change" limits:"minimum=0 maximum=30000 default=0"`
}

// A jobResult is a job as returned by the job_get tool.
type jobResult struct {
	JobID     string                 `json:"jobId"`
	State     string                 `json:"state"`
	Progress  float64                `json:"progress"`
	Total     float64                `json:"total,omitempty"` // omitted if it is not known
	Message   string                 `json:"message"`
	StartedAt string                 `json:"startedAt"`
	UpdatedAt string                 `json:"updatedAt"`
	Result    any                    `json:"result,omitempty"` // if done
	Error     *mcpserver.ErrorObject `json:"error,omitempty"`  // if failed
}

// getJob returns a job to the caller that started it. For other callers the job
// does not exist, because its result contains what the roles of the first
// caller permit.
func (b *bridge) getJob(ctx context.Context, s *mcpserver.Server, in jobArgs) (any, error) {
	st, err := b.jobs.Status(callerOf(ctx), in.JobID)
	if err == nil && in.WaitMs > 0 {
		err = s.Wait(func() (err error) {
			st, err = b.jobs.Wait(ctx, callerOf(ctx), in.JobID, time.Duration(in.WaitMs)*time.Millisecond)
			return err
		})
	}
	switch {
	case errors.Is(err, errkind.NotFound):
		return nil, fmt.Errorf("job %q: %w", sanitize.Short(in.JobID, 100, 100), err)
	case err != nil:
		return nil, err
	}
	h := newHandle(&st)
	r := jobResult{JobID: h.JobID, State: h.State, Progress: h.Progress, Total: st.Total, Message: h.Message,
		StartedAt: h.StartedAt, UpdatedAt: h.UpdatedAt}
	switch st.State {
	case job.Done:
		r.Result = asResult(st.Result)
	case job.Failed:
		b.log.Info("a job failed", "job", st.ID, "error", st.Err)
		if f, ok := errors.AsType[*failure](st.Err); ok {
			r.Error = f.object
		} else { // an error of the job itself, for example that it was cancelled
			r.Error = mcpserver.DescribeError(ctx, st.Err)
		}
	}
	return r, nil
}

// A readResult is the result of resources/read in a job.
type readResult struct {
	Contents   []readContents `json:"contents"`
	NextCursor string         `json:"nextCursor,omitempty"`
	IsLast     bool           `json:"isLast"`
}

type readContents struct {
	URI      string         `json:"uri"`
	MIMEType string         `json:"mimeType"`
	Text     string         `json:"text"`
	Meta     map[string]any `json:"_meta,omitempty"`
}

// asResult returns the result that the request of a job would have had.
func asResult(answer any) any {
	if r, ok := answer.(*mcpserver.Result); ok {
		return r.Value
	}
	if p, ok := answer.(*pieceContents); ok {
		answer = p.contents()
	}
	c, ok := answer.(*mcpserver.Contents)
	if !ok {
		return answer
	}
	return readResult{[]readContents{{c.URI, c.MIMEType, c.Text, c.Meta}}, c.NextCursor, c.IsLast}
}
