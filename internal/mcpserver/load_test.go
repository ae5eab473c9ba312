package mcpserver_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

// Every request that is not cancelled is answered exactly once, whatever else
// happens. Most useful with -race.
func TestLoad(t *testing.T) {
	transports(t, mcpserver.Options{MaxInFlight: 8}, func(t *testing.T, k *kit, s *mcptest.Session) {
		rng := rand.New(rand.NewPCG(1, 2))
		s.Initialize("2025-03-26")
		var open []int
		for i := range 300 {
			switch rng.IntN(6) {
			case 0:
				open = append(open, s.Start("tools/call", withToken("progress", i)))
			case 1:
				open = append(open, s.Start("resources/list", nil))
			case 2:
				open = append(open, s.Start("tools/call", map[string]any{"name": "fail",
					"arguments": map[string]any{"name": "busy"}}))
			case 3:
				s.Cancel(s.Start("tools/call", hold("x"))) // it may be cancelled before it runs, or over HTTP before it arrives
			case 4:
				s.Notify("notifications/cancelled", map[string]any{"requestId": -1})
			default:
				open = append(open, s.Start("tools/call", map[string]any{"name": "echo",
					"arguments": map[string]any{"name": fmt.Sprint(i)}}))
			}
			if i == 150 {
				close(k.release)
			}
		}
		for _, id := range open {
			if m := s.Wait(id); m.Error != nil && m.Error.Field("code") != "BUSY" {
				t.Errorf("request %d = %v", id, m.Error)
			}
		}
		if _, err := s.Tool("echo", nil); err != nil {
			t.Errorf("afterwards = %v", err)
		}
	})
}
