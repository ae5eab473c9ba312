package users

import (
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// aView has one MCP server.
type aView struct{ add func() }

func (v aView) MCP(string) *MCP {
	return &MCP{Add: func(*mcpserver.Server) { v.add() }}
}

// A user who is removed while another request of the user brings other rights does not
// block the server.
func TestRemovedWhileRightsChange(t *testing.T) {
	var table *Table
	var u *User
	dropped := make(chan struct{})
	table = New(Options{View: func(c *access.Caller) View {
		return aView{func() {
			if c.Version != 2 { // the lock of the user is held
				return
			}
			go func() {
				defer close(dropped)
				table.drop(u)
			}()
			for table.mu.TryLock() { // until drop has the lock of the table
				table.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		}}
	}})
	caller := func(version uint64, label string) *access.Caller {
		return &access.Caller{ID: "anna", Name: "anna", Rights: access.Rights{Read: []string{label}}, Version: version}
	}
	u = table.User(access.With(t.Context(), caller(1, "a")))
	u.endpoint("")
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		u.change(caller(2, "b"))
	}()
	for _, done := range []chan struct{}{changed, dropped} {
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("the user and the table wait for each other")
		}
	}
}
