package doctor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/source"
)

// A CommandLine is what the arguments of this program in the configuration of a client
// mean.
type CommandLine struct {
	Command string   // for example "mcp"
	Stdio   bool     // the server talks to the client that starts it
	Paths   []string // folders and files that it reads

	// Started is whether a start changes nothing but the data folder, and Harmless are
	// the arguments for a start with the data folder dir and without a model.
	Started  bool
	Harmless func(dir string) []string
}

// A connection is an entry for a server of this program in a file of a client.
type connection struct {
	entry
	client  *clients.Client
	file    clients.File
	subject string

	now *clients.Server // the server with the repairs that were made
}

// client checks the configuration files of a client. named means that the user asked for
// this client.
func (e *examiner) client(ctx context.Context, c *clients.Client, named bool) (findings []Finding) {
	installed := c.Installed(e.System)
	var connections []connection
	for _, file := range c.Files(e.System) {
		if _, err := os.Lstat(file.Path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		data, err := readFile(file.Path)
		var list []entry
		if err == nil {
			list, err = entries(file, data)
		}
		if err != nil {
			if file.Scope != clients.Local { // which is in the file of the user
				findings = append(findings, e.unreadable(c, file, err))
			}
			continue
		}
		findings = append(findings, e.misplaced(ctx, c, file, data)...)
		own := e.ownEntries(ctx, list)
		for _, entry := range list {
			if inHome(entry.server.Command) && !contains(own, entry.name) {
				findings = append(findings, Finding{Level: Error, Subject: c.Title,
					Message: fmt.Sprintf("%s has the command %q of %q: clients do not replace \"~\" by the home folder",
						file.Path, entry.server.Command, entry.name),
					Fix: "Write the whole path of the program."})
			}
		}
		for _, entry := range own {
			connections = append(connections, connection{entry, c, file, fmt.Sprintf("%s, %q", c.Title, entry.name),
				new(entry.server)})
		}
	}
	for _, connection := range connections {
		findings = append(findings, e.connection(ctx, connection)...)
	}
	findings = append(findings, e.duplicates(c, connections)...)
	connect := fmt.Sprintf("To connect it, type: %s connect %s FOLDER", e.Program, c.Name)
	switch {
	case len(findings) > 0:
	case named && !installed:
		findings = append(findings, Finding{Level: Warning, Subject: c.Title,
			Message: "it does not seem to be installed, and has no configuration file",
			Fix:     fmt.Sprintf("Install it, then connect it: %s connect %s FOLDER", e.Program, c.Name)})
	case named:
		findings = append(findings, Finding{Level: Warning, Subject: c.Title,
			Message: "it is not connected to a server of this program",
			Fix:     connect})
	case installed:
		findings = append(findings, ok(c.Title, "installed, not connected. %s", connect))
	}
	return findings
}

// inHome reports whether a command begins with "~", which shells alone replace.
func inHome(command string) bool {
	return command == "~" || strings.HasPrefix(command, "~/") || strings.HasPrefix(command, `~\`)
}

// contains reports whether a list has an entry with a name.
func contains(list []entry, name string) bool {
	return slices.ContainsFunc(list, func(e entry) bool { return e.name == name })
}

// ownEntries returns the entries for servers of this program, and remembers the secrets
// of all. It asks the servers with a URL at the same time.
func (e *examiner) ownEntries(ctx context.Context, list []entry) (own []entry) {
	ours := make([]bool, len(list))
	var asking sync.WaitGroup
	for i, entry := range list {
		e.learnEntry(entry)
		asking.Go(func() { ours[i] = e.isOurs(ctx, entry.server) })
	}
	asking.Wait()
	for i, entry := range list {
		if ours[i] {
			own = append(own, entry)
		}
	}
	return own
}

// unreadable returns the finding for a file that cannot be used.
func (e *examiner) unreadable(c *clients.Client, file clients.File, err error) Finding {
	f := Finding{Level: Error, Subject: c.Title}
	if damaged, ok := errors.AsType[*configfile.Error](err); ok {
		f.Message = fmt.Sprintf("%s cannot be used: %s", file.Path, e.foreign(damaged.Error()))
		f.Fix = fmt.Sprintf("Correct the file in an editor. %s reads none of its servers until then.", c.Title)
		return f
	}
	f.Message = fmt.Sprintf("%s cannot be read: %s", file.Path, pathReason(err))
	f.Fix = fmt.Sprintf("Type: chmod u+rw %s", e.word(file.Path))
	return f
}

// serverKeys are the keys of servers in the files of all clients.
var serverKeys = []string{"mcpServers", "servers", "mcp_servers", "context_servers"}

// misplaced returns a finding if a file has servers of this program under the key of
// another client, and none under that of its own.
func (e *examiner) misplaced(ctx context.Context, c *clients.Client, file clients.File, data []byte) []Finding {
	if own, err := entries(file, data); err != nil || len(own) > 0 || len(file.Place.Keys) != 1 {
		return nil
	}
	key := file.Place.Keys[0]
	for _, other := range serverKeys {
		file.Place.Keys = []string{other}
		list, err := entries(file, data)
		if err != nil || other == key || len(e.ownEntries(ctx, list)) == 0 {
			continue
		}
		return []Finding{{Level: Error, Subject: c.Title,
			Message: fmt.Sprintf("%s has servers in %q, but %s reads them from %q", file.Path, other, c.Title, key),
			Fix:     fmt.Sprintf("Rename the key to %q.", key)}}
	}
	return nil
}

// opaque is the length of the shortest value of a header that counts as a secret
// although its name does not.
const opaque = 16

// learnEntry remembers the secrets in an entry: what has the name of a secret in its
// headers, variables and arguments, long values of headers, and what is secret in its URL.
func (e *examiner) learnEntry(c entry) {
	for name, value := range c.headers {
		if (secretName(name) || len(value) >= opaque) && !placeholder(value) {
			e.secret(value)
		}
	}
	for _, v := range c.server.Env {
		if secretName(v.Name) && !placeholder(v.Value) {
			e.secret(v.Value)
		}
	}
	for i, arg := range c.server.Args {
		name, value, pair := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(arg, "-") || !secretName(name):
		case pair:
			e.secret(value)
		case i+1 < len(c.server.Args):
			e.secret(c.server.Args[i+1])
		}
		if header, value, pair := strings.Cut(arg, ":"); pair && secretName(header) && !placeholder(value) {
			e.secret(value) // an argument of curl and of mcp-remote
		}
		if strings.Contains(arg, "://") {
			e.secretURL(value)
			e.secretURL(arg)
		}
	}
	e.secretURL(c.server.URL)
}

// secretName reports whether the name of a variable or of a flag is that of a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "key", "secret", "password", "passwd", "auth", "credential", "cookie",
		"store"},
		func(word string) bool { return strings.Contains(name, word) })
}

// placeholder reports whether a value names a variable that holds it.
func placeholder(value string) bool {
	return strings.Contains(value, "${") || strings.Contains(value, "{env:")
}

// packageRunners start a program of a package, which they may download first.
var packageRunners = []string{"npx", "uvx", "pipx", "bunx", "pnpm"}

// isOurs reports whether an entry is for a server of this program.
func (e *examiner) isOurs(ctx context.Context, s clients.Server) bool {
	return s.Name == e.Program && (s.URL != "" || s.Command != "") || e.Ours != nil && e.Ours(ctx, s)
}

// connection checks an entry.
func (e *examiner) connection(ctx context.Context, c connection) []Finding {
	findings := e.exposed(c)
	switch {
	case c.off:
		return append(findings, ok(c.subject, "switched off in %s", c.file.Path))
	case c.server.URL != "" && c.server.Command == "":
		return append(findings, e.remote(ctx, c)...)
	case slices.Contains(packageRunners, filepath.Base(filepath.ToSlash(c.server.Command))):
		return append(findings, ok(c.subject, "%s runs it, which was not started, because it may download",
			filepath.Base(c.server.Command)))
	}
	faults := e.startedBy(ctx, c)
	line, wrong := e.arguments(c)
	faults = append(faults, wrong...)
	findings = append(findings, faults...)
	if slices.ContainsFunc(faults, func(f Finding) bool { return f.Level == Error }) {
		return findings
	}
	return append(findings, e.start(ctx, c, line)...)
}

// exposed returns findings for tokens that others may read.
func (e *examiner) exposed(c connection) (findings []Finding) {
	literal := false
	for name, value := range c.headers {
		literal = literal || secretName(name) && value != "" && !placeholder(value)
	}
	for _, v := range c.server.Env {
		literal = literal || secretName(v.Name) && v.Value != "" && !placeholder(v.Value)
	}
	for i, arg := range c.server.Args {
		name, value, pair := strings.Cut(arg, "=")
		if !strings.HasPrefix(arg, "-") || !secretName(name) {
			continue
		}
		if !pair && i+1 < len(c.server.Args) {
			value = c.server.Args[i+1]
		}
		literal = literal || value != "" && !placeholder(value)
	}
	if u, err := url.Parse(c.server.URL); err == nil && u.User != nil {
		literal = true
	}
	if !literal {
		return nil
	}
	if c.file.Scope == clients.Project {
		return []Finding{{Level: Warning, Subject: c.subject,
			Message: fmt.Sprintf("%s contains a token, and files of a project may be committed and published",
				c.file.Path),
			Fix: fmt.Sprintf("Name a variable in its place: %s connect %s --token-env KNOWHOW_TOKEN. If the file was published, choose a new token.",
				e.Program, c.client.Name)}}
	}
	info, err := os.Stat(c.file.Path)
	if err != nil || e.GOOS == "windows" || info.Mode().Perm()&0o044 == 0 {
		return nil
	}
	return []Finding{{Level: Warning, Subject: c.subject,
		Message: fmt.Sprintf("%s contains a token, and other users of this machine may read it (permissions %04o)",
			c.file.Path, info.Mode().Perm()),
		Fix: fmt.Sprintf("Type: chmod 600 %s", e.word(c.file.Path))}}
}

// remote checks an entry with a URL.
func (e *examiner) remote(ctx context.Context, c connection) []Finding {
	reconnect := fmt.Sprintf("Connect it again: %s connect %s --url %s", e.Program, c.client.Name, shown(c.server.URL))
	if !c.client.HTTP {
		return []Finding{{Level: Error, Subject: c.subject,
			Message: fmt.Sprintf("%s does not connect to a URL, so it does not show this server", c.client.Title),
			Fix:     fmt.Sprintf("Let it start the program: %s connect %s FOLDER", e.Program, c.client.Name)}}
	}
	if key := e.urlKey(c); key != "" {
		return []Finding{{Level: Error, Subject: c.subject,
			Message: fmt.Sprintf("%s has its URL in another key than %q, from which %s reads it", c.file.Path, key,
				c.client.Title),
			Fix: reconnect}}
	}
	headers := maps.Clone(c.headers)
	for name, value := range headers {
		if placeholder(value) {
			delete(headers, name)
			if name == "Authorization" {
				maps.Copy(headers, e.tokenHeader())
			}
		}
	}
	if variable, ok := c.values["bearer_token_env_var"].(string); ok {
		if token := e.get(variable); token != "" {
			e.secret(token)
			headers["Authorization"] = "Bearer " + token
		}
	}
	return e.probe(ctx, c.subject, c.server.URL, headers)
}

// urlKey returns the key in which a client reads a URL, if an entry has it in another
// one that the client does not know. It returns "" if the entry is right.
func (e *examiner) urlKey(c connection) string {
	if _, typed := c.values["type"]; typed { // the other keys are for entries without a type
		return ""
	}
	for _, m := range c.client.Entry(clients.Server{Name: c.name, URL: c.server.URL}) {
		if m.Value == c.server.URL && c.values[m.Name] == nil {
			return m.Name
		}
	}
	return ""
}

// startedBy checks the program that an entry names.
func (e *examiner) startedBy(ctx context.Context, c connection) []Finding {
	command := c.server.Command
	reconnect := fmt.Sprintf("Connect it again, which writes the whole path: %s connect %s%s", e.Program, c.client.Name,
		operands(c.server.Args))
	wrong := func(level Level, format string, args ...any) []Finding {
		return []Finding{{Level: level, Subject: c.subject, Message: fmt.Sprintf(format, args...), Fix: reconnect,
			repair: e.withProgram(c)}}
	}
	path := command
	switch {
	case inHome(command):
		return wrong(Error, "%s has the command %q: clients do not replace \"~\" by the home folder", c.file.Path,
			command)
	case strings.HasPrefix(command, "$HOME") || strings.HasPrefix(command, "%"):
		return wrong(Error, "%s has the command %q: clients do not replace variables in it", c.file.Path, command)
	case placeholder(command):
		return nil // which the client replaces
	case !strings.ContainsAny(command, `/\`):
		if path = e.System.Program(command); path == "" {
			return wrong(Error, "%s has the command %q, which is not on the PATH", c.file.Path, command)
		}
		if c.client.Window {
			return wrong(Warning,
				"%s has the command %q without its folder: %s has not the PATH of a shell, and may not find it",
				c.file.Path, command, c.client.Title)
		}
	case !filepath.IsAbs(command):
		return wrong(Error, "%s has the command %q, which depends on the folder in which the client starts it",
			c.file.Path, command)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return wrong(Error, "%s has the command %s, which does not exist", c.file.Path, path)
	case info.IsDir() || e.GOOS != "windows" && info.Mode()&0o111 == 0:
		return []Finding{{Level: Error, Subject: c.subject,
			Message: fmt.Sprintf("%s has the command %s, which cannot be executed", c.file.Path, path),
			Fix:     fmt.Sprintf("Type: chmod +x %s", e.word(path))}}
	case SameFile(path, e.Executable):
		return nil
	}
	b, err := e.buildOf(ctx, path)
	switch {
	case errors.Is(err, errOther) && filepath.Base(path) == e.Program:
		return wrong(Error, "%s has the command %s, which is another program", c.file.Path, path)
	case err == nil && !b.same(e.Build):
		return wrong(Warning, "%s starts %s of version %s, and this is version %s", c.file.Path, path, b, e.Build)
	}
	return nil
}

// operands returns what follows the command of a server, for advice: " FOLDER" if it is
// not a simple command line.
func operands(args []string) string {
	if len(args) > 0 && slices.Contains([]string{"kb"}, args[0]) {
		return " " + args[0]
	}
	return " FOLDER"
}

// arguments checks the arguments of this program in an entry.
func (e *examiner) arguments(c connection) (line CommandLine, findings []Finding) {
	if e.Parse == nil {
		return line, nil
	}
	args := c.server.Args
	env := map[string]string{}
	for _, v := range c.server.Env {
		env[v.Name] = v.Value
	}
	base := strings.TrimSuffix(filepath.Base(filepath.ToSlash(c.server.Command)), ".exe")
	line, err := e.Parse(base, args, env)
	again := fmt.Sprintf("Connect it again: %s connect %s%s", e.Program, c.client.Name, operands(args))
	if err != nil {
		return line, []Finding{{Level: Error, Subject: c.subject,
			Message: fmt.Sprintf("the arguments in %s are wrong: %s", c.file.Path, e.reason(err)), Fix: again}}
	}
	asMCP := e.rewrite(c, func(s *clients.Server) { s.Args = mcpArguments(s.Args) })
	switch {
	case !line.Stdio && line.Command == "serve":
		findings = append(findings, Finding{Level: Error, Subject: c.subject, repair: asMCP,
			Message: fmt.Sprintf("%s starts %q, which listens for HTTP and does not answer the client (some clients remove \"--transport stdio\")",
				c.file.Path, e.Program+" serve"),
			Fix: fmt.Sprintf("Replace \"serve\" by \"mcp\" there, or type: %s doctor --fix", e.Program)})
	case !line.Stdio:
		findings = append(findings, Finding{Level: Error, Subject: c.subject,
			Message: fmt.Sprintf("%s starts %q, which does not answer the client on its standard input", c.file.Path,
				e.foreign(e.Program+" "+line.Command)),
			Fix: "Add KNOWHOW_TRANSPORT=stdio to its variables. " + again})
	case line.Command == "serve":
		findings = append(findings, Finding{Level: Warning, Subject: c.subject, repair: asMCP,
			Message: fmt.Sprintf("%s starts \"serve --transport stdio\": some clients take --transport for a flag of their own and remove it",
				c.file.Path),
			Fix: fmt.Sprintf("Replace it by \"mcp\", or type: %s doctor --fix", e.Program)})
	}
	for _, path := range line.Paths {
		if strings.Contains(path, "://") || placeholder(path) {
			continue
		}
		kind, path := source.KindOf(strings.TrimPrefix(path, "file:"))
		if kind == source.Notes {
			continue
		}
		switch _, err := os.Stat(path); {
		case strings.HasPrefix(path, "$") || strings.HasPrefix(path, "%"):
			findings = append(findings, Finding{Level: Error, Subject: c.subject,
				Message: fmt.Sprintf("%s names the folder %q: clients do not replace variables in it", c.file.Path,
					path), Fix: again})
		case !filepath.IsAbs(path):
			findings = append(findings, Finding{Level: Warning, Subject: c.subject,
				Message: fmt.Sprintf("%s names the folder %q, which depends on the folder in which the client starts the program",
					c.file.Path, path),
				Fix: "Name the whole path. " + again})
		case errors.Is(err, fs.ErrNotExist):
			findings = append(findings, Finding{Level: Error, Subject: c.subject,
				Message: fmt.Sprintf("%s names %s, which does not exist", c.file.Path, path),
				Fix:     "Put the folder back, or connect another one. " + again})
		case err != nil:
			findings = append(findings, Finding{Level: Error, Subject: c.subject,
				Message: fmt.Sprintf("%s names %s, which cannot be read: %s", c.file.Path, path, pathReason(err)),
				Fix:     "Change its permissions."})
		}
	}
	return line, findings
}

// mcpArguments returns arguments of serve as those of mcp.
func mcpArguments(args []string) (changed []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case i == 0 && args[i] == "serve":
			changed = append(changed, "mcp")
		case args[i] == "--transport" && i+1 < len(args):
			i++
		case strings.HasPrefix(args[i], "--transport="):
		default:
			changed = append(changed, args[i])
		}
	}
	return changed
}

// rewrite returns the repair of an entry, or nil if files of this client cannot be
// changed.
func (e *examiner) rewrite(c connection, change func(*clients.Server)) func(context.Context) (string, error) {
	if e.Rewrite == nil {
		return nil
	}
	return func(context.Context) (string, error) {
		s := *c.now
		s.Args = slices.Clone(s.Args)
		change(&s)
		if err := e.Rewrite(c.client, c.file, c.name, s); err != nil {
			return "", err
		}
		*c.now = s
		return fmt.Sprintf("the entry %q of %s starts %s %s now", c.name, c.file.Path, s.Command, strings.Join(s.Args,
			" ")), nil
	}
}

// withProgram returns the repair of an entry whose program is not where it says, or nil if
// this program does not do the same.
func (e *examiner) withProgram(c connection) func(context.Context) (string, error) {
	name := c.server.Command[strings.LastIndexAny(c.server.Command, `/\`)+1:]
	var before []string
	switch strings.TrimSuffix(name, ".exe") {
	case e.Program:
	case "mcp-fess":
		before = []string{"fess"}
	default:
		return nil
	}
	if temporary(e.Executable) {
		return nil
	}
	return e.rewrite(c, func(s *clients.Server) {
		s.Command, s.Args = e.Executable, append(before, s.Args...)
	})
}

// start starts the server of an entry as the client does, but with a data folder of its
// own, so that nothing is changed. Entries that start the same are started once.
func (e *examiner) start(ctx context.Context, c connection, line CommandLine) []Finding {
	name := fmt.Sprintf("%s %s", c.server.Command, strings.Join(c.server.Args, " "))
	if placeholder(name) || !line.Started || e.Parse == nil {
		return []Finding{ok(c.subject, "%s, which was not started", name)}
	}
	run := e.starts.do(startKey(c.server), func() []Finding {
		dir, err := os.MkdirTemp("", "knowhow-doctor-")
		if err != nil {
			return []Finding{ok("", "%s, which was not started: %s", name, pathReason(err))}
		}
		defer os.RemoveAll(dir)
		server := mcpsettings.Server{ID: "server", Transport: mcpsettings.Stdio, Command: c.server.Command,
			Args: line.Harmless(dir), Env: map[string]string{}}
		for _, v := range c.server.Env {
			server.Env[v.Name] = v.Value
		}
		for _, variable := range []string{"KNOWHOW_DATA", "KB_DATA_DIR"} {
			server.Env[variable] = dir
		}
		server.Env["KNOWHOW_EMBEDDER"], server.Env["KNOWHOW_STORE"] = "none", ""
		if _, ok := server.Env["KNOWHOW_TRANSPORT"]; !ok {
			server.Env["KNOWHOW_TRANSPORT"] = "" // that of this process does not count
		}
		return e.converse(ctx, "", server, name)
	})
	findings := slices.Clone(run)
	for i := range findings {
		findings[i].Subject = c.subject
	}
	return findings
}

// startKey identifies what an entry starts.
func startKey(s clients.Server) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q %q", s.Command, s.Args, s.Env)))
}

// duplicates returns a finding for servers that a client has more than once.
func (e *examiner) duplicates(c *clients.Client, connections []connection) (findings []Finding) {
	seen := map[string]connection{}
	for _, other := range connections {
		if other.off {
			continue
		}
		key := other.server.URL
		if other.server.Command != "" {
			key = startKey(clients.Server{Args: other.server.Args})
		}
		first, double := seen[key]
		if !double {
			seen[key] = other
			continue
		}
		findings = append(findings, Finding{Level: Warning, Subject: c.Title,
			Message: fmt.Sprintf("it has one server twice, as %q in %s and as %q in %s: its tools fill the context of the model twice",
				first.name, first.file.Path, other.name, other.file.Path),
			Fix: fmt.Sprintf("Remove one of them, for example with: %s connect %s --remove --name %s", e.Program,
				c.Name, e.word(other.name))})
	}
	return findings
}
