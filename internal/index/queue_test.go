package index

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// claim claims a job of kind "k" and checks its ID; 0 means that there is none.
func claim(t *testing.T, x *Index, owner string, ttl time.Duration, want int64) *Job {
	t.Helper()
	jobs := claimSome(t, x, owner, ttl, 1)
	if want == 0 && jobs == nil {
		return nil
	}
	if len(jobs) != 1 || jobs[0].ID != want {
		t.Fatalf("%s has claimed %+v, want job %d", owner, jobs, want)
	}
	return &jobs[0]
}

// claimSome claims up to limit jobs of kind "k".
func claimSome(t *testing.T, x *Index, owner string, ttl time.Duration, limit int) []Job {
	t.Helper()
	jobs, err := x.ClaimJobs(t.Context(), "k", owner, ttl, limit)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
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
	if err := x.ReleaseJobs(t.Context(), "a", 1); err != nil {
		t.Fatal(err)
	}
	claim(t, x, "b", time.Nanosecond, 1) // and its process ends
	if j = claim(t, x, "c", time.Hour, 1); j.Attempts != 2 {
		t.Errorf("%d attempts, want 2: one was released", j.Attempts)
	}

	// The claim of b has ended: b can neither renew nor end it.
	put := simple("new", 1).Put
	for name, err := range map[string]error{
		"RenewJobs":  x.RenewJobs(t.Context(), "b", time.Hour, 1),
		"FailJob":    x.FailJob(t.Context(), 1, "b", "message"),
		"FinishJobs": x.FinishJobs(t.Context(), "b", FinishedJob{1, []document.Change{{Put: put}}, put.ID}),
	} {
		if !errors.Is(err, ErrLost) || !errors.Is(err, errkind.Conflict) {
			t.Errorf("%s after the claim has ended: %v", name, err)
		}
	}
	if err := x.ReleaseJobs(t.Context(), "b", 1); err != nil {
		t.Error(err)
	}
	if _, err := x.RecordOf(t.Context(), put.ID); !errors.Is(err, errkind.NotFound) {
		t.Errorf("the document of a lost claim: %v", err)
	}

	// c can.
	if err := x.RenewJobs(t.Context(), "c", time.Hour, 1); err != nil {
		t.Error(err)
	}
	if err := x.FinishJobs(t.Context(), "c", FinishedJob{1, []document.Change{{Put: put}}, put.ID}); err != nil {
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
	if _, err := x.Enqueue(t.Context(), "k", "a", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		owner    string
		attempts int
	}{{"one", 1}, {"one", 1}, {"two", 2}, {"two", 2}, {"one", 3}} {
		if j := claim(t, x, c.owner, time.Nanosecond, 1); j.Attempts != c.attempts {
			t.Errorf("claim of %s: %d attempts, want %d", c.owner, j.Attempts, c.attempts)
		}
	}
}

// TestClaimSeveral checks which jobs are claimed together, and that they end
// together.
func TestClaimSeveral(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	enqueue := func(kind string, payload int) {
		t.Helper()
		if _, err := x.Enqueue(t.Context(), kind, "", make([]byte, payload)); err != nil {
			t.Fatal(err)
		}
	}
	claimed := func(owner string, ttl time.Duration, limit int, want ...int64) {
		t.Helper()
		var got []int64
		for _, j := range claimSome(t, x, owner, ttl, limit) {
			got = append(got, j.ID)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("jobs that %s has claimed (-want +got):\n%s", owner, diff)
		}
	}
	for _, kind := range []string{"k", "other", "k", "k", "k"} {
		enqueue(kind, 10)
	}
	claimed("a", time.Nanosecond, 3, 1, 3, 4) // and its process ends
	claimed("b", time.Hour, 3, 1)             // alone, because it may have ended that process
	claimed("c", time.Hour, 3)                // another job of the kind runs
	finish := func(owner string, ids ...int64) error {
		var jobs []FinishedJob
		for _, id := range ids {
			put := simple(fmt.Sprint("new", id), 1).Put
			jobs = append(jobs, FinishedJob{id, []document.Change{{Put: put}}, put.ID})
		}
		return x.FinishJobs(t.Context(), owner, jobs...)
	}
	if err := finish("b", 1); err != nil {
		t.Fatal(err)
	}
	claimed("b", time.Hour, 3, 3)
	if err := x.ReleaseJobs(t.Context(), "b", 3, 4); err != nil { // it has claimed only one
		t.Fatal(err)
	}
	claimed("b", time.Hour, 3, 3)
	if err := finish("b", 3); err != nil {
		t.Fatal(err)
	}
	claimed("b", time.Hour, 3, 4)
	if err := finish("b", 4); err != nil {
		t.Fatal(err)
	}
	enqueue("k", claimBytes/2)
	enqueue("k", claimBytes/2) // too long to be claimed with the others
	enqueue("k", 0)
	claimed("b", time.Hour, 9, 5, 6)
	if err := finish("b", 5, 6, 7); !errors.Is(err, ErrLost) {
		t.Errorf("FinishJobs() with a job that was not claimed = %v", err)
	}
	if err := x.RenewJobs(t.Context(), "b", time.Hour, 5, 7); !errors.Is(err, ErrLost) {
		t.Errorf("RenewJobs() with a job that was not claimed = %v", err)
	}
	numbers, err := x.Numbers(t.Context(), 0, 10)
	if err != nil || len(numbers) != 3 {
		t.Errorf("documents %v, %v; want three: nothing of lost claims", numbers, err)
	}
	if err := finish("b", 5, 6); err != nil {
		t.Fatal(err)
	}
	claimed("b", time.Hour, 9, 7, 8)
}

// TestEnqueueAtOnce adds jobs while another process writes. They are added
// together, except the one whose caller does not wait.
func TestEnqueueAtOnce(t *testing.T) {
	dir := t.TempDir()
	x, other := openIn(t, dir), openIn(t, dir)
	defer closeIt(t, x)
	defer closeIt(t, other)
	blocking, err := raw(t, other).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	ids := make(chan int64, 20)
	for i := range cap(ids) + 2 {
		ctx, canceled := t.Context(), i%11 == 0 // the first may be the one that adds all jobs
		if canceled {
			ctx = impatient
		}
		callers.Go(func() {
			id, err := x.Enqueue(ctx, "k", "", nil)
			switch {
			case canceled && !errors.Is(err, context.Canceled) || !canceled && err != nil:
				t.Errorf("Enqueue() = %v", err)
			case err == nil:
				ids <- id
			}
		})
	}
	for waiting := 0; waiting < cap(ids)+2; {
		x.jobs.mu.Lock()
		waiting = len(x.jobs.waiting)
		x.jobs.mu.Unlock()
		runtime.Gosched()
	}
	cancel()
	for waiting := cap(ids) + 2; waiting > cap(ids); {
		x.jobs.mu.Lock()
		waiting = len(x.jobs.waiting)
		x.jobs.mu.Unlock()
		runtime.Gosched()
	}
	if err := blocking.Rollback(); err != nil {
		t.Fatal(err)
	}
	callers.Wait()
	close(ids)
	seen := map[int64]bool{}
	for id := range ids {
		seen[id] = true
	}
	jobs, err := x.Jobs(t.Context(), JobQueued, 100)
	if err != nil || len(jobs) != cap(ids) || len(seen) != cap(ids) {
		t.Fatalf("%d jobs with %d numbers, %v; want %d", len(jobs), len(seen), err, cap(ids))
	}
	for _, j := range jobs {
		if !seen[j.ID] || !j.Created.Equal(jobs[0].Created) {
			t.Errorf("job %d, created %v, want %v as the others", j.ID, j.Created, jobs[0].Created)
		}
	}
}
