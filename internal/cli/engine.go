package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbserver"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

const engineHelp = `Usage: {cmd} [FLAGS]
       {cmd} check [--data DIR]
       {cmd} backup FILE [--data DIR]

Serves a knowledge base over HTTP, without MCP: notes and files that users add,
which programs search, read and tag. The API is described at /openapi.json.
Agents use it through "knowhow kb".

{flags}

Examples:
  {cmd}
  {cmd} --addr 0.0.0.0:8000 --token "$TOKEN" --data /var/lib/knowhow
  {cmd} backup /backups/kb.db
`

// An engineCommand serves a knowledge base over HTTP.
type engineCommand struct {
	Addr      string `flag:"addr" value:"HOST:PORT" default:"127.0.0.1:8000" env:"KB_ENGINE_ADDR" help:"address to listen on"`
	tokenFlag `synonym:",api-key" variable:"KB_API_KEY,"`
	baseData
	storeFlags
	serverEmbedder `of:"the knowledge base"`
	levelFlag      `standard:"warn"`
	httpFlags
	teamFlags
	uploadFlags
}

func (o *engineCommand) run(ctx context.Context, v *invocation) (err error) {
	s, err := v.newServer("http", o.Addr, o.Level, o.Token, o.httpFlags)
	if err != nil {
		return err
	}
	dir, err := dataPath(v.Env, o.Data)
	if err != nil {
		return err
	}
	t, err := s.openTeam(ctx, &o.teamFlags, oauth.Client{}, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	base, err := openLocal(ctx, v, dir, &o.storeFlags, s.log,
		baseUse{work: true, model: &o.embedderFlags, wait: modelTime, maxUpload: int64(o.MaxUpload)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	s.guard.Refuse = kbserver.Refuse
	table := users.New(t.Options)
	s.guard.Routes = []httpguard.Route{table.Limited(kbserver.Route(kbserver.Options{Base: base,
		TempDir: kb.Incoming(dir), MaxUpload: int64(o.MaxUpload), Log: s.log}))}
	s.admit(table, baseState(base))
	s.background = table.Run
	s.public = "every machine that reaches this address can read and change the knowledge base: set --token or KNOWHOW_TOKEN, or listen on 127.0.0.1"
	return s.serve(ctx)
}

const engineCheckHelp = `Usage: {cmd} [--data DIR]

Checks the data folder: every page of the database, and that it is complete.
It changes nothing and may run while the engine does. The exit status is 1 if
something is damaged.

{flags}

Examples:
  {cmd}
  {cmd} --data /var/lib/knowhow
`

// An engineCheckCommand checks a data folder.
type engineCheckCommand struct {
	baseData
}

func (o *engineCheckCommand) run(ctx context.Context, v *invocation) error {
	return v.withIndex(ctx, o.Data, func(x *index.Index) error {
		problems, err := x.Examine(ctx)
		if err != nil {
			return err
		}
		for _, p := range problems {
			fmt.Fprintln(v.stdout, printableLines(p.Text))
		}
		switch {
		case len(problems) > 0 && problems[0].Repairable:
			return &hintError{fmt.Errorf("searches miss documents: %w", errkind.Corrupt),
				"Nothing is lost: knowhow serve, kb and engine index them again while they use this data folder."}
		case len(problems) > 0:
			return &hintError{fmt.Errorf("the data folder is damaged: %w", errkind.Corrupt),
				"Restore a backup, or add the documents again in another data folder."}
		}
		_, err = fmt.Fprintln(v.stdout, "ok")
		return err
	})
}

const engineBackupHelp = `Usage: {cmd} FILE [--data DIR]

Writes a copy of the knowledge base to a new file, while the engine may run. The
copy has every document, note, tag and job of one moment, but no users: copy the
access file, too. To restore it, stop the engine and copy the file to an empty data
folder as knowhow.db.

{flags}

Examples:
  {cmd} /backups/kb-monday.db
`

// An engineBackupCommand copies a data folder to a file.
type engineBackupCommand struct {
	baseData
	File string `arg:"FILE"`
}

func (o *engineBackupCommand) run(ctx context.Context, v *invocation) error {
	err := v.withIndex(ctx, o.Data, func(x *index.Index) error { return x.Backup(ctx, v.expand(o.File)) })
	if err != nil {
		return err
	}
	path, err := (&accessFlag{filePath(v.expand(v.get("KNOWHOW_ACCESS")))}).path(v.Env, o.Data)
	if err == nil && fileExists(path) {
		fmt.Fprintf(v.stderr, "The backup does not have the users of the server. Copy their file, too: %s\n",
			sanitize.Escape(path))
	}
	return nil
}

// withIndex calls f with the index in a data folder, which must exist.
func (v *invocation) withIndex(ctx context.Context, data string, f func(*index.Index) error) error {
	x, dir, err := v.openExisting(ctx, data, datafolder.Model{})
	if err != nil {
		return err
	}
	if x == nil {
		return &hintError{fmt.Errorf("%s has no knowledge base", dir),
			"Name its data folder with --data or KNOWHOW_DATA."}
	}
	return errors.Join(f(x), x.Close())
}
