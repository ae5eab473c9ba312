package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/httpguard"
	"knowhow/internal/index"
	"knowhow/internal/indexing"
	"knowhow/internal/kb"
	"knowhow/internal/kbclient"
	"knowhow/internal/kbmcp"
	"knowhow/internal/mcpserver"
	"knowhow/internal/opensearch"
	"knowhow/internal/terminal"
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

// kbAddr is the default address of kb.
const kbAddr = defaultHost + ":8765"

// uploadPath is the path of whole files, for agents with a shell.
const uploadPath = "/upload"

// baseFlags choose a knowledge base.
type baseFlags struct {
	url, key, data string
	store          storeFlags
	given          func(name string) bool // whether a flag is on the command line
	timeout        time.Duration
	maxUpload      int64
	model          serveModel    // of a base in the data folder
	wait           time.Duration // at least so long a search waits for the vector of its query
}

// modelTime is how long a search of a knowledge base waits for the vector of its
// query. The first one loads the model.
const modelTime = time.Second

// define declares the flags.
func (o *baseFlags) define(f *flagSet) {
	f.Func(flag{Name: "engine-url", Value: "URL", Env: "KB_ENGINE_URL", secret: true, what: "engine",
		Help: "URL of the engine; without it, the knowledge base is in the data folder or in the store"}, func(s string) error {
		o.url = s
		if s == "" {
			return nil // a variable of the shell that is not set
		}
		_, err := kbclient.New(kbclient.Options{BaseURL: s})
		return wanted(err)
	})
	f.Token(&o.key, flag{Name: "engine-key", Value: "KEY", Env: "KB_API_KEY", Help: "key that is sent to the engine"})
	baseData(f, &o.data)
	o.store.define(f)
	o.given = f.given
	f.Duration(&o.timeout, flag{Name: "engine-timeout", Value: "DURATION", Env: "KB_ENGINE_TIMEOUT", Default: "30s", Help: "time limit for one request to the engine"})
}

// An openBase is a knowledge base that must be closed.
type openBase interface {
	kb.Base
	Close() error
}

// open opens the knowledge base that the flags name. One in the data folder
// works on its jobs if work is set; an engine always does.
func (o *baseFlags) open(ctx context.Context, v *invocation, log *slog.Logger, work bool) (openBase, error) {
	if o.url == "" {
		return o.openLocal(ctx, v, log, work)
	}
	if o.given("engine-url") && o.given("store") {
		return nil, v.usagef("--engine-url and --store exclude each other: the engine has its own store")
	}
	c, err := kbclient.New(kbclient.Options{BaseURL: o.url, Key: o.key, Timeout: o.timeout, UserAgent: "knowhow/" + version(), Log: log})
	if err != nil {
		return nil, explainEngine(err)
	}
	return c, nil
}

// A localBase is a knowledge base in the data folder, or in a store with its jobs
// in the data folder.
type localBase struct {
	*kb.Local
	index *index.Index      // nil if nothing but a store is read
	store *opensearch.Store // nil if the documents are in the data folder
	stop  context.CancelFunc
	work  sync.WaitGroup
}

// errNoBase is wrapped by the error for a data folder without a knowledge base.
var errNoBase = errors.New("there is no knowledge base")

// openLocal opens the knowledge base in the data folder, without the documents
// of sources. If work is set, it creates the folder if there is none, works on
// jobs and computes vectors until the base is closed.
func (o *baseFlags) openLocal(ctx context.Context, v *invocation, log *slog.Logger, work bool) (openBase, error) {
	dir, err := dataFolder(v.Env, o.data)
	if err != nil {
		return nil, err
	}
	if !work && o.store.address == "" {
		if found, err := hasIndex(dir); err != nil {
			return nil, err
		} else if !found {
			return nil, &hintError{fmt.Errorf("%w in %s", errNoBase, dir), fmt.Sprintf("Name its data folder with --data, or begin one. Add a note with: %s note add TEXT", v.Program)}
		}
	}
	queries, documents, wait, err := o.model.open()
	if err != nil {
		return nil, err
	}
	store, err := o.store.open(queries, max(wait, o.wait), log)
	if err != nil {
		return nil, err
	}
	if store != nil && work {
		if err := v.connect(ctx, store, queries != nil); err != nil {
			return nil, err
		}
	}
	var x *index.Index
	if work || store == nil { // a store without work needs no queue
		if x, err = openIndex(ctx, index.Options{Dir: dir, Log: log, Embedder: queries, EmbedTime: max(wait, o.wait)}); err != nil {
			return nil, err
		}
	}
	options := kb.Options{Index: x, Dir: dir, MaxUpload: o.maxUpload, Version: version(), Log: log}
	embedding := indexing.EmbedOptions{Index: x, Embedder: documents, Log: log}
	if store != nil {
		options.Store, embedding.Store = store, store
	}
	b := &localBase{index: x, store: store, Local: kb.NewLocal(options)}
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	if work {
		b.work.Go(func() { b.Run(ctx) })
	}
	if work && store != nil {
		b.work.Go(func() { maintainStore(ctx, store, log) })
	}
	if work && documents != nil {
		embedding.Labels, embedding.Lines = b.Labels, terminal.NewLines(v.stderr, nil)
		b.work.Go(func() { indexing.Embed(ctx, embedding) })
	}
	return b, nil
}

// Close ends the work and closes the index.
func (b *localBase) Close() error {
	b.stop()
	b.work.Wait()
	if b.store != nil {
		b.store.Close() // never fails
	}
	if b.index == nil {
		return nil
	}
	return b.index.Close()
}

// use calls f with the knowledge base; see open for work.
func (o *baseFlags) use(ctx context.Context, v *invocation, work bool, f func(kb.Base) error) error {
	base, err := o.open(ctx, v, v.warnings(), work)
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

// explainReason adds to an error how to set the option that it is due to.
func explainReason(err error, by map[errkind.Reason]string) error {
	advice := by[errkind.ReasonOf(err)]
	if advice == "" {
		return err
	}
	if own, ok := errors.AsType[*mcpserver.Error](err); ok {
		more := *own
		more.Err = explainReason(own.Err, by)
		return &more
	}
	if remote, ok := errors.AsType[*errkind.Remote](err); ok {
		more := *remote
		more.Message += "; " + advice
		return &more
	}
	return &explainedError{err, errkind.Message(err) + "; " + advice}
}

// kbFlags are the flags of kb.
type kbFlags struct {
	base                           baseFlags
	addr, key, transport, revision string
	tools, level                   string
	hosts, origins                 []string
	ttl                            time.Duration
}

// kbCommand serves a knowledge base.
func kbCommand(v *invocation, f *flagSet) func(context.Context) error {
	o := &kbFlags{}
	o.base.define(f)
	f.String(&o.addr, flag{Name: "addr", Value: "HOST:PORT", Default: kbAddr, Env: "KB_MCP_ADDR", Help: "HTTP: address to listen on"})
	f.Token(&o.key, flag{Name: "api-key", Value: "KEY", Env: "KB_MCP_API_KEY", alias: "token", aliasEnv: "KNOWHOW_TOKEN", Help: "HTTP: key that every agent must send as Authorization: Bearer"})
	o.base.model.define(f, "the knowledge base")
	o.base.wait = modelTime
	transportFlag(f, &o.transport, "http", "stdio")
	logLevelFlag(f, &o.level, "warn", levelHelp)
	f.Choice(&o.tools, flag{Name: "tools", Help: "extra adds kb_list, kb_collections and kb_delete"}, "kb", "extra")
	f.Choice(&o.revision, flag{Name: "revision", Help: "MCP revision; latest negotiates every revision"},
		string(mcpserver.Latest), string(mcpserver.Pinned), string(mcpserver.Cody))
	httpFlags(f, &o.hosts, &o.origins)
	f.Duration(&o.ttl, flag{Env: "KNOWHOW_UPLOAD_TTL", Default: "10m", Help: "time from the start of an upload until it is dropped"})
	maxUploadVariable(f, &o.base.maxUpload)
	return func(ctx context.Context) error { return v.serveKB(ctx, o) }
}

// maxUploadVariable declares the variable for the size of files.
func maxUploadVariable(f *flagSet, size *int64) {
	f.Func(flag{Env: "KB_MAX_UPLOAD", Default: strconv.Itoa(kb.MaxUploadBytes), Help: "maximum size of a file, in bytes"}, func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 1 || n > 1<<40 {
			return errors.New("want a number of bytes from 1 to 1099511627776")
		}
		*size = n
		return nil
	})
}

// serveKB serves a knowledge base until ctx ends or, on stdio, the client
// disconnects.
func (v *invocation) serveKB(ctx context.Context, o *kbFlags) (err error) {
	lines := terminal.NewLines(v.stderr, nil)
	v.stderr = lines // checkEngine writes at any time
	log := slog.New(terminal.NewHandler(lines, logLevel(o.level)))
	host, port := "", 0
	if o.transport == "http" {
		if host, port, err = v.hostPort(o.addr); err != nil {
			return err
		}
	}
	base, err := o.base.open(ctx, v, log, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	uploads, remove, err := o.uploads(v)
	if err != nil {
		return err
	}
	defer remove()
	server := mcpserver.New(mcpserver.Options{
		Name: "knowhow-kb", Title: "knowhow knowledge base", Version: version(),
		Instructions: kbmcp.Instructions(), Revision: mcpserver.Revision(o.revision), Log: log,
	})
	tools := kbmcp.Options{Base: base, Uploads: uploads, Version: version(), Extra: o.tools == "extra", Explain: explainEngine}
	if o.transport == "http" {
		tools.UploadPath = uploadPath
	}
	kbmcp.Register(server, tools)

	background, stop := context.WithCancel(ctx)
	var checking sync.WaitGroup
	defer checking.Wait()
	defer stop()
	checking.Go(func() { v.checkEngine(background, base) })
	if o.transport == "stdio" {
		return v.serveStdio(ctx, server)
	}
	return v.serveHTTP(ctx, httpService{
		host: host, port: port, path: mcpPath,
		guard: httpguard.Options{
			Token: o.key, AllowedHosts: o.hosts, AllowedOrigins: o.origins, Refuse: mcpserver.Refuse,
			Routes: []httpguard.Route{server.HTTP(mcpserver.HTTPOptions{}).Route(mcpPath), uploads.Route(uploadPath)},
		},
		ready: func(url string) {
			if o.key == "" && !httpguard.Loopback(host) {
				v.warn(log, "every machine that reaches this address can read and change the knowledge base: set --api-key or KB_MCP_API_KEY, or listen on 127.0.0.1")
			}
			fmt.Fprint(v.stderr, snippets("kb", url, tokenVariable("KB_MCP_API_KEY", o.key)))
		},
		log: log,
	})
}

// uploads opens the staging area: in the data folder or, with an engine and
// without a data folder, in a temporary folder. remove removes it.
func (o *kbFlags) uploads(v *invocation) (a *kbmcp.Uploads, remove func(), err error) {
	dir, temporary := "", ""
	if o.base.url != "" && o.base.data == "" {
		if temporary, err = os.MkdirTemp("", "knowhow-uploads-"); err != nil {
			return nil, nil, &hintError{fmt.Errorf("creating a folder for uploads: %w", err), "Name a folder with --data or KB_DATA_DIR."}
		}
		dir = temporary
	} else {
		if dir, err = dataFolder(v.Env, o.base.data); err != nil {
			return nil, nil, err
		}
	}
	if a, err = openUploads(dir, kbmcp.UploadOptions{MaxSize: o.base.maxUpload, TTL: o.ttl}); err != nil {
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
		fmt.Fprintf(v.stderr, "%s: warning: %s\n", v.name, printableLines(errkind.Message(explainEngine(err))))
	}
}
