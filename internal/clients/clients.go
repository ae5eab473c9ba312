// Package clients has the table of MCP client programs: where each has its
// configuration on each system, how an entry for a server looks there, what it
// understands, its own commands, and what its user does next. The command line
// connects and checks clients with it; docs/client-settings.md is generated from it.
//
// The package starts no program and changes no file.
package clients

import (
	"path"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// A System is a machine with its user, as far as the configuration of clients
// depends on them. It is a struct so that each system can be tested on every other.
type System struct {
	GOOS   string                           // as in package runtime; other systems are like "linux"
	Home   string                           // the home folder, absolute
	Dir    string                           // the working directory, which is the project of [Project]
	Lookup func(name string) (string, bool) // looks up an environment variable like os.LookupEnv
	Exists func(path string) bool           // reports whether there is a file or a folder

	// Program returns the path of a program on the PATH like exec.LookPath, or "".
	Program func(name string) string
}

// A Scope says for whom a client is connected.
type Scope string

// The scopes.
const (
	User    Scope = "user"    // in all projects of the user
	Project Scope = "project" // in one project, for everyone who works on it

	// Local is in one project, for the user only: where "claude mcp add" writes by
	// default. This package reads it and does not write it.
	Local Scope = "local"
)

// A File is a configuration file of a client.
type File struct {
	Scope  Scope
	Path   string // absolute
	Format Format
	Place  Place // of the servers, without a Name
}

// A Client is an MCP client program.
type Client struct {
	Name     string   // on the command line, for example "claude-code"
	Title    string   // for people, for example "Claude Code"
	Synonyms []string // other names on the command line

	// Docs is the address of the page of its documentation about adding servers.
	Docs string

	// HTTP reports whether the client connects to servers that run. Every client starts
	// servers itself.
	HTTP bool

	// Window reports whether the client is a program with windows, which does not have
	// the environment variables of a shell.
	Window bool

	// Variable is how the entry for a server that runs names an environment variable that
	// the client reads, with %s for its name; "" if it reads none.
	Variable string

	// Next has sentences about what the user does after a change, and NextProject those
	// for [Project] in addition. NextToken has those about the variable with a token.
	Next, NextProject, NextToken string

	// Instead says how to connect the client to a server that runs, or with a token, if
	// it cannot be done with this package; "" if it can.
	Instead string

	// Verb has the commands of the client itself; nil if there are none.
	Verb *Verb

	programs []string // on the PATH of users who have the client
	folders  places   // that exist where the client is installed
	user     places   // files of the user; the first that exists counts
	project  string   // file of a project, relative to its folder; "" if there is none
	format   Format
	keys     []string // of the servers in a file
	local    bool     // the file of the user also has servers for each project
	list     bool     // the servers are a list of objects with names
	shape    shape
	prompt   string      // how an entry names a token for which the client asks; "" if it does not ask
	inputs   string      // the lines that a file in JSON has for that before its servers
	link     installLink // nil if its documentation defines none
}

// places are paths on each system, in order of preference. They begin with a root:
//
//	~/         the home folder
//	$CONFIG/   XDG_CONFIG_HOME or ~/.config on Linux, ~/Library/Application Support
//	           on macOS, %APPDATA% on Windows
//	$LOCAL/    %LOCALAPPDATA% on Windows
//	/          an absolute path
//	$NAME/     the folder in another environment variable; the path counts only if the
//	           variable is set, and before those that follow even if it does not exist
type places struct{ linux, macOS, windows []string }

// everywhere returns places that are the same on each system.
func everywhere(paths ...string) places { return places{paths, paths, paths} }

// on returns the paths of a system.
func (p places) on(goos string) []string {
	switch goos {
	case "darwin":
		return p.macOS
	case "windows":
		return p.windows
	}
	return p.linux
}

// Find returns the client with that name or synonym, and the names that resemble it
// if there is none. Capital letters count as small ones.
func Find(name string) (c *Client, near []string) {
	name = strings.ToLower(name)
	var known []string
	for _, c := range All() {
		if c.Name == name || slices.Contains(c.Synonyms, name) {
			return c, nil
		}
		known = append(append(known, c.Name), c.Synonyms...)
	}
	for _, n := range spell.Near(name, known, 3) {
		if c, _ := Find(n); !slices.Contains(near, c.Name) {
			near = append(near, c.Name)
		}
	}
	return nil, near
}

// Names returns the names of all clients in the order of the table.
func Names() (names []string) {
	for _, c := range All() {
		names = append(names, c.Name)
	}
	return names
}

// Installed reports whether the client seems to be installed: whether one of its
// programs is on the PATH, or a folder exists that it makes.
func (c *Client) Installed(s System) bool {
	for _, p := range c.programs {
		if s.Program(p) != "" {
			return true
		}
	}
	for _, p := range c.folders.on(s.GOOS) {
		if path, ok := s.expand(p); ok && s.Exists(path) {
			return true
		}
	}
	return false
}

// File returns the configuration file of a scope. It need not exist. ok is false if
// the client has none for the scope, or if the folder of the system is not known.
func (c *Client) File(s System, scope Scope) (f File, ok bool) {
	f = File{Scope: scope, Format: c.format, Place: Place{Keys: c.keys, List: c.list}}
	if scope == Project {
		f.Path = s.join(s.Dir, c.project)
		return f, c.project != "" && s.Dir != ""
	}
	for _, p := range c.user.on(s.GOOS) {
		path, known := s.expand(p)
		switch {
		case !known:
		case s.overrides(p), s.Exists(path):
			f.Path = path
			return f, true
		case f.Path == "":
			f.Path = path
		}
	}
	return f, f.Path != ""
}

// Files returns the configuration files of all scopes, the one of [Local] included.
// In the home folder, the file of the project may be that of the user.
func (c *Client) Files(s System) (files []File) {
	for _, scope := range []Scope{User, Project} {
		if f, ok := c.File(s, scope); ok && (len(files) == 0 || files[0].Path != f.Path) {
			files = append(files, f)
		}
	}
	if f, ok := c.File(s, User); ok && c.local && s.Dir != "" {
		f.Scope, f.Place.Keys = Local, append([]string{"projects", s.Dir}, c.keys...)
		files = append(files, f)
	}
	return files
}

// Scopes returns the scopes that the client has.
func (c *Client) Scopes() []Scope {
	if c.project == "" {
		return []Scope{User}
	}
	return []Scope{User, Project}
}

// overrides reports whether a path begins with a variable that chooses the folder of
// one client.
func (s System) overrides(p string) bool {
	root, _, _ := strings.Cut(p, "/")
	return strings.HasPrefix(root, "$") && root != "$CONFIG" && root != "$LOCAL"
}

// expand returns a path of [places]. ok is false if its root is not known.
func (s System) expand(p string) (expanded string, ok bool) {
	root, rest, _ := strings.Cut(p, "/")
	get := func(name string) string { value, _ := s.Lookup(name); return value }
	switch {
	case root == "":
		return p, true
	case root == "~":
		root = s.Home
	case root == "$CONFIG" && s.GOOS == "windows":
		if root = get("APPDATA"); root == "" && s.Home != "" {
			root = s.join(s.Home, "AppData/Roaming")
		}
	case root == "$LOCAL":
		if root = get("LOCALAPPDATA"); root == "" && s.Home != "" {
			root = s.join(s.Home, "AppData/Local")
		}
	case root == "$CONFIG" && s.GOOS == "darwin" && s.Home != "":
		root = s.join(s.Home, "Library/Application Support")
	case root == "$CONFIG":
		if root = get("XDG_CONFIG_HOME"); !path.IsAbs(root) {
			root = ""
			if s.Home != "" {
				root = s.join(s.Home, ".config")
			}
		}
	default:
		root = get(root[1:])
	}
	if root == "" {
		return "", false
	}
	return s.join(root, rest), true
}

// join joins a folder and a relative path with slashes, with the separator of the
// system.
func (s System) join(dir, rel string) string {
	if rel == "" {
		return dir
	}
	if s.GOOS == "windows" {
		return strings.TrimRight(dir, `\/`) + `\` + strings.ReplaceAll(rel, "/", `\`)
	}
	return path.Join(dir, rel)
}
