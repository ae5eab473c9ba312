package indexing

import (
	"context"
	"errors"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/site"
)

// crawl keeps a mirror of a web site and indexes its pages, while it visits them.
// Unless w.Once is set, it visits them again from time to time, also when the program
// starts again only if they are due.
func (w *Indexer) crawl(ctx context.Context, src document.Source) error {
	s, err := site.Parse(src.Path)
	if err != nil {
		return err
	}
	o := w.site
	o.Version, o.Hosts = w.Version, &w.hosts
	m, err := site.Open(s.Dir(w.Dir), s, o)
	if err != nil {
		return err
	}
	defer m.Close()
	c := &crawl{Indexer: w, src: src, mirror: m, first: true}
	every := src.Rules.Every
	if every == 0 {
		every = defaultSiteEvery
	}
	if s := m.Snapshot(c.options(ctx)); m.Complete() && s.Len() > 0 && !w.Once { // what is there can be searched at once
		err := c.sync(ctx, s)
		if stop := fatal(ctx, err); stop != nil {
			return stop
		}
		c.finished(ctx, err)
	}
	due := m.Due(c.options(ctx), every)
	for retry := retryAfter; ; {
		if time.Until(due) <= 0 || w.Once {
			err := c.round(ctx)
			if stop := fatal(ctx, err); stop != nil {
				return stop
			}
			c.finished(ctx, err)
			if w.Once {
				return nil // an error has been reported
			}
			if err == nil {
				due, retry = m.Due(c.options(ctx), every), retryAfter
			} else {
				due = time.Now().Add(min(retry, every))
				retry = min(2*retry, every)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(due)):
		}
	}
}

// fatal returns the error that ends the indexing of a source, or nil.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errkind.Corrupt) || errors.Is(err, errRemoved) {
		return err
	}
	return nil
}

// A crawl is the indexing of a site.
type crawl struct {
	*Indexer
	src    document.Source
	mirror *site.Mirror
	first  bool           // no result has been printed yet
	empty  bool           // the last round found no document
	failed string         // the last failure that was reported
	res    *ingest.Result // of the syncs since the last call of finished; nil if there was none
}

// options returns the options of a round.
func (c *crawl) options(ctx context.Context) site.RoundOptions {
	o := site.RoundOptions{
		Include: c.src.Rules.Include, Exclude: c.src.Rules.Exclude, MaxPages: c.src.Rules.MaxPages,
		Changed: c.sync,
	}
	if c.first { // later, what is indexed is complete
		o.Report = func(done, known int) {
			// As long as this is called, the round has not ended.
			c.view.report(ctx, ingest.Progress{Label: c.src.Label, Done: done, Total: max(known, done+1)})
		}
	}
	return o
}

// round visits the pages and indexes them. After an error, the pages that were visited
// are indexed.
func (c *crawl) round(ctx context.Context) error {
	o := c.options(ctx)
	err := c.mirror.Round(ctx, o)
	if stop := fatal(ctx, err); stop != nil {
		return stop
	}
	s := c.mirror.Snapshot(o)
	if c.empty = s.Len() == 0; c.empty && err != nil {
		c.view.report(ctx, ingest.Progress{Label: c.src.Label, Total: 1}) // searches say that documents are missing
	}
	return errors.Join(err, c.sync(ctx, s))
}

// sync indexes the documents of a mirror.
func (c *crawl) sync(ctx context.Context, s *site.Snapshot) error {
	o, leftOut, end, err := c.Indexer.options(ctx, c.src, s.Version())
	if err != nil {
		return err
	}
	defer end()
	o.Report = nil // the visits are reported
	o.Root = s.Root
	o.Map = func(name string) (path, url string, ok bool) {
		d, ok := s.Document(name)
		return d.Path, d.URL, ok
	}
	o.Make = func(ctx context.Context, in extract.Input, known document.Document) (
		[]*document.Document, []ingest.Skipped, error) {
		d := s.DocumentAt(known.Path)
		in.MediaType, in.Data = d.MediaType, s.Cut(d, in.Data)
		known.Host = s.Host
		known.Modified = known.Modified.Truncate(time.Second) // the rest is made of the content; see package site
		return ingest.MakeAll(ctx, in, known)
	}
	for _, l := range c.mirror.Left() {
		o.Missing = append(o.Missing, ingest.LeftOut{Path: l.Path, Reason: ingest.Reason(l.Reason)})
	}
	before := o.LeftOut
	o.LeftOut = func(ctx context.Context, label string) ([]ingest.Skipped, error) { // of files alone
		list, err := before(ctx, label)
		var files []ingest.Skipped
		for _, l := range list {
			if !site.IsReason(string(l.Reason)) {
				files = append(files, l)
			}
		}
		return files, err
	}
	src := c.src
	src.Rules = document.Rules{NoIgnore: true} // they have been applied
	res, err := ingest.New(o).Sync(ctx, src)
	leftOut.store(ctx, res, err)
	c.add(res)
	return err
}

// add adds the result of a sync to that of the round.
func (c *crawl) add(res *ingest.Result) {
	all := res.Added + res.Changed + res.Unchanged
	if c.res != nil {
		res.Added, res.Changed, res.Removed = res.Added+c.res.Added, res.Changed+c.res.Changed, res.Removed+c.res.Removed
	}
	// A page may be new and then change in the same round.
	res.Added = min(res.Added, all)
	res.Changed = min(res.Changed, all-res.Added)
	res.Unchanged = all - res.Added - res.Changed
	c.res = res
}

// finished reports the end of a round: the first one with its result, and a failure
// unless it is the same as before.
func (c *crawl) finished(ctx context.Context, err error) {
	res, failed := c.res, ""
	if c.res = nil; err != nil {
		failed = err.Error()
	}
	again := err != nil && failed == c.failed
	c.failed = failed
	switch {
	case c.first && !again:
		c.first = err != nil
		c.view.finished(ctx, c.src, res, err)
		return
	case c.first:
		c.view.stop(ctx, c.src.Label, err)
		return
	case err != nil && !again:
		c.Log.Warn("cannot read all pages of a site now; what is indexed of it is served, and it is tried again",
			"label", c.src.Label, "error", err)
	}
	if !c.empty {
		err = nil // what is indexed is complete, but may be old
	}
	c.view.stop(ctx, c.src.Label, err)
	if res != nil && res.Added+res.Changed+res.Removed > 0 {
		c.Log.Info("indexed changes", "label", c.src.Label, "added", res.Added, "changed", res.Changed, "removed", res.Removed)
	}
}
