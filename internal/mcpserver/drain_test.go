package mcpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// A client that sends all of its body before it looks for an answer gets the
// status of a refusal, not a broken connection.
func TestRefusalOfABody(t *testing.T) {
	h := newKit(mcpserver.Options{}).server.HTTP(mcpserver.HTTPOptions{})
	hs := httptest.NewServer(guard(h, httpguard.Options{Token: frontToken}))
	defer hs.Close()
	const admitted = "Authorization: Bearer " + frontToken + "\r\n"
	body := strings.Repeat("x", 16<<20)
	for _, tc := range []struct {
		name, header string
		size, status int
	}{
		{"401", "", 7 << 20, 401},
		{"403 for its Origin", admitted + "Origin: http://evil.example\r\n", 7 << 20, 403},
		{"413", admitted, 16 << 20, 413},
	} {
		for _, chunked := range []bool{false, true} {
			c, err := net.Dial("tcp", hs.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			length, begin, end := fmt.Sprintf("Content-Length: %d", tc.size), "", ""
			if chunked {
				length, begin, end = "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n", tc.size), "\r\n0\r\n\r\n"
			}
			head := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s%s\r\n\r\n%s",
				hs.Listener.Addr(), tc.header, length, begin)
			for _, part := range []string{head, body[:tc.size], end} {
				if _, err := io.WriteString(c, part); err != nil {
					t.Errorf("%s, chunked=%t: sending = %v", tc.name, chunked, err)
				}
			}
			if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != tc.status {
				t.Errorf("%s, chunked=%t: answer = %v, %v, want %d", tc.name, chunked, res, err, tc.status)
			}
			c.Close()
		}
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// A body that does not come is waited for, but not for long, and not at all
// where the client waits for us.
func TestSlowBody(t *testing.T) {
	for _, tc := range []struct {
		name   string
		header map[string]string
		length int64
		status int
		within time.Duration
	}{
		{"no token", nil, 100, 401, 5 * time.Second},
		{"no token, expecting", map[string]string{"Expect": "100-continue"}, 100, 401, 0},
		{"too large", map[string]string{"Authorization": "Bearer " + frontToken}, 5 << 20, 413, 5 * time.Second},
		{"admitted", map[string]string{"Authorization": "Bearer " + frontToken}, 100, 400, 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := newKit(mcpserver.Options{}).guarded(t, mcpserver.HTTPOptions{},
					httpguard.Options{Token: frontToken})
				never, end := io.Pipe()
				defer end.Close()
				req, err := http.NewRequest(http.MethodPost, site.url, never)
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength = tc.length
				req.Header.Set("Content-Type", "application/json")
				for name, value := range tc.header {
					req.Header.Set(name, value)
				}
				site.client.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
				start := time.Now()
				res, err := site.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close() // only its header counts
				if took := time.Since(start); res.StatusCode != tc.status || took != tc.within {
					t.Errorf("answer = %d after %v, want %d after %v", res.StatusCode, took, tc.status, tc.within)
				}
				time.Sleep(time.Second) // virtual: the server lets the client read before it closes
			})
		})
	}
}
