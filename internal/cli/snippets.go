package cli

import (
	"encoding/json"
	"fmt"
	"strings"
)

// snippets returns the configuration for clients of an MCP server at url. The
// token itself is never printed.
func snippets(name, url string, token bool) string {
	type server struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	s := server{Type: "http", URL: url}
	header := ""
	if token {
		header = ` --header "Authorization: Bearer $KNOWHOW_TOKEN"`
		s.Headers = map[string]string{"Authorization": "Bearer TOKEN"}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nClaude Code:\n  claude mcp add --transport http %s %s%s\n", name, url, header)
	b.WriteString("Clients that are configured by a JSON file:\n  ")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Strings and maps of strings always encode.
	_ = e.Encode(map[string]any{"mcpServers": map[string]server{name: s}})
	b.WriteByte('\n')
	return b.String()
}
