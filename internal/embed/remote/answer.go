package remote

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A vector is an array of numbers, or their bytes in base64 (float32 in
// little-endian order).
type vector []float32

// UnmarshalJSON implements json.Unmarshaler.
func (v *vector) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]float32)(v))
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return err
	}
	if len(b)%4 != 0 {
		return fmt.Errorf("%d bytes are not numbers of 4 bytes", len(b))
	}
	for ; len(b) > 0; b = b[4:] {
		*v = append(*v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return nil
}

// read returns the n vectors of an answer, none of which is zero.
func (e *Embedder) read(answer []byte, n int) ([][]float32, error) {
	var a struct {
		Data []struct {
			Index     *int   `json:"index"`
			Embedding vector `json:"embedding"`
		} `json:"data"` // of OpenAI
		Embeddings []vector `json:"embeddings"` // of Ollama
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, e.malformed("sent something other than JSON with vectors; check its address", URLReason)
	}
	vectors := a.Embeddings
	if !e.ollama {
		vectors = make([]vector, len(a.Data))
		for i, d := range a.Data {
			if d.Index != nil {
				i = *d.Index
			}
			if i < 0 || i >= len(vectors) || vectors[i] != nil {
				return nil, e.malformed("sent vectors with wrong indexes; check its version", "")
			}
			vectors[i] = d.Embedding
		}
	}
	if len(vectors) != n {
		return nil, e.malformed(fmt.Sprintf("sent %d vectors for %d texts; check its address and its version",
			len(vectors), n), URLReason)
	}
	out := make([][]float32, n)
	for i, v := range vectors {
		if len(v) == 0 || len(v) > maxDimension {
			return nil, e.malformed(fmt.Sprintf("sent a vector of %d numbers; choose a model for embeddings", len(v)),
				ModelReason)
		}
		e.dimension.CompareAndSwap(0, int64(len(v)))
		if want := e.Dimension(); len(v) != want {
			return nil, e.fault(errkind.Conflict, 502, fmt.Sprintf(
				"the embedding service sent vectors of %d numbers where %d are expected; choose the model that the other vectors were made with", len(v), want), ModelReason)
		}
		if !embed.HasDirection(v) {
			return nil, e.malformed("sent a vector without a direction; choose a model for embeddings", ModelReason)
		}
		out[i] = v
	}
	return out, nil
}
