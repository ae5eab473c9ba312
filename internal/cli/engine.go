package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"knowhow/internal/errkind"
	"knowhow/internal/httpguard"
	"knowhow/internal/index"
	"knowhow/internal/kb"
	"knowhow/internal/kbserver"
	"knowhow/internal/terminal"
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
  {cmd} --addr 0.0.0.0:8000 --api-key "$KB_API_KEY" --data /var/lib/knowhow
  {cmd} backup /backups/kb.db
`

// engineAddr is the default address of engine.
const engineAddr = defaultHost + ":8000"

// engineFlags are the flags of engine.
type engineFlags struct {
	addr, key, data string
	level           string
	model           serveModel
	store           storeFlags
	hosts, origins  []string
	maxUpload       int64
}

// baseData declares the data folder of a knowledge base.
func baseData(f *flagSet, dir *string) {
	f.String(dir, flag{Name: "data", Value: "DIR", Env: "KB_DATA_DIR", Help: "data folder; by default that of serve, which KNOWHOW_DATA names"})
}

// engineCommand serves a knowledge base over HTTP.
func engineCommand(v *invocation, f *flagSet) func(context.Context) error {
	o := &engineFlags{}
	f.String(&o.addr, flag{Name: "addr", Value: "HOST:PORT", Default: engineAddr, Env: "KB_ENGINE_ADDR", Help: "address to listen on"})
	f.Token(&o.key, flag{Name: "api-key", Value: "KEY", Env: "KB_API_KEY", alias: "token", aliasEnv: "KNOWHOW_TOKEN", Help: "key that every caller must send as Authorization: Bearer"})
	baseData(f, &o.data)
	o.store.define(f)
	o.model.define(f, "the knowledge base")
	logLevelFlag(f, &o.level, "warn", levelHelp)
	httpFlags(f, &o.hosts, &o.origins)
	maxUploadVariable(f, &o.maxUpload)
	return func(ctx context.Context) error { return v.serveEngine(ctx, o) }
}

// serveEngine serves a knowledge base until ctx ends.
func (v *invocation) serveEngine(ctx context.Context, o *engineFlags) (err error) {
	lines := terminal.NewLines(v.stderr, nil)
	v.stderr = lines
	log := slog.New(terminal.NewHandler(lines, logLevel(o.level)))
	host, port, err := v.hostPort(o.addr)
	if err != nil {
		return err
	}
	dir, err := dataFolder(v.Env, o.data)
	if err != nil {
		return err
	}
	base, err := (&baseFlags{data: dir, store: o.store, maxUpload: o.maxUpload, model: o.model, wait: modelTime}).openLocal(ctx, v, log, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	return v.serveHTTP(ctx, httpService{
		host: host, port: port,
		guard: httpguard.Options{
			Token: o.key, AllowedHosts: o.hosts, AllowedOrigins: o.origins, Refuse: kbserver.Refuse,
			Routes: []httpguard.Route{kbserver.Route(kbserver.Options{Base: base, TempDir: kb.Incoming(dir), MaxUpload: o.maxUpload, Log: log})},
		},
		ready: func(string) {
			if o.key == "" && !httpguard.Loopback(host) {
				v.warn(log, "every machine that reaches this address can read and change the knowledge base: set --api-key or KB_API_KEY, or listen on 127.0.0.1")
			}
		},
		log: log,
	})
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

// engineCheckCommand checks a data folder.
func engineCheckCommand(v *invocation, f *flagSet) func(context.Context) error {
	var data string
	baseData(f, &data)
	return func(ctx context.Context) error {
		return v.withIndex(ctx, data, func(x *index.Index) error {
			problems, err := x.Examine(ctx)
			if err != nil {
				return err
			}
			for _, p := range problems {
				fmt.Fprintln(v.stdout, printableLines(p.Text))
			}
			switch {
			case len(problems) > 0 && problems[0].Mends:
				return &hintError{fmt.Errorf("searches miss documents: %w", errkind.Corrupt),
					"Nothing is lost: knowhow serve, kb and engine index them again while they use this data folder."}
			case len(problems) > 0:
				return &hintError{fmt.Errorf("the data folder is damaged: %w", errkind.Corrupt), "Restore a backup, or add the documents again in another data folder."}
			}
			_, err = fmt.Fprintln(v.stdout, "ok")
			return err
		})
	}
}

const engineBackupHelp = `Usage: {cmd} FILE [--data DIR]

Writes a copy of the knowledge base to a new file, while the engine may run. The
copy has every document, note, tag and job of one moment. To restore it, stop the
engine and copy the file to an empty data folder as knowhow.db.

{flags}

Examples:
  {cmd} /backups/kb-monday.db
`

// engineBackupCommand copies a data folder to a file.
func engineBackupCommand(v *invocation, f *flagSet) func(context.Context) error {
	var data, file string
	baseData(f, &data)
	f.Operand(&file, "FILE")
	return func(ctx context.Context) error {
		return v.withIndex(ctx, data, func(x *index.Index) error { return x.Backup(ctx, v.expand(file)) })
	}
}

// withIndex calls f with the index in a data folder, which must exist.
func (v *invocation) withIndex(ctx context.Context, data string, f func(*index.Index) error) error {
	x, dir, err := v.openExisting(ctx, data)
	if err != nil {
		return err
	}
	if x == nil {
		return &hintError{fmt.Errorf("%s has no knowledge base", dir), "Name its data folder with --data or KB_DATA_DIR."}
	}
	return errors.Join(f(x), x.Close())
}
