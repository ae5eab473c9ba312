package indexing

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
	"knowhow/internal/ingest"
)

func TestProgressFinished(t *testing.T) {
	src := document.Source{Label: "docs", Path: "/docs"}
	many := &ingest.Result{Added: 1, SkippedTotal: 15}
	for range 15 {
		many.Skipped = append(many.Skipped, ingest.Skipped{Path: "a\nb.md", Err: fs.ErrPermission})
	}
	for _, tt := range []struct {
		name string
		res  *ingest.Result
		err  error
		want string
	}{
		{"new", &ingest.Result{Added: 3}, nil, "docs: 3 documents (3 new)\n"},
		{"mixed", &ingest.Result{Added: 1, Changed: 2, Removed: 3, Unchanged: 4}, nil, "docs: 7 documents (1 new, 2 changed, 3 gone)\n"},
		{"same", &ingest.Result{Unchanged: 1}, nil, "docs: 1 document\n"},
		{"skipped", many, nil, "docs: 1 document (1 new)\n" +
			strings.Repeat("docs: left out \"a\\nb.md\": permission denied\n", 10) + "docs: and 5 more\n"},
		{"unreadable", nil, errors.New("the folder is gone"), "docs: the folder is gone; what is indexed of it can still be searched\n"},
		{"interrupted", &ingest.Result{Added: 1}, context.Canceled, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			v := &progressView{out: &out}
			v.finished(src, tt.res, tt.err)
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("finished printed (-want +got):\n%s", diff)
			}
		})
	}
}

// lastProgress keeps what it was told last.
type lastProgress struct{ done, total int }

func (l *lastProgress) SetProgress(_ context.Context, done, total int) error {
	l.done, l.total = done, total
	return nil
}

// Progress is put into the index, where the searches of all processes find it,
// and taken out at the end.
func TestProgressReport(t *testing.T) {
	x := &lastProgress{}
	var out strings.Builder
	v := &progressView{index: x, out: &out}
	report := v.report(t.Context())
	check := func(when string, wantDone, wantTotal int) {
		t.Helper()
		if x.done != wantDone || x.total != wantTotal {
			t.Errorf("progress is %d of %d %s, want %d of %d", x.done, x.total, when, wantDone, wantTotal)
		}
	}
	finish := func(label string) { v.finished(document.Source{Label: label}, &ingest.Result{}, nil) }
	v.expect(t.Context(), 3)
	check("before three sources", 0, 3)
	report(ingest.Progress{Label: "a", Done: 10, Total: 10})
	check("after the first", 10, 13)
	finish("a")
	v.wrote = time.Time{}
	report(ingest.Progress{Label: "b", Done: 1, Total: 5})
	check("in the second", 11, 16)
	report(ingest.Progress{Label: "b", Done: 5, Total: 5})
	finish("b")
	finish("c")
	v.idle(t.Context())
	check("at the end", 0, 0)

	// While watching, a change is a matter of its own.
	v.wrote = time.Time{}
	report(ingest.Progress{Label: "b", Done: 1, Total: 5})
	check("in a change", 1, 5)
	report(ingest.Progress{Label: "b", Done: 5, Total: 5})
	check("after a change", 0, 0)
	if got, want := out.String(), "a: 0 documents\nb: 0 documents\nc: 0 documents\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
