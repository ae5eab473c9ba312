package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// A fakeLink is a connection without a process: it answers every request with
// its own params, unless it is mute.
type fakeLink struct {
	sess *session
	mute bool
	keep bool // nothing is sent, as if the server did not read
	// eager makes the server report changed tools before it is initialized.
	eager bool
	// answer writes the messages with which the server answers a request other
	// than initialize; nil answers with the params.
	answer func(m fakeMessage, write func(message string))

	mu     sync.Mutex
	posted []string
	closed bool
}

const toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

func (l *fakeLink) send(ctx context.Context, c *call, frame []byte) error {
	if c == nil || l.keep {
		return nil
	}
	c.sent.Store(true)
	if l.mute {
		return nil
	}
	var m fakeMessage
	if err := json.Unmarshal(frame, &m); err != nil {
		return err
	}
	result := string(m.Params)
	if result == "" {
		result = "{}"
	}
	if m.Method == "initialize" {
		if l.eager {
			l.sess.receive(ctx, nil, []byte(toolsChanged))
		}
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}`
	} else if l.answer != nil {
		go l.answer(m, func(message string) { l.sess.receive(context.WithoutCancel(ctx), nil, []byte(message)) })
		return nil
	}
	l.sess.receive(ctx, nil, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%s","result":%s}`, m.ID, result))
	return nil
}

func (l *fakeLink) post(_ context.Context, frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.posted = append(l.posted, string(frame))
}

func (l *fakeLink) withdraw(c *call) bool          { return !c.sent.Load() }
func (l *fakeLink) agreed(context.Context, string) {}
func (l *fakeLink) halt()                          {}

func (l *fakeLink) close(<-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

func (l *fakeLink) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// linked returns a pool whose one server, "fake", is reached by fake links.
func linked(o Options, make func(n int) (*fakeLink, error)) (*Pool, *server) {
	o.Servers = []mcpsettings.Server{{ID: "fake", Transport: mcpsettings.Stdio}}
	p := New(o)
	s := p.servers["fake"]
	opened := 0
	s.open = func(ctx context.Context) (*session, *introduction, error) {
		opened++
		return s.dialWith(ctx, func(sess *session) error {
			l, err := make(opened)
			if err != nil {
				return err
			}
			l.sess, sess.link = sess, l
			return nil
		})
	}
	return p, s
}

func TestIdleClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var links []*fakeLink
		p, _ := linked(Options{IdleTimeout: time.Minute, CallTimeout: time.Hour}, func(int) (*fakeLink, error) {
			links = append(links, &fakeLink{})
			return links[len(links)-1], nil
		})
		defer p.Close(t.Context())
		call := func() {
			if got, err := p.Call(t.Context(), "fake", "x", json.RawMessage(`{"a":1}`)); err != nil ||
				string(got) != `{"a":1}` {
				t.Errorf("Call() = %s, %v", got, err)
			}
		}
		call()
		time.Sleep(59 * time.Second)
		call() // starts the minute again
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if len(links) != 1 || links[0].isClosed() {
			t.Fatalf("the connection was closed before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if st := p.Status()[0]; !links[0].isClosed() || st.State != stateIdle || st.Error != "" {
			t.Errorf("after a minute the connection is closed: %v, Status() = %+v", links[0].isClosed(), st)
		}
		call()
		if len(links) != 2 {
			t.Errorf("%d connections were made, want 2", len(links))
		}
		// Nothing is closed while a call is in flight.
		links[1].mute = true
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := p.Call(ctx, "fake", "x", nil); !errors.Is(err, errkind.Timeout) {
			t.Errorf("a mute server gave %v, want Timeout", err)
		}
		if links[1].isClosed() {
			t.Error("the connection was closed while a call was in flight")
		}
		if len(links[1].posted) != 1 || !strings.Contains(links[1].posted[0], "notifications/cancelled") {
			t.Errorf("the server heard %q, want that the call was cancelled", links[1].posted)
		}
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		begin := time.Now()
		works := false
		p, s := linked(Options{}, func(int) (*fakeLink, error) {
			starts = append(starts, time.Since(begin))
			if works {
				return &fakeLink{}, nil
			}
			return nil, errors.New("no luck")
		})
		defer p.Close(t.Context())
		call := func() error {
			_, err := p.Call(t.Context(), "fake", "x", nil)
			return err
		}
		for range 5 {
			if err := call(); !errors.Is(err, errkind.Unavailable) || !strings.Contains(err.Error(), "no luck") {
				t.Errorf("Call() = %v, want Unavailable and the reason", err)
			}
		}
		ms := time.Millisecond
		want := []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms}
		if fmt.Sprint(starts) != fmt.Sprint(want) {
			t.Errorf("the server was started at %v, want %v", starts, want)
		}
		works = true
		if err := call(); err == nil || !strings.Contains(err.Error(), "tried again in 3s") {
			t.Errorf("a call during the backoff gave %v, want the time to wait", err)
		}
		time.Sleep(3200 * ms)
		if err := call(); err != nil {
			t.Errorf("after the backoff Call() = %v", err)
		}
		// It was healthy: after it breaks it is started again at once.
		before := time.Now()
		s.sess.fail(errors.New("gone"))
		synctest.Wait()
		if err := call(); err != nil || time.Since(before) != 0 {
			t.Errorf("after a crash Call() = %v after %v, want at once", err, time.Since(before))
		}
	})
}

// TestCallsDuringBackoff asks again and again before the server may be started.
func TestCallsDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := linked(Options{}, nil)
		defer p.Close(t.Context())
		s.open = func(context.Context) (*session, *introduction, error) {
			return nil, nil, &ServerError{Server: "fake", Op: "connecting", Stderr: "no licence",
				Err: errors.New("it ended")}
		}
		const original = `server "fake": connecting: it ended; its stderr ends with "no licence"`
		call := func() string {
			_, err := p.Call(t.Context(), "fake", "x", nil)
			if failed, ok := errors.AsType[*ServerError](err); !ok || !errors.Is(err, errkind.Unavailable) ||
				failed.Stderr != "no licence" {
				t.Fatalf("Call() = %v, want Unavailable and the end of stderr", err)
			}
			return err.Error()
		}
		for s.failures < 6 { // then the wait is 3.2 s
			if got := call(); got != original {
				t.Fatalf("Call() = %s, want %s", got, original)
			}
		}
		for range 100 {
			if got, want := call(),
				`server "fake": connecting: it ended; it is tried again in 3s; its stderr ends with "no licence"`; got != want {
				t.Fatalf("Call() = %s, want %s", got, want)
			}
			if got := p.Status()[0]; got.Error != original || got.State != stateFailed {
				t.Fatalf("Status() = %+v, want the failure %s", got, original)
			}
		}
	})
}

// TestCrashBeforeTheLimit has servers whose first tries fail for a reason and
// whose last ends with the time to connect, at work or in the wait before it.
func TestCrashBeforeTheLimit(t *testing.T) {
	for _, tt := range []struct {
		limit time.Duration
		tries int
		took  time.Duration
		want  string
	}{
		{2500 * time.Millisecond, 3, 2500 * time.Millisecond, "it ended 2"},
		{1050 * time.Millisecond, 1, time.Second, "it ended 1"},
		{900 * time.Millisecond, 1, 900 * time.Millisecond, "not ready within 900ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, s := linked(Options{ConnectTimeout: tt.limit}, nil)
			defer p.Close(t.Context())
			tries := 0
			s.open = func(ctx context.Context) (*session, *introduction, error) {
				tries++
				if !pause(ctx, time.Second) {
					return nil, nil, &ServerError{Server: "fake", Op: "initialize", Stderr: "starting",
						Kind: errkind.Timeout, Err: ctx.Err()}
				}
				return nil, nil, &ServerError{Server: "fake", Op: "initialize", Stderr: "no licence",
					Err: fmt.Errorf("it ended %d", tries)}
			}
			begin := time.Now()
			_, err := p.Call(t.Context(), "fake", "x", nil)
			failed, ok := errors.AsType[*ServerError](err)
			if !ok || !strings.Contains(err.Error(), tt.want) ||
				failed.Stderr == "no licence" != strings.Contains(tt.want, "ended") {
				t.Errorf("with %v Call() = %v, want %q and the stderr of that try", tt.limit, err, tt.want)
			}
			if took := time.Since(begin); tries != tt.tries || took != tt.took {
				t.Errorf("with %v there were %d tries in %v, want %d in %v", tt.limit, tries, took, tt.tries, tt.took)
			}
			if st := p.Status()[0]; st.Error != err.Error() {
				t.Errorf("with %v Status() = %+v, want the error %v", tt.limit, st, err)
			}
		})
	}
}

// TestNoTimeForTheWait has a wait that is longer than the time to connect.
func TestNoTimeForTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := linked(Options{ConnectTimeout: time.Second},
			func(int) (*fakeLink, error) { return nil, errors.New("no luck") })
		defer p.Close(t.Context())
		for range 2 {
			_, err := p.Call(t.Context(), "fake", "x", nil)
			if err == nil || !strings.Contains(err.Error(), "no luck") {
				t.Errorf("Call() = %v, want the reason", err)
			}
		}
		if s.failures != 5 {
			t.Fatalf("the server was started %d times, want 5", s.failures)
		}
		begin := time.Now()
		_, err := p.Call(t.Context(), "fake", "x", nil)
		if want := "no luck; it is tried again in 2s"; err == nil || !strings.Contains(err.Error(), want) ||
			time.Since(begin) != 0 {
			t.Errorf("Call() = %v after %v, want %q at once", err, time.Since(begin), want)
		}
	})
}

// TestUnsentIsSentAgain breaks connections before and after they took a call.
func TestUnsentIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var links []*fakeLink
		p, s := linked(Options{}, func(n int) (*fakeLink, error) {
			links = append(links, &fakeLink{})
			return links[n-1], nil
		})
		defer p.Close(t.Context())
		if _, err := p.Call(t.Context(), "fake", "x", nil); err != nil {
			t.Errorf("Call() = %v", err)
		}
		for _, sent := range []bool{false, true} {
			last := links[len(links)-1]
			last.mute, last.keep = sent, !sent
			n := len(links)
			done := make(chan error, 1)
			go func() {
				_, err := p.Call(t.Context(), "fake", "tools/call", json.RawMessage(`{"name":"pay"}`))
				done <- err
			}()
			synctest.Wait()
			s.sess.fail(errors.New("gone"))
			err := <-done
			switch {
			case sent && (!errors.Is(err, errkind.Unavailable) || len(links) != n):
				t.Errorf("a call that was sent gave %v over %d more connections, want Unavailable", err, len(links)-n)
			case !sent && (err != nil || len(links) != n+1):
				t.Errorf("a call that was not sent gave %v over %d more connections, want one more", err, len(links)-n)
			}
		}
	})
}

// A call may take longer than its limit while its server reports progress.
func TestProgressExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := linked(Options{CallTimeout: 300 * time.Millisecond}, func(int) (*fakeLink, error) {
			return &fakeLink{answer: func(m fakeMessage, write func(string)) {
				var params struct {
					Meta struct {
						Token json.RawMessage `json:"progressToken"`
					} `json:"_meta"`
				}
				if err := json.Unmarshal(m.Params, &params); err != nil {
					t.Error(err)
				}
				for i := range 10 {
					time.Sleep(50 * time.Millisecond)
					write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress",`+
						`"params":{"progressToken":%s,"progress":%d}}`, params.Meta.Token, i))
				}
				write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","result":{"done":true}}`, m.ID))
			}}, nil
		})
		defer p.Close(t.Context())
		got, err := p.Call(t.Context(), "fake", "tools/call",
			json.RawMessage(`{"name":"progress","_meta":{"progressToken":"p 1"}}`))
		if err != nil || string(got) != `{"done":true}` {
			t.Errorf("a slow call with progress gave %s, %v", got, err)
		}
		if _, err := p.Call(t.Context(), "fake", "tools/call", json.RawMessage(`{"name":"progress"}`)); !errors.Is(err,
			errkind.Timeout) {
			t.Errorf("a slow call without progress gave %v, want Timeout", err)
		}
		time.Sleep(time.Second) // the server ends its work
	})
}

// Changes of the tools are reported once, however many notifications come.
func TestToolsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := make(chan string, 10)
		p, _ := linked(Options{ToolsChanged: func(id string) { reports <- id }}, func(int) (*fakeLink, error) {
			return &fakeLink{eager: true, answer: func(m fakeMessage, write func(string)) {
				if m.Method == "storm" {
					for range 200 {
						write(toolsChanged)
					}
				}
				write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","result":{"tools":[]}}`, m.ID))
			}}, nil
		})
		defer p.Close(t.Context())
		first, err := p.Catalog(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := p.Call(t.Context(), "fake", "storm", json.RawMessage("{}")); err != nil {
				t.Fatal(err)
			}
		}
		second, err := p.Catalog(t.Context(), "fake")
		if err != nil || second == first {
			t.Errorf("after a change Catalog() = %p, %v, want another than %p", second, err, first)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var got []string
		for range len(reports) {
			got = append(got, <-reports)
		}
		if diff := cmp.Diff([]string{"fake"}, got); diff != "" {
			t.Errorf("ToolsChanged (-want +got)\n%s", diff)
		}
	})
}

// TestAttemptOutlivesCaller lets the first caller give up.
func TestAttemptOutlivesCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := linked(Options{}, func(int) (*fakeLink, error) {
			time.Sleep(time.Second)
			return &fakeLink{}, nil
		})
		defer p.Close(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := p.Call(ctx, "fake", "x", json.RawMessage("{}")); !errors.Is(err, errkind.Timeout) {
			t.Errorf("the first caller got %v, want Timeout", err)
		}
		if st := p.Status()[0]; st.State != stateConnecting {
			t.Errorf("the state is %q, want %q", st.State, stateConnecting)
		}
		if _, err := p.Call(t.Context(), "fake", "x", json.RawMessage("{}")); err != nil {
			t.Errorf("the second caller got %v", err)
		}
	})
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b", true}, {"a*c", "abbc", true},
		{"a*c", "abcd", false},
		{"*_*_x", "a_b_c_x", true}, {"?", "", false}, {"a?c", "abc", true}, {"[a]", "a", false}, {"[a]", "[a]", true},
		{"a**", "a", true},
	} {
		if got := patterns([]string{tt.glob})[0].MatchString(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.glob, tt.name, got, tt.want)
		}
	}
}

// FuzzReceive passes arbitrary output of a server to a session.
func FuzzReceive(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `[{"id":"1","error":{"code":"x"}}]`, `{"id":1,"error":7}`,
		`{"id":null,"error":{}}`,
		`{"method":"ping","id":[1]}`, `{"method":"notifications/progress","params":{"progressToken":1}}`, `[[[[`,
		`{"id":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		log := slog.New(slog.NewTextHandler(&logBuffer{}, &slog.HandlerOptions{Level: slog.LevelDebug}))
		p, s := linked(Options{Log: log}, nil)
		defer p.Close(t.Context())
		sess := newSession("fake", log, s.redact, func() {})
		l := &fakeLink{sess: sess, mute: true}
		sess.link = l
		c := &call{id: 1, token: json.RawMessage("1"), start: time.Now(), timeout: time.Hour, done: make(chan struct{})}
		c.timer = time.AfterFunc(time.Hour, func() {})
		defer c.timer.Stop()
		_, c.cancel = context.WithCancelCause(t.Context())
		defer c.cancel(nil)
		if err := sess.register(c); err != nil {
			t.Fatal(err)
		}
		sess.receive(t.Context(), nil, frame)
		if c.ended() && c.err == nil && !json.Valid(c.result) {
			t.Errorf("the result is %q", c.result)
		}
		for _, answer := range l.posted {
			if !json.Valid([]byte(answer)) {
				t.Errorf("the answer to %q is %q", frame, answer)
			}
		}
	})
}

func FuzzRequestFrame(f *testing.F) {
	f.Add("tools/call", []byte("{\"a\":\n1}"), []byte(`"x":1`))
	f.Add("x\n", []byte(` {"_meta":{}} `), []byte(`"x":1`))
	f.Fuzz(func(t *testing.T, method string, params, members []byte) {
		frame, err := requestFrame(7, method, params)
		if err != nil {
			return
		}
		if !json.Valid(frame) || strings.Count(string(frame), "\n") != 1 {
			t.Errorf("requestFrame(%q, %q) = %q, want JSON on one line", method, params, frame)
		}
		var meta map[string]any
		if json.Unmarshal([]byte("{"+string(members)+"}"), &meta) != nil {
			return
		}
		with, err := withMeta(params, meta)
		if err == nil && !json.Valid(with) {
			t.Errorf("withMeta(%q, %q) = %q, which is no JSON", params, members, with)
		}
	})
}
