package cli

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/clients"
)

// maxShown is the maximum number of clients for which commands are printed.
const maxShown = 3

// printSnippets prints the commands that connect clients to a server at url: those
// that are installed here, or CLIENT for any. variable is the environment variable
// with the token that clients must send, if there is one. The token itself is not
// shown. own are the operands of connect for clients that start the server themselves,
// because they cannot use the URL; nil if there are none.
func (s *server) printSnippets(name, url, variable string, own []string) {
	running := []string{"--url", url}
	if name != "knowhow" {
		running = append(running, "--name", clients.EntryName(name))
	}
	if s.guard.Token == "" && (s.team == nil || !s.team.users) {
		variable = ""
	} else {
		running = append(running, "--token-env", variable)
	}
	var b strings.Builder
	b.WriteString("\nTo connect a client:\n")
	system, shown := s.clientSystem(), 0
	for _, c := range clients.All() {
		operands := running
		if !c.HTTP || variable != "" && c.Variable == "" {
			operands = own
		}
		if operands == nil || shown == maxShown || !c.Installed(system) {
			continue
		}
		shown++
		b.WriteString("  " + s.connectLine(c.Name, operands) + "\n")
	}
	if shown == 0 {
		b.WriteString("  " + s.connectLine("CLIENT", running) + "\n")
	}
	// The header names the variable, which a shell of Windows would expand.
	if c, _ := clients.Find("claude-code"); c.Installed(system) && (variable == "" || runtime.GOOS != "windows") {
		own := c.Verb.Add(c, clients.Server{Name: clients.EntryName(name), URL: url, TokenEnv: variable}, clients.User)
		fmt.Fprintf(&b, "Claude Code has a command of its own:\n  %s\n", shellWords(own))
	}
	if variable != "" {
		fmt.Fprintf(&b, "The clients take the token from the variable %s, which must be set where they start.\n", variable)
	}
	fmt.Fprintf(s.stderr, "%s\n", b.String())
}

// absolute returns the absolute form of a path, or the path if the working directory
// is not known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// connectLine returns a command that connects a client.
func (v *invocation) connectLine(client string, operands []string) string {
	program := v.Program
	if v.Command != "" || v.Commands != nil {
		program = "knowhow" // of which this program has only some commands
	}
	return shellWords(append([]string{program, "connect", client}, operands...))
}
