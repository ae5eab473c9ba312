package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// newPool returns a pool that is closed at the test's end.
func newPool(t testing.TB, o Options, servers ...mcpsettings.Server) *Pool {
	t.Helper()
	o.Servers = servers
	o.Version = "1.2.3"
	p := New(o)
	t.Cleanup(func() {
		if err := p.Close(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Close() = %v", err)
		}
	})
	return p
}

func toolCall(name, arguments string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
}

func mustCall(t testing.TB, p *Pool, server, tool, arguments string) string {
	t.Helper()
	got, err := p.Call(t.Context(), server, "tools/call", toolCall(tool, arguments))
	if err != nil {
		t.Fatalf("calling %s: %v", tool, err)
	}
	return string(got)
}

func lines(t testing.TB, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// until waits for something outside this process to come about.
func until(t testing.TB, come func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); !come(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Error("waited for a minute in vain")
			return
		}
	}
}

// logBuffer collects a log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestLazySharedReused(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	p := newPool(t, Options{}, fakeSettings("fake", "normal", "FAKE_STARTS", starts))
	if got := p.Status()[0].State; got != stateIdle || len(lines(t, starts)) != 0 {
		t.Fatalf("before the first call the state is %q and %d processes were started", got, len(lines(t, starts)))
	}
	var wg sync.WaitGroup
	pids := make([]string, 16)
	for i := range pids {
		wg.Go(func() {
			got, err := p.Call(t.Context(), "fake", "tools/call", toolCall("pid", "{}"))
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			pids[i] = string(got)
		})
	}
	wg.Wait()
	for _, pid := range pids {
		if pid != pids[0] {
			t.Errorf("a call went to process %s, others to %s", pid, pids[0])
		}
	}
	mustCall(t, p, "fake", "pid", "{}")
	if got := lines(t, starts); len(got) != 1 {
		t.Errorf("%d processes were started, want 1", len(got))
	}
	if got := p.Status()[0]; got.State != stateReady || got.Tools != -1 || got.Error != "" {
		t.Errorf("Status() = %+v, want a ready server with unknown tools", got)
	}
}

func TestResultsAreFaithful(t *testing.T) {
	p := newPool(t, Options{}, fakeSettings("fake", "normal banner"))
	for _, arguments := range []string{
		`{"b":1,"a":1.0,"a":2e3,"<&>":" \/é\u00e9"}`, `[1,  2]`, `null`, `"x\ny"`, `9007199254740993`,
	} {
		want := arguments
		if arguments == `[1,  2]` {
			want = `[1,2]` // spaces between are not kept on the way there
		}
		if got := mustCall(t, p, "fake", "echo", arguments); got != want {
			t.Errorf("echo of %s = %s, want %s", arguments, got, want)
		}
	}
	params := "{\n \"name\": \"params\",\n\t\"task\":{\"ttl\":1}, \"_meta\":{\"x\":1}\n}"
	got, err := p.Call(t.Context(), "fake", "tools/call", json.RawMessage(params))
	if want := `{"name":"params","task":{"ttl":1},"_meta":{"x":1}}`; err != nil || string(got) != want {
		t.Errorf("params came as %s, %v, want %s", got, err, want)
	}
	if got := mustCall(t, p, "fake", "big", "{}"); len(got) != 3<<20+2 {
		t.Errorf("a big result has %d bytes, want %d", len(got), 3<<20+2)
	}
}

func TestTasksPass(t *testing.T) {
	p := newPool(t, Options{}, fakeSettings("fake", "normal"))
	got, err := p.Call(t.Context(), "fake", "tools/call", json.RawMessage(`{"name":"task","task":{"ttl":600000}}`))
	if want := `{"task":{"taskId":"t1","status":"working","ttl":{"ttl":600000}}}`; err != nil || string(got) != want {
		t.Errorf("tools/call as task = %s, %v, want %s", got, err, want)
	}
	got, err = p.Call(t.Context(), "fake", "tasks/get", json.RawMessage(`{"taskId":"t1"}`))
	if want := `{"taskId":"t1","status":"completed","createdAt":"x","ttl":null,"pollInterval":5}`; err != nil ||
		string(got) != want {
		t.Errorf("tasks/get = %s, %v, want %s", got, err, want)
	}
	_, err = p.Call(t.Context(), "fake", "tasks/status", json.RawMessage(`{}`))
	if remote, ok := errors.AsType[*RemoteError](err); !ok || remote.Code != -32601 ||
		string(remote.Data) != `{"x":1}` {
		t.Errorf("an unknown method gave %v, want the server's error -32601", err)
	}
}

func TestCatalog(t *testing.T) {
	log := &logBuffer{}
	filtered := fakeSettings("filtered", "normal")
	filtered.Include, filtered.Exclude = []string{"e*", "z?ta"}, []string{"*eta"}
	p := newPool(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		fakeSettings("fake", "normal"), fakeSettings("pages", "pages"), filtered, fakeSettings("endless", "endless"))
	got, err := p.Catalog(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	want := &Catalog{
		Server: "fake", Instructions: "be nice", TaskCalls: true,
		Tools: []Tool{
			{
				Name: "echo", Title: "Echo", Description: "says it",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},` +
					`"a":{"type":"number","default":1.0}}}`),
				OutputSchema: json.RawMessage(`{"x":1}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`),
				TaskSupport: "optional",
			},
			{Name: "zeta", InputSchema: json.RawMessage(`{"type":"object"}`)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Catalog() differs (-want +got):\n%s", diff)
	}
	if again, err := p.Catalog(t.Context(), "fake"); err != nil || again != got {
		t.Errorf("the second Catalog() = %p, %v, want the kept one %p", again, err, got)
	}
	for _, want := range []string{`level=INFO msg="Connecting to server: fake"`,
		`level=INFO msg="Fetched 2 tools from fake"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, log)
		}
	}
	pages, err := p.Catalog(t.Context(), "pages")
	if err != nil || len(pages.Tools) != 10 || pages.Tools[1].Name != "tool_0_b" {
		t.Errorf("Catalog() of five pages = %+v, %v, want 10 sorted tools", pages, err)
	}
	few, err := p.Catalog(t.Context(), "filtered")
	if err != nil || len(few.Tools) != 1 || few.Tools[0].Name != "echo" {
		t.Errorf("Catalog() with globs = %+v, %v, want echo alone", few, err)
	}
	if _, err := p.Call(t.Context(), "filtered", "tools/call", toolCall("zeta", "{}")); !errors.Is(err,
		errkind.Denied) {
		t.Errorf("calling a tool that is left out gave %v, want Denied", err)
	}
	if got := mustCall(t, p, "filtered", "echo", "1"); got != "1" {
		t.Errorf("calling a tool that is let through gave %s", got)
	}
	if _, err := p.Catalog(t.Context(), "endless"); !errors.Is(err, errkind.Unavailable) ||
		!strings.Contains(err.Error(), "does not end") {
		t.Errorf("a list without end gave %v", err)
	}
	states := map[string]int{}
	for _, st := range p.Status() {
		states[st.ID] = st.Tools
	}
	if diff := cmp.Diff(map[string]int{"fake": 2, "pages": 10, "filtered": 1, "endless": -1}, states); diff != "" {
		t.Errorf("numbers of tools differ (-want +got):\n%s", diff)
	}
}

// TestLeftOut has a list of tools with entries that are none.
func TestLeftOut(t *testing.T) {
	log := &logBuffer{}
	messy := fakeSettings("fake", "messy", "FAKE_SECRET", "hunter2-hunter2")
	p := newPool(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))}, messy, fakeSettings("pages", "pages"))
	for range 2 {
		c, err := p.Catalog(t.Context(), "fake")
		if err != nil || len(c.Tools) != 2 {
			t.Fatalf("Catalog() = %+v, %v, want two tools", c, err)
		}
		p.servers["fake"].listChanged()
		if _, err := p.Catalog(t.Context(), "pages"); err != nil {
			t.Fatal(err)
		}
	}
	var warnings []string
	for line := range strings.Lines(log.String()) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "level=WARN "); ok {
			warnings = append(warnings, text)
		}
	}
	text := `Left out 12 entries of the tools of fake: an entry has no name; an entry is not an object with ` +
		`members of the right types; ` +
		`an entry has no name; "odd" is not an object with members of the right types; "***" has a name that ` +
		`occurred before`
	if diff := cmp.Diff([]string{"msg=" + strconv.Quote(text), "msg=" + strconv.Quote(text)}, warnings); diff != "" {
		t.Errorf("the warnings differ (-want +got):\n%s", diff)
	}
}

// TestExpandedSecrets has a server that writes to stderr what the settings took
// from the environment into its arguments.
func TestExpandedSecrets(t *testing.T) {
	t.Setenv("LICENCE_OF_BOB", "abcd-efgh-1234")
	log := &logBuffer{}
	for _, behaviour := range []string{"talks die", "talks refuses"} {
		srv := fakeSettings("fake", behaviour)
		srv.Args, srv.Expanded = []string{"abcd-efgh-1234", "plain"}, []string{"LICENCE_OF_BOB"}
		p := newPool(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
			srv)
		_, err := p.Call(t.Context(), "fake", "tools/call", toolCall("echo", "1"))
		failed, ok := errors.AsType[*ServerError](err)
		if !ok || !strings.Contains(failed.Stderr, "starting with [*** plain]") {
			t.Errorf("a server that is to %s gave %v, want the end of its stderr", behaviour, err)
		}
		if all := fmt.Sprintf("%v %+v", err, p.Status()); strings.Contains(all, "efgh") {
			t.Errorf("a server that is to %s gave away a secret: %s", behaviour, all)
		}
	}
	if !strings.Contains(log.String(), "starting with [*** plain]") || strings.Contains(log.String(), "efgh") {
		t.Errorf("the log lacks the line or contains the secret:\n%s", log)
	}
}

func TestKindsOfErrors(t *testing.T) {
	problem := errors.New("TOKEN is not set")
	off, bad, missing := fakeSettings("off", "normal"), fakeSettings("bad", "normal"), fakeSettings("missing", "normal")
	off.Disabled, bad.Problem, missing.Command = true, problem, "no-such-command-here"
	p := newPool(t, Options{}, off, bad, missing, fakeSettings("github", "normal"),
		fakeSettings("ancient", "ancient"), fakeSettings("refuses", "refuses"))
	tests := []struct {
		server, method, params string
		kind                   error
		text                   string
	}{
		{"githbu", "tools/call", "{}", errkind.NotFound, `did you mean "github"?`},
		{"off", "tools/call", "{}", errkind.Denied, "disabled"},
		{"bad", "tools/call", "{}", problem, "TOKEN is not set"},
		{"missing", "tools/call", "{}", errkind.Unavailable,
			`the command "no-such-command-here" was not found; install it`},
		{"github", "initialize", "{}", errkind.Invalid, "belong to the connection"},
		{"github", "", "{}", errkind.Invalid, "method"},
		{"github", "notifications/cancelled", "{}", errkind.Invalid, "method"},
		{"github", "tools/call", "[]", errkind.Invalid, "params"},
		{"github", "tools/call", "{", errkind.Invalid, "valid JSON"},
		{"ancient", "tools/call", "{}", errkind.Unavailable, `"1999-01-01"`},
		{"refuses", "tools/call", "{}", errkind.Unavailable, "no licence"},
	}
	for _, tt := range tests {
		_, err := p.Call(t.Context(), tt.server, tt.method, json.RawMessage(tt.params))
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("Call(%s, %q, %s) = %v, want kind %v and %q", tt.server, tt.method, tt.params, err, tt.kind,
				tt.text)
		}
		if _, ok := errors.AsType[*RemoteError](err); ok {
			t.Errorf("Call(%s, %q, %s) passes for an answer of the server: %v", tt.server, tt.method, tt.params, err)
		}
	}
	_, err := p.Call(t.Context(), "github", "tools/call", toolCall("error", "{}"))
	if remote, ok := errors.AsType[*RemoteError](err); !ok || remote.Code != -32050 || remote.Message != "it broke\n" {
		t.Errorf("an error of the server came as %v", err)
	}
	for _, st := range p.Status() {
		if want := map[string]string{"bad": stateFailed, "github": stateReady, "missing": stateFailed,
			"off": stateIdle}[st.ID]; want != "" && st.State != want {
			t.Errorf("the state of %s is %q (%s), want %q", st.ID, st.State, st.Error, want)
		}
	}
}

// TestSecretsInErrors has servers answer with errors that contain a value of their
// settings.
func TestSecretsInErrors(t *testing.T) {
	const secret = "hunter2-hunter2"
	p := newPool(t, Options{}, fakeSettings("fake", "normal", "FAKE_SECRET", secret),
		fakeSettings("refuses", "refuses", "FAKE_SECRET", secret))
	_, err := p.Call(t.Context(), "fake", "tools/call", toolCall("betray", "{}"))
	want := &RemoteError{Code: -32051, Message: "*** was refused, password=***",
		Data: json.RawMessage(`{"why":["bad ***"],"***":2,"token_count":3}`)}
	if got, ok := errors.AsType[*RemoteError](err); !ok || !cmp.Equal(want, got) {
		t.Errorf("an error of the server came as %v:\n%s", err, cmp.Diff(want, got))
	}
	if _, err := p.Catalog(t.Context(), "refuses"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a handshake that was refused gave %v, want it without the secret", err)
	}
	for _, st := range p.Status() {
		if strings.Contains(st.Error, secret) {
			t.Errorf("the state of %s shows the secret: %s", st.ID, st.Error)
		}
	}
}

func TestCrash(t *testing.T) {
	dir := t.TempDir()
	starts, calls := filepath.Join(dir, "starts"), filepath.Join(dir, "calls")
	p := newPool(t, Options{}, fakeSettings("fake", "normal", "FAKE_STARTS", starts, "FAKE_CALLS", calls,
		"FAKE_SECRET", "hunter2-hunter2"))
	mustCall(t, p, "fake", "echo", "1")
	slow := make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), "fake", "tools/call", toolCall("slow", "{}"))
		slow <- err
	}()
	until(t, func() bool { return len(lines(t, calls)) == 2 })
	_, err := p.Call(t.Context(), "fake", "tools/call", toolCall("crash", "{}"))
	failed, ok := errors.AsType[*ServerError](err)
	if !ok || !errors.Is(err, errkind.Unavailable) || failed.Server != "fake" || failed.Op != "tools/call" {
		t.Fatalf("a crash gave %v, want a ServerError of kind Unavailable", err)
	}
	if !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(failed.Stderr, "out of cheese error") {
		t.Errorf("the error of a crash is %v, want exit status and stderr", err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error of a crash contains a secret: %v", err)
	}
	if err := <-slow; !errors.Is(err, errkind.Unavailable) { // at its own limit it would be a timeout
		t.Errorf("another call in flight ended with %v, want Unavailable", err)
	}
	if st := p.Status()[0]; st.State != stateFailed || !strings.Contains(st.Error, "exit status 3") {
		t.Errorf("Status() after a crash = %+v", st)
	}
	if got := mustCall(t, p, "fake", "echo", "2"); got != "2" {
		t.Errorf("after the restart echo gave %s", got)
	}
	if got := lines(t, starts); len(got) != 2 {
		t.Errorf("%d processes were started, want 2", len(got))
	}
	if got := lines(t, calls); len(got) != 4 {
		t.Errorf("the server saw %d calls, want 4: each once", len(got))
	}
	if st := p.Status()[0]; st.State != stateReady || st.Error != "" {
		t.Errorf("Status() after the restart = %+v", st)
	}
}

func TestDiesAtStart(t *testing.T) {
	t.Parallel()
	starts := filepath.Join(t.TempDir(), "starts")
	p := newPool(t, Options{}, fakeSettings("fake", "die", "FAKE_STARTS", starts, "FAKE_SECRET", "hunter2-hunter2"))
	_, err := p.Call(t.Context(), "fake", "tools/call", toolCall("echo", "1"))
	failed, ok := errors.AsType[*ServerError](err)
	if !ok || !errors.Is(err, errkind.Unavailable) || !strings.Contains(err.Error(), "exit status 7") {
		t.Fatalf("a server that dies at its start gave %v", err)
	}
	if want := `cannot find module \x1b[31mleft-pad\x1b[0m, key=***`; failed.Stderr != want {
		t.Errorf("the end of stderr is %q, want %q", failed.Stderr, want)
	}
	if got := len(lines(t, starts)); got != 1+maxRetries {
		t.Errorf("it was started %d times, want %d", got, 1+maxRetries)
	}
}

func TestHangingHandshake(t *testing.T) {
	t.Parallel()
	// enough to start on a busy machine
	p := newPool(t, Options{ConnectTimeout: 10 * time.Second}, fakeSettings("fake", "hang"))
	_, err := p.Catalog(t.Context(), "fake")
	if !errors.Is(err, errkind.Unavailable) || errors.Is(err, errkind.Timeout) ||
		!strings.Contains(err.Error(), "not ready within 10s") {
		t.Errorf("a server that hangs gave %v, want Unavailable and the limit", err)
	}
	if failed, ok := errors.AsType[*ServerError](err); !ok || failed.Stderr != "still downloading" {
		t.Errorf("the error does not contain the end of stderr: %#v", err)
	}
}

func TestCancelAndTimeout(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	calls := filepath.Join(t.TempDir(), "calls")
	limited := fakeSettings("limited", "cancellable", "FAKE_NOTES", notes+"2")
	limited.Timeout = 50 * time.Millisecond
	p := newPool(t, Options{}, fakeSettings("fake", "cancellable", "FAKE_NOTES", notes, "FAKE_CALLS", calls), limited)
	mustCall(t, p, "fake", "echo", "1")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		until(t, func() bool { return len(lines(t, calls)) == 2 })
		cancel()
	}()
	if _, err := p.Call(ctx, "fake", "tools/call", toolCall("slow", "{}")); !errors.Is(err, context.Canceled) ||
		errors.Is(err, errkind.Unavailable) {
		t.Errorf("a cancelled call gave %v, want context.Canceled", err)
	}
	if _, err := p.Call(t.Context(), "limited", "tools/call", toolCall("slow", "{}")); !errors.Is(err,
		errkind.Timeout) || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("a call beyond its limit gave %v, want Timeout and the limit", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer stop()
	if _, err := p.Call(ctx, "fake", "tools/call", toolCall("slow", "{}")); !errors.Is(err, errkind.Timeout) {
		t.Errorf("a call beyond the caller's limit gave %v, want Timeout", err)
	}
	for file, want := range map[string]string{notes: `notifications/cancelled {"requestId":3,"reason":"the caller gave up"}`, notes + "2": `"reason":"timeout"`} {
		until(t, func() bool {
			b, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(b), want)
		})
	}
	if got := mustCall(t, p, "fake", "echo", "2"); got != "2" {
		t.Errorf("after a cancelled call echo gave %s", got)
	}
}

func TestRequestsOfTheServer(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	p := newPool(t, Options{}, fakeSettings("fake", "normal", "FAKE_NOTES", notes))
	refused := `{"code":-32601,"message":"this client offers no such method"}`
	for method, want := range map[string]string{"ping": "{}", "roots/list": refused, "sampling/createMessage": refused,
		"elicitation/create": refused} {
		if got := mustCall(t, p, "fake", "ask", `"`+method+`"`); got != want {
			t.Errorf("%s was answered with %s, want %s", method, got, want)
		}
	}
	b, err := os.ReadFile(notes)
	want := `initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"knowhow",` +
		`"version":"1.2.3"}}` +
		"\nnotifications/initialized \n"
	if err != nil || string(b) != want {
		t.Errorf("the handshake was %q, %v, want %q", b, err, want)
	}
}

func TestGiantMessage(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{}, fakeSettings("fake", "normal"))
	_, err := p.Call(t.Context(), "fake", "tools/call", toolCall("giant", "{}"))
	if !errors.Is(err, errkind.Unavailable) || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("a giant message gave %v", err)
	}
	if got := mustCall(t, p, "fake", "echo", "1"); got != "1" {
		t.Errorf("after a giant message echo gave %s", got)
	}
}

func TestModernServer(t *testing.T) {
	p := newPool(t, Options{}, fakeSettings("fake", "modern"))
	c, err := p.Catalog(t.Context(), "fake")
	if err != nil || p.servers["fake"].intro.Protocol != revisionModern || len(c.Tools) != 2 {
		t.Fatalf("Catalog() of a server without a handshake = %+v, %v", c, err)
	}
	got, err := p.Call(t.Context(), "fake", "tools/call", json.RawMessage(`{"name":"params"}`))
	want := `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"knowhow","version":"1.2.3"},` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"params"}`
	if err != nil || string(got) != want {
		t.Errorf("the request was %s, %v, want %s", got, err, want)
	}
}

func TestAfterClose(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	p := newPool(t, Options{}, fakeSettings("fake", "normal", "FAKE_CALLS", calls), fakeSettings("other", "normal"))
	mustCall(t, p, "fake", "echo", "1")
	slow := make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), "fake", "tools/call", toolCall("slow", "{}"))
		slow <- err
	}()
	until(t, func() bool { return len(lines(t, calls)) == 2 })
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if err := <-slow; !errors.Is(err, errkind.Unavailable) {
		t.Errorf("a call in flight ended with %v, want Unavailable", err)
	}
	for _, id := range []string{"fake", "other"} {
		if _, err := p.Call(t.Context(), id, "tools/call", toolCall("echo", "1")); !errors.Is(err,
			errkind.Unavailable) {
			t.Errorf("a call of %s after Close gave %v, want Unavailable", id, err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("the second Close() = %v", err)
	}
}
