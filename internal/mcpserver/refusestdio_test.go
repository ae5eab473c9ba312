package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// A program that cannot serve its client answers until initialize is answered.
func TestRefuseStdio(t *testing.T) {
	const (
		discover   = `{"jsonrpc":"2.0","id":"d","method":"server/discover"}`
		note       = `{"jsonrpc":"2.0","method":"notifications/cancelled"}`
		initialize = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`
	)
	for _, tc := range []struct {
		name, in string
		ids      []any // that are answered
	}{
		{"initialize", initialize + "\n" + initialize + "\n", []any{7.0}},
		{"after others", "\n" + discover + "\n" + note + "\n" + initialize + "\n", []any{"d", 7.0}},
		{"no newline", initialize, []any{7.0}},
		{"nothing", "", nil},
		{"no message", "hello\n" + initialize + "\n", nil},
		{"too long", strings.Repeat("x", 17<<20) + "\n" + initialize + "\n", []any{7.0}},
	} {
		var out strings.Builder
		answered := mcpserver.RefuseStdio(t.Context(), strings.NewReader(tc.in), &out,
			"cannot\nstart\x1b\u202e: do this")
		if answered != (len(tc.ids) > 0) {
			t.Errorf("%s: RefuseStdio() = %v, want %v", tc.name, answered, !answered)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			lines = nil
		}
		if len(lines) != len(tc.ids) {
			t.Errorf("%s: answers %q, want %d", tc.name, out.String(), len(tc.ids))
			continue
		}
		for i, line := range lines {
			var m struct {
				ID    any
				Error struct {
					Code    int
					Message string
					Data    struct{ Retryable *bool }
				}
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.ID != tc.ids[i] || m.Error.Code != -31503 ||
				m.Error.Message != "cannot start: do this" || m.Error.Data.Retryable == nil || *m.Error.Data.Retryable {
				t.Errorf("%s: answer %s, want the error for id %v", tc.name, line, tc.ids[i])
			}
		}
	}
}

// A client that says nothing is not waited for after the end of the context.
func TestRefuseStdioEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // virtual
		defer cancel()
		in, client := io.Pipe()
		if mcpserver.RefuseStdio(ctx, in, io.Discard, "no") {
			t.Error("RefuseStdio() = true, want false without a request")
		}
		client.Close()
	})
}
