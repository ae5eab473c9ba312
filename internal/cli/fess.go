package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"knowhow/internal/fess"
	"knowhow/internal/fessconfig"
	"knowhow/internal/fessmcp"
	"knowhow/internal/fetch"
	"knowhow/internal/httpguard"
	"knowhow/internal/job"
	"knowhow/internal/logfile"
	"knowhow/internal/mcpserver"
	"knowhow/internal/search"
)

const fessHelp = `Usage: {cmd} [FLAGS]

Serves the documents of a Fess server to AI agents over MCP. One bridge serves
one knowledge domain: the documents with one Fess label.

{flags}

The smallest configuration file:
  {
    "fessBaseUrl": "http://localhost:8080",
    "domain": {"id": "finance", "name": "Finance", "labelFilter": "finance"}
  }
Logs are written to the folder log beside it.

Examples:
  {cmd}
  {cmd} --config finance.json --debug
  {cmd} --transport http
`

// A fessCommand serves the bridge until its client or a signal ends it.
type fessCommand struct {
	Config        filePath `flag:"config" value:"FILE" help:"configuration file; by default the first of ~/.mcp-feiss/config.json, ~/mcp-feiss/config.json and ~/.mcp-fess/config.json that exists"`
	Data          string   `flag:"data" value:"DIR" help:"accepted, as by every server, and ignored: the bridge stores nothing"`
	transportFlag `words:"stdio|http" standard:"stdio"`
	Token         token `flag:"token" value:"TOKEN" env:"KNOWHOW_TOKEN" secret:"token" help:"HTTP: token that every caller must send as Authorization: Bearer; takes precedence over security.httpAuthToken"`
	Level         level `flag:"log-level" value:"debug|info|warn|error" env:"KNOWHOW_LOG_LEVEL" help:"least level of the log; takes precedence over logging.level"`
	Debug         bool  `flag:"debug" help:"log everything to a separate file DATE_TIME_server.log, with the time since the start on each line"`
	Cody          bool  `flag:"cody" help:"use MCP revision 2024-11-05"`
	revisionFlag  `words:"2025-03-26|2024-11-05|latest" standard:"2025-03-26"`
	httpFlags
	FessToken string `env:"FESS_API_TOKEN" help:"access token for Fess; takes precedence over fessAuth.accessToken"`
}

func (o *fessCommand) run(ctx context.Context, v *invocation) (err error) {
	if o.Cody {
		if v.given("revision") && o.Revision != mcpserver.Cody {
			return v.usagef("--cody and --revision %s exclude each other", o.Revision)
		}
		o.Revision = mcpserver.Cody
	}
	path := string(o.Config)
	if path == "" {
		if path, err = v.findFessConfig(); err != nil {
			return err
		}
	}
	c, warnings, err := fessconfig.Read(path, fessconfig.Options{Env: v.Lookup, Home: v.home(), HTTP: o.Transport == "http"})
	if err != nil {
		return err
	}
	if o.FessToken != "" {
		if !visiblePattern.MatchString(o.FessToken) {
			return errors.New("environment variable FESS_API_TOKEN: want visible ASCII characters without blanks")
		}
		c.FessAuth.AccessToken = o.FessToken
	}
	c.Security.HTTPAuthToken = cmp.Or(string(o.Token), c.Security.HTTPAuthToken)
	c.Logging.Level = cmp.Or(string(o.Level), c.Logging.Level)
	log := logfile.Open(logfile.Options{
		Dir:        c.Logging.Dir,
		Debug:      o.Debug,
		Level:      logLevel(c.Logging.Level),
		RetainDays: c.Logging.RetainDays,
		Secrets:    []string{c.FessAuth.AccessToken, c.Security.HTTPAuthToken},
		Hint:       "set logging.dir to another one",
		Fallback:   v.stderr,
	})
	defer log.Close()
	log.Info("starting", "version", version(), "config", path, "transport", o.Transport,
		"revision", o.Revision, "domain", c.Domain.ID, "label", c.Domain.LabelFilter)
	for _, w := range warnings {
		v.warn(w)
		log.Warn(w)
	}
	err = v.serveFess(ctx, c, o, log.Logger)
	switch {
	case err != nil:
		log.Error("stopped", "error", err)
	case ctx.Err() != nil:
		log.Info("stopped", "cause", context.Cause(ctx))
	default:
		log.Info("stopped", "cause", "end of input")
	}
	return err
}

// jobStop is the time limit for the end of running jobs when the bridge ends, which
// takes at most a second.
const jobStop = 100 * time.Millisecond

// serveFess creates the bridge and serves it.
func (v *invocation) serveFess(ctx context.Context, c *fessconfig.Config, o *fessCommand, log *slog.Logger) error {
	client, err := fess.New(fess.Options{
		BaseURL:            c.FessBaseURL,
		API:                c.FessAPI,
		PassThrough:        c.FessAuth.PassThrough,
		AccessToken:        c.FessAuth.AccessToken,
		CAFile:             c.TLS.CAFile,
		InsecureSkipVerify: c.TLS.InsecureSkipVerify,
		Timeout:            time.Duration(c.Timeouts.FessRequestTimeoutMs) * time.Millisecond,
		MaxConns:           c.Limits.MaxInFlightRequests,
		UserAgent:          "knowhow/" + version(),
		Log:                log,
	})
	if err != nil {
		return &hintError{fmt.Errorf("connecting to Fess: %w", err), "Check fessBaseUrl, fessAuth and tls in the configuration."}
	}
	defer client.Close()
	documents, err := newFetcher(c)
	if err != nil {
		return err
	}
	defer documents.Close()
	jobs := job.New(job.Options{
		Threshold:  time.Duration(c.Timeouts.LongRunningThresholdMs) * time.Millisecond,
		MaxRunning: c.Limits.MaxInFlightRequests,
		Log:        log,
	})
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStop)
		defer cancel()
		if err := jobs.Close(ctx); err != nil {
			log.Warn("leaving jobs behind that do not end", "error", err)
		}
	}()
	domain := fessmcp.Domain{ID: c.Domain.ID, Name: c.Domain.Name, Description: c.Domain.Description, Label: c.Domain.LabelFilter}
	mcp := mcpserver.New(mcpserver.Options{
		Name:         "mcp-fess",
		Title:        c.Domain.Name,
		Version:      version(),
		Instructions: fessmcp.Instructions(fessmcp.Options{Domain: domain}),
		Domain:       &mcpserver.Domain{ID: domain.ID, Name: domain.Name, Description: domain.Description, LabelFilter: domain.Label},
		Revision:     o.Revision,
		MaxInFlight:  c.Limits.MaxInFlightRequests,
		Log:          log,
		Header:       callersToken(c),
	})
	fessmcp.Register(mcp, fessmcp.Options{
		Domain:        domain,
		Backend:       client,
		MaxPageSize:   c.Limits.MaxPageSize,
		MaxChunkBytes: c.Limits.MaxChunkBytes,
		Jobs:          jobs,
		Content: &fessmcp.Content{
			Enabled:   c.ContentFetch.Enabled,
			Fetch:     documents,
			MaxBytes:  int64(c.ContentFetch.MaxBytes),
			FessCache: c.ContentFetch.FessCache,
			EnablePDF: c.ContentFetch.EnablePDF,
		},
		Explain: c.Explain,
		Log:     log,
	})

	t := &c.HTTPTransport
	s := &server{
		invocation: v, log: log, stdio: o.Transport == "stdio", mcp: mcp, path: t.Path, host: t.BindAddress, port: t.Port,
		guard: httpguard.Options{
			Token:          c.Security.HTTPAuthToken,
			AllowedOrigins: append(t.AllowedOrigins, o.AllowOrigin...),
			AllowedHosts:   append(t.AllowedHosts, o.AllowHost...),
			Routes:         []httpguard.Route{mcp.HTTP(mcpserver.HTTPOptions{DisableSSE: !t.EnableSSE}).Route(t.Path)},
			Refuse:         mcpserver.Refuse,
		},
		public:   "everyone who can reach this machine can search the domain: set security.httpAuthToken",
		portHint: "Set httpTransport.port to another one (0: any free one).",
	}
	if !c.FessAuth.PassThrough { // otherwise no token is known yet
		s.background = func(ctx context.Context) { checkFess(ctx, client, c, log) }
	}
	if s.stdio {
		log.Info("serving on standard input and output")
	}
	return s.serve(ctx)
}

// callersToken returns the function that stores the token from a caller's
// header, with which the client calls Fess. It is nil unless
// fessAuth.passThrough is set: otherwise an unused header would determine the
// owner of jobs.
func callersToken(c *fessconfig.Config) func(context.Context, http.Header) context.Context {
	if !c.FessAuth.PassThrough {
		return nil
	}
	return func(ctx context.Context, h http.Header) context.Context {
		return search.WithToken(ctx, h.Get("X-Fess-Token"))
	}
}

// newFetcher returns the fetcher for documents whose text Fess does not send.
func newFetcher(c *fessconfig.Config) (*fetch.Fetcher, error) {
	f := &c.ContentFetch
	o := fetch.Options{
		Schemes:      f.AllowedSchemes,
		AllowedHosts: f.AllowedHostAllowlist,
		AllowPrivate: f.AllowPrivateNetworkTargets,
		MaxBytes:     int64(f.MaxBytes),
		Timeout:      time.Duration(f.TimeoutMs) * time.Millisecond,
		UserAgent:    cmp.Or(f.UserAgent, "knowhow/"+version()),
	}
	if f.Proxy != "" {
		u, err := url.Parse(f.Proxy)
		if err != nil {
			return nil, errors.New("contentFetch.proxy: want an absolute http or https URL") // the error may contain a password
		}
		o.Proxy = u
	}
	fetcher, err := fetch.New(o)
	if err != nil {
		return nil, &hintError{fmt.Errorf("preparing to fetch documents: %w", err), "Check contentFetch in the configuration."}
	}
	return fetcher, nil
}

// checkFess logs a warning if Fess does not answer or is not healthy. In that
// state, each request fails separately.
func checkFess(ctx context.Context, client *fess.Client, c *fessconfig.Config, log *slog.Logger) {
	health, err := client.Health(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Warn("Fess does not answer; requests will fail until it does", "fessBaseUrl", c.FessBaseURL, "error", c.Explain(err))
	case health.Status == "red":
		log.Warn("Fess answers that its search engine is down", "fessBaseUrl", c.FessBaseURL)
	default:
		log.Info("Fess answers", "fessBaseUrl", c.FessBaseURL, "status", health.Status)
	}
}

// findFessConfig returns the first configuration file that exists.
func (v *invocation) findFessConfig() (string, error) {
	home := v.home()
	if home == "" {
		return "", &hintError{errors.New("config.json cannot be found: the home directory is not known"),
			"Set HOME, or name the file with --config."}
	}
	path, tried := fessconfig.Find(home)
	if path == "" {
		return "", &hintError{fmt.Errorf("config.json is missing: there is no %s, no %s and no %s", tried[0], tried[1], tried[2]),
			fmt.Sprintf("Write %s, or name a file with --config. %q shows the smallest one.", tried[0], v.name+" --help")}
	}
	return path, nil
}

// logLevel returns the level for its name in the configuration.
func logLevel(name string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.ToUpper(name))); err != nil {
		return slog.LevelInfo
	}
	return level
}
