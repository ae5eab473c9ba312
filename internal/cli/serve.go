package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/serving"
)

// runServe indexes sources and serves them.
func (v *invocation) runServe(ctx context.Context, o *serveCommand) (err error) {
	if err := o.check(v); err != nil {
		return err
	}
	s, err := v.newServer(o.Transport, o.Addr, o.Level, o.Token, o.httpFlags)
	if err != nil {
		return err
	}
	t, err := s.openTeam(ctx, &o.teamFlags, o.client(), o.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := s.requireToken(o.Addr); err != nil {
		return err
	}
	f, err := v.dataFolder(o.Data, &o.storeFlags, &o.embedderFlags, 0, s.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	served, err := v.openSources(ctx, o, f)
	if err != nil {
		return err
	}
	asked, err := v.openAsked(served, o, s.log)
	defer asked.close()
	if err != nil {
		return err
	}
	sources := make([]document.Source, len(served))
	for i, src := range served {
		sources[i] = src.Source
	}
	if f.Store != nil {
		if err := v.connect(ctx, f, serving.Indexed(sources)); err != nil {
			return err
		}
	}
	if err := auditOutside(string(o.Audit), sources); err != nil {
		return err
	}
	const tokenVariable = "KNOWHOW_TOKEN" // from which clients take the token
	options := serving.Options{
		Folder: f, Sources: sources, Groups: o.Tools.search, Domain: string(o.Domain), DomainName: o.DomainName,
		MaxUpload: int64(o.MaxUpload),
		Asked:     asked.services, SourceTimeout: o.SourceTimeout, Header: asked.header,
		Users: t.Options, PublicURL: o.PublicURL, TokenVariable: tokenVariable,
		Once: o.NoWatch, Lines: s.lines, Version: version(), Log: s.log,
	}
	if o.Tools.kb {
		uploads, err := openUploads(f.Dir, kbmcp.UploadOptions{MaxSize: int64(o.MaxUpload)})
		if err != nil {
			return err
		}
		defer uploads.Close()
		options.Tools = &kbmcp.Options{Uploads: uploads, Updates: &kbmcp.Updates{}}
		if !s.stdio {
			options.Tools.UploadPath = uploadPath
		}
	}
	service := serving.New(options)
	watching, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	for _, watch := range asked.watch {
		background.Go(func() { watch(watching) })
	}
	return service.Run(ctx, func(ctx context.Context, begin func()) error {
		s.path = serving.MCPPath
		if s.stdio {
			s.mcp = service.MCP()
			begin()
			return s.serve(ctx)
		}
		s.guard.Routes = service.Routes()
		s.admit(service.Users(), service.State())
		s.ready = func(url string) {
			fmt.Fprintf(s.stderr, "\nTo search in a browser:\n  %s/\n", strings.TrimSuffix(url, s.path))
			name := "knowhow"
			if len(sources) == 1 {
				name = sources[0].Label
			}
			var own []string
			if f.Store == nil {
				own = v.startOperands(f.Dir, sources)
			}
			s.printSnippets(name, url, tokenVariable, own)
			begin()
		}
		return s.serve(ctx)
	})
}

// auditOutside refuses an audit file inside a folder that is served: its readers would see
// what others have asked for.
func auditOutside(path string, sources []document.Source) error {
	if path == "" {
		return nil
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil // it was opened, so the folder is there
	}
	for _, src := range serving.Indexed(sources) {
		if root, err := filepath.EvalSymlinks(src.Path); err == nil && filepath.IsLocal(relative(root, absolute(folder))) {
			return &hintError{fmt.Errorf("--audit %s is inside of the source %s, whose readers would see it", path,
				src.Label), "Choose a file outside of the folders that are served."}
		}
	}
	return nil
}

// relative returns a path relative to a folder, or "/" if there is no such path.
func relative(folder, path string) string {
	rel, err := filepath.Rel(folder, path)
	if err != nil {
		return "/"
	}
	return rel
}

// startOperands returns the operands of connect with which a client starts a server of
// the same sources.
func (v *invocation) startOperands(dir string, sources []document.Source) (args []string) {
	if standard, err := dataPath(v.Env, ""); err != nil || standard != dir {
		args = append(args, "--data", dir)
	}
	for _, src := range sources {
		args = append(args, src.Path)
	}
	return args
}

// claimSources records in the store that a data folder indexes sources.
func claimSources(ctx context.Context, f *datafolder.Folder, sources []document.Source) error {
	for _, src := range sources {
		err := f.Claim(ctx, src)
		if errors.Is(err, errkind.Conflict) {
			err = &hintError{err,
				fmt.Sprintf("Choose another label with --label, or remove the source there with: knowhow sources rm %s",
					src.Label)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
