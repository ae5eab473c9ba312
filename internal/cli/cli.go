// Package cli implements the command line: it reads flags, environment and
// configuration, connects the other packages, and turns their errors into
// messages and exit statuses. Only the main packages under cmd use it.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/spell"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// Exit statuses.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// An Env is the environment of a program, except its arguments and streams.
type Env struct {
	// Program is the name of the program in usage texts and messages.
	Program string

	// Command, if set, is the only command of the program. Its name is not
	// typed, and texts use Program as its name.
	Command string

	// Commands, if set, are the commands of the program in addition to version
	// and help; nil means all.
	Commands []string

	// Lookup looks up an environment variable like os.LookupEnv.
	Lookup func(name string) (value string, ok bool)
}

// get returns an environment variable, or "" if it is not set.
func (e Env) get(name string) string {
	value, _ := e.Lookup(name)
	return value
}

// home returns the user's home folder, or "" if it is not known.
func (e Env) home() string { return cmp.Or(e.get("HOME"), e.get("USERPROFILE")) }

// expand returns a path with the home folder in place of a "~" at its start.
// Shells do that, but nothing does it in the configuration of a client.
func (e Env) expand(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if home := e.home(); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		return filepath.Join(home, rest)
	}
	return path
}

// expandSource is expand for a source, whose path may follow the name of its kind.
func (e Env) expandSource(source string) string {
	for _, kind := range []string{"file://", "file:", "fess:", "datasets:"} {
		if path, ok := strings.CutPrefix(source, kind); ok {
			return kind + e.expand(path)
		}
	}
	return e.expand(source)
}

// A SignalError is the cause with which main cancels Main's context when a
// signal arrives. After os.Interrupt the exit status is 130. After any other
// signal, a server that ends normally exits with status 0.
type SignalError struct{ Signal os.Signal }

// Error names the signal.
func (e SignalError) Error() string { return "received signal: " + e.Signal.String() }

// memoryLimit is the memory, in bytes, above which the garbage collector runs
// more often. It is not a hard limit; see limitMemory.
const memoryLimit = 96 << 20

// limitMemory sets the limit of the garbage collector: memoryLimit, or a quarter
// and 16 MiB more than what is in use. With a limit below what is in use, the
// collector would never stop. It is called again after each collection.
func limitMemory() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	used := int64(live[0].Value.Uint64())
	debug.SetMemoryLimit(max(memoryLimit, used+used/4+16<<20))
	collected := new(*byte) // until the next collection
	runtime.AddCleanup(collected, func(struct{}) { limitMemory() }, struct{}{})
}

// Prepare prepares the process for Main and returns the standard output for it.
// Afterwards os.Stdout is the standard error, so that a stray print cannot
// appear between the messages of a protocol. Unless GOGC is set, the garbage
// collector runs less often than by default, because the servers produce much
// short-lived garbage over a small heap. Unless GOMEMLIMIT is set, it runs more
// often over a large heap, so that documents that take much memory to read, and
// datasets, which stay in memory, do not leave garbage of several times their
// size.
func Prepare() (stdout *os.File) {
	if _, ok := os.LookupEnv("GOGC"); !ok {
		debug.SetGCPercent(400)
	}
	if _, ok := os.LookupEnv("GOMEMLIMIT"); !ok {
		limitMemory()
	}
	stdout = os.Stdout
	os.Stdout = os.Stderr
	return stdout
}

// A command is one of the program's subcommands.
type command struct {
	name    string // one word, or two for a command below another one, such as "datasets create"
	summary string // line in the list of commands; "" if the command is listed elsewhere
	help    string // the help text; {cmd} is replaced by how the user calls the command, {flags} by the flags
	options options
}

// The options of a command are a pointer to a struct whose fields declare its flags
// and operands; see [flag] and [operand].
type options interface {
	// run runs the command after they are parsed.
	run(ctx context.Context, v *invocation) error
}

// A group is a command that does nothing but have commands below it.
type group struct{ commands string }

func (g *group) run(_ context.Context, v *invocation) error {
	return v.usagef("want a command: %s", g.commands)
}

// commands returns the program's commands, with new options. Those with a summary are
// in [sections].
func (e Env) commands() []command {
	all := []command{
		{"serve", "index folders and files, and serve them to agents", serveHelp, &serveCommand{}},
		{"mcp", "serve on standard input and output, as clients start it", mcpHelp, &mcpCommand{}},
		{"connect", "connect AI clients, or list what they are connected to", connectHelp, &connectCommand{}},
		{"search", "search what is indexed, without a server", searchHelp, &searchCommand{}},
		{"read", "print the text of an indexed document", readHelp, &readCommand{}},
		{"sources", "list the remembered sources, or remove one", sourcesHelp, &sourcesCommand{}},
		{"status", "show what is indexed, and what is left out", statusHelp, &statusCommand{}},
		{"doctor", "find out why something does not work, and what to do", doctorHelp, &doctorCommand{}},
		{"fess", "serve the documents of a Fess server to agents", fessHelp, &fessCommand{}},
		{"datasets", "create, search, check and serve vector datasets", datasetsHelp, &datasetsCommand{}},
		{"datasets create", "", createHelp, &createCommand{}},
		{"datasets export", "", exportHelp, &exportCommand{}},
		{"datasets delete", "", deleteHelp, &deleteCommand{}},
		{"datasets list", "", listHelp, &listCommand{}},
		{"datasets search", "", datasetSearchHelp, &datasetSearchCommand{}},
		{"datasets check", "", checkHelp, &checkCommand{}},
		{"kb", "serve a knowledge base, to which agents add notes, over MCP", kbHelp, &kbCommand{}},
		{"kb search", "", kbSearchHelp, &kbSearchCommand{}},
		{"note", "add, list, get and remove notes of the knowledge base", noteHelp, &group{"add, list, get or rm"}},
		{"note add", "", noteAddHelp, &noteAddCommand{}},
		{"note list", "", noteListHelp, &noteListCommand{}},
		{"note get", "", noteGetHelp, &noteGetCommand{}},
		{"note rm", "", noteRemoveHelp, &noteRemoveCommand{}},
		{"engine", "serve a knowledge base over HTTP, check it, back it up", engineHelp, &engineCommand{}},
		{"engine check", "", engineCheckHelp, &engineCheckCommand{}},
		{"engine backup", "", engineBackupHelp, &engineBackupCommand{}},
		{"store", "copy documents between data folders and OpenSearch clusters", storeHelp, &group{"copy"}},
		{"store copy", "", storeCopyHelp, &storeCopyCommand{}},
		{"access", "give people and agents rights on a server", accessHelp, &group{"add, list, set, rm or rotate"}},
		{"access add", "", accessAddHelp, &accessAddCommand{}},
		{"access list", "", accessListHelp, &accessListCommand{}},
		{"access set", "", accessSetHelp, &accessSetCommand{}},
		{"access rm", "", accessRemoveHelp, &accessRemoveCommand{}},
		{"access rotate", "", accessRotateHelp, &accessRotateCommand{}},
		{"sync", "write the tools of MCP servers as Agent Skills", syncHelp, &syncCommand{}},
		{"start", "the same, then serve the address at which skills call the tools", startHelp, &startCommand{}},
		{"call", "call a tool of an MCP server", callHelp, &callCommand{}},
		{"completion", "print a script with which a shell completes commands",
			completionHelp, &completionCommand{}},
		{"__complete", "", completeHelp, &completeCommand{}},
		{"health", "check that a server of this program answers", healthHelp, &healthCommand{}},
		{"version", "print the version, the commit and the Go version", versionHelp, &versionCommand{}},
		{"help", "show help for a command", helpHelp, &helpCommand{}},
	}
	return slices.DeleteFunc(all, func(c command) bool {
		return e.Commands != nil && !slices.Contains(e.Commands, c.name) && c.name != "version" && c.name != "help"
	})
}

// An invocation is one run of a command and its environment.
type invocation struct {
	Env
	name           string // as typed by the user, for example "knowhow fess"
	command        string // that runs, for example "fess" or "datasets create"
	flags          *flagSet
	stdin          io.Reader
	stdio          bool   // the command is a server on stdin and stdout
	served         bool   // stdin was given to a client, or to a search for one
	data           string // data folder that a flag names, for advice; "" for the usual one
	stdout, stderr io.Writer
}

// warnings returns a logger that writes warnings and errors to stderr.
func (v *invocation) warnings() *slog.Logger {
	return slog.New(terminal.NewHandler(terminal.NewLines(v.stderr, nil), slog.LevelWarn))
}

// warn prints a warning on stderr.
func (v *invocation) warn(message string) {
	fmt.Fprintf(v.stderr, "%s: warning: %s\n", v.name, printableLines(message))
}

// Main runs the command named in args and returns the exit status: 0 for
// success, including a server that was ended by its client or by a signal other
// than an interrupt; 1 for failure; 2 for wrong usage; 130 for an interrupt.
// Without args it prints the first steps if stdout is a terminal, and offers to connect
// clients if stdin is one, too. Otherwise it prints the usage, with status 2. args do not include the program's name. The commands own stdin, stdout and
// stderr until Main returns. A stdio server may leave a pending read of stdin.
func Main(ctx context.Context, args []string, env Env, stdin io.Reader, stdout, stderr io.Writer) int {
	v := &invocation{Env: env, name: env.Program, stdin: stdin, stdout: stdout, stderr: stderr}
	if env.Command != "" && (len(args) == 0 || !isMeta(args[0])) {
		args = append([]string{env.Command}, args...)
	}
	if len(args) == 0 && env.Commands == nil && terminal.NewScreen(stdout, env.Lookup).Terminal() {
		offer, err := v.firstSteps(ctx)
		for _, command := range offer {
			if status := Main(ctx, command, env, stdin, stdout, stderr); status != exitOK {
				return status
			}
		}
		return v.fail(ctx, err)
	}
	if len(args) == 0 {
		fmt.Fprint(stderr, overview(env))
		return exitUsage
	}
	name, args := env.split(args)
	switch name {
	case "--help", "-help", "-h":
		name = "help"
	case "--version", "-version", "-v":
		name = "version"
	}
	cmd, ok := env.find(name)
	if !ok {
		return v.fail(ctx, unknownCommand(name, v))
	}
	if env.Command == "" {
		v.name += " " + name
	}
	v.command = name
	f := newFlagSet(v, cmd.options)
	v.flags = f
	err := f.parse(args)
	switch {
	case err == nil:
		err = cmd.options.run(ctx, v)
	case errors.Is(err, errHelp):
		_, err = io.WriteString(stdout, commandHelp(cmd, v))
	}
	status := v.fail(ctx, err)
	v.refuseClient(ctx, f, args, err)
	return status
}

// isMeta reports whether arg asks a program with a single command for its help
// or version.
func isMeta(arg string) bool {
	return slices.Contains([]string{"help", "version", "--version", "-version", "-v"}, arg)
}

// find returns the command with that name.
func (e Env) find(name string) (command, bool) {
	for _, c := range e.commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// split returns the name of the command at the beginning of words, of which there is
// at least one, and the other words. The name has two words if it is that of a command
// below another one.
func (e Env) split(words []string) (name string, rest []string) {
	name, rest = words[0], words[1:]
	if len(rest) > 0 {
		if _, ok := e.find(name + " " + rest[0]); ok {
			return name + " " + rest[0], rest[1:]
		}
	}
	return name, rest
}

// unknownCommand returns the error for a command that does not exist.
func unknownCommand(name string, v *invocation) error {
	if strings.HasPrefix(name, "-") {
		return &hintError{usageError("unknown flag " + sanitize.Escape(name)),
			fmt.Sprintf("Flags follow the command: %s COMMAND [FLAGS]. Run %q for the list of commands.",
				v.Program, v.Program+" help")}
	}
	var names []string
	for _, c := range v.commands() {
		if c.summary != "" {
			names = append(names, c.name)
		}
	}
	hint := fmt.Sprintf("Run %q for the list of commands.", v.Program+" help")
	_, err := os.Stat(v.expand(name))
	if near := spell.Near(name, names, 1); len(near) > 0 && err != nil {
		hint = fmt.Sprintf("Did you mean %q? ", near[0]) + hint
	}
	if slices.Contains(names, "serve") && (err == nil || strings.ContainsAny(name, "/\\")) {
		hint = fmt.Sprintf("To index it and serve it to agents: %s serve %s", v.Program, sanitize.Escape(name))
	}
	return &hintError{usageError(fmt.Sprintf("unknown command %q", name)), hint}
}

// isServer reports whether a command serves clients until it is stopped.
func isServer(command string) bool {
	return slices.Contains([]string{"serve", "mcp", "fess", "datasets", "kb", "engine", "start"}, command)
}

// readInput returns at most limit bytes of the standard input.
func (v *invocation) readInput(ctx context.Context, limit int64) ([]byte, error) {
	return await(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(v.stdin, limit)) })
}

// await returns what read returns. If ctx ends, it returns its error at once, although
// the read cannot be interrupted: the program is about to end.
func await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := read()
		done <- outcome{result, err}
	}()
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case o := <-done:
		return o.result, o.err
	}
}
