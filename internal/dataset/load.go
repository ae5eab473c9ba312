package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A set is a dataset in memory. It is immutable.
type set struct {
	manifest Manifest
	docs     []Document
	words    *wordIndex
	model    string // that the metadata names
	vectors  int
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
		f.fail(ruleMetadata, "%v", err)
		return nil, f
	}
	f.pass(ruleMetadata, "%d documents", len(meta.Documents))
	s = &set{manifest: m, docs: meta.Documents, model: meta.Model}
	if s.vectors, err = countVectors(p.index); err != nil {
		f.fail(ruleIndexFile, "%v", err)
		return nil, f
	}
	f.pass(ruleIndexFile, "%d vectors", s.vectors)
	if s.words, err = newWordIndex(ctx, base, s.docs); err != nil {
		f.fail(ruleMetadata, "%v", err)
		return nil, f
	}
	return s, f
}

// countVectors reads the number of vectors from the header of an index.
func countVectors(path string) (int, error) {
	file, _, err := openRegular(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var head [37]byte
	if _, err := io.ReadFull(file, head[:]); err != nil {
		return 0, errors.New("it is too short for a FAISS index: copy or create it again")
	}
	n := int64(binary.LittleEndian.Uint64(head[8:]))
	if n < 0 || n > maxDocuments {
		return 0, fmt.Errorf("it is not a FAISS index: copy or create it again")
	}
	return int(n), nil
}
