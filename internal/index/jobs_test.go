package index

import (
	"errors"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
)

// TestFinishJobs checks that documents are stored and their jobs end together, or
// not at all.
func TestFinishJobs(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	for range 2 {
		if _, err := x.Queue().Add(t.Context(), queue.NewJob{Kind: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	jobs, err := x.Queue().Claim(t.Context(), "k", "a", time.Hour, 1)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("Claim() = %v, %v", jobs, err)
	}
	one, two := simple("one", 1).Put, simple("two", 1).Put
	finished := []FinishedJob{{1, []document.Change{{Put: one}}, one.ID}, {2, []document.Change{{Put: two}}, two.ID}}
	for owner, jobs := range map[string][]FinishedJob{"b": finished[:1], "a": finished} { // a has claimed only one
		if err := x.FinishJobs(t.Context(), owner, jobs...); !errors.Is(err, queue.ErrLost) ||
			!errors.Is(err, errkind.Conflict) {
			t.Errorf("FinishJobs() of %s with a job that it has not claimed = %v", owner, err)
		}
		if _, err := x.RecordOf(t.Context(), one.ID); !errors.Is(err, errkind.NotFound) {
			t.Errorf("the document of a lost claim: %v", err)
		}
	}
	if err := x.FinishJobs(t.Context(), "a", finished[0]); err != nil {
		t.Fatal(err)
	}
	record, err := x.RecordOf(t.Context(), one.ID)
	if err != nil {
		t.Fatal(err)
	}
	j, err := x.Queue().Job(t.Context(), queue.Filter{}, 1)
	if err != nil || j.State != queue.Done || j.Document != record.Number {
		t.Errorf("Job() = %+v, %v, want it done with document %d", j, err, record.Number)
	}
}
