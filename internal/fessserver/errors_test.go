package fessserver_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// TestFailures checks that a failure is reported as one, with the status of its
// kind, and that its text goes to the log alone.
func TestFailures(t *testing.T) {
	tests := []struct {
		err     error
		code    int
		v2      string
		says    string // in v2's message
		atError bool   // logged as an error
	}{
		{errors.New("disk /srv/secret is full"), 500, "internal_error", "internal error", true},
		{fmt.Errorf("searching: %w", errkind.Corrupt), 500, "internal_error", "internal error", true},
		{errkind.Unavailable, 503, "service_unavailable", "try again", true},
		{fmt.Errorf("asking: %w", errkind.Timeout), 503, "service_unavailable", "try again", true},
		{&errkind.Remote{Status: 502, Message: "the server is down"}, 503, "service_unavailable", "try again", true},
		{errkind.Busy, 429, "rate_limited", "busy", false},
		{&errkind.Argument{Name: "facets.field", Value: "x", Want: "another"}, 400, "invalid_request", "facets.field",
			false},
		{fmt.Errorf("geo: no places: %w", errkind.Unsupported), 400, "invalid_request", "no places", false},
		{&errkind.Remote{Kind: errkind.Invalid, Status: 400, Endpoint: "/inner", Message: "say it otherwise"}, 400,
			"invalid_request", "say it otherwise", false},
	}
	for _, test := range tests {
		for _, target := range []string{"/api/v1/documents?q=a", "/api/v1/labels", "/api/v1/popular-words",
			"/api/v1/suggest-words?q=a", "/api/v1/health",
			"/api/v2/search?q=a", "/api/v2/labels", "/api/v2/popular-words", "/api/v2/suggest-words?q=a",
			"/api/v2/health", "/api/v2/ui/config", "/api/v2/cache/x"} {
			var log bytes.Buffer
			h := fessserver.New(fessserver.Options{Backend: &stub{err: test.err},
				Log: slog.New(slog.NewTextHandler(&log, nil))})
			code, answer := get(t, h, target)
			if code != test.code {
				t.Errorf("GET %s with %v = %d, want %d", target, test.err, code, test.code)
			}
			if strings.HasPrefix(target, "/api/v1") {
				said, _ := answer["error_code:"].(string)
				if len(answer) != 1 || !uuid.MatchString(said) || test.atError &&
					!strings.Contains(log.String(), said) {
					t.Errorf("GET %s with %v = %v, log %q, want a code that is in the log too", target, test.err,
						answer, &log)
				}
			} else {
				inner, _ := answer["response"].(map[string]any)
				fault, _ := inner["error"].(map[string]any)
				msg, _ := fault["message"].(string)
				if fault["code"] != test.v2 || !strings.Contains(msg, test.says) || strings.Contains(msg, "/inner") ||
					number(inner["status"]) != map[bool]int{true: 9, false: 1}[test.code >= 500] {
					t.Errorf("GET %s with %v = %v, want %s: %s", target, test.err, answer, test.v2, test.says)
				}
			}
			if got := strings.Contains(log.String(), "level=ERROR"); got != test.atError {
				t.Errorf("GET %s with %v logs %q", target, test.err, &log)
			}
		}
	}
}

// TestRed checks that a red service says so, with its status.
func TestRed(t *testing.T) {
	h := fessserver.New(fessserver.Options{Backend: &stub{health: search.Health{Status: "red", TimedOut: true}}})
	code, answer := get(t, h, "/api/v1/health")
	data, _ := answer["data"].(map[string]any)
	if code != http.StatusServiceUnavailable || data["status"] != "red" || data["timed_out"] != true {
		t.Errorf("GET /api/v1/health = %d %v, want 503, red, timed out", code, answer)
	}
	w := ask(t, h, http.MethodGet, "/api/v2/health", nil)
	const want = `{"response":{"status":9,"error":{"code":"service_unavailable","message":"search engine cluster is red",` +
		`"details":{"engine":{"status":"RED","ping_status":1}}}}}`
	if w.Code != http.StatusServiceUnavailable || w.Body.String() != want {
		t.Errorf("GET /api/v2/health = %d %s, want 503 %s", w.Code, w.Body, want)
	}
}
