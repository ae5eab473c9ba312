package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// verbTime is the time limit for a command of a client.
const verbTime = 2 * time.Minute

// A connection connects clients, or removes their entries.
type connection struct {
	*invocation
	*connectCommand
	system clients.System
	out    io.Writer // what is done, for people
}

// say prints a line about what is done.
func (c *connection) say(format string, args ...any) {
	fmt.Fprintln(c.out, printableLines(fmt.Sprintf(format, args...)))
}

// connectAll connects clients, and then checks the server.
func (c *connection) connectAll(ctx context.Context, chosen []*clients.Client) error {
	t, err := c.target(ctx, c.invocation)
	if err != nil {
		return err
	}
	var connected, changed []*clients.Client
	failed, err := c.each(ctx, chosen, "connected", func(client *clients.Client) error {
		done, err := c.connect(ctx, client, t.server)
		if err != nil {
			return err
		}
		if connected = append(connected, client); done {
			changed = append(changed, client)
		}
		return nil
	})
	if err != nil || c.Print || c.DryRun || len(connected) == 0 {
		return cmp.Or(err, failed)
	}
	if err := c.check(ctx, t, connected); err != nil {
		return err
	}
	c.sayNext(t, changed)
	return failed
}

// each calls f for each client. If there are several, an error of one does not keep it
// from the others: it is printed, and failed names the clients, which are not done.
func (c *connection) each(ctx context.Context, chosen []*clients.Client, done string,
	f func(client *clients.Client) error) (failed, err error) {
	var names []string
	for _, client := range chosen {
		switch err := f(client); {
		case err == nil:
		case len(chosen) == 1:
			return nil, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			c.fail(ctx, fmt.Errorf("%s: %w", client.Title, err))
			names = append(names, client.Name)
		}
	}
	if len(names) > 0 {
		failed = fmt.Errorf("not %s: %s", done, strings.Join(names, ", "))
	}
	return failed, nil
}

// check checks the server as the clients have it.
func (c *connection) check(ctx context.Context, t target, connected []*clients.Client) error {
	lines := terminal.NewLines(c.stderr, nil)
	found, err := c.checkServer(ctx, t, func(done, total int) {
		lines.Show(terminal.Bar{What: "indexing", Done: done, Total: total, Things: "documents"})
	})
	if err != nil {
		again := fmt.Sprintf("The entry stays, and works as soon as the server does. To remove it: %s %s --remove --name %s",
			c.name, connected[0].Name, t.server.Name)
		if hinted, ok := errors.AsType[*hintError](err); ok {
			again = hinted.hint + " " + again
		}
		what := "the server was started as the client does, and failed"
		if t.server.URL != "" {
			what = "the server does not answer as the client needs it"
		}
		return &hintError{fmt.Errorf("%s: %w", what, err), again + c.scopeFlag()}
	}
	c.say("The server answers: %s.", found)
	if found.unfinished != "" {
		c.say("Not everything can be found yet: %s.", found.unfinished)
	}
	return nil
}

// scopeFlag returns the flag for the scope that commands in messages need.
func (c *connection) scopeFlag() string {
	if c.Scope == string(clients.Project) {
		return " --scope project"
	}
	return ""
}

// sayNext prints what the user does next.
func (c *connection) sayNext(t target, connected []*clients.Client) {
	for _, client := range connected {
		next := client.Next
		if c.Scope == string(clients.Project) && client.NextProject != "" {
			next += " " + client.NextProject
		}
		if t.server.TokenEnv != "" {
			next += " " + fmt.Sprintf(client.NextToken, t.server.TokenEnv)
		}
		c.say("Next, for %s: %s", client.Title, next)
	}
	var windows []string
	for _, client := range connected {
		if client.Window {
			windows = append(windows, client.Title)
		}
	}
	set := slices.DeleteFunc(slices.Clone(t.variables), func(name string) bool { return c.get(name) == "" })
	if len(windows) > 0 && len(set) > 0 {
		c.warn(fmt.Sprintf("%s: the server is started without the variables of this shell, here %s",
			strings.Join(windows, ", "), strings.Join(set, ", ")))
	}
	if c.Scope == string(clients.Project) && len(connected) > 0 && t.server.URL == "" {
		c.warn("the entry has paths of this machine: others who work on the project need the program and the folder at " +
			"the same path")
	}
	for _, part := range []string{"/go-build", "/_npx/", "/uv/cache/", "/.cache/uv/", "/AppTranslocation/"} {
		if strings.Contains(filepath.ToSlash(t.server.Command), part) {
			c.warn(fmt.Sprintf("%s is in a temporary folder: install the program, and connect again", t.server.Command))
		}
	}
}

// refuse returns an error if a client cannot use what it is to be connected to.
func (c *connection) refuse(client *clients.Client, s clients.Server) error {
	switch {
	case s.URL != "" && !client.HTTP:
		return &hintError{fmt.Errorf("%s does not connect to a server at a URL", client.Title),
			fmt.Sprintf("%s For example: %s %s FOLDER", client.Instead, c.name, client.Name)}
	case s.TokenEnv != "" && client.Variable == "":
		return &hintError{fmt.Errorf("%s reads no environment variable for a token", client.Title), client.Instead}
	}
	return nil
}

// file returns the configuration file of a client and its contents, which are nil if
// there is none. It is an error if the file cannot be changed.
func (c *connection) file(client *clients.Client, name string) (f clients.File, data []byte, err error) {
	f, ok := client.File(c.system, clients.Scope(c.Scope))
	if !ok {
		return f, nil, &hintError{fmt.Errorf("%s has no configuration for %s", client.Title,
			map[string]string{"user": "a user, because the home folder is not known", "project": "a project"}[c.Scope]),
			"Leave out --scope."}
	}
	f.Place.Name = name
	if data, err = readConfig(f.Path); err != nil {
		return f, nil, err
	}
	return f, data, misplaced(f, data)
}

// errLarge means that a configuration file has more than configfile.MaxSize bytes, as
// that of Claude Code can have, which keeps its history in it.
var errLarge = &hintError{fmt.Errorf("the file has more than %d MiB: %w", configfile.MaxSize>>20,
	errkind.Invalid), "Change it with the client."}

// readConfig returns the contents of a configuration file; nil if there is none.
func readConfig(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, configfile.MaxSize+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > configfile.MaxSize:
		return nil, fmt.Errorf("%s: %w", path, errLarge)
	}
	if data == nil {
		data = []byte{} // an empty file
	}
	return data, nil
}

// inFile adds the name of a file to an error about its contents.
func inFile(path string, err error) error {
	e, ok := errors.AsType[*configfile.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.File = path
	return &hintError{&named, "The file was not changed. Correct it, and repeat the command."}
}

// serverKeys are the keys of servers in the files of all clients.
var serverKeys = []string{"mcpServers", "servers", "mcp_servers", "context_servers"}

// misplaced returns an error if a file has no servers where its client has them, but
// has servers where another client has them.
func misplaced(f clients.File, data []byte) error {
	if len(f.Place.Keys) != 1 {
		return nil
	}
	get := func(key string) (map[string]any, bool, error) {
		return configfile.Get(f.Format, data, configfile.Place{Name: key})
	}
	_, found, err := get(f.Place.Keys[0])
	if err != nil || found {
		return inFile(f.Path, err)
	}
	for _, key := range serverKeys {
		if entries, _, _ := get(key); len(entries) > 0 {
			at := max(bytes.Index(data, []byte(key)), 0)
			return &hintError{fmt.Errorf("%s:%d: the servers are in %q, where this client does not look for them: it has "+
				"them in %q: %w", f.Path, 1+bytes.Count(data[:at], []byte("\n")), key, f.Place.Keys[0], errkind.Invalid),
				"The file was not changed. Correct the name, and repeat the command."}
		}
	}
	return nil
}

// connect adds an entry to the configuration of a client, unless it is there.
func (c *connection) connect(ctx context.Context, client *clients.Client, s clients.Server) (changed bool, err error) {
	if err := c.refuse(client, s); err != nil {
		return false, err
	}
	f, data, err := c.file(client, s.Name)
	verb := client.Verb.Add(client, s, f.Scope)
	if errors.Is(err, errLarge) && c.usable(verb) != nil { // the client itself can change it
		data, err = nil, nil
	}
	if err != nil {
		return false, err
	}
	entry := client.Entry(s)
	if c.Print {
		return false, c.print(client, f, verb, entry)
	}
	old, found, err := configfile.Get(f.Format, data, f.Place)
	switch {
	case err != nil:
		return false, inFile(f.Path, err)
	case found && client.Same(s, old):
		c.say("%s is already connected to %s, as %q in %s.", client.Title, targetOf(s), s.Name, f.Path)
		return false, nil
	case found && !isOurs(ctx, clients.Read(s.Name, old)):
		return false, &hintError{fmt.Errorf("%s has an entry %q that is not of this program", f.Path, s.Name),
			"Choose another name with --name. Nothing was changed."}
	}
	was := "" // what is replaced
	if found {
		was = ", in place of the connection to " + targetOf(clients.Read(s.Name, old))
	}
	set := func(old []byte) ([]byte, error) { return configfile.Set(f.Format, old, f.Place, entry) }
	if verb = c.usable(verb); verb == nil || c.DryRun {
		return true, c.change(client, f, verb, set, fmt.Sprintf("%s: added %q to %s%s", client.Title, s.Name, f.Path, was))
	}
	if found && !client.Verb.Replaces {
		if err := c.runVerb(ctx, client, f, client.Verb.Remove(s.Name, f.Scope)); err != nil {
			return false, err
		}
	}
	if err := c.runVerb(ctx, client, f, verb); err != nil {
		return false, err
	}
	c.say("%s: added %q%s", client.Title, s.Name, was)
	return true, nil
}

// change changes a file, or shows what would be changed: by the command of the client
// if there is one.
func (c *connection) change(client *clients.Client, f clients.File, verb []string,
	change func([]byte) ([]byte, error), done string) error {
	switch {
	case c.DryRun && verb != nil:
		_, err := fmt.Fprintf(c.stdout, "%s would be changed with: %s\n", client.Title, shellWords(verb))
		return err
	case c.DryRun:
		data, err := readConfig(f.Path)
		if err != nil {
			return err
		}
		changed, err := change(data)
		if err != nil {
			return inFile(f.Path, err)
		}
		_, err = io.WriteString(c.stdout, printableDiff(sanitize.Escape(f.Path), data, changed))
		return err
	}
	if err := configfile.Change(f.Path, configfile.Options{Format: f.Format, Place: f.Place}, change); err != nil {
		return inFile(f.Path, err)
	}
	c.say("%s", done)
	return nil
}

// secretMember matches a member of a configuration file whose value can be secret.
var secretMember = regexp.MustCompile(
	`(?im)((?:authorization|token|secret|password|credentials|key)["']?[ \t]*[:=][ \t]*)("[^"\n]*"|'[^'\n]*'|[^\s"',{}\[\]][^,\n]*)`)

// printableDiff returns the changes of a file as a diff, without what can be secret in
// the lines that are shown.
func printableDiff(name string, old, changed []byte) string {
	text := secretMember.ReplaceAllStringFunc(string(diff.Diff(name, old, name, changed)), func(member string) string {
		if strings.Contains(member, "$") || strings.Contains(member, "{env:") {
			return member // the name of a variable
		}
		return secretMember.ReplaceAllString(member, "$1***")
	})
	columns := strings.Split(text, "\t")
	for i := range columns {
		columns[i] = printableLines(columns[i])
	}
	return strings.Join(columns, "\t")
}

// print prints how an entry is added.
func (c *connection) print(client *clients.Client, f clients.File, verb []string, entry []clients.Member) error {
	snippet, err := configfile.Set(f.Format, nil, f.Place, entry)
	if err != nil {
		return err
	}
	var b strings.Builder
	if verb != nil {
		fmt.Fprintf(&b, "%s, with its own command:\n  %s\n", client.Title, shellWords(verb))
	}
	fmt.Fprintf(&b, "%s, in %s:\n", client.Title, sanitize.Escape(f.Path))
	for line := range strings.Lines(string(snippet)) {
		b.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
	}
	_, err = io.WriteString(c.stdout, printableLines(b.String()))
	return err
}

// usable returns the command of a client, with the path of its program, if that is on
// the PATH. It returns nil for scripts of Windows: they cannot be given every
// argument.
func (c *connection) usable(verb []string) []string {
	if verb == nil {
		return nil
	}
	path := c.system.Program(verb[0])
	if ending := strings.ToLower(filepath.Ext(path)); path == "" || ending == ".cmd" || ending == ".bat" {
		return nil
	}
	return verb
}

// runVerb runs a command of a client.
func (c *connection) runVerb(ctx context.Context, client *clients.Client, f clients.File, verb []string) error {
	c.say("Running: %s", shellWords(verb))
	limited, cancel := context.WithTimeout(ctx, verbTime)
	defer cancel()
	cmd := exec.CommandContext(limited, verb[0], verb[1:]...)
	cmd.WaitDelay = time.Second // for children that keep the output open
	var output tail
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		err = fmt.Errorf("it did not end within %s", verbTime)
	}
	hint := fmt.Sprintf("Change %s yourself; --print shows what to add.", f.Path)
	if text := strings.TrimSpace(sanitize.Text(string(output))); text != "" {
		hint = "It printed:\n" + text + "\n" + hint
	}
	return &hintError{fmt.Errorf("the command of %s failed: %w", client.Title, err), hint}
}

// A tail keeps the last 4 KiB that are written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if over := len(*t) - 4<<10; over > 0 {
		*t = slices.Delete(*t, 0, over)
	}
	return len(p), nil
}

// removeAll removes the entries of clients.
func (c *connection) removeAll(ctx context.Context, chosen []*clients.Client) error {
	failed, err := c.each(ctx, chosen, "removed", func(client *clients.Client) error {
		return c.remove(ctx, client, len(chosen) > 1)
	})
	return cmp.Or(err, failed)
}

// remove removes an entry from the configuration of a client. optional means that
// there need not be one.
func (c *connection) remove(ctx context.Context, client *clients.Client, optional bool) error {
	if _, ok := client.File(c.system, clients.Scope(c.Scope)); !ok && optional {
		return nil
	}
	f, data, err := c.file(client, "")
	if err != nil {
		return err
	}
	name, err := c.chooseEntry(ctx, client, f, data)
	if errors.Is(err, errkind.NotFound) && optional {
		return nil
	}
	if err != nil {
		return err
	}
	f.Place.Name = name
	verb := c.usable(client.Verb.Remove(name, f.Scope))
	undo := func(old []byte) ([]byte, error) {
		backup, err := configfile.Backup(f.Path)
		if err != nil {
			return nil, err
		}
		return configfile.Undo(f.Format, old, backup, f.Place)
	}
	done := fmt.Sprintf("%s: removed %q from %s", client.Title, name, f.Path)
	if c.Print {
		if verb != nil {
			_, err := fmt.Fprintf(c.stdout, "%s, with its own command:\n  %s\n", client.Title, shellWords(verb))
			return err
		}
		_, err := fmt.Fprintf(c.stdout, "%s: remove %q from %s\n", client.Title, name, sanitize.Escape(f.Path))
		return err
	}
	if verb != nil && !c.DryRun {
		if err := c.runVerb(ctx, client, f, verb); err != nil {
			return err
		}
		// Some commands report success and leave the entry.
		if data, err = readConfig(f.Path); err != nil {
			return err
		}
		_, found, err := configfile.Get(f.Format, data, f.Place)
		if err != nil {
			return inFile(f.Path, err)
		}
		if !found {
			c.say("%s: removed %q", client.Title, name)
			return nil
		}
	}
	return c.change(client, f, verb, undo, done)
}

// chooseEntry returns the name of the entry to remove: the one that the command line
// names, or the only one of this program.
func (c *connection) chooseEntry(ctx context.Context, client *clients.Client, f clients.File, data []byte) (
	string, error) {
	servers, err := serversIn(f, data)
	if err != nil {
		return "", inFile(f.Path, err)
	}
	notConnected := &hintError{fmt.Errorf("%s has no such entry of this program in %s: %w", client.Title, f.Path,
		errkind.NotFound), fmt.Sprintf("%q lists what is connected.", c.Program+" connect")}
	if c.Name != "" {
		i := slices.IndexFunc(servers, func(s clients.Server) bool { return s.Name == string(c.Name) })
		switch {
		case i < 0:
			return "", notConnected
		case !isOurs(ctx, servers[i]) && !mayBeOurs(ctx, servers[i]):
			return "", &hintError{fmt.Errorf("%s has an entry %q that is not of this program", f.Path, c.Name),
				fmt.Sprintf("Remove it with %s. Nothing was changed.", client.Title)}
		}
		return string(c.Name), nil
	}
	var names []string
	for _, s := range servers {
		if c.matches(s) && isOurs(ctx, s) {
			names = append(names, s.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", notConnected
	case 1:
		return names[0], nil
	}
	e := c.usagef("%s has several entries of this program", client.Title)
	e.hint = "Choose one with --name: " + sanitize.Escape(strings.Join(names, ", "))
	return "", e
}

// mayBeOurs reports whether the URL of a server can be one of this program that does
// not run.
func mayBeOurs(ctx context.Context, s clients.Server) bool {
	ours, _ := isOursAt(ctx, s.URL)
	return ours
}

// matches reports whether an entry is for what the command line names.
func (c *connection) matches(s clients.Server) bool {
	if c.URL != "" && s.URL != c.URL {
		return false
	}
	for _, word := range c.words {
		path, err := filepath.Abs(c.expand(word))
		if !slices.Contains(s.Args, word) && (err != nil || !slices.Contains(s.Args, path)) {
			return false
		}
	}
	return true
}
