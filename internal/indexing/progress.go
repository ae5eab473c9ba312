package indexing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// maxNamed is the maximum number of left-out files that are named.
const maxNamed = 10

// Intervals of showing progress.
const (
	storeEvery = 300 * time.Millisecond // in the index
	printEvery = 10 * time.Second       // as a line, without a terminal
	barAfter   = 300 * time.Millisecond // shorter work shows no bar
)

// A progressStore stores the progress for all processes, as [index.Index] does.
type progressStore interface {
	SetProgress(ctx context.Context, progress ...index.Progress) error
}

// A progressView shows the progress of indexing all sources of a process: as a
// bar on a terminal, otherwise as a line from time to time. It also stores the
// progress in the index for the searches of all processes.
type progressView struct {
	store progressStore
	lines *terminal.Lines

	mu      sync.Mutex
	work    map[string]*work          // by label; everything since the last time that nothing was being indexed
	since   time.Time                 // when the first work began
	stored  time.Time                 // when progress was last stored in the index
	printed time.Time                 // when it was last printed
	stopped map[string]index.Progress // labels whose last indexing by this process was not completed
}

// A work is the progress of one source.
type work struct {
	now   ingest.Progress
	since time.Time
	first bool // the first sync, at the end of which finished is called
	done  bool
}

// begin records that the first sync of a source is about to start.
func (v *progressView) begin(ctx context.Context, label string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(label).first = true
	v.show(ctx, true)
}

// add returns new work. The caller must have locked mu.
func (v *progressView) add(label string) *work {
	if len(v.work) == 0 {
		v.work, v.since = map[string]*work{}, time.Now()
		v.printed = v.since
	}
	w := &work{since: time.Now()}
	v.work[label] = w
	return w
}

// report records the progress of a source.
func (v *progressView) report(ctx context.Context, p ingest.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.work[p.Label]
	if w == nil {
		w = v.add(p.Label)
	}
	counted := w.now.Total == 0 && p.Total > 0
	w.now = p
	w.done = p.Done >= p.Total && !w.first
	v.show(ctx, w.done || counted)
}

// refresh shows the progress again, because the progress in the index expires.
func (v *progressView) refresh(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show(ctx, false)
}

// stop records that the work on a source has stopped: with an error, if it is not
// complete.
func (v *progressView) stop(ctx context.Context, label string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.work[label]
	_, failed := v.stopped[label]
	switch {
	case err != nil && label != "":
		v.fail(label, err)
	case failed:
		delete(v.stopped, label)
	case w == nil:
		return
	}
	if w != nil && !w.done {
		w.done = true
		v.show(ctx, true)
	} else if w == nil && (err != nil || failed) {
		p, ok := v.stopped[label]
		if !ok {
			p.Label = label
		}
		_ = v.store.SetProgress(ctx, p) // an error is ignored, see show
	}
}

// fail records why the work on a source has stopped. The caller must have locked
// mu.
func (v *progressView) fail(label string, err error) {
	p := v.stopped[label] // if not even the documents were counted this time
	p.Label, p.Stopped, p.Message = label, search.Failed, errkind.Message(err)
	switch {
	case errors.Is(err, context.Canceled):
		p.Stopped, p.Message = search.Interrupted, ""
	case errors.Is(err, errkind.DiskFull):
		p.Stopped = search.DiskFull
	}
	if w := v.work[label]; w != nil {
		p.Done, p.Total, p.Unchanged = w.now.Done, w.now.Total, w.now.Unchanged
	}
	if v.stopped == nil {
		v.stopped = map[string]index.Progress{}
	}
	v.stopped[label] = p
}

// show shows the progress of all work if it is due, and at once if now is set.
// If no work is left, it removes the progress. The caller must have locked mu.
func (v *progressView) show(ctx context.Context, now bool) {
	if len(v.work) == 0 {
		return
	}
	var progress []index.Progress
	bar := terminal.Bar{Things: "documents", Since: v.since}
	busy := false
	for label, w := range v.work {
		p := index.Progress{Label: label, Done: w.now.Done, Total: w.now.Total, Unchanged: w.now.Unchanged}
		bar.Done, bar.Total, bar.Bytes = bar.Done+p.Done, bar.Total+p.Total, bar.Bytes+w.now.Bytes
		if stopped, ok := v.stopped[label]; ok && w.done {
			p = stopped
		} else if !w.done {
			busy = true
			if p.Total == 0 { // the files have not been counted yet
				p.Total, p.Unchanged = 1, -1
			}
		}
		progress = append(progress, p)
	}
	if !busy {
		for i, p := range progress {
			if p.Stopped == "" {
				progress[i] = index.Progress{Label: p.Label}
			}
		}
		bar, v.work = terminal.Bar{}, nil
	}
	bar.What = v.describeWork()
	if now || time.Since(v.stored) >= storeEvery {
		v.stored = time.Now()
		// An error is ignored: a real failure is also reported when documents
		// are applied.
		_ = v.store.SetProgress(ctx, progress...)
	}
	switch {
	case v.lines.Terminal():
		if !busy || time.Since(v.since) >= barAfter {
			v.lines.Show(bar)
		}
	case bar.Total > 0 && time.Since(v.printed) >= printEvery:
		v.printed = time.Now()
		fmt.Fprintln(v.lines, bar)
	}
}

// describeWork describes the current work. The caller must have locked mu.
func (v *progressView) describeWork() string {
	if len(v.work) != 1 {
		return "indexing " + terminal.Plural(len(v.work), "source")
	}
	for label := range v.work {
		if label != "" {
			return "indexing " + label
		}
	}
	return "updating the index for this version of knowhow"
}

// finished prints the result of the first sync of a source: one line of counts,
// one that counts left-out files, and one for each file that could not be
// indexed.
func (v *progressView) finished(ctx context.Context, src document.Source, res *ingest.Result, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	v.mu.Lock()
	since := time.Now()
	if w := v.work[src.Label]; w != nil {
		since = w.since
	}
	v.mu.Unlock()
	v.stop(ctx, src.Label, err)

	var out strings.Builder
	if err != nil {
		fmt.Fprintf(&out, "%s: indexing is not complete: %s; what is indexed of it can still be searched\n", src.Label,
			sanitize.Escape(errkind.Message(err)))
	} else {
		fmt.Fprintf(&out, "%s: %s indexed in %s%s\n", src.Label,
			terminal.Plural(res.Added+res.Changed+res.Unchanged, "document"),
			terminal.Duration(max(time.Since(since), 1)), news(res))
	}
	if res != nil {
		writeLeftOut(&out, src.Label, res)
	}
	// An error is ignored: there is no other place to report it.
	_, _ = v.lines.Write([]byte(out.String()))
}

// news returns the changes, as in ": 1 new, 2 removed", or "" if all documents are
// new.
func news(res *ingest.Result) string {
	var news []string
	for _, n := range []struct {
		n    int
		what string
	}{{res.Added, "new"}, {res.Changed, "changed"}, {res.Removed, "removed"}} {
		if n.n > 0 {
			news = append(news, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	switch {
	case len(news) == 0 && res.Unchanged > 0:
		return ": no changes"
	case len(news) == 0 || res.Added > 0 && res.Unchanged+res.Changed+res.Removed == 0:
		return ""
	}
	return ": " + strings.Join(news, ", ")
}

// writeLeftOut prints what was left out, and what is indexed in part.
func writeLeftOut(out *strings.Builder, label string, res *ingest.Result) {
	leftOut, inPart := ingest.SplitInPart(res.LeftOut)
	if len(leftOut) > 0 {
		fmt.Fprintf(out, "%s: left out: %s\n", label, terminal.Counts(leftOut))
	}
	if len(inPart) > 0 {
		fmt.Fprintf(out, "%s: indexed, but %s\n", label, terminal.Counts(inPart))
	}
	for _, s := range res.Skipped[:min(maxNamed, len(res.Skipped))] {
		what := "left out"
		if s.Reason.InPart() {
			what = "indexed in part"
		}
		fmt.Fprintf(out, "%s: %s %q: %s\n", label, what, s.Path, sanitize.Escape(s.Message()))
	}
	if more := res.SkippedTotal - maxNamed; more > 0 {
		fmt.Fprintf(out, "%s: and %d more\n", label, more)
	}
}

// interrupted prints a last line if sources were not fully synced, and stores
// which ones.
func (v *progressView) interrupted(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	done, total, first := 0, 0, false
	for label, w := range v.work {
		done, total = done+w.now.Unchanged+w.now.Done, total+w.now.Unchanged+w.now.Total
		first = first || w.first && !w.done
		if !w.done && label != "" {
			v.fail(label, context.Canceled)
		}
		w.done = true
	}
	v.show(ctx, true)
	switch {
	case !first:
	case total == 0:
		fmt.Fprintln(v.lines, "interrupted before the documents were counted; start again to continue")
	default:
		fmt.Fprintf(v.lines, "interrupted: %d of %s are indexed; start again to continue\n", done,
			terminal.Plural(total, "document"))
	}
}
