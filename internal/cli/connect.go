package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/doctor"
)

const connectHelp = `Usage: {cmd} [CLIENT|all] [FLAGS] [SOURCE ...]
       {cmd} CLIENT --url URL
       {cmd} CLIENT kb
       {cmd} CLIENT datasets DIR
       {cmd} CLIENT fess CONFIG
       {cmd} CLIENT fess URL --label NAME
       {cmd} CLIENT --remove [--name NAME]

Connects a client, such as Claude Code or Cursor, to folders, to a server that
runs, to the knowledge base, to datasets or to a Fess server. Then it starts the
server as the client does, and searches once. Without a CLIENT, it lists the
clients, and what they are connected to.

The clients: claude-code, claude-desktop, vscode, cursor, codex, gemini, copilot,
windsurf, zed, cline, continue, goose, opencode, lmstudio, kiro, qwen, and "all"
for those that are installed.

A SOURCE is what "serve" takes: a folder, a file, a web site (https://...), a git
repository (git+https://...), fess:CONFIG, datasets:DIR, kb or kb:COLLECTION.

A client that has a command for this is changed with its own command. For the
others, the configuration file is changed: one entry, and nothing else. A copy of
the file as it was is kept beside it until the last entry is removed.

{flags}

Examples:
  {cmd}
  {cmd} claude-code ~/handbook
  {cmd} all ~/handbook ~/company/legal
  {cmd} cursor --url http://127.0.0.1:7411/mcp --token-env KNOWHOW_TOKEN
  {cmd} vscode --scope project docs
  {cmd} claude-desktop kb
  {cmd} cursor fess http://localhost:8080 --label finance
  {cmd} codex --dry-run ~/handbook
  {cmd} cursor --remove --name handbook
`

// A connectCommand connects clients to servers of this program.
type connectCommand struct {
	dataFlag
	URL         string    `flag:"url" value:"URL" help:"connect to this server, which runs, in place of one that the client starts"`
	Name        entryName `flag:"name" value:"NAME" help:"name of the entry, which replaces one of this program that has it; by default one that is free, from the label of the source or the host of the URL"`
	Scope       string    `flag:"scope" value:"user|project" default:"user" help:"connect for all projects of the user, or for the project in the working directory and all who work on it"`
	TokenEnv    variable  `flag:"token-env" value:"VARIABLE" help:"environment variable with the token that the client sends to the server at --url"`
	Label       label     `flag:"label" value:"NAME" help:"label of the source that follows, or the Fess label of the documents of a Fess server"`
	Description string    `flag:"description" value:"TEXT" range:"1-500" help:"what the source that follows contains; it is remembered"`
	Remove      bool      `flag:"remove" help:"remove the entry"`
	Print       bool      `flag:"print" help:"print what would be added and where, and change nothing"`
	DryRun      bool      `flag:"dry-run" help:"print the changes of the files as a diff, and change nothing"`
	jsonFlag

	client  string
	sources []connectSource // what it is connected to
}

// A connectSource is an operand, with the flags before it.
type connectSource struct{ word, label, description string }

// flags returns the flags before it.
func (s connectSource) flags() (args []string) {
	if s.label != "" {
		args = append(args, "--label", s.label)
	}
	if s.description != "" {
		args = append(args, "--description", s.description)
	}
	return args
}

// operand takes CLIENT, then what it is connected to.
func (o *connectCommand) operand(v *invocation, arg string) error {
	switch {
	case strings.TrimSpace(arg) == "": // probably a variable of the shell that is not set
		return &hintError{usageError("an operand is empty, want a client, a folder or a file"),
			"Check the variable or the quotes in the command."}
	case o.client == "":
		o.client = arg
	default:
		o.sources = append(o.sources, connectSource{arg, string(o.Label), strings.TrimSpace(o.Description)})
		o.Label, o.Description = "", ""
	}
	return nil
}

// An entryName is the name of an entry. These are the names that every client takes.
type entryName string

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func (n *entryName) set(s string) error {
	if *n = entryName(s); !namePattern.MatchString(s) {
		return errors.New(`want 1 to 64 letters, digits, "_" and "-"`)
	}
	return nil
}

// A variable is the name of an environment variable.
type variable string

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func (n *variable) set(s string) error {
	if *n = variable(s); !variablePattern.MatchString(s) {
		return errors.New(`want the name of an environment variable, not its value`)
	}
	return nil
}

func (o *connectCommand) run(ctx context.Context, v *invocation) error {
	s := v.clientSystem()
	if o.client == "" {
		for _, name := range []string{"url", "name", "scope", "token-env", "label", "description", "remove", "print", "dry-run"} {
			if v.given(name) {
				return v.usagef("--%s needs a client", name)
			}
		}
		return v.listClients(ctx, s, clients.All(), o.JSON)
	}
	chosen, err := o.clients(v, s)
	if err != nil {
		return err
	}
	c := &connection{invocation: v, connectCommand: o, system: s, out: v.stdout}
	if o.JSON {
		c.out = v.stderr
	}
	switch {
	case o.Remove:
		err = c.removeAll(ctx, chosen)
	default:
		err = c.connectAll(ctx, chosen)
	}
	if err == nil && o.JSON && !o.Print && !o.DryRun {
		return v.listClients(ctx, s, chosen, true)
	}
	return err
}

// clients returns the clients that the command line names.
func (o *connectCommand) clients(v *invocation, s clients.System) ([]*clients.Client, error) {
	if o.client == "all" {
		all := slices.DeleteFunc(clients.All(), func(c *clients.Client) bool { return !c.Installed(s) })
		if len(all) == 0 {
			return nil, &hintError{errors.New("no client is installed that this program knows"),
				fmt.Sprintf("Name one, for example: %s cursor FOLDER. %q lists them.", v.name, v.name)}
		}
		return all, nil
	}
	c, near := clients.Find(o.client)
	if c != nil {
		return []*clients.Client{c}, nil
	}
	e := v.usagef("unknown client %q", o.client)
	e.hint = fmt.Sprintf("The clients are %s, and all.", strings.Join(clients.Names(), ", "))
	if len(near) > 0 {
		e.hint = fmt.Sprintf("Did you mean %s? ", strings.Join(near, " or ")) + e.hint
	} else if _, err := os.Stat(v.expand(o.client)); err == nil {
		e.hint = fmt.Sprintf("A client comes first, for example: %s cursor %s. ", v.name, shellWord(o.client)) + e.hint
	}
	return nil, e
}

// clientSystem returns this machine for package clients.
func (v *invocation) clientSystem() clients.System {
	dir, _ := os.Getwd() // otherwise there is no project
	return clients.System{
		GOOS: runtime.GOOS, Home: v.home(), Dir: dir, Lookup: v.Lookup,
		Exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
		Program: func(name string) string {
			path, err := exec.LookPath(name)
			if err != nil {
				return ""
			}
			return path
		},
	}
}

// programPath returns the absolute path of this program.
func programPath() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the path of this program: %w", err)
	}
	return stablePath(program, os.Args[0]), nil
}

// stablePath returns the path of the program as it was typed, if that is the program:
// a link such as that of Homebrew stays the same when the program is updated.
func stablePath(program, typed string) string {
	path, err := exec.LookPath(typed)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil || !doctor.SameFile(path, program) {
		return program
	}
	return path
}

// shellWord returns a word of a command as it is typed in a shell of this system.
func shellWord(s string) string { return clients.ShellWord(runtime.GOOS, s) }

// shellWords returns a command as it is typed in a shell.
func shellWords(words []string) string {
	typed := make([]string, len(words))
	for i, w := range words {
		typed[i] = shellWord(w)
	}
	return strings.Join(typed, " ")
}

// A connectedClient is one element of what connect --json prints.
type connectedClient struct {
	Client      string            `json:"client"`
	Installed   bool              `json:"installed"`
	Connections []connectedServer `json:"connections"`
}

// A connectedServer is an entry of this program.
type connectedServer struct {
	Name   string `json:"name"`
	Target string `json:"target"`
}

// listClients prints clients and their connections.
func (v *invocation) listClients(ctx context.Context, s clients.System, all []*clients.Client, asJSON bool) error {
	found, problems := v.findConnections(ctx, s, all)
	for _, p := range problems {
		v.warn(p)
	}
	list := make([]connectedClient, len(all))
	for i, c := range all {
		list[i] = connectedClient{Client: c.Name, Installed: c.Installed(s), Connections: []connectedServer{}}
		for _, e := range found[c.Name] {
			list[i].Connections = append(list[i].Connections, connectedServer{e.server.Name, targetOf(e.server)})
		}
	}
	if asJSON {
		text, err := json.Marshal(list)
		if err == nil {
			_, err = fmt.Fprintf(v.stdout, "%s\n", text)
		}
		return err
	}
	return v.printClients(list)
}
