package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// verbTime is the time limit for a command of a client.
const verbTime = time.Minute

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
		name, done, err := c.connect(ctx, client, t.server)
		if err != nil {
			return err
		}
		if len(connected) == 0 {
			t.server.Name = name
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
	errkind.Invalid), "Change it with the client or an editor; --print shows what to change."}

// readConfig returns the contents of a configuration file; nil if there is none.
func readConfig(path string) ([]byte, error) {
	data, err := configfile.Read(path)
	if _, large := errors.AsType[*configfile.Error](err); large {
		return nil, fmt.Errorf("%s: %w", path, errLarge)
	}
	return data, err
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

// connect adds an entry to the configuration of a client, unless it is there. It
// returns the name of the entry.
func (c *connection) connect(ctx context.Context, client *clients.Client, s clients.Server) (
	name string, changed bool, err error) {
	if err := c.refuse(client, s); err != nil {
		return "", false, err
	}
	f, data, err := c.file(client, s.Name)
	if verb := client.Verb.Add(client, s, f.Scope); errors.Is(err, errLarge) && (c.usable(verb) != nil || c.Print) {
		data, err = nil, nil // the client itself can change it
	}
	if err != nil {
		return "", false, err
	}
	old, found, err := c.chooseName(ctx, &f, data, &s)
	if err != nil {
		return "", false, inFile(f.Path, err)
	}
	entry, verb := client.Entry(s), client.Verb.Add(client, s, f.Scope)
	if c.Print {
		return s.Name, false, c.print(client, f, verb, entry)
	}
	there := clients.Read(s.Name, old)
	switch {
	case found && client.Same(s, old):
		c.say("%s is already connected to %s, as %q in %s.", client.Title, targetOf(s), s.Name, f.Path)
		return s.Name, false, nil
	case found && !c.isOurs(ctx, there):
		return "", false, &hintError{fmt.Errorf("%s has an entry %q that is not of this program", f.Path, s.Name),
			"Choose another name with --name. Nothing was changed."}
	}
	if s.URL != "" && !c.DryRun {
		c.remember(s)
	}
	was := "" // what is replaced
	if found {
		was = ", in place of the connection to " + targetOf(there)
	}
	set := func(old []byte) ([]byte, error) { return configfile.Set(f.Format, old, f.Place, entry) }
	done := fmt.Sprintf("%s: added %q to %s%s", client.Title, s.Name, f.Path, was)
	if verb = c.usable(verb); verb == nil || c.DryRun {
		return s.Name, true, c.change(ctx, client, f, verb, set, done)
	}
	if found && !client.Verb.Replaces {
		if err := c.runVerb(ctx, client, f, client.Verb.Remove(s.Name, f.Scope)); err != nil {
			return "", false, err
		}
	}
	if err := c.runVerb(ctx, client, f, verb); err != nil {
		return "", false, err
	}
	written, err := c.written(client, &f, s)
	switch {
	case err != nil:
		return "", false, err
	case written:
		c.say("%s: added %q%s", client.Title, s.Name, was)
		return s.Name, true, nil
	case client.Verb.Elsewhere:
		c.say("%s: the command ended without an error.", client.Title)
		c.warn(fmt.Sprintf("%s does not have the entry %q: if %s does not show it, add it yourself; --print shows what to add",
			f.Path, s.Name, client.Title))
		return s.Name, true, nil
	}
	c.say("The command of %s ended without an error, but %s does not have what was to be added. It is added here.",
		client.Title, f.Path)
	return s.Name, true, c.change(ctx, client, f, nil, set, done)
}

// chooseName chooses the name of the entry for a server, and returns the entry that has
// it, which may be replaced. The name is that of --name, that of an entry for the same
// target, or the first one that is free.
func (c *connection) chooseName(ctx context.Context, f *clients.File, data []byte, s *clients.Server) (
	old map[string]any, found bool, err error) {
	get := func(name string) (map[string]any, bool, error) {
		f.Place.Name, s.Name = name, name
		return configfile.Get(f.Format, data, f.Place)
	}
	if c.Name != "" {
		return get(s.Name)
	}
	servers, err := serversIn(*f, data)
	if err != nil {
		return nil, false, err
	}
	base, name := s.Name, ""
	for _, other := range servers {
		if c.sameTarget(*s, other) && (other.URL != "" || c.isOurs(ctx, other)) && (name == "" || other.Name == base) {
			name = other.Name
		}
	}
	if name != "" {
		return get(name)
	}
	name = base
	for n := 2; ; n++ {
		if _, found, err = get(name); err != nil || !found {
			break
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
	if name != base && err == nil {
		c.say("The name %q is that of another entry in %s: the new one is %q. For another name: --name.", base, f.Path, name)
	}
	return nil, false, err
}

// written reports whether the file of a client has the entry for a server, after the
// command of the client. The file may be another one than before.
func (c *connection) written(client *clients.Client, f *clients.File, s clients.Server) (bool, error) {
	now, data, err := c.file(client, s.Name)
	switch {
	case errors.Is(err, errLarge): // only the client reads it
		return true, nil
	case err != nil:
		return false, err
	}
	*f = now
	entry, found, err := configfile.Get(f.Format, data, f.Place)
	return found && client.Same(s, entry), inFile(f.Path, err)
}

// change changes a file, or shows what would be changed: by the command of the client
// if there is one.
func (c *connection) change(ctx context.Context, client *clients.Client, f clients.File, verb []string,
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
	if err := c.write(ctx, f, change); err != nil {
		return inFile(f.Path, err)
	}
	c.say("%s", done)
	return nil
}

// write changes a file, and its backup.
func (c *connection) write(ctx context.Context, f clients.File, change func([]byte) ([]byte, error)) error {
	before, err := readConfig(f.Path)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil {
		return err
	}
	backup, err := configfile.Backup(f.Path)
	if err != nil {
		return err
	}
	had, err := c.hasEntries(ctx, f, before, nil)
	if err != nil {
		return err
	}
	has, err := c.hasEntries(ctx, f, after, backup)
	if err != nil {
		return err
	}
	return configfile.Change(f.Path, configfile.Options{First: !had, Last: !has}, change)
}

// hasEntries reports whether a file has entries of this program, or that may be, without
// those that the backup has: they were there before this program added its first one.
func (c *connection) hasEntries(ctx context.Context, f clients.File, data, backup []byte) (bool, error) {
	servers, err := serversIn(f, data)
	if err != nil {
		return false, err
	}
	were, _ := serversIn(f, backup) // none if there was no file, or if someone has changed the backup
	servers = slices.DeleteFunc(servers, func(s clients.Server) bool {
		return slices.ContainsFunc(were, func(w clients.Server) bool { return w.Name == s.Name })
	})
	if slices.ContainsFunc(servers, func(s clients.Server) bool { return s.URL == "" && c.isOurs(ctx, s) }) {
		return true, nil
	}
	var found atomic.Bool
	var asking sync.WaitGroup
	for _, s := range servers {
		asking.Go(func() {
			if s.URL != "" && (c.hasAdded(s) || mayBeOurs(ctx, s)) {
				found.Store(true)
			}
		})
	}
	asking.Wait()
	return found.Load(), nil
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
	output := &sanitize.Tail{Max: 4 << 10}
	cmd.Stdout, cmd.Stderr = output, output
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		err = errVerbTime
	}
	return verbError(client, f, verb, err, output.String())
}

// errVerbTime means that a command of a client did not end within verbTime.
var errVerbTime = fmt.Errorf("it did not end within %v", verbTime)

// verbError returns the error for a command of a client that failed, with what it printed.
func verbError(client *clients.Client, f clients.File, verb []string, err error, printed string) error {
	hint := fmt.Sprintf("Change %s yourself; --print shows what to add.", f.Path)
	if err == errVerbTime {
		hint = fmt.Sprintf("It may be waiting for an answer. Run it yourself: %s\nOr change %s; --print shows what to add.",
			shellWords(verb), f.Path)
	}
	if text := strings.TrimSpace(sanitize.Text(printed)); text != "" {
		hint = "It printed:\n" + text + "\n" + hint
	}
	return &hintError{fmt.Errorf("the command of %s failed: %w", client.Title, err), hint}
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
	entry, _, err := configfile.Get(f.Format, data, f.Place)
	if err != nil {
		return inFile(f.Path, err)
	}
	removed := clients.Read(name, entry)
	verb := c.usable(client.Verb.Remove(name, f.Scope))
	undo := func(old []byte) ([]byte, error) {
		backup, err := configfile.Backup(f.Path)
		if err != nil {
			return nil, err
		}
		undone, err := configfile.Undo(f.Format, old, backup, f.Place)
		if err != nil || undone == nil {
			return undone, err
		}
		return configfile.Remove(f.Format, undone, f.Place) // an entry that was replaced stays away
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
			c.forget(removed)
			return c.write(ctx, f, func(old []byte) ([]byte, error) { return old, nil }) // for the backup
		}
	}
	if err := c.change(ctx, client, f, verb, undo, done); err != nil || c.DryRun {
		return err
	}
	c.forget(removed)
	return nil
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
		case !c.isOurs(ctx, servers[i]) && !mayBeOurs(ctx, servers[i]):
			return "", &hintError{fmt.Errorf("%s has an entry %q that is not of this program", f.Path, c.Name),
				fmt.Sprintf("Remove it with %s. Nothing was changed.", client.Title)}
		}
		return string(c.Name), nil
	}
	var names []string
	for _, s := range servers {
		if c.matches(s) && c.isOurs(ctx, s) {
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
	for _, named := range c.sources {
		if !slices.ContainsFunc(c.spellings(named.word), func(w string) bool { return slices.Contains(s.Args, w) }) {
			return false
		}
	}
	return true
}

// spellings returns how an entry can have a source that the command line names.
func (c *connection) spellings(word string) []string {
	all := []string{word, absolute(c.expand(word))}
	for _, prefix := range []string{"fess:", "datasets:", filePrefix} {
		if rest, ok := strings.CutPrefix(word, prefix); ok {
			all = append(all, prefix+absolute(c.expand(strings.TrimPrefix(rest, "//"))))
		}
	}
	return all
}
