package mcpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"

	"github.com/google/go-cmp/cmp"
)

// An oldClient speaks the HTTP+SSE transport of 2024-11-05.
type oldClient struct {
	t        *testing.T
	site     *site
	events   chan string // the data of the stream's events
	end      func() error
	endpoint string
}

func openOld(t *testing.T, s *site) *oldClient {
	t.Helper()
	req, err := http.NewRequest("GET", s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	c := &oldClient{t: t, site: s, events: make(chan string, 1000), end: res.Body.Close}
	go func() { // ends with the stream
		defer close(c.events)
		for sc := bufio.NewScanner(res.Body); sc.Scan(); {
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
				c.events <- data
			}
		}
	}()
	c.endpoint = strings.TrimPrefix(c.next(), "/mcp?")
	return c
}

// next returns the data of the stream's next event.
func (c *oldClient) next() string {
	if data, ok := <-c.events; ok {
		return data
	}
	return "the stream ended"
}

// post sends a body to the endpoint and returns the status.
func (c *oldClient) post(body string) int {
	c.t.Helper()
	status, _ := c.send(body, nil)
	return status
}

func (c *oldClient) send(body string, header map[string]string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequest("POST", c.site.url+"?"+c.endpoint, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := c.site.client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close() // read to its end
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// The HTTP+SSE transport of 2024-11-05 is served on the same path.
func TestOldSSE(t *testing.T) {
	for _, revision := range []mcpserver.Revision{mcpserver.Cody, mcpserver.Latest} {
		synctest.Test(t, func(t *testing.T) {
			k := newKit(mcpserver.Options{Revision: revision})
			site := k.http(t, mcpserver.HTTPOptions{MaxSessions: 1})
			c := openOld(t, site)
			defer c.end()
			post, next := c.post, c.next
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

// A batch is answered on the stream, one event an answer, where the negotiated
// revision has batches.
func TestOldSSEBatch(t *testing.T) {
	const (
		pong     = `{"jsonrpc":"2.0","id":99,"result":{}}`
		echo     = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`
		echoed   = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"name\":\"\"}"}]}}`
		unknown  = `{"jsonrpc":"2.0","id":"u","method":"nope/x"}`
		noMethod = `{"jsonrpc":"2.0","id":"u","error":{"code":-32601,"message":"there is no method \"nope/x\""}}`
		noObject = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: not a JSON-RPC object"}}`
		note     = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
	)
	ids := func(n int) (in, out []string) {
		for i := range n {
			in = append(in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 1000+i))
			out = append(out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, 1000+i))
		}
		return in, out
	}
	many, pongs := ids(300)
	for _, tc := range []struct {
		name     string
		revision mcpserver.Revision
		asked    string
		header   map[string]string
		in       []string
		status   int
		want     []string
	}{
		{"two calls", mcpserver.Cody, "2024-11-05", nil, []string{echo, ping}, 202, []string{echoed, pong}},
		{"with the header", mcpserver.Cody, "2024-11-05", map[string]string{"Mcp-Protocol-Version": "2024-11-05"},
			[]string{ping}, 202, []string{pong}},
		{"latest, 2024-11-05", mcpserver.Latest, "2024-11-05", nil, []string{echo, ping}, 202, []string{echoed, pong}},
		{"latest, 2025-03-26", mcpserver.Latest, "2025-03-26", nil, []string{echo, ping}, 202, []string{echoed, pong}},
		{"latest, 2025-06-18", mcpserver.Latest, "2025-06-18", nil, []string{echo, ping}, 400, nil},
		{"notification", mcpserver.Cody, "2024-11-05", nil, []string{note}, 202, nil},
		{"invalid and unknown among others", mcpserver.Cody, "2024-11-05", nil, []string{"5", unknown, ping}, 202,
			[]string{noObject, noMethod, pong}},
		{"invalid alone", mcpserver.Cody, "2024-11-05", nil, []string{"5"}, 202, []string{noObject}},
		{"many", mcpserver.Cody, "2024-11-05", nil, many, 202, pongs},
	} {
		t.Run(tc.name, func(t *testing.T) {
			site := newKit(mcpserver.Options{Revision: tc.revision}).http(t, mcpserver.HTTPOptions{})
			c := openOld(t, site)
			defer c.end()
			c.post(strings.Replace(initializeBody, "2025-03-26", tc.asked, 1))
			if got := c.next(); !strings.Contains(got, `"protocolVersion":"`+tc.asked+`"`) {
				t.Fatalf("initialize = %s, want revision %s", got, tc.asked)
			}
			c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			status, body := c.send("["+strings.Join(tc.in, ",")+"]", tc.header)
			if status != tc.status || (status == 202) != (body == "") || status == 400 && !strings.Contains(body,
				"has no batches") {
				t.Errorf("status = %d with %q, want %d", status, body, tc.status)
			}
			// What comes last shows that nothing else did.
			c.post(`{"jsonrpc":"2.0","id":"last","method":"tools/list"}`)
			var got []string
			for range len(tc.want) + 1 {
				if data := c.next(); !strings.Contains(data, `"id":"last"`) {
					got = append(got, data)
				}
			}
			want := slices.Sorted(slices.Values(tc.want)) // calls run at once
			if slices.Sort(got); !cmp.Equal(want, got) && len(want)+len(got) > 0 {
				t.Errorf("answers (-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// A message to a stream that is not there is refused, alone and in a batch.
func TestOldSSEUnknownSession(t *testing.T) {
	site := newKit(mcpserver.Options{Revision: mcpserver.Cody}).http(t, mcpserver.HTTPOptions{})
	c := &oldClient{t: t, site: site, endpoint: "sessionid=X"}
	for _, body := range []string{ping, "[" + ping + "]", "[5]"} {
		if status, got := c.send(body, nil); status != 404 || !strings.Contains(got, "session not found") {
			t.Errorf("%s = %d %s, want 404 with session not found", body, status, got)
		}
	}
}

// A GET without more opens no session for ever, and keeps nobody out.
func TestOldSSEUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{MaxSessions: 3})
		connect := func(c *oldClient) {
			t.Helper()
			c.post(strings.Replace(initializeBody, "2025-03-26", "2024-11-05", 1))
			if got := c.next(); !strings.Contains(got, `"protocolVersion":"2024-11-05"`) {
				t.Errorf("initialize = %s", got)
			}
			c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		used := openOld(t, site)
		defer used.end()
		connect(used)
		var unused []*oldClient
		for range 5 {
			time.Sleep(time.Second) // virtual: so that they differ in age
			c := openOld(t, site)
			defer c.end()
			unused = append(unused, c)
		}
		for range 2 { // as many as have room beside the one in use
			time.Sleep(time.Second)
			site.session(t).Initialize("2025-11-25")
		}
		for _, c := range unused {
			if got := c.next(); got != "the stream ended" {
				t.Errorf("an unused stream has %q, want its end", got)
			}
		}
		late := openOld(t, site) // in the place of an idle session
		defer late.end()
		start := time.Now()
		if got := late.next(); got != "the stream ended" || time.Since(start) != 30*time.Second {
			t.Errorf("a stream that is not initialized has %q after %v, want its end after 30s", got, time.Since(start))
		}
		used.post(ping)
		if got := used.next(); !strings.Contains(got, `"result":{}`) {
			t.Errorf("ping in the session in use = %s", got)
		}
	})
}

// A GET that does not ask for a stream is answered at once, and a browser is
// sent to the page of the server.
func TestGetWithoutStream(t *testing.T) {
	for _, o := range []mcpserver.HTTPOptions{{}, {DisableSSE: true}} {
		site := newKit(mcpserver.Options{}).http(t, o)
		site.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		refused := 406
		if o.DisableSSE {
			refused = 405
		}
		for accept, want := range map[string]int{"": refused, "*/*": refused, "application/json": refused,
			"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": 303} {
			status, header, body := site.request(t, "GET", "", map[string]string{"Accept": accept})
			if status != want || (status == 303) != (header.Get("Location") == "/") {
				t.Errorf("GET with Accept %q = %d to %q %s, want %d", accept, status, header.Get("Location"), body,
					want)
			}
		}
	}
}
