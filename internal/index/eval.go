package index

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/index/vectors"
	"github.com/knowhow-mcp/knowhow/internal/match"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// An evaluator evaluates queries in one transaction and so over one state of
// the index. It is not safe for concurrent use.
type evaluator struct {
	x       *Index
	tx      *database.Prepared
	view    *segments.View
	search  *segment.Search
	matcher *match.Matcher
	until   time.Time // the end of matching and ranking
	ended   bool      // the time for the search was over before everything was evaluated

	m        *matched      // what the request that was gathered last matches
	filtered segment.Docs  // that meet the conditions of the search with its filter; nil until they are needed
	vectors  *vectors.View // of the labels of the view; nil until they are needed
}

// timedOut reports whether err means that the time for the search is over, and
// not that the client is gone. It records that the result is partial.
func (e *evaluator) timedOut(ctx context.Context, err error) bool {
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), errTooLong) {
		return false
	}
	e.ended = true
	return true
}

// errTooLong is the cause of the end of the context of a search.
var errTooLong = errors.New("the search took too long")

// evaluate calls f with an evaluator for the documents with one of the labels
// (nil: all).
func (x *Index) evaluate(ctx context.Context, tx *database.Prepared, labels []string, f func(e *evaluator) error) error {
	v, err := x.segments.View(ctx, tx, labels)
	if err != nil {
		return err
	}
	defer v.Close()
	e := &evaluator{x: x, tx: tx, view: v, search: v.Begin(), until: time.Now().Add(x.searchTime)}
	defer e.search.End()
	e.matcher = &match.Matcher{Words: v.Collection, Search: e.search, Fields: e, Now: time.Now(),
		Segments: v.SegmentsOf, TimedOut: e.timedOut}
	if e.matcher.Languages, err = v.Languages(); err == nil {
		err = f(e)
	}
	return v.Fault(err)
}

// every returns the documents that meet conditions. The labels are those of the
// view, or nil. The result must not be changed.
func (e *evaluator) every(ctx context.Context, c conditions) (segment.Docs, error) {
	docs, err := segments.Remember(&e.view.Memo, c.key(), func() (segment.Docs, error) {
		docs := e.view.All()
		if c.langs != nil {
			some, err := e.selected(ctx, "lang", func(lang string) bool { return slices.Contains(c.langs, lang) })
			if err != nil {
				return nil, err
			}
			docs.And(some)
		}
		if len(c.written) > 0 {
			some, err := e.written(ctx, c.written)
			if err != nil {
				return nil, err
			}
			docs.And(some)
		}
		for _, tag := range c.tags {
			some, err := e.tagged(ctx, tag)
			if err != nil {
				return nil, err
			}
			docs.And(some)
		}
		for _, option := range c.options {
			sign, ok := analysis.OptionSign(option)
			if !ok {
				return e.view.None(), nil
			}
			some, err := e.matcher.Signed(ctx, sign)
			if err != nil {
				return nil, err
			}
			docs.And(some)
		}
		return docs, nil
	})
	if err != nil || c.filter == nil {
		return docs, err
	}
	if e.filtered == nil { // not in the memo: dates may be relative to now
		some, err := e.matcher.Eval(ctx, c.filter)
		if err != nil {
			return nil, err
		}
		some.Docs.And(docs)
		e.filtered = some.Docs
	}
	return e.filtered, nil
}

// written returns the documents of the view without the files of sources with one
// of the labels.
func (e *evaluator) written(ctx context.Context, labels []string) (segment.Docs, error) {
	docs, err := e.selected(ctx, "from_source", func(is string) bool { return is == "0" })
	if err != nil {
		return nil, err
	}
	all := e.view.All()
	for i, g := range e.view.Segments {
		if !slices.Contains(labels, g.Label) {
			docs[i] = all[i]
		}
	}
	return docs, nil
}

// tagged returns the documents with a tag.
func (e *evaluator) tagged(ctx context.Context, tag string) (segment.Docs, error) {
	if label, ok := document.TagLabel(tag); ok {
		return e.selected(ctx, "label", func(l string) bool { return l == label })
	}
	return e.docs(ctx, `SELECT dt.doc FROM doc_tags dt JOIN tags t ON t.id=dt.tag
		WHERE t.kind='`+tagUser+`' AND t.name=? ORDER BY dt.doc`, tag)
}

// docs returns the documents whose numbers a statement returns, in order.
func (e *evaluator) docs(ctx context.Context, query string, args ...any) (segment.Docs, error) {
	rows, err := database.Column[int64](ctx, e.tx, query, args...)
	if err != nil {
		return nil, err
	}
	return e.view.Rows(rows)
}
