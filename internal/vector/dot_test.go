package vector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestKernels compares each kernel with sums of int64, for extreme values, too.
func TestKernels(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	fills := map[string]func() int8{
		"random":  func() int8 { return int8(rnd.IntN(256) - 128) },
		"least":   func() int8 { return -128 },
		"most":    func() int8 { return 127 },
		"extreme": func() int8 { return int8(255*rnd.IntN(2) - 128) },
		"zero":    func() int8 { return 0 },
	}
	fill := func(n int, f func() int8) []int8 {
		s := make([]int8, n)
		for i := range s {
			s[i] = f()
		}
		return s
	}
	for _, k := range kernels() {
		t.Run(k.name, func(t *testing.T) {
			for _, stride := range []int{64, 128, 192, 384, 448, 1024} {
				for rows := range 10 {
					for queryFill, fq := range fills {
						for codesFill, fc := range fills {
							// Odd offsets, because a caller's memory need not be aligned.
							query := fill(stride+1, fq)[1:]
							codes := fill(3+rows*stride, fc)[3:]
							want := make([]int32, rows, rows+1)
							for i := range want {
								var sum int64
								for j, c := range codes[i*stride : (i+1)*stride] {
									sum += int64(c) * int64(query[j])
								}
								want[i] = int32(sum)
							}
							want = append(want, 12345) // must not be written
							got := fill32(rows+1, 12345)
							q := newDotQuery(query)
							k.dot(got[:rows], codes, &q)
							if !slices.Equal(got, want) {
								t.Fatalf("query %s, %d rows of %d bytes %s: got %d, want %d", queryFill, rows, stride,
									codesFill, got, want)
							}
						}
					}
				}
			}
		})
	}
}

// A kernel that computes wrong numbers is not used.
func TestFirstRight(t *testing.T) {
	used := ""
	named := func(name string, wrong int32) kernel {
		return kernel{name, func(dst []int32, codes []int8, q *dotQuery) {
			used = name
			dotPortable(dst, codes, q)
			dst[len(dst)-1] += wrong
		}}
	}
	for want, list := range map[string][]kernel{
		"right": {named("wrong", 1), named("right", 0), named("last", 0)},
		"":      {named("wrong", 1)}, // the portable one
	} {
		dot := firstRight(list)
		used = ""
		q := newDotQuery(make([]int8, 64))
		if dot(make([]int32, 1), make([]int8, 64), &q); used != want {
			t.Errorf("kernel %q is used, want %q", used, want)
		}
	}
}

// TestKernelsMaxDim uses the greatest dimension, where sums are near the bounds of
// int32.
func TestKernelsMaxDim(t *testing.T) {
	codes := make([]int8, 5*MaxDim)
	for i := range codes {
		codes[i] = -128
	}
	for _, k := range kernels() {
		for _, v := range []int8{-128, 127} {
			query := make([]int8, MaxDim)
			for i := range query {
				query[i] = v
			}
			q := newDotQuery(query)
			got, want := make([]int32, 5), fill32(5, -128*int32(v)*MaxDim)
			k.dot(got, codes, &q)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d: got %d, want %d", k.name, v, got, want)
			}
		}
	}
}

func fill32(n int, v int32) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = v
	}
	return s
}

func FuzzKernels(f *testing.F) {
	f.Add(byte(1), byte(1), []byte{128, 127, 0, 255})
	f.Fuzz(func(t *testing.T, rows, blocks byte, values []byte) {
		n, stride := int(rows%16), 64*int(1+blocks%16)
		query, codes := make([]int8, stride), make([]int8, n*stride)
		for i := range query {
			if len(values) > 0 {
				query[i] = int8(values[i%len(values)])
			}
		}
		for i := range codes {
			if len(values) > 0 {
				codes[i] = int8(values[(i+i/stride)%len(values)])
			}
		}
		q := newDotQuery(query)
		want, got := make([]int32, n), make([]int32, n)
		portable.dot(want, codes, &q)
		for _, k := range kernels() {
			k.dot(got, codes, &q)
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %d, want %d", k.name, got, want)
			}
		}
	})
}

func BenchmarkDot(b *testing.B) {
	const dim, rows = 384, 256
	rnd := rand.New(rand.NewPCG(1, 2))
	query, codes, dst := make([]int8, dim), make([]int8, dim*rows), make([]int32, rows)
	for i := range codes {
		codes[i] = int8(rnd.IntN(256) - 128)
	}
	copy(query, codes)
	q := newDotQuery(query)
	for _, k := range kernels() {
		b.Run(fmt.Sprintf("%s/%dx%d", k.name, rows, dim), func(b *testing.B) {
			b.SetBytes(int64(len(codes)))
			for b.Loop() {
				k.dot(dst, codes, &q)
			}
		})
	}
}
