package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// Whatever of JSON and streams a client accepts, it gets its answer in that.
func TestAccept(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","arguments":{},"_meta":{"progressToken":1}}}`
	for _, tt := range []struct {
		accept string // "" sends none
		media  string
	}{
		{"application/json, text/event-stream", "text/event-stream"},
		{"*/*", "text/event-stream"},
		{"", "text/event-stream"},
		{"text/event-stream", "text/event-stream"},
		{"application/json", "application/json"},
		{"Application/JSON; q=0.9, text/html", "application/json"},
	} {
		for _, revision := range []mcpserver.Revision{mcpserver.Pinned, mcpserver.Cody, mcpserver.Latest} {
			site := newKit(mcpserver.Options{Revision: revision}).http(t, mcpserver.HTTPOptions{})
			header := map[string]string{"Accept": tt.accept}
			post := func(body string, status int, has, hasNot string) string {
				t.Helper()
				got, h, answer := site.request(t, "POST", body, header)
				if id := h.Get("Mcp-Session-Id"); id != "" {
					header["Mcp-Session-Id"] = id
				}
				want := tt.media
				if status != 200 {
					want = ""
				}
				if media := h.Get("Content-Type"); got != status || !strings.HasPrefix(media, want) ||
					!strings.Contains(answer, has) ||
					hasNot != "" && strings.Contains(answer, hasNot) {
					t.Errorf("%s, Accept %q: POST %s = %d %s %s, want %d %s with %s and without %s",
						revision, tt.accept, body, got, media, answer, status, want, has, hasNot)
				}
				if h.Get("Content-Type") == "application/json" && !json.Valid([]byte(answer)) {
					t.Errorf("%s is no JSON", answer)
				}
				return answer
			}
			post(initializeBody, 200, `"serverInfo"`, "")
			post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, "", "{")
			hasNot := ""
			if tt.media == "application/json" {
				hasNot = "notifications/progress"
			}
			post(call, 200, `"text":"\"done\""`, hasNot)
			post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fail","arguments":{"name":"plain"}}}`,
				200,
				`"error":{"code":-32603`, "secret")
			answer := post("["+ping+","+call+"]", 200, `"done`, hasNot)
			if tt.media == "application/json" && (answer[0] != '[' || strings.Count(answer, `"result"`) != 2) {
				t.Errorf("%s: a batch = %s, want an array of two results", revision, answer)
			}
			answer = post("["+ping+`,{"a":1},`+call+"]", 200, `"code":-32600`, hasNot)
			if n := strings.Count(answer, `"result"`); n != 2 {
				t.Errorf("%s, Accept %q: a batch with a bad element = %s, want two results beside its error",
					revision, tt.accept, answer)
			}
			if answer = post("["+ping+"]", 200, `"result"`, ""); tt.media == "application/json" && answer[0] != '[' {
				t.Errorf("%s: a batch of one = %s, want an array", revision, answer)
			}
		}
	}
}

// The same of the revision without a handshake, whose errors have a status.
func TestAcceptModern(t *testing.T) {
	site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
	header := modernHeader("tools/call", "echo")
	header["Accept"] = "application/json"
	status, h, body := site.request(t, "POST", request(t, "tools/call", modern(map[string]any{"name": "echo",
		"arguments": map[string]any{"name": "x"}})), header)
	if status != 200 || h.Get("Content-Type") != "application/json" || !strings.Contains(body,
		`"resultType":"complete"`) || !json.Valid([]byte(body)) {
		t.Errorf("tools/call = %d %s %s, want JSON", status, h.Get("Content-Type"), body)
	}
}

// A JSON answer that takes long is not preceded by the comments that keep a
// stream alive, and a cancelled request is not answered.
func TestAcceptJSONSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{})
		header := map[string]string{"Accept": "application/json"}
		_, h, _ := site.request(t, "POST", initializeBody, header)
		header["Mcp-Session-Id"] = h.Get("Mcp-Session-Id")
		site.request(t, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header)
		type answer struct {
			status int
			header http.Header
			body   string
		}
		held := func(id string) <-chan answer {
			got := make(chan answer, 1)
			go func() {
				status, h, body := site.request(t, "POST",
					`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"hold","arguments":{}}}`,
					header)
				got <- answer{status, h, body}
			}()
			<-k.started
			return got
		}
		first, second := held("7"), held("8")
		site.request(t, "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, header)
		if a := <-first; a.body != "" || a.status != 202 {
			t.Errorf("the cancelled request was answered %d %q, want nothing", a.status, a.body)
		}
		time.Sleep(time.Minute)
		close(k.release)
		if a := <-second; a.status != 200 || a.header.Get("Content-Type") != "application/json" ||
			!strings.HasPrefix(a.body,
				`{"jsonrpc"`) {
			t.Errorf("after a minute = %d %v %s, want JSON", a.status, a.header, a.body)
		}
	})
}
