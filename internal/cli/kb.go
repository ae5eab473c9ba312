package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbclient"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/metrics"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

const kbHelp = `Usage: {cmd} [FLAGS]
       {cmd} search QUERY

Serves a knowledge base to agents over MCP: they search it, add notes and upload
files. The knowledge base is that of an engine (see "knowhow engine"), or
without --engine-url one in the data folder.

{flags}

Examples:
  {cmd}
  {cmd} --engine-url http://127.0.0.1:8000 --engine-key "$KB_API_KEY"
  {cmd} --transport stdio
  {cmd} search "How do users like their answers?"
`

// baseFlags choose a knowledge base.
type baseFlags struct {
	URL engineURL `flag:"engine-url" value:"URL" env:"KB_ENGINE_URL" secret:"engine" help:"URL of the engine; without it, the knowledge base is in the data folder or in the store"`
	Key token     `flag:"engine-key" value:"KEY" env:"KB_API_KEY" help:"key that is sent to the engine"`
	baseData
	storeFlags
	Timeout time.Duration `flag:"engine-timeout" value:"DURATION" env:"KB_ENGINE_TIMEOUT" default:"30s" help:"time limit for one request to the engine"`
}

// An engineURL is the URL of an engine, "" for none.
type engineURL string

func (u *engineURL) set(s string) error {
	*u = engineURL(s)
	if s == "" {
		return nil // a variable of the shell that is not set
	}
	_, err := kbclient.New(kbclient.Options{BaseURL: s})
	return wanted(err)
}

// A baseUse says why a knowledge base is opened.
type baseUse struct {
	// work is set to change it: the data folder is created if there is none, jobs are
	// done and vectors computed until the base is closed.
	work bool

	model     *embedderFlags // of a base in the data folder; nil: search by words only
	wait      time.Duration  // at least so long a search waits for the vector of its query
	maxUpload int64          // bytes of a file; 0 for the default
}

// modelTime is how long a search of a knowledge base waits for the vector of its
// query. The first one loads the model.
const modelTime = time.Second

// An openBase is a knowledge base that must be closed.
type openBase interface {
	kb.Base
	Close() error
}

// open opens the knowledge base that the flags name. An engine always works on its
// jobs.
func (o *baseFlags) open(ctx context.Context, v *invocation, log *slog.Logger, use baseUse) (openBase, error) {
	if o.URL == "" {
		b, err := openLocal(ctx, v, o.Data, &o.storeFlags, log, use)
		if err != nil {
			return nil, err // not a nil *localBase
		}
		return b, nil
	}
	if v.given("engine-url") && v.given("store") {
		return nil, v.usagef("--engine-url and --store exclude each other: the engine has its own store")
	}
	c, err := kbclient.New(kbclient.Options{BaseURL: string(o.URL), Key: string(o.Key), Timeout: o.Timeout,
		UserAgent: "knowhow/" + version(), Log: log})
	if err != nil {
		return nil, explainEngine(err)
	}
	return c, nil
}

// A localBase is a knowledge base in the data folder, or in a store with its jobs
// in the data folder.
type localBase struct {
	*kb.Local
	folder *datafolder.Folder
}

// Close ends the work and closes the data folder.
func (b *localBase) Close() error { return b.folder.Close() }

// errNoBase is wrapped by the error for a data folder without a knowledge base.
var errNoBase = errors.New("there is no knowledge base")

// openLocal opens the knowledge base in the data folder, without the documents
// of sources.
func openLocal(ctx context.Context, v *invocation, data string, stored *storeFlags, log *slog.Logger,
	use baseUse) (*localBase, error) {
	f, err := v.dataFolder(data, stored, use.model, use.wait, log)
	if err != nil {
		return nil, err
	}
	if !use.work && f.Store == nil {
		if found, err := hasIndex(f.Dir); err != nil {
			return nil, err
		} else if !found {
			return nil, &hintError{fmt.Errorf("%w in %s", errNoBase, f.Dir),
				fmt.Sprintf("Name its data folder with --data, or begin one. Add a note with: %s note add TEXT",
					v.Program)}
		}
	}
	if f.Store != nil && use.work {
		if err := v.connect(ctx, f, nil); err != nil {
			return nil, err
		}
	}
	if use.work || f.Store == nil { // a store without work needs no queue
		if err := f.OpenIndex(ctx); err != nil {
			return nil, indexError(err)
		}
	}
	base := f.Base(kb.Options{MaxUpload: use.maxUpload, Version: version()})
	if use.work {
		f.Work(context.WithoutCancel(ctx), base, terminal.NewLines(v.stderr, nil))
	}
	return &localBase{base, f}, nil
}

// use calls f with the knowledge base.
func (o *baseFlags) use(ctx context.Context, v *invocation, use baseUse, f func(kb.Base) error) error {
	base, err := o.open(ctx, v, v.warnings(), use)
	if err != nil {
		return err
	}
	return errors.Join(explainEngine(f(base)), base.Close())
}

// explainEngine adds to an error of an engine or a store how to set the option that it is
// due to.
func explainEngine(err error) error {
	return explainStore(explainReason(err, map[errkind.Reason]string{
		kbclient.AddressReason: "the address is set with --engine-url or KB_ENGINE_URL",
		kbclient.KeyReason:     "the key is set with --engine-key or KB_API_KEY",
		kbclient.TimeoutReason: "the limit is set with --engine-timeout or KB_ENGINE_TIMEOUT",
	}))
}

// A kbCommand serves a knowledge base.
type kbCommand struct {
	baseFlags
	Addr           string `flag:"addr" value:"HOST:PORT" default:"127.0.0.1:8765" env:"KB_MCP_ADDR" help:"HTTP: address to listen on"`
	tokenFlag      `synonym:",api-key" variable:"KB_MCP_API_KEY," http:"HTTP: "`
	serverEmbedder `of:"the knowledge base"`
	transportFlag  `words:"http|stdio" standard:"http"`
	levelFlag      `standard:"warn"`
	Tools          string `flag:"tools" value:"kb|extra" default:"kb" help:"extra adds kb_list, kb_collections and kb_delete"`
	revisionFlag   `words:"latest|2025-03-26|2024-11-05" standard:"latest"`
	httpFlags
	teamFlags
	TTL time.Duration `env:"KNOWHOW_UPLOAD_TTL" default:"10m" help:"time from the start of an upload until it is dropped"`
	uploadFlags
}

// uploadFlags limit uploads.
type uploadFlags struct {
	MaxUpload byteCount `env:"KB_MAX_UPLOAD" default:"104857600" help:"maximum size of a file, in bytes"`
}

// A byteCount is a number of bytes.
type byteCount int64

func (n *byteCount) set(s string) error {
	value, err := strconv.ParseInt(s, 10, 64)
	if err != nil || value < 1 || value > 1<<40 {
		return errors.New("want a number of bytes from 1 to 1099511627776")
	}
	*n = byteCount(value)
	return nil
}

// run serves a knowledge base until ctx ends or, on stdio, the client
// disconnects.
func (o *kbCommand) run(ctx context.Context, v *invocation) (err error) {
	s, err := v.newServer(o.Transport, o.Addr, o.Level, o.Token, o.httpFlags)
	if err != nil {
		return err
	}
	t, err := o.team(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	base, err := o.open(ctx, v, s.log, baseUse{work: true, model: &o.embedderFlags, wait: modelTime,
		maxUpload: int64(o.MaxUpload)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	uploads, remove, err := o.uploads(v)
	if err != nil {
		return err
	}
	defer remove()
	tools := kbmcp.Options{Base: base, Uploads: uploads, Updates: &kbmcp.Updates{}, Version: version(),
		Extra: o.Tools == "extra", Explain: explainEngine}
	if !s.stdio {
		tools.UploadPath = uploadPath
	}
	t.View = func(c *access.Caller) users.View {
		own := tools
		own.Caller = c
		return kbView{own, o.Revision}
	}
	table := users.New(t.Options)
	s.path = mcpPath
	if s.stdio {
		s.mcp = table.User(ctx).MCP("")
	}
	s.guard.Routes = []httpguard.Route{
		table.Route(mcpPath, func(w http.ResponseWriter, r *http.Request) { table.ServeMCP(w, r, "") }),
		table.Limited(uploads.Route(uploadPath)),
	}
	s.admit(table, baseState(base))
	s.background = func(ctx context.Context) {
		v.checkEngine(ctx, base)
		table.Run(ctx)
	}
	s.public = "every machine that reaches this address can read and change the knowledge base: set --token or KNOWHOW_TOKEN, or listen on 127.0.0.1"
	s.ready = func(url string) { s.printSnippets("kb", url, "KB_MCP_API_KEY", o.ownOperands(v)) }
	return s.serve(ctx)
}

// team opens what the flags for a team name. The rights of users are applied by a
// knowledge base in the data folder.
func (o *kbCommand) team(ctx context.Context, s *server) (*team, error) {
	if o.URL != "" && (o.Access != "" || o.Issuer != "") {
		return nil, s.usagef("--engine-url: this server cannot give users different rights to the knowledge base of " +
			"another engine: set --access and --oauth-issuer where the engine runs, with \"knowhow serve --tools kb\"")
	}
	if o.URL != "" {
		return s.openTeam(ctx, &o.teamFlags, oauth.Client{}, "")
	}
	dir, err := dataPath(s.Env, o.Data)
	if err != nil {
		return nil, err
	}
	return s.openTeam(ctx, &o.teamFlags, oauth.Client{}, dir)
}

// A kbView is the tools of the knowledge base for one user.
type kbView struct {
	tools    kbmcp.Options
	revision mcpserver.Revision
}

// MCP implements [users.View].
func (w kbView) MCP(string) *users.MCP {
	return &users.MCP{
		Path: mcpPath,
		Options: mcpserver.Options{Name: "knowhow-kb", Title: "knowhow knowledge base", Version: version(),
			Instructions: kbmcp.Instructions(w.tools.Caller), Revision: w.revision},
		Add: func(s *mcpserver.Server) { kbmcp.Register(s, w.tools) },
	}
}

// baseState returns the options of metrics that describe a knowledge base.
func baseState(base kb.Base) metrics.Options {
	status := func(ctx context.Context) (*kb.Status, error) { return base.Status(access.With(ctx, nil)) }
	return metrics.Options{
		Jobs: func(ctx context.Context) (metrics.Jobs, error) {
			s, err := status(ctx)
			if err != nil {
				return metrics.Jobs{}, err
			}
			return metrics.Jobs(s.Queue), nil
		},
		Store: func(ctx context.Context) error {
			_, err := status(ctx)
			return err
		},
	}
}

// ownOperands returns the operands of connect with which a client starts the server
// itself; nil if connect does not know the knowledge base.
func (o *kbCommand) ownOperands(v *invocation) []string {
	switch {
	case o.URL != "" || o.Store != "":
		return nil
	case v.given("data"):
		return []string{"kb", "--data", absolute(v.expand(o.Data))}
	}
	return []string{"kb"}
}

// uploads opens the staging area: in the data folder or, with an engine and
// without a data folder, in a temporary folder. remove removes it.
func (o *kbCommand) uploads(v *invocation) (a *kbmcp.Uploads, remove func(), err error) {
	dir, temporary := "", ""
	if o.URL != "" && o.Data == "" {
		if temporary, err = os.MkdirTemp("", "knowhow-uploads-"); err != nil {
			return nil, nil, &hintError{fmt.Errorf("creating a folder for uploads: %w", err),
				"Name a folder with --data or KNOWHOW_DATA."}
		}
		dir = temporary
	} else {
		if dir, err = dataPath(v.Env, o.Data); err != nil {
			return nil, nil, err
		}
	}
	if a, err = openUploads(dir, kbmcp.UploadOptions{MaxSize: int64(o.MaxUpload), TTL: o.TTL}); err != nil {
		return nil, nil, err
	}
	return a, func() {
		_ = a.Close()
		if temporary != "" {
			_ = os.RemoveAll(temporary) // or the system removes it
		}
	}, nil
}

// openUploads opens the staging area of uploads in a data folder.
func openUploads(data string, o kbmcp.UploadOptions) (*kbmcp.Uploads, error) {
	o.Dir = filepath.Join(data, "uploads")
	a, err := kbmcp.OpenUploads(o)
	if err != nil {
		return nil, &hintError{err, "Name a folder that can be written with --data."}
	}
	return a, nil
}

// checkEngine warns if the knowledge base does not answer. Its tools say so,
// too, and work as soon as it does.
func (v *invocation) checkEngine(ctx context.Context, base kb.Base) {
	if _, err := base.Status(ctx); err != nil && ctx.Err() == nil {
		v.warn(errkind.Message(explainEngine(err)))
	}
}
