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

// A skillWriter asks MCP servers for their tools and updates the skills on
// disk.
type skillWriter struct {
	servers interface { // a [mcpclient.Pool]
		Catalog(ctx context.Context, server string) (*mcpclient.Catalog, error)
	}
	enabled  []string                       // ids of the servers to ask
	disabled []string                       // ids of servers whose skills are removed
	keep     func(server, tool string) bool // selects tools; nil keeps all
	render   skill.Options
	store    store.Options
	log      *slog.Logger
}

// answers are the results of asking the servers.
type answers struct {
	catalogs []mcpclient.Catalog // in any order
	failed   map[string]error    // by server
}

// ask asks all enabled servers for their tools, concurrently, and calls
// answered for each server that has answered or failed, from several
// goroutines. Failures of servers are logged; the error is that of ctx.
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
// name, which precedes it.
func serverReason(id string, err error) string {
	return strings.TrimPrefix(errkind.Message(err), fmt.Sprintf("server %q: ", id))
}

// chosen returns a catalog with the selected tools.
func (w *skillWriter) chosen(c *mcpclient.Catalog) mcpclient.Catalog {
	out := *c
	out.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(t mcpclient.Tool) bool { return w.keep != nil && !w.keep(c.Server, t.Name) })
	return out
}

// write renders the skills and updates the disk. It returns the skills of the
// servers that answered. If all servers failed, it changes nothing. Errors are
// those of [store.Sync].
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
	for _, text := range warnings { // those of the store are already in the log
		w.log.Warn(text)
	}
	return report, skills, nil
}

// follow writes the skills again if those of a server are stale. In that case
// all servers are asked, because names depend on the tools of all of them;
// otherwise only this server is asked. Failures of servers are logged.
func (w *skillWriter) follow(ctx context.Context, server string) error {
	before, err := store.SourceHashes(w.store, server)
	if err != nil {
		return err
	}
	one := *w
	one.enabled = []string{server}
	ignore := func(string) {}
	a, err := one.ask(ctx, ignore)
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
	if a, err = w.ask(ctx, ignore); err != nil {
		return err
	}
	_, _, err = w.write(ctx, a)
	return err
}
