package faiss

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// WriteFlat writes vectors of dim values, one after the other, as an IndexFlatIP
// or IndexFlatL2. The bytes are those that FAISS itself writes. WriteFlat returns
// an error of kind [errkind.Invalid] if the metric is another one, or dim is not
// in 1..2^20 or does not divide the number of values; otherwise the error of w.
func WriteFlat(w io.Writer, metric Metric, dim int, vectors []float32) error {
	fourcc := "IxFI"
	if metric == L2 {
		fourcc = "IxF2"
	}
	if metric != InnerProduct && metric != L2 || dim < 1 || dim > maxDim || len(vectors)%dim != 0 {
		return fmt.Errorf("faiss: %d values are not vectors of dimension %d for a flat index with %v: %w", len(vectors),
			dim, metric, errkind.Invalid)
	}
	b := []byte(fourcc)
	b = le.AppendUint32(b, uint32(dim))
	b = le.AppendUint64(b, uint64(len(vectors)/dim))
	b = le.AppendUint64(b, 1<<20) // FAISS ignores these two numbers
	b = le.AppendUint64(b, 1<<20)
	b = append(b, 1) // trained
	b = le.AppendUint32(b, uint32(metric))
	b = le.AppendUint64(b, uint64(len(vectors)))
	out := bufio.NewWriterSize(w, 64<<10)
	out.Write(b) // the error is that of Flush
	for _, f := range vectors {
		out.Write(le.AppendUint32(out.AvailableBuffer(), math.Float32bits(f)))
	}
	return out.Flush()
}
