package kb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/filelock"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
)

// A task is the payload of a job.
type task struct {
	// of the note in its path, or the name of the file in the staging folder
	Key        string   `json:"key"`
	Collection string   `json:"collection,omitempty"` // "" if the user named none
	Fallback   string   `json:"fallback,omitempty"`   // collection of a new document; "" means DefaultCollection
	Tags       []string `json:"tags,omitempty"`       // nil if the user named none
	SourcePath string   `json:"source_path,omitempty"`
	MediaType  string   `json:"media_type,omitempty"` // of a file
	Text       string   `json:"text,omitempty"`       // of a note
	Title      string   `json:"title,omitempty"`      // of a note

	// Replaces are the labels of the documents that a file may replace, those that the
	// user might read and change when the job was added; access.All means all, nil that
	// the server has no users.
	Replaces []string `json:"replaces,omitzero"`
}

// Times and limits of jobs.
const (
	claimTime   = 4 * time.Second // without a renewal, another process takes over the job
	pollTime    = time.Second     // for jobs that other processes added or left
	readTime    = 2 * time.Minute // for extracting the text of a file
	indexTime   = time.Minute     // for indexing a text, and textTime for each byte
	textTime    = 2 * time.Second / (1 << 20)
	releaseTime = 2 * time.Second // for releasing a job when the program ends
	maxAttempts = 3               // that end with the program
	notesAtOnce = 64              // notes that are stored in one transaction
	keepJobs    = 30 * 24 * time.Hour
	keepStaged  = time.Hour // a file without a job that is not locked, which may be about to get one
	sweepTime   = 5 * time.Minute
)

// AddFile implements [Base].
func (b *Local) AddFile(ctx context.Context, f File, r io.Reader) (int64, error) {
	collection, tags, err := f.check()
	if err != nil {
		return 0, err
	}
	t := task{Collection: collection, Tags: tags, SourcePath: f.SourcePath, MediaType: f.MediaType,
		Replaces: replaceable(access.From(ctx))}
	if err := b.checkTarget(ctx, &t); err != nil {
		return 0, err
	}
	staged, key, err := b.stage(ctx, r)
	if err != nil {
		return 0, err
	}
	t.Key = key
	id, err := b.enqueue(ctx, TypeFile, f.Filename, t)
	staged.Close() // its bytes are on disk
	if err != nil {
		b.unstage(t.Key)
	}
	return id, err
}

// replaceable returns the labels of the documents that files of a caller replace.
func replaceable(c *access.Caller) []string {
	if c == nil {
		return nil
	}
	out := []string{}
	for _, label := range slices.Concat(c.Read, c.Write) {
		if c.MayRead(label) && c.MayWrite(label) {
			out = append(out, label)
		}
	}
	return out
}

// checkTarget returns the error of [CheckWrite] for the collection that a file will be
// in. A file without one stays in that of the document that it replaces.
func (b *Local) checkTarget(ctx context.Context, t *task) error {
	err := CheckWrite(ctx, cmp.Or(t.Collection, DefaultCollection))
	if err == nil || t.Collection != "" {
		return err
	}
	old, e := b.replaced(ctx, t)
	if e != nil || old == nil {
		return cmp.Or(e, err)
	}
	t.Fallback = old.Label // if it is deleted before the job runs
	return nil
}

// stagedPrefix begins the names of files in the staging folder that are locked
// until they have a job. Files of earlier versions of the program are not.
const stagedPrefix = "s"

// stage writes the bytes of a file to a file in the staging folder, and returns its
// name. When it returns, they are on disk. The caller closes the file when it has a
// job.
func (b *Local) stage(ctx context.Context, r io.Reader) (_ *os.File, key string, err error) {
	dir := b.staging()
	defer func() { err = errkind.Disk("storing the file", err) }()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("making the folder for uploads: %w", err)
	}
	f, name, err := createLocked(dir)
	if err != nil {
		return nil, "", fmt.Errorf("storing the file: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			b.unstage(name)
		}
	}()
	n, err := io.Copy(f, io.LimitReader(readerOf(ctx, r), b.o.MaxUpload+1))
	if err != nil {
		return nil, "", err
	}
	if n > b.o.MaxUpload {
		return nil, "", fmt.Errorf("the file has more than %d bytes, the limit for one file: %w", b.o.MaxUpload,
			errkind.TooLarge)
	}
	return f, name, cmp.Or(f.Sync(), syncFolder(dir))
}

// createLocked creates a file in a folder and locks it, where the system can do
// that. Before it is locked, another process may take it for one without a job: it
// then belongs to that process.
func createLocked(dir string) (f *os.File, key string, err error) {
	for {
		key = stagedPrefix + random()
		path := filepath.Join(dir, key)
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return nil, "", err
		}
		locked := filelock.Lock(f)
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, "", err
		}
		now, err := os.Lstat(path)
		if err == nil && os.SameFile(info, now) && !errors.Is(locked, filelock.ErrLocked) {
			return f, key, nil
		}
		f.Close()
	}
}

// readerOf returns a reader that fails when ctx ends.
func readerOf(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// syncFolder makes the names in a folder durable. Windows cannot and need not do
// that.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// unstage removes a file from the staging folder.
func (b *Local) unstage(key string) {
	if err := os.Remove(filepath.Join(b.staging(), key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.o.Log.Warn("an uploaded file cannot be removed", "error", err)
	}
}

// sweep removes files without a job from the staging folder, and old jobs. A file
// whose process has not ended is locked.
func (b *Local) sweep(ctx context.Context) error {
	if err := b.o.Index.Queue().Forget(ctx, time.Now().Add(-keepJobs)); err != nil {
		return err
	}
	files, err := os.ReadDir(b.staging())
	if errors.Is(err, fs.ErrNotExist) || len(files) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	ended := map[string]*os.File{} // by name; nil is a file that is so old that it is not locked
	for _, entry := range files {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		var f *os.File
		if time.Since(info.ModTime()) <= keepStaged {
			if !strings.HasPrefix(entry.Name(), stagedPrefix) {
				continue
			}
			f, err = os.Open(filepath.Join(b.staging(), entry.Name()))
			if err != nil {
				continue
			}
			defer f.Close() // the locks are kept until the end
			if filelock.Lock(f) != nil {
				continue
			}
		}
		ended[entry.Name()] = f
	}
	// A file that was locked before has its job now, or never gets one.
	payloads, err := b.o.Index.Queue().Payloads(ctx, TypeFile)
	if err != nil {
		return err
	}
	keys := map[string]bool{}
	for _, p := range payloads {
		var t task
		if json.Unmarshal(p, &t) == nil {
			keys[t.Key] = true
		}
	}
	for name, f := range ended {
		if keys[name] {
			continue
		}
		if runtime.GOOS == "windows" && f != nil {
			f.Close() // it could not be removed, and its process, if it is still there, keeps it from being removed
		}
		b.unstage(name)
	}
	return nil
}

// sweepLoop sweeps at once and every sweepTime until ctx ends.
func (b *Local) sweepLoop(ctx context.Context) {
	tick := time.NewTicker(sweepTime)
	defer tick.Stop()
	for {
		if err := b.sweep(ctx); err != nil && ctx.Err() == nil {
			b.o.Log.Warn("old uploads cannot be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Run works on jobs until ctx ends: on notes and on files in their order, in one
// of all processes with the same data folder at a time. First it has the index build what is
// missing for searches, for example after a backup was restored.
func (b *Local) Run(ctx context.Context) {
	var workers sync.WaitGroup
	workers.Go(func() { b.sweepLoop(ctx) })
	workers.Go(func() {
		if err := b.o.Index.Maintain(ctx, nil); err != nil && ctx.Err() == nil {
			b.o.Log.Error("some documents cannot be found until the program is started again", "error", err)
		}
	})
	for kind := range b.wake {
		workers.Go(func() { b.work(ctx, kind) })
	}
	workers.Wait()
}

// work works on the jobs of a kind until ctx ends.
func (b *Local) work(ctx context.Context, kind string) {
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	failing := "" // the last failure, which is logged once
	limit := 1
	if kind == TypeNote && b.inIndex() {
		limit = notesAtOnce
	}
	for {
		for ctx.Err() == nil {
			jobs, err := b.o.Index.Queue().Claim(ctx, kind, b.owner, claimTime, limit)
			if err == nil {
				err = b.doAll(ctx, jobs)
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != "" && text != failing && ctx.Err() == nil {
				b.o.Log.Error("a job of the knowledge base is tried again later", "error", err)
			}
			failing = text
			if err != nil || jobs == nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-b.wake[kind]:
		case <-poll.C:
		}
	}
}

// doAll works on jobs that this base has claimed. It returns an error if some
// have to be tried again.
func (b *Local) doAll(ctx context.Context, jobs []queue.Job) error {
	if len(jobs) > 1 && b.addNotes(ctx, jobs) == nil {
		return nil
	}
	for i := range jobs { // each has its own error
		if err := b.do(ctx, &jobs[i]); err != nil {
			return errors.Join(err, b.release(ctx, jobs[i:]))
		}
	}
	return nil
}

// release ends the claims on jobs. They have to be tried again.
func (b *Local) release(ctx context.Context, jobs []queue.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	return b.o.Index.Queue().Release(ctx, b.owner, idsOf(jobs)...)
}

func idsOf(jobs []queue.Job) (ids []int64) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// do works on a job that this base has claimed. It returns an error if the job
// has to be tried again.
func (b *Local) do(ctx context.Context, job *queue.Job) error {
	var t task
	if err := json.Unmarshal(job.Payload, &t); err != nil {
		return b.o.Index.Queue().Fail(ctx, job.ID, b.owner, "the job cannot be read: add the document again")
	}
	if job.Attempts > maxAttempts {
		failure := "the program ended %d times while it was adding this note: it was left out; add it again"
		if job.Kind == TypeFile {
			failure = "the program ended %d times while it was reading this file: it was left out; save the file in another " +
				"format and add it again"
		}
		err := b.o.Index.Queue().Fail(ctx, job.ID, b.owner, fmt.Sprintf(failure, maxAttempts))
		if err == nil && job.Kind == TypeFile {
			b.unstage(t.Key)
		}
		return err
	}
	err := b.claimed(ctx, []queue.Job{*job}, func(ctx context.Context) error {
		if job.Kind == TypeNote {
			return b.addNote(ctx, job, t)
		}
		return b.addFile(ctx, job, t)
	})
	switch {
	case err == nil:
	case errors.Is(err, queue.ErrLost):
		return nil // another process works on it
	case ctx.Err() != nil || errkind.Retryable(err) || errors.Is(err, errkind.Denied) || errkind.ReasonOf(err) != "":
		// What is wrong with the store is not wrong with the job: it waits until
		// the operator corrects that.
		return err
	default:
		if err := b.o.Index.Queue().Fail(ctx, job.ID, b.owner, b.reason(job, err)); err != nil {
			return err // if it is ErrLost, the other process reports the same
		}
	}
	if job.Kind == TypeFile {
		b.unstage(t.Key)
	}
	return nil
}

// reason returns the message for a job that failed.
func (b *Local) reason(job *queue.Job, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "extracting or indexing the text took too long: split the file, or save it in another format"
	}
	for _, kind := range []error{errkind.Invalid, errkind.NotFound, errkind.Conflict, errkind.Denied, errkind.TooLarge,
		errkind.Unsupported, errkind.Corrupt} {
		if errors.Is(err, kind) {
			message := errkind.Message(err)
			if what := strings.TrimPrefix(message, "extracting text: "); kind == errkind.Unsupported &&
				!strings.ContainsAny(what, ":;") {
				message += ": save it in a format that can be read, such as Markdown or plain text, and add it again"
			}
			return message
		}
	}
	b.o.Log.Error("a job of the knowledge base failed", "job", job.ID, "error", err)
	return "an internal error, which is in the log of the program: add the document again"
}

// claimed calls f and renews the claims on jobs meanwhile. If one is lost, the
// context of f ends and the error is [queue.ErrLost].
func (b *Local) claimed(ctx context.Context, jobs []queue.Job, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ids := idsOf(jobs)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		tick := time.NewTicker(claimTime / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := b.o.Index.Queue().Renew(ctx, b.owner, claimTime, ids...); errors.Is(err, queue.ErrLost) {
				cancel(err)
			}
		}
	})
	err := f(ctx)
	lost := errors.Is(context.Cause(ctx), queue.ErrLost)
	cancel(nil)
	renewing.Wait()
	if err != nil && lost {
		return queue.ErrLost
	}
	return err
}

// noteOf returns the document of a note. Its ID depends only on the job.
func (b *Local) noteOf(ctx context.Context, t task) (*document.Document, error) {
	path := notePath(t)
	label := cmp.Or(t.Collection, DefaultCollection)
	return makeNote(ctx, t.Text, t.Title, document.Document{ID: document.IDOf("", path), Label: label, Path: path,
		SourcePath: t.SourcePath, Tags: t.Tags})
}

// notePath returns the path of a note.
func notePath(t task) string { return ".notes/" + t.Key + ".md" }

// addNote stores the note of a job.
func (b *Local) addNote(ctx context.Context, job *queue.Job, t task) error {
	d, err := b.noteOf(ctx, t)
	if err != nil {
		return err
	}
	if b.inIndex() {
		return b.finish(ctx, job, []document.Change{{Put: d}}, d.ID)
	}
	// The note is new, so a conflict is one with an earlier attempt.
	return retryConflicts(func() error {
		changes := []document.Change{{Put: d}}
		if _, err := b.store.RecordOf(ctx, d.ID); err == nil {
			changes = nil // an earlier attempt has stored it, and users may have changed it since
		} else if !errors.Is(err, errkind.NotFound) {
			return err
		}
		return b.finish(ctx, job, changes, d.ID)
	})
}

// addNotes stores the notes of jobs in one transaction. If it fails, nothing has
// changed.
func (b *Local) addNotes(ctx context.Context, jobs []queue.Job) error {
	return b.claimed(ctx, jobs, func(ctx context.Context) error {
		finished := make([]index.FinishedJob, len(jobs))
		for i, j := range jobs {
			var t task
			if err := json.Unmarshal(j.Payload, &t); err != nil {
				return fmt.Errorf("reading a job: %w", err)
			}
			d, err := b.noteOf(ctx, t)
			if err != nil {
				return err
			}
			finished[i] = index.FinishedJob{ID: j.ID, Changes: []document.Change{{Put: d}}, DocumentID: d.ID}
		}
		return b.o.Index.FinishJobs(ctx, b.owner, finished...)
	})
}

// addFile stores the file of a job, in place of the document with the same source
// path.
func (b *Local) addFile(ctx context.Context, job *queue.Job, t task) error {
	data, err := os.ReadFile(filepath.Join(b.staging(), t.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the bytes of the file are no longer there: add the file again: %w", errkind.NotFound)
	}
	if err != nil {
		return errkind.Disk("reading the file", err)
	}
	limited, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	made, err := ingest.Make(limited, data, document.Document{Label: DefaultCollection, Path: job.Filename,
		SourcePath: t.SourcePath, MIMEType: t.MediaType, Tags: t.Tags})
	if err != nil {
		if limited.Err() != nil {
			err = limited.Err()
		}
		return err
	}
	indexing, stop := ctx, context.CancelFunc(func() {})
	if b.inIndex() { // otherwise the time depends on other machines
		indexing, stop = context.WithTimeout(ctx, b.indexTime+time.Duration(len(made.Text))*textTime)
	}
	defer stop()
	return retryConflicts(func() error {
		changes, err := b.replace(indexing, made, &t)
		if err == nil {
			err = b.finish(indexing, job, changes, made.ID)
		}
		return err
	})
}

// filePath returns the path of a new document for a file. It has no label, so the
// document keeps its ID in another collection. The path of a file of a user must not
// depend on documents that the user may not read.
func filePath(t *task) string {
	if t.Replaces == nil {
		return ".files/" + t.SourcePath
	}
	return ".uploads/" + t.Key
}

// replaced returns the document that a file replaces, or nil: that of the same job, or
// else one with the same source path that the user might read and change, in the
// collection that the user named, or else the oldest.
func (b *Local) replaced(ctx context.Context, t *task) (*document.Record, error) {
	if t.Key != "" {
		r, err := b.store.RecordOf(ctx, document.IDOf("", filePath(t)))
		if !errors.Is(err, errkind.NotFound) {
			return r, err
		}
	}
	var best *document.Record
	for offset := 0; ; offset += MaxLimit {
		records, total, err := b.store.Records(ctx, document.RecordFilter{SourcePath: t.SourcePath, Limit: MaxLimit,
			Offset: offset})
		if err != nil {
			return nil, err
		}
		for _, r := range records { // the newest first
			if r.FromSource || r.Type == TypeNote || t.Replaces != nil && !slices.Contains(t.Replaces, r.Label) &&
				!slices.Contains(t.Replaces, access.All) {
				continue
			}
			if best == nil || best.Label != t.Collection || r.Label == t.Collection {
				best = &r
			}
		}
		if offset+len(records) >= total || len(records) == 0 {
			return best, nil
		}
	}
}

// replace returns the changes that store a file. A file with the same text and
// title as the document that it replaces changes only tags.
func (b *Local) replace(ctx context.Context, made *document.Document, t *task) ([]document.Change, error) {
	old, err := b.replaced(ctx, t)
	if err != nil {
		return nil, err
	}
	if old == nil {
		made.Path = filePath(t)
		made.ID = document.IDOf("", made.Path)
		made.Label = cmp.Or(t.Collection, t.Fallback, DefaultCollection)
		return []document.Change{{Put: made}}, nil
	}
	made.ID, made.Path = old.ID, old.Path
	if t.Replaces != nil && old.Path == filePath(t) {
		return nil, nil // an earlier attempt has stored it, and users may have changed it since
	}
	made.Label = cmp.Or(t.Collection, old.Label)
	tagging := &document.Tagging{ID: made.ID, From: old.Label, Label: made.Label}
	if old.Hash != made.Hash || old.Title != made.Title || old.Type != made.Type || old.Filename != made.Filename {
		return []document.Change{{Tag: tagging}, {Put: made}},
			nil // the first fails if the document was deleted or moved meanwhile
	}
	if t.Tags != nil {
		tagging.Add = t.Tags
		tagging.Remove = slices.DeleteFunc(slices.Clone(old.Tags),
			func(tag string) bool { return slices.Contains(t.Tags, tag) })
	}
	if old.Label == made.Label && len(tagging.Remove) == 0 && !slices.ContainsFunc(t.Tags,
		func(tag string) bool { return !slices.Contains(old.Tags, tag) }) {
		return nil, nil
	}
	return []document.Change{{Tag: tagging}}, nil
}
