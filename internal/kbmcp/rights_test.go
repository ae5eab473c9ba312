package kbmcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

// caller returns a caller. Labels are separated by spaces.
func caller(id, read, write string) *access.Caller {
	return &access.Caller{ID: id, Name: id, Rights: access.Rights{Read: strings.Fields(read),
		Write: strings.Fields(write)}}
}

// connectAs returns a session of a caller with a server of the caller's own.
func connectAs(t *testing.T, c *access.Caller, o kbmcp.Options) *mcptest.Session {
	t.Helper()
	o.Caller, o.Extra = c, true
	s := newServer(t, o)
	session := mcptest.Stdio(t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		return s.ServeStdio(access.With(ctx, c), in, out)
	})
	session.Initialize("2025-11-25")
	return session
}

// local returns a base over a fresh index.
func local(t *testing.T) *kb.Local {
	t.Helper()
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir, Version: "test"})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var work sync.WaitGroup
	work.Go(func() { b.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		work.Wait()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestListedTools checks that callers get no tools that they may never use, and no
// texts about them.
func TestListedTools(t *testing.T) {
	const reads, writes, both, always = "kb_search kb_get kb_list kb_collections",
		"kb_addnote kb_upload_start kb_upload_chunk kb_upload_finish", "kb_update_note kb_delete", "kb_status kb_jobs"
	for _, tt := range []struct {
		caller *access.Caller
		want   string
	}{
		{nil, reads + " " + writes + " " + both + " " + always},
		{caller("both", "a", "b"), reads + " " + writes + " " + both + " " + always},
		{caller("reader", "a", ""), reads + " " + always},
		{caller("writer", "", "*"), writes + " " + always},
		{caller("nothing", "", ""), always},
	} {
		var list struct {
			Tools []struct{ Name, Description string }
		}
		connectAs(t, tt.caller, kbmcp.Options{Base: local(t)}).Call("tools/list", nil).Decode(t, &list)
		text := kbmcp.Instructions(tt.caller)
		got := map[string]bool{}
		for _, tool := range list.Tools {
			got[tool.Name] = true
			text += "\n" + tool.Description
		}
		want := map[string]bool{}
		for _, name := range strings.Fields(tt.want) {
			want[name] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tools of %+v (-want +got):\n%s", tt.caller, diff)
		}
		for _, name := range strings.Fields(reads + " " + writes + " " + both) {
			if !want[name] && strings.Contains(text, name) {
				t.Errorf("the texts for %+v mention %s:\n%s", tt.caller, name, text)
			}
		}
	}
}

// TestRightsOfTools checks the errors of tools, and that nothing is changed before all
// rights were checked.
func TestRightsOfTools(t *testing.T) {
	b := local(t)
	d := kbtest.Note(t, b, "Original.", "collection:a", "red")
	seen := kbtest.Note(t, b, "Read only.", "collection:seen")
	hidden := kbtest.Note(t, b, "Hidden walrus.", "collection:hidden")
	ann := connectAs(t, caller("ann", "a seen", "a inbox"), kbmcp.Options{Base: b})
	const denied, missing = -31403, -32002
	none := "document 4711 does not exist"
	for _, tt := range []struct {
		tool string
		args args
		code int64 // 0 if it succeeds
		want string
	}{
		{"kb_update_note", args{"document_id": d.ID, "text": "Changed.", "collection": "hidden"}, missing,
			"the collection hidden does not exist"},
		{"kb_update_note", args{"document_id": d.ID, "text": "Changed.", "collection": "nowhere"}, missing,
			"the collection nowhere does not exist"},
		{"kb_update_note", args{"document_id": d.ID, "tags": []string{"x"}, "collection": "seen"}, denied,
			"you may read the collection seen, but not change it"},
		{"kb_update_note", args{"document_id": seen.ID, "text": "Changed.", "collection": "a"}, denied,
			"you may read the collection seen"},
		{"kb_update_note", args{"document_id": seen.ID, "tags": []string{"x"}}, denied, "you may read the collection seen"},
		{"kb_update_note", args{"document_id": hidden.ID, "text": "Changed."}, missing,
			strings.Replace(none, "4711", fmt.Sprint(hidden.ID), 1)},
		{"kb_update_note", args{"document_id": hidden.ID, "collection": "a"}, missing,
			strings.Replace(none, "4711", fmt.Sprint(hidden.ID), 1)},
		{"kb_get", args{"document_id": hidden.ID}, missing, strings.Replace(none, "4711", fmt.Sprint(hidden.ID), 1)},
		{"kb_get", args{"document_id": 4711}, missing, none},
		{"kb_delete", args{"document_id": hidden.ID}, missing, strings.Replace(none, "4711", fmt.Sprint(hidden.ID), 1)},
		{"kb_delete", args{"document_id": seen.ID}, denied, "you may read the collection seen"},
		{"kb_addnote", args{"text": "x"}, missing, "the collection documents does not exist"},
		{"kb_addnote", args{"text": "x", "collection": "hidden"}, missing, "the collection hidden does not exist"},
		{"kb_addnote", args{"text": "x", "collection": "seen"}, denied, "you may read the collection seen"},
		{"kb_upload_start", args{"filename": "a.txt", "total_size": 1, "collection": "hidden"}, missing,
			"the collection hidden does not exist"},
		{"kb_search", args{"query": "walrus", "collection": "hidden"}, 0,
			"no document is in the collection hidden; there are a, seen"},
		{"kb_search", args{"query": "walrus"}, 0, `"results":[],"total":0`},
		{"kb_collections", nil, 0, `{"collections":[{"name":"a","documents":1},{"name":"seen","documents":1}]}`},
		{"kb_list", nil, 0, `"total":2`},
		{"kb_jobs", nil, 0, `{"jobs":[]}`},
	} {
		text, e := ann.Tool(tt.tool, tt.args)
		code := int64(0)
		if e != nil {
			text, code = e.Message, e.Code
		}
		if code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s %v = %d %s, want %d %s", tt.tool, tt.args, code, text, tt.code, tt.want)
		}
	}
	for _, was := range []*kb.Document{d, seen, hidden} {
		got, err := b.Document(t.Context(), was.ID, 0, kb.AllChunks)
		if diff := cmp.Diff(was, got); diff != "" || err != nil {
			t.Errorf("a document has changed, %v (-before +after):\n%s", err, diff)
		}
	}

	// A document can be moved to where it cannot be read.
	moved := tool[struct {
		Collection string
		Tags       []string
	}](t, ann, "kb_update_note", args{"document_id": d.ID, "tags": []string{"blue"}, "collection": "inbox"})
	if moved.Collection != "inbox" || !cmp.Equal(moved.Tags, []string{"blue"}) {
		t.Errorf("kb_update_note = %+v", moved)
	}
	if _, e := ann.Tool("kb_get", args{"document_id": d.ID}); e == nil || e.Code != missing {
		t.Errorf("kb_get of a document that was moved = %v", e)
	}
	got, err := b.Document(t.Context(), d.ID, 0, kb.AllChunks)
	if err != nil || !cmp.Equal(got.Tags, []string{"blue", "collection:inbox"}) {
		t.Errorf("the document is %+v, %v", got, err)
	}
}

// TestMoveInOneStep checks that a document of users is never in a third collection
// while it is moved.
func TestMoveInOneStep(t *testing.T) {
	f := &failing{}
	connectAs(t, caller("ann", "*", "*"), kbmcp.Options{Base: f}).Tool("kb_update_note",
		args{"document_id": 1, "collection": "new"})
	if diff := cmp.Diff([]string{"add collection:new"}, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestUploadsOfUsers checks that an upload exists only for the user who has started it.
func TestUploadsOfUsers(t *testing.T) {
	b := local(t)
	uploads := staging(t, kbmcp.UploadOptions{MaxOpen: 2, MaxAll: 3})
	o := kbmcp.Options{Base: b, Uploads: uploads, UploadPath: "/upload"}
	annCaller, bobCaller, eveCaller := caller("ann", "a", "a"), caller("bob", "a", "a"), caller("eve", "", "a")
	ann, bob, eve := connectAs(t, annCaller, o), connectAs(t, bobCaller, o), connectAs(t, eveCaller, o)
	begin := args{"filename": "a.txt", "total_size": 3, "collection": "a"}
	type upload struct {
		UploadID string `json:"upload_id"`
	}
	id := tool[upload](t, ann, "kb_upload_start", begin).UploadID
	put := func(c *access.Caller, id string) (int, string) {
		r := httptest.NewRequest("PUT", "/upload/"+id, strings.NewReader("abc"))
		w := httptest.NewRecorder()
		uploads.Route("/upload").Handler.ServeHTTP(w, r.WithContext(access.With(r.Context(), c)))
		return w.Code, w.Body.String()
	}
	nobodys := "01234567-89ab-4cde-8f01-23456789abcd"
	for name, f := range map[string]func(id string) string{
		"kb_upload_chunk": func(id string) string {
			_, e := bob.Tool("kb_upload_chunk", args{"upload_id": id, "data": base64Of("abc"), "chunk_index": 0})
			return fmt.Sprint(e)
		},
		"kb_upload_finish": func(id string) string {
			_, e := bob.Tool("kb_upload_finish", args{"upload_id": id})
			return fmt.Sprint(e)
		},
		"PUT":              func(id string) string { status, text := put(bobCaller, id); return fmt.Sprint(status, text) },
		"PUT without user": func(id string) string { status, text := put(nil, id); return fmt.Sprint(status, text) },
	} {
		got, want := f(id), strings.ReplaceAll(f(nobodys), nobodys, id)
		if got != want || !strings.Contains(got, "upload "+id+" does not exist") {
			t.Errorf("%s with the upload of another user: %s; with one that does not exist: %s", name, got, want)
		}
	}
	for c, want := range map[*mcptest.Session]int{ann: 1, bob: 0} {
		if s := tool[struct{ MCP struct{ Uploads int } }](t, c, "kb_status", nil); s.MCP.Uploads != want {
			t.Errorf("kb_status has %d uploads, want %d", s.MCP.Uploads, want)
		}
	}

	// The limits are those of each user, and of all.
	tool[upload](t, ann, "kb_upload_start", begin)
	if _, e := ann.Tool("kb_upload_start", begin); e == nil || !strings.Contains(e.Message, "2 uploads are not finished") {
		t.Errorf("the third upload of a user: %v", e)
	}
	tool[upload](t, bob, "kb_upload_start", begin)
	if _, e := eve.Tool("kb_upload_start", begin); e == nil || e.Field("retryable") != "true" ||
		!strings.Contains(e.Message, "no room for another upload") {
		t.Errorf("the fourth upload: %v", e)
	}

	// The right to write was taken away since the upload was started.
	for c, want := range map[*access.Caller]int{caller("ann", "a", ""): 403, caller("ann", "", ""): 404} {
		if status, text := put(c, id); status != want {
			t.Errorf("PUT with the rights %v: %d %s, want %d", c.Rights, status, text, want)
		}
	}
	if status, text := put(annCaller, id); status != 200 {
		t.Errorf("PUT of its user: %d %s", status, text)
	}
	job := tool[started](t, ann, "kb_upload_finish", args{"upload_id": id}).JobID
	kbtest.Stored(t, b, job)
	for c, want := range map[*mcptest.Session]int{ann: 1, bob: 0, eve: 0} {
		if l := tool[struct{ Jobs []json.RawMessage }](t, c, "kb_jobs", nil); len(l.Jobs) != want {
			t.Errorf("kb_jobs = %s, want %d jobs", l.Jobs, want)
		}
	}
}

// A started is the result of a tool that starts a job.
type started struct {
	JobID int64 `json:"job_id"`
}
