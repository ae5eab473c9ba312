package indexing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/ingest"
	"knowhow/internal/terminal"
)

// maxNamed is how many files that could not be read are named one by one.
const maxNamed = 10

// progressEvery is how often progress is put into the index.
const progressEvery = 300 * time.Millisecond

// A progressSetter tells all processes how far indexing has come, as
// [index.Index.SetProgress] does.
type progressSetter interface {
	SetProgress(ctx context.Context, done, total int) error
}

// A progressView shows how far indexing has come: on a terminal as a bar with
// rate and remaining time, elsewhere as a line when a source is done; and in
// the index, where the searches of all processes find it.
type progressView struct {
	index progressSetter
	out   io.Writer

	mu     sync.Mutex
	label  string                   // the source that is being indexed
	bar    *progressbar.ProgressBar // nil where there is nothing to show
	wrote  time.Time                // when progress was last put into the index
	now    ingest.Progress          // of the source that is being indexed
	before int                      // documents of the sources before it
	left   int                      // sources still to be looked at, this one included
}

// report returns a function that shows progress. ctx limits its writing to
// the index.
func (v *progressView) report(ctx context.Context) func(ingest.Progress) {
	return func(p ingest.Progress) {
		if p.Total == 0 {
			return // nothing to do; while watching that is every few seconds
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.label != p.Label {
			v.label = p.Label
			v.begin("indexing "+p.Label, p.Total)
		}
		if v.bar != nil {
			// The bar's writer is the terminal: if that is gone,
			// nobody is left to be told.
			_ = v.bar.Set(p.Done)
		}
		v.now = p
		if p.Done < p.Total {
			if time.Since(v.wrote) >= progressEvery {
				v.write(ctx)
			}
			return
		}
		v.end()
		v.label = ""
		v.before += p.Total
		v.now = ingest.Progress{}
		v.write(ctx)
	}
}

// expect says how many sources will be looked at from now on: until that has
// come to its end, by [progressView.idle], the index is being worked on.
func (v *progressView) expect(ctx context.Context, sources int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.before, v.left = 0, sources
	v.write(ctx)
}

// idle says that everything has been looked at.
func (v *progressView) idle(ctx context.Context) {
	v.expect(ctx, 0)
}

// refresh repeats what is in the index, where it would grow stale otherwise.
func (v *progressView) refresh(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left > 0 || v.now.Total > 0 {
		v.write(ctx)
	}
}

// write puts the progress over all sources into the index. A source that has
// not been counted yet counts as one document.
func (v *progressView) write(ctx context.Context) {
	done, total := v.before+v.now.Done, v.before+max(v.now.Total, min(v.left, 1))+max(v.left-1, 0)
	if v.left == 0 && v.now.Total == 0 {
		done, total, v.before = 0, 0, 0
	}
	v.wrote = time.Now()
	// Progress is a courtesy: what really fails shows when documents are
	// applied.
	_ = v.index.SetProgress(ctx, done, total)
}

// begin starts a bar if the output is a terminal.
func (v *progressView) begin(what string, total int) {
	v.end()
	f, ok := v.out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	v.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(v.out), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("documents"),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}

// end takes the bar away.
func (v *progressView) end() {
	if v.bar != nil {
		_ = v.bar.Finish()
		v.bar = nil
	}
}

// finished writes one line about a source that was looked at, and names files
// that could not be read.
func (v *progressView) finished(src document.Source, res *ingest.Result, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end()
	v.label, v.now = "", ingest.Progress{}
	if v.left > 0 {
		v.left--
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(v.out, "%s: %s; what is indexed of it can still be searched\n", src.Label, errkind.Message(err))
	}
	if err != nil || res == nil {
		return
	}
	total := res.Added + res.Changed + res.Unchanged
	line := fmt.Sprintf("%s: %s", src.Label, terminal.Plural(total, "document"))
	var news []string
	for _, n := range []struct {
		n    int
		what string
	}{{res.Added, "new"}, {res.Changed, "changed"}, {res.Removed, "gone"}} {
		if n.n > 0 {
			news = append(news, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	if len(news) > 0 {
		line += " (" + strings.Join(news, ", ") + ")"
	}
	fmt.Fprintln(v.out, line)
	for _, s := range res.Skipped[:min(maxNamed, len(res.Skipped))] {
		fmt.Fprintf(v.out, "%s: left out %q: %s\n", src.Label, s.Path, errkind.Message(s.Err))
	}
	if more := res.SkippedTotal - maxNamed; more > 0 {
		fmt.Fprintf(v.out, "%s: and %d more\n", src.Label, more)
	}
}

// maintained shows how far the rebuilding of an index has come.
func (v *progressView) maintained(done, total int) {
	v.report(context.Background())(ingest.Progress{Label: "again, for a new version", Done: done, Total: total})
}
