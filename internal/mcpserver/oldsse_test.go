package mcpserver_test

import (
	"bufio"
	"strings"
	"testing"
	"testing/synctest"

	"knowhow/internal/mcpserver"
)

// The HTTP+SSE transport of 2024-11-05 is served on the same path.
func TestOldSSE(t *testing.T) {
	for _, revision := range []mcpserver.Revision{mcpserver.Cody, mcpserver.Latest} {
		synctest.Test(t, func(t *testing.T) {
			k := newKit(mcpserver.Options{Revision: revision})
			site := k.http(t, mcpserver.HTTPOptions{MaxSessions: 1})
			res, err := site.client.Get(site.url)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close() // given up
			sc := bufio.NewScanner(res.Body)
			next := func() string {
				for sc.Scan() {
					if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
						return data
					}
				}
				return "the stream ended"
			}
			endpoint := strings.TrimPrefix(next(), "/mcp?")
			post := func(body string) int {
				t.Helper()
				res, err := site.client.Post(site.url+"?"+endpoint, "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close() // empty
				return res.StatusCode
			}
			post(strings.Replace(initializeBody, "2025-03-26", "2024-11-05", 1))
			if got := next(); !strings.Contains(got, `"protocolVersion":"2024-11-05"`) {
				t.Errorf("initialize = %s", got)
			}
			post(request(t, "tools/call", map[string]any{"name": "echo"}))
			if got := next(); !strings.Contains(got, "notInitialized") {
				t.Errorf("a call before notifications/initialized = %s", got)
			}
			post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			post(request(t, "tools/call", hold("a")))
			<-k.started
			post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			<-k.causes
			post(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"fess://finance/doc/d1/content","cursor":"1"}}`)
			if got := next(); !strings.Contains(got, `"second"`) {
				t.Errorf("the answer after a cancelled request = %s, want that of resources/read", got)
			}
			if status := post(`{"jsonrpc":"2.0","id":1,"method":"nope"}`); status != 400 {
				t.Errorf("an unknown method = %d, want 400", status)
			}
			if status, _, _ := site.request(t, "POST", initializeBody, nil); status != 503 {
				t.Errorf("a second session = %d, want 503", status)
			}
		})
	}
	site := newKit(mcpserver.Options{Revision: mcpserver.Pinned}).http(t, mcpserver.HTTPOptions{})
	if status, _, _ := site.request(t, "GET", "", nil); status != 400 {
		t.Errorf("GET without a session on a server pinned to 2025-03-26 = %d, want 400", status)
	}
}
