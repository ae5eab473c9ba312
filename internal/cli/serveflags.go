package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"knowhow/internal/httpguard"
)

const serveHelp = `Usage: {cmd} [FLAGS] [SOURCE ...]

Indexes folders and files and lets agents search and read them through MCP.
Sources are remembered: without a SOURCE it goes on with those it knows.

Flags:
  --addr HOST:PORT       where to listen (127.0.0.1:7411)
  --transport KIND       http, or stdio for a client that starts the program (http)
  --data DIR             data folder (KNOWHOW_DATA)
  --label NAME           label of the source that follows
  --domain ID            domain of /mcp, part of the tools' names
  --domain-name NAME     name of that domain, for people and agents
  --token TOKEN          asked of every caller; needed beyond loopback (KNOWHOW_TOKEN)
  --embedder NAME        this version searches by words: builtin or none (KNOWHOW_EMBEDDER)
  --no-watch             look for changes at the start only
  --revision latest      MCP revisions to negotiate
  --allow-host HOST      further Host that requests may have; repeatable
  --allow-origin ORIGIN  further Origin that requests may have; repeatable

Examples:
  {cmd} docs
  {cmd} ~/handbook --label policies ~/company/legal
  {cmd} --transport stdio ~/handbook
  {cmd} --addr 0.0.0.0:7411 --token "$TOKEN"
`

// serveOptions are the flags and operands of serve.
type serveOptions struct {
	addr, data, domain, domainName, token string
	stdio, noWatch                        bool
	hosts, origins                        []string
	sources                               []sourceArg
}

// A sourceArg is a source as the command line names it.
type sourceArg struct{ path, label string }

// parseServe reads the command line of serve.
func parseServe(v *invocation, args []string) (*serveOptions, error) {
	o := &serveOptions{}
	fs := v.newFlags()
	transport, revision := newChoice("http", "stdio"), newChoice("latest")
	embedder := newChoice("builtin", "none")
	if e := v.get("KNOWHOW_EMBEDDER"); e != "" {
		if err := embedder.Set(e); err != nil {
			return nil, v.usagef("KNOWHOW_EMBEDDER: got %q, %v", e, err)
		}
	}
	var label string
	var hosts, origins list
	fs.StringVar(&o.addr, "addr", "127.0.0.1:7411", "")
	fs.Var(transport, "transport", "")
	fs.StringVar(&o.data, "data", "", "")
	fs.Func("label", "", func(s string) error {
		if label = s; !labelPattern.MatchString(s) {
			return errors.New(`want letters, digits, "_", "." and "-" only`)
		}
		return nil
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
	fs.Var(revision, "revision", "")
	fs.Var(&hosts, "allow-host", "")
	fs.Var(&origins, "allow-origin", "")
	err := v.parse(fs, args, func(arg string) error {
		o.sources = append(o.sources, sourceArg{path: arg, label: label})
		label = ""
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o.token, err = v.tokenOr(o.token, "KNOWHOW_TOKEN"); err != nil {
		return nil, err
	}
	if label != "" {
		return nil, v.usagef("--label %s: no source follows it", label)
	}
	o.stdio = transport.value == "stdio"
	o.hosts, o.origins = hosts, origins
	if o.data, err = dataFolder(v.Env, o.data); err != nil {
		return nil, err
	}
	return o, nil
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

// resolveSource makes the path of a source absolute and free of links, so that
// a folder is one source however it is spelled.
func resolveSource(arg string) (string, error) {
	if strings.Contains(arg, "://") {
		return "", &hintError{fmt.Errorf("source %q is a web address, and this version indexes folders and files", arg), "Name a folder."}
	}
	abs, err := filepath.Abs(arg)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", &hintError{fmt.Errorf("source %q cannot be read: %w", arg, pathReason(err)), "Check the spelling, or name another folder."}
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", &hintError{fmt.Errorf("source %q cannot be read: %w", arg, pathReason(err)), "Check the spelling, or name another folder."}
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return "", &hintError{fmt.Errorf("source %q is neither a folder nor a file", arg), "Name a folder."}
	}
	return abs, nil
}
