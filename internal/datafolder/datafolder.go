// Package datafolder opens the data folder of the program: the index, and the store
// that has the documents in its place, if there is one. It knows which model makes
// their vectors, and does the work on them that belongs to no request.
package datafolder

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/scope"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// A Folder is a data folder. The caller closes it.
type Folder struct {
	Dir   string
	Model Model

	// Index has the sources, the jobs and, without a store, the documents. It is nil if
	// only the store is read.
	Index *index.Index

	Store *opensearch.Store // has the documents; nil if Index has them

	// Explain adds to an error of the store how to set the option that it is due to.
	Explain func(error) error

	Log *slog.Logger // nil discards

	stop context.CancelFunc // of the work in the background; nil if there is none
	work sync.WaitGroup
}

// HasIndex reports whether a data folder contains an index. A folder that does not
// exist contains none. It is an error if the folder cannot be read.
func HasIndex(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, index.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// OpenIndex opens the index, and creates it if there is none.
func (f *Folder) OpenIndex(ctx context.Context) (err error) {
	f.Index, err = index.Open(ctx, index.Options{Dir: f.Dir, Log: f.Log, Embedder: f.Model.Queries,
		EmbedTime: f.Model.Wait, ComputeTime: f.Model.Compute})
	return err
}

// Close ends the work in the background, and closes the index and the store.
func (f *Folder) Close() error {
	if f.stop != nil {
		f.stop()
		f.work.Wait()
	}
	if f.Store != nil {
		f.Store.Close() // never fails
	}
	if f.Index == nil {
		return nil
	}
	return f.Index.Close()
}

// Service returns the search service over all documents of sources.
func (f *Folder) Service() scope.Service {
	if f.Store != nil {
		return stored{f.Store, f.Index}
	}
	return f.Index
}

// Sources returns the sources of all data folders of the store, or of this one.
func (f *Folder) Sources(ctx context.Context) ([]document.Source, error) {
	if f.Store != nil {
		return f.Store.Sources(ctx)
	}
	return f.Index.Sources(ctx)
}

// WrittenLabels returns the labels of the collections that users have written in.
func (f *Folder) WrittenLabels(ctx context.Context) ([]string, error) {
	all, err := f.Service().Labels(ctx)
	if err != nil {
		return nil, err
	}
	labels := make([]string, len(all))
	for i, l := range all {
		labels[i] = l.Value
	}
	if f.Store != nil {
		return f.Store.WrittenLabels(ctx, labels)
	}
	return f.Index.WrittenLabels(ctx, labels)
}

// Base returns the knowledge base: what users added and, of the files of sources,
// those of o.Sources.
func (f *Folder) Base(o kb.Options) *kb.Local {
	o.Index, o.Dir, o.Log = f.Index, f.Dir, f.Log
	if f.Store != nil {
		o.Store = f.Store
	}
	return kb.NewLocal(o)
}

// Work begins to do the jobs of a base and to compute the vectors of its documents,
// until ctx ends or the folder is closed.
func (f *Folder) Work(ctx context.Context, base *kb.Local, lines *terminal.Lines) {
	ctx, f.stop = context.WithCancel(ctx)
	f.work.Go(func() { base.Run(ctx) })
	if f.Model.Documents != nil {
		o := indexing.EmbedOptions{Index: f.Index, Embedder: f.Model.Documents, Labels: base.Labels, Lines: lines,
			Log: f.Log}
		if f.Store != nil {
			o.Store = f.Store
		}
		f.work.Go(func() { indexing.Embed(ctx, o) })
	}
}

// A stored is the search service over sources whose documents are in a store, and
// whose indexing is recorded in the data folder.
type stored struct {
	*opensearch.Store
	local *index.Index // nil: nothing is indexed by this data folder
}

// Indexing reports the progress of the processes with the same data folder.
func (s stored) Indexing(ctx context.Context, labels []string) (done, total int, busy bool) {
	if s.local == nil {
		return 0, 0, false
	}
	return s.local.Indexing(ctx, labels)
}

// Unfinished reports what the processes with the same data folder have not
// indexed.
func (s stored) Unfinished(ctx context.Context, labels []string) ([]search.Unfinished, error) {
	if s.local == nil {
		return nil, nil
	}
	return s.local.Unfinished(ctx, labels)
}

// Embedding returns 0 and 0: searches of the store do not report how many of its
// passages have vectors.
func (s stored) Embedding(context.Context, []string) (done, total int, err error) {
	return 0, 0, nil
}
