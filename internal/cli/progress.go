package cli

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
	"knowhow/internal/index"
	"knowhow/internal/ingest"
)

// maxNamed is how many files that could not be read are named one by one.
const maxNamed = 10

// progressEvery is how often progress is put into the index.
const progressEvery = 300 * time.Millisecond

// A progressView shows how far indexing has come: on a terminal as a bar with
// rate and remaining time, elsewhere as a line when a source is done; and in
// the index, where the searches of all processes find it.
type progressView struct {
	index *index.Index
	out   io.Writer

	mu    sync.Mutex
	label string                   // the source that is being indexed
	bar   *progressbar.ProgressBar // nil where there is nothing to show
	wrote time.Time                // when progress was last put into the index
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
		done := p.Done >= p.Total
		if v.label != p.Label {
			v.label, v.wrote = p.Label, time.Time{}
			v.begin("indexing "+p.Label, p.Total)
		}
		if v.bar != nil {
			// The bar's writer is the terminal: if that is gone,
			// nobody is left to be told.
			_ = v.bar.Set(p.Done)
		}
		if now := time.Now(); done || now.Sub(v.wrote) >= progressEvery {
			v.wrote = now
			n, total := p.Done, p.Total
			if done {
				n, total = 0, 0
			}
			// Progress is a courtesy: what really fails shows when
			// documents are applied.
			_ = v.index.SetProgress(ctx, n, total)
		}
		if done {
			v.end()
			v.label = ""
		}
	}
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
	v.label = ""
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(v.out, "%s: %v; the other sources go on\n", src.Label, err)
	}
	if err != nil || res == nil {
		return
	}
	total := res.Added + res.Changed + res.Unchanged
	line := fmt.Sprintf("%s: %s", src.Label, plural(total, "document"))
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
		fmt.Fprintf(v.out, "%s: left out %q: %v\n", src.Label, s.Path, s.Err)
	}
	if more := res.SkippedTotal - maxNamed; more > 0 {
		fmt.Fprintf(v.out, "%s: and %d more\n", src.Label, more)
	}
}

// maintained shows how far the rebuilding of an index has come.
func (v *progressView) maintained(done, total int) {
	v.report(context.Background())(ingest.Progress{Label: "again, for a new version", Done: done, Total: total})
}

// plural counts things in English.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
