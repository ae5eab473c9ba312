package cli

import (
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/compact"
)

// printSnippets prints the configuration for clients of an MCP server at url. variable
// is the environment variable with the token that clients must send, if there is one.
// The token itself is not shown.
func (s *server) printSnippets(name, url, variable string) {
	type server struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	entry := server{Type: "http", URL: url}
	header := ""
	if s.guard.Token != "" {
		header = fmt.Sprintf(` --header "Authorization: Bearer $%s"`, variable)
		entry.Headers = map[string]string{"Authorization": "Bearer TOKEN"}
	}
	// strings and maps of strings can always be encoded
	config, _ := compact.Marshal(map[string]any{"mcpServers": map[string]server{name: entry}})
	fmt.Fprintf(s.stderr, "\nClaude Code:\n  claude mcp add --transport http %s %s%s\n"+
		"Clients that are configured by a JSON file:\n  %s\n\n", name, url, header, config)
}

// startSnippet returns the configuration for clients that start the program
// themselves. They do not always have the same PATH and working directory as
// the user, so the paths are absolute.
func startSnippet(name, program string, args []string) string {
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	config, _ := compact.Marshal(map[string]any{"mcpServers": map[string]server{name: {program,
		args}}}) // can always be encoded
	return fmt.Sprintf("Clients that start the server themselves:\n  %s\n\n", config)
}
