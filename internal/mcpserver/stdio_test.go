package mcpserver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

const ping = `{"jsonrpc":"2.0","id":99,"method":"ping"}`

func TestStdioBadInput(t *testing.T) {
	deep := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":` + strings.Repeat("[",
		20_000) + strings.Repeat("]", 20_000) + `}}`
	for _, tc := range []struct{ name, line, want string }{
		{"malformed", `{bad json}`, `-32700 null`},
		{"truncated", `{"jsonrpc":"2.0","id":1,`, `-32700 null`},
		{"text", `hello`, `-32700 null`},
		{"not JSON-RPC", `{"a":1}`, `-32600 null`},
		{"other version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `-32600 null`},
		{"a string", `"ping"`, `-32600 null`},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `-32600 null`},
		{"id fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `-32600 null`},
		{"id boolean", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, `-32600 null`},
		{"id object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `-32600 null`},
		{"id too large", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `-32600 null`},
		{"id exponent", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, `-32600 null`},
		{"names in other case", `{"JSONRPC":"2.0","ID":1,"Method":"ping"}`, `-32600 null`},
		{"a second name in other case", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"nope"}`, `result 1`},
		{"method of a wrong type", `{"jsonrpc":"2.0","id":1,"method":5}`, `-32600 null`},
		{"response to nothing", `{"jsonrpc":"2.0","id":7,"result":{}}`, ``},
		{"neither", `{"jsonrpc":"2.0","id":7}`, `-32600 null`},
		{"two on a line", ping + ping, `-32700 null`},
		{"too deep", deep, `-32700 null`},
		{"too long", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("a", 17<<20) + `"}}`,
			`-32600 null`},
		{"blank", "  \n\r\n", ``},
		{"carriage return", ping + "\r", `result 99`},
		{"largest id", `{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`, `result 9007199254740992`},
		{"empty string id", `{"jsonrpc":"2.0","id":"","method":"ping"}`, `result ""`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newKit(mcpserver.Options{}).stdio(t)
				s.Initialize("2025-03-26")
				s.Send(tc.line)
				synctest.Wait()
				var got []string
				for s.Pending() > 0 {
					if m := s.Next(); m.Error != nil {
						got = append(got, fmt.Sprintf("%d %s", m.Error.Code, m.ID))
					} else {
						got = append(got, "result "+string(m.ID))
					}
				}
				if strings.Join(got, "; ") != tc.want {
					t.Errorf("answers = %q, want %q", got, tc.want)
				}
				if m := s.Call("ping", nil); m.Error != nil {
					t.Errorf("afterwards = %v", m.Error)
				}
			})
		})
	}
}

func TestStdioByteOrderMark(t *testing.T) {
	var out bytes.Buffer
	if err := newKit(mcpserver.Options{}).server.ServeStdio(t.Context(), strings.NewReader("\uFEFF"+ping),
		&out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"jsonrpc":"2.0","id":99,"result":{}}`+"\n"; got != want {
		t.Errorf("output = %q, want %q", got, want)
	}
}

func TestStdioBatches(t *testing.T) {
	const echo = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`
	const echoed = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"name\":\"\"}"}]}}`
	const pong = `{"jsonrpc":"2.0","id":99,"result":{}}`
	const note = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
	const invalid = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: not a JSON-RPC object"}}`
	for _, revision := range []string{"2024-11-05", "2025-03-26"} {
		for _, tc := range []struct{ name, line, want string }{
			{"a call", "[" + echo + "]", "[" + echoed + "]"},
			{"a call and a notification", "[" + note + "," + echo + "]", "[" + echoed + "]"},
			{"notifications", "[" + note + "," + note + "]", ""},
			{"empty", "[]", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: empty batch"}}`},
			{"invalid elements", "[1,2]", "[" + invalid + "," + invalid + "]"},
			{"an invalid element", "[1," + ping + "]", "[" + invalid + "," + pong + "]"},
			{"one id twice", "[" + ping + "," + ping + "]",
				`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the id 99 is in use by a request that has not been answered"}},` + pong + "]"},
			{"initialize", `[{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}]`,
				`[{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"initialize must not be part of a batch"}}]`},
		} {
			t.Run(revision+"/"+tc.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newKit(mcpserver.Options{}).stdio(t)
					s.Initialize(revision)
					s.Send(tc.line)
					synctest.Wait()
					if tc.want == "" {
						if n := s.Pending(); n != 0 {
							t.Errorf("%d answers, want none: %s", n, s.Next().Raw)
						}
						return
					}
					if got := s.Next().Raw; got != tc.want {
						t.Errorf("answer = %s, want %s", got, tc.want)
					}
				})
			})
		}
	}
	t.Run("2025-06-18", func(t *testing.T) {
		s := newKit(mcpserver.Options{}).stdio(t)
		s.Initialize("2025-06-18")
		s.Send("[" + ping + "]")
		if m := s.Next(); m.Error == nil || m.Error.Code != -32600 {
			t.Errorf("a batch = %s, want the error -32600", m.Raw)
		}
	})
}

func TestStdioDuplicateID(t *testing.T) {
	k := newKit(mcpserver.Options{})
	s := k.stdio(t)
	s.Initialize("2025-03-26")
	id := s.Start("tools/call", hold("a"))
	<-k.started
	s.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
	if m := s.Next(); m.Error == nil || m.Error.Code != -32600 || string(m.ID) != "null" {
		t.Errorf("a second request with the id = %s, want the error -32600", m.Raw)
	}
	close(k.release)
	if _, err := s.ToolText(s.Wait(id)); err != nil {
		t.Errorf("the first request = %v", err)
	}
}

// script is what a shell pipes into a server: everything, then the end.
func script(lines ...string) string {
	return strings.Join(append([]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`}, lines...), "\n")
}

// Requests that were read before the end of input are answered, also the last
// one without a newline.
func TestStdioEnd(t *testing.T) {
	for range 20 { // the order of goroutines must not matter
		var out bytes.Buffer
		var calls []string
		for i := range 10 {
			calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}`, i+1))
		}
		if err := newKit(mcpserver.Options{}).server.ServeStdio(t.Context(), strings.NewReader(script(calls...)),
			&out); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), `"result"`); n != 11 {
			t.Fatalf("%d results, want 11:\n%s", n, out.String())
		}
	}
}

const (
	holdLine  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold"}}`
	stuckLine = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck"}}`
)

// However it ends, a server is gone within a second.
func TestStdioEndsInTime(t *testing.T) {
	for _, tc := range []struct {
		name    string
		line    string
		signal  bool          // end by the context, not by the input
		release time.Duration // when the handler continues; 0 is never
		answer  bool
		within  time.Duration
	}{
		{"idle, input", ping, false, 0, false, 0},
		{"idle, signal", ping, true, 0, false, 0},
		{"answer in time, input", holdLine, false, 300 * time.Millisecond, true, 300 * time.Millisecond},
		{"answer in time, signal", holdLine, true, 300 * time.Millisecond, true, 300 * time.Millisecond},
		{"no answer, input", holdLine, false, 0, false, 800 * time.Millisecond},
		{"no answer, signal", holdLine, true, 0, false, 800 * time.Millisecond},
		{"handler ignores its context, input", stuckLine, false, 5 * time.Second, false, 900 * time.Millisecond},
		{"handler ignores its context, signal", stuckLine, true, 5 * time.Second, false, 900 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(mcpserver.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				in, client := io.Pipe()
				out := &lockedBuffer{}
				served := make(chan error, 1)
				go func() { served <- k.server.ServeStdio(ctx, in, out) }()
				if _, err := io.WriteString(client, script(tc.line)+"\n"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				start := time.Now()
				if tc.release > 0 {
					time.AfterFunc(tc.release, func() { close(k.release) })
				}
				if tc.signal {
					cancel()
				} else {
					client.Close()
				}
				if err := <-served; err != nil {
					t.Errorf("ServeStdio() = %v, want nil", err)
				}
				if took := time.Since(start); took != tc.within {
					t.Errorf("took %v, want %v", took, tc.within)
				}
				before := out.String()
				if got := strings.Contains(before, `"id":1,"result"`); got != tc.answer {
					t.Errorf("answered %t, want %t:\n%s", got, tc.answer, before)
				}
				time.Sleep(10 * time.Second) // virtual: the stuck handler has returned
				if after := out.String(); after != before {
					t.Errorf("written after the end: %s", after[len(before):])
				}
				client.Close()
			})
		})
	}
}

// lockedBuffer is a bytes.Buffer that may be read while it is written.
type lockedBuffer struct{ logBuffer }

// A client that is gone ends the server.
func TestStdioBrokenOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, client := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- newKit(mcpserver.Options{}).server.ServeStdio(t.Context(), in, brokenWriter{}) }()
		if _, err := io.WriteString(client, ping+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-served; err != nil {
			t.Errorf("ServeStdio() = %v, want nil", err)
		}
		client.Close()
	})
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A client that does not read its answers can still cancel and leave.
func TestStdioBlockedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		in, client := io.Pipe()
		outR, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- k.server.ServeStdio(t.Context(), in, out) }()
		for _, l := range []string{ping, holdLine,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
			if _, err := io.WriteString(client, l+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		client.Close()
		if err := <-served; err != nil {
			t.Errorf("ServeStdio() = %v, want nil", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v, want at most a second", took)
		}
		outR.Close()
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, transport := range []string{"stdio", "http"} {
			k := newKit(mcpserver.Options{MaxInFlight: 2})
			var s *mcptest.Session
			if transport == "stdio" {
				s = k.stdio(t)
			} else {
				s = k.http(t, mcpserver.HTTPOptions{}).session(t)
			}
			s.Initialize("2025-03-26")
			var ids []int
			for range 6 {
				ids = append(ids, s.Start("tools/call", hold("x")))
				synctest.Wait()
			}
			if n := len(k.started); n != 2 {
				t.Errorf("%s: %d handlers run, want 2", transport, n)
			}
			for _, method := range []string{"ping", "tools/list", "resources/templates/list"} {
				if m := s.Call(method, nil); m.Error != nil {
					t.Errorf("%s: %s while busy = %v", transport, method, m.Error)
				}
			}
			s.Cancel(ids[2]) // one that waits
			synctest.Wait()
			if n := s.Pending(); n != 0 {
				t.Errorf("%s: an answer to a cancelled request: %s", transport, s.Next().Raw)
			}
			start := time.Now()
			for _, id := range ids[3:] {
				m := s.Wait(id)
				wantError(t, m, -31429, "code", "BUSY")
				if m.Error != nil && (m.Error.Field("retryable") != "true" || m.Error.Field("retryAfterMs") != "1000") {
					t.Errorf("%s: %v, want it to be retryable", transport, m.Error)
				}
			}
			if took := time.Since(start); took != 2*time.Second {
				t.Errorf("%s: waited %v, want 2s", transport, took)
			}
			last := s.Start("tools/call", map[string]any{"name": "echo"})
			close(k.release)
			for _, id := range append(ids[:2], last) {
				if _, err := s.ToolText(s.Wait(id)); err != nil {
					t.Errorf("%s: %v", transport, err)
				}
			}
		}
	})
}
