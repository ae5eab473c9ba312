// Package job runs work that may outlast the request that asked for it, but
// not the process. Work that ends soon is answered like a plain function call;
// of work that takes longer the caller gets a handle, by which it asks for
// progress and the result later. Front ends put their slow calls through a
// [Manager]; the package knows nothing of any protocol.
package job

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"knowhow/internal/errkind"
)

// A State says how far a job is.
type State string

// The states. A job starts as queued or running and ends as one of the other
// three; what has ended never changes again.
const (
	Queued    State = "queued"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether s is one of the final states.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// A Status is what there is to know of a job at one moment.
type Status struct {
	ID    string // unguessable
	State State

	// Progress never falls. It is in the unit of Total; a Total of 0 is
	// unknown. A job that is done has a Progress of Total, where known.
	Progress float64
	Total    float64

	Message string // the phase that the work reported last, else the state

	StartedAt time.Time // when the job was accepted
	UpdatedAt time.Time // when it last changed

	Result any   // what Run returned, once the job is done
	Err    error // why the job failed or was cancelled; nil otherwise
}

// A Report is how running work tells how far it is: done of total, both on one
// scale for the whole task, and the phase in a word or two. A total of 0 is
// unknown. A done that falls, or that is no finite number, counts as the
// largest one so far. It may be called from any goroutine; calls after the end
// do nothing.
type Report func(done, total float64, message string)

// A Task is work to be done.
type Task struct {
	// Key names the work, so that those who want the same share one job and
	// its kept result. It must hold everything that the result depends on,
	// the identity of the caller included where results differ by caller.
	// "" shares nothing.
	Key string

	// Owner is who alone may ask for the job and end it, besides knowing its
	// ID: the identity of the caller, or something that stands for it. Tasks
	// of one Key must have one Owner. "" is everybody who says so.
	Owner string

	// Run does the work. It must return soon after ctx has ended, because it
	// holds its slot until then. ctx carries the values of the first
	// caller's context but neither its deadline nor its end. A panic becomes
	// an error of no kind.
	Run func(ctx context.Context, report Report) (any, error)

	// Size returns about how many bytes of memory a result takes. It is asked
	// once a job is done; nil counts as 0.
	Size func(result any) int64

	// Notify is told how the work goes: at its start, when it changes, at
	// the end (unless cancelled), and at least every [heartbeat] in between.
	// The Progress it sees is larger each time, by a tiny bit where there is
	// none; changes that follow each other closer than [minInterval] are
	// merged. Calls come one after the other, the last one before Do returns
	// a result; one that takes long holds up its own caller alone. It goes
	// on after Do has returned a handle. nil listens to nothing.
	Notify func(Status)
}

// How often Notify is called.
const (
	heartbeat   = 5 * time.Second        // at least; clients give up on silent requests after 10 s and more
	minInterval = 100 * time.Millisecond // at most, but for the end
)

// Options set a Manager's bounds. The zero value of each but Threshold is its
// default.
type Options struct {
	Threshold  time.Duration // how long Do waits for a result; 0 gives a handle at once
	Keep       time.Duration // how long a job is kept after its end; 0 means 10 minutes
	MaxRunning int           // jobs that run at once; 0 means 32
	MaxQueued  int           // jobs that wait for their turn; 0 means 64
	MaxKept    int           // ended jobs kept, the oldest goes first; 0 means 256
	MaxBytes   int64         // of all kept results together, by Task.Size; 0 means 64 MiB
	Log        *slog.Logger  // nil discards
}

// A Manager runs jobs. It is safe for concurrent use. Close ends it.
type Manager struct {
	opts Options
	log  *slog.Logger

	mu      sync.Mutex
	jobs    map[string]*job // those that a caller may ask for, by id
	byKey   map[string]*job // those that a new caller may join
	live    map[*job]bool   // those that have not ended
	waiting []*job          // queued ones, first come first
	kept    []*job          // ended ones, oldest first
	bytes   int64           // of the kept ones
	running int             // slots taken
	active  int             // goroutines of ours
	closed  bool
	idle    chan struct{} // closed when closed and active is 0
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
		o.MaxKept = 256
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

// Status returns how the owner's job of that id is doing. Only jobs of which Do
// has returned a handle can be asked for. The error is of kind NotFound; of a job
// of somebody else it is the same as of one that never was.
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
// the job has ended. Where ctx ends first, it returns its error.
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
	// The job itself is looked at, which may have been dropped meanwhile.
	m.mu.Lock()
	defer m.mu.Unlock()
	return j.status, nil
}

// Cancel ends the owner's job of that id as cancelled, for everybody who waits
// for it. It changes nothing where the job has ended already. The error is that
// of Status.
func (m *Manager) Cancel(owner, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, err := m.findLocked(owner, id)
	if err != nil {
		return err
	}
	m.cancelLocked(j, fmt.Errorf("the work was cancelled, start it again: %w", errkind.Unavailable))
	return nil
}

func (m *Manager) findLocked(owner, id string) (*job, error) {
	if j := m.jobs[id]; j != nil && j.owner == owner {
		return j, nil
	}
	return nil, fmt.Errorf("no such job: its id is wrong, or its result is no longer kept; make the request that started it again: %w",
		errkind.NotFound)
}

// Close cancels all jobs, forgets the kept ones and waits until their work has
// returned. Where ctx ends first, it returns its error. Further calls of Do are
// refused.
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
