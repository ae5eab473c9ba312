package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/doctor"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const doctorHelp = `Usage: {cmd} [FLAGS] [FOLDER|URL|CLIENT]

Checks what goes wrong in practice and says what to do: the program and the PATH,
the data folder and its disk, the sources and their vectors, ports, tokens,
proxies, the configuration of MCP clients, and the servers behind it. With a
FOLDER it checks this source, with a URL this server, and with the name of a
CLIENT its configuration.

Nothing is changed without --fix. The output contains no secrets, so it can be
published with a report. The exit status is 1 if there is an error.

{flags}

Examples:
  {cmd}
  {cmd} ~/handbook
  {cmd} --token "$TOKEN" http://127.0.0.1:7411/mcp
  {cmd} cursor
  {cmd} --fix
`

// A doctorCommand checks the machine.
type doctorCommand struct {
	dataFlag
	storeFlags
	Addr          string   `flag:"addr" value:"HOST:PORT" default:"127.0.0.1:7411" help:"address of serve"`
	Token         string   `flag:"token" value:"TOKEN" env:"KNOWHOW_TOKEN" secret:"token" help:"token that servers require"`
	Config        filePath `flag:"config" value:"FILE" help:"configuration file of the bridge to Fess; by default the one that fess uses"`
	embedderFlags `name:"embedder" model:"model for searches by meaning that serve is started with"`
	Fix           bool `flag:"fix" help:"repair what can be repaired safely: permissions of the data folder, leases of processes that have ended, entries of clients that start this program"`
	Verbose       bool `flag:"verbose" help:"list also the checks that found no problem"`
	jsonFlag
	Engine    string `env:"KB_ENGINE_URL" secret:"engine" help:"URL of an engine to check"`
	FessToken string `env:"FESS_API_TOKEN" secret:"token" help:"access token for Fess"`
	Target    string `arg:"FOLDER|URL|CLIENT,optional"`
}

func (o *doctorCommand) run(ctx context.Context, v *invocation) error {
	options, err := o.options(v)
	if err != nil {
		return err
	}
	lines := terminal.NewLines(v.stderr, nil)
	if lines.Terminal() {
		options.Progress = func(done, total int) {
			lines.Show(terminal.Bar{What: "checking", Done: done, Total: total, Things: "checks"})
		}
	}
	findings := doctor.Run(ctx, options)
	lines.Show(terminal.Bar{})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.JSON {
		err = v.printJSON(struct {
			Findings []doctor.Finding `json:"findings"`
		}{append([]doctor.Finding{}, findings...)})
	} else {
		err = v.printFindings(findings, o.Verbose)
	}
	if err != nil {
		return err
	}
	return v.judge(findings, o.Fix)
}

// judge returns an error if one was found.
func (v *invocation) judge(findings []doctor.Finding, fixed bool) error {
	n := doctor.Count(findings, doctor.Error)
	if n == 0 {
		return nil
	}
	what := terminal.Plural(n, "error")
	if warnings := doctor.Count(findings, doctor.Warning); warnings > 0 {
		what += " and " + terminal.Plural(warnings, "warning")
	}
	hint := "Each line says what to do. Then check again."
	for _, f := range findings {
		if f.Repairable() && !fixed {
			hint = fmt.Sprintf("Each line says what to do. Some of it is done by: %s --fix", v.name)
		}
	}
	return &hintError{fmt.Errorf("found %s", what), hint}
}

// options returns what is to be checked.
func (o *doctorCommand) options(v *invocation) (doctor.Options, error) {
	d := doctor.Options{
		Program: v.Program, Build: thisBuild(), System: v.clientSystem(), Explain: explainStore,
		Addr: o.Addr, Token: o.Token, Engine: o.Engine, FessConfig: string(o.Config), FessToken: o.FessToken,
		Fix: o.Fix, Ours: v.isOurs, Parse: v.parseEntry, Rewrite: rewriteEntry,
	}
	if _, _, err := net.SplitHostPort(o.Addr); err != nil {
		return d, v.usagef("--addr: got %q, want HOST:PORT, for example 127.0.0.1:7411", o.Addr)
	}
	var err error
	if d.Executable, err = programPath(); err != nil {
		d.Executable = v.Program
	}
	d.Data, _ = dataPath(v.Env, o.Data) // the check of the data folder reports that it is not known
	usual, err := dataPath(v.Env, "")
	d.DataNamed = err != nil || usual != d.Data
	model, err := o.embedderFlags.open()
	d.Model, d.ModelErr = model.Queries, err
	d.Remote = strings.Contains(string(o.Embedder), "://")
	if s, err := o.storeFlags.open(model, nil); err != nil {
		d.StoreErr = err
	} else if s != nil {
		d.Store = s
	}
	return d, o.target(v, &d)
}

// target sets what the operand names.
func (o *doctorCommand) target(v *invocation, d *doctor.Options) error {
	name := o.Target
	switch {
	case name == "":
		return nil
	case strings.Contains(name, "://"):
		d.URL = name
		return nil
	}
	c, near := clients.Find(name)
	if c != nil {
		d.Client = c
		return nil
	}
	path, err := filepath.Abs(v.expand(name))
	if err == nil && (fileExists(path) || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") ||
		strings.HasPrefix(name, "~")) {
		d.Folder = path
		return nil
	}
	e := v.usagef("there is no folder %q, and no client of that name", name)
	if len(near) > 0 {
		e.hint = fmt.Sprintf("Did you mean %q? ", near[0]) + e.hint
	} else {
		e.hint = "Clients: " + strings.Join(clients.Names(), ", ") + ". " + e.hint
	}
	return e
}

// thisBuild returns the build of the running program.
func thisBuild() doctor.Build {
	info, _ := debug.ReadBuildInfo()
	b := doctor.Build{Version: versionOf(info)}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

// levelWidth is the width of the column with the level.
const levelWidth = 9

// printFindings prints a line for each finding. On a terminal, lines are wrapped, and
// what to do begins a new one. Checks that found nothing are one line, unless all are
// wanted.
func (v *invocation) printFindings(findings []doctor.Finding, all bool) error {
	screen := terminal.NewScreen(v.stdout, v.Lookup)
	var b strings.Builder
	line := func(level doctor.Level, text, fix string) {
		indent := strings.Repeat(" ", levelWidth)
		if fix != "" && screen.Terminal() {
			text += "\n" + fix
		} else if fix != "" {
			text += ". " + fix
		}
		word := string(level)
		switch level {
		case doctor.Error:
			word = screen.Bold(word)
		case doctor.Warning:
			word = screen.Accent(word)
		}
		b.WriteString(word + strings.Repeat(" ", levelWidth-len(level)))
		b.WriteString(strings.TrimPrefix(screen.Wrap(text, indent), indent))
	}
	good := 0
	for _, f := range findings {
		if f.Level == doctor.OK && !all && f.Subject != "program" && !strings.HasPrefix(f.Message, "repaired: ") {
			good++
			continue
		}
		line(f.Level, f.Subject+": "+f.Message, f.Fix)
	}
	if good > 0 {
		line(doctor.OK, terminal.Plural(good, "other check")+" found no problem; list them with --verbose", "")
	}
	return screen.Show(b.String())
}

// parseEntry reads the arguments of a program of this project in the configuration of a
// client, which sets environment variables.
func (v *invocation) parseEntry(program string, args []string, env map[string]string) (doctor.CommandLine, error) {
	of := Env{Program: program, Lookup: func(name string) (string, bool) {
		if value, ok := env[name]; ok {
			return value, true
		}
		if name == "KNOWHOW_TRANSPORT" { // clients do not always have that of the shell
			return "", false
		}
		return v.Lookup(name)
	}}
	if program == "mcp-fess" {
		args = append([]string{"fess"}, args...)
	}
	var line doctor.CommandLine
	if len(args) == 0 {
		return line, errors.New("a command is missing, such as mcp")
	}
	name, rest := of.split(args)
	c, ok := of.find(name)
	if !ok {
		return line, fmt.Errorf("there is no command %q", name)
	}
	inner := &invocation{Env: of, name: program + " " + name, command: name, stderr: v.stderr}
	f := newFlagSet(inner, c.options)
	inner.flags = f
	if err := f.parse(rest); err != nil {
		return line, err
	}
	line = doctor.CommandLine{Command: name, Stdio: isServer(name) && f.transport(rest) == "stdio"}
	store := false
	switch o := c.options.(type) {
	case *serveCommand:
		line.Paths, store = pathsOf(o.sources), o.Store != ""
	case *mcpCommand:
		line.Paths, store = pathsOf(o.sources), o.Store != ""
	case *kbCommand:
		store = o.Store != ""
	case *fessCommand:
		if o.Config != "" {
			line.Paths = []string{string(o.Config)}
		}
	case *datasetsCommand:
		line.Paths = []string{string(o.Dir)}
	}
	folders := name == "serve" || name == "mcp"
	line.Started = line.Stdio && !store && !(folders && len(line.Paths) == 0)
	local := slices.DeleteFunc(slices.Clone(line.Paths), repository.Is)
	line.Started = line.Started && len(local) == len(line.Paths) // a copy of a repository takes long
	line.Paths = local
	typed := args
	if program == "mcp-fess" {
		typed = rest
	}
	line.Harmless = func(dir string) []string { return harmless(f, typed, dir) }
	return line, nil
}

// pathsOf returns the paths of sources.
func pathsOf(sources []sourceFlags) (paths []string) {
	for _, s := range sources {
		paths = append(paths, s.path)
	}
	return paths
}

// harmless returns arguments with another data folder and without a model, as far as the
// command has these flags. The last one of several counts.
func harmless(f *flagSet, args []string, dir string) (changed []string) {
	more := []string{}
	if f.find("data") != nil {
		more = append(more, "--data", dir)
	}
	if f.find("embedder") != nil {
		more = append(more, "--embedder", "none")
	}
	for i, arg := range args {
		if arg == "--" {
			return append(append(changed, more...), args[i:]...)
		}
		changed = append(changed, arg)
	}
	return append(changed, more...)
}

// rewriteEntry writes the command and the arguments of a server into an entry of a
// client. Everything else in the entry stays.
func rewriteEntry(_ *clients.Client, f clients.File, name string, s clients.Server) error {
	place := f.Place
	place.Name = name
	change := func(old []byte) ([]byte, error) {
		entry, found, err := configfile.Get(f.Format, old, place)
		switch {
		case err != nil:
			return nil, err
		case !found || entry == nil:
			return nil, fmt.Errorf("there is no entry %q any more: %w", name, errkind.NotFound)
		}
		setCommand(entry, s)
		members, ok := membersOf(entry)
		if !ok {
			return nil, fmt.Errorf("the entry %q has values that can only be changed in an editor: %w", name,
				errkind.Unsupported)
		}
		if f.Place.List {
			members = append([]configfile.Member{{Name: "name", Value: name}}, members...)
		}
		return configfile.Set(f.Format, old, place, members)
	}
	return configfile.Change(f.Path, configfile.Options{}, change)
}

// setCommand sets the command and the arguments in the keys that an entry has for them.
func setCommand(entry map[string]any, s clients.Server) {
	key := "command"
	if _, ok := entry["cmd"]; ok {
		key = "cmd"
	}
	if _, list := entry[key].([]any); list {
		entry[key] = append([]string{s.Command}, s.Args...)
		return
	}
	entry[key], entry["args"] = s.Command, s.Args
}

// membersOf returns the members of an entry, those first that come first in most files.
// ok is false if a value cannot be written.
func membersOf(entry map[string]any) (members []configfile.Member, ok bool) {
	first := []string{"type", "command", "cmd", "args", "env"}
	rank := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	names := slices.SortedFunc(maps.Keys(entry), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
	for _, name := range names {
		value := entry[name]
		switch v := value.(type) {
		case string, bool, int, []string:
		case map[string]any:
			inner, ok := membersOf(v)
			if !ok {
				return nil, false
			}
			value = inner
		case []any:
			texts := []string{}
			for _, element := range v {
				s, ok := element.(string)
				if !ok {
					return nil, false
				}
				texts = append(texts, s)
			}
			value = texts
		default:
			return nil, false
		}
		members = append(members, configfile.Member{Name: name, Value: value})
	}
	return members, true
}
