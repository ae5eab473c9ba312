package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

func TestArgumentsAccepted(t *testing.T) {
	s := newKit(mcpserver.Options{}).stdio(t)
	s.Initialize("2025-03-26")
	const rest = `,"exact":false,"sort":"","fields":null,"boost":0,"facets":{"field":null,"size":0}}`
	for _, tc := range []struct{ args, want string }{
		{`{"query":"x"}`, `{"query":"x","pageSize":20` + rest},
		{`{"query":"x","pageSize":5.0}`, `{"query":"x","pageSize":5` + rest},
		{`{"query":"x","pageSize":1e2}`, `{"query":"x","pageSize":100` + rest},
		{`{"query":"ünïcödé — 12345678"}`, `{"query":"ünïcödé — 12345678","pageSize":20` + rest},
		{`{"query":"<a> & b","facets":{"field":"author"}}`,
			`{"query":"<a> & b","pageSize":20,"exact":false,"sort":"","fields":null,"boost":0,"facets":{"field":["author"],"size":10}}`},
		{`{"query":"x","exact":true,"sort":"date","fields":["a","b"],"boost":-1.5,"facets":{"field":["a"],"size":1000}}`,
			`{"query":"x","pageSize":20,"exact":true,"sort":"date","fields":["a","b"],"boost":-1.5,"facets":{"field":["a"],"size":1000}}`},
		{`{"query":"x","facets":{}}`,
			`{"query":"x","pageSize":20,"exact":false,"sort":"","fields":null,"boost":0,"facets":{"field":null,"size":10}}`},
	} {
		s.Send(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"search","arguments":` + tc.args +
			`}}`)
		if text, err := s.ToolText(s.Next()); err != nil || text != tc.want {
			t.Errorf("search(%s) = %s, %v, want %s", tc.args, text, err, tc.want)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	cases := []struct{ args, argument, want string }{
		{`{}`, "query", `argument "query" is missing: want a string of 1 to 20 characters`},
		{`null`, "query", `argument "query" is missing: want a string of 1 to 20 characters`},
		{`{"query":""}`, "query", `argument "query": got "", want a string of 1 to 20 characters`},
		{`{"query":5}`, "query", `argument "query": got 5, want a string of 1 to 20 characters`},
		{`{"query":null}`, "query", `argument "query": got null, want a string of 1 to 20 characters`},
		{`{"query":"123456789012345678901"}`, "query",
			`argument "query": got "123456789012345678901", want a string of 1 to 20 characters`},
		{`{"query":"x","pageSize":150}`, "pageSize", `argument "pageSize": got 150, want an integer from 1 to 100`},
		{`{"query":"x","pageSize":0}`, "pageSize", `argument "pageSize": got 0, want an integer from 1 to 100`},
		{`{"query":"x","pageSize":"5"}`, "pageSize", `argument "pageSize": got "5", want an integer from 1 to 100`},
		{`{"query":"x","pageSize":2.5}`, "pageSize", `argument "pageSize": got 2.5, want an integer from 1 to 100`},
		{`{"query":"x","pageSize":true}`, "pageSize", `argument "pageSize": got true, want an integer from 1 to 100`},
		{`{"query":"x","pageSize":1e400}`, "pageSize", `argument "pageSize": got 1e400, want an integer from 1 to 100`},
		{`{"query":"x","pagesize":5}`, "pagesize", `there is no argument "pagesize", did you mean "pageSize"?`},
		{`{"query":"x","page_size":5}`, "page_size", `there is no argument "page_size", did you mean "pageSize"?`},
		{`{"q":"x"}`, "q", `there is no argument "q", there are query, pageSize, exact, sort, fields, boost, facets`},
		{`{"query":"x","exact":"true"}`, "exact", `argument "exact": got "true", want true or false`},
		{`{"query":"x","sort":"title"}`, "sort", `argument "sort": got "title", want one of "score" or "date"`},
		{`{"query":"x","fields":"title"}`, "fields", `argument "fields": got "title", want a list of at most 3 items`},
		{`{"query":"x","fields":["a","b","c","d"]}`, "fields",
			`argument "fields": got ["a","b","c","d"], want a list of at most 3 items`},
		{`{"query":"x","fields":["a",1]}`, "fields[1]", `argument "fields[1]": got 1, want a string`},
		{`{"query":"x","boost":11}`, "boost", `argument "boost": got 11, want a number of at most 10`},
		{`{"query":"x","facets":{"size":0}}`, "facets.size",
			`argument "facets.size": got 0, want an integer from 1 to 1000`},
		{`{"query":"x","facets":{"sizes":1}}`, "facets.sizes",
			`there is no argument "facets.sizes", did you mean "facets.size"?`},
		{`{"query":"x","facets":[]}`, "facets", `argument "facets": got [], want an object`},
		{`{"query":"x","facets":{"field":5}}`, "facets.field", `argument "facets.field": got 5, want a list`},
		{`[]`, "", `the arguments of a tool must be an object`},
		{`"x"`, "", `the arguments of a tool must be an object`},
	}
	transports(t, mcpserver.Options{}, func(t *testing.T, _ *kit, s *mcptest.Session) {
		s.Initialize("2025-03-26")
		for _, tc := range cases {
			s.Send(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"search","arguments":` + tc.args +
				`}}`)
			m := s.Next()
			wantError(t, m, -32602, "code", "INVALID_ARGUMENT")
			if m.Error == nil {
				continue
			}
			if m.Error.Message != tc.want || m.Error.Field("argument") != tc.argument ||
				m.Error.Field("retryable") != "false" {
				t.Errorf("search(%s) = %v, want %q about %q", tc.args, m.Error, tc.want, tc.argument)
			}
		}
	})
}

// What is repeated from outside is bounded.
func TestArgumentsBounded(t *testing.T) {
	s := newKit(mcpserver.Options{}).stdio(t)
	s.Initialize("2025-03-26")
	long := strings.Repeat("ä", 100_000)
	for _, args := range []map[string]any{{"query": long}, {long: 1}, {"query": map[string]any{"a": long}}} {
		_, err := s.Tool("search", args)
		if err == nil || len(err.Message)+len(err.Data) > 3000 {
			t.Errorf("an argument of 100,000 characters is answered with %d bytes, want an error of at most 3000",
				len(fmt.Sprint(err)))
		}
	}
	if _, err := s.Tool(long, nil); err == nil || len(err.Message) > 500 {
		t.Errorf("a tool of 100,000 characters = %v", err)
	}
}

func TestUnknownTool(t *testing.T) {
	transports(t, mcpserver.Options{}, func(t *testing.T, _ *kit, s *mcptest.Session) {
		s.Initialize("2025-03-26")
		for _, tc := range []struct{ name, want, suggestions string }{
			{"Search", `unknown tool "Search", did you mean "search"?`, `["search"]`},
			{"searhc", `unknown tool "searhc", did you mean "search"?`, `["search"]`},
			{"fess_finance_search", `unknown tool "fess_finance_search", did you mean "search"?`, `["search"]`},
			{"xyzzy_nothing_like_it", `unknown tool "xyzzy_nothing_like_it", see tools/list for the known tools`, ""},
		} {
			_, err := s.Tool(tc.name, nil)
			if err == nil || err.Code != -32602 || err.Message != tc.want || err.Field("code") != "UNKNOWN_TOOL" ||
				err.Field("suggestions") != tc.suggestions {
				t.Errorf("%s = %v, want -32602 %s with suggestions %s", tc.name, err, tc.want, tc.suggestions)
			}
		}
		for _, params := range []any{nil, map[string]any{}, map[string]any{"arguments": map[string]any{}}} {
			wantError(t, s.Call("tools/call", params), -32602, "code", "UNKNOWN_TOOL")
		}
		for _, params := range []string{`[1]`, `"x"`, `{"name":5}`} {
			s.Send(`{"jsonrpc":"2.0","id":"p","method":"tools/call","params":` + params + `}`)
			m := s.Next()
			wantError(t, m, -32602, "code", "INVALID_ARGUMENT")
			if strings.Contains(m.Raw, "mcp.") {
				t.Errorf("tools/call with params %s = %s, which shows Go types", params, m.Raw)
			}
		}
	})
}

// What no capability declares is unknown in every revision, with params and
// without.
func TestUndeclaredCapabilities(t *testing.T) {
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		transports(t, mcpserver.Options{}, func(t *testing.T, _ *kit, s *mcptest.Session) {
			s.Initialize(revision)
			for method, params := range map[string]map[string]any{
				"prompts/list": {},
				"prompts/get":  {"name": "x"},
				"completion/complete": {"ref": map[string]any{"type": "ref/prompt", "name": "x"},
					"argument": map[string]any{"name": "x", "value": ""}},
				"logging/setLevel":      {"level": "info"},
				"resources/subscribe":   {"uri": "x:y"},
				"resources/unsubscribe": {"uri": "x:y"},
			} {
				for _, m := range []mcptest.Message{s.Call(method, params), s.Call(method, nil)} {
					if m.Error == nil || m.Error.Code != -32601 {
						t.Errorf("%s in %s = %s, want the error -32601", method, revision, m.Raw)
					}
				}
			}
		})
	}
}

func TestUnknownMethod(t *testing.T) {
	for _, revision := range []mcpserver.Revision{mcpserver.Pinned, mcpserver.Latest} {
		transports(t, mcpserver.Options{Revision: revision}, func(t *testing.T, _ *kit, s *mcptest.Session) {
			s.Initialize("2025-03-26")
			for _, method := range []string{"nope/x", "", "server/discover", "resources/subscribe",
				"completion/complete"} {
				if m := s.Call(method, map[string]any{"uri": "a",
					"ref":      map[string]any{"type": "ref/prompt", "name": "x"},
					"argument": map[string]any{"name": "x", "value": ""}}); m.Error == nil || m.Error.Code != -32601 {
					t.Errorf("%q = %s, want the error -32601", method, m.Raw)
				}
			}
			s.Notify("notifications/nope", nil)
			if _, err := s.Tool("echo", nil); err != nil {
				t.Errorf("after an unknown notification = %v", err)
			}
		})
	}
}
