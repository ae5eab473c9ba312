package kb

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Options configure a [Local].
type Options struct {
	Index *index.Index // has the queue of jobs; required
	Store Store        // has the documents; nil means Index
	Dir   string       // the data folder, for the bytes of files that are not yet indexed; required

	// Sources are the labels of the sources whose files are in the base. Files of
	// all other sources of the store are not. What users wrote is in the base,
	// whatever its label.
	Sources []string

	MaxUpload int64        // bytes of a file and of a note; 0 means MaxUploadBytes
	Version   string       // of the program
	Log       *slog.Logger // nil discards
}

// A Local is a [Base] over a [Store], with its jobs in a data folder. Jobs make progress while Run runs
// in this or another process with the same data folder.
//
// Documents of folders that are served can be searched and read. Their tags can
// be changed, and nothing else.
//
// The caller of a method is [access.From] of its context. A document that the caller
// may not read does not exist: no result, count or error depends on it. A change of
// what may be read but not written has an error of kind Denied. Jobs are those of the
// caller. Calls are recorded in [audit.From].
type Local struct {
	o     Options
	store Store
	owner string                   // of claims
	wake  map[string]chan struct{} // by kind of job: one signal

	indexTime time.Duration // as the constant, except in tests

	updates sync.Mutex // one update of a note at a time

	mu      sync.Mutex
	vectors map[string]vectorState // of the last second, by the labels of the documents
}

var _ Base = (*Local)(nil)

// NewLocal returns a base.
func NewLocal(o Options) *Local {
	if o.MaxUpload <= 0 {
		o.MaxUpload = MaxUploadBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Store == nil {
		o.Store = o.Index
	}
	return &Local{o: o, store: o.Store, owner: random(), indexTime: indexTime, wake: map[string]chan struct{}{
		TypeNote: make(chan struct{}, 1), TypeFile: make(chan struct{}, 1),
	}, vectors: map[string]vectorState{}}
}

// random returns 32 random hexadecimal digits.
func random() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Incoming returns the folder of files that are not yet indexed, in a data
// folder. Files there that no job names are removed
// when their process has ended, or after an hour where files cannot be locked.
func Incoming(dir string) string { return filepath.Join(dir, "incoming") }

// staging is the folder of the bytes of files that are not yet indexed.
func (b *Local) staging() string { return Incoming(b.o.Dir) }

// unserved returns the labels of the sources whose files are not in the base.
func (b *Local) unserved(ctx context.Context) ([]string, error) {
	sources, err := b.store.SourceLabels(ctx)
	return slices.DeleteFunc(sources, func(label string) bool { return slices.Contains(b.o.Sources, label) }), err
}

// Labels returns the labels of which all documents are in the base, never nil.
func (b *Local) Labels(ctx context.Context) ([]string, error) {
	unserved, err := b.unserved(ctx)
	if err != nil {
		return nil, err
	}
	return b.labelsBut(ctx, unserved)
}

// labelsBut returns all labels but some, never nil.
func (b *Local) labelsBut(ctx context.Context, unserved []string) ([]string, error) {
	all, err := b.store.Labels(ctx)
	out := []string{}
	for _, l := range all {
		if !slices.Contains(unserved, l.Value) {
			out = append(out, l.Value)
		}
	}
	return out, err
}

// contents are the labels of the documents that the caller may read.
type contents struct {
	whole   []string // never nil
	written []string // of which only the documents that users wrote are in the base
}

// labels returns all of the labels, never nil.
func (c contents) labels() []string { return append(slices.Clone(c.whole), c.written...) }

// contents returns the labels of the documents in the base that the caller may read.
func (b *Local) contents(ctx context.Context) (contents, error) {
	var c contents
	hidden := func(label string) bool { return !access.From(ctx).MayRead(label) }
	unserved, err := b.unserved(ctx)
	if err != nil {
		return c, err
	}
	c.whole, err = b.labelsBut(ctx, unserved)
	c.whole = slices.DeleteFunc(c.whole, hidden)
	if err != nil || len(unserved) == 0 {
		return c, err
	}
	c.written, err = b.store.WrittenLabels(ctx, slices.DeleteFunc(unserved, hidden))
	return c, err
}

// contains reports whether a document is in the base and the caller may read it.
func (b *Local) contains(ctx context.Context, r *document.Record) (bool, error) {
	if !access.From(ctx).MayRead(r.Label) {
		return false, nil
	}
	if !r.FromSource || slices.Contains(b.o.Sources, r.Label) {
		return true, nil
	}
	unserved, err := b.unserved(ctx)
	return err == nil && !slices.Contains(unserved, r.Label), err
}

// Collections returns the names of the collections that contain notes or files that
// users added and that the caller may read, sorted.
func (b *Local) Collections(ctx context.Context) ([]string, error) {
	in, err := b.contents(ctx)
	if err != nil {
		return nil, err
	}
	names, err := b.store.WrittenLabels(ctx, in.labels())
	slices.Sort(names)
	return names, err
}

// record returns a document that the caller may read and change. The error is of kind
// NotFound if the caller may not read it, and Denied if the caller may not change it.
func (b *Local) record(ctx context.Context, id int64) (*document.Record, error) {
	r, err := b.store.Record(ctx, id)
	if err := b.checkFound(ctx, id, r, err); err != nil {
		return nil, err
	}
	if err := CheckWrite(ctx, r.Label); err != nil {
		return nil, err
	}
	audit.From(ctx).AddDocuments(r.ID)
	return r, nil
}

// CheckWrite returns an error if the caller may not change a collection, or the
// documents of a source, with a label: of kind Denied if the caller may read it, and
// otherwise of kind NotFound, whether it exists or not.
func CheckWrite(ctx context.Context, label string) error {
	audit.From(ctx).AddLabels(label)
	switch c := access.From(ctx); {
	case c.MayWrite(label):
		return nil
	case c.MayRead(label):
		return fmt.Errorf("you may read the collection %s, but not change it: an administrator gives the right to write: %w",
			label, errkind.Denied)
	}
	return fmt.Errorf("the collection %s does not exist: name one that you may write to; an administrator gives the "+
		"right to write: %w", label, errkind.NotFound)
}

// checkFound returns the error of looking up a document, which is of kind NotFound
// if the document that was found is not in the base or the caller may not read it.
func (b *Local) checkFound(ctx context.Context, id int64, r *document.Record, err error) error {
	if errors.Is(err, errkind.NotFound) {
		return noDocument(id)
	}
	if err != nil {
		return err
	}
	if ok, err := b.contains(ctx, r); err != nil || ok {
		return err
	}
	return noDocument(id)
}

func noDocument(id int64) error {
	return fmt.Errorf("document %d does not exist: %w", id, errkind.NotFound)
}

// tagsOf returns all tags of a document.
func tagsOf(r *document.Record) []string {
	tags := append([]string{document.LabelTag(r.Label)}, r.Tags...)
	slices.Sort(tags)
	return tags
}

// auditLabels records what is searched: the collections that tags name, or otherwise all
// that the caller may read.
func auditLabels(ctx context.Context, in contents, tags ...string) {
	named := false
	for _, tag := range tags {
		if label, ok := document.TagLabel(tag); ok {
			audit.From(ctx).AddLabels(label)
			named = true
		}
	}
	if !named {
		audit.From(ctx).AddLabels(in.labels()...)
	}
}

// documentOf returns a document without its chunks.
func documentOf(r *document.Record) *Document {
	return &Document{ID: r.Number, Title: r.Title, SourcePath: r.SourcePath, Type: r.Type, Tags: tagsOf(r),
		CreatedAt: Time{Time: r.Created}, UpdatedAt: Time{Time: r.Updated}}
}

// Search implements [Base].
func (b *Local) Search(ctx context.Context, q SearchQuery) (*SearchResult, error) {
	audit.From(ctx).SetQuery(q.Query)
	text, err := q.check()
	if err != nil {
		return nil, err
	}
	in, err := b.contents(ctx)
	if err != nil {
		return nil, err
	}
	auditLabels(ctx, in, q.Tags...)
	chunks := search.ChunkQuery{Text: text, Labels: in.labels(), Written: in.written, Tags: q.Tags, Top: q.Top}
	if q.VectorOnly {
		return b.searchNearest(ctx, chunks, in)
	}
	if q.FTSOnly {
		chunks.Ranking = search.ByWords
	}
	page, err := search.RelaxChunks(ctx, b.store, chunks)
	if err != nil {
		return nil, err
	}
	return resultOf(ctx, page), nil
}

// searchNearest searches by meaning only.
func (b *Local) searchNearest(ctx context.Context, q search.ChunkQuery, in contents) (*SearchResult, error) {
	q.Ranking = search.ByMeaning
	page, err := b.store.SearchChunks(ctx, q)
	if errors.Is(err, errkind.Unsupported) {
		err = fmt.Errorf("vector_only: %w", err)
	}
	if err != nil {
		return nil, err
	}
	out := resultOf(ctx, page)
	v, err := b.vectorState(ctx, in.whole)
	if err != nil {
		return nil, err
	}
	if v.Embedded < v.Chunks {
		out.Note = fmt.Sprintf("vectors are being computed: %d of %d passages can be found by meaning, all by words",
			v.Embedded, v.Chunks)
	}
	return out, nil
}

// stateTime is how long a state of the vectors is used: to count them takes time in
// proportion to their number.
const stateTime = time.Second

// A vectorState is a state of vectors, and when it was read.
type vectorState struct {
	search.VectorState
	at time.Time
}

// vectorState returns the state of the vectors of documents with some labels, as of
// the last second.
func (b *Local) vectorState(ctx context.Context, labels []string) (search.VectorState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.vectors, func(_ string, v vectorState) bool { return time.Since(v.at) >= stateTime })
	of := strings.Join(labels, "\x00")
	if v, ok := b.vectors[of]; ok {
		return v.VectorState, nil
	}
	v, err := b.store.Vectors(ctx, labels)
	if err == nil {
		b.vectors[of] = vectorState{v, time.Now()}
	}
	return v, err
}

// partialNote is the note of a result for which not all documents were searched.
const partialNote = "Not all documents were searched: there was not enough time, or a part of the index is being " +
	"built again, " +
	"which continues while a server uses the data folder. Search again later."

// resultOf returns the result of a search.
func resultOf(ctx context.Context, page *search.ChunkPage) *SearchResult {
	out := &SearchResult{Results: []Result{}, Total: page.Total}
	if page.Partial {
		out.Note = partialNote
	}
	for _, h := range page.Hits {
		audit.From(ctx).AddDocuments(h.ID)
		out.Results = append(out.Results, Result{
			DocumentID: h.Number, ChunkIndex: h.Chunk, Text: h.Text, Heading: h.Heading, Page: h.Page,
			Score: math.Round(h.Score*1e4) / 1e4, Title: h.Title,
			SourcePath: h.SourcePath, Type: h.Type, Tags: tagsOf(&h.Record), UpdatedAt: Time{Time: h.Updated},
		})
	}
	return out
}

// AddNote implements [Base].
func (b *Local) AddNote(ctx context.Context, n Note) (int64, error) {
	collection, tags, err := n.check(b.o.MaxUpload)
	if err != nil {
		return 0, err
	}
	if err := CheckWrite(ctx, cmp.Or(collection, DefaultCollection)); err != nil {
		return 0, err
	}
	t := task{Key: random(), Collection: collection, Tags: tags, Text: n.Text, Title: n.Title, SourcePath: n.SourcePath}
	id, err := b.enqueue(ctx, TypeNote, "", t)
	if err == nil {
		audit.From(ctx).AddDocuments(document.IDOf("", notePath(t)))
	}
	return id, err
}

func (b *Local) enqueue(ctx context.Context, kind, filename string, t task) (int64, error) {
	payload, err := json.Marshal(t)
	if err != nil {
		return 0, fmt.Errorf("adding a job: %w", err)
	}
	id, err := b.o.Index.Queue().Add(ctx, queue.NewJob{User: access.From(ctx).Owner(), Kind: kind, Filename: filename,
		Payload: payload})
	if err == nil {
		select {
		case b.wake[kind] <- struct{}{}:
		default: // there is a signal already
		}
	}
	return id, err
}

// Jobs implements [Base].
func (b *Local) Jobs(ctx context.Context, f JobFilter) ([]Job, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	stored, err := b.o.Index.Queue().Jobs(ctx, queue.Filter{User: access.From(ctx).Owner(), State: f.Status}, f.Limit)
	jobs := []Job{}
	for _, j := range stored {
		jobs = append(jobs, *jobOf(&j))
	}
	return jobs, err
}

// Job implements [Base].
func (b *Local) Job(ctx context.Context, id int64) (*Job, error) {
	j, err := b.o.Index.Queue().Job(ctx, queue.Filter{User: access.From(ctx).Owner()}, id)
	if err != nil {
		return nil, err
	}
	return jobOf(j), nil
}

func jobOf(j *queue.Job) *Job {
	out := &Job{ID: j.ID, Status: j.State, Type: j.Kind, Filename: j.Filename, Error: j.Error,
		CreatedAt: Time{Time: j.Created}, UpdatedAt: Time{Time: j.Updated}}
	if j.Document > 0 {
		out.DocumentID = &j.Document
	}
	return out
}

// Document implements [Base].
func (b *Local) Document(ctx context.Context, id int64, from, to int) (*Document, error) {
	r, texts, total, err := b.store.Chunks(ctx, id, from, to)
	if err := b.checkFound(ctx, id, r, err); err != nil {
		return nil, err
	}
	audit.From(ctx).AddLabels(r.Label)
	audit.From(ctx).AddDocuments(r.ID)
	d := documentOf(r)
	d.Chunks, d.TotalChunks = []Chunk{}, total
	for i, text := range texts {
		d.Chunks = append(d.Chunks, Chunk{Index: from + i, Text: strings.ToValidUTF8(text, "")})
	}
	return d, nil
}

// Documents implements [Base].
func (b *Local) Documents(ctx context.Context, f DocumentFilter) (*DocumentList, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	in, err := b.contents(ctx)
	if err != nil {
		return nil, err
	}
	filter := document.RecordFilter{Labels: in.labels(), Written: in.written, SourcePath: f.SourcePath, Limit: f.Limit,
		Offset: f.Offset}
	if f.Tag != "" {
		filter.Tags = append(filter.Tags, f.Tag)
	}
	if f.Collection != "" {
		filter.Tags = append(filter.Tags, document.LabelTag(f.Collection))
	}
	auditLabels(ctx, in, filter.Tags...)
	if f.Added {
		filter.Written = filter.Labels
	}
	records, total, err := b.store.Records(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := &DocumentList{Documents: []Document{}, Total: total}
	for _, r := range records {
		audit.From(ctx).AddDocuments(r.ID)
		out.Documents = append(out.Documents, *documentOf(&r))
	}
	return out, nil
}

// UpdateNote implements [Base].
func (b *Local) UpdateNote(ctx context.Context, id int64, c NoteChange) (*Document, error) {
	if err := c.check(b.o.MaxUpload); err != nil {
		return nil, err
	}
	b.updates.Lock()
	defer b.updates.Unlock()
	if err := retryConflicts(func() error { return b.updateNote(ctx, id, c) }); err != nil {
		return nil, err
	}
	return b.Document(ctx, id, 0, AllChunks)
}

func (b *Local) updateNote(ctx context.Context, id int64, c NoteChange) error {
	r, err := b.record(ctx, id)
	if err != nil {
		return err
	}
	if r.FromSource {
		return fmt.Errorf("document %d is a file of the folder %q: change the file %s there: %w",
			id, r.Label, path.Clean(r.Path), errKeep)
	}
	if r.Type != TypeNote {
		return fmt.Errorf("document %d is not a note (its type is %q); add the file again to replace it: %w",
			id, r.Type, errKeep)
	}
	_, texts, _, err := b.store.Chunks(ctx, id, 0, AllChunks)
	if err != nil {
		return existing(id, err)
	}
	text, title := strings.Join(texts, ""), r.Title
	if c.Text != nil {
		if old, err := makeNote(ctx, text, "", document.Document{}); err == nil && old.Title == title {
			title = "" // it was taken from the text
		}
		text = *c.Text
	}
	if c.Title != nil {
		title = *c.Title
	}
	d, err := makeNote(ctx, text, title, document.Document{ID: r.ID, Label: r.Label, Path: r.Path,
		SourcePath: r.SourcePath})
	if err != nil {
		return err
	}
	// The Tagging fails if the note was deleted meanwhile, and Put if it was
	// moved to another collection.
	return existing(id, b.store.Apply(ctx, []document.Change{{Tag: &document.Tagging{ID: r.ID}}, {Put: d}}))
}

// errKeep is a Conflict that is not due to a change at the same time.
var errKeep = fmt.Errorf("%w", errkind.Conflict)

// retryConflicts repeats f while it fails because documents have changed since f
// read them.
func retryConflicts(f func() error) error {
	for range 10 {
		if err := f(); !errors.Is(err, errkind.Conflict) || errors.Is(err, errKeep) || errors.Is(err, queue.ErrLost) {
			return err
		}
	}
	return f()
}

// makeNote returns the document of a note. An empty title is replaced by the
// first heading or the first line. known has the fields that Make does not set.
func makeNote(ctx context.Context, text, title string, known document.Document) (*document.Document, error) {
	const name = "note.md"
	made, err := ingest.MakeNote(ctx, text, document.Document{ID: known.ID, Label: known.Label, Path: name,
		Title: title, Type: TypeNote, SourcePath: known.SourcePath, Tags: known.Tags})
	if err != nil {
		return nil, err
	}
	made.Path = known.Path
	if title == "" && made.Title == name {
		line, _, _ := strings.Cut(strings.TrimSpace(made.Text), "\n")
		made.Title = sanitize.Short(sanitize.Line(strings.TrimSpace(line)), 80, 320)
	}
	return made, nil
}

// AddTags implements [Base].
func (b *Local) AddTags(ctx context.Context, id int64, tags []string) ([]string, error) {
	collection, tags, err := splitTags("tags", tags)
	if err == nil && collection == "" && len(tags) == 0 {
		err = &errkind.Argument{Name: "tags", Want: "at least one tag"}
	}
	if err != nil {
		return nil, err
	}
	return b.tag(ctx, id, document.Tagging{Label: collection, Add: tags})
}

// RemoveTag implements [Base].
func (b *Local) RemoveTag(ctx context.Context, id int64, tag string) ([]string, error) {
	collection, tags, err := splitTags("tag", []string{tag})
	if err != nil {
		return nil, err
	}
	if collection == "" {
		return b.tag(ctx, id, document.Tagging{Remove: tags})
	}
	r, err := b.record(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.Label != collection {
		return tagsOf(r), nil
	}
	return b.tag(ctx, id, document.Tagging{Label: DefaultCollection})
}

// tag changes the tags of a document and returns them. The caller need not be allowed
// to read the document in its new collection.
func (b *Local) tag(ctx context.Context, id int64, t document.Tagging) (tags []string, err error) {
	err = retryConflicts(func() error {
		r, err := b.record(ctx, id)
		if err != nil {
			return err
		}
		if t.Label != "" {
			if err := CheckWrite(ctx, t.Label); err != nil {
				return err
			}
		}
		if r.FromSource && t.Label != "" && t.Label != r.Label {
			return fmt.Errorf("document %d is a file of the folder %q and cannot get another collection: %w", id, r.Label,
				errKeep)
		}
		t.ID, t.From = r.ID, r.Label // another label may need other rights
		if err := b.store.Apply(ctx, []document.Change{{Tag: &t}}); err != nil {
			return existing(id, err)
		}
		r.Label = cmp.Or(t.Label, r.Label)
		r.Tags = slices.Concat(slices.DeleteFunc(r.Tags, func(tag string) bool {
			return slices.Contains(t.Remove, tag) || slices.Contains(t.Add, tag)
		}), t.Add)
		tags = tagsOf(r)
		return nil
	})
	return tags, err
}

// existing returns the error of a change of a document.
func existing(id int64, err error) error {
	if errors.Is(err, errkind.NotFound) {
		return noDocument(id)
	}
	return err
}

// Delete implements [Base].
func (b *Local) Delete(ctx context.Context, id int64) error {
	return retryConflicts(func() error {
		r, err := b.record(ctx, id)
		if err != nil {
			return err
		}
		if r.FromSource {
			return fmt.Errorf("document %d is a file of the folder %q: delete the file %s there: %w",
				id, r.Label, path.Clean(r.Path), errKeep)
		}
		// The Tagging fails if the document was deleted or moved meanwhile.
		return existing(id, b.store.Apply(ctx, []document.Change{
			{Tag: &document.Tagging{ID: r.ID, From: r.Label}},
			{Delete: &document.Ref{Label: r.Label, Path: r.Path}},
		}))
	})
}

// Status implements [Base].
func (b *Local) Status(ctx context.Context) (*Status, error) {
	in, err := b.contents(ctx)
	if err != nil {
		return nil, err
	}
	types, err := b.store.CountTypes(ctx, in.labels(), in.written)
	if err != nil {
		return nil, err
	}
	jobs, err := b.o.Index.Queue().Count(ctx, queue.Filter{User: access.From(ctx).Owner()})
	if err != nil {
		return nil, err
	}
	v, err := b.vectorState(ctx, in.whole)
	if err != nil {
		return nil, err
	}
	model := map[string]any{"name": "none"}
	if v.Reason != "" {
		model["reason"] = v.Reason
	}
	if v.Model != "" {
		model = map[string]any{"name": v.Model, "dimensions": v.Dimensions, "passages": v.Chunks,
			"embedded": v.Embedded}
	}
	s := &Status{
		Version: b.o.Version, Model: model, Device: map[string]any{"type": "cpu", "threads": runtime.GOMAXPROCS(0)},
		Documents: DocumentCounts{ByType: types},
		Queue:     QueueCounts{Queued: jobs[queue.Queued], Running: jobs[queue.Running], Failed: jobs[queue.Failed]},
	}
	for _, n := range types {
		s.Documents.Total += n
	}
	return s, nil
}
