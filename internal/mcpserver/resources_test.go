package mcpserver_test

import (
	"encoding/json"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"

	"github.com/google/go-cmp/cmp"
)

func TestListResources(t *testing.T) {
	transports(t, mcpserver.Options{}, func(t *testing.T, _ *kit, s *mcptest.Session) {
		s.Initialize("2025-03-26")
		type page struct {
			Resources  []map[string]any
			NextCursor *string
			Meta       map[string]any `json:"_meta"`
			TTLMs      *int           `json:"ttlMs"`
		}
		var sizes []int
		var params any
		for {
			var p page
			s.Call("resources/list", params).Decode(t, &p)
			sizes = append(sizes, len(p.Resources))
			if len(sizes) == 1 {
				want := map[string]any{"uri": "fess://finance/doc/d0", "name": "d0", "mimeType": "application/json",
					"_meta": map[string]any{"doc_id": 0.0}}
				if d := cmp.Diff(want, p.Resources[0]); d != "" {
					t.Errorf("first resource (-want +got):\n%s", d)
				}
			}
			if p.TTLMs != nil {
				t.Error("resources/list says ttlMs, which 2025-03-26 does not have")
			}
			if p.NextCursor == nil {
				if p.Meta["total"] != 250.0 {
					t.Errorf("_meta of the last page = %v", p.Meta)
				}
				break
			}
			params = map[string]any{"cursor": *p.NextCursor}
		}
		if d := cmp.Diff([]int{100, 100, 50}, sizes); d != "" {
			t.Errorf("page sizes (-want +got):\n%s", d)
		}
		wantError(t, s.Call("resources/list", map[string]any{"cursor": "!!"}), -32602, "argument", "cursor")
		wantError(t, s.Call("resources/list", map[string]any{"cursor": 5}), -32602, "code", "INVALID_ARGUMENT")
		m := s.Call("resources/templates/list", nil)
		if got, want := string(m.Result),
			`{"resourceTemplates":[{"uriTemplate":"fess://finance/doc/{docId}","name":"document","mimeType":"application/json"}]}`; got != want {
			t.Errorf("templates = %s, want %s", got, want)
		}
	})
}

func TestReadResource(t *testing.T) {
	const uri = "fess://finance/doc/d1/content"
	part := func(asked, text, next string) string {
		if next == "" {
			return `{"_meta":{"isLast":true,"took":1},"contents":[{"uri":"` + asked +
				`","mimeType":"text/plain","text":"` +
				text + `","_meta":{"hash":"sha256:00"}}],"isLast":true}`
		}
		return `{"_meta":{"isLast":false,"nextCursor":"` + next + `","took":1},"contents":[{"uri":"` + asked +
			`","mimeType":"text/plain","text":"` + text + `","_meta":{"hash":"sha256:00"}}],"nextCursor":"` + next +
			`","isLast":false}`
	}
	transports(t, mcpserver.Options{}, func(t *testing.T, _ *kit, s *mcptest.Session) {
		s.Initialize("2025-03-26")
		for _, tc := range []struct{ params, want string }{
			{`{"uri":"` + uri + `"}`, part(uri, "first <", "1")},
			{`{"uri":"` + uri + `","cursor":""}`, part(uri, "first <", "1")},
			{`{"uri":"` + uri + `","cursor":"1"}`, part(uri, "second", "2")},
			{`{"uri":"` + uri + `","cursor":"2"}`, part(uri, "third", "")},
			{`{"uri":"` + uri + `","_meta":{"cursor":"2"}}`, part(uri, "third", "")},
			{`{"uri":"` + uri + `","_meta":{"cursor":1}}`, part(uri, "second", "2")},
			{`{"uri":"` + uri + `","cursor":"2","_meta":{"cursor":"1","progressToken":5}}`, part(uri, "third", "")},
			{`{"uri":"` + uri + `?cursor=2"}`, part(uri+"?cursor=2", "third", "")},
			{`{"uri":"` + uri + `?lang=en&cursor=1"}`, part(uri+"?lang=en&cursor=1", "second", "2")},
			{`{"uri":"fess://finance/doc/empty"}`,
				`{"_meta":{"isLast":true},"contents":[{"uri":"fess://finance/doc/empty","text":""}],"isLast":true}`},
		} {
			s.Send(`{"jsonrpc":"2.0","id":"r","method":"resources/read","params":` + tc.params + `}`)
			var got, want any
			m := s.Next()
			m.Decode(t, &got)
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("resources/read %s (-want +got):\n%s", tc.params, d)
			}
		}
		wantError(t, s.Call("resources/read", map[string]any{"uri": "fess://nope"}), -32002, "code", "NOT_FOUND")
		wantError(t, s.Call("resources/read", map[string]any{"uri": "fess://nope"}), -32002, "uri", "fess://nope")
		wantError(t, s.Call("resources/read", map[string]any{"uri": uri, "cursor": "9"}), -32602, "argument", "cursor")
		wantError(t, s.Call("resources/read", map[string]any{"uri": uri, "cursor": map[string]any{}}), -32602,
			"argument", "cursor")
		wantError(t, s.Call("resources/read", nil), -32602, "argument", "uri")
	})
}

// A server without resources does not say that it has some.
func TestWithoutResources(t *testing.T) {
	s := mcptest.Stdio(t, mcpserver.New(mcpserver.Options{Name: "x", Version: "1"}).ServeStdio)
	m := s.Initialize("2025-03-26")
	if got, want := field(t, m.Result, "capabilities"), `{"tools":{}}`; got != want {
		t.Errorf("capabilities = %s, want %s", got, want)
	}
	if got, want := field(t, m.Result, "serverInfo"), `{"name":"x","version":"1"}`; got != want {
		t.Errorf("serverInfo = %s, want %s", got, want)
	}
	if m := s.Call("tools/list", nil); string(m.Result) != `{"tools":[]}` {
		t.Errorf("tools/list = %s", m.Raw)
	}
}

// Lists that come at once have no cursors, and say so (MCP 2025-03-26, pagination).
func TestListsWithoutCursors(t *testing.T) {
	for _, revision := range []string{"2025-03-26", "2025-11-25"} {
		s := newKit(mcpserver.Options{Revision: mcpserver.Latest}).http(t, mcpserver.HTTPOptions{}).session(t)
		s.Initialize(revision)
		for _, method := range []string{"tools/list", "resources/templates/list"} {
			wantError(t, s.Call(method, map[string]any{"cursor": "made-up"}), -32602, "argument", "cursor")
			if m := s.Call(method, map[string]any{"cursor": ""}); m.Error != nil {
				t.Errorf("%s with an empty cursor = %v, want the list", method, m.Error)
			}
		}
	}
}

// Clients of revisions with a handshake that do not check the capabilities see
// a server without resources as one that has none of those they ask for.
func TestServerWithoutResources(t *testing.T) {
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		server := mcpserver.New(mcpserver.Options{Name: "knowhow", Version: "1.2.3"})
		s := (&kit{server: server}).stdio(t)
		s.Initialize(revision)
		for method, want := range map[string]string{
			"resources/list":           `{"resources":[]}`,
			"resources/templates/list": `{"resourceTemplates":[]}`,
		} {
			if m := s.Call(method, nil); string(m.Result) != want {
				t.Errorf("%s in %s = %s, want the result %s", method, revision, m.Raw, want)
			}
		}
		wantError(t, s.Call("resources/read", map[string]any{"uri": "fess://nope"}), -32002, "code", "NOT_FOUND")
		wantError(t, s.Call("resources/read", nil), -32602, "argument", "uri")
	}
}
