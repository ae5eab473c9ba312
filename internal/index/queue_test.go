package index

import (
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// claim claims a job of kind "k" and checks its ID; 0 means that there is none.
func claim(t *testing.T, x *Index, owner string, ttl time.Duration, want int64) *Job {
	t.Helper()
	j, err := x.ClaimJob(t.Context(), "k", owner, ttl)
	if err != nil {
		t.Fatal(err)
	}
	if got := j; (got == nil) != (want == 0) || got != nil && got.ID != want {
		t.Fatalf("%s has claimed %+v, want job %d", owner, got, want)
	}
	return j
}

// TestQueue follows jobs through all states.
func TestQueue(t *testing.T) {
	x := openIn(t, t.TempDir())
	claim(t, x, "a", time.Hour, 0)
	for _, kind := range []string{"k", "k", "other"} {
		if _, err := x.Enqueue(t.Context(), kind, "file", []byte("payload")); err != nil {
			t.Fatal(err)
		}
	}
	j := claim(t, x, "a", time.Hour, 1)
	if string(j.Payload) != "payload" || j.State != JobRunning || j.Attempts != 1 || j.Filename != "file" {
		t.Errorf("job = %+v", j)
	}
	claim(t, x, "b", time.Hour, 0) // jobs of a kind run one after another
	if err := x.ReleaseJob(t.Context(), 1, "a"); err != nil {
		t.Fatal(err)
	}
	claim(t, x, "b", time.Nanosecond, 1) // and its process ends
	if j = claim(t, x, "c", time.Hour, 1); j.Attempts != 2 {
		t.Errorf("%d attempts, want 2: one was released", j.Attempts)
	}

	// The claim of b has ended: b can neither renew nor end it.
	put := simple("new", 1).Put
	for name, err := range map[string]error{
		"RenewJob":  x.RenewJob(t.Context(), 1, "b", time.Hour),
		"FailJob":   x.FailJob(t.Context(), 1, "b", "message"),
		"FinishJob": x.FinishJob(t.Context(), 1, "b", []document.Change{{Put: put}}, put.ID),
	} {
		if !errors.Is(err, ErrLost) || !errors.Is(err, errkind.Conflict) {
			t.Errorf("%s after the claim has ended: %v", name, err)
		}
	}
	if err := x.ReleaseJob(t.Context(), 1, "b"); err != nil {
		t.Error(err)
	}
	if _, err := x.RecordOf(t.Context(), put.ID); !errors.Is(err, errkind.NotFound) {
		t.Errorf("the document of a lost claim: %v", err)
	}

	// c can.
	if err := x.RenewJob(t.Context(), 1, "c", time.Hour); err != nil {
		t.Error(err)
	}
	if err := x.FinishJob(t.Context(), 1, "c", []document.Change{{Put: put}}, put.ID); err != nil {
		t.Fatal(err)
	}
	claim(t, x, "a", time.Hour, 2)
	if err := x.FailJob(t.Context(), 2, "a", "message"); err != nil {
		t.Fatal(err)
	}
	claim(t, x, "a", time.Hour, 0)

	record, err := x.RecordOf(t.Context(), put.ID)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := x.Jobs(t.Context(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		jobs[i].Created, jobs[i].Updated = time.Time{}, time.Time{}
	}
	want := []Job{
		{ID: 3, Kind: "other", State: JobQueued, Filename: "file"},
		{ID: 2, Kind: "k", State: JobFailed, Filename: "file", Attempts: 1, Error: "message"},
		{ID: 1, Kind: "k", State: JobDone, Filename: "file", Attempts: 2, Document: record.Number},
	}
	if diff := gocmp.Diff(want, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	counts, err := x.CountJobs(t.Context())
	if diff := gocmp.Diff(map[string]int{JobQueued: 1, JobFailed: 1, JobDone: 1}, counts); diff != "" || err != nil {
		t.Errorf("counts (-want +got), %v:\n%s", err, diff)
	}
	if err := x.ForgetJobs(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if jobs, err = x.Jobs(t.Context(), "", 10); err != nil || len(jobs) != 1 || jobs[0].ID != 3 {
		t.Errorf("after ForgetJobs: %+v, %v", jobs, err)
	}
	if id, err := x.Enqueue(t.Context(), "k", "", nil); err != nil || id != 4 {
		t.Errorf("the next job has the ID %d, %v; want 4", id, err)
	}
}

// TestClaimAgain checks that a process that claims a job again, because it could
// not release it, has not made another attempt.
func TestClaimAgain(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	if _, err := x.Enqueue(t.Context(), "file", "a", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		owner    string
		attempts int
	}{{"one", 1}, {"one", 1}, {"two", 2}, {"two", 2}, {"one", 3}} {
		j, err := x.ClaimJob(t.Context(), "file", c.owner, time.Nanosecond)
		if err != nil || j == nil || j.Attempts != c.attempts {
			t.Errorf("ClaimJob() of %s = %+v, %v, want %d attempts", c.owner, j, err, c.attempts)
		}
	}
}
