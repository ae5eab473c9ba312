// Package storecopy copies documents between stores, and compares them.
package storecopy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Store is one end of a copy. Package index and package
// opensearch implement it.
type Store interface {
	// Numbers returns the numbers of up to n documents that are greater than
	// after, in order.
	Numbers(ctx context.Context, after int64, n int) ([]int64, error)

	// Document returns everything that is stored of the document with a number.
	// The error is of kind NotFound if there is none.
	Document(ctx context.Context, number int64) (*document.Document, error)

	// RecordOf returns the document with an ID. The error is of kind NotFound if
	// there is none.
	RecordOf(ctx context.Context, id string) (*document.Record, error)

	// Apply makes changes; see kb.Store.
	Apply(ctx context.Context, changes []document.Change) error
}

// Limits of one call of Apply.
const (
	batchChunks = 400
	batchBytes  = 4 << 20
	pageSize    = 1000 // numbers
)

// Options are what is copied.
type Options struct {
	From, To Store // required

	// Report is called with how many documents have been dealt with: first
	// those that are copied, then those that are compared. nil means nothing is
	// reported.
	Report func(step string, done int)
}

// A Result counts what was copied.
type Result struct {
	Copied    int // documents that were not there, or were different
	Unchanged int // documents that were there

	// Compared is the number of documents that were compared at the end, and
	// Different names the first of those that differ or are missing.
	Compared, Differing int
	Different           []string // at most maxNamed
}

// maxNamed is how many differing documents are named.
const maxNamed = 10

// Copy copies all documents, with their texts and tags, and compares them
// afterwards. Documents that are already there are left as they are, so a copy
// that was interrupted continues where it ended. Documents that only To has are
// not changed.
func Copy(ctx context.Context, o Options) (*Result, error) {
	if o.Report == nil {
		o.Report = func(string, int) {}
	}
	r := &Result{}
	var batch []document.Change
	chunks, bytes := 0, 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := o.To.Apply(ctx, batch); err != nil {
			return fmt.Errorf("copying documents: %w", err)
		}
		r.Copied += puts(batch)
		batch, chunks, bytes = nil, 0, 0
		o.Report("copying", r.Copied+r.Unchanged)
		return nil
	}
	err := each(ctx, o.From, func(d *document.Document) error {
		changes, err := changesFor(ctx, o.To, d)
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			r.Unchanged++
			o.Report("copying", r.Copied+r.Unchanged)
			return nil
		}
		batch = append(batch, changes...)
		chunks, bytes = chunks+len(d.Chunks), bytes+len(d.Text)
		if chunks >= batchChunks || bytes >= batchBytes {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return r, err
	}
	return r, compare(ctx, o, r)
}

// puts returns how many documents changes store.
func puts(changes []document.Change) int {
	n := 0
	for _, c := range changes {
		if c.Put != nil {
			n++
		}
	}
	return n
}

// each calls f with all documents. Those that are deleted meanwhile are left out.
func each(ctx context.Context, s Store, f func(*document.Document) error) error {
	for after := int64(0); ; {
		numbers, err := s.Numbers(ctx, after, pageSize)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			d, err := s.Document(ctx, n)
			if errors.Is(err, errkind.NotFound) {
				continue
			}
			if err == nil {
				err = f(d)
			}
			if err != nil {
				return err
			}
		}
		if len(numbers) < pageSize {
			return nil
		}
		after = numbers[len(numbers)-1]
	}
}

// changesFor returns the changes after which a store has a document, none if it
// has it.
func changesFor(ctx context.Context, to Store, d *document.Document) ([]document.Change, error) {
	r, err := to.RecordOf(ctx, d.ID)
	if errors.Is(err, errkind.NotFound) {
		return []document.Change{{Put: d}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("copying documents: %w", err)
	}
	if same(d, r) {
		return nil, nil
	}
	changes := []document.Change{{Put: d}}
	if r.Label != d.Label {
		changes = slices.Insert(changes, 0, document.Change{Tag: &document.Tagging{ID: d.ID, Label: d.Label}})
	}
	return changes, nil
}

// same reports whether a record is that of a document.
func same(d *document.Document, r *document.Record) bool {
	return r.ID == d.ID && r.Label == d.Label && r.Path == d.Path && r.FromSource == d.FromSource &&
		r.SourcePath == d.SourcePath &&
		r.Type == d.Type && r.Title == d.Title && r.Filename == d.Filename && r.Hash == d.Hash &&
		r.TextSize == int64(len(d.Text)) &&
		slices.Equal(slices.Sorted(slices.Values(r.Tags)), slices.Sorted(slices.Values(d.Tags)))
}

// compare compares the documents of both stores: what is recorded of them, and
// the hashes of the texts that are stored.
func compare(ctx context.Context, o Options, r *Result) error {
	differs := func(d *document.Document) {
		if r.Differing++; len(r.Different) < maxNamed {
			r.Different = append(r.Different, fmt.Sprintf("%s/%s", d.Label, cmp.Or(d.SourcePath, d.Path)))
		}
	}
	err := each(ctx, o.From, func(d *document.Document) error {
		r.Compared++
		o.Report("comparing", r.Compared)
		record, err := o.To.RecordOf(ctx, d.ID)
		if errors.Is(err, errkind.NotFound) {
			differs(d)
			return nil
		}
		if err != nil {
			return err
		}
		copied, err := o.To.Document(ctx, record.Number)
		if err != nil && !errors.Is(err, errkind.NotFound) && !errors.Is(err, errkind.Corrupt) {
			return err
		}
		if err != nil || !same(d, record) || hashOf(copied) != hashOf(d) {
			differs(d)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("comparing documents: %w", err)
	}
	return nil
}

// hashOf returns a hash of the text of a document and of what it is cut into.
func hashOf(d *document.Document) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %v %v %v", d.Text, d.Chunks, d.Sections, d.Pages) // never fails
	return hex.EncodeToString(sum.Sum(nil))
}
