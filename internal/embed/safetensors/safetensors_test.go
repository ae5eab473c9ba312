package safetensors

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// file returns a file with this header and these values.
func file(header string, values ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), values...)
}

func TestParse(t *testing.T) {
	data := file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"I8","shape":[2,1],"data_offsets":[0,2]},`+
		`"new":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[2,3]},"scalar":{"dtype":"U8","shape":[],"data_offsets":[2,3]}}`, 1, 255, 7)
	got, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	want := &File{Metadata: map[string]string{"format": "pt"}, Tensors: map[string]Tensor{
		"a": {"I8", []int{2, 1}, []byte{1, 255}}, "scalar": {"U8", []int{}, []byte{7}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse() differs (-want +got):\n%s", diff)
	}
	again, err := Append(nil, want.Metadata, []string{"a", "scalar"}, want.Tensors)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = Parse(again); err != nil || !cmp.Equal(want, got) {
		t.Errorf("Parse(Append()) = %v, %v, want %v", got, err, want)
	}
}

func TestParseRefuses(t *testing.T) {
	tensor := func(fields string) []byte { return file(`{"a":{`+fields+`}}`, make([]byte, 64)...) }
	for name, data := range map[string][]byte{
		"empty":             nil,
		"short":             {1, 0, 0, 0, 0, 0, 0},
		"header too long":   append(binary.LittleEndian.AppendUint64(nil, 1<<63), "{}"...),
		"header past end":   append(binary.LittleEndian.AppendUint64(nil, 3), "{}"...),
		"huge header":       append(binary.LittleEndian.AppendUint64(nil, maxHeader+1), make([]byte, maxHeader+1)...),
		"not JSON":          file(`{"a"`),
		"metadata":          file(`{"__metadata__":{"a":1}}`),
		"entry":             file(`{"a":[]}`),
		"past the end":      tensor(`"dtype":"F32","shape":[17],"data_offsets":[0,68]`),
		"negative offset":   tensor(`"dtype":"F32","shape":[1],"data_offsets":[-4,0]`),
		"reversed":          tensor(`"dtype":"F32","shape":[1],"data_offsets":[8,4]`),
		"one offset":        tensor(`"dtype":"F32","shape":[1],"data_offsets":[4]`),
		"too few bytes":     tensor(`"dtype":"F32","shape":[2],"data_offsets":[0,4]`),
		"negative size":     tensor(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`),
		"two negative":      tensor(`"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]`),
		"shape overflows":   tensor(`"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]`),
		"bytes overflow":    tensor(`"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]`),
		"fraction":          tensor(`"dtype":"F32","shape":[1.5],"data_offsets":[0,4]`),
		"many dimensions":   tensor(`"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]`),
		"offset too large":  tensor(`"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551616]`),
		"no fields":         tensor(`"dtype":"F32"`),
		"nested deep":       file(strings.Repeat(`{"a":`, 100000)),
		"metadata is a set": file(`{"__metadata__":[]}`),
	} {
		if f, err := Parse(data); !errors.Is(err, errkind.Corrupt) {
			t.Errorf("%s: Parse() = %v, %v, want an error of kind Corrupt", name, f, err)
		}
	}
}

func TestFloat32(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, tt := range []struct {
		tensor Tensor
		want   []float32
	}{
		{Tensor{Type: "F32", Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}}, []float32{1, -2}},
		{Tensor{Type: "F16", Data: []byte{0, 0x3c, 0, 0xc0, 1, 0, 0xff, 3, 0, 0x7c, 0xff, 0x7b, 0, 0x80}},
			[]float32{1, -2, 0x1p-24, 1023 * 0x1p-24, inf, 65504, 0}},
		{Tensor{Type: "BF16", Data: []byte{0x80, 0x3f, 0, 0xc0}}, []float32{1, -2}},
		{Tensor{Type: "F64", Data: []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}}, []float32{1}},
		{Tensor{Type: "I8", Data: []byte{1, 0xff}}, []float32{1, -1}},
	} {
		got, err := tt.tensor.Float32()
		if err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("%s: Float32() = %v, %v, want %v", tt.tensor.Type, got, err, tt.want)
		}
	}
	for _, typ := range []string{"", "I64", "BOOL"} {
		if _, err := (Tensor{Type: typ}).Float32(); !errors.Is(err, errkind.Unsupported) {
			t.Errorf("type %q: Float32() = %v, want an error of kind Unsupported", typ, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]}}`, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			if !errors.Is(err, errkind.Corrupt) {
				t.Errorf("Parse() = %v, want an error of kind Corrupt", err)
			}
			return
		}
		for name, tensor := range file.Tensors {
			n, err := product(tensor.Shape)
			if err != nil || n*sizes[tensor.Type] != len(tensor.Data) {
				t.Errorf("tensor %q: shape %v, %d bytes", name, tensor.Shape, len(tensor.Data))
			}
			if v, err := tensor.Float32(); err == nil && len(v) != n {
				t.Errorf("tensor %q: %d values, want %d", name, len(v), n)
			}
		}
	})
}
