package users_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

// soon is the time in which streams of a user without rights end.
const soon = 2 * time.Second

// A session of another user is answered like one that does not exist, in all transports.
func TestSessionsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{}, user("anna", []string{"a"}, nil), user("ben", []string{"a"}, nil))
		anna := m.open(t, "anna")
		running, event := m.call(t, "token-anna", anna, 70)
		defer running.Body.Close() // it is not read
		_ = m.open(t, "ben")       // whose MCP server exists
		name, version := "Mcp-Session-Id: ", "Mcp-Protocol-Version: 2025-11-25"
		for _, tc := range []struct{ method, body, header string }{
			{"POST", tool(1, "read"), ""},
			{"POST", tool(70, "hold"), ""},
			{"POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":70}}`, ""},
			{"GET", "", ""},
			{"GET", "", "Last-Event-ID: " + event},
			{"DELETE", "", ""},
		} {
			var answers []string
			for _, id := range []string{anna.SessionID(), strings.ToLower(anna.SessionID()), "another"} {
				header := []string{name + id, version}
				if tc.header != "" {
					header = append(header, tc.header)
				}
				answers = append(answers, m.send(t, "token-ben", tc.method, "/mcp", tc.body, header...))
			}
			if !strings.HasPrefix(answers[0], "404 ") || answers[0] != answers[1] || answers[0] != answers[2] {
				t.Errorf("%s %s %s in a session of another user, and in two that do not exist:\n%s", tc.method, tc.body,
					tc.header, strings.Join(answers, "\n"))
			}
		}
		// The session of the older transport is in the URL.
		stream := m.start(t, "token-anna", "GET", "/mcp", "", "Accept: text/event-stream")
		defer stream.Body.Close() // it is not read
		line := make([]byte, 200)
		n, err := stream.Body.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(strings.TrimSpace(string(line[:n])), "?sessionid=")
		if id == "" {
			t.Fatalf("the stream begins with %q", line[:n])
		}
		got := m.send(t, "token-ben", "POST", "/mcp?sessionid="+id, tool(1, "read"))
		if want := m.send(t, "token-ben", "POST", "/mcp?sessionid=another", tool(1, "read")); got != want ||
			!strings.HasPrefix(got, "404 ") {
			t.Errorf("in a session of another user = %s, in one that does not exist = %s", got, want)
		}
		if got := m.send(t, "token-anna", "POST", "/mcp?sessionid="+id, tool(1, "read")); !strings.HasPrefix(got, "202 ") {
			t.Errorf("in the own session = %s", got)
		}
		if got := text(t, anna, "read"); got != "a a" {
			t.Errorf("afterwards, the session answers %q", got)
		}
		// Nobody has ended the call.
		close(m.release)
		if got := read(t, running); !strings.Contains(got, "held a") {
			t.Errorf("the call of the session is answered by %s", got)
		}
	})
}

// Other rights are in force for the next request of an open session.
func TestRightsOfOpenSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{}, user("anna", []string{"a"}, nil))
		s := m.open(t, "anna")
		for _, tc := range []struct{ read, write []string }{
			{[]string{"a"}, nil}, {[]string{"a", "b"}, nil}, {[]string{"a", "b"}, []string{"c"}}, {[]string{"b"}, []string{"c"}},
			{[]string{"b"}, nil}, {nil, []string{"c"}}, {[]string{"*"}, []string{"*"}}, {[]string{"a"}, nil},
		} {
			m.set(t, user("anna", tc.read, tc.write))
			want, tools := strings.Join(tc.read, ","), "hold read stuck"
			if tc.write != nil {
				tools += " write"
			}
			if got := text(t, s, "read"); got != want+" "+want {
				t.Errorf("with %v, the tool answers %q, want %s twice", tc, got, want)
			}
			names := strings.Fields(toolNames(t, s))
			if got := strings.Join(sorted(names), " "); got != tools {
				t.Errorf("with %v, the tools are %s, want %s", tc, got, tools)
			}
			if got := text(t, s, "write"); (got == "written") != (tc.write != nil) {
				t.Errorf("with %v, write answers %q", tc, got)
			}
			if got := m.instructions(t, "anna"); got != "Labels: "+want {
				t.Errorf("with %v, the instructions are %q", tc, got)
			}
			if got := m.send(t, "token-anna", "GET", "/fess", ""); got != "200 "+want {
				t.Errorf("with %v, /fess answers %q", tc, got)
			}
		}
	})
}

// A server over a source that may no longer be read is gone with its sessions.
func TestSourceThatMayNoLongerBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{}, user("anna", []string{"a", "b"}, nil))
		s := m.session(t, "anna", "/mcp/b")
		s.Initialize("2025-11-25")
		initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
		m.set(t, user("anna", []string{"a"}, nil))
		for _, header := range [][]string{nil, inSession(s)} {
			got := m.send(t, "token-anna", "POST", "/mcp/b", initialize, header...)
			if want := m.send(t, "token-anna", "POST", "/mcp/none", initialize, header...); got != want {
				t.Errorf("at a label that may not be read = %s, at one that does not exist = %s", got, want)
			}
		}
		m.set(t, user("anna", []string{"a", "b"}, nil))
		if got := m.send(t, "token-anna", "POST", "/mcp/b", tool(1, "read"), inSession(s)...); !strings.HasPrefix(got, "404") {
			t.Errorf("a session from before = %s, want 404", got)
		}
	})
}

// ways are the ways in which a user loses rights.
var ways = []struct {
	name   string
	change func(*testing.T, *team)
	token  string // with which the user is admitted afterwards; "" for none
}{
	{"a label less", func(t *testing.T, m *team) { m.set(t, user("anna", []string{"a"}, nil)) }, "token-anna"},
	{"another label", func(t *testing.T, m *team) { m.set(t, user("anna", []string{"a", "c"}, nil)) }, "token-anna"},
	{"removed", func(t *testing.T, m *team) { m.set(t, user("ben", nil, nil)) }, ""},
	{"nobody is left", func(t *testing.T, m *team) { m.set(t) }, ""},
	{"the file is damaged", func(t *testing.T, m *team) {
		if err := os.WriteFile(m.path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}, ""},
	{"the file is gone", func(t *testing.T, m *team) {
		if err := os.Remove(m.path); err != nil {
			t.Fatal(err)
		}
	}, ""},
	{"another token", func(t *testing.T, m *team) {
		m.set(t, access.User{Name: "anna", SHA256: hash("new"), Read: []string{"a", "b"}})
	}, "new"},
}

// Streams and requests that are open end when rights are taken away. The answers to
// calls that were begun with more rights are not delivered.
func TestLostRights(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTeam(t, users.Options{}, user("anna", []string{"a", "b"}, nil))
				s := m.open(t, "anna")
				listening := m.start(t, "token-anna", "GET", "/mcp", "", inSession(s)...)
				old := m.start(t, "token-anna", "GET", "/mcp", "", "Accept: text/event-stream")
				running, event := m.call(t, "token-anna", s, 70)
				open := []*http.Response{listening, old, running}
				fess := make(chan string, 1)
				go func() { fess <- m.send(t, "token-anna", "GET", "/fess?hold", "") }()
				<-m.started

				began := time.Now()
				way.change(t, m)
				for i, res := range open {
					if got := read(t, res); strings.Contains(got, "held") {
						t.Errorf("stream %d continues with %s", i, got)
					}
				}
				if got := <-fess; strings.Contains(got, "held") || strings.HasPrefix(got, "200") {
					t.Errorf("/fess = %s", got)
				}
				if took := time.Since(began); took > soon {
					t.Errorf("the streams ended after %v", took)
				}
				close(m.release)
				synctest.Wait()
				if way.token == "" {
					if got := m.send(t, "token-anna", "POST", "/mcp", tool(1, "read"), inSession(s)...); !strings.HasPrefix(got, "401 ") {
						t.Errorf("the next request = %s, want 401", got)
					}
					m.set(t, user("anna", []string{"a"}, nil)) // the user comes back
					way.token = "token-anna"
				}
				resumed := m.send(t, way.token, "GET", "/mcp", "", append(inSession(s), "Last-Event-ID: "+event)...)
				if strings.Contains(resumed, "held") {
					t.Errorf("resuming the call = %s", resumed)
				}
			})
		})
	}
}

// A session continues when its user has fewer rights. A call that runs fails, also if
// its answer is asked for as JSON, by the next request, and if it ignores that it ends.
func TestFewerRightsInSession(t *testing.T) {
	for _, name := range []string{"hold", "stuck"} {
		synctest.Test(t, func(t *testing.T) {
			m := newTeam(t, users.Options{}, user("anna", []string{"a", "b"}, nil))
			s := m.open(t, "anna")
			answers := make(chan string, 1)
			go func() {
				answers <- m.send(t, "token-anna", "POST", "/mcp", tool(70, name), append(inSession(s), "Accept: application/json")...)
			}()
			<-m.started
			m.set(t, user("anna", []string{"a"}, nil))
			if got := text(t, s, "read"); got != "a a" {
				t.Errorf("the next request = %q", got)
			}
			close(m.release)
			if got := <-answers; strings.Contains(got, "held") || !strings.Contains(got, "the rights of the caller have changed") {
				t.Errorf("%s, which ran = %s", name, got)
			}
			if got := text(t, s, "hold"); got != "held a" {
				t.Errorf("a later call = %q", got)
			}
		})
	}
}

// An answer that was sent before is not sent again after rights were taken away.
func TestAnswersThatWereSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{}, user("anna", []string{"a", "b"}, nil))
		s := m.open(t, "anna")
		running, event := m.call(t, "token-anna", s, 70)
		close(m.release)
		if got := read(t, running); !strings.Contains(got, "held a,b") {
			t.Fatalf("the call = %s", got)
		}
		header := append(inSession(s), "Last-Event-ID: "+event)
		if got := m.send(t, "token-anna", "GET", "/mcp", "", header...); !strings.Contains(got, "held a,b") {
			t.Errorf("with the same rights, resuming the stream = %s", got)
		}
		m.set(t, user("anna", []string{"a"}, nil))
		if got := m.send(t, "token-anna", "GET", "/mcp", "", header...); strings.Contains(got, "held") {
			t.Errorf("with fewer rights, resuming the stream = %s", got)
		}
	})
}

// More rights do not disturb what runs.
func TestMoreRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{}, user("anna", []string{"a"}, nil))
		s := m.open(t, "anna")
		listening := m.start(t, "token-anna", "GET", "/mcp", "", inSession(s)...)
		running, _ := m.call(t, "token-anna", s, 70)
		m.set(t, user("anna", []string{"a", "b"}, nil))
		time.Sleep(2 * soon)
		if got := text(t, s, "read"); got != "a,b a,b" {
			t.Errorf("the next request = %q", got)
		}
		if len(m.closed) > 0 {
			t.Error("the work of calls that run was ended")
		}
		close(m.release)
		if got := read(t, running); !strings.Contains(got, "held a") {
			t.Errorf("the call = %s", got)
		}
		_, streams := m.table.Sessions()
		if streams != 1 {
			t.Errorf("%d streams are open, want 1", streams)
		}
		listening.Body.Close() // ends it
		m.end()
		if len(m.closed) != 2 {
			t.Errorf("%d of 2 kinds of work were ended with the server", len(m.closed))
		}
	})
}

// A request that was let in before the rights changed does not restore them.
func TestOlderRequest(t *testing.T) {
	m := newTeam(t, users.Options{}, user("anna", []string{"a", "b"}, nil))
	authenticate := func() context.Context {
		r, err := http.NewRequestWithContext(t.Context(), "POST", host+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer token-anna")
		ctx, refusal := m.table.Authenticate(r)
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		return ctx
	}
	before := authenticate()
	m.set(t, user("anna", []string{"a"}, nil))
	after := authenticate()
	for _, ctx := range []context.Context{before, after, before} {
		if got := labels(m.table.User(ctx).View().(view).caller); ctx == after && got != "a" {
			t.Errorf("the next request sees %s", got)
		}
	}
	if got := labels(m.table.User(before).View().(view).caller); got != "a" {
		t.Errorf("the older request has restored the view of %s", got)
	}
	if got := text(t, m.open(t, "anna"), "read"); got != "a a" {
		t.Errorf("afterwards, the user reads %q", got)
	}
}

// A user has limits of their own, of which the calls of all paths are part.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{Limits: mcpserver.LimiterOptions{InFlight: 2}},
			user("anna", []string{"a"}, nil), user("ben", []string{"b"}, nil))
		anna, ben, other := m.open(t, "anna"), m.open(t, "ben"), m.session(t, "anna", "/mcp/a")
		other.Initialize("2025-11-25")
		held := []int{anna.Start("tools/call", map[string]any{"name": "hold"}),
			other.Start("tools/call", map[string]any{"name": "hold"})}
		<-m.started
		<-m.started
		began := time.Now()
		_, err := anna.Tool("read", nil)
		if err == nil || err.Field("code") != "BUSY" || err.Field("retryAfterMs") != "1000" {
			t.Errorf("a call over the limit = %v", err)
		}
		res := m.start(t, "token-anna", "GET", "/fess", "")
		if body := read(t, res); res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" ||
			!strings.Contains(body, "busy") {
			t.Errorf("/fess over the limit = %d %v %s", res.StatusCode, res.Header, body)
		}
		if took := time.Since(began); took < 3*time.Second {
			t.Errorf("two calls over the limit waited %v", took)
		}
		began = time.Now()
		if got := text(t, ben, "read"); got != "b b" || time.Since(began) > 0 {
			t.Errorf("another user is answered %q after %v", got, time.Since(began))
		}
		if n := m.table.Calls(); n != 2 {
			t.Errorf("%d calls run, want 2", n)
		}
		close(m.release)
		for i, s := range []*mcptest.Session{anna, other} {
			if got, err := s.ToolText(s.Wait(held[i])); err != nil || !strings.Contains(got, "held a") {
				t.Errorf("a call within the limit = %s, %v", got, err)
			}
		}
		synctest.Wait()
		if n := m.table.Calls(); n != 0 {
			t.Errorf("%d calls run, want 0", n)
		}
	})
}

// Calls beyond the rate are refused at once, and say when to try again.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{Limits: mcpserver.LimiterOptions{Rate: 4}},
			user("anna", []string{"a"}, nil), user("ben", []string{"b"}, nil))
		anna, ben := m.open(t, "anna"), m.open(t, "ben")
		for i := range 4 {
			if got := text(t, anna, "read"); got != "a a" {
				t.Errorf("call %d = %q", i, got)
			}
		}
		if _, err := anna.Tool("read", nil); err == nil || err.Field("code") != "BUSY" || err.Field("retryAfterMs") != "250" {
			t.Errorf("a call beyond the rate = %v", err)
		}
		res := m.start(t, "token-anna", "GET", "/fess", "")
		if read(t, res); res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" {
			t.Errorf("/fess beyond the rate = %d %v", res.StatusCode, res.Header)
		}
		if got := text(t, ben, "read"); got != "b b" {
			t.Errorf("another user is answered %q", got)
		}
		time.Sleep(250 * time.Millisecond)
		if got := m.send(t, "token-anna", "GET", "/fess", ""); got != "200 a" {
			t.Errorf("when it was said, /fess = %s", got)
		}
		for range 100 { // what keeps a session alive is not limited
			if m := anna.Call("ping", nil); m.Error != nil {
				t.Fatalf("ping = %v", m.Error)
			}
		}
	})
}

// Every call is recorded once, however it ends.
func TestCallsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{Limits: mcpserver.LimiterOptions{Rate: 5, InFlight: 2}},
			user("anna", []string{"a"}, nil))
		check := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, m.recorded()); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", what, diff)
			}
		}
		s := m.open(t, "anna")
		check("a new session", "anna /mcp initialize 200")
		text(t, s, "read")
		toolNames(t, s)
		check("calls", "anna /mcp read 200", "anna /mcp tools/list 200")
		text(t, s, "write")
		check("a tool that does not exist", "anna /mcp write -32602 UNKNOWN_TOOL")
		id := s.Start("tools/call", map[string]any{"name": "hold"})
		<-m.started
		s.Cancel(id)
		check("a call that is cancelled", "anna /mcp hold -32800 CANCELLED")
		s.Call("resources/read", map[string]any{"uri": "x"})
		check("a method that is not supported", "anna /mcp resources/read -32002 NOT_FOUND")
		s.Call("nothing/here", nil)
		check("a method that does not exist", "anna /mcp POST -32601")
		s.Call("ping", nil)
		check("a ping")
		time.Sleep(time.Second)
		m.send(t, "token-anna", "GET", "/fess", "")
		check("/fess", "anna /fess GET 200")
		m.send(t, "token-anna", "POST", "/mcp", "[", inSession(s)...)
		check("a body that is not JSON", "anna /mcp POST 400")
		m.send(t, "token-anna", "POST", "/mcp", tool(1, "read"), "Mcp-Session-Id: another")
		check("a session that does not exist", "anna /mcp POST 404")
		m.send(t, "", "POST", "/mcp", tool(1, "read"), inSession(s)...)
		m.send(t, "wrong", "POST", "/fess", "")
		m.send(t, "wrong", "GET", "/none", "")
		check("no token, and a wrong one", " /fess POST 401", " /mcp POST 401", " /none GET 401")
		m.send(t, "token-anna", "GET", "/none", "")
		check("a path that does not exist", "anna /none GET 404")
		m.send(t, "token-anna", "GET", "/fess", "", "Origin: https://evil.example")
		check("a foreign page", "anna /fess GET 403")
		res := m.start(t, "token-anna", "GET", "/mcp", "", inSession(s)...)
		res.Body.Close() // ends the stream
		check("a stream", "anna /mcp GET 200")
		time.Sleep(time.Second)
		for range 6 {
			m.send(t, "token-anna", "GET", "/fess", "")
		}
		text(t, s, "read")
		check("calls beyond the rate", "anna /fess GET 200", "anna /fess GET 200", "anna /fess GET 200", "anna /fess GET 200",
			"anna /fess GET 200", "anna /fess GET 429", "anna /mcp read -31429 BUSY")
		m.send(t, "token-anna", "DELETE", "/mcp", "", inSession(s)...)
		check("the end of a session", "anna /mcp DELETE 204")
		for range 200 {
			m.send(t, "", "GET", "/fess", "")
			m.send(t, "token-anna", "GET", "/none", "")
		}
		synctest.Wait()
		unknown, known := 0, 0
		for _, call := range m.recorded() {
			if call == " /fess GET 401" {
				unknown++
			} else if call == "anna /none GET 404" {
				known++
			}
		}
		if unknown < 50 || unknown > 150 || known != 200 {
			t.Errorf("of 200 refused requests each, %d without a token and %d of a user are recorded", unknown, known)
		}
	})
}

// What cannot be recorded is not answered.
func TestCallsThatCannotBeRecorded(t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		t.Run(fmt.Sprintf("at the end %t", atEnd), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTeam(t, users.Options{}, user("anna", []string{"a"}, nil))
				s := m.open(t, "anna")
				m.fail(fmt.Errorf("the file cannot be written: %w", errkind.Unavailable), atEnd)
				if _, err := s.Tool("read", nil); err == nil || err.Field("code") != "UNAVAILABLE" ||
					!strings.Contains(err.Message, "the file cannot be written") {
					t.Errorf("the tool = %v", err)
				}
				res := m.start(t, "token-anna", "GET", "/fess", "")
				if body := read(t, res); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" ||
					!strings.Contains(body, "the file cannot be written") {
					t.Errorf("/fess = %d %s", res.StatusCode, body)
				}
				if got := m.session(t, "anna", "/mcp").Handshake("2025-11-25"); got.Error == nil {
					t.Errorf("initialize = %s", got.Raw)
				}
				m.fail(nil, false)
				if got := text(t, s, "read"); got != "a a" {
					t.Errorf("afterwards, the tool = %q", got)
				}
			})
		})
	}
}

// A user without sessions is forgotten after an hour, and one with a session is not.
func TestUsersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{}, user("anna", []string{"a"}, nil), user("ben", []string{"b"}, nil))
		anna, ben := m.open(t, "anna"), m.open(t, "ben")
		m.send(t, "token-anna", "DELETE", "/mcp", "", inSession(anna)...)
		stream := m.start(t, "token-ben", "GET", "/mcp", "", inSession(ben)...)
		for range 6 {
			time.Sleep(10 * time.Minute)
			if got := text(t, ben, "read"); got != "b b" {
				t.Fatalf("a session in use = %q", got)
			}
		}
		select {
		case name := <-m.closed:
			t.Errorf("after less than an hour, %s is forgotten", name)
		default:
		}
		time.Sleep(5 * time.Minute)
		if name := <-m.closed; name != "anna" {
			t.Errorf("%s is forgotten", name)
		}
		if got := text(t, ben, "read"); got != "b b" {
			t.Errorf("a session in use = %q", got)
		}
		if got := text(t, m.open(t, "anna"), "read"); got != "a a" {
			t.Errorf("a user that comes back = %q", got)
		}
		stream.Body.Close() // ends it
	})
}

// The work of a user that outlasts calls ends with the user, and with the server.
func TestWorkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{}, user("anna", []string{"a"}, nil), user("ben", []string{"b"}, nil))
		_, _ = m.open(t, "anna"), m.open(t, "ben")
		m.set(t, user("ben", []string{"b"}, nil))
		time.Sleep(soon)
		if name := <-m.closed; name != "anna" || len(m.closed) > 0 {
			t.Errorf("the work of %s and %d others ends", name, len(m.closed))
		}
		m.end()
		if name := <-m.closed; name != "ben" || len(m.closed) > 0 {
			t.Errorf("the work of %s and %d others ends", name, len(m.closed))
		}
	})
}

// A server with open streams and running calls ends in time.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, users.Options{}, user("anna", []string{"a"}, nil), user("ben", []string{"b"}, nil))
		var reading sync.WaitGroup
		for _, name := range []string{"anna", "ben"} {
			s := m.open(t, name)
			running, _ := m.call(t, "token-"+name, s, 70)
			for _, res := range []*http.Response{running, m.start(t, "token-"+name, "GET", "/mcp", "", inSession(s)...),
				m.start(t, "token-"+name, "GET", "/mcp", "", "Accept: text/event-stream")} {
				reading.Go(func() {
					defer res.Body.Close() // read to its end
					if got, err := io.ReadAll(res.Body); err != nil || strings.Contains(string(got), "held") {
						t.Errorf("a stream ended with %s, %v", got, err)
					}
				})
			}
		}
		began := time.Now()
		m.end()
		if took := time.Since(began); took > soon {
			t.Errorf("the end took %v", took)
		}
		reading.Wait()
	})
}

// On stdio, the client is not one of the users, and may do everything.
func TestStdio(t *testing.T) {
	m := &team{started: make(chan string, 1), closed: make(chan string, 10)}
	table := users.New(users.Options{Calls: users.Calls{Record: m.record},
		View: func(c *access.Caller) users.View { return view{m, c} }})
	s := mcptest.Stdio(t, table.User(t.Context()).MCP("").ServeStdio)
	s.Initialize("2025-11-25")
	if got := text(t, s, "read"); got != "everything everything" {
		t.Errorf("the tool answers %q", got)
	}
	if diff := cmp.Diff([]string{" /mcp initialize 200", " /mcp read 200"}, m.recorded()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	m.fail(errors.New("disk"), true)
	if got := text(t, s, "read"); !strings.HasPrefix(got, "error: ") || strings.Contains(got, "disk") {
		t.Errorf("a call that cannot be recorded = %q", got)
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
