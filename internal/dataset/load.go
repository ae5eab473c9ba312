package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"knowhow/internal/embed"
	"knowhow/internal/errkind"
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
	f.pass(ruleMetadata, "%d documents", len(meta.Documents))
	s = &set{manifest: m, docs: meta.Documents, model: meta.Model}
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
func readIndex(ctx context.Context, path string) (*stored, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > maxIndex {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read: divide the dataset: %w", info.Size(), int64(maxIndex), errkind.TooLarge)
	}
	var head [45]byte
	if _, err := io.ReadFull(file, head[:]); err != nil {
		return nil, errors.New("it is too short for a FAISS index: copy or create it again")
	}
	le := binary.LittleEndian
	x := &stored{dim: int(le.Uint32(head[4:])), l2: string(head[:4]) == "IxF2"}
	n := int64(le.Uint64(head[8:]))
	if string(head[:3]) != "IxF" || x.dim < 1 || x.dim > 1<<20 || n < 0 || n > maxDocuments || info.Size() != 45+4*n*int64(x.dim) {
		return nil, errors.New("it is not a FAISS index, or it is truncated: copy or create it again")
	}
	data, err := io.ReadAll(readerOf(ctx, file))
	if err != nil {
		return nil, err
	}
	x.vectors = make([]float32, len(data)/4)
	for i := range x.vectors {
		x.vectors[i] = math.Float32frombits(le.Uint32(data[4*i:]))
	}
	return x, nil
}
