package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/fessmcp"
	"knowhow/internal/fetch"
	"knowhow/internal/job"
)

const (
	// jobThreshold is how long a call may take before it becomes a job,
	// where no configuration says otherwise.
	jobThreshold = 2 * time.Second

	// jobKeep is how long a job can be asked for after its end.
	jobKeep = 10 * time.Minute

	// jobStop is how long the jobs that still run have to return when a
	// server ends: a part of the second in which it does.
	jobStop = 100 * time.Millisecond
)

// closeJobs ends all jobs. Work that does not return in time is left behind.
func closeJobs(ctx context.Context, log *slog.Logger, all ...*job.Manager) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStop)
	defer cancel()
	for _, m := range all {
		if err := m.Close(ctx); err != nil {
			log.Warn("leaving jobs behind that do not end", "error", err)
		}
	}
}

// jobs makes the manager for what takes longer than the threshold.
func (c *FessConfig) jobs(log *slog.Logger) *job.Manager {
	return job.New(job.Options{
		Threshold:  time.Duration(c.Timeouts.LongRunningThresholdMs) * time.Millisecond,
		Keep:       jobKeep,
		MaxRunning: c.Limits.MaxInFlightRequests,
		Log:        log,
	})
}

// fetcher makes what gets documents from their addresses.
func (c *FessConfig) fetcher() (*fetch.Fetcher, error) {
	f := &c.ContentFetch
	o := fetch.Options{
		Schemes:      f.AllowedSchemes,
		AllowedHosts: f.AllowedHostAllowlist,
		AllowPrivate: f.AllowPrivateNetworkTargets,
		MaxBytes:     int64(f.MaxBytes),
		Timeout:      time.Duration(f.TimeoutMs) * time.Millisecond,
		UserAgent:    f.UserAgent,
	}
	if o.UserAgent == "" {
		o.UserAgent = "knowhow/" + version()
	}
	if f.Proxy != "" {
		u, err := url.Parse(f.Proxy)
		if err != nil {
			return nil, errors.New("contentFetch.proxy: want an absolute http or https URL") // the error may hold a password
		}
		o.Proxy = u
	}
	got, err := fetch.New(o)
	if err != nil {
		return nil, &hintError{fmt.Errorf("preparing to fetch documents: %w", err), "Check contentFetch in the configuration."}
	}
	return got, nil
}

// content says where texts come from that Fess does not send.
func (c *FessConfig) content(f *fetch.Fetcher) *fessmcp.Content {
	content := &fessmcp.Content{
		Enabled:   c.ContentFetch.Enabled,
		Fetch:     f,
		MaxBytes:  int64(c.ContentFetch.MaxBytes),
		FessCache: c.ContentFetch.FessCache,
		EnablePDF: c.ContentFetch.EnablePDF,
	}
	if len(c.ContentFetch.AllowedSchemes) == 0 {
		// To package fetch an empty list is no list; here it stands in the
		// file, because the default is another.
		content.Fetch = noSchemes{}
	}
	return content
}

// noSchemes fetches nothing.
type noSchemes struct{}

var errNoSchemes = fmt.Errorf("no scheme is allowed: contentFetch.allowedSchemes is empty: %w", errkind.Denied)

func (noSchemes) Check(string) error { return errNoSchemes }

func (noSchemes) Get(context.Context, string, func(done, total int64)) (*fetch.Document, error) {
	return nil, errNoSchemes
}
