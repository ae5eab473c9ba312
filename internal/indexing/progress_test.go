package indexing

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// storedProgress keeps progress as the index does.
type storedProgress map[string]index.Progress

func (s storedProgress) SetProgress(_ context.Context, progress ...index.Progress) error {
	for _, p := range progress {
		if s[p.Label] = p; p.Total == 0 && p.Stopped == "" {
			delete(s, p.Label)
		}
	}
	return nil
}

// newView returns a view that writes to out, which is a terminal of so many
// columns, or none if there are 0.
func newView(out *strings.Builder, columns int) (*progressView, storedProgress) {
	s := storedProgress{}
	return &progressView{store: s, lines: terminal.NewLines(out, func() int { return columns })}, s
}

func TestProgressFinished(t *testing.T) {
	src := document.Source{Label: "docs", Path: "/docs"}
	many := &ingest.Result{Added: 1, SkippedTotal: 15,
		LeftOut: map[ingest.Reason]int{ingest.Unreadable: 15, ingest.NoText: 20, ingest.TooSlow: 1, ingest.TooLarge: 1}}
	for range 15 {
		many.Skipped = append(many.Skipped, ingest.Skipped{Path: "a\nb.md", Err: fs.ErrPermission})
	}
	leftOut := "docs: left out: 20 without text, 15 unreadable, 1 too large, 1 too slow\n" +
		strings.Repeat("docs: left out \"a\\nb.md\": permission denied: change its permissions\n", 10) +
		"docs: and 5 more\n"
	for _, tt := range []struct {
		name string
		took time.Duration
		res  *ingest.Result
		err  error
		want string
	}{
		{"new", 14500 * time.Millisecond, &ingest.Result{Added: 3}, nil, "docs: 3 documents indexed in 14 s\n"},
		{"mixed", 0, &ingest.Result{Added: 1, Changed: 2, Removed: 3, Unchanged: 4}, nil,
			"docs: 7 documents indexed in 0.1 s: 1 new, 2 changed, 3 removed\n"},
		{"same", 61 * time.Second, &ingest.Result{Unchanged: 1}, nil,
			"docs: 1 document indexed in 1 min 1 s: no changes\n"},
		{"skipped", time.Second, many, nil, "docs: 1 document indexed in 1 s\n" + leftOut},
		{"unreadable", 0, &ingest.Result{}, errors.New("the folder\x1b is gone"),
			"docs: indexing is not complete: the folder\\x1b is gone; what is indexed of it can still be searched\n"},
		{"failed", 0, many, errors.New("disk full"),
			"docs: indexing is not complete: disk full; what is indexed of it can still be searched\n" + leftOut},
		{"in part", 0, &ingest.Result{Added: 1, LeftOut: map[ingest.Reason]int{ingest.Partly: 1, ingest.NoText: 2},
			SkippedTotal: 1,
			Skipped:      []ingest.Skipped{{Path: "cut.rtf", Reason: ingest.Partly, Err: errors.New("save it again")}}},
			nil,
			"docs: 1 document indexed in 0.1 s\ndocs: left out: 2 without text\ndocs: indexed, but 1 damaged in part\ndocs: indexed in part \"cut.rtf\": save it again\n"},
		{"interrupted", 0, &ingest.Result{Added: 1}, context.Canceled, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			v, _ := newView(&out, 0)
			v.begin(t.Context(), "docs")
			time.Sleep(tt.took)
			v.finished(t.Context(), src, tt.res, tt.err)
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("%s: finished printed (-want +got):\n%s", tt.name, diff)
			}
		})
	}
}

// The progress of all sources is put into the index, where the searches of all
// processes find it, and taken out at the end.
func TestProgressInTheIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		var out strings.Builder
		v, stored := newView(&out, 0)
		check := func(when string, want ...index.Progress) {
			t.Helper()
			got := slices.SortedFunc(maps.Values(stored),
				func(a, b index.Progress) int { return strings.Compare(a.Label, b.Label) })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("progress %s (-want +got):\n%s", when, diff)
			}
		}
		v.begin(ctx, "a")
		v.begin(ctx, "b")
		check("before they are counted", index.Progress{Label: "a", Total: 1, Unchanged: -1},
			index.Progress{Label: "b", Total: 1, Unchanged: -1})
		time.Sleep(time.Second)
		v.report(ctx, ingest.Progress{Label: "a", Done: 1, Total: 10})
		v.report(ctx, ingest.Progress{Label: "b", Total: 5}) // too soon
		time.Sleep(time.Second)
		v.report(ctx, ingest.Progress{Label: "b", Done: 3, Total: 5})
		check("of both", index.Progress{Label: "a", Done: 1, Total: 10}, index.Progress{Label: "b", Done: 3, Total: 5})
		v.report(ctx, ingest.Progress{Label: "a", Done: 10, Total: 10})
		v.finished(ctx, document.Source{Label: "a"}, &ingest.Result{}, nil)
		check("after the first", index.Progress{Label: "a", Done: 10, Total: 10},
			index.Progress{Label: "b", Done: 3, Total: 5})
		v.stop(ctx, "b", nil)
		check("at the end")

		// While watching, a change is work of its own.
		v.report(ctx, ingest.Progress{Label: "b", Total: 2})
		time.Sleep(time.Second)
		v.refresh(ctx)
		check("in a change", index.Progress{Label: "b", Total: 2})
		v.report(ctx, ingest.Progress{Label: "b", Done: 2, Total: 2})
		check("after a change")
		if got, want := out.String(), "a: 0 documents indexed in 2 s\n"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	})
}

// Without a terminal there is a line every ten seconds.
func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		v, _ := newView(&out, 0)
		v.begin(t.Context(), "a")
		for i := range 25 {
			v.report(t.Context(), ingest.Progress{Label: "a", Done: 4 * i, Total: 100})
			time.Sleep(time.Second)
		}
		v.begin(t.Context(), "b")
		time.Sleep(printEvery)
		v.refresh(t.Context())
		want := "indexing a: 40 of 100 documents, 4/s, 15 s left\n" +
			"indexing a: 80 of 100 documents, 4/s, 5 s left\n" +
			"indexing 2 sources: 96 of 100 documents, 3/s, 1 s left\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("printed (-want +got):\n%s", diff)
		}
	})
}

// On a terminal there is a bar, and no rate as long as there is none.
func TestProgressBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		v, _ := newView(&out, 80)
		v.report(t.Context(), ingest.Progress{Label: "a", Total: 1})
		v.report(t.Context(), ingest.Progress{Label: "a", Done: 1, Total: 1})
		if out.Len() > 0 {
			t.Errorf("a change that takes no time shows %q", out.String())
		}
		v.begin(t.Context(), "a")
		for i := range 3 {
			v.report(t.Context(), ingest.Progress{Label: "a", Done: 5 * i, Total: 10})
			time.Sleep(20 * time.Second)
		}
		v.finished(t.Context(), document.Source{Label: "a"}, &ingest.Result{Added: 10}, nil)
		// Every bar is removed before a line is written.
		shown := strings.Split(out.String(), "\r")
		var bars []string
		for _, s := range shown {
			if strings.Contains(s, "indexing") {
				bars = append(bars, strings.TrimSpace(s))
			}
		}
		want := []string{
			"indexing a: 5 of 10 documents, 15/min, 20 s left [=============             ]",
			"indexing a: 10 of 10 documents, 15/min [====================================]",
		}
		if diff := cmp.Diff(want, bars); diff != "" {
			t.Errorf("bars (-want +got):\n%s", diff)
		}
		if last := shown[len(shown)-1]; last != "a: 10 documents indexed in 1 min 0 s\n" {
			t.Errorf("the last line is %q, want the summary by itself", last)
		}
	})
}

func TestProgressInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(ctx context.Context, v *progressView)
		want   string
		stored index.Progress
	}{
		{"idle", func(context.Context, *progressView) {}, "", index.Progress{}},
		{"change", func(ctx context.Context, v *progressView) {
			v.report(ctx, ingest.Progress{Label: "a", Total: 10})
		}, "", index.Progress{Label: "a", Total: 10, Stopped: search.Interrupted}},
		{"uncounted", func(ctx context.Context, v *progressView) { v.begin(ctx, "a") },
			"interrupted before the documents were counted; start again to continue\n",
			index.Progress{Label: "a", Stopped: search.Interrupted}},
		{"counted", func(ctx context.Context, v *progressView) {
			v.begin(ctx, "a")
			v.report(ctx, ingest.Progress{Label: "a", Done: 20, Total: 712, Unchanged: 100})
		}, "interrupted: 120 of 812 documents are indexed; start again to continue\n",
			index.Progress{Label: "a", Done: 20, Total: 712, Unchanged: 100, Stopped: search.Interrupted}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			v, stored := newView(&out, 0)
			tt.before(t.Context(), v)
			v.interrupted(t.Context())
			if out.String() != tt.want {
				t.Errorf("printed %q, want %q", out.String(), tt.want)
			}
			if diff := cmp.Diff(tt.stored, stored["a"]); diff != "" {
				t.Errorf("the index has (-want +got):\n%s", diff)
			}
		})
	}
}
