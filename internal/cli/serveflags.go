package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/fessmcp"
	"knowhow/internal/httpguard"
	"knowhow/internal/ignore"
	"knowhow/internal/source"
	"knowhow/internal/spell"
)

const serveHelp = `Usage: {cmd} [FLAGS] [SOURCE ...]

Indexes folders and files, and serves them to agents over MCP. Only the named
sources are served. Sources are remembered. Without a SOURCE, all remembered
sources are served.

{flags}

Examples:
  {cmd} docs
  {cmd} ~/handbook --label policies ~/company/legal
  {cmd} --description "Minutes of the board since 2019" ~/board
  KNOWHOW_TRANSPORT=stdio {cmd} ~/handbook
  {cmd} --addr 0.0.0.0:7411 --token "$TOKEN"
`

const mcpHelp = `Usage: {cmd} [FLAGS] [SOURCE ...]

Does the same as serve for the one client that starts it, on standard input and
output. This is the command for the configuration of clients. The flags that are
about HTTP are accepted and ignored.

{flags}

Examples:
  {cmd} ~/handbook
  {cmd} --label policies ~/company/legal
`

const (
	// defaultHost is the default address of serve.
	defaultHost = "127.0.0.1"

	// maxDescription is the maximum length of a source's description, in
	// characters. With it, the instructions of a server stay within what
	// clients show.
	maxDescription = 500

	// maxPatterns is the maximum number of patterns of each kind for a source.
	maxPatterns = 1000
)

// serveOptions are the flags and operands of serve.
type serveOptions struct {
	addr, data, domain, domainName, token string
	transport, level                      string
	noWatch, yes, kbTools                 bool
	hosts, origins                        []string
	groups                                []fessmcp.Group
	maxUpload                             int64
	sources                               []sourceArg
	next                                  sourceArg // flags for the next source
	model                                 serveModel
	store                                 storeFlags
}

// A sourceArg is a source on the command line.
type sourceArg struct {
	path, label, description string
	include, exclude         *[]string // nil: as remembered
	noIgnore                 *bool     // nil: as remembered
}

// rules returns the rules of a source that had these rules before.
func (a sourceArg) rules(r document.Rules) document.Rules {
	if a.include != nil {
		r.Include = *a.include
	}
	if a.exclude != nil {
		r.Exclude = *a.exclude
	}
	if a.noIgnore != nil {
		r.NoIgnore = *a.noIgnore
	}
	return r
}

// changes reports whether the command line has more than the path and label of
// the source.
func (a sourceArg) changes() bool {
	return a.description != "" || a.include != nil || a.exclude != nil || a.noIgnore != nil
}

// addPattern adds a pattern of a flag to a list. An empty pattern empties the
// list.
func addPattern(list **[]string, pattern string) error {
	if *list == nil {
		*list = &[]string{}
	}
	if pattern == "" {
		**list = nil
		return nil
	}
	if err := ignore.Check(pattern); err != nil {
		return fmt.Errorf(`want a pattern in the syntax of .gitignore, such as "*.md" or "drafts/" (%s)`, errkind.Message(err))
	}
	if **list = append(**list, pattern); len(**list) > maxPatterns {
		return fmt.Errorf("want at most %d patterns for a source", maxPatterns)
	}
	return nil
}

// define declares the flags and operands of serve in f, or with stdio those of
// mcp.
func (o *serveOptions) define(f *flagSet, stdio bool) {
	var ignored string // of choices that have no effect yet
	f.String(&o.addr, flag{Name: "addr", Value: "HOST:PORT", Default: defaultHost + ":7411", Help: "address to listen on"})
	f.Func(flag{Name: "port", Value: "PORT", Help: "short for --addr " + defaultHost + ":PORT"}, func(s string) error {
		o.addr = net.JoinHostPort(defaultHost, s)
		return checkPort(s)
	})
	if stdio {
		f.Choice(&o.transport, flag{Name: "transport", Help: "as for serve; KNOWHOW_TRANSPORT is ignored"}, "stdio")
	} else {
		transportFlag(f, &o.transport, "http", "stdio")
	}
	dataFlag(f, &o.data)
	o.store.define(f)
	f.Func(flag{Name: "label", Value: "NAME", Help: "label of the source that follows"}, func(s string) error {
		if o.next.label = s; !source.ValidLabel(s) {
			return errors.New(`want letters, digits, "_", "." and "-" only`)
		}
		return nil
	})
	f.Func(flag{Name: "description", Value: "TEXT", Help: "what the source that follows contains; it is remembered"}, func(s string) error {
		o.next.description = strings.TrimSpace(s)
		if n := utf8.RuneCountInString(o.next.description); n == 0 || n > maxDescription {
			return fmt.Errorf("want 1 to %d characters", maxDescription)
		}
		return nil
	})
	f.Func(flag{Name: "include", Value: "GLOB", many: true, Help: "index only files of the source that follows that match, or are in a folder that matches; " +
		"a pattern in the syntax of .gitignore; it is remembered, and an empty one removes those remembered"},
		func(s string) error { return addPattern(&o.next.include, s) })
	f.Func(flag{Name: "exclude", Value: "GLOB", many: true, Help: "leave out files and folders of the source that follows that match; likewise"},
		func(s string) error { return addPattern(&o.next.exclude, s) })
	f.Func(flag{Name: "no-ignore", Help: "index what .gitignore and .ignore files exclude from the source that follows; it is remembered until --no-ignore=false"}, func(s string) error {
		value, err := strconv.ParseBool(s)
		if err != nil {
			return errors.New("want true or false")
		}
		o.next.noIgnore = &value
		return nil
	})
	f.Func(flag{Name: "tools", Value: "GROUPS", Default: "search", Help: "groups of tools to offer, separated by commas: search; fess, the other tools of the bridge; " +
		"kb, the tools of the knowledge base, which write notes and files; a group that is not named is not offered"}, func(s string) (err error) {
		o.groups, o.kbTools, err = toolGroups(s)
		return err
	})
	f.Func(flag{Name: "domain", Value: "ID", Help: "domain of /mcp, with which tool names begin; by default the label of the only source, or all"}, func(s string) error {
		var ok bool
		if o.domain, ok = source.NormalDomain(s); !ok {
			return fmt.Errorf(`want 1 to %d letters, digits and "_"`, source.MaxDomain)
		}
		return nil
	})
	f.String(&o.domainName, flag{Name: "domain-name", Value: "NAME", Help: "name of that domain, for people and agents"})
	f.Token(&o.token, flag{Name: "token", Value: "TOKEN", Env: "KNOWHOW_TOKEN",
		Help: "token that every caller must send as Authorization: Bearer; required to listen on other addresses than loopback"})
	o.model.define(f, "the sources")
	logLevelFlag(f, &o.level, "warn", levelHelp)
	f.Bool(&o.noWatch, flag{Name: "no-watch", Help: "look for changes only at the start"})
	f.Bool(&o.yes, flag{Name: "yes", Help: "index a home folder or a whole disk without asking"})
	f.Choice(&ignored, flag{Name: "revision", Help: "MCP revisions to negotiate; latest is every one"}, "latest")
	httpFlags(f, &o.hosts, &o.origins)
	maxUploadVariable(f, &o.maxUpload)
	f.operand = func(arg string) error {
		if strings.TrimSpace(arg) == "" { // probably a variable of the shell that is not set
			return &usageError{message: "a source is empty, want a folder or a file", hint: "Check the variable or the quotes in the command."}
		}
		o.next.path = f.expand(arg)
		o.sources = append(o.sources, o.next)
		o.next = sourceArg{}
		return nil
	}
}

// stdio reports whether the client started the program.
func (o *serveOptions) stdio() bool { return o.transport == "stdio" }

// check checks combinations of flags.
func (o *serveOptions) check(f *flagSet) (err error) {
	switch {
	case o.next.label != "":
		return f.usagef("--label %s: no source follows it", o.next.label)
	case o.next.description != "":
		return f.usagef("--description: no source follows it")
	case o.next.include != nil:
		return f.usagef("--include: no source follows it")
	case o.next.exclude != nil:
		return f.usagef("--exclude: no source follows it")
	case o.next.noIgnore != nil:
		return f.usagef("--no-ignore: no source follows it")
	case o.kbTools && o.domain == kbTools:
		return f.usagef("--domain %s: the tools of the knowledge base have names that begin with %s, choose another domain", o.domain, o.domain)
	case f.given("port") && f.given("addr"):
		return f.usagef("--addr and --port exclude each other")
	}
	o.data, err = dataFolder(f.Env, o.data)
	return err
}

// checkPort refuses a value that is not a port number.
func checkPort(s string) error {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || strconv.FormatUint(n, 10) != s {
		return errors.New("want a number from 0 to 65535")
	}
	return nil
}

// kbTools is the group of the tools of the knowledge base.
const kbTools = "kb"

// toolGroups parses the value of --tools. It reports whether kbTools is among
// the groups.
func toolGroups(s string) (groups []fessmcp.Group, kb bool, err error) {
	known := []string{string(fessmcp.SearchTools), string(fessmcp.FessTools), kbTools}
	const want = "want search, fess and kb, separated by commas"
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == kbTools:
			kb = true
			continue
		case !slices.Contains(known, name):
			if near := spell.Near(name, known, 1); len(near) > 0 {
				return nil, false, fmt.Errorf("%s; did you mean %s?", want, near[0])
			}
			return nil, false, errors.New(want)
		}
		groups = append(groups, fessmcp.Group(name))
	}
	return groups, kb, nil
}

// listener returns the host and port to listen on. Without a token, it refuses
// addresses other than loopback.
func (v *invocation) listener(addr, token string) (host string, port int, err error) {
	if host, port, err = v.hostPort(addr); err != nil {
		return "", 0, err
	}
	if token == "" && !httpguard.Loopback(host) {
		return "", 0, &hintError{fmt.Errorf("--addr %s listens beyond this machine, which requires a token", addr),
			"Set --token or KNOWHOW_TOKEN, or listen on 127.0.0.1."}
	}
	return host, port, nil
}

// hostPort returns the parts of the address in --addr.
func (v *invocation) hostPort(addr string) (host string, port int, err error) {
	host, service, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = net.LookupPort("tcp", service)
	}
	if err != nil {
		return "", 0, v.usagef("--addr: got %q, want HOST:PORT, for example 127.0.0.1:8080", addr)
	}
	return host, port, nil
}

// dataFolder returns the folder of the index: the one that a flag or its variable
// names, that of serve, or the default folder of the platform.
func dataFolder(e Env, named string) (string, error) {
	if named = cmp.Or(named, e.get("KNOWHOW_DATA")); named != "" {
		return filepath.Abs(e.expand(named))
	}
	return defaultData(e)
}

// defaultData returns the default data folder of the platform.
func defaultData(e Env) (string, error) {
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
