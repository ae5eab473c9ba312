package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"

	"github.com/google/go-cmp/cmp"
)

// asked is a client of one revision: how it calls a method.
type asked func(t *testing.T, method string, params map[string]any) mcptest.Message

// revisions runs a test as a client of each revision, over each transport that
// serves it.
func revisions(t *testing.T, test func(t *testing.T, revision string, call asked)) {
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			transports(t, mcpserver.Options{}, func(t *testing.T, _ *kit, s *mcptest.Session) {
				s.Initialize(revision)
				test(t, revision, func(_ *testing.T, method string, params map[string]any) mcptest.Message {
					return s.Call(method, params)
				})
			})
		})
	}
	t.Run("2026-07-28", func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		s, site := k.stdio(t), k.http(t, mcpserver.HTTPOptions{})
		for transport, call := range map[string]asked{
			"stdio": func(_ *testing.T, method string, params map[string]any) mcptest.Message {
				return s.Call(method, modern(maps.Clone(params)))
			},
			"http": func(t *testing.T, method string, params map[string]any) mcptest.Message {
				name, _ := params["name"].(string)
				if uri, ok := params["uri"].(string); ok {
					name = uri
				}
				_, _, body := site.request(t, http.MethodPost, request(t, method, modern(maps.Clone(params))),
					modernHeader(method, name))
				m := mcptest.Message{Raw: lastEvent(body)}
				if err := json.Unmarshal([]byte(m.Raw), &m); err != nil {
					t.Fatalf("%s = %s: %v", method, body, err)
				}
				return m
			},
		} {
			t.Run(transport, func(t *testing.T) { test(t, "2026-07-28", call) })
		}
	})
}

// A result says everything once: there is no structuredContent and no outputSchema.
func TestResultsAreText(t *testing.T) {
	revisions(t, func(t *testing.T, _ string, call asked) {
		if m := call(t, "tools/list", map[string]any{}); m.Error != nil || strings.Contains(m.Raw, "outputSchema") {
			t.Errorf("tools/list = %s, want no outputSchema", m.Raw)
		}
		for name, want := range map[string]string{"echo": `{"name":""}`, "meta": `{"html":"<b>&amp;</b>"}`,
			"list":     `[1,2]`,
			"progress": `"done"`} {
			var r struct {
				Content           []struct{ Type, Text string }
				StructuredContent json.RawMessage
			}
			m := call(t, "tools/call", map[string]any{"name": name})
			if m.Decode(t, &r); len(r.Content) != 1 || r.Content[0].Type != "text" || r.Content[0].Text != want ||
				r.StructuredContent != nil {
				t.Errorf("%s = %s, want the text %s alone", name, m.Raw, want)
			}
		}
	})
}

// From 2025-11-25 on every failure of a tool is a result, which contains the error
// object of earlier revisions. What is wrong with the request itself is an error in
// all revisions.
func TestFailuresByRevision(t *testing.T) {
	arguments := map[string]map[string]any{
		"missing argument": {"name": "search"},
		"unknown argument": {"name": "search", "arguments": map[string]any{"q": "x"}},
		"wrong type":       {"name": "search", "arguments": map[string]any{"query": 5}},
		"no object":        {"name": "search", "arguments": []int{1}},
		"panic":            {"name": "panic"},
	}
	for name := range failures {
		arguments["fail "+name] = map[string]any{"name": "fail", "arguments": map[string]any{"name": name}}
	}
	objects := map[string]string{} // by case, what 2024-11-05 answers over stdio
	revisions(t, func(t *testing.T, revision string, call asked) {
		for _, name := range slices.Sorted(maps.Keys(arguments)) {
			m := call(t, "tools/call", arguments[name])
			object := errorObject(t, revision, m)
			if objects[name] == "" {
				objects[name] = object
			}
			if d := cmp.Diff(objects[name], object); d != "" {
				t.Errorf("%s in %s (-2024-11-05 +here):\n%s", name, revision, d)
			}
		}
		if m := call(t, "tools/call", map[string]any{"name": "serch"}); m.Error == nil || m.Error.Code != -32602 ||
			m.Error.Field("code") != "UNKNOWN_TOOL" {
			t.Errorf("an unknown tool in %s = %s, want the error -32602", revision, m.Raw)
		}
		if m := call(t, "tools/call", map[string]any{"name": 5}); m.Error == nil || m.Error.Code != -32602 &&
			m.Error.Code != -32020 {
			t.Errorf("a malformed request in %s = %s, want an error", revision, m.Raw)
		}
		code := int64(-32002)
		if revision == "2026-07-28" {
			code = -32602
		}
		if m := call(t, "resources/read", map[string]any{"uri": "fess://nope"}); m.Error == nil ||
			m.Error.Code != code {
			t.Errorf("an unknown resource in %s = %s, want the error %d", revision, m.Raw, code)
		}
	})
}

// errorObject returns the error of a tools/call as a revision has it, as
// {code,message,data}.
func errorObject(t *testing.T, revision string, m mcptest.Message) string {
	t.Helper()
	if revision < "2025-11-25" {
		if m.Error == nil {
			t.Fatalf("answer = %s, want an error", m.Raw)
		}
		return fmt.Sprintf(`{"code":%d,"message":%s,"data":%s}`, m.Error.Code, quote(t, m.Error.Message), m.Error.Data)
	}
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
		Meta    struct {
			Error struct {
				Code    int64
				Message string
				Data    json.RawMessage
			}
		} `json:"_meta"`
	}
	m.Decode(t, &r)
	e := r.Meta.Error
	if !r.IsError || len(r.Content) != 1 || r.Content[0].Type != "text" || r.Content[0].Text != e.Message {
		t.Errorf("answer = %s, want isError and the message as its text", m.Raw)
	}
	return fmt.Sprintf(`{"code":%d,"message":%s,"data":%s}`, e.Code, quote(t, e.Message), e.Data)
}

func quote(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A full server and one that ends are failures of the call, too.
func TestBusyByRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{MaxInFlight: 1})
		s := k.http(t, mcpserver.HTTPOptions{}).session(t)
		s.Initialize("2025-11-25")
		held := s.Start("tools/call", hold("x"))
		<-k.started
		m := s.Call("tools/call", map[string]any{"name": "echo"})
		if got, want := errorObject(t, "2025-11-25",
			m), `{"code":-31429,"message":"the server is busy with other requests, try again in a second","data":`+
			`{"code":"BUSY","maxInFlightRequests":1,"retryAfterMs":1000,"retryable":true}}`; got != want {
			t.Errorf("error of a busy server = %s, want %s", got, want)
		}
		wantError(t, s.Call("resources/list", nil), -31429, "code", "BUSY")
		close(k.release)
		if _, err := s.ToolText(s.Wait(held)); err != nil {
			t.Error(err)
		}
	})
}
