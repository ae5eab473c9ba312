package cli

import (
	"fmt"

	"knowhow/internal/compact"
)

// snippets returns the configuration for clients of an MCP server at url. token
// is the environment variable with the token that clients must send, "" for
// none. The token itself is not shown.
func snippets(name, url, token string) string {
	type server struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	s := server{Type: "http", URL: url}
	header := ""
	if token != "" {
		header = fmt.Sprintf(` --header "Authorization: Bearer $%s"`, token)
		s.Headers = map[string]string{"Authorization": "Bearer TOKEN"}
	}
	// strings and maps of strings can always be encoded
	config, _ := compact.Marshal(map[string]any{"mcpServers": map[string]server{name: s}})
	return fmt.Sprintf("\nClaude Code:\n  claude mcp add --transport http %s %s%s\n"+
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
	config, _ := compact.Marshal(map[string]any{"mcpServers": map[string]server{name: {program, args}}}) // can always be encoded
	return fmt.Sprintf("Clients that start the server themselves:\n  %s\n\n", config)
}

// tokenVariable returns the variable for [snippets]: name if there is a token.
func tokenVariable(name, token string) string {
	if token == "" {
		return ""
	}
	return name
}
