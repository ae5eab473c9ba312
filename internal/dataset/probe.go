package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"

	"golang.org/x/sync/semaphore"
)

// Constants of the probe.
const (
	probed     = 5    // texts
	probeLeast = 24   // bytes of a text; shorter ones say little
	probeMost  = 3000 // bytes of all texts, after the first two
	sameModel  = 0.90 // median of the cosines; other models give less than 0.1
	exactModel = 0.98
	sameLength = 1.25             // median of the ratios of lengths; codes of vectors change their lengths, too
	retryProbe = 30 * time.Second // after the embedder failed

	// embedTime is the time limit for a query or a probe, after which words are
	// searched. It is shorter than that of a search.
	embedTime = 6 * time.Second
)

// A meaning says which model made the vectors of a set. It is found out
// when it is first needed.
type meaning struct {
	probing *semaphore.Weighted // 1
	known   atomic.Pointer[verdict]
}

// A verdict is the result of a probe.
type verdict struct {
	embedder embed.Embedder // nil if the vectors are not used
	raw      bool           // the vectors have the lengths that the embedder gives them
	finding  Finding
	failedAt time.Time // when the embedder failed; zero if it did not
}

// valid reports whether the verdict need not be reached again. It may be nil.
func (v *verdict) valid() bool {
	return v != nil && (v.failedAt.IsZero() || time.Since(v.failedAt) < retryProbe)
}

// verdict returns which embedder made the vectors of the set. The error is that of
// ctx.
func (s *Set) verdict(ctx context.Context) (*verdict, error) {
	m := &s.meaning
	v := m.known.Load()
	if !v.valid() {
		if m.probing.Acquire(ctx, 1) != nil {
			return nil, context.Cause(ctx)
		}
		defer m.probing.Release(1)
		v = m.known.Load() // another search may have been faster
	}
	if v.valid() {
		return v, nil
	}
	v, err := s.probe(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		v.failedAt = time.Now()
	}
	m.known.Store(v)
	return v, nil
}

// probe compares stored vectors with those that embedders make of the stored
// texts. The error is that of an embedder that could not be used, or that of ctx, with
// a nil verdict.
func (s *Set) probe(ctx context.Context) (*verdict, error) {
	f := func(status Status, format string, args ...any) *verdict {
		return &verdict{finding: Finding{ruleModel, status, fmt.Sprintf(format, args...)}}
	}
	named := cmp.Or(s.model, DefaultModel)
	said := "the metadata names " + shown(named)
	if s.model == "" {
		said = "the metadata names no model, so " + shown(named) + " was tried"
	}
	switch {
	case s.vectors.index.Len() == 0:
		return f(Passed, "not needed"), nil
	case s.vectors.odd != "":
		return f(Warning, "%s; the dataset is searched by words only", s.vectors.odd), nil
	}
	texts, docs := s.probeTexts()
	if len(texts) == 0 {
		return f(Warning,
			"there is no text with which the model can be checked; the dataset is searched by words only"), nil
	}
	dim := s.vectors.stored.Dim
	var tried []string
	var failed error
	for _, e := range s.candidates(named) {
		d, err := dimensionOf(ctx, e, texts[0])
		if err == nil && d != dim {
			continue
		}
		var vs [][]float32
		if err == nil {
			vs, err = embedInTime(ctx, e, texts, embed.Document)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			failed = fmt.Errorf("%s: %w", name(e), s.explain(err))
			continue
		case len(vs) != len(texts) || len(vs[0]) != dim:
			continue
		}
		cosine, ratio, err := s.vectors.compare(vs, docs)
		raw := s.vectors.kind == ByL2 && cosine >= sameModel && ratio > 1/sameLength && ratio < sameLength
		if err == nil && !raw {
			for _, v := range vs {
				embed.Normalize(v)
			}
			cosine, _, err = s.vectors.compare(vs, docs)
		}
		if err != nil {
			return &verdict{}, err
		}
		if cosine >= sameModel {
			made := "made the vectors"
			if cosine < exactModel {
				made += ", or nearly"
			}
			v := f(Passed, "%s %s (cosine %.3f with its own)", name(e), made, cosine)
			v.embedder, v.raw = e, raw
			return v, nil
		}
		tried = append(tried, fmt.Sprintf("%s did not make the vectors (cosine %.3f with its own)", name(e), cosine))
	}
	const words = "the dataset is searched by words only"
	switch {
	case failed != nil:
		return f(Warning, "%s, but the model could not be used: %s; %s", said,
			sanitize.Short(errkind.Message(failed), 300, 600), words), failed
	case len(tried) > 0:
		return f(Warning, "%s, but %s; %s: create the dataset again, or name its model", said,
			strings.Join(tried, ", and "), words), nil
	}
	return f(Warning,
		"%s, with vectors of %d dimensions, and no such model is available; %s: name a folder or a server with "+
			"the model", said, dim, words), nil
}

// candidates returns the embedders that may have made the vectors: those with
// the name of the model first.
func (s *Set) candidates(named string) []embed.Embedder {
	if s.embedders == nil {
		return nil
	}
	list := slices.Clone(s.embedders(named))
	slices.SortStableFunc(list, func(a, b embed.Embedder) int {
		match := func(e embed.Embedder) int {
			if embed.ModelName(e.ID()) == embed.ModelName(named) {
				return 0
			}
			return 1
		}
		return cmp.Compare(match(a), match(b))
	})
	return list
}

// name returns the name of an embedder's model for messages.
func name(e embed.Embedder) string {
	id, _, _ := strings.Cut(e.ID(), "@")
	return sanitize.Short(id, 100, 200)
}

// probeTexts returns the shortest texts of documents with vectors, and the
// documents. A short text takes less time, and a model reads all of it.
func (s *Set) probeTexts() (texts []string, docs []int) {
	type candidate struct{ doc, size int }
	var list []candidate
	for i := range s.docs {
		if _, ok := s.vectors.row(i); ok && len(s.docs[i].Content) >= probeLeast {
			list = append(list, candidate{i, len(s.docs[i].Content)})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.doc, b.doc))
	})
	seen, size := map[string]bool{}, 0
	for _, c := range list {
		text := s.docs[c.doc].Content
		if len(texts) == probed || len(texts) >= 2 && size+len(text) > probeMost {
			break
		}
		if !seen[text] {
			seen[text] = true
			texts, docs = append(texts, text), append(docs, c.doc)
			size += len(text)
		}
	}
	return texts, docs
}

// dimensionOf returns the dimension of an embedder's vectors. If it is not known,
// the embedder is a service that was not called yet: a query shows soon whether it
// answers, while calls for documents are repeated for a minute.
func dimensionOf(ctx context.Context, e embed.Embedder, text string) (int, error) {
	if d := e.Dimension(); d != 0 {
		return d, nil
	}
	vs, err := embedInTime(ctx, e, []string{text}, embed.Query)
	if err != nil {
		return 0, err
	}
	return len(vs[0]), nil
}

// embedInTime calls an embedder with a time limit, for vectors with the lengths that
// its model gives them.
func embedInTime(ctx context.Context, e embed.Embedder, texts []string, kind embed.Kind) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, embedTime)
	defer cancel()
	vs, err := embed.Raw(ctx, e, texts, kind)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it takes longer than %v: %w", embedTime, errkind.Timeout)
	}
	return vs, err
}

// queryVector returns the vector of a query. A nil vector means that the vectors
// are not used, and note says why, "" if that needs no explanation. raw reports
// whether its length can be compared with those of the vectors; otherwise it is 1.
// The error is that of ctx.
func (s *Set) queryVector(ctx context.Context, text string, made map[string][]float32) (
	v []float32, raw bool, note string, err error) {
	found, err := s.verdict(ctx)
	if err != nil {
		return nil, false, "", err
	}
	e := found.embedder
	if e == nil {
		if found.finding.Status == Warning {
			note = found.finding.Message
		}
		return nil, false, note, nil
	}
	if embed.Foreign(e, text) {
		return nil, false,
			"the model " + name(e) + " does not know the language of the query; it is searched by words only", nil
	}
	v, ok := made[e.ID()]
	if !ok {
		vs, err := embedInTime(ctx, e, []string{text}, embed.Query)
		if ctx.Err() != nil {
			return nil, false, "", context.Cause(ctx)
		}
		if err == nil && (len(vs) != 1 || len(vs[0]) != s.vectors.stored.Dim) {
			err = errors.New("its vectors have another dimension than before")
		}
		if err != nil {
			return nil, false, "the model " + name(e) + " could not be used, so this search was by words only: " +
				sanitize.Short(errkind.Message(s.explain(err)), 300, 600), nil
		}
		v = vs[0]
		made[e.ID()] = v
	}
	if !found.raw {
		v = slices.Clone(v)
		embed.Normalize(v)
	}
	return v, found.raw, "", nil
}
