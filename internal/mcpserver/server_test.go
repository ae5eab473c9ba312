package mcpserver_test

import (
	"io"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

func reader(s string) io.Reader { return strings.NewReader(s) }

func TestRevisions(t *testing.T) {
	for _, tc := range []struct {
		server mcpserver.Revision
		asked  string
		want   string
	}{
		{mcpserver.Pinned, "2024-11-05", "2025-03-26"},
		{mcpserver.Pinned, "2025-03-26", "2025-03-26"},
		{mcpserver.Pinned, "2025-11-25", "2025-03-26"},
		{mcpserver.Pinned, "2026-07-28", "2025-03-26"},
		{mcpserver.Pinned, "1999-01-01", "2025-03-26"},
		{mcpserver.Cody, "2025-06-18", "2024-11-05"},
		{mcpserver.Cody, "2024-11-05", "2024-11-05"},
		{mcpserver.Latest, "2024-11-05", "2024-11-05"},
		{mcpserver.Latest, "2025-03-26", "2025-03-26"},
		{mcpserver.Latest, "2025-06-18", "2025-06-18"},
		{mcpserver.Latest, "2025-11-25", "2025-11-25"},
		{mcpserver.Latest, "2026-07-28", "2025-11-25"},
		{"", "2025-06-18", "2025-06-18"},
	} {
		t.Run(string(tc.server)+"/"+tc.asked, func(t *testing.T) {
			transports(t, mcpserver.Options{Revision: tc.server}, func(t *testing.T, _ *kit, s *mcptest.Session) {
				if s.SessionID() == "" && strings.Contains(t.Name(), "http") {
					s.SetHeader("Mcp-Protocol-Version", tc.asked) // as clients do that are ahead of us
				}
				m := s.Initialize(tc.asked)
				if got := field(t, m.Result, "protocolVersion"); got != `"`+tc.want+`"` {
					t.Errorf("initialize(%s) = %s, want %s", tc.asked, got, tc.want)
				}
				if text, err := s.Tool("echo", nil); err != nil || text != `{"name":""}` {
					t.Errorf("echo = %q, %v", text, err)
				}
			})
		})
	}
}
