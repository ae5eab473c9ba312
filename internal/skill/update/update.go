// Package update asks MCP servers for their tools and brings the skills on disk
// up to date with them. The commands sync and start use it.
package update

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

// Servers are asked for their tools; a [mcpclient.Pool] is one.
type Servers interface {
	Catalog(ctx context.Context, server string) (*mcpclient.Catalog, error)
}

// Options say which servers are asked, and what becomes of their tools.
type Options struct {
	Servers  Servers
	Enabled  []string                       // ids of those that are asked
	Disabled []string                       // ids of those whose skills are taken away
	Keep     func(server, tool string) bool // chooses tools; nil keeps all
	Render   skill.Options
	Store    store.Options
	Log      *slog.Logger // required
	Answered func()       // called when a server has answered or failed, by several goroutines; nil for nobody
}

// Answers are what the servers said.
type Answers struct {
	Catalogs []mcpclient.Catalog // in no order
	Failed   map[string]error    // by server
}

// Ask asks all enabled servers for their tools, all at once. That servers fail is
// logged and no error; the error is ctx's.
func Ask(ctx context.Context, o Options) (*Answers, error) {
	a := &Answers{Failed: map[string]error{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range o.Enabled {
		wg.Go(func() {
			c, err := o.Servers.Catalog(ctx, id)
			if err != nil && ctx.Err() == nil {
				o.Log.Error(fmt.Sprintf("Server %s failed: %s", id, Reason(id, err)))
			}
			if o.Answered != nil {
				o.Answered()
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				a.Failed[id] = err
			} else {
				a.Catalogs = append(a.Catalogs, o.filter(c))
			}
		})
	}
	wg.Wait()
	return a, ctx.Err()
}

// Reason returns the message of a server's error without the server's name,
// which stands before it.
func Reason(id string, err error) string {
	return strings.TrimPrefix(errkind.Message(err), fmt.Sprintf("server %q: ", id))
}

// filter returns a catalog with the tools that are kept.
func (o *Options) filter(c *mcpclient.Catalog) mcpclient.Catalog {
	out := *c
	out.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(t mcpclient.Tool) bool { return o.Keep != nil && !o.Keep(c.Server, t.Name) })
	return out
}

// Write renders the skills and brings the disk up to date. It returns the skills
// of the servers that answered. Errors are those of [store.Sync].
func Write(ctx context.Context, o Options, a *Answers) (*store.Report, []skill.Skill, error) {
	skills, warnings := skill.Render(a.Catalogs, o.Render)
	content := store.Content{Skills: skills, Disabled: o.Disabled}
	for id := range a.Failed {
		content.Failed = append(content.Failed, id)
	}
	slices.Sort(content.Failed)
	report, err := store.Sync(ctx, o.Store, content)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range warnings { // those of the store are in the log already
		o.Log.Warn(w)
	}
	return report, skills, nil
}

// Follow writes the skills again if those of a server are stale. Then all servers
// are asked, because names depend on the tools of all of them; else only this one
// is.
func Follow(ctx context.Context, o Options, server string) error {
	before, err := store.SourceHashes(o.Store, server)
	if err != nil {
		return err
	}
	c, err := o.Servers.Catalog(ctx, server)
	if err != nil {
		return err
	}
	skills, _ := skill.Render([]mcpclient.Catalog{o.filter(c)}, o.Render)
	now := make([]string, 0, len(skills))
	for _, s := range skills {
		now = append(now, s.SourceHash)
	}
	slices.Sort(now)
	if slices.Equal(before, now) {
		return nil
	}
	o.Log.Info("Tools changed on server: " + server)
	a, err := Ask(ctx, o)
	if err != nil {
		return err
	}
	_, _, err = Write(ctx, o, a)
	return err
}
