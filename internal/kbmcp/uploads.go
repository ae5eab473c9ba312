package kbmcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// UploadOptions configure a staging area. The zero value of a limit is its
// default.
type UploadOptions struct {
	Dir     string        // folder of the staged files; it is created, and staged files in it are deleted
	MaxSize int64         // of a file, in bytes; 0 is 100 MiB
	MaxOpen int           // uploads of a user at the same time; 0 is 32
	MaxAll  int           // uploads of all users at the same time; 0 is 8 times MaxOpen
	TTL     time.Duration // time from the start of an upload until it is dropped if it is not finished; 0 is 10 minutes
}

// Defaults of UploadOptions.
const (
	defaultMaxSize = 100 << 20
	defaultMaxOpen = 32
	defaultTTL     = 10 * time.Minute
)

// maxFinished is the number of finished uploads whose jobs are kept.
const maxFinished = 1000

// stagedFiles matches the names of staged files.
const stagedFiles = "knowhow-upload-*"

// Uploads is a staging area: files that arrive in chunks, on disk, until they
// are complete. It is safe for concurrent use. Create one with OpenUploads.
type Uploads struct {
	o UploadOptions

	mu       sync.Mutex // guards what follows; no upload is locked while it is
	byID     map[string]*upload
	finished []*upload // those of byID, the oldest first
	closed   bool
}

// An upload is a file that arrives in chunks.
type upload struct {
	id    string
	owner string // the user who has started it; "" if the server has no users
	start uploadStart
	timer *time.Timer
	done  atomic.Bool // it was sent, and job is its job

	mu        sync.Mutex // guards what follows
	file      *stagedFile
	chunks    map[int]extent
	last      int      // index of chunks; 0 if there are none
	empty     int      // chunks without bytes
	size      int64    // of all chunks together, in bytes
	end       int64    // of the file, which also has chunks that were replaced
	finishing int      // calls of finish
	sending   *sending // by one of them; nil if none sends it
	expired   bool     // its time has ended
	dropped   bool     // it leaves byID
	job       int64
}

// A sending is an attempt to pass a file on.
type sending struct {
	ended     chan struct{} // closed when the attempt has ended; the other fields are set then
	job       int64
	err       error
	cancelled bool // it failed and its caller is gone
}

// An extent is a part of a file.
type extent struct{ offset, size int64 }

// An uploadStart describes a file before its first chunk.
type uploadStart struct {
	file   kb.File
	size   int64  // bytes
	sha256 string // lower-case hex; "" if it is not known
}

// An uploadState is how much of an upload has arrived.
type uploadState struct {
	UploadID  string `json:"upload_id"`
	Received  int64  `json:"received"` // bytes
	TotalSize int64  `json:"total_size"`
	Chunks    int    `json:"chunks"`
	Missing   string `json:"missing,omitempty"` // indexes before the last chunk, such as "2-4, 7"
}

// OpenUploads returns an empty staging area. It deletes what an earlier process
// left in its folder. Several processes may use the same folder.
func OpenUploads(o UploadOptions) (*Uploads, error) {
	o.MaxSize, o.MaxOpen, o.TTL = cmp.Or(o.MaxSize, defaultMaxSize), cmp.Or(o.MaxOpen, defaultMaxOpen),
		cmp.Or(o.TTL, defaultTTL)
	o.MaxAll = cmp.Or(o.MaxAll, 8*o.MaxOpen)
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of uploads: %w", err)
	}
	left, err := fs.Glob(os.DirFS(o.Dir), stagedFiles)
	if err != nil {
		return nil, fmt.Errorf("reading the folder of uploads: %w", err)
	}
	for _, name := range left {
		// On Unix, the files of running processes have no names (see
		// newFile). On Windows they cannot be removed.
		_ = os.Remove(filepath.Join(o.Dir, name))
	}
	return &Uploads{o: o, byID: map[string]*upload{}}, nil
}

// Close drops all uploads. Later calls fail.
func (a *Uploads) Close() error {
	a.mu.Lock()
	a.closed = true
	all := slices.Collect(maps.Values(a.byID))
	clear(a.byID)
	a.mu.Unlock()
	for _, u := range all {
		u.timer.Stop()
		u.mu.Lock()
		u.drop()
		u.mu.Unlock()
	}
	return nil
}

// count returns the number of uploads of the caller that are not finished.
func (a *Uploads) count(ctx context.Context) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	own, _ := a.open(access.From(ctx).Owner())
	return own
}

// open returns the numbers of uploads of a user, and of all users, that are not
// finished. The caller holds the mutex.
func (a *Uploads) open(owner string) (own, all int) {
	for _, u := range a.byID {
		if u.done.Load() {
			continue
		}
		all++
		if u.owner == owner {
			own++
		}
	}
	return own, all
}

// begin starts an upload of the caller and returns its id. The error is of kind TooLarge if
// the file is too large, and Busy if there are too many uploads.
func (a *Uploads) begin(ctx context.Context, s uploadStart) (id string, err error) {
	if s.size > a.o.MaxSize {
		return "", fmt.Errorf("total_size is %d bytes, but files of at most %d bytes are accepted: %w", s.size,
			a.o.MaxSize,
			errkind.TooLarge)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return "", errClosed
	}
	owner := access.From(ctx).Owner()
	switch own, all := a.open(owner); {
	case own >= a.o.MaxOpen:
		return "", fmt.Errorf(
			"%d uploads are not finished, which is the limit; finish one, or try again in a few minutes: %w",
			a.o.MaxOpen, errkind.Busy)
	case all >= a.o.MaxAll:
		return "", fmt.Errorf("the server has no room for another upload; try again in a few minutes: %w", errkind.Busy)
	}
	f, err := a.newFile()
	if err != nil {
		return "", err
	}
	u := &upload{id: newUUID(), owner: owner, start: s, file: f, chunks: map[int]extent{}}
	u.timer = time.AfterFunc(a.o.TTL, func() { a.expire(u) })
	a.byID[u.id] = u
	return u.id, nil
}

var errClosed = fmt.Errorf("the server is ending, try again when it is back: %w", errkind.Unavailable)

// ttl returns the time of an upload as people write it: 10m, not 10m0s.
func (a *Uploads) ttl() string { return strings.Replace(a.o.TTL.String(), "m0s", "m", 1) }

// expire ends the time of an upload. It is dropped, unless it is finished or a call
// of finish is at work.
func (a *Uploads) expire(u *upload) {
	u.mu.Lock()
	u.expired = true
	u.mu.Unlock()
	a.dropExpired(u)
}

// dropExpired drops an upload whose time has ended and that nothing can finish.
func (a *Uploads) dropExpired(u *upload) {
	u.mu.Lock()
	ended := u.expired && !u.dropped && !u.done.Load() && u.finishing == 0
	if ended {
		u.drop()
	}
	u.mu.Unlock()
	if ended {
		a.mu.Lock()
		delete(a.byID, u.id)
		a.mu.Unlock()
	}
}

// drop closes the file of an upload that is locked. If a call of finish sends it,
// that call closes it.
func (u *upload) drop() {
	u.dropped = true
	if u.sending == nil {
		u.file.close()
	}
}

// keep keeps the job of an upload that was sent, for repeated calls of finish.
func (a *Uploads) keep(u *upload) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.finished = append(a.finished, u)
	if len(a.finished) > maxFinished {
		delete(a.byID, a.finished[0].id)
		a.finished = slices.Delete(a.finished, 0, 1)
	}
}

// lock returns an upload of the caller, locked. The error is of kind NotFound if the
// caller has no such upload.
func (a *Uploads) lock(ctx context.Context, id string) (*upload, error) {
	a.mu.Lock()
	u, closed := a.byID[id], a.closed
	a.mu.Unlock()
	if u != nil && u.owner == access.From(ctx).Owner() {
		u.mu.Lock()
		if !u.dropped {
			return u, nil
		}
		u.mu.Unlock()
	}
	if closed {
		return nil, errClosed
	}
	return nil, fmt.Errorf("upload %s does not exist: an upload ends %v after its start and when the server restarts; "+
		"start a new one with kb_upload_start: %w", sanitize.Escape(cut(id)), a.ttl(), errkind.NotFound)
}

// lockOpen returns an upload of the caller that chunks can be added to, locked. The error
// is of kind NotFound if the caller has no such upload, and Conflict if it is finished.
func (a *Uploads) lockOpen(ctx context.Context, id string) (*upload, error) {
	u, err := a.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	// The right may have been taken away since kb_upload_start.
	err = kb.CheckWrite(ctx, Collection(u.start.file.Tags))
	if err == nil && (u.done.Load() || u.sending != nil) {
		err = errFinished
	}
	if err != nil {
		u.mu.Unlock()
		return nil, err
	}
	return u, nil
}

var errFinished = fmt.Errorf("the upload is already finished; start a new one with kb_upload_start: %w",
	errkind.Conflict)

// maxEmpty is the number of chunks without bytes that an upload may have. They
// stand for numbers that a client has skipped.
const maxEmpty = 100

// chunk stores a chunk. A chunk with the index of an earlier one replaces it. A
// chunk that completes the file while an index before the last one is missing
// is refused, because the missing chunk could not be added later.
func (a *Uploads) chunk(ctx context.Context, id string, index int, data []byte) (*uploadState, error) {
	u, err := a.lockOpen(ctx, id)
	if err != nil {
		return nil, err
	}
	defer u.mu.Unlock()
	size := int64(len(data))
	old, replaced := u.chunks[index]
	total := u.size - old.size + size
	if total > u.start.size {
		return nil, fmt.Errorf("with this chunk the file has %d bytes, but total_size is %d; send the missing bytes only, "+
			"or start a new upload with the right total_size: %w", total, u.start.size, errkind.Invalid)
	}
	empty := u.empty
	if replaced && old.size == 0 {
		empty--
	}
	if size == 0 {
		empty++
	}
	if empty > maxEmpty {
		return nil, fmt.Errorf("%d chunks of this upload are empty, which is the limit; number the chunks without gaps, "+
			"and send each with its bytes: %w", u.empty, errkind.Invalid)
	}
	if total == u.start.size {
		if gaps := u.gaps(index); gaps != "" {
			return nil, fmt.Errorf("chunk_index %s is missing, but with this chunk all %d bytes of total_size have arrived; "+
				"if the number was skipped, "+
				"send it with empty data and then this chunk again, or send this chunk with the missing number; "+
				"otherwise start a new upload with the right total_size: %w", gaps, total, errkind.Invalid)
		}
	}
	at := extent{u.end, size}
	if replaced && old.size >= size {
		at.offset = old.offset
	} else if u.end+size > 2*u.start.size {
		return nil, fmt.Errorf("chunks of this upload were replaced too often; start a new one with kb_upload_start: %w",
			errkind.Conflict)
	}
	if _, err := u.file.WriteAt(data, at.offset); err != nil {
		return nil, writeError(err)
	}
	u.chunks[index], u.last, u.empty, u.size, u.end = at, max(u.last, index), empty, total, max(u.end, at.offset+size)
	return u.state(), nil
}

// put stores a whole file, which replaces all chunks.
// length is the number of bytes that r will return, -1 if it is not known.
func (a *Uploads) put(ctx context.Context, id string, length int64, r io.Reader) (*uploadState, error) {
	u, err := a.lockOpen(ctx, id)
	if err != nil {
		return nil, err
	}
	u.mu.Unlock()                              // while the body arrives
	if length >= 0 && length != u.start.size { // start never changes
		return nil, wrongSize(strconv.FormatInt(length, 10), u.start.size)
	}
	f, err := a.newFile()
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(f, io.LimitReader(r, u.start.size+1))
	if _, ok := errors.AsType[*os.PathError](err); ok {
		err = writeError(err)
	} else if err != nil {
		err = fmt.Errorf("reading the body: %w; send it again: %w", err, errkind.Invalid)
	} else if n != u.start.size {
		what := strconv.FormatInt(n, 10)
		if n > u.start.size {
			what = "more"
		}
		err = wrongSize(what, u.start.size)
	}
	if err == nil {
		u, err = a.lockOpen(ctx, id)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	defer u.mu.Unlock()
	u.file.close()
	u.file, u.size, u.end, u.empty = f, n, n, 0
	u.chunks, u.last = map[int]extent{0: {0, n}}, 0
	return u.state(), nil
}

func wrongSize(got string, want int64) error {
	return fmt.Errorf("the body has %s bytes, but total_size is %d; send the whole file, or start a new upload with the "+
		"right total_size: %w",
		got, want, errkind.Invalid)
}

func (u *upload) state() *uploadState {
	return &uploadState{UploadID: u.id, Received: u.size, TotalSize: u.start.size, Chunks: len(u.chunks),
		Missing: u.gaps(-1)}
}

// A sendFunc passes a file on, and returns its job.
type sendFunc func(context.Context, kb.File, io.Reader) (job int64, err error)

// finish passes a complete file to send, and returns the job that send returns.
// If the file is not complete, the error says what is missing, and if send
// fails, finish may be called again. After success, a repeated call returns the
// same job. A call while another one sends the file waits for its result.
func (a *Uploads) finish(ctx context.Context, id string, send sendFunc) (int64, error) {
	u, err := a.lock(ctx, id)
	if err != nil {
		return 0, err
	}
	u.finishing++
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		u.finishing--
		u.mu.Unlock()
		a.dropExpired(u)
	}()
	for {
		u.mu.Lock()
		job, done, first := u.job, u.done.Load(), u.sending
		if !done && first == nil {
			u.sending = &sending{ended: make(chan struct{})}
		}
		u.mu.Unlock()
		switch {
		case done:
			return job, nil
		case first == nil:
			return a.sendOnce(ctx, u, send)
		}
		select {
		case <-first.ended:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if !first.cancelled {
			return first.job, first.err
		}
	}
}

// errEarly is the error of a sending that has panicked, for the calls that wait for it.
var errEarly = errors.New("sending an upload ended early")

// sendOnce sends an upload whose sending is that of the caller.
func (a *Uploads) sendOnce(ctx context.Context, u *upload, send sendFunc) (int64, error) {
	s := u.sending
	s.err = errEarly
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.sending = nil
		if s.err == nil {
			u.job = s.job
			u.done.Store(true)
			u.timer.Stop()
		}
		if s.err == nil || u.dropped {
			u.file.close()
		}
		if s.err == nil {
			u.chunks = nil
			a.keep(u)
		}
		s.cancelled = s.err != nil && ctx.Err() != nil
		close(s.ended)
	}()
	// While sending is set, no other call changes the upload.
	s.job, s.err = u.send(ctx, send)
	return s.job, s.err
}

// send checks a file and passes it on.
func (u *upload) send(ctx context.Context, send sendFunc) (int64, error) {
	if len(u.chunks) == 0 {
		return 0, fmt.Errorf("chunks are missing: 0 (none has arrived); send them and finish again: %w",
			errkind.Conflict)
	}
	if gaps := u.gaps(-1); gaps != "" {
		return 0, fmt.Errorf("chunks are missing: %s; send them and finish again: %w", gaps, errkind.Conflict)
	}
	if u.size != u.start.size {
		return 0, fmt.Errorf("%d of %d bytes have arrived in %d chunks; send the rest with the next chunk_index, which is "+
			"%d, and finish again: %w",
			u.size, u.start.size, len(u.chunks), len(u.chunks), errkind.Conflict)
	}
	if u.start.sha256 != "" {
		h := sha256.New()
		if _, err := io.Copy(h, u.reader()); err != nil {
			return 0, fmt.Errorf("reading an upload: %w", err)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != u.start.sha256 {
			return 0, fmt.Errorf("the file that arrived has the sha256 %s, but %s was announced: a chunk was damaged; "+
				"send the chunks again and finish again: %w", got, u.start.sha256, errkind.Conflict)
		}
	}
	return send(ctx, u.start.file, u.reader())
}

// reader returns a reader of the chunks in order.
func (u *upload) reader() io.Reader {
	parts := make([]io.Reader, len(u.chunks))
	for i, c := range u.chunks {
		parts[i] = io.NewSectionReader(u.file, c.offset, c.size)
	}
	return io.MultiReader(parts...)
}

// maxGaps is the maximum number of gaps that an error lists.
const maxGaps = 10

// gaps lists the indexes before the last one that are missing, for example
// "2-4, 7". The chunk with the index coming counts as received; -1 is none.
func (u *upload) gaps(coming int) string {
	var gaps []string
	more := 0
	missing := func(i int) bool {
		_, ok := u.chunks[i]
		return !ok && i != coming
	}
	last := max(u.last, coming)
	for i := 0; i < last; i++ {
		if !missing(i) {
			continue
		}
		first := i
		for i+1 < last && missing(i+1) {
			i++
		}
		switch {
		case len(gaps) == maxGaps:
			more++
		case first == i:
			gaps = append(gaps, strconv.Itoa(i))
		default:
			gaps = append(gaps, fmt.Sprintf("%d-%d", first, i))
		}
	}
	if more > 0 {
		gaps = append(gaps, fmt.Sprintf("and %d more gaps", more))
	}
	return strings.Join(gaps, ", ")
}

// A stagedFile is a file without a name where the system permits that, so that
// nothing is left when the process dies.
type stagedFile struct {
	*os.File
	path string // "" if it has no name
}

func (a *Uploads) newFile() (*stagedFile, error) {
	f, err := os.CreateTemp(a.o.Dir, stagedFiles)
	if err != nil {
		return nil, writeError(err)
	}
	s := &stagedFile{File: f}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.path = f.Name()
	}
	return s, nil
}

// close deletes the file. It may be called more than once.
func (f *stagedFile) close() {
	_ = f.Close() // nothing of it is needed any more
	if f.path != "" {
		_ = os.Remove(f.path)
		f.path = ""
	}
}

// writeError returns the error for a staging area that cannot be written.
func writeError(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err // without the path
	}
	return fmt.Errorf("the server cannot store the upload (%w); its operator must check the disk: %w",
		err, errkind.Unavailable)
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// cut shortens foreign text for a message.
func cut(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
