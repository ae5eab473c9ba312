package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/skill"
)

// A Generator asks MCP servers for their tools and updates the skills on disk.
type Generator struct {
	Servers interface { // a [mcpclient.Pool]
		Catalog(ctx context.Context, server string) (*mcpclient.Catalog, error)
	}
	Enabled  []string                       // ids of the servers to ask
	Disabled []string                       // ids of servers whose skills are removed
	Keep     func(server, tool string) bool // selects tools; nil keeps all
	Render   skill.Options
	Store    Options
}

// Answers are the results of asking the servers.
type Answers struct {
	Catalogs []mcpclient.Catalog // in any order
	Failed   map[string]error    // by server
}

// Ask asks all enabled servers for their tools, concurrently, and calls answered
// for each server that has answered or failed, from several goroutines. Failures
// of servers are logged; the error is that of ctx.
func (g *Generator) Ask(ctx context.Context, answered func(server string)) (*Answers, error) {
	a := &Answers{Failed: map[string]error{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range g.Enabled {
		wg.Go(func() {
			c, err := g.Servers.Catalog(ctx, id)
			answered(id)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				a.Catalogs = append(a.Catalogs, g.chosen(c))
				return
			}
			a.Failed[id] = err
			if ctx.Err() == nil {
				g.Store.log().Error(fmt.Sprintf("Server %s failed: %s", id, Reason(id, err)))
			}
		})
	}
	wg.Wait()
	return a, ctx.Err()
}

// Reason returns the message of a server's error without the id of the server,
// which precedes it.
func Reason(id string, err error) string {
	return strings.TrimPrefix(errkind.Message(err), fmt.Sprintf("server %q: ", id))
}

// chosen returns a catalog with the selected tools.
func (g *Generator) chosen(c *mcpclient.Catalog) mcpclient.Catalog {
	out := *c
	out.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(t mcpclient.Tool) bool {
		return g.Keep != nil && !g.Keep(c.Server, t.Name)
	})
	return out
}

// Write renders the skills and updates the disk. It returns the skills of the
// servers that answered. If all servers failed, it changes nothing. Errors are
// those of [Sync].
func (g *Generator) Write(ctx context.Context, a *Answers) (*Report, []skill.Skill, error) {
	if len(a.Failed) > 0 && len(a.Catalogs) == 0 {
		return &Report{}, nil, nil
	}
	skills, warnings := skill.Render(a.Catalogs, g.Render)
	content := Content{Skills: skills, Disabled: g.Disabled}
	for id := range a.Failed {
		content.Failed = append(content.Failed, id)
	}
	slices.Sort(content.Failed)
	report, err := Sync(ctx, g.Store, content)
	if err != nil {
		return nil, nil, err
	}
	for _, text := range warnings { // those of the store are already in the log
		g.Store.log().Warn(text)
	}
	return report, skills, nil
}

// Follow writes the skills again if those of a server are stale. In that case
// all servers are asked, because names depend on the tools of all of them;
// otherwise only this server is asked. Failures of servers are logged.
func (g *Generator) Follow(ctx context.Context, server string) error {
	before, err := sourceHashes(g.Store, server)
	if err != nil {
		return err
	}
	one := *g
	one.Enabled = []string{server}
	ignore := func(string) {}
	a, err := one.Ask(ctx, ignore)
	if err != nil || len(a.Catalogs) == 0 {
		return err
	}
	skills, _ := skill.Render(a.Catalogs, g.Render)
	now := make([]string, 0, len(skills))
	for _, s := range skills {
		now = append(now, s.SourceHash)
	}
	slices.Sort(now)
	if slices.Equal(before, now) {
		return nil
	}
	g.Store.log().Info("Tools changed on server: " + server)
	if a, err = g.Ask(ctx, ignore); err != nil {
		return err
	}
	_, _, err = g.Write(ctx, a)
	return err
}
