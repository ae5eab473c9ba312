package kbtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// RunRights makes random calls of users with different rights, and compares what each
// user sees with a base that has nothing else. open is that of [Run]. scores reports
// whether documents that a user may not read have no influence on scores, which are
// not compared otherwise. Documents that were changed or removed may have some until
// the store forgets them, so the first calls only add documents.
func RunRights(t *testing.T, open func(t *testing.T) kb.Base, scores bool) {
	seeds, rounds := uint64(2), []bool{true, false} // in which documents are only added
	if !scores || testing.Short() {
		seeds, rounds = 1, rounds[1:]
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, b: open(t), open: open, rand: rand.New(rand.NewPCG(seed, 28)),
				started: map[*access.Caller][]*kb.Job{}}
			for _, added := range rounds {
				w.added, w.scores = added, added && scores
				for range 700 {
					w.call()
				}
				for _, u := range users {
					t.Run(name(u), func(t *testing.T) { w.compare(t, u) })
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// users have different rights. The last one is that of a server without users.
var users = []*access.Caller{
	{ID: "all", Rights: access.Rights{Read: []string{access.All}, Write: []string{access.All}}},
	{ID: "ann", Rights: access.Rights{Read: []string{"a", "b"}, Write: []string{"a"}}},
	{ID: "bob", Rights: access.Rights{Read: []string{"b", "c"}, Write: []string{"b", "c", kb.DefaultCollection}}},
	{ID: "cat", Rights: access.Rights{Read: []string{"a", "b", "c"}, Write: []string{access.All}}},
	{ID: "inbox", Rights: access.Rights{Write: []string{"c"}}},
	{ID: "reader", Rights: access.Rights{Read: []string{access.All}}},
	{ID: "nobody", Rights: access.Rights{Read: []string{"empty"}}},
	nil,
}

func name(u *access.Caller) string {
	if u == nil {
		return "no user"
	}
	return u.ID
}

// A stock is a document as it should be.
type stock struct {
	id         int64
	file       bool
	plain      bool // it is a file that was added without a user
	title      string
	text       string
	sourcePath string
	collection string
	tags       []string
}

// allTags returns the tags of a document with that of its collection.
func (d *stock) allTags() []string {
	tags := append([]string{document.LabelTag(d.collection)}, d.tags...)
	slices.Sort(tags)
	return slices.Compact(tags)
}

// A world is a base, and the documents and jobs that it should have.
type world struct {
	t       *testing.T
	b       kb.Base
	open    func(t *testing.T) kb.Base
	added   bool // documents are only added
	scores  bool // are compared
	rand    *rand.Rand
	docs    []*stock // by number
	started map[*access.Caller][]*kb.Job
	made    int // texts
}

func pick[T any](w *world, of ...T) T { return of[w.rand.IntN(len(of))] }

// collection returns a random collection.
func (w *world) collection() string { return pick(w, "a", "b", "c", kb.DefaultCollection) }

func (w *world) words(n int) string {
	var words []string
	for range n {
		words = append(words, pick(w, "walrus", "lemur", "pension", "index", "price", "garden", "quince", "boiler",
			"kitchen", "shed", "report", "meeting"))
	}
	return strings.Join(words, " ")
}

// text returns the text of another document, or one that no other document has.
func (w *world) text() string {
	w.made++
	if len(w.docs) > 0 && w.rand.IntN(5) == 0 {
		return pick(w, w.docs...).text
	}
	return fmt.Sprintf("%s number%d", w.words(3+w.rand.IntN(12)), w.made)
}

// missing is a number that no document and no job has.
const missing = 1 << 40

// want checks the kind of an error; nil means no error. The error for something that
// the user may not know must have the message of one for what does not exist.
func (w *world) want(what string, u *access.Caller, id int64, err, kind error, call func(ctx context.Context, id int64) error) {
	w.t.Helper()
	if kind == nil && err != nil || !errors.Is(err, kind) {
		w.t.Errorf("%s of %s: error %v, want %v", what, name(u), err, kind)
		return
	}
	if !errors.Is(kind, errkind.NotFound) {
		return
	}
	none := call(access.With(w.t.Context(), u), missing)
	if none == nil || strings.ReplaceAll(none.Error(), fmt.Sprint(missing), fmt.Sprint(id)) != err.Error() {
		w.t.Errorf("%s of %s: error %v, but of what does not exist %v", what, name(u), err, none)
	}
}

// write returns the kind of the error of a change in a collection; nil if it is
// permitted.
func write(u *access.Caller, collection string) error {
	switch {
	case u.MayWrite(collection):
		return nil
	case u.MayRead(collection):
		return errkind.Denied
	}
	return errkind.NotFound
}

// change returns the kind of the error of a change of a document, which may be nil;
// nil if it is permitted.
func change(u *access.Caller, d *stock) error {
	if d == nil || !u.MayRead(d.collection) {
		return errkind.NotFound
	}
	return write(u, d.collection)
}

// call makes a random call.
func (w *world) call() {
	u := pick(w, users...)
	ctx := access.With(w.t.Context(), u)
	id, d := int64(missing), (*stock)(nil)
	if len(w.docs) > 0 && w.rand.IntN(20) > 0 {
		d = pick(w, w.docs...)
		id = d.id
	}
	fresh := pick(w, "red", "green", "blue")
	switch n := w.rand.IntN(20); {
	case n < 3 && len(w.docs) < 60:
		w.addNote(ctx, u)
	case n < 6 && len(w.docs) < 60 && !w.added:
		w.addFile(ctx, u)
	case n < 15 && w.added:
	case n < 8:
		text, title := w.text(), fmt.Sprint("title ", w.made)
		f := func(ctx context.Context, id int64) error {
			got, err := w.b.UpdateNote(ctx, id, kb.NoteChange{Text: &text, Title: &title})
			if err == nil && (textOf(got) != text || got.Title != title) {
				w.t.Errorf("UpdateNote() = %+v", got)
			}
			return err
		}
		kind := change(u, d)
		if kind == nil && d.file {
			kind = errkind.Conflict
		}
		w.want("UpdateNote", u, id, f(ctx, id), kind, f)
		if kind == nil {
			d.text, d.title = text, title
		}
	case n < 10:
		f := func(ctx context.Context, id int64) error {
			tags, err := w.b.AddTags(ctx, id, []string{fresh})
			if err == nil {
				d.tags = append(d.tags, fresh)
				same(w.t, "tags", tags, d.allTags())
			}
			return err
		}
		w.want("AddTags", u, id, f(ctx, id), change(u, d), f)
	case n < 11:
		f := func(ctx context.Context, id int64) error {
			tags, err := w.b.RemoveTag(ctx, id, fresh)
			if err == nil {
				d.tags = slices.DeleteFunc(d.tags, func(s string) bool { return s == fresh })
				same(w.t, "tags", tags, d.allTags())
			}
			return err
		}
		w.want("RemoveTag", u, id, f(ctx, id), change(u, d), f)
	case n < 14:
		w.move(ctx, u, id, d)
	case n < 15:
		f := w.b.Delete
		kind := change(u, d)
		w.want("Delete", u, id, f(ctx, id), kind, f)
		if kind == nil {
			w.docs = slices.DeleteFunc(w.docs, func(o *stock) bool { return o == d })
		}
	case n < 18:
		f := func(ctx context.Context, id int64) error {
			got, err := w.b.Document(ctx, id, 0, kb.AllChunks)
			if err == nil && (textOf(got) != d.text || got.Title != d.title || !slices.Equal(got.Tags, d.allTags())) {
				w.t.Errorf("Document(%d) = %+v, want %+v", id, got, d)
			}
			return err
		}
		kind := errkind.NotFound
		if d != nil && u.MayRead(d.collection) {
			kind = nil
		}
		w.want("Document", u, id, f(ctx, id), kind, f)
	default:
		owner := pick(w, users...)
		if len(w.started[owner]) == 0 {
			return
		}
		j := pick(w, w.started[owner]...)
		f := func(ctx context.Context, id int64) error {
			got, err := w.b.Job(ctx, id)
			if err == nil {
				same(w.t, "job", got, j)
			}
			return err
		}
		kind := errkind.NotFound
		if u == nil || u == owner {
			kind = nil
		}
		w.want("Job", u, j.ID, f(ctx, j.ID), kind, f)
	}
}

// newTags returns the tags of a new document, and its collection, "" if none is named.
func (w *world) newTags() (tags []string, collection string) {
	if w.rand.IntN(2) == 0 {
		tags = append(tags, pick(w, "red", "green", "blue"))
	}
	if w.rand.IntN(6) > 0 {
		collection = w.collection()
		tags = append(tags, document.LabelTag(collection))
	}
	return tags, collection
}

// plain returns tags without that of a collection.
func plain(tags []string) []string {
	return slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		_, is := document.TagLabel(tag)
		return is
	})
}

func (w *world) addNote(ctx context.Context, u *access.Caller) {
	tags, collection := w.newTags()
	text := w.text()
	d := &stock{title: fmt.Sprint("title ", w.made), text: text, collection: collection, tags: plain(tags)}
	if d.collection == "" {
		d.collection = kb.DefaultCollection
	}
	job, err := w.b.AddNote(ctx, kb.Note{Text: d.text, Title: d.title, Tags: tags})
	kind := write(u, d.collection)
	w.wantKind("AddNote", u, err, kind)
	if err == nil {
		d.id = w.finished(ctx, u, job)
		w.docs = append(w.docs, d)
	}
}

func (w *world) wantKind(what string, u *access.Caller, err, kind error) {
	w.t.Helper()
	if kind == nil && err != nil || !errors.Is(err, kind) {
		w.t.Errorf("%s of %s: error %v, want %v", what, name(u), err, kind)
	}
}

// finished waits for a job of a user, and returns its document.
func (w *world) finished(ctx context.Context, u *access.Caller, job int64) int64 {
	j := Await(w.t, w.b, job)
	if j.DocumentID == nil {
		w.t.Fatalf("the job of %s ended with %+v", name(u), j)
	}
	if own, err := w.b.Job(ctx, job); err != nil || !cmp.Equal(own, j) {
		w.t.Errorf("the job of %s is %+v for its user, %v", name(u), own, err)
	}
	w.started[u] = append(w.started[u], j)
	return *j.DocumentID
}

func (w *world) addFile(ctx context.Context, u *access.Caller) {
	tags, collection := w.newTags()
	text := w.text()
	title := fmt.Sprintf("file%d.txt", w.made)
	sourcePath := pick(w, "p/1", "p/2", "p/3")
	var old *stock // the one that is replaced
	for _, d := range w.docs {
		switch {
		case !d.file || d.sourcePath != sourcePath || !u.MayRead(d.collection) || !u.MayWrite(d.collection):
		case old == nil || u == nil && d.plain ||
			old.collection != collection && d.collection == collection && (u != nil || !old.plain):
			old = d
		}
	}
	target := collection
	switch {
	case target == "" && old != nil:
		target = old.collection
	case target == "":
		target = kb.DefaultCollection
	}
	job, err := w.b.AddFile(ctx, kb.File{Filename: title, SourcePath: sourcePath, Tags: tags}, strings.NewReader(text))
	w.wantKind("AddFile", u, err, write(u, target))
	if err != nil {
		return
	}
	id := w.finished(ctx, u, job)
	if old == nil {
		if slices.ContainsFunc(w.docs, func(d *stock) bool { return d.id >= id }) {
			w.t.Fatalf("a file of %s with the path %s is document %d, which is not new", name(u), sourcePath, id)
		}
		old = &stock{id: id, file: true, plain: u == nil, sourcePath: sourcePath}
		w.docs = append(w.docs, old)
	}
	if id != old.id {
		w.t.Fatalf("a file of %s with the path %s is document %d, want %+v", name(u), sourcePath, id, old)
	}
	old.title, old.text, old.collection = title, text, target
	if len(tags) > 0 && (len(plain(tags)) > 0 || old.tags == nil) {
		old.tags = plain(tags)
	}
}

// move moves a document to another collection.
func (w *world) move(ctx context.Context, u *access.Caller, id int64, d *stock) {
	to := w.collection()
	f := func(ctx context.Context, id int64) error {
		_, err := w.b.AddTags(ctx, id, []string{document.LabelTag(to)})
		return err
	}
	if w.rand.IntN(3) == 0 && d != nil {
		to = kb.DefaultCollection
		was := d.collection
		f = func(ctx context.Context, id int64) error {
			_, err := w.b.RemoveTag(ctx, id, document.LabelTag(was))
			return err
		}
	}
	kind := change(u, d)
	err := f(ctx, id)
	if kind == nil {
		kind = write(u, to)
		w.wantKind("move", u, err, kind)
	} else {
		w.want("move", u, id, err, kind, f)
	}
	if kind == nil {
		d.collection = to
	}
}

// compare compares what a user sees with a base that has nothing else.
func (w *world) compare(t *testing.T, u *access.Caller) {
	ctx := access.With(t.Context(), u)
	alone := w.open(t)
	adding := access.With(t.Context(), &access.Caller{ID: "adding",
		Rights: access.Rights{Write: []string{access.All}}}) // replaces nothing
	var ids []int64 // in the base, of the documents of alone in their order
	var jobs []int64
	last := &stock{}
	for _, d := range w.docs {
		if !u.MayRead(d.collection) {
			continue
		}
		ids = append(ids, d.id)
		if d.file != last.file && len(jobs) > 0 {
			Await(t, alone, jobs[len(jobs)-1]) // notes do not wait for files, nor files for notes
		}
		last = d
		var job int64
		var err error
		if d.file {
			job, err = alone.AddFile(adding, kb.File{Filename: d.title, SourcePath: d.sourcePath, Tags: d.allTags()},
				strings.NewReader(d.text))
		} else {
			job, err = alone.AddNote(adding, kb.Note{Text: d.text, Title: d.title, Tags: d.allTags()})
		}
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job)
	}
	number := map[int64]int64{} // of the base, by that of alone
	for i, job := range jobs {
		number[*Await(t, alone, job).DocumentID] = ids[i]
	}
	check := func(what string, got, want any) {
		t.Helper()
		// Each document has one chunk. The order of those with the same score varies.
		options := cmp.Options{cmpopts.IgnoreTypes(kb.Time{}),
			cmpopts.SortSlices(func(a, b kb.Result) bool { return a.DocumentID < b.DocumentID })}
		if !w.scores {
			options = append(options, cmpopts.IgnoreFields(kb.Result{}, "Score"))
		}
		if diff := cmp.Diff(want, got, options); diff != "" {
			t.Errorf("%s (-alone +%s):\n%s", what, name(u), diff)
		}
	}
	for range 20 {
		q := kb.SearchQuery{Query: w.words(1 + w.rand.IntN(4)), Top: kb.MaxTop, FTSOnly: w.rand.IntN(2) == 0}
		if w.rand.IntN(3) == 0 {
			q.Query = fmt.Sprintf("number%d", w.rand.IntN(w.made+1))
		}
		if w.rand.IntN(3) == 0 {
			q.Tags = []string{pick(w, "red", "green", document.LabelTag(w.collection()))}
		}
		got, err := w.b.Search(ctx, q)
		want, e := alone.Search(t.Context(), q)
		if err != nil || e != nil {
			t.Fatal(err, e)
		}
		for i := range want.Results {
			want.Results[i].DocumentID = number[want.Results[i].DocumentID]
		}
		check(fmt.Sprintf("Search(%+v)", q), got, want)
	}
	for range 10 {
		f := kb.DocumentFilter{Limit: 1 + w.rand.IntN(60), Offset: w.rand.IntN(10)}
		switch w.rand.IntN(4) {
		case 0:
			f.SourcePath = pick(w, "p/1", "p/2", "p/3")
		case 1:
			f.Tag = pick(w, "red", "green", document.LabelTag(w.collection()))
		}
		got, err := w.b.Documents(ctx, f)
		want, e := alone.Documents(t.Context(), f)
		if err != nil || e != nil {
			t.Fatal(err, e)
		}
		for i := range want.Documents {
			want.Documents[i].ID = number[want.Documents[i].ID]
		}
		check(fmt.Sprintf("Documents(%+v)", f), got, want)
	}
	got, err := w.b.Status(ctx)
	want, e := alone.Status(t.Context())
	if err != nil || e != nil {
		t.Fatal(err, e)
	}
	check("Status()", got, want)

	own, err := w.b.Jobs(ctx, kb.JobFilter{Limit: kb.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	n := len(w.started[u])
	if u == nil {
		n = 0
		for _, jobs := range w.started {
			n += len(jobs)
		}
	}
	if len(own) != n {
		t.Errorf("%s sees %d jobs, want %d", name(u), len(own), n)
	}
	for _, j := range own {
		if u != nil && !slices.ContainsFunc(w.started[u], func(s *kb.Job) bool { return s.ID == j.ID }) {
			t.Errorf("%s sees job %d of another user", name(u), j.ID)
		}
	}
}
