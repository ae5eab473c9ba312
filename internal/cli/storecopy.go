package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/storecopy"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const storeHelp = `Usage: {cmd} copy --from URL --to URL

Copies documents between stores. See "{cmd} copy --help".

Examples:
  {cmd} copy --from file:/var/lib/knowhow --to opensearch+https://search:9200/kb
`

const storeCopyHelp = `Usage: {cmd} --from URL --to URL

Copies all documents, notes and tags, and the list of sources, and compares them
afterwards. file:PATH is the data folder PATH. Documents that are already there
are left as they are, so the command continues where it was interrupted. The
numbers of documents (document_id) and their times of creation are new, and
vectors are computed again by the server. The queue of jobs is not copied: wait
until it is empty.

The exit status is 1 if the copy differs from the original, for example because
documents were changed meanwhile. Then run the command again. Documents that only
the copy has, such as those that were removed from the original since an earlier
copy, are counted and stay.

{flags}

Examples:
  {cmd} --from file:/var/lib/knowhow --to opensearch+https://search:9200/kb
  {cmd} --from opensearch+http://127.0.0.1:9200/kb --to file:/backups/kb
`

// A storeCopyCommand copies documents between stores.
type storeCopyCommand struct {
	From copyAddress `flag:"from" value:"URL" secret:"" help:"store of the original: file:PATH or opensearch+http[s]://HOST:PORT/PREFIX"`
	To   copyAddress `flag:"to" value:"URL" secret:"" help:"store of the copy: file:PATH or opensearch+http[s]://HOST:PORT/PREFIX"`
	credentials
}

// A copyAddress is the URL of a store to copy from or to.
type copyAddress string

func (a *copyAddress) set(s string) error {
	*a = copyAddress(s)
	if path, ok := strings.CutPrefix(s, "file:"); ok && path != "" {
		return nil
	}
	if !opensearch.IsAddress(s) {
		return errors.New("want file:PATH, opensearch+http://HOST:PORT/PREFIX or opensearch+https://HOST:PORT/PREFIX")
	}
	return checkStore(s)
}

// explainCopied adds to an error of a copied store how to set the option that it
// is due to.
func explainCopied(err error) error {
	advice := maps.Clone(storeAdvice)
	advice[opensearch.AddressReason] = "the address is set with --from or --to"
	return explainReason(err, advice)
}

// A copiedStore is a store that is copied from or to: a data folder with its index, or
// a store without a data folder.
type copiedStore struct {
	*datafolder.Folder
	records storecopy.Store
}

// openCopied opens a store, which has a part in a move if it is a cluster.
func (v *invocation) openCopied(ctx context.Context, address copyAddress, o credentials, create bool,
	move opensearch.Move) (s *copiedStore, err error) {
	f := &datafolder.Folder{Explain: explainStore, Log: v.warnings()}
	dir, ok := strings.CutPrefix(string(address), "file:")
	if !ok {
		if f.Store, err = (&storeFlags{storeAddress(address), o}).moved(f.Model, move, f.Log); err == nil {
			err = explainCopied(f.Store.Open(ctx))
		}
		return &copiedStore{f, f.Store}, err
	}
	f.Dir = v.expand(dir)
	if !create && !fileExists(filepath.Join(f.Dir, index.FileName)) {
		return nil, &hintError{fmt.Errorf("%s has no documents", sanitize.Escape(f.Dir)),
			"Name a data folder, such as that of serve."}
	}
	err = indexError(f.OpenIndex(ctx))
	return &copiedStore{f, f.Index}, err
}

// documents returns the number of documents.
func (s *copiedStore) documents(ctx context.Context) (int, error) {
	if s.Index != nil {
		stats, err := s.Index.Stats(ctx)
		return stats.Documents, err
	}
	stats, err := s.Store.Stats(ctx)
	return stats.Documents, err
}

// copySources copies the list of sources.
func (s *copiedStore) copySources(ctx context.Context, to *copiedStore) error {
	if s.Index == nil && to.Index == nil {
		return s.Store.CopySources(ctx, to.Store)
	}
	sources, err := s.Sources(ctx)
	switch {
	case err != nil:
		return err
	case to.Index == nil:
		return claimSources(ctx, &datafolder.Folder{Dir: s.Dir, Store: to.Store, Explain: explainStore}, sources)
	}
	for _, src := range sources {
		if err := to.Index.AddSource(ctx, src); err != nil {
			return err
		}
	}
	return nil
}

func (o *storeCopyCommand) run(ctx context.Context, v *invocation) (err error) {
	switch {
	case o.From == "" || o.To == "":
		return v.usagef("want --from and --to")
	case o.From == o.To && opensearch.IsAddress(string(o.From)):
		return o.copy(ctx, v, opensearch.From, opensearch.To)
	case o.From == o.To:
		return v.usagef("--from and --to are the same store")
	}
	return o.copy(ctx, v, opensearch.Stay, opensearch.Stay)
}

// copy copies documents. With the parts of a move, the indexes of a cluster are
// replaced by new ones.
func (o *storeCopyCommand) copy(ctx context.Context, v *invocation, fromMove, toMove opensearch.Move) (err error) {
	from, err := v.openCopied(ctx, o.From, o.credentials, false, fromMove)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := v.openCopied(ctx, o.To, o.credentials, true, toMove)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if from.Dir != "" && to.Dir != "" && sameFolder(from.Dir, to.Dir) {
		return v.usagef("--from and --to are the same store")
	}
	lines := terminal.NewLines(v.stderr, nil)
	total, err := from.documents(ctx)
	if err != nil {
		return explainCopied(err)
	}
	if toMove == opensearch.Stay { // otherwise they are where they are
		if err := from.copySources(ctx, to); err != nil {
			return explainCopied(err)
		}
	}
	bar := terminal.Bar{Things: "documents"}
	result, err := storecopy.Copy(ctx, storecopy.Options{From: from.records, To: to.records, Report: func(step string,
		done int) {
		if bar.What != step {
			bar.What, bar.Since = step, time.Now()
		}
		bar.Done, bar.Total = done, max(total, done)
		if lines.Terminal() {
			lines.Show(bar)
		}
	}})
	lines.Show(terminal.Bar{})
	if err != nil {
		return &hintError{explainCopied(err), "The documents that were copied stay: run the command again to continue."}
	}
	fmt.Fprintf(lines, "%s copied, %d already there, %d compared\n", terminal.Plural(result.Copied, "document"),
		result.Unchanged, result.Compared)
	if result.Differing > 0 {
		for _, name := range result.Different {
			fmt.Fprintf(lines, "differs: %s\n", sanitize.Escape(name))
		}
		return &hintError{fmt.Errorf("%s of the copy differ from the original",
			terminal.Plural(result.Differing, "document")), "They may have changed meanwhile: run the command again."}
	}
	there, err := to.documents(ctx)
	if err != nil {
		return explainCopied(err)
	}
	switch {
	case there < result.Compared:
		return &hintError{fmt.Errorf("the copy has %d documents, the original %d", there, result.Compared),
			"Documents were deleted meanwhile: run the command again."}
	case there > result.Compared && toMove == opensearch.To:
		return &hintError{moreError(there - result.Compared), "They were removed since the copy was begun. " +
			"Delete the new indexes in OpenSearch, which are not used yet, and run the command again."}
	case there > result.Compared:
		return &hintError{moreError(there - result.Compared), "They stay. If they were removed from the original, " +
			"remove them from the copy too, or copy to an empty store."}
	}
	if toMove == opensearch.To {
		old, err := to.Store.Switch(ctx)
		if err != nil {
			return explainCopied(err)
		}
		fmt.Fprintf(lines, "the new indexes are used from now on; delete the old ones in OpenSearch when they are not "+
			"needed any more: %s\n", strings.Join(old, ", "))
	}
	_, err = fmt.Fprintf(v.stdout, "the copy has %s of the original, without a difference\n",
		terminal.Plural(result.Compared, "document"))
	return err
}

// moreError returns the error for n documents that only the copy has.
func moreError(n int) error {
	return fmt.Errorf("the copy has %s that the original lacks", terminal.Plural(n, "document"))
}

// sameFolder reports whether two paths are the same folder.
func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
