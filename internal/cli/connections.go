package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/doctor"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// A connectedEntry is an entry of this program in the configuration of a client.
type connectedEntry struct {
	file   clients.File
	server clients.Server
}

// findConnections returns the entries of this program by the names of the clients,
// and what is wrong with files that could not be read.
func (v *invocation) findConnections(ctx context.Context, s clients.System, all []*clients.Client) (
	found map[string][]connectedEntry, problems []string) {
	found = map[string][]connectedEntry{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, c := range all {
		for _, f := range c.Files(s) {
			data, err := readConfig(f.Path)
			var servers []clients.Server
			if err == nil && data != nil {
				servers, err = serversIn(f, data)
			}
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s: %s", c.Title, message(inFile(f.Path, err))))
				continue
			}
			for _, server := range servers {
				running.Go(func() {
					if v.isOurs(ctx, server) {
						mu.Lock()
						defer mu.Unlock()
						found[c.Name] = append(found[c.Name], connectedEntry{f, server})
					}
				})
			}
		}
	}
	running.Wait()
	for _, entries := range found {
		slices.SortFunc(entries, func(a, b connectedEntry) int {
			return strings.Compare(a.server.Name+"\x00"+a.file.Path, b.server.Name+"\x00"+b.file.Path)
		})
	}
	return found, problems
}

// serversIn returns the servers in a configuration file, sorted by name.
func serversIn(f clients.File, data []byte) (servers []clients.Server, err error) {
	entries, err := configfile.Entries(f.Format, data, f.Place)
	if err != nil {
		return nil, err
	}
	for name, entry := range entries {
		servers = append(servers, clients.Read(name, entry))
	}
	slices.SortFunc(servers, func(a, b clients.Server) int { return strings.Compare(a.Name, b.Name) })
	return servers, nil
}

// isOurs reports whether a server is one of this program: whether its command starts
// the program, or connect has added it, or its URL is that of a running server or has a
// default port.
func (v *invocation) isOurs(ctx context.Context, s clients.Server) bool {
	switch {
	case v.hasAdded(s):
		return true
	case s.URL != "":
		ours, answers := isOursAt(ctx, s.URL)
		u, err := url.Parse(s.URL)
		return ours && (answers || err == nil && slices.Contains(ourPorts, u.Port()))
	case s.Command == "":
		return false
	case isProgram(s.Command):
		return true
	}
	if program, err := programPath(); err == nil && doctor.SameFile(program, s.Command) {
		return true
	}
	runners := []string{"npx", "uvx", "pipx", "bunx"}
	return slices.Contains(runners, programName(s.Command)) && slices.ContainsFunc(s.Args, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "@"), "@") // without a version
		return isProgram(name)
	})
}

// programName returns the name of a program without its folder and ending.
func programName(path string) string {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	for _, ending := range []string{".exe", ".cmd"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// isProgram reports whether a path is that of a program of this project.
func isProgram(path string) bool {
	return slices.Contains([]string{"knowhow", "knowhow-mcp", "mcp-fess"}, programName(path))
}

// askTime is the time limit for asking whether a server is one of this program.
const askTime = 2 * time.Second

// ourPorts are the default ports of the servers of this program.
var ourPorts = []string{"7411", "7412", "8765"}

// isOursAt reports whether a URL can be that of a server of this program, and whether
// a server answers there.
func isOursAt(ctx context.Context, address string) (ours, answers bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.Path != mcpPath && !strings.HasPrefix(u.Path, mcpPath+"/") {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	health := url.URL{Scheme: u.Scheme, Host: u.Host, Path: httpguard.HealthPath}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, health.String(), nil)
	if err != nil {
		return false, false
	}
	resp, err := (&http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return true, false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 100))
	return err == nil && string(body) == httpguard.Health, true
}

// printClients prints clients and their connections as a table: those that are
// installed or connected first.
func (v *invocation) printClients(list []connectedClient) error {
	var b strings.Builder
	var missing []string
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLIENT\tINSTALLED\tCONNECTED TO")
	for _, c := range list {
		if !c.Installed && len(c.Connections) == 0 {
			missing = append(missing, c.Client)
			continue
		}
		name, installed := c.Client, map[bool]string{true: "yes", false: "no"}[c.Installed]
		if len(c.Connections) == 0 {
			fmt.Fprintf(w, "%s\t%s\t-\n", name, installed)
		}
		for _, s := range c.Connections {
			fmt.Fprintf(w, "%s\t%s\t%s: %s\n", name, installed, sanitize.Escape(s.Name), s.Target)
			name, installed = "", ""
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(missing) == len(list) {
		b.Reset()
		b.WriteString("No client is installed that this program knows.\n")
	}
	if _, err := io.WriteString(v.stdout, b.String()); err != nil {
		return err
	}
	if len(missing) > 0 {
		fmt.Fprintf(v.stderr, "Not installed: %s\n", strings.Join(missing, ", "))
	}
	fmt.Fprintf(v.stderr, "Connect one with: %s CLIENT FOLDER\n", v.name)
	return nil
}
