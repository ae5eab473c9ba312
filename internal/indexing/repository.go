package indexing

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/repository"
)

// Times between two looks at a repository and a web site.
const (
	defaultEvery     = time.Hour
	defaultSiteEvery = 24 * time.Hour
	retryAfter       = time.Minute // after a failure, doubled by each further one
)

// follow clones a repository and indexes its files, and unless w.Once is set, it
// fetches what has changed from time to time. While the repository cannot be
// reached, the files of before remain.
func (w *Indexer) follow(ctx context.Context, src document.Source) error {
	remote, err := repository.Parse(src.Path)
	if err != nil {
		return err
	}
	clone := repository.Open(remote.Dir(w.Dir), remote, os.Environ())
	every := src.Rules.Every
	if every == 0 {
		every = defaultEvery
	}
	indexed := ""
	var update, sync failure
	for wait, retry := every, retryAfter; ; wait = every {
		commit, err := clone.Update(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		again := update.again(err)
		if err != nil {
			wait = min(retry, every)
			retry = min(2*retry, every)
			switch commit = clone.Commit(ctx); {
			case commit == "" && !again:
				w.view.finished(ctx, src, nil, err)
			case commit == "":
				w.view.stop(ctx, src.Label, err)
			case !again:
				w.Log.Warn("cannot update the copy of a repository; its files of before are served, and it is tried again",
					"label", src.Label, "error", err)
			}
		} else {
			retry = retryAfter
		}
		if commit != "" && commit != indexed {
			switch err := w.syncClone(ctx, src, clone, commit, indexed == "", &sync); {
			case err == nil:
				indexed = commit
			case ctx.Err() != nil, errors.Is(err, errkind.Corrupt), errors.Is(err, errRemoved):
				return err
			default:
				wait = min(retryAfter, every)
			}
		}
		if w.Once {
			return nil // an error has been reported
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// A failure is the message of the last failure, or "". A failure is reported once, until
// it changes.
type failure string

// again notes the result of an attempt, and reports whether it is the failure of before.
func (f *failure) again(err error) bool {
	last := *f
	*f = ""
	if err != nil {
		*f = failure(err.Error())
	}
	return err != nil && *f == last
}

// syncClone indexes the files of a commit. first reports whether its result is printed,
// and last is the failure of the last attempt.
func (w *Indexer) syncClone(ctx context.Context, src document.Source, clone *repository.Clone, commit string, first bool,
	last *failure) error {
	o, leftOut, end, err := w.options(ctx, src, commit)
	if err != nil {
		return err
	}
	defer end()
	o.Root = clone.Root()
	o.Map = func(name string) (path, url string, ok bool) {
		return strings.ToValidUTF8(name, "\ufffd"), clone.Remote().Page(commit, name), true
	}
	modules, err := clone.Submodules(ctx)
	if err != nil {
		return err
	}
	for _, m := range modules {
		o.Missing = append(o.Missing, ingest.LeftOut{Path: m + "/", Reason: ingest.Submodule})
	}
	res, err := ingest.New(o).Sync(ctx, src)
	leftOut.store(ctx, res, err)
	switch {
	case errors.Is(err, errRemoved):
	case first && !last.again(err):
		w.view.finished(ctx, src, res, err)
	default:
		w.view.stop(ctx, src.Label, notCanceled(err))
	}
	return err
}
