package kb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
)

// user returns a context with a caller. Labels are separated by spaces.
func user(t *testing.T, id, read, write string) context.Context {
	return access.With(t.Context(), &access.Caller{ID: id, Name: id,
		Rights: access.Rights{Read: strings.Fields(read), Write: strings.Fields(write)}})
}

// added adds a file as a user and returns its job when it has ended.
func added(t *testing.T, b kb.Base, ctx context.Context, f kb.File, text string) *kb.Job {
	t.Helper()
	job, err := b.AddFile(ctx, f, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return kbtest.Await(t, b, job)
}

// TestRightsMessages checks what the errors say.
func TestRightsMessages(t *testing.T) {
	b, _ := open(t, t.TempDir())
	d := kbtest.Note(t, b, "A note.", "collection:a")
	reader, other := user(t, "r", "a", "b"), user(t, "o", "b", "b")
	tag := func(ctx context.Context, tags ...string) error { _, err := b.AddTags(ctx, d.ID, tags); return err }
	note := func(ctx context.Context, collection string) error {
		_, err := b.AddNote(ctx, kb.Note{Text: "x", Tags: []string{"collection:" + collection}})
		return err
	}
	const denied = "you may read the collection a, but not change it: an administrator gives the right to write"
	const missing = "the collection %s does not exist: name one that you may write to; an administrator gives the right to write"
	for name, c := range map[string]struct {
		err, kind error
		want      string
	}{
		"tag":                     {tag(reader, "x"), errkind.Denied, denied},
		"delete":                  {b.Delete(reader, d.ID), errkind.Denied, denied},
		"note":                    {note(reader, "a"), errkind.Denied, denied},
		"note for a hidden one":   {note(other, "a"), errkind.NotFound, fmt.Sprintf(missing, "a")},
		"note for one that isn't": {note(other, "none"), errkind.NotFound, fmt.Sprintf(missing, "none")},
		"tag of a hidden one":     {tag(other, "x"), errkind.NotFound, fmt.Sprintf("document %d does not exist", d.ID)},
		"move of a hidden one": {tag(other, "collection:none"), errkind.NotFound,
			fmt.Sprintf("document %d does not exist", d.ID)},
	} {
		if !errors.Is(c.err, c.kind) || errkind.Message(c.err) != c.want {
			t.Errorf("%s: error %v, want %q", name, c.err, c.want)
		}
	}
}

// TestRightsOfFiles checks that a file of a user never replaces, moves or reveals a
// document that the user may not read and change.
func TestRightsOfFiles(t *testing.T) {
	b, x := open(t, t.TempDir())
	f := kb.File{Filename: "report.txt", Tags: []string{"collection:secret"}}
	secret := kbtest.File(t, b, f, "The secret report.")
	path := func(id int64) string {
		r, err := x.Record(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimRight(r.Path, "s0123456789abcdef") // a random number
	}
	inbox, ann := user(t, "inbox", "", "in"), user(t, "ann", "in seen", "in")
	f.Tags = []string{"collection:in"}
	first, second := added(t, b, inbox, f, "One."), added(t, b, inbox, f, "Two.")
	if *first.DocumentID == *second.DocumentID {
		t.Error("a file replaced a document that its user may not read")
	}
	mine := added(t, b, ann, f, "Three.")
	if *mine.DocumentID != *first.DocumentID {
		t.Errorf("document %d was replaced, want the oldest, %d", *mine.DocumentID, *first.DocumentID)
	}
	f.Filename, f.SourcePath = "new.txt", "none/new.txt"
	fresh := added(t, b, inbox, f, "New.")
	for _, j := range []*kb.Job{first, second, fresh} {
		if got := path(*j.DocumentID); got != ".uploads/" {
			t.Errorf("the path of document %d is %s...: it must not depend on other documents", *j.DocumentID, got)
		}
	}

	// A document that the user may read, but not change, stays.
	f.Tags = []string{"collection:seen"}
	seen := kbtest.Stored(t, b, added(t, b, user(t, "writer", "seen", "seen"), f, "Seen.").ID)
	f.Tags = []string{"collection:in"}
	if j := added(t, b, ann, f, "Seen and changed."); *j.DocumentID != *fresh.DocumentID {
		t.Errorf("document %d was replaced, want %d", *j.DocumentID, *fresh.DocumentID)
	}
	f.Tags = nil
	_, err := b.AddFile(inbox, f, strings.NewReader("Without a collection."))
	if !errors.Is(err, errkind.NotFound) || !strings.Contains(err.Error(), "the collection documents does not exist") {
		t.Errorf("AddFile() without a collection = %v, want one about the collection documents", err)
	}
	if j := added(t, b, ann, f, "Stays where it is."); *j.DocumentID != *fresh.DocumentID {
		t.Errorf("document %d was replaced, want %d", *j.DocumentID, *fresh.DocumentID)
	}
	for _, d := range []*kb.Document{secret, seen} {
		got, err := b.Document(t.Context(), d.ID, 0, kb.AllChunks)
		if diff := cmp.Diff(d, got); diff != "" || err != nil {
			t.Errorf("a document that may not be changed has changed, %v (-before +after):\n%s", err, diff)
		}
	}
}

// TestRightsTaken checks that a job that was accepted runs, with the rights of then,
// and that counts are those of the own jobs.
func TestRightsTaken(t *testing.T) {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir})
	before, after := user(t, "ann", "a documents", "a"), user(t, "ann", "documents", "")
	note, err := b.AddNote(before, kb.Note{Text: "A note.", Tags: []string{"collection:a"}})
	if err != nil {
		t.Fatal(err)
	}
	f := kb.File{Filename: "a.txt", Tags: []string{"collection:a"}}
	file, err := b.AddFile(before, f, strings.NewReader("A file."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.AddFile(t.Context(), kb.File{Filename: "broken.pdf"}, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	queue := func(ctx context.Context) kb.QueueCounts {
		t.Helper()
		s, err := b.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Queue
	}
	bob := user(t, "bob", "*", "*")
	for name, c := range map[string]struct {
		ctx  context.Context
		want int
	}{"ann": {after, 2}, "bob": {bob, 0}, "no user": {t.Context(), 3}} {
		if got := queue(c.ctx); got.Queued != c.want {
			t.Errorf("the queue of %s has %d jobs, want %d", name, got.Queued, c.want)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ = open(t, dir)
	for _, job := range []int64{note, file} {
		if d := kbtest.Stored(t, b, job); d.Tags[0] != "collection:a" {
			t.Errorf("job %d has stored %+v", job, d)
		}
		if j, err := b.Job(after, job); err != nil || j.Status != kb.Done {
			t.Errorf("the job is %+v for its user, %v", j, err)
		}
	}
	kbtest.Await(t, b, file+1)
	if ann, bob, all := queue(after), queue(bob), queue(t.Context()); ann.Failed != 0 || bob.Failed != 0 ||
		all.Failed != 1 {
		t.Errorf("queues = %+v, %+v and %+v, want one failed job without a user", ann, bob, all)
	}
	if l, err := b.Documents(after, kb.DocumentFilter{Limit: 10}); err != nil || l.Total != 0 {
		t.Errorf("after the right was taken away, Documents() = %+v, %v", l, err)
	}
}

// TestRightsOfSources checks that the tags of files of a source need the right to
// write to its label.
func TestRightsOfSources(t *testing.T) {
	b, x := open(t, t.TempDir(), "docs")
	if err := x.AddSource(t.Context(), document.Source{Label: "docs", Path: "/docs"}); err != nil {
		t.Fatal(err)
	}
	err := x.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: "file", Label: "docs", Path: "a.md",
		FromSource: true, Type: "markdown", Title: "A", Text: "A text", Chunks: []document.Chunk{{Length: 6}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ctx         context.Context
		tag, move   error
		documents   int
		collections string
	}{
		"nothing": {user(t, "n", "other", "*"), errkind.NotFound, errkind.NotFound, 0, ""},
		"read":    {user(t, "r", "docs", "other"), errkind.Denied, errkind.Denied, 1, ""},
		"write":   {user(t, "w", "docs", "docs other"), nil, errkind.Conflict, 1, ""},
	} {
		_, err := b.AddTags(c.ctx, 1, []string{"red"})
		if !errors.Is(err, c.tag) {
			t.Errorf("%s: AddTags() = %v, want %v", name, err, c.tag)
		}
		_, err = b.AddTags(c.ctx, 1, []string{"collection:other"})
		if !errors.Is(err, c.move) {
			t.Errorf("%s: moving it = %v, want %v", name, err, c.move)
		}
		if l, err := b.Documents(c.ctx, kb.DocumentFilter{Limit: 1}); err != nil || l.Total != c.documents {
			t.Errorf("%s: %+v, %v, want %d documents", name, l, err, c.documents)
		}
	}
}

// Users list the collections that they may read, and of a folder with the label of a
// collection only what users added.
func TestCollections(t *testing.T) {
	b, x := open(t, t.TempDir(), "docs", "empty")
	for _, label := range []string{"docs", "empty"} {
		if err := x.AddSource(t.Context(), document.Source{Label: label, Path: "/" + label}); err != nil {
			t.Fatal(err)
		}
		err := x.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: label, Label: label, Path: "a.md",
			FromSource: true, Type: "markdown", Title: "A", Text: "A text", Chunks: []document.Chunk{{Length: 6}}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]int64{}
	for _, collection := range []string{"docs", "team", "secret"} {
		ids[collection] = kbtest.Note(t, b, "A note.", "collection:"+collection, "tag").ID
	}
	for _, tt := range []struct {
		read        string
		collections []string
		inDocs      []int64 // the notes of the collection docs
		added       int
	}{
		{access.All, []string{"docs", "secret", "team"}, []int64{ids["docs"]}, 3},
		{"docs team", []string{"docs", "team"}, []int64{ids["docs"]}, 2},
		{"team none", []string{"team"}, nil, 1},
		{"empty", nil, nil, 0},
		{"", nil, nil, 0},
	} {
		ctx := user(t, "u", tt.read, "*")
		got, err := b.Collections(ctx)
		if diff := cmp.Diff(tt.collections, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("Collections() for %q: %v (-want +got):\n%s", tt.read, err, diff)
		}
		list, err := b.Documents(ctx, kb.DocumentFilter{Added: true, Limit: 10})
		if err != nil || list.Total != tt.added {
			t.Errorf("Documents() for %q: %+v, %v, want %d that users added", tt.read, list, err, tt.added)
		}
		list, err = b.Documents(ctx, kb.DocumentFilter{Added: true, Collection: "docs", Tag: "tag", Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var inDocs []int64
		for _, d := range list.Documents {
			inDocs = append(inDocs, d.ID)
		}
		if diff := cmp.Diff(tt.inDocs, inDocs); diff != "" {
			t.Errorf("documents of docs for %q (-want +got):\n%s", tt.read, diff)
		}
	}
}

// A moving is a store in which a document is moved to a collection just before the
// next change.
type moving struct {
	*index.Index
	id atomic.Pointer[string] // of the document
}

func (s *moving) Apply(ctx context.Context, changes []document.Change) error {
	if id := s.id.Swap(nil); id != nil && len(changes) > 0 {
		if err := s.Index.Apply(ctx, []document.Change{{Tag: &document.Tagging{ID: *id, Label: "secret"}}}); err != nil {
			return err
		}
	}
	return s.Index.Apply(ctx, changes)
}

// openOver opens a base over another store than the index with the jobs.
func openOver(t *testing.T, store func(*index.Index) kb.Store) *kb.Local {
	t.Helper()
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b := kb.NewLocal(kb.Options{Index: x, Store: store(x), Dir: dir})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		x.Close()
	})
	return b
}

// TestRightsMoved checks that a document stays as it is if it is moved to a collection
// that the user may not change after the rights were checked.
func TestRightsMoved(t *testing.T) {
	s := &moving{}
	b := openOver(t, func(x *index.Index) kb.Store { s.Index = x; return s })
	ann := user(t, "ann", "a b", "a b")
	text := "Changed."
	f := kb.File{Filename: "a.txt", Tags: []string{"collection:a"}}
	for name, change := range map[string]func(id int64) error{
		"tag":    func(id int64) error { _, err := b.AddTags(ann, id, []string{"red"}); return err },
		"untag":  func(id int64) error { _, err := b.RemoveTag(ann, id, "blue"); return err },
		"move":   func(id int64) error { _, err := b.AddTags(ann, id, []string{"collection:b"}); return err },
		"delete": func(id int64) error { return b.Delete(ann, id) },
		"update": func(id int64) error { _, err := b.UpdateNote(ann, id, kb.NoteChange{Text: &text}); return err },
		"file": func(id int64) error {
			j := added(t, b, ann, f, text)
			if *j.DocumentID == id {
				return nil
			}
			return errkind.NotFound
		},
	} {
		d, tags := (*kb.Document)(nil), []string{"blue", "collection:secret"}
		if name == "file" {
			d, tags = kbtest.File(t, b, f, "Original."), tags[1:]
		} else {
			d = kbtest.Note(t, b, "Original.", "collection:a", "blue")
		}
		r, err := s.Record(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		s.id.Store(&r.ID)
		if err := change(d.ID); !errors.Is(err, errkind.NotFound) {
			t.Errorf("%s: error %v, want one of kind NotFound", name, err)
		}
		got, err := b.Document(t.Context(), d.ID, 0, kb.AllChunks)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.Tags = tags
		if diff := cmp.Diff(d, got, cmpopts.IgnoreTypes(kb.Time{})); diff != "" {
			t.Errorf("%s: the document has changed (-want +got):\n%s", name, diff)
		}
	}
}

// A slow is a store whose first change is made, and reported as a conflict when the
// document has been moved to another collection.
type slow struct {
	*index.Index
	moved atomic.Bool
}

func (s *slow) Apply(ctx context.Context, changes []document.Change) error {
	err := s.Index.Apply(ctx, changes)
	if err == nil && s.moved.CompareAndSwap(false, true) {
		err = errors.Join(errkind.Conflict, s.Index.Apply(ctx, []document.Change{{Tag: &document.Tagging{
			ID: changes[0].Put.ID, Label: "secret"}}}))
	}
	return err
}

// TestRefusedFile checks that a file of a user who may not read it is stored once, and
// stays where it was moved to, if the store has it and reported a conflict.
func TestRefusedFile(t *testing.T) {
	s := &slow{}
	b := openOver(t, func(x *index.Index) kb.Store { s.Index = x; return s })
	j := added(t, b, user(t, "inbox", "", "in"), kb.File{Filename: "a.txt", Tags: []string{"collection:in"}}, "Clams.")
	r := kbtest.Find(t, b, kb.SearchQuery{Query: "clams"})
	if j.Status != kb.Done || r.Total != 1 || !cmp.Equal(r.Results[0].Tags, []string{"collection:secret"}) {
		t.Errorf("the job is %+v, and found are %+v, want one document that was moved", j, r)
	}
}

// TestRightsOfFallback checks that a file without a collection, whose user may not write
// to the default one, stays in the collection of the document that it replaces, also if
// that is deleted before the job runs.
func TestRightsOfFallback(t *testing.T) {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	old := &document.Document{ID: "old", Label: "a", Path: ".files/a.txt", SourcePath: "a.txt", Type: "text",
		Title: "a.txt", Text: "Old.", Chunks: []document.Chunk{{Length: 4}}}
	if err := x.Apply(t.Context(), []document.Change{{Put: old}}); err != nil {
		t.Fatal(err)
	}
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir})
	job, err := b.AddFile(user(t, "ann", "a", "a"), kb.File{Filename: "a.txt"}, strings.NewReader("New."))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Delete(t.Context(), 1), x.Close()); err != nil {
		t.Fatal(err)
	}
	b, _ = open(t, dir)
	if d := kbtest.Stored(t, b, job); !cmp.Equal(d.Tags, []string{"collection:a"}) {
		t.Errorf("the document is %+v, want it in the collection a", d)
	}
}

// TestAudit checks what is recorded of calls.
func TestAudit(t *testing.T) {
	b, x := open(t, t.TempDir())
	d := kbtest.Note(t, b, "Walruses like clams.", "collection:a")
	kbtest.Note(t, b, "Walruses like fish.", "collection:hidden")
	r, err := x.Record(t.Context(), d.ID)
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		Query        string
		Labels, Docs []string
	}
	seen := record{Labels: []string{"a"}, Docs: []string{r.ID}}
	for name, c := range map[string]struct {
		call func(ctx context.Context) error
		want record
	}{
		"search": {func(ctx context.Context) error {
			_, err := b.Search(ctx, kb.SearchQuery{Query: "walruses", Top: 5})
			return err
		}, record{"walruses", seen.Labels, seen.Docs}},
		"search in a collection": {func(ctx context.Context) error {
			_, err := b.Search(ctx, kb.SearchQuery{Query: "walruses", Top: 5, Tags: []string{"x", "collection:hidden"}})
			return err
		}, record{"walruses", []string{"hidden"}, nil}},
		"documents": {func(ctx context.Context) error {
			_, err := b.Documents(ctx, kb.DocumentFilter{Limit: 5})
			return err
		}, seen},
		"document": {func(ctx context.Context) error {
			_, err := b.Document(ctx, d.ID, 0, 1)
			return err
		}, seen},
		"hidden document": {func(ctx context.Context) error {
			if _, err := b.Document(ctx, d.ID+1, 0, 1); !errors.Is(err, errkind.NotFound) {
				return err
			}
			return nil
		}, record{}},
		"tag": {func(ctx context.Context) error {
			_, err := b.AddTags(ctx, d.ID, []string{"red"})
			return err
		}, seen},
		"move": {func(ctx context.Context) error {
			if _, err := b.AddTags(ctx, d.ID, []string{"collection:b"}); !errors.Is(err, errkind.NotFound) {
				return err
			}
			return nil
		}, record{Labels: []string{"a", "b"}, Docs: seen.Docs}},
		"status": {func(ctx context.Context) error { _, err := b.Status(ctx); return err }, record{}},
	} {
		call := &audit.Call{}
		if err := c.call(audit.With(user(t, "ann", "a", "a"), call)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		path := filepath.Join(t.TempDir(), "audit.log")
		log, err := audit.Open(audit.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(log.Write(call), log.Close()); err != nil {
			t.Fatal(err)
		}
		line, err := os.ReadFile(path)
		var got record
		if err := errors.Join(err, json.Unmarshal(line, &got)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s is recorded as (-want +got):\n%s", name, diff)
		}
	}
}

// TestRightsOfUnserved checks that a user sees notes in the collection of a source that
// is not served only with the right to read its label.
func TestRightsOfUnserved(t *testing.T) {
	b, x := open(t, t.TempDir())
	if err := x.AddSource(t.Context(), document.Source{Label: "private", Path: "/private"}); err != nil {
		t.Fatal(err)
	}
	note := kbtest.Note(t, b, "A walrus.", "collection:private")
	for read, want := range map[string]int{"": 0, "other": 0, "private": 1, "other private": 1, "*": 1} {
		ctx := user(t, "ann", read, "")
		l, err := b.Documents(ctx, kb.DocumentFilter{Limit: 10})
		if err != nil || l.Total != want || len(l.Documents) != want {
			t.Errorf("a user who may read %q: Documents() = %+v, %v, want %d", read, l, err, want)
		}
		if r, err := b.Search(ctx, kb.SearchQuery{Query: "walrus", Top: 5}); err != nil || r.Total != want {
			t.Errorf("a user who may read %q: Search() = %+v, %v, want %d", read, r, err, want)
		}
		if _, err := b.Document(ctx, note.ID, 0, 1); (err == nil) != (want == 1) {
			t.Errorf("a user who may read %q: Document() = %v", read, err)
		}
	}
}

// TestRightsMeaning checks searches by meaning, and what is said about vectors.
func TestRightsMeaning(t *testing.T) {
	b, x := openWith(t, t.TempDir(), alike{})
	seen := kbtest.Note(t, b, "Cars and boats.", "collection:a")
	for n := 1; n > 0; {
		var err error
		if n, err = x.EmbedNext(t.Context(), alike{}, nil, 10); err != nil {
			t.Fatal(err)
		}
	}
	kbtest.Note(t, b, "Hidden cars.", "collection:hidden") // without a vector
	ann, nobody := user(t, "ann", "a", ""), user(t, "nobody", "none", "")
	for _, q := range []kb.SearchQuery{{Query: "anything", VectorOnly: true, Top: 5},
		{Query: "how do I steer the big vessel", Top: 5}} {
		r, err := b.Search(ann, q)
		if err != nil || r.Total != 1 || len(r.Results) != 1 || r.Results[0].DocumentID != seen.ID || r.Note != "" {
			t.Errorf("Search(%+v) = %+v, %v, want document %d alone", q, r, err, seen.ID)
		}
		if r, err := b.Search(nobody, q); err != nil || r.Total != 0 || len(r.Results) != 0 || r.Note != "" {
			t.Errorf("Search(%+v) of a user who may read nothing = %+v, %v", q, r, err)
		}
	}
	for _, c := range []struct {
		ctx                context.Context
		passages, embedded int
	}{{ann, 1, 1}, {nobody, 0, 0}, {t.Context(), 2, 1}, {ann, 1, 1}} {
		s, err := b.Status(c.ctx)
		if err != nil || fmt.Sprint(s.Model["passages"], s.Model["embedded"]) != fmt.Sprint(c.passages, c.embedded) {
			t.Errorf("Status() = %+v, %v, want %d of %d passages", s, err, c.embedded, c.passages)
		}
	}
}
