package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/vector/faiss"

	"golang.org/x/sync/semaphore"
)

// A Set is the contents of a dataset in memory. It is immutable, but for what is
// known about its model. It can be used when the registry has loaded another state
// of the dataset.
type Set struct {
	manifest  Manifest
	docs      []Document
	originals originals // of docs
	words     *wordIndex
	vectors   *vectors
	model     string                              // that the metadata names
	embedders func(model string) []embed.Embedder // may be nil
	explain   func(error) error
	meaning   meaning
	memory    int64 // bytes, about
}

// A budget is the memory that a dataset may use.
type budget struct {
	left  int64 // bytes
	total int64 // for all datasets
	short bool  // there was not enough
}

// take takes bytes from the budget. The error, of kind TooLarge, says what to do
// if there are not as many.
func (b *budget) take(bytes int64) error {
	if bytes > b.left {
		b.short = true
		return fmt.Errorf("the dataset needs more memory than the others leave of the %d MiB for all datasets: "+
			"divide it, or move datasets that are not needed to another folder: %w", b.total>>20, errkind.TooLarge)
	}
	b.left -= bytes
	return nil
}

// load reads the files of a dataset. base and written are those of its wordIndex,
// and b the memory that it may use. The set is nil if a rule is broken. Foreign files
// must not end the program, so a panic is a finding, too.
func load(ctx context.Context, m Manifest, p place, base int64, written bool, b *budget) (s *Set, f findings) {
	before := b.left
	defer func() {
		if r := recover(); r != nil {
			s = nil
			f.fail(ruleIndexFile, "reading it shows a defect in the program: %v", r)
		}
	}()
	meta, err := readMetadata(ctx, p.metadata, b)
	if err != nil {
		f.fail(ruleMetadata, "%s", errkind.Message(err))
		return nil, f
	}
	f.pass(ruleMetadata, "%s", count(len(meta.Documents), "document"))
	s = &Set{manifest: m, docs: meta.Documents, model: meta.Model, meaning: meaning{probing: semaphore.NewWeighted(1)}}
	file, x, err := readIndex(ctx, p.index, len(s.docs), b)
	if err == nil {
		s.vectors, err = newVectors(x, s.docs, meta.Dimensions, b, &f)
	}
	if err != nil {
		f.fail(ruleIndexFile, "%s", errkind.Message(err))
	} else if s.originals, err = group(s.docs, b); err != nil {
		f.fail(ruleMetadata, "%s", errkind.Message(err))
	} else if s.words, err = newWordIndex(ctx, base, s, written, b); err != nil {
		f.fail(ruleMetadata, "%s", errkind.Message(err))
	}
	if err != nil {
		if file != nil {
			_ = file.Close() // it was only read
		}
		return nil, f
	}
	s.memory = before - b.left
	return s, f
}

// maxVectors returns how many vectors the index of n documents may have. Most
// have one for each document.
func maxVectors(n int) int { return 4*n + 1024 }

// readIndex reads the index file of a dataset with so many documents. Vectors
// that stand one after the other stay in the file, and are read when they are
// compared. Then the file is returned too, which is open as long as the index is
// used; the runtime closes it. It is not mapped, because a mapped file that
// becomes shorter ends the program. On Windows, an open file could not be
// replaced, so all vectors are in memory.
func readIndex(ctx context.Context, path string, documents int, b *budget) (*os.File, *faiss.Index, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > maxIndex {
		return file, nil, fmt.Errorf("it has %d bytes, at most %d are read: divide the dataset: %w", info.Size(),
			int64(maxIndex), errkind.TooLarge)
	}
	inPlace := runtime.GOOS != "windows"
	x, err := faiss.Read(ctx, file, info.Size(), faiss.Options{MaxBytes: max(b.left, 1),
		MaxCount: maxVectors(documents), InPlace: inPlace})
	switch {
	case errors.Is(err, errkind.TooLarge):
		b.short = true
		return file, nil, fmt.Errorf("%s: create it again for the %s of the metadata, or divide the dataset, or "+
			"move datasets that are not needed to another folder: %w", errkind.Message(err),
			count(documents, "document"), err)
	case err != nil:
		return file, nil, fmt.Errorf("%s: copy or create it again: %w", errkind.Message(err), errkind.Corrupt)
	}
	if len(x.Vectors) == x.Count*x.Stored { // none is read later
		_ = file.Close()
		file = nil
	}
	return file, x, b.take(4*int64(len(x.Vectors)) + 8*int64(len(x.IDs)))
}
