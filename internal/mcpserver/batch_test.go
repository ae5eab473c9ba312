package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"

	"github.com/google/go-cmp/cmp"
)

// Each element of a batch is answered by itself, in one array or as an event of
// the stream.
func TestHTTPBatchElements(t *testing.T) {
	const (
		echo     = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`
		echoed   = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"name\":\"\"}"}]}}`
		pong     = `{"jsonrpc":"2.0","id":99,"result":{}}`
		unknown  = `{"jsonrpc":"2.0","id":"u","method":"nope/x"}`
		noMethod = `{"jsonrpc":"2.0","id":"u","error":{"code":-32601,"message":"there is no method \"nope/x\""}}`
		note     = `{"jsonrpc":"2.0","method":"notifications/nope"}`
		known    = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
		noObject = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: not a JSON-RPC object"}}`
		badID    = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: id must be a string or an integer of at most 2^53"}}`
		start    = `{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}`
		started  = `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"initialize must not be part of a batch"}}`
		twice    = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the id 99 is in use by a request that has not been answered"}}`
		withID   = `{"jsonrpc":"2.0","id":7,"method":"notifications/cancelled"}`
		misfit   = `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request: unexpected id for \"notifications/cancelled\""}}`
	)
	for _, tc := range []struct {
		name   string
		in     []string
		status int
		want   []string
	}{
		{"invalid elements among others", []string{"5", echo, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, ping}, 200,
			[]string{noObject, badID, echoed, pong}},
		{"unknown among others", []string{unknown, note, echo}, 200, []string{noMethod, echoed}},
		{"unknown alone", []string{unknown}, 200, []string{noMethod}},
		{"unknown and invalid", []string{"5", unknown}, 200, []string{noObject, noMethod}},
		{"invalid alone", []string{"5", "[]", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`}, 400,
			[]string{noObject, noObject, badID}},
		{"notifications", []string{known, note}, 202, nil},
		{"unknown notification", []string{note}, 202, nil},
		{"invalid with a notification", []string{"5", known}, 200, []string{noObject}},
		{"initialize", []string{start}, 400, []string{started}},
		{"initialize among others", []string{start, ping}, 200, []string{started, pong}},
		{"one id twice", []string{ping, ping}, 200, []string{twice, pong}},
		{"notification with an id", []string{withID, ping}, 200, []string{misfit, pong}},
		{"request without an id", []string{`{"jsonrpc":"2.0","method":"tools/list"}`, ping}, 200, []string{pong}},
		{"progress without params", []string{`{"jsonrpc":"2.0","method":"notifications/progress"}`, ping}, 200,
			[]string{pong}},
		{"undeclared without params", []string{`{"jsonrpc":"2.0","id":"u","method":"logging/setLevel"}`}, 200,
			[]string{`{"jsonrpc":"2.0","id":"u","error":{"code":-32601,"message":"method not found: \"logging/setLevel\""}}`}},
	} {
		for _, off := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,sse=%t", tc.name, !off), func(t *testing.T) {
				site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{DisableSSE: off})
				s := site.session(t)
				s.Initialize("2025-03-26")
				status, header, body := site.request(t, "POST", "["+strings.Join(tc.in, ",")+"]",
					map[string]string{"Mcp-Session-Id": s.SessionID()})
				if status != tc.status {
					t.Errorf("status = %d, want %d", status, tc.status)
				}
				want := ""
				if len(tc.want) > 0 {
					want = "[" + strings.Join(tc.want, ",") + "]"
				}
				if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
					body = "[" + strings.Join(events(body), ",") + "]"
				}
				// Calls of a batch run at once: those with results may come in any order.
				if len(tc.in) > 1 && strings.HasSuffix(body, ","+pong+","+echoed+"]") {
					body = strings.TrimSuffix(body, ","+pong+","+echoed+"]") + "," + echoed + "," + pong + "]"
				}
				if d := cmp.Diff(want, body); d != "" {
					t.Errorf("answers (-want +got):\n%s", d)
				}
			})
		}
	}
}

// events returns the data of all events of a stream.
func events(body string) []string {
	var all []string
	for _, l := range strings.Split(body, "\n") {
		if data, ok := strings.CutPrefix(l, "data: "); ok && data != "" {
			all = append(all, data)
		}
	}
	return all
}

// A batch as a whole is refused without a session, in a revision without
// batches, and where it is too long.
func TestHTTPBatchRefused(t *testing.T) {
	site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
	old, late := site.session(t), site.session(t)
	old.Initialize("2025-03-26")
	late.Initialize("2025-06-18")
	for _, tc := range []struct {
		name, body string
		header     map[string]string
		status     int
		want       string
	}{
		{"no session", "[5," + ping + "]", nil, 400, "the Mcp-Session-Id header is required"},
		{"unknown session", "[5," + ping + "]", map[string]string{"Mcp-Session-Id": "x"}, 404, "session not found"},
		{"later session", "[5," + ping + "]", map[string]string{"Mcp-Session-Id": late.SessionID()}, 400,
			"has no batches"},
		{"later header", "[5," + ping + "]", map[string]string{"Mcp-Session-Id": old.SessionID(),
			"Mcp-Protocol-Version": "2025-06-18"}, 400, "has no batches"},
		{"2026-07-28", "[5," + ping + "]", map[string]string{"Mcp-Protocol-Version": "2026-07-28"}, 400,
			"has no batches"},
		{"too long", "[5" + strings.Repeat(",5", 10000) + "]", map[string]string{"Mcp-Session-Id": old.SessionID()},
			400,
			"more than 10000 elements"},
	} {
		status, _, body := site.request(t, "POST", tc.body, tc.header)
		if status != tc.status || !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":`) ||
			!strings.Contains(body, tc.want) {
			t.Errorf("%s = %d %s, want %d with one error that says %q", tc.name, status, body, tc.status, tc.want)
		}
	}
}

// The answers to invalid elements also come where the others are cancelled, and
// with the first sign of life of a stream.
func TestHTTPBatchCancelled(t *testing.T) {
	for _, off := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k := newKit(mcpserver.Options{})
			site := k.http(t, mcpserver.HTTPOptions{DisableSSE: off})
			s := site.session(t)
			s.Initialize("2025-03-26")
			got := make(chan string, 1)
			go func() {
				_, _, body := site.request(t, "POST", "[5,"+request(t, "tools/call", hold("a"))+"]",
					map[string]string{"Mcp-Session-Id": s.SessionID()})
				got <- body
			}()
			<-k.started
			time.Sleep(20 * time.Second) // virtual: a comment has gone out
			s.Cancel(1)
			body := <-got
			if n := strings.Count(body, `"code":-32600`); n != 1 || strings.Contains(body, "cancelled") {
				t.Errorf("sse=%t: body = %q, want the error -32600 alone", !off, body)
			}
		})
	}
}
