package mcpserver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

// addWait adds a tool that waits as the hold tool does, but outside the limit.
func (k *kit) addWait() {
	mcpserver.AddTool(k.server, mcpserver.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (any, error) {
		err := k.server.Wait(ctx, func() error {
			select {
			case <-k.release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		return "waited", err
	})
}

// A hundred clients that start in the same instant are all served: the rest wait
// for their turn.
func TestManyClientsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{})
		var wg sync.WaitGroup
		for range 100 {
			s := site.session(t)
			wg.Go(func() {
				s.Initialize("2025-11-25")
				if m := s.Call("tools/list", nil); m.Error != nil {
					t.Errorf("tools/list = %v", m.Error)
				}
				if _, err := s.ToolText(s.Call("tools/call", hold("x"))); err != nil {
					t.Errorf("a tool = %v", err)
				}
			})
		}
		synctest.Wait()
		time.AfterFunc(1900*time.Millisecond, func() { close(k.release) }) // virtual
		wg.Wait()
	})
}

// Handlers that only wait do not prevent other requests, and work keeps its bound
// while they come back.
func TestWaitingTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, transport := range []string{"stdio", "http"} {
			k := newKit(mcpserver.Options{MaxInFlight: 2, QueueWait: time.Second})
			k.addWait()
			var s *mcptest.Session
			if transport == "stdio" {
				s = k.stdio(t)
			} else {
				s = k.http(t, mcpserver.HTTPOptions{}).session(t)
			}
			s.Initialize("2025-03-26")
			var waiting []int
			for range 50 {
				waiting = append(waiting, s.Start("tools/call", map[string]any{"name": "wait"}))
				synctest.Wait()
			}
			begin := time.Now()
			if _, err := s.Tool("echo", nil); err != nil || time.Since(begin) > 0 {
				t.Errorf("%s: echo beside 50 waiting calls = %v after %v, want an answer at once",
					transport, err, time.Since(begin))
			}
			var held []int
			for range 2 {
				held = append(held, s.Start("tools/call", hold("x")))
			}
			synctest.Wait()
			wantError(t, s.Call("tools/call", map[string]any{"name": "echo"}), -31429, "code", "BUSY")
			s.Cancel(waiting[0])
			synctest.Wait()
			wantError(t, s.Call("tools/call", map[string]any{"name": "echo"}), -31429, "code", "BUSY")
			close(k.release)
			for _, id := range append(waiting[1:], held...) {
				if _, err := s.ToolText(s.Wait(id)); err != nil {
					t.Errorf("%s: call %d = %v", transport, id, err)
				}
			}
			if _, err := s.Tool("echo", nil); err != nil {
				t.Errorf("%s: afterwards = %v", transport, err)
			}
		}
	})
}
