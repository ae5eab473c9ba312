package serving

import (
	"cmp"
	"context"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/console"
)

// connectSources is how many sources the command for a client that starts its server has.
const connectSources = 10

// connect returns how clients are connected to the server at a URL without a path.
func (s *Server) connect(ctx context.Context, url string) ([]console.Client, error) {
	v := s.viewOf(ctx)
	to := clients.Server{Name: clients.StandardName,
		URL: strings.TrimSuffix(cmp.Or(s.o.PublicURL, url), "/") + MCPPath}
	if len(v.sources) == 1 {
		to.Name = clients.EntryName(v.sources[0].Label)
	}
	if (v.caller != nil || s.o.Users.Token != "") && s.o.Users.Issuer == nil { // with an issuer, clients sign in
		to.TokenEnv = s.o.TokenVariable
	}
	sources, err := v.current(ctx)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, src := range Indexed(sources) {
		paths = append(paths, src.Path)
	}
	paths = paths[:min(len(paths), connectSources)]
	var list []console.Client
	for _, c := range clients.All() {
		g, err := c.Guide(to, paths)
		if err != nil {
			return nil, err
		}
		words := make([]string, len(g.Command))
		for i, w := range g.Command {
			words[i] = clients.ShellWord("linux", w)
		}
		list = append(list, console.Client{Client: c.Name, Title: c.Title, Command: strings.Join(words, " "), File: g.File,
			Snippet: g.Snippet, Next: g.Next, Instead: g.Instead, Link: g.Link, Docs: c.Docs})
	}
	return list, nil
}
