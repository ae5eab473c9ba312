package invoke_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/invoke"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
)

func TestReads(t *testing.T) {
	const (
		echoTools = `{"server_id":"echo","name":"add","description":"Adds <b>","inputSchema":{"type":"object",` +
			`"properties":{"b":{},"a":{}}}},` +
			`{"server_id":"echo","name":"run","description":"","inputSchema":{"type":"object"},` +
			`"taskSupport":"required"}`
	)
	for _, tc := range []struct{ path, want string }{
		{"/", `{"status":"ok","name":"knowhow","version":"1.2","servers":{"enabled":3,"disabled":1}}`},
		{"/servers",
			`[{"id":"dead","transport":"stdio","disabled":false,"state":"failed","error":"it did not start"},` +
				`{"id":"echo","transport":"http","disabled":false,"state":"ready","tools":2},` +
				`{"id":"off","transport":"stdio","disabled":true,"state":"idle"},` +
				`{"id":"picky","transport":"sse","disabled":false,"state":"idle"}]`},
		{"/tools", `{"tools":[` + echoTools + `],"errors":[` +
			`{"server_id":"dead","error":"server unavailable","detail":"starting the server: exit status 1; it ` +
			`wrote: \"no such file\""},` +
			`{"server_id":"picky","error":"server answered with an error","detail":"JSON-RPC error -32602: no ` +
			`<b>tool; data: {\"z\":1,\"a\":[2]}"}]}`},
		{"/tools?server=echo", `{"tools":[` + echoTools + `],"errors":[]}`},
	} {
		w := serve(invoke.Options{Version: "1.2"}, newRequest("GET", tc.path, ""))
		if got := w.Body.String(); w.Code != 200 || got != tc.want+"\n" {
			t.Errorf("GET %s answered %d %s, want 200 %s", tc.path, w.Code, got, tc.want)
		}
		wantHeaders(t, tc.path, w)

		head := serve(invoke.Options{Version: "1.2"}, newRequest("HEAD", tc.path, ""))
		if head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Content-Length") != w.Header().Get(
			"Content-Length") {
			t.Errorf("HEAD %s answered %d %v with %d bytes, want 200, the header of GET and no body", tc.path,
				head.Code, head.Header(), head.Body.Len())
		}
	}
}

func TestToolsOfOneServer(t *testing.T) {
	for _, tc := range []struct {
		query  string
		status int
		text   string
		detail string
	}{
		{"server=off", 403, "server is disabled", "off"},
		{"server=ecko", 404, "unknown server", "echo"},
		{"server=dead", 502, "server unavailable", "exit status 1"},
		{"server=slow", 504, "server timed out", "30s"},
		{"server=picky", 500, "server answered with an error", "-32602"},
		{"server=", 400, "invalid request", "?server=ID"},
		{"server=echo&server=off", 400, "invalid request", "once"},
		{"srever=echo", 400, "invalid request", `"srever"`},
		{"server=%zz", 400, "invalid request", "malformed"},
	} {
		w := serve(invoke.Options{}, newRequest("GET", "/tools?"+tc.query, ""))
		wantError(t, tc.query, w, tc.status, tc.text, tc.detail)
	}
}

// Servers are asked side by side: each waits here until all have been asked.
func TestToolsInParallel(t *testing.T) {
	const n = 8
	far := &meeting{n: n}
	far.all.Add(n)
	w := httptest.NewRecorder()
	invoke.New(invoke.Options{Servers: far}).ServeHTTP(w, newRequest("GET", "/tools", ""))
	var got struct {
		Tools []struct {
			ServerID string `json:"server_id"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Tools) != n {
		t.Fatalf("GET /tools answered %s (%v), want %d tools", w.Body, err, n)
	}
	for i, tool := range got.Tools {
		if want := fmt.Sprintf("s%d", i); tool.ServerID != want {
			t.Errorf("tool %d is of server %s, want %s", i, tool.ServerID, want)
		}
	}
}

// A meeting is n servers that answer when all have been asked.
type meeting struct {
	farSide
	n   int
	all sync.WaitGroup
}

func (m *meeting) Status() (list []mcpclient.Status) {
	for i := range m.n {
		list = append(list, mcpclient.Status{ID: fmt.Sprintf("s%d", i)})
	}
	return list
}

func (m *meeting) Catalog(_ context.Context, server string) (*mcpclient.Catalog, error) {
	m.all.Done()
	m.all.Wait()
	return &mcpclient.Catalog{Server: server, Tools: []mcpclient.Tool{{Name: "t"}}}, nil
}
