package dataset

import (
	"bufio"
	"encoding/binary"
	"math"
)

// writeFlat writes a FAISS IndexFlatIP.
func writeFlat(w *bufio.Writer, dim, n int, next func() ([]float32, error)) error {
	b := []byte("IxFI")
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(dim))
	b = le.AppendUint64(b, uint64(n))
	b = le.AppendUint64(b, 1<<20)
	b = le.AppendUint64(b, 1<<20)
	b = append(b, 1)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, uint64(n*dim))
	w.Write(b)
	for left := n * dim; left > 0; {
		v, err := next()
		if err != nil {
			return err
		}
		for _, f := range v {
			b = le.AppendUint32(b[:0], math.Float32bits(f))
			w.Write(b)
		}
		left -= len(v)
	}
	return nil
}
