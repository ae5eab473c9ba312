package dataset

import (
	"context"
	"fmt"

	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/vector/faiss"

	"golang.org/x/sync/semaphore"
)

// A set is a dataset in memory. It is immutable, but for what is known about its
// model.
type set struct {
	manifest  Manifest
	docs      []Document
	words     *wordIndex
	vectors   *vectors
	model     string                              // that the metadata names
	embedders func(model string) []embed.Embedder // may be nil
	explain   func(error) error
	meaning   meaning
}

// load reads the files of a dataset. base is that of its wordIndex. The set is
// nil if a rule is broken. Foreign files must not end the program, so a panic is
// a finding, too.
func load(ctx context.Context, m Manifest, p place, base int64) (s *set, f findings) {
	defer func() {
		if r := recover(); r != nil {
			s = nil
			f.fail(ruleIndexFile, "reading it shows a defect in the program: %v", r)
		}
	}()
	meta, err := readMetadata(ctx, p.metadata)
	if err != nil {
		f.fail(ruleMetadata, "%s", errkind.Message(err))
		return nil, f
	}
	f.pass(ruleMetadata, "%s", count(len(meta.Documents), "document"))
	s = &set{manifest: m, docs: meta.Documents, model: meta.Model, meaning: meaning{probing: semaphore.NewWeighted(1)}}
	x, err := readIndex(ctx, p.index)
	if err == nil {
		s.vectors, err = newVectors(x, len(s.docs), meta.Dimensions, &f)
	}
	if err != nil {
		f.fail(ruleIndexFile, "%s", errkind.Message(err))
		return nil, f
	}
	if s.words, err = newWordIndex(ctx, base, s.docs); err != nil {
		f.fail(ruleMetadata, "%v", err)
		return nil, f
	}
	return s, f
}

// readIndex reads an index file.
func readIndex(ctx context.Context, path string) (*faiss.Index, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > maxIndex {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read: divide the dataset: %w", info.Size(), int64(maxIndex), errkind.TooLarge)
	}
	x, err := faiss.Read(ctx, file, info.Size(), faiss.Options{MaxBytes: maxIndex})
	if err != nil {
		return nil, fmt.Errorf("%s: copy or create it again: %w", errkind.Message(err), errkind.Corrupt)
	}
	return x, nil
}
