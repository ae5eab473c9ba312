package cli

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"knowhow/internal/fessmcp"
	"knowhow/internal/httpguard"
	"knowhow/internal/spell"
)

const serveHelp = `Usage: {cmd} [FLAGS] [SOURCE ...]

Indexes folders and files, and lets agents search and read them over MCP.
Exactly the named sources are served. Sources are remembered: without a SOURCE
all remembered sources are served.

Flags:
  --addr HOST:PORT       address to listen on (127.0.0.1:7411)
  --port PORT            the same as --addr 127.0.0.1:PORT
  --transport KIND       http, or stdio for a client that starts the program (http)
  --data DIR             data folder (KNOWHOW_DATA)
  --label NAME           label of the source that follows
  --description TEXT     what the source that follows is about; remembered
  --tools GROUPS         groups of tools: search, fess, or both with a comma (search)
  --domain ID            domain of /mcp; the names of the tools begin with it
  --domain-name NAME     name of that domain, for people and agents
  --token TOKEN          required of every caller; needed beyond loopback (KNOWHOW_TOKEN)
  --embedder NAME        this version searches by words: builtin or none (KNOWHOW_EMBEDDER)
  --no-watch             look for changes only at the start
  --yes                  index a home folder or a whole disk without a question
  --revision latest      MCP revisions to negotiate
  --allow-host HOST      additional value that the Host header may have; repeatable
  --allow-origin ORIGIN  additional value that the Origin header may have; repeatable

Examples:
  {cmd} docs
  {cmd} ~/handbook --label policies ~/company/legal
  {cmd} --description "Minutes of the board since 2019" ~/board
  {cmd} --transport stdio ~/handbook
  {cmd} --addr 0.0.0.0:7411 --token "$TOKEN"
`

const (
	// defaultHost is where serve listens unless told otherwise.
	defaultHost = "127.0.0.1"

	// maxDescription is the longest description of a source, in characters:
	// with it the instructions of a server stay within what clients show.
	maxDescription = 500
)

// serveOptions are the flags and operands of serve.
type serveOptions struct {
	addr, data, domain, domainName, token string
	stdio, noWatch, yes                   bool
	hosts, origins                        []string
	groups                                []fessmcp.Group
	sources                               []sourceArg
}

// A sourceArg is a source as the command line names it.
type sourceArg struct{ path, label, description string }

// parseServe reads the command line of serve.
func parseServe(v *invocation, args []string) (*serveOptions, error) {
	o := &serveOptions{groups: []fessmcp.Group{fessmcp.SearchTools}}
	fs := v.newFlags()
	transport, revision := newChoice("http", "stdio"), newChoice("latest")
	embedder := newChoice("builtin", "none")
	if e := v.get("KNOWHOW_EMBEDDER"); e != "" {
		if err := embedder.Set(e); err != nil {
			return nil, v.usagef("KNOWHOW_EMBEDDER: got %q, %v", e, err)
		}
	}
	var next sourceArg
	var port string
	var hosts, origins list
	fs.StringVar(&o.addr, "addr", "", "")
	fs.Func("port", "", func(s string) error {
		port = s
		return checkPort(s)
	})
	fs.Var(transport, "transport", "")
	fs.StringVar(&o.data, "data", "", "")
	fs.Func("label", "", func(s string) error {
		if next.label = s; !labelPattern.MatchString(s) {
			return errors.New(`want letters, digits, "_", "." and "-" only`)
		}
		return nil
	})
	fs.Func("description", "", func(s string) error {
		next.description = strings.TrimSpace(s)
		if n := utf8.RuneCountInString(next.description); n == 0 || n > maxDescription {
			return fmt.Errorf("want 1 to %d characters", maxDescription)
		}
		return nil
	})
	fs.Func("tools", "", func(s string) (err error) {
		o.groups, err = toolGroups(s)
		return err
	})
	fs.Func("domain", "", func(s string) error {
		if o.domain = strings.ReplaceAll(strings.ToLower(s), "-", "_"); !domainIDPattern.MatchString(o.domain) {
			return fmt.Errorf(`want 1 to %d letters, digits and "_"`, maxDomainID)
		}
		return nil
	})
	fs.StringVar(&o.domainName, "domain-name", "", "")
	fs.Var((*token)(&o.token), "token", "")
	fs.Var(embedder, "embedder", "")
	fs.BoolVar(&o.noWatch, "no-watch", false, "")
	fs.BoolVar(&o.yes, "yes", false, "")
	fs.Var(revision, "revision", "")
	fs.Var(&hosts, "allow-host", "")
	fs.Var(&origins, "allow-origin", "")
	err := v.parse(fs, args, func(arg string) error {
		next.path = arg
		o.sources = append(o.sources, next)
		next = sourceArg{}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o.token, err = v.tokenOr(o.token, "KNOWHOW_TOKEN"); err != nil {
		return nil, err
	}
	switch {
	case next.label != "":
		return nil, v.usagef("--label %s: no source follows it", next.label)
	case next.description != "":
		return nil, v.usagef("--description: no source follows it")
	case port != "" && o.addr != "":
		return nil, v.usagef("--addr and --port name the same thing; give one of them")
	case o.addr == "":
		if port == "" {
			port = defaultPort
		}
		o.addr = net.JoinHostPort(defaultHost, port)
	}
	o.stdio = transport.value == "stdio"
	o.hosts, o.origins = hosts, origins
	if o.data, err = dataFolder(v.Env, o.data); err != nil {
		return nil, err
	}
	return o, nil
}

// defaultPort is the port of serve unless told otherwise.
const defaultPort = "7411"

// checkPort refuses what is not the number of a port.
func checkPort(s string) error {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || strconv.FormatUint(n, 10) != s {
		return errors.New("want a number from 0 to 65535")
	}
	return nil
}

// toolGroups reads the value of --tools.
func toolGroups(s string) ([]fessmcp.Group, error) {
	known := []string{string(fessmcp.SearchTools), string(fessmcp.FessTools)}
	var groups []fessmcp.Group
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "kb":
			return nil, errors.New("but this version has no kb tools; want search, fess or search,fess")
		case !slices.Contains(known, name):
			if near := spell.Near(name, known, 1); len(near) > 0 {
				return nil, fmt.Errorf("want search, fess or search,fess; did you mean %s?", near[0])
			}
			return nil, errors.New("want search, fess or search,fess")
		}
		groups = append(groups, fessmcp.Group(name))
	}
	return groups, nil
}

// listener returns the host and port to listen on. It refuses to listen beyond
// loopback without a token.
func (o *serveOptions) listener(v *invocation) (host string, port int, err error) {
	host, service, err := net.SplitHostPort(o.addr)
	if err == nil {
		port, err = net.LookupPort("tcp", service)
	}
	if err != nil {
		return "", 0, v.usagef("--addr: got %q, want HOST:PORT, for example 127.0.0.1:7411", o.addr)
	}
	if o.token == "" && !httpguard.Loopback(host) {
		return "", 0, &hintError{fmt.Errorf("--addr %s listens beyond this machine, which needs a token", o.addr),
			"Set --token or KNOWHOW_TOKEN, or listen on 127.0.0.1."}
	}
	return host, port, nil
}

// dataFolder returns the folder that holds the index: the flag, the variable,
// or the platform's place for a user's data.
func dataFolder(e Env, flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	if dir := e.get("KNOWHOW_DATA"); dir != "" {
		return filepath.Abs(dir)
	}
	home := e.get("HOME")
	switch runtime.GOOS {
	case "windows":
		if dir := e.get("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "knowhow"), nil
		}
	case "darwin":
		if home != "" {
			return filepath.Join(home, "Library", "Application Support", "knowhow"), nil
		}
	default:
		if dir := e.get("XDG_DATA_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "knowhow"), nil
		}
		if home != "" {
			return filepath.Join(home, ".local", "share", "knowhow"), nil
		}
	}
	return "", &hintError{fmt.Errorf("no data folder: the home directory is not known"), "Name a folder with --data or KNOWHOW_DATA."}
}
