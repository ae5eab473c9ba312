package clients_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/clients"
)

// Every client has a guide, to a server with a token and without one.
func TestGuide(t *testing.T) {
	for _, c := range clients.All() {
		for _, token := range []string{"", "KNOWHOW_TOKEN"} {
			s := clients.Server{Name: "docs", URL: "https://docs.example/mcp", TokenEnv: token}
			g, err := c.Guide(s)
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			if !c.HTTP || token != "" && c.Variable == "" {
				if g.Instead == "" || g.Command != nil || g.Snippet != "" {
					t.Errorf("%s cannot be connected, and has the guide %+v", c.Name, g)
				}
				continue
			}
			for _, part := range []string{strings.Join(g.Command, " "), g.Snippet} {
				if !strings.Contains(part, s.URL) || !strings.Contains(part, token) {
					t.Errorf("%s: %q does not have %s and %s", c.Name, part, s.URL, token)
				}
			}
			if g.File == "" || g.Next == "" || g.Instead != "" || strings.Contains(g.Next, "%") {
				t.Errorf("%s has the guide %+v", c.Name, g)
			}
		}
	}
	c, _ := clients.Find("claude-code")
	g, err := c.Guide(clients.Server{Name: "knowhow", URL: "http://127.0.0.1:7411/mcp", TokenEnv: "KNOWHOW_TOKEN"})
	want := c.Verb.Add(c, clients.Server{Name: "knowhow", URL: "http://127.0.0.1:7411/mcp", TokenEnv: "KNOWHOW_TOKEN"}, clients.User)
	if err != nil || !slices.Equal(g.Command, want) ||
		g.File != `~/.claude.json, on Windows %USERPROFILE%\.claude.json` || !strings.Contains(g.Snippet, "${KNOWHOW_TOKEN}") {
		t.Errorf("the guide of Claude Code is %+v, %v", g, err)
	}
}
