package searchmcp

import (
	"encoding/json"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

// A session is a client of a server of one domain.
type session struct {
	*mcptest.Session
	t      *testing.T
	prefix string // of the names of its tools
}

// start serves o over stdio and initializes a session of the given revision.
func start(t *testing.T, o Options, revision mcpserver.Revision) session {
	t.Helper()
	s := mcpserver.New(mcpserver.Options{Name: "test", Version: "1", Revision: mcpserver.Latest})
	tools := New(o)
	tools.Register(s)
	c := session{mcptest.Stdio(t, s.ServeStdio), t, tools.toolName("")}
	c.Initialize(string(revision))
	return c
}

// tool calls a tool by the end of its name.
func (c session) tool(name string, arguments any) mcptest.Message {
	c.t.Helper()
	return c.Call("tools/call", args{"name": c.prefix + name, "arguments": arguments})
}

// ok calls a tool and returns its text; there must be no error.
func (c session) ok(name string, arguments any) string {
	c.t.Helper()
	text, err := c.ToolText(c.tool(name, arguments))
	if err != nil {
		c.t.Fatalf("%s(%v): %v", name, arguments, err)
	}
	return text
}

// into calls a tool and decodes its text.
func (c session) into(name string, arguments, v any) {
	c.t.Helper()
	text := c.ok(name, arguments)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		c.t.Fatalf("%s(%v) = %s: %v", name, arguments, text, err)
	}
}
