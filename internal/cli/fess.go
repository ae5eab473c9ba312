package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/fessbridge"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/logfile"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

const fessHelp = `Usage: {cmd} [FLAGS]

Serves the documents of a Fess server to AI agents over MCP. One bridge serves
one knowledge domain: the documents with one Fess label.

{flags}

With --url and --label, no configuration file is needed or read, and logs are
written to stderr. The smallest configuration file:
  {
    "fessBaseUrl": "http://localhost:8080",
    "domain": {"id": "finance", "name": "Finance", "labelFilter": "finance"}
  }
Its logs are written to the folder log beside it.

Examples:
  {cmd} --url http://localhost:8080 --label finance
  {cmd}
  {cmd} --config finance.json --debug
  {cmd} --transport http
`

// A fessCommand serves the bridge until its client or a signal ends it.
type fessCommand struct {
	URL           fessURL  `flag:"url" value:"URL" secret:"" help:"address of the Fess server, in place of a configuration file (fessBaseUrl)"`
	Label         label    `flag:"label" value:"NAME" help:"with --url: the Fess label of the documents (domain.labelFilter), from which the id of the domain is made"`
	Name          string   `flag:"name" value:"TEXT" range:"1-128" help:"with --url: name of the domain, for people and agents (domain.name); by default the label"`
	Config        filePath `flag:"config" value:"FILE" help:"configuration file; by default the first of ~/.mcp-feiss/config.json, ~/mcp-feiss/config.json and ~/.mcp-fess/config.json that exists"`
	noData        `why:"the bridge stores nothing"`
	transportFlag `words:"stdio|http" standard:"stdio"`
	tokenFlag     `http:"HTTP: " more:"; takes precedence over security.httpAuthToken"`
	levelFlag     `more:"; by default logging.level of the configuration, or info"`
	Debug         bool `flag:"debug" help:"log everything, with a configuration file to a separate file DATE_TIME_server.log, with the time since the start on each line"`
	Cody          bool `flag:"cody" help:"use MCP revision 2024-11-05"`
	revisionFlag  `words:"2025-03-26|2024-11-05|latest" standard:"2025-03-26"`
	httpFlags
	FessToken string `env:"FESS_API_TOKEN" help:"access token for Fess; takes precedence over fessAuth.accessToken"`
}

// A fessURL is the address of a Fess server, "" for none.
type fessURL string

func (u *fessURL) set(s string) error {
	*u = fessURL(s)
	if want := fessconfig.WantURL(s); want != "" {
		return errors.New("want " + want)
	}
	return nil
}

// config returns the configuration that the flags name, with warnings for the user.
// path is that of the file, "" if there is none.
func (o *fessCommand) config(v *invocation) (c *fessconfig.Config, path string, warnings []string, err error) {
	switch {
	case o.URL != "" && o.Config != "":
		return nil, "", nil, v.usagef("--url and --config exclude each other")
	case o.URL != "" && o.Label == "":
		return nil, "", nil, v.usagef("--label is missing: name the Fess label of the documents")
	case o.URL != "":
		return fessconfig.New(string(o.URL), string(o.Label), o.Name), "", nil, nil
	case o.Label != "" || o.Name != "":
		return nil, "", nil, v.usagef("--url is missing: --label and --name are for a server without a configuration file")
	case o.Config != "":
		path = string(o.Config)
	default:
		if path, err = v.findFessConfig(); err != nil {
			return nil, "", nil, err
		}
	}
	c, warnings, err = fessconfig.Read(path, fessconfig.Options{Env: v.Lookup, Home: v.home(),
		HTTP: o.Transport == "http"})
	return c, path, warnings, err
}

func (o *fessCommand) run(ctx context.Context, v *invocation) (err error) {
	if o.Cody {
		if v.given("revision") && o.Revision != mcpserver.Cody {
			return v.usagef("--cody and --revision %s exclude each other", o.Revision)
		}
		o.Revision = mcpserver.Cody
	}
	c, path, warnings, err := o.config(v)
	if err != nil {
		return err
	}
	if err := setFessToken(c, o.FessToken); err != nil {
		return err
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
	err = v.serveFess(ctx, c, path, o, log.Logger)
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

// serveFess serves the bridge.
func (v *invocation) serveFess(ctx context.Context, c *fessconfig.Config, path string, o *fessCommand,
	log *slog.Logger) error {
	bridge, err := fessbridge.New(fessbridge.Options{Config: c, Revision: o.Revision, Version: version(), Log: log})
	if err != nil {
		return &hintError{err, "Check fessBaseUrl, fessAuth, tls and contentFetch in the configuration."}
	}
	defer bridge.Close(ctx)
	t := &c.HTTPTransport
	v.stdio = o.Transport == "stdio"
	s := &server{
		invocation: v, log: log, mcp: bridge.MCP, path: t.Path, host: t.BindAddress,
		port: t.Port,
		guard: httpguard.Options{
			Token:          c.Security.HTTPAuthToken,
			AllowedOrigins: append(t.AllowedOrigins, o.AllowOrigin...),
			AllowedHosts:   append(t.AllowedHosts, o.AllowHost...),
			Routes:         []httpguard.Route{bridge.MCP.HTTP(mcpserver.HTTPOptions{DisableSSE: !t.EnableSSE}).Route(t.Path)},
			Refuse:         mcpserver.Refuse,
		},
		background: bridge.Check,
		public:     "everyone who can reach this machine can search the domain: set security.httpAuthToken",
		portHint:   "Set httpTransport.port to another one (0: any free one).",
	}
	if s.stdio {
		log.Info("serving on standard input and output")
	}
	s.ready = func(url string) {
		var own []string
		if path != "" {
			own = []string{"fess", absolute(path)}
		}
		s.printSnippets(c.Domain.ID, url, "KNOWHOW_TOKEN", own)
	}
	return s.serve(ctx)
}

// setFessToken sets the access token from the environment.
func setFessToken(c *fessconfig.Config, token string) error {
	if token != "" && !visiblePattern.MatchString(token) {
		return errors.New("environment variable FESS_API_TOKEN: want visible ASCII characters without blanks")
	}
	c.FessAuth.AccessToken = cmp.Or(token, c.FessAuth.AccessToken)
	return nil
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
		return "", &hintError{
			fmt.Errorf("config.json is missing: there is no %s, no %s and no %s", tried[0], tried[1], tried[2]),
			fmt.Sprintf("Write %s, or name a file with --config. %q shows the smallest one. Or name the server: %s --url URL --label NAME",
				tried[0], v.name+" --help", v.name),
		}
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
