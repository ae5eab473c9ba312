package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"

	"github.com/rogpeppe/go-internal/txtar"
)

// A recording has the messages of a client and a server over HTTP, with
// random names replaced.
type recording struct {
	t       *testing.T
	k       *kit
	site    *site
	out     strings.Builder
	names   []string // random names, in the order of their appearance
	session string   // that is sent with each request; "" sends none
	last    string   // the body of the last answer
	header  []string // that are sent with each request: name, value, ...
}

var randomName = regexp.MustCompile(`\b[A-Z2-7]{26}`)

// plain replaces the random names in what was received.
func (r *recording) plain(text string) string {
	return randomName.ReplaceAllStringFunc(text, func(name string) string {
		if !slices.Contains(r.names, name) {
			r.names = append(r.names, name)
		}
		return fmt.Sprintf("RANDOM%d", slices.Index(r.names, name)+1)
	})
}

func (r *recording) printf(format string, args ...any) {
	r.out.WriteString(r.plain(fmt.Sprintf(format, args...)))
}

// open sends a request, of which header is more names and values, and returns the
// answer, whose head is recorded.
func (r *recording) open(ctx context.Context, method, body string, header ...string) *http.Response {
	r.t.Helper()
	target, rest := r.site.url, slices.Concat(r.header, header)
	if r.session != "" {
		rest = append([]string{"Mcp-Session-Id", r.session}, rest...)
	}
	for len(rest) > 1 && rest[len(rest)-2] == "target" {
		target, rest = r.site.url+rest[len(rest)-1], rest[:len(rest)-2]
	}
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	r.printf("> %s", method)
	if target != r.site.url {
		r.printf(" %s", strings.TrimPrefix(target, r.site.url))
	}
	for i := 0; i < len(rest); i += 2 {
		req.Header.Set(rest[i], rest[i+1])
		r.printf(" %s=%q", rest[i], rest[i+1])
		if rest[i+1] == "" {
			req.Header.Del(rest[i])
		}
	}
	if len(body) > 300 {
		body = body[:300] + "..."
	}
	r.printf("\n> %s\n", body)
	res, err := r.site.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// head records the status and what matters of the header.
func (r *recording) head(res *http.Response) {
	r.printf("< %d", res.StatusCode)
	for _, name := range []string{"Allow", "Cache-Control", "Content-Type", "Mcp-Session-Id", "Retry-After"} {
		value := res.Header.Get(name)
		if value != "" && (name != "Cache-Control" || strings.HasPrefix(res.Header.Get("Content-Type"),
			"text/event-stream")) {
			r.printf(" %s=%q", name, value)
		}
	}
	r.printf("\n")
}

// send sends a request and records the whole answer. The events and elements of
// an answer to a batch are sorted: its calls run at once.
func (r *recording) send(method, body string, header ...string) *http.Response {
	r.t.Helper()
	res := r.open(r.t.Context(), method, body, header...)
	defer res.Body.Close() // read to its end
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	r.head(res)
	r.last = string(b)
	text := r.last
	if strings.HasPrefix(body, "[") {
		text = sortedAnswers(text)
	}
	for line := range strings.Lines(text) {
		r.printf("< %s\n", strings.TrimRight(line, "\n"))
	}
	r.printf("\n")
	return res
}

func (r *recording) post(body string, header ...string) *http.Response {
	r.t.Helper()
	return r.send(http.MethodPost, body, header...)
}

var eventID = regexp.MustCompile(`(?m)^id: .*\n`)

// sortedAnswers sorts the events of a stream, without their ids, or the elements of
// an array.
func sortedAnswers(text string) string {
	if inner, ok := strings.CutPrefix(text, "[{"); ok {
		inner = strings.TrimSuffix(strings.TrimSpace(inner), "}]")
		parts := strings.Split(inner, `},{"jsonrpc":`)
		for i := range parts {
			parts[i] = `{"jsonrpc":` + strings.TrimPrefix(parts[i], `"jsonrpc":`) + "}"
		}
		slices.Sort(parts)
		return "[\n" + strings.Join(parts, "\n") + "\n]"
	}
	parts := strings.SplitAfter(eventID.ReplaceAllString(text, ""), "\n\n")
	slices.Sort(parts)
	return strings.TrimLeft(strings.Join(parts, ""), "\n")
}

func toolCall(id any, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{%s}}`, id, params)
}

const (
	initializedNote = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	echoX           = `"name":"echo","arguments":{"name":"<x> & y"}`
)

// handshake starts a session of a revision.
func (r *recording) handshake(revision string) {
	r.t.Helper()
	res := r.post(strings.Replace(initializeBody, "2025-03-26", revision, 1))
	r.session = res.Header.Get("Mcp-Session-Id")
	negotiated := strings.Contains(r.last, `"protocolVersion":"`+revision)
	r.post(initializedNote)
	if revision >= "2025-06-18" && negotiated {
		r.header = append(r.header, "Mcp-Protocol-Version", revision)
	}
}

// held sends a call of the hold tool in the background, does something while it
// runs, and records the answer.
func (r *recording) held(id, more string, while func()) {
	r.t.Helper()
	res := make(chan *http.Response)
	body := toolCall(id, `"name":"hold","arguments":{"name":"h"}`+more)
	other := &recording{t: r.t, site: r.site, session: r.session, header: r.header}
	go func() { res <- other.open(r.t.Context(), http.MethodPost, body) }()
	<-r.k.started
	r.printf("(a call with the id %s runs)\n", id)
	while()
	answer := <-res
	defer answer.Body.Close() // read to its end
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	r.printf("(the call with the id %s has ended)\n", id)
	r.head(answer)
	for line := range strings.Lines(string(b)) {
		r.printf("< %s\n", strings.TrimRight(line, "\n"))
	}
	r.printf("\n")
}

// sayAll goes through everything that a session has.
func sayAll(r *recording, revision string) {
	r.post(ping)
	r.post(toolCall(1, echoX))
	r.post(toolCall(`"a<b"`, `"name":"meta"`))
	r.post(toolCall(2, `"name":"list","arguments":null,"_meta":{"x":1}`))
	r.post(toolCall(3, `"name":"progress","_meta":{"progressToken":"t"}`))
	r.post(toolCall(4, `"name":"fail","arguments":{"name":"conflict"}`))
	r.post(toolCall(5, `"name":"fail","arguments":{"name":"plain"}`))
	r.post(toolCall(6, `"name":"panic"`))
	r.post(toolCall(7, `"name":"search","arguments":{"query":5}`))
	r.post(toolCall(8, `"name":"nosuch"`))
	r.post(toolCall(9, `"name":5`))
	r.post(toolCall(10, `"name":"echo","unheardOf":true`))
	r.post(`{"jsonrpc":"2.0","id":11,"method":"tools/call"}`)
	r.post(`{"jsonrpc":"2.0","id":11,"method":"tools/call","params":[1]}`)
	r.post(`{"jsonrpc":"2.0","id":12,"method":"tools/list","params":{"cursor":"x"}}`)
	r.post(`{"jsonrpc":"2.0","id":13,"method":"resources/read","params":{"uri":"fess://finance/doc/d1/content","cursor":"1"}}`)
	r.post(`{"jsonrpc":"2.0","id":13,"method":"resources/read","params":{"uri":"fess://finance/doc/d1/content","_meta":{"cursor":2}}}`)
	r.post(`{"jsonrpc":"2.0","id":14,"method":"resources/read","params":{"uri":"fess://nope"}}`)
	r.post(`{"jsonrpc":"2.0","id":14,"method":"resources/read"}`)
	r.post(`{"jsonrpc":"2.0","id":15,"method":"resources/templates/list"}`)
	r.post(`{"jsonrpc":"2.0","id":16,"method":"prompts/list"}`)
	r.post(`{"jsonrpc":"2.0","id":17,"method":"nope/x"}`)
	r.post(`{"jsonrpc":"2.0","id":18,"method":"server/discover"}`)
	r.post(`{"jsonrpc":"2.0","id":18,"method":"subscriptions/listen","params":{}}`)
	r.post(strings.Replace(initializeBody, "2025-03-26", revision, 1))
	r.post(`{"jsonrpc":"2.0","id":18,"method":"notifications/cancelled"}`)
	r.post(`{"jsonrpc":"2.0","method":"tools/list"}`)
	r.post(`{"jsonrpc":"2.0","method":"notifications/nope"}`)
	r.post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	r.post(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
	r.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`)
	r.post(initializedNote)
	r.post(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	r.post(`{"jsonrpc":"2.0","id":19,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	r.post(toolCall(20, `"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`))
}

// sayWrong sends what is refused.
func sayWrong(r *recording) {
	for _, body := range []string{"{bad", "", `{"a":1}`, `"x"`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":5}`, ping + ping} {
		r.post(body)
	}
	r.post(ping, "Accept", "text/html")
	r.post(ping, "Content-Type", "text/plain")
	r.post(ping, "Mcp-Protocol-Version", "1999-01-01")
	r.post(ping, "Mcp-Protocol-Version", "2025-11-25")
	r.post(ping, "Mcp-Protocol-Version", "2027-01-01")
	r.post(ping, "Mcp-Session-Id", "nosuch")
	r.post(ping, "Mcp-Session-Id", "")
	r.post(initializedNote, "Mcp-Session-Id", "")
	r.post(`{"jsonrpc":"2.0","id":7,"result":{}}`, "Mcp-Session-Id", "")
	r.post(initializedNote, "Mcp-Session-Id", "nosuch")
	r.post(initializeBody, "Mcp-Session-Id", "nosuch")
	r.post(ping, "Last-Event-ID", "X_0")
	r.send("PUT", ping)
	r.send("GET", "", "Accept", "application/json")
	r.send("GET", "", "Mcp-Session-Id", "nosuch")
	r.send("DELETE", "", "Mcp-Session-Id", "")
	r.send("DELETE", "", "Mcp-Session-Id", "nosuch")
	r.post(strings.Repeat(" ", 4<<20) + ping)
}

// sayBatches sends batches.
func sayBatches(r *recording) {
	for _, in := range [][]string{{toolCall(1, echoX), ping}, {ping}, {"5", toolCall(1, `"name":"list"`),
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`},
		{`{"jsonrpc":"2.0","id":"u","method":"nope/x"}`, ping}, {`{"jsonrpc":"2.0","id":"u","method":"nope/x"}`}, {"5"},
		{initializedNote},
		{`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}`, ping}, {ping, ping},
		{`{"jsonrpc":"2.0","method":"notifications/nope"}`},
		{toolCall(1, `"name":"progress","_meta":{"progressToken":1}`)}, {`{"jsonrpc":"2.0","id":7,"result":{}}`}, {}} {
		r.post("[" + strings.Join(in, ",") + "]")
	}
}

// sayRunning is about requests that run.
func sayRunning(r *recording) {
	r.held("70", "", func() {
		r.post(`{"jsonrpc":"2.0","id":70,"method":"ping"}`)
		r.post(toolCall(70, echoX))
		r.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":70}}`)
	})
	r.post(`{"jsonrpc":"2.0","id":70,"method":"ping"}`)
	r.held("71", "", func() {
		time.Sleep(20 * time.Second) // virtual: a comment is sent
		close(r.k.release)
	})
	r.k.release = make(chan struct{})
}

// listenFor opens a stream for a while and records what comes, without comments.
func (r *recording) listenFor(d time.Duration, while func(), header ...string) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	res := r.open(ctx, http.MethodGet, "", header...)
	r.head(res)
	defer res.Body.Close() // given up
	lines := make(chan string, 1000)
	go func() { // ends with the stream
		defer close(lines)
		for sc := bufio.NewScanner(res.Body); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	if while != nil {
		while()
	}
	time.Sleep(d)
	synctest.Wait()
	for n := len(lines); n > 0; n-- {
		if line, ok := <-lines; ok {
			r.printf("< %s\n", line)
		}
	}
	cancel()
	for range lines {
	}
	synctest.Wait()
	r.printf("\n")
}

// sayStreams is about GET streams and resuming.
func sayStreams(r *recording) {
	r.listenFor(time.Second, func() {
		r.send("GET", "")
		r.post(toolCall(80, `"name":"job","_meta":{"progressToken":"J"}`))
		close(r.k.release)
	})
	r.k.release = make(chan struct{})
	r.listenFor(time.Second, nil)
	for _, id := range []string{"_0", "_2", "_99", "nope", "nope_0", "nope_-1", "a_b_c"} {
		r.listenFor(time.Second, nil, "Last-Event-ID", id)
	}
	r.post(toolCall(81, `"name":"progress","_meta":{"progressToken":"t"}`))
	ids := regexp.MustCompile(`(?m)^id: (.*)$`).FindAllStringSubmatch(r.last, -1)
	for _, id := range ids {
		r.listenFor(time.Second, nil, "Last-Event-ID", id[1])
	}
	r.send("DELETE", "")
	r.post(ping)
	r.send("GET", "")
}

// record runs a conversation in a bubble and returns its transcript.
func record(t *testing.T, o mcpserver.Options, ho mcpserver.HTTPOptions, say func(r *recording)) []byte {
	t.Helper()
	var out []byte
	synctest.Test(t, func(t *testing.T) {
		k := newKit(o)
		r := &recording{t: t, k: k, site: k.http(t, ho)}
		say(r)
		out = []byte(r.out.String())
	})
	return out
}

// TestTranscripts compares the messages of servers over HTTP, byte for byte, with
// testdata/http-*.txtar.
func TestTranscripts(t *testing.T) {
	modes := []struct {
		name   string
		o      mcpserver.HTTPOptions
		accept string
	}{
		{"streams", mcpserver.HTTPOptions{}, ""},
		{"json-client", mcpserver.HTTPOptions{}, "application/json"},
		{"no-streams", mcpserver.HTTPOptions{DisableSSE: true}, ""},
	}
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			ar := &txtar.Archive{Comment: []byte("Streamable HTTP with sessions, by revision.\n")}
			for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
				if mode.name != "streams" && revision != "2025-03-26" && revision != "2025-11-25" {
					continue
				}
				ar.Files = append(ar.Files, txtar.File{Name: revision, Data: record(t, mcpserver.Options{}, mode.o,
					func(r *recording) {
						if mode.accept != "" {
							r.header = []string{"Accept", mode.accept}
						}
						r.post(ping)
						r.handshake(revision)
						sayAll(r, revision)
						sayBatches(r)
						sayRunning(r)
						if mode.name == "streams" && revision >= "2025-11-25" {
							sayWrong(r)
						}
						if mode.name == "streams" {
							sayStreams(r)
						} else {
							r.send("GET", "")
							r.send("DELETE", "")
							r.post(ping)
						}
					})})
			}
			for _, pinned := range []mcpserver.Revision{mcpserver.Cody, mcpserver.Pinned} {
				if mode.name != "streams" {
					break
				}
				ar.Files = append(ar.Files, txtar.File{Name: "pinned to " + string(pinned), Data: record(t,
					mcpserver.Options{Revision: pinned}, mode.o, func(r *recording) {
						r.handshake("2025-11-25")
						sayAll(r, "2025-11-25")
						sayBatches(r)
						if pinned == mcpserver.Pinned {
							sayWrong(r)
						}
					})})
			}
			golden(t, "http-"+mode.name, ar)
		})
	}
}

// meta is what a request of 2026-07-28 carries.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// TestTranscriptsStateless is the same for 2026-07-28.
func TestTranscriptsStateless(t *testing.T) {
	for _, mode := range []string{"streams", "json-client", "no-streams"} {
		t.Run(mode, func(t *testing.T) {
			data := record(t, mcpserver.Options{}, mcpserver.HTTPOptions{DisableSSE: mode == "no-streams"},
				func(r *recording) {
					if mode == "json-client" {
						r.header = []string{"Accept", "application/json"}
					}
					r.header = append(r.header, "Mcp-Protocol-Version", "2026-07-28")
					sayStateless(r)
				})
			golden(t, "http-stateless-"+mode, &txtar.Archive{Comment: []byte("Requests of 2026-07-28.\n"),
				Files: []txtar.File{{Name: mode, Data: data}}})
		})
	}
}

func sayStateless(r *recording) {
	req := func(id any, method, params string, header ...string) {
		if params != "" {
			params += ","
		}
		r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":{%s%s}}`, id, method, params, meta),
			append([]string{"Mcp-Method", method}, header...)...)
	}
	call := func(id any, name, params string) { req(id, "tools/call", params, "Mcp-Name", name) }
	req(1, "server/discover", "")
	req(1, "resources/templates/list", "")
	req(1, "tools/list", `"cursor":"x"`)
	req(1, "ping", "")
	req(1, "initialize", "")
	req(1, "nope/x", "")
	req(1, "prompts/list", "")
	req(1, "resources/subscribe", `"uri":"x:y"`)
	req(1, "resources/read", `"uri":"fess://nope"`, "Mcp-Name", "fess://nope")
	req(1, "resources/read", `"uri":"fess://finance/doc/d1/content","cursor":"1"`, "Mcp-Name",
		"fess://finance/doc/d1/content")
	call(2, "echo", echoX)
	call(`"a<b"`, "meta", `"name":"meta"`)
	call(3, "progress", `"name":"progress"`)
	r.post(toolCall(3, `"name":"progress",`+strings.Replace(meta, `{"io`, `{"progressToken":"t","io`, 1)), "Mcp-Method",
		"tools/call", "Mcp-Name", "progress")
	call(4, "fail", `"name":"fail","arguments":{"name":"conflict"}`)
	call(5, "panic", `"name":"panic"`)
	call(6, "search", `"name":"search","arguments":{"query":5}`)
	call(7, "nosuch", `"name":"nosuch"`)
	call(8, "echo", `"name":5`)
	call(8, "echo", echoX+`,"unheardOf":1`)
	call(9, "other", echoX)
	call(9, "=?base64?ZWNobw==?=", echoX)
	call(9, "=?base64?!!?=", echoX)
	r.post(toolCall(10, echoX+","+meta))
	r.post(toolCall(10, echoX+","+meta), "Mcp-Method", "tools/call")
	r.post(toolCall(10, echoX+","+meta), "Mcp-Name", "echo")
	r.post(toolCall(10, echoX+","+meta), "Mcp-Method", "tools/list", "Mcp-Name", "echo")
	r.post(toolCall(10, echoX+","+meta), "Mcp-Method", "Tools/Call", "Mcp-Name", "echo")
	r.post(toolCall(10, echoX), "Mcp-Method", "tools/call", "Mcp-Name", "echo")
	r.post(toolCall(10, echoX+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), "Mcp-Method",
		"tools/call", "Mcp-Name", "echo")
	r.post(toolCall(10, echoX+","+strings.Replace(meta, "2026-07-28", "2025-11-25", 1)), "Mcp-Method", "tools/call",
		"Mcp-Name", "echo")
	r.post(toolCall(10, echoX+","+strings.Replace(meta, "2026-07-28", "2027-01-01", 1)), "Mcp-Protocol-Version",
		"2027-01-01", "Mcp-Method", "tools/call", "Mcp-Name", "echo")
	r.post(toolCall(10, echoX+","+meta), "Mcp-Protocol-Version", "", "Mcp-Method", "tools/call", "Mcp-Name", "echo")
	r.post(toolCall(10, echoX+","+meta), "Mcp-Session-Id", "nosuch", "Mcp-Method", "tools/call", "Mcp-Name", "echo")
	r.post(toolCall(10, echoX+","+meta), "Last-Event-ID", "X_1", "Mcp-Method", "tools/call", "Mcp-Name", "echo")
	r.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`, "Mcp-Method",
		"notifications/cancelled")
	r.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`)
	r.post(initializedNote, "Mcp-Method", "notifications/initialized")
	r.post(`{"jsonrpc":"2.0","method":"notifications/nope"}`, "Mcp-Method", "notifications/nope")
	r.post(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	r.post("[" + ping + "]")
	r.post("{bad")
	r.post(ping, "Accept", "text/html", "Mcp-Method", "ping")
	r.send("GET", "")
	r.send("DELETE", "")
	r.send("PUT", "")
	r.header = append(r.header, "Mcp-Method", "tools/call", "Mcp-Name", "hold")
	r.held("71", ","+meta, func() { time.Sleep(20 * time.Second); close(r.k.release) })
}

// TestTranscriptsOld is the same for the HTTP+SSE transport of 2024-11-05.
func TestTranscriptsOld(t *testing.T) {
	ar := &txtar.Archive{Comment: []byte("The HTTP+SSE transport of 2024-11-05: what is posted, and what the stream " +
		"holds after that.\n")}
	for _, revision := range []mcpserver.Revision{mcpserver.Cody, mcpserver.Latest} {
		ar.Files = append(ar.Files, txtar.File{Name: string(revision),
			Data: record(t, mcpserver.Options{Revision: revision},
				mcpserver.HTTPOptions{MaxSessions: 2}, sayOld)})
	}
	golden(t, "http-old", ar)
}

func sayOld(r *recording) {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	res := r.open(ctx, http.MethodGet, "", "Accept", "text/event-stream")
	r.head(res)
	defer res.Body.Close() // given up
	lines := make(chan string, 1000)
	go func() { // ends with the stream
		defer close(lines)
		for sc := bufio.NewScanner(res.Body); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	// heard records what has come on the stream.
	heard := func(sorted bool) {
		synctest.Wait()
		var text strings.Builder
		for n := len(lines); n > 0; n-- {
			text.WriteString(<-lines + "\n")
		}
		all := text.String()
		if sorted {
			all = sortedAnswers(all)
		}
		for line := range strings.Lines(all) {
			r.printf("<< %s", line)
		}
		r.printf("\n")
		r.last = all
	}
	heard(false)
	endpoint := regexp.MustCompile(`sessionid=\S+`).FindString(r.last)
	post := func(body string, header ...string) {
		r.post(body, append(header, "target", "?"+endpoint)...)
		heard(strings.HasPrefix(body, "["))
	}
	post(toolCall(1, echoX))
	post(strings.Replace(initializeBody, "2025-03-26", "2024-11-05", 1))
	post(toolCall(1, echoX))
	post(initializedNote)
	for _, body := range []string{ping, toolCall(1, echoX),
		toolCall(2, `"name":"progress","_meta":{"progressToken":"t"}`),
		toolCall(3, `"name":"fail","arguments":{"name":"conflict"}`),
		toolCall(4, `"name":"nosuch"`), toolCall(5, `"name":5`), `{"jsonrpc":"2.0","id":11,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":13,"method":"resources/read","params":{"uri":"fess://finance/doc/d1/content","cursor":"1"}}`,
		`{"jsonrpc":"2.0","id":16,"method":"prompts/list"}`, `{"jsonrpc":"2.0","id":17,"method":"nope/x"}`,
		`{"jsonrpc":"2.0","id":18,"method":"server/discover"}`,
		`{"jsonrpc":"2.0","method":"notifications/nope"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`,
		`{"jsonrpc":"2.0","id":7,"result":{}}`, "{bad", `{"a":1}`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
		initializeBody,
		"[" + toolCall(1, echoX) + "," + ping + "]", "[5," + ping + "]",
		`[{"jsonrpc":"2.0","id":"u","method":"nope/x"},` +
			ping + "]",
		"[" + initializedNote + "]", "[5]", "[]", "[" + initializeBody + "]", "[" + ping + "," + ping + "]"} {
		post(body)
	}
	post(ping, "Content-Type", "text/plain")
	post(ping, "Mcp-Protocol-Version", "2024-11-05")
	post(ping, "Accept", "text/html")
	post(toolCall(70, `"name":"hold"`))
	<-r.k.started
	post(`{"jsonrpc":"2.0","id":70,"method":"ping"}`)
	post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":70}}`)
	<-r.k.causes
	post(toolCall(71, `"name":"job","_meta":{"progressToken":"J"}`))
	close(r.k.release)
	heard(false)
	time.Sleep(20 * time.Second) // virtual: a comment is sent
	heard(false)
	r.post(ping, "target", "?sessionid=nosuch")
	r.send("PUT", ping, "target", "?"+endpoint)
	second := r.open(ctx, http.MethodGet, "", "Accept", "text/event-stream")
	second.Body.Close() // given up
	cancel()
	for range lines {
	}
	synctest.Wait()
	r.post(ping, "target", "?"+endpoint)
}
