package invoke_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/invoke"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"

	"github.com/google/go-cmp/cmp"
)

// What reaches a server, for every form of a request (FR-7.2).
func TestForwarding(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"format 1", `{"server_id":"echo","tool_name":"add","arguments":{"b": 1.50,"a":"é"}}`,
			`echo tools/call {"name":"add","arguments":{"b": 1.50,"a":"é"}}`},
		{"format 1 without arguments", `{"server_id":"echo","tool_name":"add"}`,
			`echo tools/call {"name":"add","arguments":{}}`},
		{"format 1, null", ` { "arguments" : null , "tool_name" : "a\"\u00e9" , "server_id" : "ech\u006f" } `,
			`echo tools/call {"name":"a\"\u00e9","arguments":{}}`},
		{"format 2",
			`{"server_id":"echo","method":"tools/call","params":{"name":"add","arguments":{},"task":{"ttl":600000}}}`,
			`echo tools/call {"name":"add","arguments":{},"task":{"ttl":600000}}`},
		{"format 2 without params", `{"server_id":"echo","method":"tools/list"}`, `echo tools/list {}`},
		{"format 2, null", `{"server_id":"echo","method":"x/y","params":null,"tool_name":null}`, `echo x/y {}`},
		{"tool_name wins",
			`{"server_id":"echo","method":"ping","params":{"x":1},"tool_name":"add","arguments":{"y":2}}`,
			`echo tools/call {"name":"add","arguments":{"y":2}}`},
		{"tasks/status", `{"server_id":"echo","method":"tasks/status","params":{"task_id":"t1","x":[{"task_id":2}]}}`,
			`echo tasks/get {"taskId":"t1","x":[{"task_id":2}]}`},
		{"tasks/status with taskId", `{"server_id":"echo","method":"tasks/status","params":{"taskId":"t1"}}`,
			`echo tasks/get {"taskId":"t1"}`},
		{"tasks/get", `{"server_id":"echo","method":"tasks/get","params":{ "x":1, "task\u005fid" : "t1" }}`,
			`echo tasks/get {"taskId":"t1","x":1}`},
		{"tasks/result", `{"server_id":"echo","method":"tasks/result","params":{"task_id":"t1"}}`,
			`echo tasks/result {"taskId":"t1"}`},
		{"tasks/cancel", `{"server_id":"echo","method":"tasks/cancel","params":{"task_id":"t1"}}`,
			`echo tasks/cancel {"taskId":"t1"}`},
		{"tasks/list", `{"server_id":"echo","method":"tasks/list","params":{"task_id":"t1"}}`,
			`echo tasks/list {"task_id":"t1"}`},
		{"duplicates within arguments", `{"server_id":"echo","tool_name":"t","arguments":{"a":1,"a":2}}`,
			`echo tools/call {"name":"t","arguments":{"a":1,"a":2}}`},
		{"deep arguments", `{"server_id":"echo","tool_name":"t","arguments":{"a":[[["}]{\"\\",true]],-1e9,null]}}`,
			`echo tools/call {"name":"t","arguments":{"a":[[["}]{\"\\",true]],-1e9,null]}}`},
	} {
		far := &farSide{}
		w := serve(invoke.Options{Servers: far}, newRequest("POST", "/invoke", tc.body))
		if diff := cmp.Diff([]string{tc.want}, far.calls); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", tc.name, diff)
		}
		// The result is the server's, byte for byte.
		want := `{"status":"success","result":{"b":1.50, "a":"<é>"}}` + "\n"
		if got := w.Body.String(); w.Code != 200 || got != want {
			t.Errorf("%s: answered %d %s, want 200 %s", tc.name, w.Code, got, want)
		}
		wantHeaders(t, tc.name, w)
	}
}

// TestIsError has tools that fail: the body says so beside the result, and what
// the tool may have meant to be where the server has none of that name.
func TestIsError(t *testing.T) {
	const add = `{"server_id":"echo","tool_name":"add"}`
	for _, tc := range []struct{ name, body, result, want string }{
		{"a failure", add, `{ "isError" : true,"content":[]}`,
			`"isError":true,"result":{ "isError" : true,"content":[]}`},
		{"no failure", add, `{"isError":false}`, `"result":{"isError":false}`},
		{"a failure within", add, `{"content":[{"isError":true}]}`, `"result":{"content":[{"isError":true}]}`},
		{"a word", add, `{"isError":"true"}`, `"result":{"isError":"true"}`},
		{"no object", add, `["isError",true]`, `"result":["isError",true]`},
		{"an unknown tool", `{"server_id":"echo","tool_name":"ad\u001b"}`, `{"isError":true}`,
			`"isError":true,"detail":"the server \"echo\" has no tool \"ad\\x1b\", did you mean \"add\"? (GET ` +
				`/tools?server=echo lists its tools)","result":{"isError":true}`},
		{"an unknown tool, format 2", `{"server_id":"echo","method":"tools/call","params":{"name":"rum"}}`,
			`{"isError":true}`,
			`"isError":true,"detail":"the server \"echo\" has no tool \"rum\", did you mean \"run\"? (GET ` +
				`/tools?server=echo lists its tools)","result":{"isError":true}`},
		{"an unknown tool that works", `{"server_id":"echo","tool_name":"secret"}`, `{}`, `"result":{}`},
		{"another method", `{"server_id":"echo","method":"tasks/result","params":{"taskId":"1"}}`, `{"isError":true}`,
			`"isError":true,"result":{"isError":true}`},
	} {
		far := &farSide{call: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(tc.result), nil
		}}
		w := serve(invoke.Options{Servers: far}, newRequest("POST", "/invoke", tc.body))
		if want := `{"status":"success",` + tc.want + "}\n"; w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: answered %d %s, want 200 %s", tc.name, w.Code, w.Body, want)
		}
		wantHeaders(t, tc.name, w)
	}

	refuse := &farSide{call: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
		return nil, &mcpclient.RemoteError{Code: -32602, Message: "Tool not found"}
	}}
	for tool, want := range map[string]string{
		"add": `JSON-RPC error -32602: Tool not found`,
		"adds": `JSON-RPC error -32602: Tool not found; the server \"echo\" has no tool \"adds\", did you mean ` +
			`\"add\"? (GET /tools?server=echo lists its tools)`,
		"zzzzzz": `JSON-RPC error -32602: Tool not found; the server \"echo\" has no tool \"zzzzzz\", it has ` +
			`\"add\" or \"run\" (GET /tools?server=echo lists its tools)`,
	} {
		w := serve(invoke.Options{Servers: refuse}, newRequest("POST", "/invoke",
			`{"server_id":"echo","tool_name":"`+tool+`"}`))
		if want := `"detail":"` + want + `"`; w.Code != 500 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: answered %d %s, want 500 with %s", tool, w.Code, w.Body, want)
		}
	}
}

// What is wrong with a body, in the order in which it is looked for (FR-7.3).
func TestRefusedBodies(t *testing.T) {
	for _, tc := range []struct{ name, body, text, detail string }{
		{"empty", ``, "malformed JSON", "empty"},
		{"blank", " \n", "malformed JSON", "empty"},
		{"cut off", `{"server_id":"echo"`, "malformed JSON", "unexpected end"},
		{"no JSON", `server_id=echo`, "malformed JSON", "invalid character"},
		{"trailing data", `{"server_id":"echo","tool_name":"t"} {}`, "malformed JSON", "after top-level value"},
		{"byte order mark", "\ufeff{}", "malformed JSON", "invalid character"},
		{"not UTF-8", "{\"server_id\":\"\xff\"}", "malformed JSON", "UTF-8"},
		{"too deep", strings.Repeat(`{"a":`, 20000), "malformed JSON", "depth"},
		{"a list", `[]`, "invalid request", "must be a JSON object"},
		{"a string", `"x"`, "invalid request", "must be a JSON object"},
		{"null", `null`, "invalid request", "must be a JSON object"},
		{"unknown field", `{"server":"echo","tool_name":"t"}`, "unknown field", `"server", did you mean "server_id"?`},
		{"twice", `{"server_id":"echo","tool_name":"t","server_id":"off"}`, "duplicate field", `"server_id"`},
		{"twice, once null", `{"server_id":null,"server\u005fid":"off"}`, "duplicate field", `"server_id"`},
		{"another", `{"server_id":"echo","toolName":"t"}`, "unknown field", `did you mean "tool_name"?`},
		{"a strange one", `{"zzzzzzzzzzzz\u001b":1}`, "unknown field",
			`"zzzzzzzzzzzz\x1b"; known fields are "server_id", `},
		{"nothing", `{}`, "missing server_id", "tool_name"},
		{"null server_id", `{"server_id":null,"tool_name":"t"}`, "missing server_id", "server_id"},
		{"number server_id", `{"server_id":5,"tool_name":"t"}`, "invalid request", "server_id must be a string"},
		{"empty server_id", `{"server_id":"","tool_name":"t"}`, "invalid request", "server_id must be a string"},
		{"server_id before tool_name", `{"tool_name":5,"arguments":[]}`, "missing server_id", "server_id"},
		{"no tool_name", `{"server_id":"unknown"}`, "missing tool_name or method", "tool_name"},
		{"empty tool_name", `{"server_id":"echo","tool_name":"","method":"ping"}`, "invalid request",
			"tool_name must be"},
		{"tool_name before arguments", `{"server_id":"echo","tool_name":[],"arguments":[]}`, "invalid request",
			"tool_name must be"},
		{"arguments a list", `{"server_id":"unknown","tool_name":"t","arguments":[]}`, "invalid request",
			"arguments must be a JSON object"},
		{"arguments a string", `{"server_id":"echo","tool_name":"t","arguments":"{}"}`, "invalid request",
			"arguments must be a JSON object"},
		{"params a list", `{"server_id":"echo","method":"m","params":[]}`, "invalid request",
			"params must be a JSON object"},
		{"params with tool_name", `{"server_id":"echo","tool_name":"t","params":{}}`, "invalid request",
			"params goes with method"},
		{"arguments with method", `{"server_id":"echo","method":"m","arguments":{}}`, "invalid request",
			"arguments goes with tool_name"},
		{"empty method", `{"server_id":"echo","method":""}`, "invalid request", "method must be"},
		{"long method", `{"server_id":"echo","method":"` + strings.Repeat("m", 201) + `"}`, "invalid request",
			"at most 200 bytes"},
		{"control character", `{"server_id":"echo","method":"tools\u0000"}`, "invalid request", "control characters"},
		{"C1 control character", `{"server_id":"echo","method":"tools\u0085"}`, "invalid request",
			"control characters"},
		{"notification", `{"server_id":"echo","method":"notifications/cancelled"}`, "invalid request",
			"not for callers"},
		{"initialize", `{"server_id":"echo","method":"initialize"}`, "invalid request", "not for callers"},
		{"task named twice", `{"server_id":"echo","method":"tasks/get","params":{"task_id":"a","taskId":"b"}}`,
			"invalid request", "more than once"},
	} {
		far := &farSide{}
		w := serve(invoke.Options{Servers: far}, newRequest("POST", "/invoke", tc.body))
		wantError(t, tc.name, w, 400, tc.text, tc.detail)
		if len(far.calls) > 0 {
			t.Errorf("%s: calls = %q, want none", tc.name, far.calls)
		}
	}
}

// Each kind of failure of a server has its status.
func TestServerFailures(t *testing.T) {
	for _, tc := range []struct {
		server string
		status int
		text   string
		detail string
	}{
		{"ecko", 404, "unknown server", `no server "ecko", did you mean "echo"?`},
		{"zzzzzzzz", 404, "unknown server", `no server "zzzzzzzz" (GET /servers`},
		{"off", 403, "server is disabled", `"off" is disabled`},
		{"choosy", 403, "tool is left out", `the settings leave out its tool "add"`},
		{"dead", 502, "server unavailable", "it wrote: \"no such file\""},
		{"slow", 504, "server timed out", "no answer within 30s"},
		{"unset", 502, "server settings are wrong", "API_KEY"},
		{"crowded", 502, "busy", "too many"},
		{"broken", 500, "internal error", "log"},
		{"picky", 500, "server answered with an error", `JSON-RPC error -32602: no <b>tool; data: {"z":1,"a":[2]}`},
		{"terse", 500, "server answered with an error", "JSON-RPC error 7: no"},
		{"wrapped", 500, "server answered with an error", "JSON-RPC error 8: deep"},
	} {
		w := serve(invoke.Options{}, newRequest("POST", "/invoke", `{"server_id":"`+tc.server+`","tool_name":"t"}`))
		wantError(t, tc.server, w, tc.status, tc.text, tc.detail)
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: answered %s, want nothing of an internal error", tc.server, w.Body)
		}
	}
}

// A server's JSON-RPC error is passed on for programs, too.
func TestRPCError(t *testing.T) {
	w := serve(invoke.Options{}, newRequest("POST", "/invoke", `{"server_id":"picky","tool_name":"t"}`))
	want := `{"status":"error","error":"server answered with an error","detail":"JSON-RPC error -32602: no ` +
		`<b>tool; data: {\"z\":1,\"a\":[2]}",` +
		`"rpc_error":{"code":-32602,"message":"no <b>tool","data":{"z":1,"a":[2]}}}` + "\n"
	if got := w.Body.String(); got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
}

// Of a long error a part is passed on, whole characters and valid JSON.
func TestLongRPCError(t *testing.T) {
	far := &farSide{call: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
		return nil, &mcpclient.RemoteError{Code: 1, Message: "x" + strings.Repeat("é", 10000),
			Data: json.RawMessage(`"` + strings.Repeat("d", 1<<17) + `"`)}
	}}
	w := serve(invoke.Options{Servers: far}, newRequest("POST", "/invoke", `{"server_id":"echo","tool_name":"t"}`))
	wantError(t, "long error", w, 500, "server answered with an error",
		"JSON-RPC error 1: x"+strings.Repeat("é", 4095)+"…")
	if strings.Contains(w.Body.String(), "data") {
		t.Errorf("answered %.200s, want no data of 128 KiB", w.Body)
	}
}

// Results of any length come through unchanged, an empty one as null.
func TestResults(t *testing.T) {
	for _, tc := range []struct{ result, want string }{
		{"", "null"}, {"null", "null"}, {`[1,  2]`, `[1,  2]`},
		{`"` + strings.Repeat("é", 1<<16) + `"`, `"` + strings.Repeat("é", 1<<16) + `"`},
	} {
		far := &farSide{call: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(tc.result), nil
		}}
		w := serve(invoke.Options{Servers: far}, newRequest("POST", "/invoke", `{"server_id":"echo","tool_name":"t"}`))
		if got, want := w.Body.String(), `{"status":"success","result":`+tc.want+"}\n"; got != want {
			t.Errorf("a result of %d bytes was answered with %.100s, want %.100s", len(tc.result), got, want)
		}
		wantHeaders(t, "result", w)
	}
}

func TestContentType(t *testing.T) {
	for _, tc := range []struct {
		types    []string
		encoding string
		status   int
	}{
		{[]string{"application/json"}, "", 200},
		{[]string{"Application/JSON; Charset=UTF-8"}, "identity", 200},
		{[]string{"application/json; profile=x"}, "", 200},
		{nil, "", 415},
		{[]string{""}, "", 415},
		{[]string{"text/plain"}, "", 415},
		{[]string{"text/plain; application/json"}, "", 415},
		{[]string{"application/json; charset=latin1"}, "", 415},
		{[]string{"application/json;;=;"}, "", 415},
		{[]string{"application/jsonp"}, "", 415},
		{[]string{"text/plain", "application/json"}, "", 415},
		{[]string{"application/json"}, "gzip", 415},
	} {
		r := newRequest("POST", "/invoke", `{"server_id":"echo","tool_name":"t"}`)
		delete(r.Header, "Content-Type")
		for _, v := range tc.types {
			r.Header.Add("Content-Type", v)
		}
		if tc.encoding != "" {
			r.Header.Set("Content-Encoding", tc.encoding)
		}
		if w := serve(invoke.Options{}, r); w.Code != tc.status {
			t.Errorf("Content-Type %q, encoding %q: answered %d %s, want %d", tc.types, tc.encoding, w.Code, w.Body,
				tc.status)
		}
	}
}

// The limit of a body applies with and without an announced length.
func TestBodySize(t *testing.T) {
	request := func(size int) string {
		head, tail := `{"server_id":"echo","tool_name":"t","arguments":{"a":"`, `"}}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	for _, tc := range []struct {
		size      int
		announced bool
		status    int
	}{{4 << 20, true, 200}, {4<<20 + 1, true, 413}, {4 << 20, false, 200}, {4<<20 + 1, false, 413}} {
		r := newRequest("POST", "/invoke", request(tc.size))
		if !tc.announced {
			r.ContentLength = -1
		}
		if w := serve(invoke.Options{}, r); w.Code != tc.status {
			t.Errorf("%d bytes, announced %t: answered %d %.200s, want %d", tc.size, tc.announced, w.Code, w.Body,
				tc.status)
		}
	}
}

func TestBrokenBody(t *testing.T) {
	r := newRequest("POST", "/invoke", "")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"server_id":`), brokenReader{}))
	r.ContentLength = 100
	wantError(t, "broken body", serve(invoke.Options{}, r), 400, "incomplete request", "ended before")
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRoutes(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/invoke", 405, "POST"},
		{"OPTIONS", "/invoke", 405, "POST"},
		{"PUT", "/invoke", 405, "POST"},
		{"POST", "/", 405, "GET, HEAD"},
		{"POST", "/tools", 405, "GET, HEAD"},
		{"get", "/tools", 405, "GET, HEAD"},
		{"DELETE", "/servers", 405, "GET, HEAD"},
		{"GET", "/mcp", 404, ""},
		{"POST", "/invoke/", 404, ""},
		{"POST", "//invoke", 404, ""},
		{"GET", "/%00", 404, ""},
	} {
		w := serve(invoke.Options{}, newRequest(tc.method, tc.path, ""))
		text := map[int]string{404: "not found", 405: "method not allowed"}[tc.status]
		wantError(t, tc.method+" "+tc.path, w, tc.status, text, "")
		if got := w.Header().Get("Allow"); got != tc.allow {
			t.Errorf("%s %s: Allow = %q, want %q", tc.method, tc.path, got, tc.allow)
		}
	}
	if w := serve(invoke.Options{}, newRequest("HEAD", "/invoke", "")); w.Code != 405 || w.Body.Len() > 0 {
		t.Errorf("HEAD /invoke: answered %d %s, want 405 without a body", w.Code, w.Body)
	}
}

// A call that panics is an internal error, and the bridge lives on.
func TestPanic(t *testing.T) {
	var log strings.Builder
	far := &farSide{call: func(context.Context, string, string, json.RawMessage) (json.RawMessage,
		error) {
		panic("secret cause")
	}}
	h := invoke.New(invoke.Options{Servers: far, Log: slog.New(slog.NewTextHandler(&log, nil))})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newRequest("POST", "/invoke", `{"server_id":"echo","tool_name":"t"}`))
	wantError(t, "panic", w, 500, "internal error", "log")
	if strings.Contains(w.Body.String(), "secret") || !strings.Contains(log.String(), "secret cause") {
		t.Errorf("answered %s and logged %s, want the cause in the log only", w.Body, log.String())
	}
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, newRequest("GET", "/", "")); w.Code != 200 {
		t.Errorf("after a panic GET / answered %d, want 200", w.Code)
	}
	w = record(invoke.New(invoke.Options{Servers: &panicking{}}), newRequest("GET", "/tools", ""))
	if want := `{"tools":[],"errors":[{"server_id":"dead","error":"internal error"`; w.Code != 200 ||
		!strings.HasPrefix(w.Body.String(), want) {
		t.Errorf("GET /tools answered %d %s, want 200 with %s", w.Code, w.Body, want)
	}
}

// A call whose client left gets no answer: its connection just ends.
func TestClientGone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	far := &farSide{call: func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		cancel()
		return nil, ctx.Err()
	}}
	w := httptest.NewRecorder()
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("the handler panicked with %v, want http.ErrAbortHandler", v)
		}
		if w.Body.Len() > 0 {
			t.Errorf("answered %s, want nothing", w.Body)
		}
	}()
	invoke.New(invoke.Options{Servers: far}).ServeHTTP(w, newRequest("POST", "/invoke",
		`{"server_id":"echo","tool_name":"t"}`).WithContext(ctx))
}

// The log names server, method and tool, quoted, and never what was passed.
func TestLog(t *testing.T) {
	body := `{"server_id":"dead","tool_name":"t\u001b[31m","arguments":{"password":"hunter2"}}`
	for _, tc := range []struct {
		level slog.Level
		want  []string
		not   []string
	}{
		{slog.LevelDebug, []string{"level=DEBUG", "level=ERROR", `\"dead\"`, `t\\x1b[31m`, "tools/call", "status=502",
			"duration="}, []string{"hunter2", "\x1b"}},
		{slog.LevelInfo, []string{"level=ERROR", "dead", "no such file"},
			[]string{"level=DEBUG", "hunter2", "tools/call"}},
	} {
		var log strings.Builder
		serve(invoke.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: tc.level}))},
			newRequest("POST", "/invoke", body))
		for _, s := range tc.want {
			if !strings.Contains(log.String(), s) {
				t.Errorf("%s log = %s, want %s in it", tc.level, log.String(), s)
			}
		}
		for _, s := range tc.not {
			if strings.Contains(log.String(), s) {
				t.Errorf("%s log = %s, want no %q in it", tc.level, log.String(), s)
			}
		}
	}
}

// Asking a panicking far side for tools panics.
type panicking struct{ farSide }

func (*panicking) Catalog(context.Context, string) (*mcpclient.Catalog, error) { panic("no catalog") }
