package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"knowhow/internal/errkind"
	"knowhow/internal/mcpclient"
	"knowhow/internal/skill"
	"knowhow/internal/skill/store"
)

// A skillWriter asks MCP servers for their tools and brings the skills on disk
// up to date with them.
type skillWriter struct {
	servers interface { // a [mcpclient.Pool]
		Catalog(ctx context.Context, server string) (*mcpclient.Catalog, error)
	}
	enabled  []string                       // ids of the servers that are asked
	disabled []string                       // ids of those whose skills are removed
	keep     func(server, tool string) bool // chooses tools; nil keeps all
	render   skill.Options
	store    store.Options
	log      *slog.Logger
}

// answers are what the servers said.
type answers struct {
	catalogs []mcpclient.Catalog // in no order
	failed   map[string]error    // by server
}

// ask asks all enabled servers for their tools, all at once, and calls answered
// for each that has answered or failed, from several goroutines. Failures of
// servers are logged; the error is ctx's.
func (w *skillWriter) ask(ctx context.Context, answered func(server string)) (*answers, error) {
	a := &answers{failed: map[string]error{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range w.enabled {
		wg.Go(func() {
			c, err := w.servers.Catalog(ctx, id)
			answered(id)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				a.catalogs = append(a.catalogs, w.chosen(c))
				return
			}
			a.failed[id] = err
			if ctx.Err() == nil {
				w.log.Error(fmt.Sprintf("Server %s failed: %s", id, serverReason(id, err)))
			}
		})
	}
	wg.Wait()
	return a, ctx.Err()
}

// serverReason returns the message of a server's error without the server's
// name, which stands before it.
func serverReason(id string, err error) string {
	return strings.TrimPrefix(errkind.Message(err), fmt.Sprintf("server %q: ", id))
}

// chosen returns a catalog with the tools that are kept.
func (w *skillWriter) chosen(c *mcpclient.Catalog) mcpclient.Catalog {
	out := *c
	out.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(t mcpclient.Tool) bool { return w.keep != nil && !w.keep(c.Server, t.Name) })
	return out
}

// write renders the skills and brings the disk up to date. It returns the skills
// of the servers that answered. If all servers failed, it changes nothing. Errors
// are those of [store.Sync].
func (w *skillWriter) write(ctx context.Context, a *answers) (*store.Report, []skill.Skill, error) {
	if len(a.failed) > 0 && len(a.catalogs) == 0 {
		return &store.Report{}, nil, nil
	}
	skills, warnings := skill.Render(a.catalogs, w.render)
	content := store.Content{Skills: skills, Disabled: w.disabled}
	for id := range a.failed {
		content.Failed = append(content.Failed, id)
	}
	slices.Sort(content.Failed)
	report, err := store.Sync(ctx, w.store, content)
	if err != nil {
		return nil, nil, err
	}
	for _, text := range warnings { // those of the store are in the log already
		w.log.Warn(text)
	}
	return report, skills, nil
}

// follow writes the skills again if those of a server are stale. Then all servers
// are asked, because names depend on the tools of all of them; else only this one
// is. A server that fails is logged.
func (w *skillWriter) follow(ctx context.Context, server string) error {
	before, err := store.SourceHashes(w.store, server)
	if err != nil {
		return err
	}
	one := *w
	one.enabled = []string{server}
	nobody := func(string) {}
	a, err := one.ask(ctx, nobody)
	if err != nil || len(a.catalogs) == 0 {
		return err
	}
	skills, _ := skill.Render(a.catalogs, w.render)
	now := make([]string, 0, len(skills))
	for _, s := range skills {
		now = append(now, s.SourceHash)
	}
	slices.Sort(now)
	if slices.Equal(before, now) {
		return nil
	}
	w.log.Info("Tools changed on server: " + server)
	if a, err = w.ask(ctx, nobody); err != nil {
		return err
	}
	_, _, err = w.write(ctx, a)
	return err
}
