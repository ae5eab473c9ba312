package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
)

// inMemory stores parts of a segment, and counts them.
func inMemory(n *int) func(func(io.Writer) error) ([]byte, error) {
	return func(write func(io.Writer) error) ([]byte, error) {
		*n++
		var part bytes.Buffer
		err := write(&part)
		return part.Bytes(), err
	}
}

// TestStore checks that a segment of which parts were stored has the same bytes
// as one that was built in memory, also if a document is in several parts, and if
// the rows are set afterwards.
func TestStore(t *testing.T) {
	docs := madeUp(rand.New(rand.NewPCG(7, 8)), 300)
	want := build(t, docs)
	var b Builder
	for _, limit := range []int{1, 10_000, 100_000, 1 << 30} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			defer b.Reset()
			stored := 0
			b.Store, b.Limit = inMemory(&stored), limit
			add(&b, docs)
			if b.Stored() != (limit < 1<<30) {
				t.Errorf("Stored() = %v after %d parts", b.Stored(), stored)
			}
			var out bytes.Buffer
			if n, err := b.Write(t.Context(), &out, InMemory); err != nil || int(n) != out.Len() {
				t.Fatalf("Write: %d bytes, %v; %d were written", n, err, out.Len())
			}
			if !bytes.Equal(out.Bytes(), want) {
				t.Errorf("the segment of %d parts has other bytes than one that was built in memory", stored)
			}
			t.Logf("%d parts", stored)
		})
	}
}

// TestStoreFails checks that an error of storing a part is returned, and that a
// Builder takes no more memory after it.
func TestStoreFails(t *testing.T) {
	full := errors.New("disk full")
	b := Builder{Store: func(func(io.Writer) error) ([]byte, error) { return nil, full }, Limit: 10_000}
	docs := madeUp(rand.New(rand.NewPCG(7, 8)), 100)
	most := 0
	for i := range docs {
		add(&b, docs[i:i+1])
		most = max(most, b.memory())
	}
	if _, err := b.WriteTo(io.Discard); !errors.Is(err, full) {
		t.Errorf("WriteTo() = %v, want the error of storing", err)
	}
	if most > 1<<20 {
		t.Errorf("a builder with a limit of 10,000 bytes has taken %d", most)
	}
	b.Reset()
	add(&b, docs[:1])
	if _, err := b.WriteTo(io.Discard); err != nil {
		t.Errorf("WriteTo() after Reset = %v", err)
	}
}

// TestMemory checks that the estimate of a Builder is near what writing a segment
// allocates, for texts without repetitions and for those of one word.
func TestMemory(t *testing.T) {
	for name, token := range map[string]func(i int) Token{
		"tokens": func(i int) Token { return Token{Text: fmt.Sprintf("%08x", i)} },
		"words":  func(i int) Token { return Token{Text: fmt.Sprintf("%08x", i), Word: fmt.Sprintf("%08x", i)} },
		"same":   func(int) Token { return Token{Text: "a", Word: "a"} },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var b Builder
		b.Document(Document{})
		for c := range 1000 {
			b.Chunk(tokens(nil), func(yield func(Token) bool) {
				for i := range 100 {
					if !yield(token(100*c + i)) {
						return
					}
				}
			}, 1)
		}
		estimate := b.memory()
		if _, err := b.WriteTo(io.Discard); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		allocated := int(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%s: %d bytes are allocated in all, %d are estimated", name, allocated, estimate)
		if allocated > 4*estimate { // slices that grow are allocated several times
			t.Errorf("%s: %d bytes are allocated, but only %d are estimated", name, allocated, estimate)
		}
	}
}

// TestSetRows replaces the rows of a segment.
func TestSetRows(t *testing.T) {
	docs := madeUp(rand.New(rand.NewPCG(7, 8)), 20)
	data := build(t, docs)
	rows := make([]int64, len(docs))
	for i := range docs {
		docs[i].row += 1000
		rows[i] = docs[i].row
	}
	if err := SetRows(memory(data), int64(len(data)), rows); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, build(t, docs)) {
		t.Error("the segment has other bytes than one with these rows")
	}
	if err := SetRows(memory(data), int64(len(data)), rows[1:]); !isDamage(err) {
		t.Errorf("SetRows() of too few rows = %v", err)
	}
}

// A memory is a file in memory.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error)  { return copy(p, m[off:]), nil }
func (m memory) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

// TestWriteStops checks that merging parts that were stored stops when the context
// ends.
func TestWriteStops(t *testing.T) {
	n := 0
	b := Builder{Store: inMemory(&n), Limit: 1}
	add(&b, madeUp(rand.New(rand.NewPCG(7, 8)), 20))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Write(ctx, io.Discard, InMemory); !errors.Is(err, context.Canceled) {
		t.Errorf("Write() = %v", err)
	}
}
