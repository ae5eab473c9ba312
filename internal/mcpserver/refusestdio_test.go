package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
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
		stray    bool
		want     string // ids and codes of the answers
	}{
		{"initialize", initialize + "\n" + initialize + "\n", false, "7 -31503\n"},
		{"after others", "\n" + discover + "\n" + note + "\n" + initialize + "\n", true, "\"d\" -31503\n7 -31503\n"},
		{"no newline", initialize, true, "7 -31503\n"},
		{"nothing", "", false, ""},
		{"no JSON", "hello\n" + initialize + "\n", false, "null -32700\n7 -31503\n"},
		{"no message", `{"jsonrpc":"2.0","id":null,"method":"ping"}` + "\n" + initialize, false,
			"null -32600\n7 -31503\n"},
		{"no client", "hello\n" + initialize + "\n", true, ""},
		{"too long", strings.Repeat("x", 17<<20) + "\n" + initialize + "\n", false, "null -32600\n7 -31503\n"},
		{"no client, too long", strings.Repeat("x", 17<<20) + "\n" + initialize + "\n", true, ""},
	} {
		var out strings.Builder
		mcpserver.RefuseStdio(t.Context(), strings.NewReader(tc.in), &out, "cannot\nstart\x1b\u202e: do this", tc.stray)
		got := ""
		for line := range strings.Lines(out.String()) {
			var m struct {
				ID    json.RawMessage
				Error struct {
					Code    int
					Message string
					Data    struct{ Retryable *bool }
				}
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error.Code == -31503 &&
				(m.Error.Message != "cannot start: do this" || m.Error.Data.Retryable == nil || *m.Error.Data.Retryable) {
				t.Errorf("%s: answer %s, want the error", tc.name, line)
			}
			got += fmt.Sprintln(string(m.ID), m.Error.Code)
		}
		if got != tc.want {
			t.Errorf("%s: answers %q, want %q", tc.name, got, tc.want)
		}
	}
}

// A client that says nothing is not waited for after the end of the context.
func TestRefuseStdioEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // virtual
		defer cancel()
		in, client := io.Pipe()
		mcpserver.RefuseStdio(ctx, in, io.Discard, "no", false)
		client.Close()
	})
}
