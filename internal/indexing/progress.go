package indexing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/index"
	"knowhow/internal/ingest"
	"knowhow/internal/sanitize"
	"knowhow/internal/terminal"
)

// maxNamed is how many files that are left out are named one by one.
const maxNamed = 10

// Times of showing progress.
const (
	storeEvery = 300 * time.Millisecond // in the index
	printEvery = 10 * time.Second       // as a line, where there is no terminal
	barAfter   = 300 * time.Millisecond // work that takes less shows no bar
)

// A progressStore keeps the progress for all processes, as [index.Index] does.
type progressStore interface {
	SetProgress(ctx context.Context, progress ...index.Progress) error
}

// A progressView shows how far the indexing of all sources of a process has
// come: on a terminal as a bar, elsewhere as a line from time to time; and in
// the index, where the searches of all processes find it.
type progressView struct {
	store progressStore
	lines *terminal.Lines

	mu      sync.Mutex
	work    map[string]*work // by label; everything since nothing was being indexed
	since   time.Time        // when the first of work began
	stored  time.Time        // when progress was last put into the index
	printed time.Time        // when it was last printed
}

// A work is the progress of one source.
type work struct {
	now   ingest.Progress
	since time.Time
	first bool // it is the first sync, at whose end finished is called
	done  bool
}

// begin says that a process will sync a source for the first time.
func (v *progressView) begin(ctx context.Context, label string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(label).first = true
	v.show(ctx, true)
}

// add returns new work. The caller holds mu.
func (v *progressView) add(label string) *work {
	if len(v.work) == 0 {
		v.work, v.since = map[string]*work{}, time.Now()
		v.printed = v.since
	}
	w := &work{since: time.Now()}
	v.work[label] = w
	return w
}

// report takes in the progress of a source.
func (v *progressView) report(ctx context.Context, p ingest.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.work[p.Label]
	if w == nil {
		w = v.add(p.Label)
	}
	w.now = p
	w.done = p.Done >= p.Total && !w.first
	v.show(ctx, w.done)
}

// refresh shows the progress again, because what is in the index grows stale.
func (v *progressView) refresh(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show(ctx, false)
}

// stop says that the work on a source has stopped, finished or not.
func (v *progressView) stop(ctx context.Context, label string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w := v.work[label]; w != nil && !w.done {
		w.done = true
		v.show(ctx, true)
	}
}

// show shows the progress of all work where it is time to, and at once if now is
// set. When nothing is left to do it takes the progress away. The caller holds
// mu.
func (v *progressView) show(ctx context.Context, now bool) {
	if len(v.work) == 0 {
		return
	}
	var progress []index.Progress
	bar := terminal.Bar{Things: "documents", Since: v.since}
	busy := false
	for label, w := range v.work {
		p := index.Progress{Label: label, Done: w.now.Done, Total: w.now.Total}
		bar.Done, bar.Total = bar.Done+p.Done, bar.Total+p.Total
		if !w.done {
			busy = true
			p.Total = max(p.Total, 1) // it has not been counted yet
		}
		progress = append(progress, p)
	}
	if !busy {
		for i := range progress {
			progress[i] = index.Progress{Label: progress[i].Label}
		}
		bar, v.work = terminal.Bar{}, nil
	}
	bar.What = v.what()
	if now || time.Since(v.stored) >= storeEvery {
		v.stored = time.Now()
		// Progress is a courtesy: what really fails shows when documents are
		// applied.
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

// what returns what is being done. The caller holds mu.
func (v *progressView) what() string {
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

// finished writes what the first sync of a source has done: one line of counts,
// one that counts what was left out, and one for each file that could not be
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
	v.stop(ctx, src.Label)

	var out strings.Builder
	if err != nil {
		fmt.Fprintf(&out, "%s: %s; what is indexed of it can still be searched\n", src.Label, sanitize.Escape(errkind.Message(err)))
	} else {
		fmt.Fprintf(&out, "%s: %s%s in %s\n", src.Label, terminal.Plural(res.Added+res.Changed+res.Unchanged, "document"),
			news(res), terminal.Duration(max(time.Since(since), 1)))
	}
	if res != nil {
		writeLeftOut(&out, src.Label, res)
	}
	// Whoever cannot be written to has no use for it.
	_, _ = v.lines.Write([]byte(out.String()))
}

// news returns what has changed, as in " (1 new, 2 gone)".
func news(res *ingest.Result) string {
	var news []string
	for _, n := range []struct {
		n    int
		what string
	}{{res.Added, "new"}, {res.Changed, "changed"}, {res.Removed, "gone"}} {
		if n.n > 0 {
			news = append(news, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	if len(news) == 0 {
		return ""
	}
	return " (" + strings.Join(news, ", ") + ")"
}

// writeLeftOut writes what was left out.
func writeLeftOut(out *strings.Builder, label string, res *ingest.Result) {
	if len(res.LeftOut) > 0 {
		reasons := slices.SortedFunc(maps.Keys(res.LeftOut), func(a, b ingest.Reason) int {
			return cmp.Or(cmp.Compare(res.LeftOut[b], res.LeftOut[a]), cmp.Compare(a, b))
		})
		var counts []string
		for _, r := range reasons {
			counts = append(counts, fmt.Sprintf("%d %s", res.LeftOut[r], r))
		}
		fmt.Fprintf(out, "%s: left out: %s\n", label, strings.Join(counts, ", "))
	}
	for _, s := range res.Skipped[:min(maxNamed, len(res.Skipped))] {
		fmt.Fprintf(out, "%s: left out %q: %s\n", label, s.Path, sanitize.Escape(errkind.Message(s.Err)))
	}
	if more := res.SkippedTotal - maxNamed; more > 0 {
		fmt.Fprintf(out, "%s: and %d more\n", label, more)
	}
}

// interrupted writes a last line if sources have not been synced to their end,
// and takes the progress away.
func (v *progressView) interrupted(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	done, total, first := 0, 0, false
	for _, w := range v.work {
		done, total = done+w.now.Unchanged+w.now.Done, total+w.now.Unchanged+w.now.Total
		first = first || w.first && !w.done
		w.done = true
	}
	v.show(ctx, true)
	switch {
	case !first:
	case total == 0:
		fmt.Fprintln(v.lines, "interrupted before the documents were counted; start again to continue")
	default:
		fmt.Fprintf(v.lines, "interrupted: %d of %s are indexed; start again to continue\n", done, terminal.Plural(total, "document"))
	}
}
