// Package doctor finds what goes wrong in practice on the machine of a user: with the
// program, the data folder, its sources and vectors, the servers, and the
// configuration of MCP clients. Each finding says what to do.
//
// The checks change nothing. They run at the same time, each with a time limit. The
// texts of findings are meant to be published: they contain no secrets that the checks
// have met, and "~" stands for the home folder.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// A Level says how serious a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // it works, but not as well as it could, or may fail later
	Error   Level = "error"   // something does not work
)

// A Finding is the result of a check. Its texts are on one line and contain nothing that
// controls a terminal.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"` // what was checked, for example "data folder"
	Message string `json:"message"`
	Fix     string `json:"fix"` // sentences that say what to do; "" if nothing must be done

	// repair does what Fix says and returns what it did; nil if a program cannot do that
	// safely.
	repair func(ctx context.Context) (done string, err error)
}

// Repairable reports whether Run can repair what it found.
func (f Finding) Repairable() bool { return f.repair != nil && f.Level != OK }

// ok returns a finding without a problem.
func ok(subject, format string, args ...any) Finding {
	return Finding{Level: OK, Subject: subject, Message: fmt.Sprintf(format, args...)}
}

// A Store is a store of documents in place of the data folder.
type Store interface {
	Open(ctx context.Context) error
	Health(ctx context.Context) (search.Health, error)
	HasVectors() bool
}

// A Build is a version of the program.
type Build struct{ Version, Commit string }

// String returns the version and the beginning of the commit.
func (b Build) String() string {
	if len(b.Commit) < shortCommit {
		return b.Version
	}
	return b.Version + " (commit " + b.Commit[:shortCommit] + ")"
}

// shortCommit is how many characters of a commit are shown and compared.
const shortCommit = 12

// same reports whether two builds may be the same one. A commit that is not known is
// the same as any other.
func (b Build) same(other Build) bool {
	if b.Version != other.Version {
		return false
	}
	short := func(commit string) string { return commit[:min(len(commit), shortCommit)] }
	return b.Commit == "" || other.Commit == "" || short(b.Commit) == short(other.Commit)
}

// Options are what is checked. A field that is not set is not checked, unless it says
// otherwise.
type Options struct {
	Program    string // name of the program that users type
	Executable string // absolute path of the running program
	Build      Build

	clients.System // the user, the environment and the PATH; required

	Data      string // data folder, absolute; "" if it is not known
	DataNamed bool   // Data is not the usual one: commands in advice name it

	Model    embed.Embedder // nil: searches use words only
	ModelErr error          // why the model cannot be opened
	Remote   bool           // the model is a service

	Store    Store // nil: the data folder has the documents
	StoreErr error // why the store cannot be used
	Explain  func(error) error

	Addr   string // HOST:PORT of serve
	Token  string // that servers require
	Engine string // URL of an engine; "" for none

	FessConfig string // configuration file of the bridge; "" means the first one below Home that exists
	FessToken  string // takes precedence over that of the file

	// Ours reports whether an entry of a client is for a server of this program. nil: only
	// those with the name of the program are.
	Ours func(ctx context.Context, s clients.Server) bool

	// Parse reads the arguments of a program of this project, with the environment
	// variables that the client sets. nil: they are not checked, and nothing is started.
	Parse func(program string, args []string, env map[string]string) (CommandLine, error)

	// Rewrite writes another server in place of an entry of a client. nil: entries are
	// not repaired.
	Rewrite func(c *clients.Client, f clients.File, name string, s clients.Server) error

	// At most one of these is set. Without them, everything is checked.
	Folder string          // only this source, and the data folder
	URL    string          // only this server
	Client *clients.Client // only the configuration of this client

	Fix bool // make safe repairs, and report them in the findings

	// Limit is the time of one check; 0 means 15 s. Only what hangs takes so long.
	Limit time.Duration

	// Progress is called when a check is done; nil means that nothing is reported. It is
	// called by one goroutine at a time.
	Progress func(done, total int)

	machine machine // zero: this one
}

// standardLimit is the time of one check. It is more than a client takes to start the
// program on a slow machine.
const standardLimit = 15 * time.Second

// An examiner makes the checks of one run.
type examiner struct {
	Options

	mu      sync.Mutex
	secrets map[string]bool // that no text may contain

	starts once
}

// A once has the results of work that is done once for each key.
type once struct {
	mu      sync.Mutex
	results map[string]func() []Finding
}

// do returns the result for a key, which the first call for it works out.
func (o *once) do(key string, work func() []Finding) []Finding {
	o.mu.Lock()
	if o.results == nil {
		o.results = map[string]func() []Finding{}
	}
	result, known := o.results[key]
	if !known {
		result = sync.OnceValue(work)
		o.results[key] = result
	}
	o.mu.Unlock()
	return result()
}

// A check is one of the checks of a run. It ends soon after ctx ends.
type check struct {
	subject string
	run     func(ctx context.Context) []Finding
}

// Run makes the checks and, with o.Fix, repairs. It returns what they found: the errors
// first, then the warnings, then what is ok, each in the order of the checks.
func Run(ctx context.Context, o Options) []Finding {
	e := &examiner{Options: o, secrets: map[string]bool{}}
	e.Limit = cmp.Or(e.Limit, standardLimit)
	e.machine = e.machine.orThis()
	e.learnVariables()
	findings := e.all(ctx, e.checks(), e.Limit, e.Progress)
	if o.Fix {
		for i := range findings {
			repair(ctx, &findings[i])
		}
	}
	for i := range findings {
		f := &findings[i]
		f.Subject, f.Message, f.Fix = e.publish(f.Subject), e.publish(f.Message), e.publish(f.Fix)
	}
	rank := map[Level]int{Error: 0, Warning: 1, OK: 2}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(rank[a.Level], rank[b.Level]) })
	return findings
}

// checks returns the checks for the target.
func (e *examiner) checks() []check {
	switch {
	case e.Folder != "":
		return append(e.dataChecks(), check{"source", e.folder})
	case e.URL != "":
		return []check{{"environment", e.proxies}, {"server", e.server}}
	case e.Client != nil:
		return []check{{"program", e.program}, {e.Client.Title, func(ctx context.Context) []Finding {
			return e.client(ctx, e.Client, true)
		}}}
	}
	all := []check{{"program", e.program}, {"environment", e.environment}, {"proxies", e.proxies}}
	all = append(all, e.dataChecks()...)
	all = append(all, check{"model", e.model}, check{"port", e.port}, check{"Fess", e.fess}, check{"store", e.store},
		check{"engine", e.engine})
	for _, c := range clients.All() {
		all = append(all, check{c.Title, func(ctx context.Context) []Finding { return e.client(ctx, c, false) }})
	}
	return all
}

// all makes checks at the same time, each within a time limit, and returns their
// findings in the order of the checks. progress may be nil.
func (e *examiner) all(ctx context.Context, checks []check, limit time.Duration, progress func(done, total int)) (
	findings []Finding) {
	results := make([][]Finding, len(checks))
	var reporting sync.Mutex
	done := 0
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			results[i] = within(ctx, c, limit)
			reporting.Lock()
			defer reporting.Unlock()
			if done++; progress != nil {
				progress(done, len(checks))
			}
		})
	}
	running.Wait()
	return slices.Concat(results...)
}

// within makes a check within a time limit. A system call for a network file system
// whose server is gone cannot be interrupted, so after half the time more the check is
// left alone: the program is about to end.
func within(ctx context.Context, c check, limit time.Duration) []Finding {
	ctx, cancel := context.WithTimeout(ctx, limit)
	result := make(chan []Finding, 1)
	go func() {
		defer cancel()
		result <- c.run(ctx)
	}()
	most := limit + limit/2
	select {
	case findings := <-result:
		return findings
	case <-time.After(most):
		return []Finding{{Level: Error, Subject: c.subject,
			Message: fmt.Sprintf("the check did not end within %s", terminal.Duration(most)),
			Fix:     "Check the disks, above all those of other machines, and whether the machine is very busy."}}
	}
}

// repair makes the repair of a finding, if it has one, and changes the finding.
func repair(ctx context.Context, f *Finding) {
	if f.repair == nil || f.Level == OK {
		return
	}
	done, err := f.repair(ctx)
	if err != nil {
		f.Message += "; the repair failed: " + errkind.Message(err)
		return
	}
	f.Level, f.Fix = OK, ""
	f.Message = "repaired: " + done + ". Before: " + f.Message
}

// secret remembers texts that must not be published.
func (e *examiner) secret(texts ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range texts {
		s = strings.TrimSpace(s)
		_, credentials, _ := strings.Cut(s, " ") // Bearer TOKEN
		for _, secret := range []string{s, credentials} {
			if len(secret) >= minSecret && !slices.Contains(ordinaryWords, strings.ToLower(secret)) {
				e.secrets[secret] = true
			}
		}
	}
}

// minSecret is the length of the shortest secret that is hidden. To hide a shorter one
// would make texts illegible.
const minSecret = 4

// ordinaryWords are words of messages, such as those of a server that refuses a token.
// One of them as a secret is that of an example, and to hide it would change what
// messages say.
var ordinaryWords = strings.Fields("access address admin authorization bearer basic client command example false " +
	"header host http https invalid knowhow name none null password program required request secret server test " +
	"token true user wrong your")

// secretVariables are the environment variables of the program with secrets.
var secretVariables = []string{"KNOWHOW_TOKEN", "KB_API_KEY", "KB_MCP_API_KEY", "FESS_API_TOKEN", "EMBED_API_KEY",
	"OPENSEARCH_PASSWORD", "MCP_BRIDGE_TOKEN"}

// learnVariables remembers the secrets in the options and the environment.
func (e *examiner) learnVariables() {
	e.secret(e.Token, e.FessToken)
	for _, name := range secretVariables {
		value, _ := e.Lookup(name)
		e.secret(value)
	}
	for _, address := range []string{e.URL, e.Engine, e.get("KNOWHOW_STORE"), e.get("KNOWHOW_EMBEDDER")} {
		e.secretURL(address)
	}
}

// get returns an environment variable, or "".
func (e *examiner) get(name string) string {
	value, _ := e.Lookup(name)
	return value
}

// maxText is the length of the longest text of a finding, in characters.
const maxText = 700

// publish returns a text of a finding as it can be shown and published.
func (e *examiner) publish(text string) string {
	text = e.withoutSecrets(text)
	for _, home := range e.homes() {
		text = replaceFolder(text, home, "~")
	}
	return sanitize.Escape(sanitize.Cut(strings.Join(strings.Fields(text), " "), maxText, 4*maxText))
}

// maxInput is how much of a text is read, in bytes.
const maxInput = 64 << 10

// withoutSecrets returns a text with *** in place of secrets and of credentials in URLs.
// Of a text that is longer than maxInput, it returns only the beginning.
func (e *examiner) withoutSecrets(text string) string {
	e.mu.Lock()
	secrets := slices.SortedFunc(maps.Keys(e.secrets), func(a, b string) int { // longer ones first
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	e.mu.Unlock()
	long := len(text) > maxInput
	if long {
		text = text[:maxInput]
	}
	if len(secrets) > 0 {
		var pairs []string
		for _, s := range secrets {
			pairs = append(pairs, s, "***")
		}
		text = strings.NewReplacer(pairs...).Replace(text)
		if long { // its end may be the first half of a secret
			text = text[:max(0, len(text)-len(secrets[0]))]
		}
	}
	return sanitize.HideUserinfo(text)
}

// foreign returns a text that another program wrote for a message: on one line and
// short.
func (e *examiner) foreign(text string) string {
	return sanitize.Cut(sanitize.Line(e.withoutSecrets(text)), maxForeign, 4*maxForeign)
}

// maxForeign is the length of the longest text of another program, in characters.
const maxForeign = 300

// reason returns the message of an error on one line.
func (e *examiner) reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return e.foreign(errkind.Message(err))
}

// homes returns the paths of the home folder, the longest first.
func (e *examiner) homes() (homes []string) {
	if len(e.Home) < 2 { // "/" is the home folder of some services
		return nil
	}
	homes = []string{filepath.Clean(e.Home)}
	if real, err := filepath.EvalSymlinks(e.Home); err == nil && real != homes[0] {
		homes = append(homes, real)
	}
	slices.SortFunc(homes, func(a, b string) int { return len(b) - len(a) })
	return homes
}

// replaceFolder replaces the path of a folder in a text where it is a whole path or
// followed by a separator.
func replaceFolder(text, folder, by string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, folder)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if after != "" && strings.ContainsRune(pathLetters, rune(after[0])) || endsInPath(before) {
			b.WriteString(folder)
		} else {
			b.WriteString(by)
		}
		text = after
	}
}

// endsInPath reports whether what follows a text continues a path or a name.
func endsInPath(s string) bool {
	return s != "" && strings.ContainsRune(pathLetters+"~", rune(s[len(s)-1]))
}

// pathLetters are characters that continue the name of a file.
const pathLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// command returns a command of this program for advice.
func (e *examiner) command(words ...string) string {
	line := []string{e.Program, words[0]}
	if e.DataNamed && slices.Contains([]string{"serve", "status", "sources", "search"}, words[0]) {
		line = append(line, "--data", e.word(e.Data))
	}
	return strings.Join(append(line, words[1:]...), " ")
}

// word returns a path as a word of a command line.
func (e *examiner) word(path string) string {
	prefix := ""
	for _, home := range e.homes() {
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			prefix, path = "~"+string(filepath.Separator), rest // quotes would keep the shell from expanding it
			break
		}
	}
	if !strings.ContainsAny(path, " \t'\"$`\\&;()<>|*?[]#!{}") || e.GOOS == "windows" && !strings.Contains(path, " ") {
		return prefix + path
	}
	if e.GOOS == "windows" {
		return `"` + prefix + path + `"`
	}
	return prefix + "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// Count returns how many findings have a level.
func Count(findings []Finding, level Level) (n int) {
	for _, f := range findings {
		if f.Level == level {
			n++
		}
	}
	return n
}
