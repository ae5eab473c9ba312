package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
	"knowhow/internal/index"
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
		{"unreadable", nil, errors.New("the folder is gone"), "docs: the folder is gone; the other sources go on\n"},
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

// Progress is put into the index, where the searches of all processes find it,
// and taken out at the end.
func TestProgressReport(t *testing.T) {
	x, err := index.Open(t.Context(), index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var out strings.Builder
	v := &progressView{index: x, out: &out}
	report := v.report(t.Context())
	report(ingest.Progress{Label: "docs", Done: 1, Total: 10})
	if done, total, busy := x.Indexing(t.Context()); done != 1 || total != 10 || !busy {
		t.Errorf("Indexing() = %d, %d, %v after 1 of 10, want 1, 10, true", done, total, busy)
	}
	report(ingest.Progress{Label: "docs", Done: 10, Total: 10})
	if done, total, busy := x.Indexing(t.Context()); busy {
		t.Errorf("Indexing() = %d, %d, %v after 10 of 10, want it to be over", done, total, busy)
	}
	if out.Len() > 0 {
		t.Errorf("a bar was drawn where there is no terminal: %q", &out)
	}
}
