package searchmcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/content"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
)

// slowBackend is a fakeBackend that takes its time, or what is left of it until
// the caller gives up.
type slowBackend struct {
	*fakeBackend
	takes time.Duration

	mu   sync.Mutex
	gone int // callers that gave up
}

func (s *slowBackend) wait(ctx context.Context) error {
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gone++
		return ctx.Err()
	}
}

func (s *slowBackend) givenUp() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

func (s *slowBackend) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.fakeBackend.Search(ctx, q)
}

func (s *slowBackend) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.fakeBackend.Find(ctx, id, labels)
}

func (s *slowBackend) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text,
	error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.fakeBackend.ReadText(ctx, id, labels, off, n)
}

// withJobs runs a test in a bubble against a backend that takes 10 s, with jobs
// from 2 s on.
func withJobs(t *testing.T, threshold time.Duration, test func(t *testing.T, c session, f *slowBackend)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &slowBackend{fakeBackend: corpus(), takes: 10 * time.Second}
		jobs := job.New(job.Options{Threshold: threshold})
		defer jobs.Close(t.Context())
		test(t, start(t, Options{Domain: finance, Backend: f, Jobs: jobs}, mcpserver.Pinned), f)
	})
}

// shown is a job as clients see it.
type shown struct {
	JobID, State, Message, StartedAt, UpdatedAt string
	Progress, Total                             float64
	Result                                      json.RawMessage
	Error                                       *mcptest.Error
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// get asks for a job.
func (c session) get(id string, waitMs int) shown {
	c.t.Helper()
	var s shown
	c.into("job_get", args{"jobId": id, "waitMs": waitMs}, &s)
	return s
}

// until waits for a job to leave the state running.
func (c session) until(id string) shown {
	c.t.Helper()
	s := c.get(id, 30_000)
	for range 100 {
		if s.State != string(job.Running) {
			return s
		}
		s = c.get(id, 30_000)
	}
	c.t.Fatalf("job %s never ends: %+v", id, s)
	return s
}

// A slow tool is answered with a handle, and its answer is the job's result.
func TestSlowTool(t *testing.T) {
	for name, arguments := range map[string]args{"search": {"query": "test"}, "get_document": {"docId": "d3"},
		"read_content": {"docId": "d3"}} {
		withJobs(t, 2*time.Second, func(t *testing.T, c session, f *slowBackend) {
			begin := time.Now()
			text := c.ok(name, arguments)
			if took := time.Since(begin); took != 2*time.Second {
				t.Errorf("%s answered after %v, want the threshold", name, took)
			}
			var h map[string]any
			if err := json.Unmarshal([]byte(text), &h); err != nil {
				t.Fatal(err)
			}
			id, _ := h["jobId"].(string)
			stamp := begin.UTC().Format("2006-01-02T15:04:05.000Z")
			want := map[string]any{"jobId": id, "state": "running", "progress": 0.0, "message": "fetching",
				"startedAt": stamp, "updatedAt": stamp}
			if diff := cmp.Diff(want, h); diff != "" || len(id) < 22 {
				t.Errorf("%s: handle (-want +got):\n%s", name, diff)
			}
			if s := c.get(id, 1000); s.State != "running" || s.Result != nil || s.Error != nil || s.Progress != 0 ||
				s.Total != 100 {
				t.Errorf("%s: job_get while it runs = %+v", name, s)
			}
			s := c.until(id)
			if took := time.Since(begin); s.State != "done" || took != 10*time.Second || s.Progress != 100 ||
				s.Total != 100 {
				t.Errorf("%s: job_get = %+v after %v, want done after 10s, 100 of 100", name, s, took)
			}
			f.takes = 0
			if got, want := string(s.Result), c.ok(name, arguments); got != want {
				t.Errorf("%s: the job's result = %s, want the tool's own %s", name, got, want)
			}
		})
	}
}

// A slow resource is answered with a handle, and once the job is done reading
// it again gives the text after one look at the document.
func TestSlowResource(t *testing.T) {
	for _, uri := range []string{"fess://finance/doc/d3", "fess://finance/doc/d3/content"} {
		withJobs(t, 2*time.Second, func(t *testing.T, c session, f *slowBackend) {
			type result struct {
				Contents []struct{ URI, MIMEType, Text string }
				IsLast   bool
				Meta     struct{ Job *shown } `json:"_meta"`
			}
			read := func() (r result) {
				c.Call("resources/read", args{"uri": uri}).Decode(t, &r)
				return r
			}
			r := read()
			var h shown
			if err := json.Unmarshal([]byte(r.Contents[0].Text), &h); err != nil ||
				r.Contents[0].MIMEType != "application/json" || r.Contents[0].URI != uri {
				t.Fatalf("resources/read = %+v, want a handle", r)
			}
			if diff := cmp.Diff(&h, r.Meta.Job); diff != "" || r.IsLast {
				t.Errorf("isLast %v; _meta.job (-contents +meta):\n%s", r.IsLast, diff)
			}
			if again := read(); again.Meta.Job == nil || again.Meta.Job.JobID != h.JobID {
				t.Errorf("reading it again meanwhile = %+v, want the same job", again)
			}
			s := c.until(h.JobID)
			f.takes = time.Second
			begin := time.Now()
			r = read()
			if took := time.Since(begin); took != time.Second || r.Meta.Job != nil || !r.IsLast ||
				r.Contents[0].URI != uri || r.Contents[0].Text == "" {
				t.Errorf("reading %s again = %+v after %v, want the text after a look at the document", uri, r, took)
			}
			var inner result
			if err := json.Unmarshal(s.Result, &inner); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r, inner); diff != "" {
				t.Errorf("the job's result (-answer +result):\n%s", diff)
			}
			if n := len(f.calls); n != 2 || f.calls[1].method != "Find" {
				t.Errorf("the service was asked %v, want once for the text and once for the document", f.calls)
			}
		})
	}
}

// The result of a job that read a chunk is that of reading it at once, with the cursor
// in all places.
func TestSlowChunk(t *testing.T) {
	withJobs(t, 2*time.Second, func(t *testing.T, c session, f *slowBackend) {
		f.docs = withText(longText(300_000)).docs
		read := args{"uri": "fess://finance/doc/d1/content"}
		var h struct {
			Meta struct{ Job shown } `json:"_meta"`
		}
		c.Call("resources/read", read).Decode(t, &h)
		s := c.until(h.Meta.Job.JobID)
		f.takes = 0
		var got, want struct {
			Contents   []args
			NextCursor string
			IsLast     bool
			Meta       args `json:"_meta"`
		}
		decode(t, string(s.Result), &got)
		c.Call("resources/read", read).Decode(t, &want)
		if diff := cmp.Diff(want, got); diff != "" || got.Meta["nextCursor"] != got.NextCursor || got.NextCursor == "" {
			t.Errorf("the job's result has the cursor %q (-answer +result):\n%s", got.NextCursor, diff)
		}
	})
}

// Progress goes to the request's token, before and after the answer, in rising
// values up to the total.
func TestProgressOfJob(t *testing.T) {
	withJobs(t, 2*time.Second, func(t *testing.T, c session, f *slowBackend) {
		f.takes = 12 * time.Second
		c.Call("tools/call", args{"name": "fess_finance_search", "arguments": args{"query": "test"},
			"_meta": args{"progressToken": "p1"}})
		before := len(c.Notifications())
		time.Sleep(time.Minute)
		synctest.Wait()
		all := c.Notifications()
		if before == 0 || len(all) < before+3 {
			t.Errorf("%d notifications before the answer and %d in all, want some before and three more after", before,
				len(all))
		}
		last, message := -1.0, ""
		for _, n := range all {
			var p struct {
				ProgressToken, Message string
				Progress, Total        float64
			}
			if err := json.Unmarshal(n.Params, &p); err != nil {
				t.Fatal(err)
			}
			if p.ProgressToken != "p1" || p.Progress <= last || p.Total != 100 {
				t.Errorf("%s came after %v, want more of 100", n.Raw, last)
			}
			last, message = p.Progress, p.Message
		}
		if message != "done" || last != 100 {
			t.Errorf("the last message is %q at %v, want done at 100", message, last)
		}
	})
}

// With a threshold of 0 everything is a job but what is wrong from the start.
func TestAlwaysJobs(t *testing.T) {
	withJobs(t, 0, func(t *testing.T, c session, f *slowBackend) {
		f.takes = 0
		for _, name := range toolNames {
			arguments := required[name]
			if name == "job_get" {
				continue
			}
			var h shown
			c.into(name, arguments, &h)
			if s := c.until(h.JobID); s.State != "done" || s.Result == nil {
				t.Errorf("%s: job_get = %+v, want done", name, s)
			}
		}
		for name, arguments := range map[string]args{"search": {"query": " "},
			"read_content": {"docId": "d3", "cursor": "x"},
			"get_document": {}, "suggest": {"prefix": "a", "lang": "1"}} {
			if a := c.tool(name, arguments); a.Error == nil || a.Error.Code != -32602 {
				t.Errorf("%s(%v) = %s, want an argument error", name, arguments, a.Raw)
			}
		}
		if a := c.Call("resources/list", nil); a.Error != nil ||
			!strings.Contains(string(a.Result), "fess://finance/doc/d3") {
			t.Errorf("resources/list = %s, want the list itself", a.Raw)
		}
	})
}

// A failed job's error is what the call would have been answered with.
func TestFailedJob(t *testing.T) {
	for _, failure := range []error{
		&errkind.Remote{Kind: errkind.Timeout, Endpoint: "/api/v1/documents", Status: 504,
			Message: "Fess did not answer in time"},
		errors.New("dial tcp 10.1.2.3: secret"),
	} {
		withJobs(t, 2*time.Second, func(t *testing.T, c session, f *slowBackend) {
			f.err = failure
			var h shown
			c.into("search", args{"query": "test"}, &h)
			s := c.until(h.JobID)
			f.takes = 0
			a := c.tool("search", args{"query": "test"})
			if diff := cmp.Diff(a.Error, s.Error); diff != "" || s.State != "failed" || s.Result != nil {
				t.Errorf("job = %+v; error (-call +job):\n%s", s, diff)
			}
			if strings.Contains(a.Raw, "secret") {
				t.Errorf("the error shows %s", a.Raw)
			}
		})
	}
}

// The error of a job is the object that the call would have been answered with, in
// the form of the revision: a code of its own for a resource that does not exist in
// 2026-07-28, and the object of a result with isError for a tool.
func TestFailedJobByRevision(t *testing.T) {
	for _, tt := range []struct {
		revision, method string
		params           args
		code             int64
	}{
		{"2025-03-26", "resources/read", args{"uri": "fess://finance/doc/nope"}, -32002},
		{"2025-11-25", "resources/read", args{"uri": "fess://finance/doc/nope"}, -32002},
		{"2026-07-28", "resources/read", args{"uri": "fess://finance/doc/nope"}, -32602},
		{"2025-11-25", "tools/call", args{"name": "fess_finance_get_document", "arguments": args{"docId": "nope"}},
			-32002},
		{"2026-07-28", "tools/call", args{"name": "fess_finance_get_document", "arguments": args{"docId": "nope"}},
			-32002},
	} {
		t.Run(tt.revision+" "+tt.method, func(t *testing.T) {
			withJobs(t, 2*time.Second, func(t *testing.T, c session, f *slowBackend) {
				s := mcpserver.New(mcpserver.Options{Name: "test", Version: "1"})
				jobs := job.New(job.Options{Threshold: 2 * time.Second})
				defer jobs.Close(t.Context())
				New(Options{Domain: finance, Backend: f, Jobs: jobs}).Register(s)
				c = session{mcptest.Stdio(t, s.ServeStdio), t, "fess_finance_"}
				request := func(method string, params args) mcptest.Message {
					if params = maps.Clone(params); tt.revision == "2026-07-28" {
						params["_meta"] = args{"io.modelcontextprotocol/protocolVersion": tt.revision,
							"io.modelcontextprotocol/clientCapabilities": args{}}
					}
					return c.Call(method, params)
				}
				if tt.revision != "2026-07-28" {
					c.Initialize(tt.revision)
				}
				handle := request(tt.method, tt.params)
				id := regexp.MustCompile(`jobId[\\":]+([^\\"]+)`).FindStringSubmatch(handle.Raw)
				if id == nil {
					t.Fatalf("%s = %s, want a job", tt.method, handle.Raw)
				}
				time.Sleep(time.Minute)
				text, err := c.ToolText(request("tools/call",
					args{"name": "fess_finance_job_get", "arguments": args{"jobId": id[1]}}))
				if err != nil {
					t.Fatal(err)
				}
				var ended shown
				decode(t, text, &ended)
				f.takes = 0
				want := request(tt.method, tt.params)
				if want.Error == nil {
					_, want.Error = c.ToolText(want)
				}
				if diff := cmp.Diff(want.Error, ended.Error); diff != "" || ended.Error == nil ||
					ended.Error.Code != tt.code {
					t.Errorf("error of the job (-call +job):\n%s\nwant the code %d", diff, tt.code)
				}
			})
		})
	}
}

func TestUnknownJob(t *testing.T) {
	withJobs(t, time.Second, func(t *testing.T, c session, _ *slowBackend) {
		a := c.tool("job_get", args{"jobId": "made-up"})
		if a.Error == nil || a.Error.Code != -32002 || !strings.Contains(a.Error.Message, `job "made-up"`) {
			t.Errorf("job_get of an unknown job = %s, want -32002 with its name", a.Raw)
		}
		for _, arguments := range []args{{}, {"jobId": ""}, {"jobId": strings.Repeat("x", 101)},
			{"jobId": "x", "waitMs": 30_001}, {"jobId": "x", "waitMs": -1}} {
			if a := c.tool("job_get", arguments); a.Error == nil || a.Error.Code != -32602 {
				t.Errorf("job_get(%v) = %s, want -32602", arguments, a.Raw)
			}
		}
	})
}

// Cancelling the request that started a job cancels the job, before its handle
// and after, and frees what it holds.
func TestCancelJob(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 5 * time.Second} {
		withJobs(t, 2*time.Second, func(t *testing.T, c session, f *slowBackend) {
			id := c.Start("tools/call", args{"name": "fess_finance_search", "arguments": args{"query": "test"}})
			time.Sleep(after)
			synctest.Wait()
			answered := c.Pending()
			c.Cancel(id)
			synctest.Wait()
			if f.givenUp() != 1 || c.Pending() != answered {
				t.Errorf("cancelled after %v: %d calls given up, %d answers more", after, f.givenUp(),
					c.Pending()-answered)
			}
			if after < 2*time.Second {
				return
			}
			var h shown
			text, err := c.ToolText(c.Wait(id))
			if err != nil || json.Unmarshal([]byte(text), &h) != nil {
				t.Fatalf("the request was answered %q, %v", text, err)
			}
			if s := c.get(h.JobID, 0); s.State != "cancelled" || s.Result != nil {
				t.Errorf("the cancelled job = %+v", s)
			}
		})
	}
}

// Who joined a job keeps it when the one who started it cancels.
func TestCancelJoinedJob(t *testing.T) {
	withJobs(t, 2*time.Second, func(t *testing.T, c session, f *slowBackend) {
		read := args{"uri": "fess://finance/doc/d3"}
		first := c.Start("resources/read", read)
		second := c.Start("resources/read", read)
		time.Sleep(3 * time.Second)
		for _, id := range []int{first, second} {
			if a := c.Wait(id); !strings.Contains(string(a.Result), "jobId") {
				t.Fatalf("resources/read = %s, want a handle", a.Raw)
			}
		}
		c.Cancel(first)
		c.Cancel(first)
		synctest.Wait()
		if n := f.givenUp(); n != 0 {
			t.Errorf("the work ended although another request waits for it")
		}
		c.Cancel(second)
		synctest.Wait()
		if n := f.givenUp(); n != 1 {
			t.Errorf("the work continues although all requests were cancelled")
		}
	})
}

// Callers with tokens of their own share nothing: only the one who has read the
// document before is answered at once.
func TestJobsByCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := job.New(job.Options{})
		defer jobs.Close(t.Context())
		f := corpus()
		b := New(Options{Domain: finance, Backend: f, Jobs: jobs})
		for i, token := range []string{"a", "b", "", "a"} {
			c, err := b.ReadResource(search.WithToken(t.Context(), token), "fess://finance/doc/d3", "")
			synctest.Wait()
			if want := i + 1; err != nil || len(f.calls) != want || (c.ResultMeta == nil) != (i == 3) {
				t.Errorf("read %d = %+v, %v after %d calls, want %d", i, c, err, len(f.calls), want)
			}
		}
	})
}

// A job is known to the caller who started it alone, whatever else is known of
// it, and a request that waits for it takes nobody's turn.
func TestJobsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := job.New(job.Options{Threshold: time.Second})
		defer jobs.Close(t.Context())
		f := &slowBackend{fakeBackend: corpus(), takes: 10 * time.Second}
		s := mcpserver.New(mcpserver.Options{})
		b := New(Options{Domain: finance, Backend: f, Jobs: jobs})
		as := func(token string) context.Context { return search.WithToken(t.Context(), token) }
		a, err := b.search(as("a"), SearchArgs{Query: "test", PageSize: 5})
		h, ok := a.(*handle)
		if err != nil || !ok {
			t.Fatalf("search() = %v, %v, want a handle", a, err)
		}
		_, unknown := b.getJob(as("b"), s, jobArgs{JobID: "X", WaitMs: 1000})
		for _, token := range []string{"b", "", callerOf(as("a"))} {
			begin := time.Now()
			got, err := b.getJob(as(token), s, jobArgs{JobID: h.JobID, WaitMs: 1000})
			if err == nil || err.Error() != strings.Replace(unknown.Error(), "X", h.JobID, 1) ||
				!errors.Is(err, errkind.NotFound) || time.Since(begin) > 0 {
				t.Errorf("token %q: getJob() = %v, %v after %v, want what is said of an unknown job at once", token,
					got, err, time.Since(begin))
			}
			if err := jobs.Cancel(callerOf(as(token)), h.JobID); !errors.Is(err, errkind.NotFound) {
				t.Errorf("token %q: Cancel() = %v, want NotFound", token, err)
			}
		}
		time.Sleep(time.Minute)
		got, err := b.getJob(as("a"), s, jobArgs{JobID: h.JobID})
		if r, ok := got.(jobResult); err != nil || !ok || r.State != "done" || r.Result == nil {
			t.Errorf("getJob() of the owner = %+v, %v, want the result", got, err)
		}
	})
}

// Any number of clients that wait for jobs leaves room for those that search.
func TestWaitingForJobsTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := job.New(job.Options{Threshold: time.Second})
		defer jobs.Close(t.Context())
		f := &slowBackend{fakeBackend: corpus(), takes: 20 * time.Second}
		s := mcpserver.New(mcpserver.Options{MaxInFlight: 1, QueueWait: time.Second})
		New(Options{Domain: finance, Backend: f, Jobs: jobs}).Register(s)
		c := session{mcptest.Stdio(t, s.ServeStdio), t, "fess_finance_"}
		c.Initialize("2025-03-26")
		var h shown
		c.into("search", args{"query": "test"}, &h)
		var waiting []int
		for range 16 {
			waiting = append(waiting, c.Start("tools/call", args{"name": "fess_finance_job_get",
				"arguments": args{"jobId": h.JobID, "waitMs": 30_000}}))
			synctest.Wait()
		}
		begin := time.Now()
		if c.ok("search", args{"query": "test"}); time.Since(begin) != time.Second {
			t.Errorf("a search beside 16 waiting clients took %v, want the threshold", time.Since(begin))
		}
		for _, id := range waiting {
			if text, err := c.ToolText(c.Wait(id)); err != nil || !strings.Contains(text, `"state":"done"`) {
				t.Errorf("job_get = %s, %v, want done", text, err)
			}
		}
	})
}

// A kept text is not given out any more once a cursor has found that the
// document has changed.
func TestChangedDocumentIsReadAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := job.New(job.Options{})
		defer jobs.Close(t.Context())
		f := withText(longText(5000))
		b := New(Options{Domain: finance, Backend: f, MaxChunkBytes: 1024, Jobs: jobs})
		read := func(at string) any {
			a, err := b.readContent(t.Context(), contentArgs{documentArgs{DocID: &f.docs[0].id}, at})
			if h, ok := a.(*handle); ok {
				st, err := jobs.Wait(t.Context(), callerOf(t.Context()), h.JobID, time.Second)
				for ; err == nil && !st.State.Ended(); st, err = jobs.Wait(t.Context(), callerOf(t.Context()), h.JobID,
					time.Second) {
				}
				if st.Err != nil {
					return st.Err
				}
				return received(t.Context(), st.Result)
			}
			if err != nil {
				return err
			}
			return a
		}
		first := read("").(*Piece)
		f.docs[0].text = "Changed. " + f.docs[0].text
		if err, ok := read(first.NextCursor).(error); !ok || !errors.Is(err, errkind.Conflict) {
			t.Errorf("the second piece of a changed text = %v, want kind Conflict", err)
		}
		if p, ok := read("").(*Piece); !ok || p.Hash == first.Hash {
			t.Errorf("reading again = %+v, want the new text", p)
		}
	})
}

// A result that is kept is given out only as long as the service shows the
// document, unchanged, to the caller.
func TestKeptResultIsChecked(t *testing.T) {
	const slow = 10 * time.Second
	refused := &errkind.Remote{Kind: errkind.Unauthorized, Endpoint: "/api/v1/documents", Status: 401,
		Message: "the token is not valid"}
	old, changed := time.Unix(1_760_000_000, 0), time.Unix(1_770_000_000, 0)
	stamped := func(text string, modified time.Time) fakeDoc {
		return fakeDoc{id: "d1", label: "finance_docs", text: text, noText: text == "",
			facts: search.Hit{Modified: modified}}
	}
	type reader func(b *Tools) (any, error)
	readers := map[string]reader{
		"read_content": func(b *Tools) (any, error) {
			return b.readContent(context.Background(), contentArgs{documentArgs{DocID: new("d1")}, ""})
		},
		"content": func(b *Tools) (any, error) {
			return b.ReadResource(context.Background(), "fess://finance/doc/d1/content", "")
		},
		"get_document": func(b *Tools) (any, error) {
			return b.getDocument(context.Background(), documentArgs{DocID: new("d1")})
		},
		"document": func(b *Tools) (any, error) {
			return b.ReadResource(context.Background(), "fess://finance/doc/d1", "")
		},
	}
	for _, tt := range []struct {
		name   string
		before fakeDoc
		after  func(f *slowBackend)
		err    error
		text   string // what a reader of the text gets; "" is a new job
	}{
		{"unchanged", stamped("one", old), func(*slowBackend) {}, nil, "one"},
		{"moved to another label", stamped("one", old), func(f *slowBackend) { f.docs[0].label = "hr" },
			errkind.NotFound, ""},
		{"deleted", stamped("one", old), func(f *slowBackend) { f.docs = nil }, errkind.NotFound, ""},
		{"token refused", stamped("one", old), func(f *slowBackend) { f.err = refused }, errkind.Unauthorized, ""},
		{"another text", stamped("one", old), func(f *slowBackend) { f.docs[0].text = "two" }, nil, ""},
		{"fetched, unchanged", stamped("", old), func(*slowBackend) {}, nil, "page"},
		{"fetched, moved", stamped("", old), func(f *slowBackend) { f.docs[0].label = "hr" }, errkind.NotFound, ""},
		{"fetched, modified", stamped("", old), func(f *slowBackend) { f.docs[0] = stamped("", changed) }, nil, ""},
	} {
		for name, read := range readers {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					jobs := job.New(job.Options{Threshold: 2 * time.Second})
					defer jobs.Close(t.Context())
					f := &slowBackend{fakeBackend: &fakeBackend{docs: []fakeDoc{tt.before}}, takes: slow}
					b := New(Options{Domain: finance, Backend: f, Jobs: jobs,
						Content: content.New(content.Options{Enabled: true, Fetch: onePage{}})})
					if _, _, isJob := shownAnswer(read(b)); !isJob {
						t.Fatal("the first read is no job")
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					tt.after(f)
					begin := time.Now()
					text, err, isJob := shownAnswer(read(b))
					if !errors.Is(err, tt.err) || tt.err == nil && err != nil {
						t.Fatalf("reading again = %q, %v, want error %v", text, err, tt.err)
					}
					facts := strings.HasSuffix(name, "document")
					if want := tt.err == nil && tt.text == "" && !facts; isJob != want || !isJob &&
						time.Since(begin) != slow {
						t.Errorf("reading again = %q after %v, want a new job %v, else one look at the document", text,
							time.Since(begin), want)
					}
					if !facts && tt.text != "" && text != tt.text {
						t.Errorf("reading again = %q, want %q", text, tt.text)
					}
				})
			})
		}
	}
}

// shownAnswer returns the text of what was read, and whether it is a job.
func shownAnswer(answer any, err error) (string, error, bool) {
	switch a := answer.(type) {
	case *handle:
		return "", err, true
	case *Piece:
		return a.Text, err, false
	case *mcpserver.Contents:
		if a != nil {
			return a.Text, err, a.ResultMeta["job"] != nil
		}
	}
	return "", err, false
}

// onePage fetches the same text from everywhere.
type onePage struct{}

func (onePage) Check(string) error { return nil }

func (onePage) Get(context.Context, string, func(done, total int64)) (*fetch.Document, error) {
	return &fetch.Document{MediaType: "text/plain", Data: []byte("page")}, nil
}

// Without jobs there is no tool that asks for them.
func TestNoJobs(t *testing.T) {
	tools, _ := listTools(t, start(t, Options{Domain: finance, Backend: corpus()}, mcpserver.Pinned))
	for _, tool := range tools {
		if strings.HasSuffix(tool.Name, "job_get") {
			t.Error("job_get is offered without jobs")
		}
	}
}
