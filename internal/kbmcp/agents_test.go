package kbmcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/kbserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An agent is a client of the MCP SDK.
type agent struct {
	*testing.T
	*mcp.ClientSession
}

// call calls a tool that must succeed.
func call[T any](a agent, tool string, in args) T {
	a.Helper()
	res, err := a.CallTool(a.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		a.Fatal(err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	var v T
	if res.IsError {
		a.Fatalf("%s: %s", tool, text)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		a.Fatal(err)
	}
	return v
}

type withToken struct{ token string }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return http.DefaultTransport.RoundTrip(r)
}

// connectAgent connects a client of the MCP SDK with a key.
func connectAgent(t *testing.T, url, key string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	return client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url,
		HTTPClient: &http.Client{Transport: withToken{key}}}, nil)
}

// serveEngine serves a base over a fresh index as an engine, and returns its
// URL.
func serveEngine(t *testing.T) string {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	base := kb.NewLocal(kb.Options{Index: x, Dir: dir, Version: "test"})
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { base.Run(ctx) })
	web := httptest.NewServer(httpguard.New(httpguard.Options{Token: "secret", Routes: []httpguard.Route{
		kbserver.Route(kbserver.Options{Base: base, TempDir: kb.Incoming(dir)})}}))
	t.Cleanup(func() {
		web.Close()
		cancel()
		work.Wait()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return web.URL
}

// waitForJob waits until a job is done and returns its document.
func waitForJob(a agent, id int64) int64 {
	a.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, j := range call[struct{ Jobs []kb.Job }](a, "kb_jobs", args{"limit": 1000}).Jobs {
			switch {
			case j.ID != id:
			case j.Status == kb.Done:
				return *j.DocumentID
			case j.Status == kb.Failed:
				a.Fatalf("job %d: %s", id, j.Error)
			}
		}
	}
	a.Fatalf("job %d does not end", id)
	return 0
}

type found struct {
	Results []struct {
		DocumentID int64 `json:"document_id"`
		Text       string
		Collection string
		Tags       []string
		SourcePath string `json:"source_path"`
	}
}

type job struct {
	JobID int64 `json:"job_id"`
}

// Two agents share a real engine through one MCP server: one writes a note and
// uploads a file, and the other finds, corrects and moves them.
func TestTwoAgents(t *testing.T) {
	uploads := staging(t, kbmcp.UploadOptions{})
	server := newServer(t, kbmcp.Options{Base: engineClient(t, serveEngine(t)), Uploads: uploads,
		UploadPath: "/upload"})
	web := httptest.NewServer(httpguard.New(httpguard.Options{Token: "key", Refuse: mcpserver.Refuse,
		Routes: []httpguard.Route{
			server.HTTP(mcpserver.HTTPOptions{}).Route("/mcp"), uploads.Route("/upload")}}))
	defer web.Close()
	if _, err := connectAgent(t, web.URL+"/mcp", "wrong"); err == nil {
		t.Error("an agent with a wrong key connects")
	}
	open := func() agent {
		session, err := connectAgent(t, web.URL+"/mcp", "key")
		if err != nil {
			t.Fatal(err)
		}
		return agent{t, session}
	}
	writer, reader := open(), open()
	defer writer.Close()
	defer reader.Close()

	id := waitForJob(writer, call[job](writer, "kb_addnote", args{"text": "User prefers concise responses.",
		"collection": "memory", "tags": []string{"feedback"}}).JobID)
	r := call[found](reader, "kb_search", args{"query": "How does the user like responses?", "collection": "memory"})
	if len(r.Results) != 1 || r.Results[0].DocumentID != id || r.Results[0].Collection != "memory" ||
		strings.Join(r.Results[0].Tags, " ") != "feedback" {
		t.Fatalf("the other agent finds %+v", r)
	}
	if r := call[found](reader, "kb_search", args{"query": "concise responses",
		"collection": "documents"}); len(r.Results) != 0 {
		t.Errorf("found in another collection: %+v", r)
	}
	call[any](reader, "kb_update_note", args{"document_id": id, "text": "User prefers bullet points.",
		"collection": "archive", "tags": []string{"style"}})
	r = call[found](writer, "kb_search", args{"query": "bullet points", "tags": []string{"style"}})
	if len(r.Results) != 1 || r.Results[0].Collection != "archive" || strings.Join(r.Results[0].Tags, " ") != "style" {
		t.Errorf("after the update: %+v", r)
	}

	up := call[struct {
		UploadID string `json:"upload_id"`
	}](writer, "kb_upload_start", args{"filename": "pension.md", "total_size": 43, "collection": "memory"})
	call[any](writer, "kb_upload_chunk", args{"upload_id": up.UploadID, "data": base64Of("revaluation of pensions"),
		"chunk_index": 1})
	call[any](writer, "kb_upload_chunk", args{"upload_id": up.UploadID, "data": base64Of("# Pensions\n\nA text: "),
		"chunk_index": 0})
	file := waitForJob(writer, call[job](writer, "kb_upload_finish", args{"upload_id": up.UploadID}).JobID)
	r = call[found](reader, "kb_search", args{"query": "revaluation"})
	if len(r.Results) != 1 || r.Results[0].DocumentID != file || r.Results[0].SourcePath != "pension.md" ||
		r.Results[0].Collection != "memory" {
		t.Errorf("the file: %+v", r)
	}
	res, err := reader.CallTool(t.Context(), &mcp.CallToolParams{Name: "kb_update_note",
		Arguments: args{"document_id": file, "text": "x"}})
	want := fmt.Sprintf(
		`text and title can be changed of notes only: document %d is not a note (its type is "markdown"); add the file again to replace it`, file)
	if err != nil || !res.IsError || res.Content[0].(*mcp.TextContent).Text != want {
		t.Errorf("new text of a file: %+v, %v, want %s", res.Content[0], err, want)
	}
}

// Eight agents add notes at the same time, and each finds all of them.
func TestManyAgents(t *testing.T) {
	base := engineClient(t, serveEngine(t))
	web := httptest.NewServer(newServer(t, kbmcp.Options{Base: base}).HTTP(mcpserver.HTTPOptions{}))
	defer web.Close()
	const agents, notes = 8, 3
	var all sync.WaitGroup
	for range agents {
		all.Go(func() {
			session, err := connectAgent(t, web.URL, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer session.Close()
			for range notes {
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "kb_addnote",
					Arguments: args{"text": "shared knowledge", "collection": "memory"}})
				if err != nil || res.IsError {
					t.Errorf("kb_addnote: %+v, %v", res, err)
				}
			}
		})
	}
	all.Wait()
	session, err := connectAgent(t, web.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	a := agent{t, session}
	for id := range int64(agents * notes) {
		waitForJob(a, id+1)
	}
	if r := call[found](a, "kb_search", args{"query": "shared",
		"top": 100, "collection": "memory"}); len(r.Results) != agents*notes {
		t.Errorf("%d notes, want %d", len(r.Results), agents*notes)
	}
}

// An upload that is not finished in time is unknown to its agent.
func TestAbandonedUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, "2025-06-18", kbmcp.Options{Base: bigBase{}, Uploads: staging(t,
			kbmcp.UploadOptions{TTL: time.Minute})})
		id := tool[struct {
			UploadID string `json:"upload_id"`
		}](t, c, "kb_upload_start", args{"filename": "a", "total_size": 3}).UploadID
		time.Sleep(61 * time.Second)
		for name, a := range map[string]args{
			"kb_upload_chunk":  {"upload_id": id, "data": "", "chunk_index": 0},
			"kb_upload_finish": {"upload_id": id},
		} {
			if _, e := c.Tool(name, a); e == nil || e.Code != -32002 ||
				!strings.Contains(e.Message, "1m after its start") {
				t.Errorf("%s: %v", name, e)
			}
		}
	})
}
