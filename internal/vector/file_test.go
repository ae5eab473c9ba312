package vector

import (
	"bytes"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// writeFile returns a file of n random vectors.
func writeFile(t testing.TB, model string, n, dim int, metric Metric) []byte {
	t.Helper()
	w, err := NewWriter(model, dim, metric)
	if err != nil {
		t.Fatal(err)
	}
	vectors := gauss(rand.New(rand.NewPCG(1, 2)), n, dim)
	for i := range n {
		if err := w.Add(uint64(i)<<40+7, vectors[i*dim:(i+1)*dim]); err != nil {
			t.Fatal(err)
		}
	}
	return w.Bytes()
}

func TestFile(t *testing.T) {
	for _, n := range []int{0, 1, 7} {
		for _, dim := range []int{1, 64, 65} {
			for _, metric := range metrics {
				data := writeFile(t, "a/modèle", n, dim, metric)
				x, err := Open(data)
				if err != nil {
					t.Fatal(err)
				}
				if err := x.Verify(); err != nil {
					t.Error(err)
				}
				if x.Len() != n || x.Dim() != dim || x.Metric() != metric || x.Model() != "a/modèle" {
					t.Errorf("got %d vectors of dim %d, %v, %q", x.Len(), x.Dim(), x.Metric(), x.Model())
				}
				vectors := gauss(rand.New(rand.NewPCG(1, 2)), n, dim)
				for i := range n {
					if want := uint64(i)<<40 + 7; x.ID(i) != want {
						t.Errorf("row %d: id %d, want %d", i, x.ID(i), want)
					}
					v, most := vectors[i*dim:(i+1)*dim], 0.0
					for _, f := range v {
						most = max(most, math.Abs(float64(f)))
					}
					for j, f := range x.vector(i, make([]float32, dim)) {
						if diff := math.Abs(float64(f - v[j])); diff > most/253.9 {
							t.Errorf("row %d: value %d differs by %v, more than %v", i, j, diff, most/254)
						}
					}
				}
			}
		}
	}
}

// TestFileBytes pins the format: a change needs another Version.
func TestFileBytes(t *testing.T) {
	w, err := NewWriter("m", 2, L2)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(0x0102030405060708, []float32{127, -127}); err != nil {
		t.Fatal(err)
	}
	section := func(s string) string { return s + strings.Repeat("\x00", padded(len(s))-len(s)) }
	want := "knowvec\x00" + "\x01\x00\x00\x00" + "\x01\x00\x00\x00" + "\x02\x00\x00\x00" + "\x01\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x39\x30\x2f\xed" + strings.Repeat("\x00", 28) + section("m") + section("\x08\x07\x06\x05\x04\x03\x02\x01") +
		section("\x00\x00\x80\x3f\xe9\x9a\x33\x43") + section("\x7f\x81")
	got := w.Bytes()
	clear(got[60:64])
	if diff := cmp.Diff([]byte(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMerge checks that rows that are taken from files are those of a file that
// is written at once.
func TestMerge(t *testing.T) {
	const n, dim = 9, 70
	want := writeFile(t, "m", n, dim, Cosine)
	x, err := Open(want)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter("m", dim, Cosine)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.AddFrom(x, i, x.ID(i)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(w.Bytes(), want) {
		t.Error("the copy differs")
	}
	floats, err := New(make([]float32, dim), dim, Cosine)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]*Index{"model": mustOpen(t, writeFile(t, "other", 1, dim, Cosine)),
		"dimension": mustOpen(t, writeFile(t, "m", 1, dim+1, Cosine)),
		"metric":    mustOpen(t, writeFile(t, "m", 1, dim, L2)), "floats": floats} {
		if err := w.AddFrom(other, 0, 1); !errors.Is(err, errkind.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
	if !bytes.Equal(w.Bytes(), want) {
		t.Error("the copy differs after errors")
	}
}

func mustOpen(t testing.TB, data []byte) *Index {
	t.Helper()
	x, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestWriterInvalid(t *testing.T) {
	for _, model := range []string{strings.Repeat("x", maxModel+1), "\xff"} {
		if _, err := NewWriter(model, 2, L2); !errors.Is(err, errkind.Invalid) {
			t.Errorf("model %.10q: got %v, want Invalid", model, err)
		}
	}
	w, err := NewWriter("", 2, L2)
	if err != nil {
		t.Fatal(err)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{{1}, {1, 2, 3}, nil, {nan, 1}, {1, inf}, {math.MaxFloat32, math.MaxFloat32}} {
		if err := w.Add(1, v); !errors.Is(err, errkind.Invalid) {
			t.Errorf("%v: got %v, want Invalid", v, err)
		}
	}
	if x := mustOpen(t, w.Bytes()); x.Len() != 0 {
		t.Errorf("%d rows were added", x.Len())
	}
}

// TestDamage changes each byte of a file, and cuts it anywhere.
func TestDamage(t *testing.T) {
	data := writeFile(t, "model", 3, 65, Cosine)
	x := mustOpen(t, data)
	for n := range data {
		if _, err := Open(data[:n:n]); !errors.Is(err, errkind.Corrupt) {
			t.Fatalf("the first %d bytes: got %v, want Corrupt", n, err)
		}
		if n >= headerSize {
			changed := bytes.Clone(data)
			changed[n] ^= 1
			y, err := Open(changed)
			if err == nil {
				err = y.Verify()
			}
			if !errors.Is(err, errkind.Corrupt) {
				t.Fatalf("byte %d changed: got %v, want Corrupt", n, err)
			}
		}
	}
	for n := range headerSize {
		changed := bytes.Clone(data)
		changed[n] ^= 1
		want := errkind.Corrupt
		if n >= 8 && n < 12 {
			want = errkind.Unsupported // another version
		}
		if _, err := Open(changed); !errors.Is(err, want) {
			t.Errorf("byte %d changed: got %v, want %v", n, err, want)
		}
	}
	if _, err := Open(append(bytes.Clone(data), 0)); !errors.Is(err, errkind.Corrupt) {
		t.Errorf("another byte at the end: got %v, want Corrupt", err)
	}
	if err := x.Verify(); err != nil {
		t.Error(err)
	}
}

// FuzzOpen changes bytes of a file, makes the checksum right, and searches.
func FuzzOpen(f *testing.F) {
	originals := [][]byte{writeFile(f, "m", 5, 3, Cosine), writeFile(f, "model", 2, 65, L2),
		writeFile(f, "", 0, 1, InnerProduct)}
	f.Add(byte(0), uint16(0), []byte("x"))
	f.Add(byte(0), uint16(12), []byte{0, 0, 0, 0})
	f.Add(byte(0), uint16(16), []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Add(byte(0), uint16(24), []byte{0, 0, 0, 0, 0, 1})
	f.Add(byte(1), uint16(192), []byte{0, 0, 0xc0, 0x7f})
	f.Add(byte(1), uint16(192), []byte{255, 255, 127, 127, 255, 255, 127, 127})
	f.Add(byte(1), uint16(256), bytes.Repeat([]byte{128}, 256))
	f.Fuzz(func(t *testing.T, original byte, at uint16, change []byte) {
		data := bytes.Clone(originals[int(original)%len(originals)])
		copy(data[int(at)%len(data):], change)
		x, err := Open(data)
		if err != nil { // with the right checksum, if there can be one
			n := uint64(le.Uint32(data[20:]))
			count := le.Uint64(data[24:])
			if n > maxModel || count > uint64(len(data)) {
				return
			}
			end := headerSize + padded(int(n)) + 2*padded(8*int(count))
			if end > len(data) {
				return
			}
			sum := crc32.Update(crc32.Checksum(data[:60], castagnoli), castagnoli, data[headerSize:end])
			le.PutUint32(data[60:], sum)
			if x, err = Open(data); err != nil {
				return
			}
		}
		query := make([]float32, x.Dim())
		query[0] = 1
		hits, err := x.Search(t.Context(), query, 3, Options{})
		if err != nil || len(hits) != min(3, x.Len()) {
			t.Fatalf("%d hits of %d vectors, %v", len(hits), x.Len(), err)
		}
		for _, h := range hits {
			x.ID(h.Row)
		}
	})
}
