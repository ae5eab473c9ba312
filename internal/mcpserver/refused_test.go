package mcpserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// A request to an endpoint that has ended is reported like others that are refused.
func TestRefusedAfterShutdown(t *testing.T) {
	var statuses []int
	h := newKit(mcpserver.Options{}).server.HTTP(mcpserver.HTTPOptions{
		Refused: func(_ *http.Request, status int, _ int64) { statuses = append(statuses, status) }})
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/mcp", strings.NewReader("{}")))
	if w.Code != http.StatusServiceUnavailable || len(statuses) != 1 || statuses[0] != w.Code {
		t.Errorf("the request is answered by %d, reported are %v", w.Code, statuses)
	}
}
