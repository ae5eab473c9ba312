// Package fessbridge connects what a configuration of the bridge describes: the client
// of a Fess server and what fetches documents, and over both the MCP tools, or a
// source of a search over several services.
package fessbridge

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/content"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
)

// A domain is what a bridge and a source ask: the client of the Fess server and what
// reads the texts that the server does not send.
type domain struct {
	client    *fess.Client
	documents *fetch.Fetcher
	content   *content.Reader
	labels    []string // in every call to Fess; nil for the whole index
}

// openDomain returns the domain of a configuration. It makes no request.
func openDomain(c *fessconfig.Config, version string, log *slog.Logger) (*domain, error) {
	client, err := fess.New(fess.Options{
		BaseURL:            c.FessBaseURL,
		API:                c.FessAPI,
		PassThrough:        c.FessAuth.PassThrough,
		AccessToken:        c.FessAuth.AccessToken,
		CAFile:             c.TLS.CAFile,
		InsecureSkipVerify: c.TLS.InsecureSkipVerify,
		Timeout:            time.Duration(c.Timeouts.FessRequestTimeoutMs) * time.Millisecond,
		MaxConns:           c.Limits.MaxInFlightRequests,
		UserAgent:          "knowhow/" + version,
		Log:                log,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to Fess: %w", err)
	}
	documents, err := newFetcher(c, version)
	if err != nil {
		client.Close()
		return nil, err
	}
	d := &domain{client: client, documents: documents}
	if c.Domain.LabelFilter != "" {
		d.labels = []string{c.Domain.LabelFilter}
	}
	d.content = content.New(content.Options{
		Enabled:   c.ContentFetch.Enabled,
		Fetch:     documents,
		Copies:    client,
		Labels:    d.labels,
		MaxBytes:  int64(c.ContentFetch.MaxBytes),
		FessCache: c.ContentFetch.FessCache,
		EnablePDF: c.ContentFetch.EnablePDF,
		Log:       log,
	})
	return d, nil
}

// close closes the connections.
func (d *domain) close() {
	d.documents.Close()
	d.client.Close()
}

// Options configures a [Bridge].
type Options struct {
	Config   *fessconfig.Config
	Revision mcpserver.Revision
	Version  string // of the program
	Log      *slog.Logger
}

// A Bridge serves the domain of a configuration. Create one with [New].
type Bridge struct {
	MCP *mcpserver.Server

	o      Options
	domain *domain
	jobs   *job.Manager
}

// New returns a bridge. It does not ask Fess.
func New(o Options) (*Bridge, error) {
	c := o.Config
	d, err := openDomain(c, o.Version, o.Log)
	if err != nil {
		return nil, err
	}
	b := &Bridge{o: o, domain: d, jobs: job.New(job.Options{
		Threshold:  time.Duration(c.Timeouts.LongRunningThresholdMs) * time.Millisecond,
		MaxRunning: c.Limits.MaxInFlightRequests,
		Log:        o.Log,
	})}
	about := searchmcp.Domain{ID: c.Domain.ID, Name: c.Domain.Name, Description: c.Domain.Description,
		Label: c.Domain.LabelFilter}
	tools := searchmcp.New(searchmcp.Options{
		Domain:        about,
		Backend:       d.client,
		MaxPageSize:   c.Limits.MaxPageSize,
		MaxChunkBytes: c.Limits.MaxChunkBytes,
		Jobs:          b.jobs,
		Content:       d.content,
		Explain:       c.Explain,
		Log:           o.Log,
	})
	b.MCP = mcpserver.New(mcpserver.Options{
		Name:         "mcp-fess",
		Title:        c.Domain.Name,
		Version:      o.Version,
		Instructions: tools.Instructions(),
		Domain: &mcpserver.Domain{ID: about.ID, Name: about.Name, Description: about.Description,
			LabelFilter: about.Label},
		Revision:    o.Revision,
		MaxInFlight: c.Limits.MaxInFlightRequests,
		Log:         o.Log,
		Header:      Header(c),
	})
	tools.Register(b.MCP)
	return b, nil
}

// newFetcher returns the fetcher for documents whose text Fess does not send.
func newFetcher(c *fessconfig.Config, version string) (*fetch.Fetcher, error) {
	f := &c.ContentFetch
	o := fetch.Options{
		Schemes:      f.AllowedSchemes,
		AllowedHosts: f.AllowedHostAllowlist,
		AllowPrivate: f.AllowPrivateNetworkTargets,
		MaxBytes:     int64(f.MaxBytes),
		Timeout:      time.Duration(f.TimeoutMs) * time.Millisecond,
		UserAgent:    cmp.Or(f.UserAgent, "knowhow/"+version),
	}
	if f.Proxy != "" {
		o.Proxy, _ = url.Parse(f.Proxy) // was checked when it was read
	}
	fetcher, err := fetch.New(o)
	if err != nil {
		return nil, fmt.Errorf("preparing to fetch documents: %w", err)
	}
	return fetcher, nil
}

// Header returns the function that stores the token from a caller's header, with
// which the client calls Fess. It is nil unless fessAuth.passThrough is set:
// otherwise an unused header would determine the owner of jobs.
func Header(c *fessconfig.Config) func(context.Context, http.Header) context.Context {
	if !c.FessAuth.PassThrough {
		return nil
	}
	return func(ctx context.Context, h http.Header) context.Context {
		return search.WithToken(ctx, h.Get("X-Fess-Token"))
	}
}

// jobStop is the time limit for the end of running jobs when the bridge ends, which
// takes at most a second.
const jobStop = 100 * time.Millisecond

// Close ends the jobs and closes the connections. Work that does not return in time is
// abandoned.
func (b *Bridge) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStop)
	defer cancel()
	if err := b.jobs.Close(ctx); err != nil {
		b.o.Log.Warn("leaving jobs behind that do not end", "error", err)
	}
	b.domain.close()
}

// Check logs a warning if Fess does not answer or is not healthy. In that state, each
// request fails separately. Without a token of the bridge it does nothing.
func (b *Bridge) Check(ctx context.Context) {
	c, log := b.o.Config, b.o.Log
	if c.FessAuth.PassThrough {
		return
	}
	health, err := b.domain.client.Health(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Warn("Fess does not answer; requests will fail until it does", "fessBaseUrl", c.FessBaseURL, "error",
			c.Explain(err))
	case health.Status == "red":
		log.Warn("Fess answers that its search engine is down", "fessBaseUrl", c.FessBaseURL)
	default:
		log.Info("Fess answers", "fessBaseUrl", c.FessBaseURL, "status", health.Status)
	}
}
