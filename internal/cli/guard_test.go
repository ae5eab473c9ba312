package cli_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/cli"
)

// A running is a command that serves, within the process of the test.
type running struct {
	url   string // http://HOST:PORT or https://HOST:PORT
	token string // that ask sends; "" for none
}

// run runs a command until the test ends. ready matches its ready line, of which
// the first group is the host and port.
func run(t *testing.T, ready string, args ...string) *running {
	t.Helper()
	out, done, stop := begin(t, args)
	t.Cleanup(stop)
	pattern := regexp.MustCompile(ready)
	if !out.await("istening on http", done) || !out.await("\n", done) {
		t.Fatalf("%q is not ready: %s", args, out)
	}
	m := pattern.FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("%q wrote %q, want a line that matches %s", args, out, ready)
	}
	if strings.Contains(m[0], "https://") {
		return &running{url: "https://" + m[1]}
	}
	return &running{url: "http://" + m[1]}
}

// awaitOutput runs a command until its output contains some texts.
func awaitOutput(t *testing.T, args []string, texts ...string) {
	t.Helper()
	out, done, stop := begin(t, args)
	defer stop()
	for _, text := range texts {
		if !out.await(text, done) {
			t.Errorf("%q wrote %q, want %q", args, out, text)
		}
	}
}

// begin starts a command. done is closed when it has ended; stop ends it.
func begin(t *testing.T, args []string) (out *transcript, done chan struct{}, stop func()) {
	return beginIn(t, nil, args)
}

// beginIn is begin with environment variables.
func beginIn(t *testing.T, variables map[string]string, args []string) (
	out *transcript, done chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	out, done = newTranscript(), make(chan struct{})
	status := make(chan int, 1)
	env := cli.Env{Program: "knowhow", Lookup: func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}}
	go func() {
		defer close(done)
		status <- cli.Main(ctx, args, env, strings.NewReader(""), out, out)
	}()
	return out, done, func() {
		cancel()
		if got := <-status; got != 0 {
			t.Errorf("%q ended with status %d, want 0: %s", args, got, out)
		}
	}
}

// ask sends a request on a new connection, with the path unchanged, and returns
// status, header and body; of a stream no body.
func (r *running) ask(t *testing.T, method, path string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	scheme, address, _ := strings.Cut(r.url, "://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if scheme == "https" {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	defer conn.Close()
	request := method + " " + path + " HTTP/1.1\r\nHost: " + conn.RemoteAddr().String() + "\r\n"
	if r.token != "" {
		request += "Authorization: Bearer " + r.token + "\r\n"
	}
	for name, value := range header {
		request += name + ": " + value + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return res.StatusCode, res.Header, ""
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

// runFolders serves a folder with the label docs.
func runFolders(t *testing.T, args ...string) *running {
	t.Helper()
	dir := t.TempDir()
	docs := filepath.Join(dir, "docs")
	if err := os.Mkdir(docs, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, "a.md"), []byte("pears\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return run(t, `(?m)^listening on https?://(127\.0\.0\.1:\d+)/mcp$`,
		append([]string{"serve", "--addr", "127.0.0.1:0", "--no-watch", "--data", filepath.Join(dir, "data"), docs},
			args...)...)
}

// runUsers is runFolders with TLS, single sign-on and a user who may read all.
func runUsers(t *testing.T, args ...string) *running {
	t.Helper()
	const token = "s3cret"
	path := filepath.Join(t.TempDir(), "access.json")
	users := fmt.Sprintf(`{"users": {"ann": {"sha256": "%x", "read": ["*"]}}}`, sha256.Sum256([]byte(token)))
	if err := os.WriteFile(path, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runFolders(t, slices.Concat(tlsArgs(t), []string{"--access", path, "--oauth-issuer", "http://127.0.0.1:9"},
		args)...)
	r.token = token
	return r
}

// runInvoke serves POST /invoke over no server.
func runInvoke(t *testing.T, args ...string) *running {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mcp_settings.json", []byte(`{"mcpServers": {}}`), 0o666); err != nil {
		t.Fatal(err)
	}
	return run(t, `Server listening on http://(localhost:\d+)\n`,
		append([]string{"start", "--port", "0", "--mcp-settings", "mcp_settings.json"}, args...)...)
}

// Every path is guarded alike against the pages of other sites.
func TestCrossSite(t *testing.T) {
	const evil, app = "https://evil.example", "https://app.example"
	folders, bridge := runFolders(t, "--allow-origin", app), runInvoke(t)
	servers := []*running{folders, runFolders(t, append(tlsArgs(t), "--allow-origin", app)...),
		runUsers(t, "--allow-origin", app)}
	for _, tc := range []struct {
		name   string
		header map[string]string
		status int // 0: as without the header
	}{
		{"no header", nil, 0},
		{"cross-site", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"page of another port", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"same-origin", map[string]string{"Sec-Fetch-Site": "same-origin"}, 0},
		{"address bar", map[string]string{"Sec-Fetch-Site": "none"}, 0},
		{"page of another port, with its origin", map[string]string{"Sec-Fetch-Site": "same-site",
			"Origin": "http://localhost:80"}, 403},
		{"foreign page", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": evil}, 403},
	} {
		for path, status := range map[string]int{"/mcp": 406, "/mcp/docs": 406, "/fess/api/v1/documents?q=pears": 200,
			"/nothing": 404, "/healthz": 200} {
			want := tc.status
			if want == 0 {
				want = status
			}
			for _, r := range servers {
				if got, _, body := r.ask(t, "GET", path, tc.header); got != want {
					t.Errorf("%s: GET %s%s = %d %s, want %d", tc.name, r.url, path, got, body, want)
				}
			}
		}
		for path, status := range map[string]int{"/": 200, "/servers": 200, "/nothing": 404, "/healthz": 200} {
			want := tc.status
			if want == 0 {
				want = status
			}
			if got, _, body := bridge.ask(t, "GET", path, tc.header); got != want {
				t.Errorf("%s: GET %s of the bridge = %d %s, want %d", tc.name, path, got, body, want)
			}
		}
	}
	for _, r := range servers {
		if got, _, body := r.ask(t, "GET", "/fess/api/v1/health",
			map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": app}); got != 200 {
			t.Errorf("GET %s/fess of an allowed page = %d %s, want 200", r.url, got, body)
		}
	}
}

// A browser asks without a token whether a page may send a request.
func TestPreflight(t *testing.T) {
	args := []string{"--token", "s3cret", "--allow-origin", "https://app.example"}
	users := runUsers(t, args[2:]...)
	users.token = ""
	for _, r := range []*running{runFolders(t, args...), runFolders(t, append(tlsArgs(t), args...)...), users} {
		for path, want := range map[string]int{"/mcp": 204, "/mcp/docs": 204, "/fess/api/v1/health": 401, "/": 401} {
			status, header, body := r.ask(t, "OPTIONS", path,
				map[string]string{"Origin": "https://app.example", "Access-Control-Request-Method": "POST"})
			if status != want || (header.Get("Access-Control-Allow-Origin") != "") != (want == 204) {
				t.Errorf("OPTIONS %s%s = %d %s with Access-Control-Allow-Origin %q, want %d", r.url, path, status, body,
					header.Get("Access-Control-Allow-Origin"), want)
			}
			status, _, body = r.ask(t, "GET", path, map[string]string{"Origin": "https://app.example"})
			if status != 401 {
				t.Errorf("GET %s%s without a token = %d %s, want 401", r.url, path, status, body)
			}
		}
	}
}

// No path is redirected: a client would send the token and the body elsewhere,
// or get nothing.
func TestNoRedirects(t *testing.T) {
	folders, bridge, users := runFolders(t), runInvoke(t), runUsers(t)
	for _, tc := range []struct {
		r      *running
		path   string
		status int
	}{
		{folders, "/fess//api/v1/health", 200}, {folders, "/fess/api//v1/documents/?q=pears", 200},
		{folders, "/fess/api/v2//health", 200},
		{folders, "/fess", 404}, {folders, "/fess/", 404}, {folders, "//fess/api/v1/health", 404},
		{folders, "/fess/../mcp", 404},
		{folders, "/mcp//docs", 404}, {folders, "/mcp/docs/", 404}, {folders, "/mcp/", 404},
		{folders, "/mcp/../fess/api/v1/health", 404},
		{folders, "/mcp/./docs", 404}, {folders, "//mcp", 404}, {folders, "/healthz/", 404},
		{folders, "//healthz", 404},
		{bridge, "/invoke//", 404}, {bridge, "//", 404}, {bridge, "//servers", 404}, {bridge, "/tools/../servers", 404},
	} {
		servers := []*running{tc.r}
		if tc.r == folders {
			servers = append(servers, users)
		}
		for _, r := range servers {
			if got, header, body := r.ask(t, "GET", tc.path, nil); got != tc.status {
				t.Errorf("GET %s%s = %d %s with Location %q, want %d", r.url, tc.path, got, body, header.Get("Location"),
					tc.status)
			}
		}
	}
}

// The host of the public URL is that of this server: a proxy passes it on.
func TestPublicHost(t *testing.T) {
	r := runFolders(t, "--public-url", "https://docs.example.com/")
	for host, want := range map[string]int{"docs.example.com": 200, "evil.example": 403} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/fess/api/v1/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("GET with the host %s = %d, want %d", host, res.StatusCode, want)
		}
	}
}
