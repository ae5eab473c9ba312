// Package job runs work that may outlast its request, but not the process. A
// caller gets the result of short work like that of a function call. For longer
// work it gets a handle, with which it can later query the progress and the
// result. Servers run their slow calls with a [Manager]. The package does not
// depend on a protocol.
package job

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A State is the state of a job.
type State string

// The states. A job starts as queued or running and ends in one of the other
// three states, which are final.
const (
	Queued    State = "queued"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether s is one of the final states.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// A Status is a snapshot of the state of a job.
type Status struct {
	ID    string // unguessable
	State State

	// Progress never decreases. It has the unit of Total; a Total of 0 is
	// unknown. When a job is done, Progress is Total, if known.
	Progress float64
	Total    float64

	Message string // the last reported phase, or else the state

	StartedAt time.Time // when the job was accepted
	UpdatedAt time.Time // when it last changed

	Result any   // the result of Run, if the job is done
	Err    error // why the job failed or was cancelled; nil otherwise
}

// A Report reports the progress of running work: done of total, both on one
// scale for the whole task, and the phase in one or two words. A total of 0 is
// unknown. If done decreases or is not finite, the largest value so far is
// used. A Report may be called from any goroutine. Calls after the end have no
// effect.
type Report func(done, total float64, message string)

// A Task is the work of a job.
type Task struct {
	// Key identifies the work. Callers with the same Key share one job and its
	// kept result. It must contain everything that the result depends on,
	// including the identity of the caller if results differ by caller. With
	// "", nothing is shared.
	Key string

	// Owner is the identity of the caller, or a value that stands for it. Only
	// calls with the same Owner and ID can query or cancel the job. Tasks with
	// one Key must have one Owner. "" is an owner like any other.
	Owner string

	// Run does the work. It must return soon after ctx has ended, because it
	// keeps its slot until then. ctx has the values of the first caller's
	// context, but neither its deadline nor its cancellation. A panic becomes
	// an error without a kind.
	Run func(ctx context.Context, report Report) (any, error)

	// Size returns the approximate size of a result in bytes of memory. It is
	// called once, when a job is done; nil means 0.
	Size func(result any) int64

	// Notify is called with the status: at the start, after changes, at the end
	// (unless cancelled), and at least every [heartbeat] in between. Progress
	// is larger in each call, by a tiny amount if the work has made no
	// progress. Changes that follow each other within less than [minInterval]
	// are merged. Calls do not overlap, and the last one ends before Do returns
	// a result. A slow call delays only its own caller. Calls continue after Do
	// has returned a handle. nil means no calls.
	Notify func(Status)
}

// Intervals of the calls of Notify.
const (
	heartbeat   = 5 * time.Second        // maximum; clients give up on silent requests after 10 s or more
	minInterval = 100 * time.Millisecond // minimum, except before the last call
)

// Options configure a Manager. Except for Threshold, zero values mean the
// defaults.
type Options struct {
	Threshold  time.Duration // how long Do waits for a result; with 0, it returns a handle at once
	Keep       time.Duration // how long a job is kept after its end; 0 means 10 minutes
	MaxRunning int           // concurrent jobs; 0 means 32
	MaxQueued  int           // queued jobs; 0 means 64
	MaxKept    int           // maximum number of ended jobs that are kept; the oldest are dropped first; 0 means 10,000
	MaxBytes   int64         // maximum size of all kept results, by Task.Size; 0 means 64 MiB
	Log        *slog.Logger  // nil discards
}

// A Manager runs jobs. It is safe for concurrent use. Close ends it.
type Manager struct {
	opts Options
	log  *slog.Logger

	mu      sync.Mutex
	jobs    map[string]*job // those that can be queried, by id
	byKey   map[string]*job // those that a new caller can join
	live    map[*job]bool   // those that have not ended
	waiting []*job          // queued ones, first come first
	kept    []*job          // ended ones, oldest first
	bytes   int64           // of the kept ones
	running int             // slots taken
	active  int             // running goroutines of the manager
	closed  bool
	idle    chan struct{} // closed when the manager is closed and active is 0
}

// New returns a manager without jobs.
func New(o Options) *Manager {
	if o.Keep <= 0 {
		o.Keep = 10 * time.Minute
	}
	if o.MaxRunning <= 0 {
		o.MaxRunning = 32
	}
	if o.MaxQueued <= 0 {
		o.MaxQueued = 64
	}
	if o.MaxKept <= 0 {
		o.MaxKept = 10_000
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Manager{opts: o, log: o.Log, jobs: map[string]*job{}, byKey: map[string]*job{}, live: map[*job]bool{},
		idle: make(chan struct{})}
}

// Status returns the status of the owner's job with the given id. Only jobs of
// which Do returned a handle can be queried. The error is of kind NotFound; it
// is the same for a job of another owner and for a job that never existed.
func (m *Manager) Status(owner, id string) (Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, err := m.findLocked(owner, id)
	if err != nil {
		return Status{}, err
	}
	return j.status, nil
}

// Wait is like Status, but waits up to d for a change. It returns at once if
// the job has ended. If ctx ends first, it returns ctx's error.
func (m *Manager) Wait(ctx context.Context, owner, id string, d time.Duration) (Status, error) {
	m.mu.Lock()
	j, err := m.findLocked(owner, id)
	if err != nil {
		m.mu.Unlock()
		return Status{}, err
	}
	st, changed := j.status, j.watchLocked()
	m.mu.Unlock()
	if st.State.Ended() || d <= 0 {
		return st, nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return Status{}, ctx.Err()
	}
	// Use the job itself, because it may have been dropped in the meantime.
	m.mu.Lock()
	defer m.mu.Unlock()
	return j.status, nil
}

// Cancel withdraws one of the callers that got a handle for the owner's job with
// the given id. If none of them is left, the job is cancelled for all callers. It has
// no effect if the job has ended. The error is that of Status.
func (m *Manager) Cancel(owner, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, err := m.findLocked(owner, id)
	if err != nil {
		return err
	}
	if j.handles--; j.handles > 0 {
		return nil
	}
	m.cancelLocked(j, fmt.Errorf("the work was cancelled, start it again: %w", errkind.Unavailable))
	return nil
}

func (m *Manager) findLocked(owner, id string) (*job, error) {
	if j := m.jobs[id]; j != nil && j.owner == owner {
		return j, nil
	}
	return nil, fmt.Errorf("no such job: its id is wrong, or its result is no longer kept; make the request that "+
		"started it again: %w",
		errkind.NotFound)
}

// Close cancels all jobs, drops the kept ones, and waits until their work has
// returned. If ctx ends first, it returns ctx's error. Later calls of Do fail.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		for j := range m.live {
			m.cancelLocked(j, errClosed)
		}
		for len(m.kept) > 0 {
			m.dropLocked(m.kept[0])
		}
		m.checkIdleLocked()
	}
	m.mu.Unlock()
	select {
	case <-m.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errClosed = fmt.Errorf("the server is shutting down, try again later: %w", errkind.Unavailable)
