package mcpserver_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"

	"github.com/google/go-cmp/cmp"
)

func withToken(name string, token any) map[string]any {
	return map[string]any{"name": name, "_meta": map[string]any{"progressToken": token}}
}

func params(all []mcptest.Message) []string {
	var out []string
	for _, n := range all {
		out = append(out, n.Method+" "+string(n.Params))
	}
	return out
}

func TestProgress(t *testing.T) {
	want := func(token string) []string {
		return []string{
			`notifications/progress {"progressToken":` + token + `,"message":"at 1","progress":1,"total":3}`,
			`notifications/progress {"progressToken":` + token + `,"message":"at 2","progress":2,"total":3}`,
			`notifications/progress {"progressToken":` + token + `,"message":"at 3","progress":3,"total":3}`,
		}
	}
	for _, transport := range []string{"stdio", "http"} {
		for _, tc := range []struct {
			token any
			want  []string
		}{{"tok", want(`"tok"`)}, {17, want("17")}, {nil, nil}, {[]int{1}, nil}, {true, nil}} {
			k := newKit(mcpserver.Options{})
			var s *mcptest.Session
			if transport == "stdio" {
				s = k.stdio(t)
			} else {
				s = k.http(t, mcpserver.HTTPOptions{}).session(t)
			}
			s.Initialize("2025-03-26")
			if _, err := s.ToolText(s.Call("tools/call", withToken("progress", tc.token))); err != nil {
				t.Errorf("%s: %v", transport, err)
			}
			// They come before the answer, so they are all there.
			if d := cmp.Diff(tc.want, params(s.Notifications())); d != "" {
				t.Errorf("%s: progress for the token %v (-want +got):\n%s", transport, tc.token, d)
			}
		}
	}
}

// Work that outlives its request continues to report: over stdio, and over HTTP
// to a client that listens.
func TestProgressAfterTheAnswer(t *testing.T) {
	for _, tc := range []struct {
		transport string
		listen    bool
		want      int
	}{{"stdio", false, 3}, {"http", true, 3}, {"http", false, 0}} {
		synctest.Test(t, func(t *testing.T) {
			k := newKit(mcpserver.Options{})
			var s *mcptest.Session
			if tc.transport == "stdio" {
				s = k.stdio(t)
			} else {
				s = k.http(t, mcpserver.HTTPOptions{}).session(t)
			}
			s.Initialize("2025-03-26")
			if tc.listen {
				s.Listen()
			}
			if text, err := s.ToolText(s.Call("tools/call", withToken("job", "J"))); err != nil ||
				text != `{"jobId":"j1"}` {
				t.Errorf("job = %q, %v", text, err)
			}
			close(k.release)
			synctest.Wait()
			if got := s.Notifications(); len(got) != tc.want {
				t.Errorf("%s, listening %t: %q, want %d notifications", tc.transport, tc.listen, params(got), tc.want)
			}
		})
	}
}

func TestProgressOutsideARequest(t *testing.T) {
	mcpserver.Progress(context.Background(), 1, math.NaN(), "no listener") // must not panic
}
