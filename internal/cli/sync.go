package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/mcpclient"
	"knowhow/internal/mcpsettings"
	"knowhow/internal/skill"
	"knowhow/internal/skill/store"
	"knowhow/internal/skill/update"
	"knowhow/internal/terminal"
)

// catalogBudget is how many characters of skill descriptions Claude Code shows
// by default: 1 % of a context window of 200,000 tokens.
const catalogBudget = 8000

// disconnectTime is how long servers have to end.
const disconnectTime = 5 * time.Second

// runSync generates the skills and ends.
func runSync(ctx context.Context, v *invocation, args []string) (err error) {
	f := &syncFlags{}
	set := v.newFlags()
	f.define(set)
	if err := v.parse(set, args, nil); err != nil {
		return err
	}
	if err := f.required(v); err != nil {
		return err
	}
	y, err := v.newSyncing(f)
	if err != nil {
		return err
	}
	defer y.close(ctx)
	return y.sync(ctx)
}

// A syncing turns the tools of servers into skills on disk.
type syncing struct {
	*invocation
	f        *syncFlags
	settings *mcpsettings.Settings
	pool     *mcpclient.Pool
	log      *slog.Logger
	lines    *terminal.Lines
	base     string // the working directory
}

// newSyncing reads the settings.
func (v *invocation) newSyncing(f *syncFlags) (*syncing, error) {
	lines := terminal.NewLines(v.stderr, nil)
	y := &syncing{invocation: v, f: f, log: slog.New(terminal.NewHandler(lines, f.level.Level)), lines: lines}
	var err error
	if y.base, err = os.Getwd(); err != nil {
		return nil, err
	}
	y.log.Info("Loading configuration from " + f.settings)
	if y.settings, err = mcpsettings.Load(f.settings, v.Lookup); err != nil {
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

// connect makes the pool of servers, which connects to each when it is first
// used. tell is called with those that were connected or whose tools changed.
func (y *syncing) connect(tell func(server string)) {
	y.pool = mcpclient.New(mcpclient.Options{
		Servers:        y.settings.Servers,
		Log:            y.log,
		Version:        version(),
		IdleTimeout:    y.f.idleTimeout,
		CallTimeout:    y.f.timeout,
		ConnectTimeout: y.f.timeout,
		Connected:      tell,
		ToolsChanged:   tell,
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

// storeOptions say where skills go.
func (y *syncing) storeOptions() store.Options {
	return store.Options{
		Base:       y.base,
		OutputDir:  y.f.outputDir,
		LinkDirs:   y.f.skillsDirs,
		Force:      y.f.force,
		DryRun:     y.f.dryRun || y.f.check,
		ConfigHash: y.f.configHash(y.settings),
		Log:        y.log,
	}
}

// updateOptions say which servers are asked, and what becomes of their tools.
func (y *syncing) updateOptions() update.Options {
	o := update.Options{
		Servers: y.pool, Keep: y.f.keeps, Store: y.storeOptions(), Log: y.log, Answered: y.lines.Advance,
		Render: skill.Options{GroupByServer: y.f.groupBy.value == "server", Description: y.f.description.value, Version: version()},
	}
	for _, s := range y.settings.Servers {
		if s.Disabled {
			o.Disabled = append(o.Disabled, s.ID)
		} else {
			o.Enabled = append(o.Enabled, s.ID)
		}
	}
	return o
}

// sync generates the skills and fails also where no server answered.
func (y *syncing) sync(ctx context.Context) error {
	y.connect(nil)
	g, err := y.generate(ctx)
	if err == nil && len(g.Failed) > 0 && len(g.Catalogs) == 0 {
		return &hintError{errors.New("no server answered"), "The lines above say why, server by server."}
	}
	return err
}

// generate generates the skills of all servers that answer and prints the
// summary. It fails if they could not be written; with --check if they are stale,
// and with --strict if any server failed.
func (y *syncing) generate(ctx context.Context) (*update.Answers, error) {
	// Before any server is started.
	if err := store.Check(y.storeOptions()); err != nil {
		if arg, ok := errors.AsType[*errkind.Argument](err); ok {
			return nil, y.usagef("--%s: got %q, want %s", arg.Name, arg.Value, arg.Want)
		}
		return nil, err
	}
	o := y.updateOptions()
	if len(o.Enabled) > 1 {
		y.lines.Show(terminal.Bar{What: "asking the servers", Total: len(o.Enabled)})
	}
	g, err := update.Ask(ctx, o)
	y.lines.Show(terminal.Bar{})
	if err != nil {
		return nil, err
	}
	report, skills, err := update.Write(ctx, o, g)
	if err != nil {
		return nil, err
	}
	y.summarize(g, report, skills)
	switch {
	case y.f.check && report.Stale:
		return nil, &hintError{errors.New("skills are stale"), "Run it again without --check to bring them up to date."}
	case len(g.Failed) > 0 && y.f.strict:
		return nil, fmt.Errorf("%s failed, and --strict forbids that", terminal.Plural(len(g.Failed), "server"))
	}
	return g, nil
}

// summarize prints what came of it.
func (y *syncing) summarize(g *update.Answers, r *store.Report, skills []skill.Skill) {
	out := y.stdout
	if y.f.dryRun || y.f.check {
		y.printPlan(r, len(g.Failed))
	} else {
		fmt.Fprintf(out, "Generated %d skills from %d servers", len(r.Written), len(g.Catalogs))
		if len(r.Unchanged) > 0 {
			fmt.Fprintf(out, " (%d unchanged)", len(r.Unchanged))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%d succeeded, %d failed", len(g.Catalogs), len(g.Failed))
	var reasons []string
	for id, err := range g.Failed {
		reasons = append(reasons, fmt.Sprintf("%s (%s)", terminal.Printable(id), terminal.Printable(update.Reason(id, err))))
	}
	if slices.Sort(reasons); len(reasons) > 0 {
		fmt.Fprintf(out, ": %s", strings.Join(reasons, "; "))
	}
	fmt.Fprintln(out)
	for _, name := range r.Changed {
		fmt.Fprintf(out, "changed since the last sync: %s: read its description before you trust it\n", name)
	}
	// What others have in a skill's place, no agent is told of.
	skills = slices.DeleteFunc(slices.Clone(skills), func(k skill.Skill) bool {
		return !slices.Contains(r.Written, k.Name) && !slices.Contains(r.Unchanged, k.Name)
	})
	if len(skills) == 0 {
		return
	}
	size := skill.CatalogLine(skills)
	fmt.Fprintf(out, "catalog: %s, %d characters (Claude Code shows %d)\n", terminal.Plural(len(skills), "skill"), size, catalogBudget)
	if size > catalogBudget {
		y.log.Warn(fmt.Sprintf("the catalog has %d characters, and Claude Code leaves descriptions out beyond %d: "+
			"try --group-by server, or fewer tools by --include and --exclude", size, catalogBudget))
	}
}

// printPlan prints what a sync would do. Of servers that failed nobody knows.
func (y *syncing) printPlan(r *store.Report, failed int) {
	for _, part := range []struct {
		what  string
		names []string
	}{{"write", r.Written}, {"remove", r.Removed}, {"link", r.Linked}, {"copy", r.Copied}, {"unlink", r.Unlinked}} {
		for _, name := range part.names {
			fmt.Fprintf(y.stdout, "would %s %s\n", part.what, name)
		}
	}
	switch {
	case !r.Stale && failed > 0:
		fmt.Fprintf(y.stdout, "Skills of the servers that answered are up to date; %s could not be asked\n", terminal.Plural(failed, "server"))
	case !r.Stale:
		fmt.Fprintln(y.stdout, "Skills up to date")
	}
}
