package queue

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
)

// open opens the queue of a file until the test ends.
func open(t *testing.T, path string) *Queue {
	t.Helper()
	const kv = `CREATE TABLE kv(key TEXT PRIMARY KEY, value TEXT NOT NULL);`
	db, err := database.Open(t.Context(), database.Options{
		Path: path, Schema: database.Schema{Application: 1, First: 1, Create: kv + Tables,
			Upgrades: []database.Upgrade{AddUsers}}, Reads: Reads, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(db)
}

// openNew opens a new queue.
func openNew(t *testing.T) *Queue { return open(t, filepath.Join(t.TempDir(), "queue.db")) }

// claim claims a job of kind "k" and checks its ID; 0 means that there is none.
func claim(t *testing.T, q *Queue, owner string, ttl time.Duration, want int64) *Job {
	t.Helper()
	jobs := claimSome(t, q, owner, ttl, 1)
	if want == 0 && jobs == nil {
		return nil
	}
	if len(jobs) != 1 || jobs[0].ID != want {
		t.Fatalf("%s has claimed %+v, want job %d", owner, jobs, want)
	}
	return &jobs[0]
}

// claimSome claims up to limit jobs of kind "k".
func claimSome(t *testing.T, q *Queue, owner string, ttl time.Duration, limit int) []Job {
	t.Helper()
	jobs, err := q.Claim(t.Context(), "k", owner, ttl, limit)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// TestQueue follows jobs through all states.
func TestQueue(t *testing.T) {
	q := openNew(t)
	claim(t, q, "a", time.Hour, 0)
	for _, kind := range []string{"k", "k", "other"} {
		if _, err := q.Add(t.Context(), NewJob{Kind: kind, Filename: "file", Payload: []byte("payload")}); err != nil {
			t.Fatal(err)
		}
	}
	j := claim(t, q, "a", time.Hour, 1)
	if string(j.Payload) != "payload" || j.State != Running || j.Attempts != 1 || j.Filename != "file" {
		t.Errorf("job = %+v", j)
	}
	claim(t, q, "b", time.Hour, 0) // jobs of a kind run one after another
	if err := q.Release(t.Context(), "a", 1); err != nil {
		t.Fatal(err)
	}
	claim(t, q, "b", time.Nanosecond, 1) // and its process ends
	if j = claim(t, q, "c", time.Hour, 1); j.Attempts != 2 {
		t.Errorf("%d attempts, want 2: one was released", j.Attempts)
	}

	// The claim of b has ended: b can neither renew nor end it.
	for name, err := range map[string]error{
		"Renew": q.Renew(t.Context(), "b", time.Hour, 1),
		"Fail":  q.Fail(t.Context(), 1, "b", "message"),
		"End":   q.End(t.Context(), 1, "b", 7),
	} {
		if !errors.Is(err, ErrLost) || !errors.Is(err, errkind.Conflict) {
			t.Errorf("%s after the claim has ended: %v", name, err)
		}
	}
	if err := q.Release(t.Context(), "b", 1); err != nil {
		t.Error(err)
	}

	// c can.
	if err := q.Renew(t.Context(), "c", time.Hour, 1); err != nil {
		t.Error(err)
	}
	if err := q.End(t.Context(), 1, "c", 7); err != nil {
		t.Fatal(err)
	}
	claim(t, q, "a", time.Hour, 2)
	if err := q.Fail(t.Context(), 2, "a", "message"); err != nil {
		t.Fatal(err)
	}
	claim(t, q, "a", time.Hour, 0)

	jobs, err := q.Jobs(t.Context(), Filter{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		jobs[i].Created, jobs[i].Updated = time.Time{}, time.Time{}
	}
	want := []Job{
		{ID: 3, Kind: "other", State: Queued, Filename: "file"},
		{ID: 2, Kind: "k", State: Failed, Filename: "file", Attempts: 1, Error: "message"},
		{ID: 1, Kind: "k", State: Done, Filename: "file", Attempts: 2, Document: 7},
	}
	if diff := gocmp.Diff(want, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	counts, err := q.Count(t.Context(), Filter{})
	if diff := gocmp.Diff(map[string]int{Queued: 1, Failed: 1, Done: 1}, counts); diff != "" || err != nil {
		t.Errorf("counts (-want +got), %v:\n%s", err, diff)
	}
	if err := q.Forget(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if jobs, err = q.Jobs(t.Context(), Filter{}, 10); err != nil || len(jobs) != 1 || jobs[0].ID != 3 {
		t.Errorf("after Forget: %+v, %v", jobs, err)
	}
	if id, err := q.Add(t.Context(), NewJob{Kind: "k"}); err != nil || id != 4 {
		t.Errorf("the next job has the ID %d, %v; want 4", id, err)
	}
}

// TestClaimAgain checks that a process that claims a job again, because it could
// not release it, has not made another attempt.
func TestClaimAgain(t *testing.T) {
	q := openNew(t)
	if _, err := q.Add(t.Context(), NewJob{Kind: "k", Filename: "a", Payload: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		owner    string
		attempts int
	}{{"one", 1}, {"one", 1}, {"two", 2}, {"two", 2}, {"one", 3}} {
		if j := claim(t, q, c.owner, time.Nanosecond, 1); j.Attempts != c.attempts {
			t.Errorf("claim of %s: %d attempts, want %d", c.owner, j.Attempts, c.attempts)
		}
	}
}

// TestClaimSeveral checks which jobs are claimed together, and that they end
// together.
func TestClaimSeveral(t *testing.T) {
	q := openNew(t)
	enqueue := func(kind string, payload int) {
		t.Helper()
		if _, err := q.Add(t.Context(), NewJob{Kind: kind, Payload: make([]byte, payload)}); err != nil {
			t.Fatal(err)
		}
	}
	claimed := func(owner string, ttl time.Duration, limit int, want ...int64) {
		t.Helper()
		var got []int64
		for _, j := range claimSome(t, q, owner, ttl, limit) {
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
		return q.db.Write(t.Context(), "ending jobs", func(tx *sql.Tx) error {
			for _, id := range ids {
				if err := EndIn(t.Context(), tx, id, owner, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := finish("b", 1); err != nil {
		t.Fatal(err)
	}
	claimed("b", time.Hour, 3, 3)
	if err := q.Release(t.Context(), "b", 3, 4); err != nil { // it has claimed only one
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
		t.Errorf("EndIn() with a job that was not claimed = %v", err)
	}
	if err := q.Renew(t.Context(), "b", time.Hour, 5, 7); !errors.Is(err, ErrLost) {
		t.Errorf("Renew() with a job that was not claimed = %v", err)
	}
	if err := finish("b", 5, 6); err != nil {
		t.Fatal(err)
	}
	claimed("b", time.Hour, 9, 7, 8)
}

// TestAddAtOnce adds jobs while another process writes. They are added
// together, except the one whose caller does not wait.
func TestAddAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	q, other := open(t, path), open(t, path)
	blocked, unblock, blocking := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		blocking <- other.db.Write(t.Context(), "blocking", func(*sql.Tx) error {
			close(blocked)
			<-unblock
			return nil
		})
	}()
	<-blocked
	impatient, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	ids := make(chan int64, 20)
	for i := range cap(ids) + 2 {
		ctx, canceled := t.Context(), i%11 == 0 // the first may be the one that adds all jobs
		if canceled {
			ctx = impatient
		}
		callers.Go(func() {
			id, err := q.Add(ctx, NewJob{Kind: "k"})
			switch {
			case canceled && !errors.Is(err, context.Canceled) || !canceled && err != nil:
				t.Errorf("Add() = %v", err)
			case err == nil:
				ids <- id
			}
		})
	}
	for waiting := 0; waiting < cap(ids)+2; {
		q.mu.Lock()
		waiting = len(q.waiting)
		q.mu.Unlock()
		runtime.Gosched()
	}
	cancel()
	for waiting := cap(ids) + 2; waiting > cap(ids); {
		q.mu.Lock()
		waiting = len(q.waiting)
		q.mu.Unlock()
		runtime.Gosched()
	}
	close(unblock)
	if err := <-blocking; err != nil {
		t.Fatal(err)
	}
	callers.Wait()
	close(ids)
	seen := map[int64]bool{}
	for id := range ids {
		seen[id] = true
	}
	jobs, err := q.Jobs(t.Context(), Filter{State: Queued}, 100)
	if err != nil || len(jobs) != cap(ids) || len(seen) != cap(ids) {
		t.Fatalf("%d jobs with %d numbers, %v; want %d", len(jobs), len(seen), err, cap(ids))
	}
	for _, j := range jobs {
		if !seen[j.ID] || !j.Created.Equal(jobs[0].Created) {
			t.Errorf("job %d, created %v, want %v as the others", j.ID, j.Created, jobs[0].Created)
		}
	}
}

// TestUsers checks that a filter for a user selects nothing of others.
func TestUsers(t *testing.T) {
	q := openNew(t)
	for i := range 12 {
		user := []string{"", "ann", "bob"}[i%3]
		if id, err := q.Add(t.Context(), NewJob{User: user, Kind: "k"}); err != nil || id != int64(i+1) {
			t.Fatalf("Add() = %d, %v, want %d", id, err, i+1)
		}
	}
	claim(t, q, "a", time.Hour, 1)
	if err := q.End(t.Context(), 1, "a", 7); err != nil {
		t.Fatal(err)
	}
	claim(t, q, "a", time.Hour, 2)
	for _, c := range []struct {
		f      Filter
		jobs   []int64 // up to three
		counts map[string]int
	}{
		{Filter{}, []int64{12, 11, 10}, map[string]int{Queued: 10, Running: 1, Done: 1}},
		{Filter{User: "ann"}, []int64{11, 8, 5}, map[string]int{Queued: 3, Running: 1}},
		{Filter{User: "ann", State: Running}, []int64{2}, map[string]int{Running: 1}},
		{Filter{User: "ann", State: Done}, nil, nil},
		{Filter{User: "bob"}, []int64{12, 9, 6}, map[string]int{Queued: 4}},
		{Filter{User: "eve"}, nil, nil},
	} {
		var ids []int64
		jobs, err := q.Jobs(t.Context(), c.f, 3)
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		if diff := gocmp.Diff(c.jobs, ids); diff != "" || err != nil {
			t.Errorf("Jobs(%+v) (-want +got), %v:\n%s", c.f, err, diff)
		}
		counts, err := q.Count(t.Context(), c.f)
		if diff := gocmp.Diff(c.counts, counts, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("Count(%+v) (-want +got), %v:\n%s", c.f, err, diff)
		}
	}
	if j, err := q.Job(t.Context(), Filter{User: "bob"}, 3); err != nil || j.ID != 3 {
		t.Errorf("Job() of its user = %+v, %v", j, err)
	}
	_, others := q.Job(t.Context(), Filter{User: "bob"}, 2)
	_, none := q.Job(t.Context(), Filter{User: "bob"}, 99)
	if !errors.Is(others, errkind.NotFound) || strings.Replace(none.Error(), "99", "2", 1) != others.Error() {
		t.Errorf("Job() of another user = %v, of a job that does not exist = %v", others, none)
	}
}
