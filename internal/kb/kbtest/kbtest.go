// Package kbtest is the contract suite of [kb.Base].
package kbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// Run runs the suite. open returns an empty base whose jobs make progress, and
// which accepts files of at most MaxUpload bytes. It is called for each test,
// and closes the base with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) kb.Base) {
	for name, f := range map[string]func(*testing.T, kb.Base){
		"Note": testNote, "NoteAgain": testNoteAgain, "NoteText": testNoteText, "File": testFile,
		"Chunks": testChunks, "Replace": testReplace, "Formats": testFormats,
		"Search": testSearch, "Pages": testPages, "Crowd": testCrowd, "Tags": testTags, "Collections": testCollections,
		"Update": testUpdate, "Delete": testDelete,
		"Lists": testLists, "Jobs": testJobs, "FailedJob": testFailedJob, "Uploads": testUploads,
		"Refusals": testRefusals,
		"Missing":  testMissing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, open(t))
		})
	}
}

// MaxUpload is the limit on uploads in bytes for the suite.
const MaxUpload = 64 << 10

// Await waits for a job to end.
func Await(t *testing.T, b kb.Base, id int64) *kb.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		j, err := b.Job(ctx, id)
		if err != nil {
			t.Fatalf("Job(%d): %v", id, err)
		}
		if j.Ended() {
			return j
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stored is Stored for the result of a method that adds a job.
func stored(t *testing.T, b kb.Base, job int64, err error) *kb.Document {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return Stored(t, b, job)
}

// Stored waits for a job to store a document and returns it.
func Stored(t *testing.T, b kb.Base, job int64) *kb.Document {
	t.Helper()
	j := Await(t, b, job)
	if j.Status != kb.Done || j.DocumentID == nil {
		t.Fatalf("the job ended with %+v", j)
	}
	d, err := b.Document(t.Context(), *j.DocumentID, 0, kb.AllChunks)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Note adds a note and returns its document.
func Note(t *testing.T, b kb.Base, text string, tags ...string) *kb.Document {
	t.Helper()
	job, err := b.AddNote(t.Context(), kb.Note{Text: text, Tags: tags})
	return stored(t, b, job, err)
}

// File adds a file and returns its document.
func File(t *testing.T, b kb.Base, f kb.File, text string) *kb.Document {
	t.Helper()
	job, err := b.AddFile(t.Context(), f, strings.NewReader(text))
	return stored(t, b, job, err)
}

// textOf returns the text of a document.
func textOf(d *kb.Document) string {
	var b strings.Builder
	for i, c := range d.Chunks {
		if c.Index != i {
			return fmt.Sprintf("chunk %d has the index %d", i, c.Index)
		}
		b.WriteString(c.Text)
	}
	return b.String()
}

// same compares values without times and numbers of chunks.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(kb.Time{}), cmpopts.IgnoreFields(kb.Document{},
		"TotalChunks")); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

func testNote(t *testing.T, b kb.Base) {
	job, err := b.AddNote(t.Context(), kb.Note{Text: "# Preferences\n\nThe user prefers *concise* answers.\n",
		SourcePath: "memory/feedback.md", Tags: []string{"feedback", "collection:memory", "feedback"}})
	d := stored(t, b, job, err)
	same(t, "document", d, &kb.Document{ID: d.ID, Title: "Preferences", SourcePath: "memory/feedback.md", Type: "note",
		Tags: []string{"collection:memory", "feedback"}, Chunks: d.Chunks})
	if text := textOf(d); !strings.Contains(text, "The user prefers *concise* answers.") {
		t.Errorf("text = %q", text)
	}
	if d.CreatedAt.IsZero() || d.UpdatedAt.Before(d.CreatedAt.Time) || time.Since(d.CreatedAt.Time).Abs() > time.Hour {
		t.Errorf("times = %v, %v", d.CreatedAt, d.UpdatedAt)
	}
	j := Await(t, b, job)
	same(t, "job", j, &kb.Job{ID: job, Status: kb.Done, Type: kb.TypeNote, DocumentID: &d.ID})
	if n := Note(t, b, "Meetings are on Tuesdays.\nRoom 5."); n.Title != "Meetings are on Tuesdays." ||
		!slices.Equal(n.Tags, []string{"collection:documents"}) {
		t.Errorf("note = %+v", n)
	}
	job, err = b.AddNote(t.Context(), kb.Note{Text: "# A heading", Title: "Given title"})
	if n := stored(t, b, job, err); n.Title != "Given title" {
		t.Errorf("title = %q", n.Title)
	}
}

// testNoteAgain checks that a note never replaces a document.
func testNoteAgain(t *testing.T, b kb.Base) {
	var ids []int64
	for range 3 {
		job, err := b.AddNote(t.Context(), kb.Note{Text: "The same text.", SourcePath: "same.md"})
		ids = append(ids, stored(t, b, job, err).ID)
	}
	ids = append(ids, File(t, b, kb.File{Filename: "same.md"}, "The same text.").ID)
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 4 {
		t.Errorf("%d documents, want 4", n)
	}
}

// testNoteText checks that a note is a text, whatever file it begins like.
func testNoteText(t *testing.T, b kb.Base) {
	changed := Note(t, b, "To be changed.")
	for _, c := range []struct{ text, want string }{ // want is text if it is ""
		{text: "GIF89a is the header of GIF files"},
		{text: "%PDF-1.7 is how PDF files begin"},
		{text: "%!PS-Adobe notes"},
		{text: "{\\rtf1 is how RTF begins"},
		{text: "BZh91 compressed"},
		{text: "wOFF"},
		{text: "!<arch>\nis how archives begin"},
		{text: "MZ means Mozambique"},
		{text: "From alice Mon Jan 1 00:00:00 2024\nSubject: a mailbox\n\nwith a body"},
		{text: "<!DOCTYPE html><title>a page</title><p>of text"},
		{text: "PK\x03\x04 begins a ZIP archive", want: "PK begins a ZIP archive"},
		{text: "PK\x03\x04", want: "PK"},
		{text: "\x1f\u008b is gzip", want: " is gzip"},
		{text: "\x1b$B is kept", want: "$B is kept"},
		{text: "a\x00b\x01\x02\x03\x04\x05", want: "ab"},
		{text: strings.Repeat("a\x00", 300), want: strings.Repeat("a", 300)},
	} {
		want := c.want
		if want == "" {
			want = c.text
		}
		if got := textOf(Note(t, b, c.text)); got != want {
			t.Errorf("the text of the note %q is %q, want %q", c.text, got, want)
		}
		d, err := b.UpdateNote(t.Context(), changed.ID, kb.NoteChange{Text: &c.text})
		if err != nil {
			t.Errorf("UpdateNote(%q) = %v", c.text, err)
		} else if got := textOf(d); got != want {
			t.Errorf("the text of the note changed to %q is %q, want %q", c.text, got, want)
		}
	}
	for _, text := range []string{"\x00", "\ufeff \x01\n"} { // nothing remains of it
		_, err := b.AddNote(t.Context(), kb.Note{Text: text})
		refused(t, fmt.Sprintf("note %q", text), err, errkind.Invalid)
		_, err = b.UpdateNote(t.Context(), changed.ID, kb.NoteChange{Text: &text})
		refused(t, fmt.Sprintf("change to %q", text), err, errkind.Invalid)
	}
}

func testFile(t *testing.T, b kb.Base) {
	d := File(t, b, kb.File{Filename: "guide.md", Tags: []string{"manual"}},
		"# Installation guide\n\nRun the installer.\n")
	same(t, "document", d, &kb.Document{ID: d.ID, Title: "Installation guide", SourcePath: "guide.md", Type: "markdown",
		Tags: []string{"collection:documents", "manual"}, Chunks: d.Chunks})
	jobs, err := b.Jobs(t.Context(), kb.JobFilter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "jobs", jobs, []kb.Job{{ID: jobs[0].ID, Status: kb.Done, Type: kb.TypeFile, Filename: "guide.md",
		DocumentID: &d.ID}})
	d = File(t, b, kb.File{Filename: `C:\Users\me\plain.txt`, SourcePath: "docs/plain.txt"}, "No heading here.")
	if d.Title != "plain.txt" || d.SourcePath != "docs/plain.txt" || d.Type != "text" {
		t.Errorf("document = %+v", d)
	}
}

// testChunks checks the ranges of chunks.
func testChunks(t *testing.T, b kb.Base) {
	text := strings.Repeat("A paragraph about the walrus, which is long enough to fill a part of a chunk.\n\n", 200)
	d := File(t, b, kb.File{Filename: "long.md"}, text)
	n := len(d.Chunks)
	if n < 5 || d.TotalChunks != n {
		t.Fatalf("%d chunks of %d, want more", n, d.TotalChunks)
	}
	for _, r := range [][2]int{{0, n}, {0, 2}, {1, 3}, {n - 1, n}, {2, n + 10}, {n, n + 1},
		{n + 5, kb.AllChunks}, {0, 0}} {
		got, err := b.Document(t.Context(), d.ID, r[0], r[1])
		if err != nil {
			t.Fatal(err)
		}
		want := *d
		to := min(r[1], n)
		want.Chunks = d.Chunks[min(r[0], to):to]
		if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("chunks %d to %d (-want +got):\n%s", r[0], r[1], diff)
		}
	}
}

// testReplace checks that a file replaces the document with the same source
// path, and nothing else.
func testReplace(t *testing.T, b kb.Base) {
	f := kb.File{Filename: "a.md", SourcePath: "docs/a.md", Tags: []string{"one", "collection:memory"}}
	first := File(t, b, f, "# First\n\nAbout walruses.\n")
	other := File(t, b, kb.File{Filename: "a.md", SourcePath: "other/a.md"}, "# First\n\nAbout walruses.\n")
	if other.ID == first.ID {
		t.Fatal("a file with another source path replaced the document")
	}
	again := File(t, b, f, "# First\n\nAbout walruses.\n")
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same file again changed the document (-first +again):\n%s", diff)
	}
	f.Tags = nil
	second := File(t, b, f, "# Second\n\nAbout penguins.\n")
	same(t, "replaced document", second, &kb.Document{ID: first.ID, Title: "Second", SourcePath: "docs/a.md",
		Type: "markdown", Tags: first.Tags, Chunks: second.Chunks})
	f.Tags = []string{"two", "collection:archive"}
	moved := File(t, b, f, "# Second\n\nAbout penguins.\n")
	same(t, "moved document", moved, &kb.Document{ID: first.ID, Title: "Second", SourcePath: "docs/a.md",
		Type: "markdown",
		Tags: []string{"collection:archive", "two"}, Chunks: second.Chunks})
	f.Filename, f.Tags = "b.html", []string{"collection:documents"}
	html := File(t, b, f, "<title>Third</title><p>About lemurs.")
	if html.ID != first.ID || html.Type != "html" || html.Title != "Third" {
		t.Errorf("document = %+v", html)
	}
	for query, want := range map[string]int{"penguins": 0, "lemurs": 1, "walruses": 1} {
		if got := Find(t, b, kb.SearchQuery{Query: query}); got.Total != want {
			t.Errorf("%s: %d documents, want %d", query, got.Total, want)
		}
	}
}

// Find searches for at most 10 passages if q.Top is 0.
func Find(t *testing.T, b kb.Base, q kb.SearchQuery) *kb.SearchResult {
	t.Helper()
	if q.Top == 0 {
		q.Top = kb.DefaultTop
	}
	r, err := b.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("Search(%+v): %v", q, err)
	}
	return r
}

func testFormats(t *testing.T, b kb.Base) {
	for name, c := range map[string]struct{ text, kind, title string }{
		"a.html": {"<html><title>Hyper</title><body><p>text</body></html>", "html", "Hyper"},
		"b.md":   {"intro\n\n# Mark\n", "markdown", "Mark"},
		"c.txt":  {"just text", "text", "c.txt"},
		"d.csv":  {"name,age\nada,36\n", "csv", "d.csv"},
		"e.rtf":  {`{\rtf1\ansi Some rich text.}`, "rtf", "e.rtf"},
		"f.py":   {"def f(): pass\n", "text", "f.py"},
	} {
		if d := File(t, b, kb.File{Filename: name}, c.text); d.Type != c.kind || d.Title != c.title {
			t.Errorf("%s: type %q and title %q, want %q and %q", name, d.Type, d.Title, c.kind, c.title)
		}
	}
	s, err := b.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "counts", s.Documents, kb.DocumentCounts{Total: 6,
		ByType: map[string]int{"html": 1, "markdown": 1, "text": 2,
			"csv": 1, "rtf": 1}})
	same(t, "queue", s.Queue, kb.QueueCounts{})
	if s.Version == "" || s.Model["name"] == nil || s.Device["type"] == nil {
		t.Errorf("status = %+v", s)
	}
}

func testSearch(t *testing.T, b kb.Base) {
	if r := Find(t, b, kb.SearchQuery{Query: "pension"}); r.Total != 0 || r.Results == nil {
		t.Errorf("in an empty base: %+v", r)
	}
	long := "# Pension\n\n" + strings.Repeat("Nothing of interest stands in this paragraph of the report.\n\n", 60) +
		"## Prices\n\nThe revaluation of pensions follows the index of prices.\n"
	doc := File(t, b, kb.File{Filename: "report.md", Tags: []string{"insurance"}}, long)
	note := Note(t, b, "Pension revaluation is discussed in the report.", "feedback", "email", "collection:memory")
	Note(t, b, "Something else.", "feedback")
	Note(t, b, "日当は海外出張の規程で定める。", "feedback")

	r := Find(t, b, kb.SearchQuery{Query: "pension revaluation"})
	if r.Total != 2 || len(r.Results) < 2 {
		t.Fatalf("result = %+v", r)
	}
	found := map[int64]kb.Result{}
	for i, h := range r.Results {
		if h.Score < 0 || h.Score > 1 || i > 0 && h.Score > r.Results[i-1].Score {
			t.Errorf("score %v after %v", h.Score, r.Results[max(i-1, 0)].Score)
		}
		if _, ok := found[h.DocumentID]; !ok {
			found[h.DocumentID] = h
		}
	}
	h := found[doc.ID]
	if h.ChunkIndex == 0 || h.ChunkIndex >= len(doc.Chunks) || h.Text != doc.Chunks[h.ChunkIndex].Text ||
		!strings.Contains(h.Text, "index of prices") || h.Heading != "Pension > Prices" || h.Page != "" {
		t.Errorf("passage = %+v", h)
	}
	same(t, "result", found[note.ID], kb.Result{DocumentID: note.ID, Text: textOf(note), Score: found[note.ID].Score,
		Title: note.Title, Type: "note",
		Tags: []string{"collection:memory", "email", "feedback"}})
	for _, c := range []struct {
		q    kb.SearchQuery
		want int
	}{
		{kb.SearchQuery{Query: "revaluation", Tags: []string{"collection:memory"}}, 1},
		{kb.SearchQuery{Query: "revaluation", Tags: []string{"collection:memory", "email"}}, 1},
		{kb.SearchQuery{Query: "revaluation", Tags: []string{"insurance", "email"}}, 0},
		{kb.SearchQuery{Query: "revaluation", Tags: []string{"unknown"}}, 0},
		{kb.SearchQuery{Query: "revaluation", Tags: []string{"collection:unknown"}}, 0},
		{kb.SearchQuery{Query: "revaluation", FTSOnly: true}, 2},
		{kb.SearchQuery{Query: "How does the revaluation of pensions work?"}, 2},
		{kb.SearchQuery{Query: "revaluation zebras"}, 2}, // with OR
		{kb.SearchQuery{Query: "zebras"}, 0},
		{kb.SearchQuery{Query: "the zebras"}, 0}, // a word that every question has does not count
		{kb.SearchQuery{Query: `"unclosed (quote`}, 0},
		{kb.SearchQuery{Query: "revaluation -pension"}, 0}, // a word that is excluded never comes back
		{kb.SearchQuery{Query: "zebras -pension"}, 0},
		{kb.SearchQuery{Query: `revaluation "-pension`}, 0},
		{kb.SearchQuery{Query: "海外出張の日当はいくらですか"}, 1},
		{kb.SearchQuery{Query: "日当有多少天"}, 1},
	} {
		r := Find(t, b, c.q)
		if r.Total != c.want || r.Results == nil || (len(r.Results) > 0) != (c.want > 0) {
			t.Errorf("Search(%+v) = %+v, want %d documents", c.q, r, c.want)
		}
	}
	if r := Find(t, b, kb.SearchQuery{Query: "revaluation", Top: 1}); len(r.Results) != 1 || r.Total != 2 {
		t.Errorf("with top 1: %+v", r)
	}
}

// testPages checks that a passage has the page on which its chunk begins.
func testPages(t *testing.T, b kb.Base) {
	pages := []string{"The walrus is on the first page.", "The narwhal is on the second page."}
	for i := range pages {
		pages[i] = strings.Repeat("Nothing of interest is said in this sentence.\n", 40) + pages[i]
	}
	doc := File(t, b, kb.File{Filename: "pages.pdf"}, pdf(pages))
	for word, want := range map[string]string{"walrus": "1", "narwhal": "2"} {
		r := Find(t, b, kb.SearchQuery{Query: word})
		if len(r.Results) != 1 || r.Results[0].DocumentID != doc.ID {
			t.Fatalf("%s: %d passages, want one", word, len(r.Results))
		}
		if got := r.Results[0].Page; got != want {
			t.Errorf("%s is on page %q, want %q", word, got, want)
		}
	}
}

// pdf returns a PDF file with pages of lines.
func pdf(pages []string) string {
	var kids, objects strings.Builder
	for i, page := range pages {
		content := "BT /F 9 Tf 12 TL 50 780 Td (" + strings.ReplaceAll(page, "\n", ") Tj T* (") + ") Tj ET"
		fmt.Fprintf(&kids, "%d 0 R ", 2*i+4)
		fmt.Fprintf(&objects, "%d 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources <</Font <</F 3 0 "+
			"R>>>> /Contents %d 0 R>> endobj\n", 2*i+4, 2*i+5)
		fmt.Fprintf(&objects, "%d 0 obj <</Length %d>> stream\n%s\nendstream endobj\n", 2*i+5, len(content), content)
	}
	return fmt.Sprintf("%%PDF-1.4\n1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n2 0 obj <</Type /Pages /Kids [%s] "+
		"/Count %d>> endobj\n"+
		"3 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> endobj\n%strailer <</Root 1 0 R>>\n%%%%EOF\n",
		kids.String(), len(pages), objects.String())
}

// testCrowd checks that the passages of one document do not displace all others.
func testCrowd(t *testing.T, b kb.Base) {
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, "# Walrus %d\n\n%s\n\n",
			i, strings.Repeat("The walrus and the other walrus are in this part. ", 30))
	}
	crowd := File(t, b, kb.File{Filename: "walrus.md"}, text.String())
	other := Note(t, b, "This long note about the animals of the north mentions the bear, the fox, the owl, and, last "+
		"and least, one walrus.")
	count := func(r *kb.SearchResult, id int64) (n int) {
		for _, h := range r.Results {
			if h.DocumentID == id {
				n++
			}
		}
		return n
	}
	r := Find(t, b, kb.SearchQuery{Query: "walrus", Top: 4})
	if len(r.Results) != 4 || count(r, crowd.ID) != 3 || count(r, other.ID) != 1 {
		t.Errorf("top 4: %d results, %d of the long document", len(r.Results), count(r, crowd.ID))
	}
	if r = Find(t, b, kb.SearchQuery{Query: "walrus", Top: 8}); len(r.Results) != 8 || count(r, other.ID) != 1 {
		t.Errorf("top 8: %d results, %d of the long document", len(r.Results), count(r, crowd.ID))
	}
}

func testTags(t *testing.T, b kb.Base) {
	d := Note(t, b, "Tagged.", "one")
	steps := []struct {
		add    []string
		remove string
		want   []string
	}{
		{add: []string{"two", "three", "two"}, want: []string{"collection:documents", "one", "three", "two"}},
		{remove: "one", want: []string{"collection:documents", "three", "two"}},
		{remove: "one", want: []string{"collection:documents", "three", "two"}},
		{add: []string{"a/b c?d#%", "日本"}, want: []string{"a/b c?d#%", "collection:documents", "three", "two", "日本"}},
		{remove: "a/b c?d#%", want: []string{"collection:documents", "three", "two", "日本"}},
	}
	for _, s := range steps {
		var got []string
		var err error
		if s.add != nil {
			got, err = b.AddTags(t.Context(), d.ID, s.add)
		} else {
			got, err = b.RemoveTag(t.Context(), d.ID, s.remove)
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("tags after %+v", s), got, s.want)
	}
	list, err := b.Documents(t.Context(), kb.DocumentFilter{Tag: "日本", Limit: 10})
	if err != nil || list.Total != 1 || list.Documents[0].ID != d.ID {
		t.Errorf("Documents() = %+v, %v", list, err)
	}
}

// testCollections checks that a document has exactly one collection.
func testCollections(t *testing.T, b kb.Base) {
	d := Note(t, b, "Where does it belong?", "tag")
	check := func(got []string, err error, collection string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"collection:" + collection, "tag"}
		same(t, "tags", got, want)
		after, err := b.Document(t.Context(), d.ID, 0, kb.AllChunks)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "tags of the document", after.Tags, want)
		for _, c := range []string{"documents", "memory", "archive"} {
			n := 0
			if c == collection {
				n = 1
			}
			if r := Find(t, b, kb.SearchQuery{Query: "belong", Tags: []string{"collection:" + c}}); r.Total != n {
				t.Errorf("collection %s has %d documents, want %d", c, r.Total, n)
			}
		}
	}
	tags, err := b.AddTags(t.Context(), d.ID, []string{"collection:memory"})
	check(tags, err, "memory")
	tags, err = b.RemoveTag(t.Context(), d.ID, "collection:archive") // it has another
	check(tags, err, "memory")
	tags, err = b.RemoveTag(t.Context(), d.ID, "collection:memory")
	check(tags, err, "documents")
	tags, err = b.RemoveTag(t.Context(), d.ID, "collection:documents")
	check(tags, err, "documents")
	tags, err = b.AddTags(t.Context(), d.ID, []string{"collection:archive", "tag"})
	check(tags, err, "archive")
	_, err = b.AddTags(t.Context(), d.ID, []string{"collection:a", "collection:b"})
	refused(t, "two collections", err, errkind.Invalid)
	tags, err = b.AddTags(t.Context(), d.ID, []string{"collection:memory"})
	check(tags, err, "memory")
}

func testUpdate(t *testing.T, b kb.Base) {
	d := Note(t, b, "# Old title\n\nOld text about walruses.", "keep", "collection:memory")
	text, title := "# New title\n\nNew text about lemurs.", "My title"
	for _, c := range []struct {
		change      kb.NoteChange
		title, text string
	}{
		{kb.NoteChange{Text: &text}, "New title", text},
		{kb.NoteChange{Title: &title}, "My title", text},
		{kb.NoteChange{Text: &d.Chunks[0].Text}, "My title", d.Chunks[0].Text},
		{kb.NoteChange{Text: &text, Title: &title}, "My title", text},
	} {
		got, err := b.UpdateNote(t.Context(), d.ID, c.change)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "note", got, &kb.Document{ID: d.ID, Title: c.title, Type: "note", Tags: d.Tags, Chunks: got.Chunks})
		if !strings.Contains(textOf(got), strings.TrimSpace(c.text[strings.LastIndexByte(c.text, '\n')+1:])) {
			t.Errorf("text = %q, want %q", textOf(got), c.text)
		}
		if !got.CreatedAt.Equal(d.CreatedAt) || got.UpdatedAt.Before(d.UpdatedAt.Time) {
			t.Errorf("times = %v, %v; before %v, %v", got.CreatedAt, got.UpdatedAt, d.CreatedAt, d.UpdatedAt)
		}
	}
	if r := Find(t, b, kb.SearchQuery{Query: "walruses"}); r.Total != 0 {
		t.Errorf("the old text is found: %+v", r)
	}
	file := File(t, b, kb.File{Filename: "f.md"}, "text")
	_, err := b.UpdateNote(t.Context(), file.ID, kb.NoteChange{Text: &text})
	refused(t, "update of a file", err, errkind.Conflict)
	_, err = b.UpdateNote(t.Context(), d.ID, kb.NoteChange{})
	refused(t, "empty update", err, errkind.Invalid)
	blank := " "
	_, err = b.UpdateNote(t.Context(), d.ID, kb.NoteChange{Text: &blank})
	refused(t, "blank text", err, errkind.Invalid)
}

func testDelete(t *testing.T, b kb.Base) {
	d := Note(t, b, "Short-lived.")
	if err := b.Delete(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	_, err := b.Document(t.Context(), d.ID, 0, kb.AllChunks)
	refused(t, "deleted document", err, errkind.NotFound)
	refused(t, "second Delete", b.Delete(t.Context(), d.ID), errkind.NotFound)
	if r := Find(t, b, kb.SearchQuery{Query: "lived"}); r.Total != 0 {
		t.Errorf("the deleted document is found: %+v", r)
	}
	if next := Note(t, b, "Short-lived."); next.ID <= d.ID {
		t.Errorf("the ID %d is not above the deleted %d", next.ID, d.ID)
	}
}

func testLists(t *testing.T, b kb.Base) {
	var ids []int64
	for i := range 5 {
		ids = append(ids, File(t, b, kb.File{Filename: fmt.Sprintf("f%d.txt", i), Tags: []string{fmt.Sprint("even-",
			i%2 == 0)}}, fmt.Sprint("text ", i)).ID)
	}
	slices.Reverse(ids)
	for _, c := range []struct {
		f     kb.DocumentFilter
		want  []int64
		total int
	}{
		{kb.DocumentFilter{Limit: 10}, ids, 5},
		{kb.DocumentFilter{Limit: 2}, ids[:2], 5},
		{kb.DocumentFilter{Limit: 2, Offset: 3}, ids[3:], 5},
		{kb.DocumentFilter{Limit: 2, Offset: 9}, nil, 5},
		{kb.DocumentFilter{Limit: 10, SourcePath: "f1.txt"}, ids[3:4], 1},
		{kb.DocumentFilter{Limit: 10, SourcePath: "f1"}, nil, 0},
		{kb.DocumentFilter{Limit: 10, Tag: "even-false"}, []int64{ids[1], ids[3]}, 2},
		{kb.DocumentFilter{Limit: 10, Tag: "collection:documents"}, ids, 5},
		{kb.DocumentFilter{Limit: 10, Tag: "collection:none"}, nil, 0},
	} {
		list, err := b.Documents(t.Context(), c.f)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, d := range list.Documents {
			got = append(got, d.ID)
			if d.Chunks != nil || d.Title == "" {
				t.Errorf("listed document = %+v", d)
			}
		}
		same(t, fmt.Sprintf("list for %+v", c.f), got, c.want)
		if list.Total != c.total || list.Documents == nil {
			t.Errorf("list for %+v = %+v, want total %d", c.f, list, c.total)
		}
	}
}

func testJobs(t *testing.T, b kb.Base) {
	var ids []int64
	for range 3 {
		id, err := b.AddNote(t.Context(), kb.Note{Text: "note"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		Await(t, b, id)
	}
	slices.Reverse(ids)
	for _, c := range []struct {
		f    kb.JobFilter
		want []int64
	}{
		{kb.JobFilter{Limit: 10}, ids},
		{kb.JobFilter{Limit: 2}, ids[:2]},
		{kb.JobFilter{Limit: 10, Status: kb.Done}, ids},
		{kb.JobFilter{Limit: 10, Status: kb.Failed}, nil},
		{kb.JobFilter{Limit: 10, Status: kb.Queued}, nil},
		{kb.JobFilter{Limit: 10, Status: kb.Running}, nil},
	} {
		jobs, err := b.Jobs(t.Context(), c.f)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, j := range jobs {
			got = append(got, j.ID)
		}
		same(t, fmt.Sprintf("jobs for %+v", c.f), got, c.want)
	}
}

func testFailedJob(t *testing.T, b kb.Base) {
	var id int64
	for name, data := range map[string]string{"data.bin": "\x00\x01\x02\xff\xfe", "broken.docx": "\x00\x01\x02",
		"broken.pdf": "this is no PDF file \x00\x01\x02"} {
		var err error
		if id, err = b.AddFile(t.Context(), kb.File{Filename: name}, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		j := Await(t, b, id)
		if j.Status != kb.Failed || !strings.Contains(j.Error, ": save ") || j.DocumentID != nil ||
			strings.Contains(j.Error, "/") {
			t.Errorf("%s: job = %+v, want an error that says what to do", name, j)
		}
	}
	failed, err := b.Jobs(t.Context(), kb.JobFilter{Status: kb.Failed, Limit: 10})
	if err != nil || len(failed) != 3 || failed[0].ID != id {
		t.Errorf("failed jobs = %+v, %v", failed, err)
	}
	s, err := b.Status(t.Context())
	if err != nil || s.Queue.Failed != 3 {
		t.Errorf("status = %+v, %v", s, err)
	}
}

func testUploads(t *testing.T, b kb.Base) {
	half := strings.Repeat("word ", MaxUpload/10)
	if d := File(t, b, kb.File{Filename: "half.txt"}, half); strings.TrimSpace(textOf(d)) != strings.TrimSpace(half) {
		t.Errorf("a text of %d bytes was stored as one of %d", len(half), len(textOf(d)))
	}
	_, err := b.AddFile(t.Context(), kb.File{Filename: "large.txt"}, io.LimitReader(endless{}, MaxUpload+1))
	refused(t, "a file that is too large", err, errkind.TooLarge)
	broken := errors.New("the sender is gone")
	if _, err := b.AddFile(t.Context(), kb.File{Filename: "cut.txt"}, io.MultiReader(strings.NewReader("begin"),
		iotest.ErrReader(broken))); err == nil {
		t.Error("a file that was cut off was accepted")
	}
	list, err := b.Documents(t.Context(), kb.DocumentFilter{Limit: 10})
	if err != nil || list.Total != 1 {
		t.Errorf("Documents() = %+v, %v", list, err)
	}
}

// endless is an endless text.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// testRefusals passes a bad value in every field.
func testRefusals(t *testing.T, b kb.Base) {
	d := Note(t, b, "A note.")
	search := func(q kb.SearchQuery) func(context.Context) error {
		return func(ctx context.Context) error { _, err := b.Search(ctx, q); return err }
	}
	note := func(n kb.Note) func(context.Context) error {
		return func(ctx context.Context) error { _, err := b.AddNote(ctx, n); return err }
	}
	file := func(f kb.File) func(context.Context) error {
		return func(ctx context.Context) error { _, err := b.AddFile(ctx, f, strings.NewReader("x")); return err }
	}
	jobs := func(f kb.JobFilter) func(context.Context) error {
		return func(ctx context.Context) error { _, err := b.Jobs(ctx, f); return err }
	}
	docs := func(f kb.DocumentFilter) func(context.Context) error {
		return func(ctx context.Context) error { _, err := b.Documents(ctx, f); return err }
	}
	add := func(tags ...string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := b.AddTags(ctx, d.ID, tags); return err }
	}
	long := strings.Repeat("x", 20_000)
	many := slices.Repeat([]string{"tag"}, kb.MaxTags+1)
	for name, f := range map[string]func(context.Context) error{
		"query blank":          search(kb.SearchQuery{Query: " ", Top: 1}),
		"query without words":  search(kb.SearchQuery{Query: "...", Top: 1}),
		"signs by meaning":     search(kb.SearchQuery{Query: "()", Top: 1, VectorOnly: true}),
		"query long":           search(kb.SearchQuery{Query: long, Top: 1}),
		"top 0":                search(kb.SearchQuery{Query: "x"}),
		"top 101":              search(kb.SearchQuery{Query: "x", Top: 101}),
		"top -1":               search(kb.SearchQuery{Query: "x", Top: -1}),
		"search tags blank":    search(kb.SearchQuery{Query: "x", Top: 1, Tags: []string{""}}),
		"search tags many":     search(kb.SearchQuery{Query: "x", Top: 1, Tags: many}),
		"both modes":           search(kb.SearchQuery{Query: "x", Top: 1, FTSOnly: true, VectorOnly: true}),
		"note blank":           note(kb.Note{Text: "\n "}),
		"note title":           note(kb.Note{Text: "x", Title: "two\nlines"}),
		"note title long":      note(kb.Note{Text: "x", Title: long}),
		"note source path":     note(kb.Note{Text: "x", SourcePath: "a\x00b"}),
		"note tag blank":       note(kb.Note{Text: "x", Tags: []string{" "}}),
		"note tag long":        note(kb.Note{Text: "x", Tags: []string{long}}),
		"note tag control":     note(kb.Note{Text: "x", Tags: []string{"a\nb"}}),
		"note collections":     note(kb.Note{Text: "x", Tags: []string{"collection:a", "collection:b"}}),
		"note collection ''":   note(kb.Note{Text: "x", Tags: []string{"collection:"}}),
		"note collection name": note(kb.Note{Text: "x", Tags: []string{"collection:a b"}}),
		"file name":            file(kb.File{Filename: ""}),
		"file name dots":       file(kb.File{Filename: "a/.."}),
		"file name control":    file(kb.File{Filename: "a\nb.txt"}),
		"file name long":       file(kb.File{Filename: long}),
		"file source path":     file(kb.File{Filename: "a.txt", SourcePath: long}),
		"file tags":            file(kb.File{Filename: "a.txt", Tags: many}),
		"jobs status":          jobs(kb.JobFilter{Status: "unknown", Limit: 1}),
		"jobs limit 0":         jobs(kb.JobFilter{}),
		"jobs limit 1001":      jobs(kb.JobFilter{Limit: 1001}),
		"documents limit 0":    docs(kb.DocumentFilter{}),
		"documents limit 1001": docs(kb.DocumentFilter{Limit: 1001}),
		"documents offset -1":  docs(kb.DocumentFilter{Limit: 1, Offset: -1}),
		"documents tag":        docs(kb.DocumentFilter{Limit: 1, Tag: " "}),
		"documents path":       docs(kb.DocumentFilter{Limit: 1, SourcePath: long}),
		"no tags":              add(),
		"tag blank":            add(""),
		"tag collection":       add("collection:ä"),
		"tags many":            add(many...),
	} {
		refused(t, name, f(t.Context()), errkind.Invalid)
	}
	_, err := b.AddNote(t.Context(), kb.Note{Text: strings.Repeat("x", MaxUpload+1)})
	refused(t, "a note that is too large", err, errkind.TooLarge)
}

// testMissing calls every method with an ID that does not exist.
func testMissing(t *testing.T, b kb.Base) {
	text := "text"
	for _, id := range []int64{0, -1, 1, 1 << 62} {
		_, err := b.Document(t.Context(), id, 0, kb.AllChunks)
		refused(t, "Document", err, errkind.NotFound)
		_, err = b.Job(t.Context(), id)
		refused(t, "Job", err, errkind.NotFound)
		_, err = b.UpdateNote(t.Context(), id, kb.NoteChange{Text: &text})
		refused(t, "UpdateNote", err, errkind.NotFound)
		_, err = b.AddTags(t.Context(), id, []string{"tag"})
		refused(t, "AddTags", err, errkind.NotFound)
		_, err = b.RemoveTag(t.Context(), id, "tag")
		refused(t, "RemoveTag", err, errkind.NotFound)
		_, err = b.RemoveTag(t.Context(), id, "collection:documents")
		refused(t, "RemoveTag", err, errkind.NotFound)
		refused(t, "Delete", b.Delete(t.Context(), id), errkind.NotFound)
	}
}

// refused checks the kind of an error.
func refused(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: error %v, want one of kind %v", what, err, kind)
	}
}
