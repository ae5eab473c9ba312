package mcpclient

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// A fakeHTTP is an MCP server over streamable HTTP.
type fakeHTTP struct {
	sse      bool // answers with streams of events
	sessions bool // gives session ids
	resume   bool // breaks its streams before the result, which can be taken up again
	lost     int  // status for an unknown session; 0 means 404
	modern   bool

	mu      sync.Mutex
	session string
	serial  int
	seen    []string // "METHOD rpc-method" in order
	headers []http.Header
	posts   []string // bodies
	own     chan string
	kept    string // the result that waits to be taken up
}

func (f *fakeHTTP) start(t testing.TB) *httptest.Server {
	f.own = make(chan string, 10)
	s := httptest.NewServer(f)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (f *fakeHTTP) note(what string, h http.Header, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, what)
	f.headers = append(f.headers, h.Clone())
	f.posts = append(f.posts, body)
}

// forget makes the server lose its sessions.
func (f *fakeHTTP) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session = "none"
}

func (f *fakeHTTP) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.seen {
		if s == what {
			n++
		}
	}
	return n
}

func (f *fakeHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m fakeMessage
	_ = json.Unmarshal(body, &m)
	f.note(strings.TrimSpace(r.Method+" "+m.Method), r.Header, string(body))
	f.mu.Lock()
	session := f.session
	f.mu.Unlock()
	if m.Method != "initialize" && f.sessions && r.Header.Get("Mcp-Session-Id") != session {
		status := f.lost
		if status == 0 {
			status = http.StatusNotFound
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w,
			`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		return
	}
	switch r.Method {
	case http.MethodGet:
		f.get(w, r)
	case http.MethodPost:
		f.post(w, r, &m)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// get is the stream of the server's own messages, or the rest of another.
func (f *fakeHTTP) get(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	if r.Header.Get("Last-Event-ID") == "e1" {
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprintf(w, "id: e2\ndata: %s\n\n", f.kept)
		return
	}
	for {
		select {
		case text := <-f.own:
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", text)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fakeHTTP) post(w http.ResponseWriter, r *http.Request, m *fakeMessage) {
	if len(m.ID) == 0 || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := "{}"
	switch m.Method {
	case "initialize":
		if f.modern {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w,
				`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"unsupported",`+
					`"data":{"supported":["2026-07-28"]}}}`, m.ID)
			return
		}
		if f.sessions {
			f.mu.Lock()
			f.serial++
			f.session = fmt.Sprintf("session-%d", f.serial)
			w.Header().Set("Mcp-Session-Id", f.session)
			f.mu.Unlock()
		}
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"web",` +
			`"version":"2"}}`
	case "server/discover":
		result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case "tools/list":
		result = `{"tools":[{"name":"echo"}]}`
	case "tools/call":
		var p struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		_ = json.Unmarshal(m.Params, &p)
		if p.Name == "slow" {
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
			return
		}
		result = string(p.Arguments)
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	switch {
	case f.sse && f.resume && m.Method == "tools/call":
		f.mu.Lock()
		f.kept = answer
		f.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: e1\nretry: 5\ndata:\n\n")
	case f.sse:
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprint(w, ": hello\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"roots/list\"}\r\n\r\n")
		fmt.Fprintf(w, "event: message\ndata: %s\ndata: %s\n\n", answer[:10], answer[10:])
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}
}

// fakeOldSSE is an MCP server over HTTP+SSE.
func fakeOldSSE(t testing.TB, endpoint string) *httptest.Server {
	stream := make(chan string, 10)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", endpoint)
		w.(http.Flusher).Flush()
		for {
			select {
			case text := <-stream:
				if text == "end" {
					return
				}
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", text)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		var m fakeMessage
		if json.NewDecoder(r.Body).Decode(&m) != nil || r.URL.Query().Get("session") != "7" ||
			r.Header.Get("X-Key") != "sesame-open" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		result := `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"0"}}`
		switch {
		case len(m.ID) == 0:
			return
		case strings.Contains(string(m.Params), "bye"):
			stream <- "end"
			return
		case m.Method == "tools/call":
			result = string(m.Params)
		}
		stream <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// remoteSettings describes a server of the settings that is reached by HTTP.
func remoteSettings(id, transport, url string) mcpsettings.Server {
	return mcpsettings.Server{ID: id, Transport: transport, URL: url,
		Headers: map[string]string{"X-Key": "sesame-open"}}
}

// inOrder reports whether all of want occur in got in that order.
func inOrder(got []string, want ...string) bool {
	for _, w := range want {
		i := slices.Index(got, w)
		if i < 0 {
			return false
		}
		got = got[i+1:]
	}
	return true
}
