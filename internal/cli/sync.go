package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/skill"
	"github.com/knowhow-mcp/knowhow/internal/skill/store"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// catalogBudget is the number of characters of skill descriptions that Claude
// Code shows by default: 1 % of a context window of 200,000 tokens.
const catalogBudget = 8000

// disconnectTime is the time limit for ending the servers.
const disconnectTime = 5 * time.Second

// A syncCommand generates the skills and ends.
type syncCommand struct{ syncFlags }

func (o *syncCommand) run(ctx context.Context, v *invocation) error {
	y, err := v.newSyncing(&o.syncFlags)
	if err != nil {
		return err
	}
	defer y.close(ctx)
	return y.sync(ctx)
}

// A syncing generates skills on disk from the tools of servers.
type syncing struct {
	*invocation
	f        *syncFlags
	settings *mcpsettings.Settings
	pool     *mcpclient.Pool
	log      *slog.Logger
	lines    *terminal.Lines
	base     string // the working directory

	idleTimeout time.Duration // of connections to servers; 0 for the default
}

// newSyncing reads the settings.
func (v *invocation) newSyncing(f *syncFlags) (*syncing, error) {
	if f.Settings == "" {
		e := v.usagef("--mcp-settings is missing: name the file that lists the MCP servers")
		e.hint = "For example: " + v.name + " --mcp-settings mcp_settings.json"
		return nil, e
	}
	lines := terminal.NewLines(v.stderr, nil)
	y := &syncing{invocation: v, f: f, log: slog.New(terminal.NewHandler(lines, f.Level.level())), lines: lines}
	var err error
	if y.base, err = os.Getwd(); err != nil {
		return nil, err
	}
	y.log.Info("Loading configuration from " + string(f.Settings))
	if y.settings, err = mcpsettings.Load(string(f.Settings), v.Lookup); err != nil {
		return nil, err
	}
	for _, w := range y.settings.Warnings {
		y.log.Warn(w)
	}
	for _, s := range y.settings.Servers {
		if len(s.Expanded) > 0 {
			y.log.Debug("expanded environment variables", "server", s.ID, "names", strings.Join(s.Expanded, " "))
		}
	}
	return y, nil
}

// connect creates the pool of servers, which connects to each server when it is
// first used. The pool reports servers that were connected or whose tools
// changed.
func (y *syncing) connect(connected, changed func(server string)) {
	y.pool = mcpclient.New(mcpclient.Options{
		Servers:        y.settings.Servers,
		Log:            y.log,
		Version:        version(),
		IdleTimeout:    y.idleTimeout,
		CallTimeout:    y.f.Timeout,
		ConnectTimeout: y.f.Timeout,
		Connected:      connected,
		ToolsChanged:   changed,
	})
}

// close ends all servers.
func (y *syncing) close(ctx context.Context) {
	if y.pool == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), disconnectTime)
	defer cancel()
	if err := y.pool.Close(ctx); err != nil {
		y.log.Warn("ending the servers", "error", err)
	}
}

// storeOptions returns the options for the folders of skills.
func (y *syncing) storeOptions() store.Options {
	return store.Options{
		Base:       y.base,
		OutputDir:  string(y.f.OutputDir),
		LinkDirs:   stringsOf(y.f.SkillsDirs),
		Force:      y.f.Force,
		DryRun:     y.f.DryRun || y.f.Check,
		ConfigHash: y.f.configHash(y.Program, y.settings),
		Log:        y.log,
	}
}

// generator returns the generator that asks the servers and writes the skills.
func (y *syncing) generator() *store.Generator {
	g := &store.Generator{
		Servers: y.pool, Keep: y.f.keeps, Store: y.storeOptions(),
		Render: skill.Options{GroupByServer: y.f.GroupBy == "server", Description: y.f.Description, Version: version(),
			Start: y.f.startCommand(y.Program)},
	}
	for _, s := range y.settings.Servers {
		if s.Disabled {
			g.Disabled = append(g.Disabled, s.ID)
		} else {
			g.Enabled = append(g.Enabled, s.ID)
		}
	}
	return g
}

// progressTime is the interval of lines that name the servers that have not
// answered.
const progressTime = 10 * time.Second

// endLine begins a new line if a terminal has written ^C into the last one.
func (y *syncing) endLine(ctx context.Context) {
	if sig, ok := errors.AsType[SignalError](context.Cause(ctx)); ok && sig.Signal == os.Interrupt &&
		y.lines.Terminal() {
		fmt.Fprintln(y.stderr)
	}
}

// watch shows how many servers have answered: with a bar on a terminal, which
// other messages do not keep visible, otherwise with a line every ten seconds.
// The caller calls answered for each server that has answered, and end when it
// stops waiting.
func (y *syncing) watch(servers []string) (answered func(server string), end func()) {
	if len(servers) > 1 && y.lines.Terminal() {
		y.lines.Show(terminal.Bar{What: "asking the servers", Total: len(servers)})
		return func(string) { y.lines.Advance() }, func() { y.lines.Show(terminal.Bar{}) }
	}
	var mu sync.Mutex
	waiting := slices.Sorted(slices.Values(servers))
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(progressTime)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				mu.Lock()
				y.log.Info(fmt.Sprintf("Waiting for %d of %s: %s", len(waiting),
					terminal.Plural(len(servers), "server"), strings.Join(waiting, ", ")))
				mu.Unlock()
			case <-stop:
				return
			}
		}
	})
	answered = func(server string) {
		mu.Lock()
		defer mu.Unlock()
		waiting = slices.DeleteFunc(waiting, func(s string) bool { return s == server })
	}
	return answered, func() {
		close(stop)
		watching.Wait()
	}
}

// sync generates the skills. It also fails if no server answered, and with
// --strict if any server failed.
func (y *syncing) sync(ctx context.Context) error {
	y.connect(nil, nil)
	a, err := y.generate(ctx)
	const hint = "The lines above contain the reason for each server."
	switch {
	case err != nil:
		return err
	case len(a.Failed) > 0 && len(a.Catalogs) == 0:
		return &hintError{errors.New("no server answered"), hint}
	case len(a.Failed) > 0 && y.f.Strict:
		return &hintError{fmt.Errorf("%s failed, and --strict is set", terminal.Plural(len(a.Failed), "server")), hint}
	}
	return nil
}

// generate generates the skills of all servers that answer and prints the
// summary. It fails if they could not be written, and with --check if they are stale.
func (y *syncing) generate(ctx context.Context) (*store.Answers, error) {
	// Check this before any server is started.
	if err := store.Check(y.storeOptions()); err != nil {
		if arg, ok := errors.AsType[*errkind.Argument](err); ok {
			name := map[string]string{"OutputDir": "output-dir", "LinkDirs": "skills-dir"}[arg.Name]
			return nil, y.usagef("--%s: got %q, want %s", name, arg.Value, arg.Want)
		}
		return nil, storeError(err)
	}
	g := y.generator()
	answered, end := y.watch(g.Enabled)
	a, err := g.Ask(ctx, answered)
	end()
	if err != nil {
		y.endLine(ctx)
		y.log.Warn("Interrupted before anything was written: run it again to bring the skills up to date")
		return nil, err
	}
	report, skills, err := g.Write(ctx, a)
	switch {
	case err != nil && ctx.Err() != nil:
		y.endLine(ctx)
		y.log.Warn("Interrupted while the skills were written: run it again to bring them up to date")
		return nil, ctx.Err()
	case err != nil:
		return nil, storeError(err)
	}
	y.summarize(a, report, skills)
	if y.f.Check && report.Stale {
		return nil, &hintError{errors.New("skills are stale"), "Run it again without --check to bring them up to date."}
	}
	return a, nil
}

// storeError adds the flags that choose the folders to an error about them.
func storeError(err error) error {
	if errors.Is(err, errkind.Conflict) || errors.Is(err, errkind.Denied) {
		return &hintError{err,
			"--output-dir names the folder of the skills, and --skills-dir the folders of links to them."}
	}
	return err
}

// summarize prints the summary.
func (y *syncing) summarize(a *store.Answers, r *store.Report, skills []skill.Skill) {
	out := y.stdout
	if y.f.DryRun || y.f.Check {
		y.printPlan(r, len(a.Failed))
	} else {
		// The same words for one, because programs read the line.
		fmt.Fprintf(out, "Generated %d skills from %d servers", len(r.Written), len(a.Catalogs))
		if len(r.Unchanged) > 0 {
			fmt.Fprintf(out, " (%d unchanged)", len(r.Unchanged))
		}
		fmt.Fprintln(out)
		if len(r.Removed) > 0 {
			fmt.Fprintf(out, "Removed %s from %s: %s\n", terminal.Plural(len(r.Removed), "skill"),
				sanitize.Escape(cmp.Or(string(y.f.OutputDir), defaultOutputDir)), someOf(r.Removed))
		}
	}
	fmt.Fprintf(out, "%d succeeded, %d failed", len(a.Catalogs), len(a.Failed))
	var reasons []string
	for id, err := range a.Failed {
		reasons = append(reasons, fmt.Sprintf("%s (%s)", sanitize.Escape(id), sanitize.Escape(briefReason(id, err))))
	}
	if slices.Sort(reasons); len(reasons) > 0 {
		fmt.Fprintf(out, ": %s", strings.Join(reasons, "; "))
	}
	fmt.Fprintln(out)
	for _, name := range r.Changed {
		fmt.Fprintf(out, "changed since the last sync: %s: read its description before you trust it\n", name)
	}
	// Skills whose place is taken are not visible to agents.
	skills = slices.DeleteFunc(slices.Clone(skills), func(k skill.Skill) bool {
		return !slices.Contains(r.Written, k.Name) && !slices.Contains(r.Unchanged, k.Name)
	})
	if len(skills) == 0 {
		return
	}
	size := skill.CatalogLine(skills)
	fmt.Fprintf(out, "catalog: %s, %s (Claude Code shows %d)\n", terminal.Plural(len(skills), "skill"),
		terminal.Plural(size, "character"), catalogBudget)
	if size > catalogBudget {
		y.log.Warn(fmt.Sprintf("the catalog has %d characters, and Claude Code ignores descriptions beyond %d: "+
			"try --group-by server, or fewer tools by --include and --exclude", size, catalogBudget))
	}
}

// someOf lists at most ten names.
func someOf(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s", strings.Join(names[:most], ", "), terminal.Plural(len(names)-most, "other"))
}

// briefReason returns the reason of a server's failure, without details that
// are in the log: advice, and the output of the server.
func briefReason(id string, err error) string {
	if e, ok := errors.AsType[*mcpclient.ServerError](err); ok {
		err = e.Err
	}
	reason, _, _ := strings.Cut(store.Reason(id, err), "; ")
	return reason
}

// printPlan prints what a sync would do, except for servers that failed.
func (y *syncing) printPlan(r *store.Report, failed int) {
	for _, part := range []struct {
		what  string
		names []string
	}{{"write", r.Written}, {"remove", r.Removed}, {"link", r.Linked}, {"copy", r.Copied}, {"unlink", r.Unlinked}} {
		for _, name := range part.names {
			fmt.Fprintf(y.stdout, "would %s %s\n", part.what, name)
		}
	}
	if r.Lock {
		fmt.Fprintln(y.stdout, "would write mcp_settings.lock")
	}
	switch {
	case !r.Stale && failed > 0:
		fmt.Fprintf(y.stdout, "Skills of the servers that answered are up to date; %s could not be asked\n",
			terminal.Plural(failed, "server"))
	case !r.Stale:
		fmt.Fprintln(y.stdout, "Skills up to date")
	}
}
