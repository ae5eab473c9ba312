package cli

import (
	"fmt"

	"knowhow/internal/compact"
)

// snippets returns the configuration for clients of an MCP server at url. It
// never contains the token.
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
	// strings and maps of strings can always be encoded
	config, _ := compact.Marshal(map[string]any{"mcpServers": map[string]server{name: s}})
	return fmt.Sprintf("\nClaude Code:\n  claude mcp add --transport http %s %s%s\n"+
		"Clients that are configured by a JSON file:\n  %s\n\n", name, url, header, config)
}
