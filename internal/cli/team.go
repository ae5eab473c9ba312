package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/metrics"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

// teamFlags are about the users of a server.
type teamFlags struct {
	accessFlag
	Issuer    string   `flag:"oauth-issuer" value:"URL" env:"KNOWHOW_OAUTH_ISSUER" help:"accept access tokens (JWT) of this issuer; the access file gives its users and groups their rights"`
	Audience  string   `flag:"oauth-audience" value:"URI" env:"KNOWHOW_OAUTH_AUDIENCE" help:"audience of these tokens, besides the public URL of the server"`
	Claim     string   `flag:"oauth-claim" value:"NAME" env:"KNOWHOW_OAUTH_CLAIM" default:"groups" help:"claim with the groups of the user"`
	Scopes    []string `flag:"oauth-scope" value:"SCOPE" help:"scope that clients ask the issuer for"`
	PublicURL string   `flag:"public-url" value:"URL" env:"KNOWHOW_PUBLIC_URL" help:"URL at which clients reach the server, without a path, also behind a proxy; its host is allowed; by default the address that it listens on"`
	Audit     filePath `flag:"audit" value:"FILE" env:"KNOWHOW_AUDIT" help:"append a line of JSON to this file for each call; while that fails, calls are refused"`
	Metrics   string   `flag:"metrics" value:"HOST:PORT" env:"KNOWHOW_METRICS" help:"serve /metrics for Prometheus on this address without a token"`
	Rate      int      `flag:"rate" value:"N" range:"0-1000000" default:"0" help:"calls that each user may send in a second; 0 is any number"`
	Cert      filePath `flag:"tls-cert" value:"FILE" env:"KNOWHOW_TLS_CERT" help:"serve https with this certificate in PEM, followed by those of its authorities; needs --tls-key, and is read again when it changes"`
	Key       filePath `flag:"tls-key" value:"FILE" env:"KNOWHOW_TLS_KEY" help:"key of that certificate in PEM, without a passphrase"`
	MaxCalls  int      `flag:"max-calls" value:"N" range:"1-100000" default:"32" help:"calls of each user that are answered at the same time"`
}

// signOnFlags are about people who sign in on the page of a server.
type signOnFlags struct {
	ClientID     string `flag:"oauth-client-id" value:"ID" env:"KNOWHOW_OAUTH_CLIENT_ID" help:"client of the issuer with which people sign in on the console; its redirect URI is the public URL followed by a slash; without it, people enter tokens"`
	ClientSecret string `env:"KNOWHOW_OAUTH_CLIENT_SECRET" secret:"secret" help:"secret of that client, if it has one"`
}

// client returns the client that the flags describe.
func (o signOnFlags) client() oauth.Client {
	return oauth.Client{ID: o.ClientID, Secret: o.ClientSecret}
}

// A team is what a server for several users has. It must be closed.
type team struct {
	users.Options // without View
	metrics       *metrics.Metrics
	users         bool   // whether the server begins with users
	address       string // of a listener for the metrics alone; "" for none
	audit         *audit.Log
}

// Close ends the team.
func (t *team) Close() error {
	if t.Issuer != nil {
		t.Issuer.Close()
	}
	return t.audit.Close()
}

// openTeam opens what the flags name for a server with the data folder dir, "" if it has
// none. The state of the server is in the metrics. People sign in with the client.
func (s *server) openTeam(ctx context.Context, o *teamFlags, client oauth.Client, dir string) (t *team, err error) {
	t = &team{address: o.Metrics}
	s.team = t
	t.Limits, t.Log = mcpserver.LimiterOptions{InFlight: o.MaxCalls, Rate: o.Rate}, s.log
	if o.Audit != "" {
		t.audit, err = audit.Open(audit.Options{Path: string(o.Audit), Logger: s.log})
		if err != nil {
			return nil, &hintError{err, "The file is named by --audit."}
		}
	}
	defer func(opened *team) { // t is nil after an error
		if err != nil {
			_ = opened.Close() // it has written nothing
		}
	}(t)
	t.Calls = users.Calls{Check: t.audit.Check, Record: func(c *audit.Call, failure string) error {
		if t.metrics != nil {
			t.metrics.Observe(c, failure)
		}
		return t.audit.Write(c)
	}}
	if s.stdio {
		return t, nil
	}
	if err := s.loadCertificate(o); err != nil {
		return nil, err
	}
	if err := s.openAccess(o, dir, t); err != nil {
		return nil, err
	}
	if err := s.allowPublic(o.PublicURL); err != nil {
		return nil, err
	}
	if o.Issuer == "" {
		if client.ID != "" {
			return nil, s.usagef("--oauth-client-id: set --oauth-issuer to the URL of the identity provider, too")
		}
		return t, nil
	}
	public, err := s.publicURL(ctx, o.PublicURL)
	if err != nil {
		return nil, err
	}
	t.Issuer, err = oauth.New(oauth.Options{Issuer: o.Issuer, PublicURL: public, Audience: o.Audience, Claim: o.Claim,
		Scopes: o.Scopes, Client: client, Log: s.log})
	if err != nil {
		hint := "Check --oauth-issuer, --oauth-scope and --public-url."
		if client != (oauth.Client{}) {
			hint = "Check --oauth-issuer, --oauth-scope, --oauth-client-id, KNOWHOW_OAUTH_CLIENT_SECRET and --public-url."
		}
		return nil, &hintError{usageError(errkind.Message(err)), hint}
	}
	return t, nil
}

// loadCertificate makes the listener serve TLS if the flags name a certificate.
func (s *server) loadCertificate(o *teamFlags) (err error) {
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return s.usagef("--tls-cert and --tls-key: want both or neither")
	case o.Cert == "":
		return nil
	}
	s.guard.TLS, err = httpguard.LoadCertificate(string(o.Cert), string(o.Key), s.log)
	if err != nil {
		return &hintError{err, "Check --tls-cert and --tls-key (KNOWHOW_TLS_CERT and KNOWHOW_TLS_KEY)."}
	}
	return nil
}

// openAccess opens the access file. A file in the data folder may be made later.
func (s *server) openAccess(o *teamFlags, dir string, t *team) error {
	t.Token = s.guard.Token
	path, missing := string(o.Access), false
	if path == "" {
		if dir == "" {
			return nil
		}
		path = filepath.Join(dir, access.FileName)
		_, err := os.Lstat(path)
		missing = errors.Is(err, fs.ErrNotExist)
		t.Optional = o.Issuer == ""
	}
	t.users = !missing || !t.Optional
	if t.users && t.Token != "" {
		return &hintError{fmt.Errorf("--token cannot be used with the users of %s", path),
			"Unset --token and KNOWHOW_TOKEN: each user has a token of their own, see \"knowhow access\". " +
				"Without the file, the token is the only right."}
	}
	t.File = access.Open(path, s.log)
	if err := t.File.Err(); err != nil && t.users {
		s.warn(fmt.Sprintf("nobody is admitted until the access file can be used: %s; "+
			"users are added by \"knowhow access add\"", errkind.Message(err)))
	}
	return nil
}

// allowPublic allows the host of the URL of the server for clients, if there is one.
func (s *server) allowPublic(public string) error {
	if public == "" {
		return nil
	}
	u, err := url.Parse(public)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return s.usagef("--public-url: want a URL without a path, for example https://knowhow.example.com")
	}
	s.guard.AllowedHosts = append(s.guard.AllowedHosts, u.Host)
	return nil
}

// publicURL returns the URL of the server for clients. Without one in the flags, it is
// the address of the listener.
func (s *server) publicURL(ctx context.Context, public string) (string, error) {
	if public != "" {
		return strings.TrimRight(public, "/"), nil
	}
	if ip := net.ParseIP(s.host); s.host == "" || ip != nil && ip.IsUnspecified() {
		return "", s.usagef("--oauth-issuer: set --public-url to the URL at which clients reach this server")
	}
	if err := s.open(ctx); err != nil {
		return "", err
	}
	return s.url(), nil
}

// admit makes the server serve the users of a table, with metrics of its state.
func (s *server) admit(table *users.Table, state metrics.Options) {
	t := s.team
	state.Version, state.Log = version(), s.log
	state.Activity = func() metrics.Activity {
		sessions, streams := table.Sessions()
		return metrics.Activity{Calls: table.Calls(), Sessions: sessions, Streams: streams}
	}
	t.metrics = metrics.New(state)
	s.guard.Refused = table.Refused
	s.guard.Authenticate = table.Authenticate
	if t.Issuer != nil {
		s.guard.Routes = append(s.guard.Routes, t.Issuer.Routes()...)
	}
	handler := t.metrics.Handler()
	s.guard.Routes = append(s.guard.Routes, table.Limited(httpguard.Route{Path: metricsPath, Refuse: s.guard.Refuse,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c := access.From(r.Context()); c == nil || !c.Admin {
				s.guard.Refuse(w, r, httpguard.Refusal{Reason: httpguard.NotFound, Status: http.StatusNotFound,
					Message: "nothing is served at this path"})
				return
			}
			handler.ServeHTTP(w, r)
		})}))
}

// metricsPath is the path of the metrics.
const metricsPath = "/metrics"

// serveMetrics serves the metrics without a token on an address of their own until ctx
// ends, if there is one. It returns when the listener is open. wait waits for the end.
func (s *server) serveMetrics(ctx context.Context) (wait func(), err error) {
	if s.team == nil || s.team.address == "" {
		return func() {}, nil
	}
	host, port, err := splitAddress(s.team.address)
	if err != nil {
		return nil, s.usagef("--metrics: got %q, want HOST:PORT, for example 127.0.0.1:9090", s.team.address)
	}
	l, err := httpguard.Listen(ctx, host, port)
	if err != nil {
		return nil, &hintError{err, "Choose another address with --metrics."}
	}
	s.log.Info("metrics", "url", "http://"+l.Addr().String()+metricsPath)
	guard := httpguard.New(httpguard.Options{AllowedHosts: s.guard.AllowedHosts, Log: s.log,
		Routes: []httpguard.Route{{Path: metricsPath, Handler: s.team.metrics.Handler()}}})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := guard.Serve(ctx, l); err != nil {
			s.log.Error("the metrics are no longer served", "error", err)
		}
	})
	return serving.Wait, nil
}
