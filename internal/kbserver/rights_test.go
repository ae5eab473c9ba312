package kbserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
	"github.com/knowhow-mcp/knowhow/internal/kbserver"
)

// TestRights checks the statuses of calls of users: what a user may not read does not
// exist, with the same answer as for what no user can find, and what a user may read
// but not change is forbidden.
func TestRights(t *testing.T) {
	s := serve(t, "")
	h := kbserver.New(kbserver.Options{Base: s.base, TempDir: s.dir})
	ids := map[string]int64{"missing": 4711}
	for _, collection := range []string{"own", "seen", "hidden"} {
		ids[collection] = kbtest.Note(t, s.base, "A note.", "collection:"+collection).ID
	}
	ann := &access.Caller{ID: "ann", Rights: access.Rights{Read: []string{"own", "seen"}, Write: []string{"own", "inbox"}}}
	bob := &access.Caller{ID: "bob", Rights: access.Rights{Read: []string{access.All}, Write: []string{access.All}}}
	send := func(u *access.Caller, method, path, media, body string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", media)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), u)))
		return w.Code, w.Body.String()
	}
	const asJSON = "application/json"
	for _, tt := range []struct {
		method, path, body string // with the document in place of ID
		seen               int    // status for a document that may be read only
	}{
		{"GET", "/api/v1/documents/ID", "", 200},
		{"PATCH", "/api/v1/notes/ID", `{"text":"changed"}`, 403},
		{"POST", "/api/v1/documents/ID/tags", `{"tags":["x"]}`, 403},
		{"POST", "/api/v1/documents/ID/tags", `{"tags":["collection:own"]}`, 403},
		{"DELETE", "/api/v1/documents/ID/tags/x", "", 403},
		{"DELETE", "/api/v1/documents/ID/tags/collection:seen", "", 403},
		{"DELETE", "/api/v1/documents/ID", "", 403},
	} {
		of := func(name string) (int, string) {
			id := fmt.Sprint(ids[name])
			status, body := send(ann, tt.method, strings.Replace(tt.path, "ID", id, 1), asJSON, tt.body)
			return status, strings.ReplaceAll(body, id, "ID")
		}
		status, body := of("seen")
		if status != tt.seen || status == 403 && !strings.Contains(body, `{"error":{"code":"denied","message":"you may read`) {
			t.Errorf("%s %s of a document that may be read: %d %s, want %d", tt.method, tt.path, status, body, tt.seen)
		}
		status, body = of("hidden")
		if noStatus, none := of("missing"); status != 404 || noStatus != 404 || body != none {
			t.Errorf("%s %s of a hidden document: %d %s, of none: %d %s", tt.method, tt.path, status, body, noStatus, none)
		}
	}
	file := func(collection string) (int, string) {
		media, form := form("@a.txt=A file.", "tags=collection:"+collection)
		body, err := io.ReadAll(form)
		if err != nil {
			t.Fatal(err)
		}
		return send(ann, "POST", "/api/v1/jobs", media, string(body))
	}
	for collection, want := range map[string]int{"own": 202, "inbox": 202, "seen": 403, "hidden": 404, "missing": 404} {
		note := fmt.Sprintf(`{"type":"note","text":"x","tags":["collection:%s"]}`, collection)
		if status, body := send(ann, "POST", "/api/v1/jobs", asJSON, note); status != want {
			t.Errorf("a note for %s: %d %s, want %d", collection, status, body, want)
		}
		if status, body := file(collection); status != want {
			t.Errorf("a file for %s: %d %s, want %d", collection, status, body, want)
		}
	}
	for _, tt := range []struct{ path, want string }{
		{"/api/v1/collections", `{"collections":["own","seen"]}`},
		{"/api/v1/documents?collection=hidden&added=true", `{"documents":[],"total":0}`},
	} {
		if status, body := send(ann, "GET", tt.path, "", ""); status != 200 || strings.TrimSpace(body) != tt.want {
			t.Errorf("GET %s: %d %s, want %s", tt.path, status, body, tt.want)
		}
	}
	// Jobs 1 to 3 are those of no user.
	for _, u := range []*access.Caller{ann, bob} {
		status, body := send(u, "GET", "/api/v1/jobs/2", "", "")
		if _, none := send(u, "GET", "/api/v1/jobs/4711", "", ""); status != http.StatusNotFound ||
			body != strings.Replace(none, "4711", "2", 1) {
			t.Errorf("the job of another user for %s: %d %s, one that does not exist: %s", u.ID, status, body, none)
		}
	}
	if _, body := send(bob, "GET", "/api/v1/jobs", "", ""); strings.TrimSpace(body) != `{"jobs":[]}` {
		t.Errorf("the jobs of bob are %s", body)
	}
	if _, body := send(ann, "GET", "/api/v1/jobs", "", ""); strings.Count(body, "job_id") != 4 {
		t.Errorf("the jobs of ann are %s, want 4", body)
	}
}
