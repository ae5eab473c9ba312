package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"knowhow/internal/mcpserver"

	"github.com/google/go-cmp/cmp"
)

// plainParams are params of tools/call with all kinds of outcomes.
func plainParams() []string {
	all := []string{
		`"name":"echo","arguments":{"name":"<b> & \"c\" 検索"}`, `"name":"echo"`, `"name":"list","arguments":null`, `"name":"meta"`, `"name":"panic"`,
		`"name":"nosuch"`, `"name":""`, `"name":"echo","arguments":{"nam":1}`, `"name":"echo","arguments":[]`, `"name":"search","arguments":{"query":5}`,
		`"name":"search","arguments":{"query":"x","facets":{"field":"a"}}`,
	}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		all = append(all, fmt.Sprintf(`"name":"fail","arguments":{"name":%q}`, name))
	}
	return all
}

// call is a tools/call. One with a member that no revision knows goes through
// the SDK.
func call(id int, params string, direct bool) string {
	if !direct {
		params += `,"unheardOf":true`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id, params)
}

// TestDirectAlike compares the answers to calls that bypass the SDK with those
// that go through it.
func TestDirectAlike(t *testing.T) {
	for _, revision := range []mcpserver.Revision{mcpserver.Pinned, mcpserver.Latest} {
		t.Run(string(revision), func(t *testing.T) {
			k := newKit(mcpserver.Options{Revision: revision})
			s := k.stdio(t)
			s.Initialize("2025-11-25")
			for i, params := range plainParams() {
				var got [2]string
				for j, direct := range []bool{false, true} {
					s.Send(call(1000+i, params, direct))
					got[j] = s.Wait(1000 + i).Raw
				}
				if d := cmp.Diff(got[0], got[1]); d != "" {
					t.Errorf("stdio, {%s} (-through the SDK +around it):\n%s", params, d)
				}
			}
		})
	}
}

// event is the line with the id of an event.
var event = regexp.MustCompile(`(?m)^id: [A-Z2-7]+_`)

func TestDirectAlikeHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, o := range []mcpserver.HTTPOptions{{}, {DisableSSE: true}} {
			for _, revision := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
				k := newKit(mcpserver.Options{})
				site := k.http(t, o)
				s := site.session(t)
				s.Initialize(revision)
				header := map[string]string{"Mcp-Session-Id": s.SessionID(), "Mcp-Protocol-Version": revision}
				for _, accept := range []string{"application/json, text/event-stream", "*/*", "", "application/json", "text/event-stream"} {
					header["Accept"] = accept
					for i, params := range plainParams() {
						var got [2]string
						for j, direct := range []bool{false, true} {
							status, h, body := site.request(t, "POST", call(i, params, direct), header)
							h.Del("Content-Length") // the SDK does not know the length in time
							got[j] = fmt.Sprintf("%d %v\n%s", status, h, event.ReplaceAllString(body, "id: X_"))
							if !o.DisableSSE && strings.Contains(accept, ",") && !strings.Contains(got[j], "X_0") {
								t.Errorf("no event id in %s", got[j])
							}
						}
						if d := cmp.Diff(got[0], got[1]); d != "" {
							t.Errorf("HTTP %+v, Accept %q, {%s} (-through the SDK +around it):\n%s", o, accept, params, d)
						}
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestDirectAlikeStateless does the same for 2026-07-28, over both transports.
func TestDirectAlikeStateless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		s, site := k.stdio(t), k.http(t, mcpserver.HTTPOptions{})
		for i, params := range plainParams() {
			var got, onStdio [2]string
			for j, direct := range []bool{false, true} {
				message := call(1000+i, params+","+meta, direct)
				s.Send(message)
				onStdio[j] = s.Wait(1000 + i).Raw
				header := modernHeader("tools/call", regexp.MustCompile(`"name":"(\w*)"`).FindStringSubmatch(params)[1])
				status, h, body := site.request(t, "POST", message, header)
				h.Del("Content-Length")
				got[j] = fmt.Sprintf("%d %v\n%s", status, h, body)
			}
			if d := cmp.Diff(got[0], got[1]) + cmp.Diff(onStdio[0], onStdio[1]); d != "" {
				t.Errorf("{%s} (-through the SDK +around it):\n%s", params, d)
			}
		}
	})
}

// A call that went around the SDK ends when it is cancelled, and not when its
// connection breaks.
func TestDirectEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{})
		s := site.session(t)
		s.Initialize("2025-03-26")
		id := s.Start("tools/call", hold("a"))
		<-k.started
		if status, _, body := site.request(t, "POST", call(id, `"name":"echo"`, true), map[string]string{"Mcp-Session-Id": s.SessionID()}); status != 400 ||
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
		req, err := http.NewRequestWithContext(ctx, "POST", site.url, strings.NewReader(call(70, `"name":"hold"`, true)))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": s.SessionID()} {
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

// What a plain call was answered with can be resumed as if it had come through the
// SDK.
func TestDirectResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
		s := site.session(t)
		s.Initialize("2025-03-26")
		header := map[string]string{"Mcp-Session-Id": s.SessionID()}
		var got [2]string
		for i, direct := range []bool{false, true} {
			_, _, body := site.request(t, "POST", call(7, `"name":"echo"`, direct), header)
			id := strings.TrimPrefix(regexp.MustCompile(`(?m)^id: \S+`).FindString(body), "id: ")
			status, _, missed := site.request(t, "GET", "", map[string]string{"Mcp-Session-Id": s.SessionID(), "Last-Event-ID": id})
			got[i] = fmt.Sprintf("%d %s", status, missed)
		}
		if got[0] != got[1] || !strings.HasPrefix(got[0], "204") {
			t.Errorf("resuming what has been read = %s and %s, want 204 and nothing", got[0], got[1])
		}
	})
}

// A session that hears plain calls only stays alive, because the SDK sees some of
// them.
func TestDirectKeepsSession(t *testing.T) {
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

// BenchmarkDirect is the share of this package in a call.
func BenchmarkDirect(b *testing.B) {
	for _, direct := range []bool{false, true} {
		b.Run(fmt.Sprintf("direct=%t", direct), func(b *testing.B) {
			s := newKit(mcpserver.Options{}).stdio(b)
			s.Initialize("2025-03-26")
			line := call(1, `"name":"echo","arguments":{"name":"a search of ordinary length"}`, direct)
			b.ReportAllocs()
			for b.Loop() {
				s.Send(line)
				s.Wait(1)
			}
		})
	}
}
