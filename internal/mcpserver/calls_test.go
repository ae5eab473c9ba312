package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// call is a tools/call.
func call(id int, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id, params)
}

// A call ends when it is cancelled, and not when its connection breaks.
func TestCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{})
		s := site.session(t)
		s.Initialize("2025-03-26")
		id := s.Start("tools/call", hold("a"))
		<-k.started
		if status, _, body := site.request(t, "POST", call(id, `"name":"echo"`),
			map[string]string{"Mcp-Session-Id": s.SessionID()}); status != 400 ||
			!strings.Contains(body, fmt.Sprintf("duplicate in-flight request ID %d", id)) {
			t.Errorf("a call with an id in use = %d %s", status, body)
		}
		s.Cancel(id)
		if err := <-k.causes; !errors.Is(err, context.Canceled) {
			t.Errorf("cause = %v, want context.Canceled", err)
		}
		synctest.Wait()
		if n := s.Pending(); n != 0 {
			t.Errorf("%d messages came after a cancellation", n)
		}

		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", site.url, strings.NewReader(call(70, `"name":"hold"`)))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Mcp-Session-Id": s.SessionID()} {
			req.Header.Set(name, value)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := site.client.Do(req); err == nil {
				t.Error("a request that was broken off had an answer")
			}
		}()
		<-k.started
		cancel()
		<-done
		time.Sleep(time.Minute)
		select {
		case err := <-k.causes:
			t.Errorf("the call ended with its connection: %v", err)
		default:
		}
		close(k.release)
		if _, err := s.Tool("echo", nil); err != nil {
			t.Errorf("afterwards = %v", err)
		}
	})
}

// A stream that was read to its end has nothing to resume.
func TestAnsweredCallResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
		s := site.session(t)
		s.Initialize("2025-03-26")
		header := map[string]string{"Mcp-Session-Id": s.SessionID()}
		_, _, body := site.request(t, "POST", call(7, `"name":"echo"`), header)
		header["Last-Event-ID"] = strings.TrimPrefix(regexp.MustCompile(`(?m)^id: \S+`).FindString(body), "id: ")
		if status, _, missed := site.request(t, "GET", "", header); status != 204 || missed != "" {
			t.Errorf("resuming what has been read = %d %s, want 204 and nothing", status, missed)
		}
	})
}

// A session with calls stays alive.
func TestCallsKeepSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{}).session(t)
		s.Initialize("2025-03-26")
		for range 600 {
			time.Sleep(10 * time.Second)
			if _, err := s.Tool("echo", nil); err != nil {
				t.Fatalf("in a session of which something is heard all the time = %v", err)
			}
		}
	})
}
