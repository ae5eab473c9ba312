package plain

import (
	"context"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// CheckLen is the number of bytes between two checks of the context, which take
// about a millisecond to process.
const CheckLen = 1 << 17

// Pieces yields s in pieces, with their offsets, until ctx is done. It always
// yields the first piece. No character is split.
func Pieces[T string | []byte](ctx context.Context, s T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for at := 0; at < len(s) && (at == 0 || ctx.Err() == nil); {
			end := len(s)
			if at+CheckLen < end {
				end = at + CheckLen
				for n := 1; n < utf8.UTFMax && !utf8.RuneStart(s[end]); n++ {
					end--
				}
			}
			if !yield(at, s[at:end]) {
				return
			}
			at = end
		}
	}
}

// Lines yields the lines of s without their ends, with their offsets, until ctx
// is done.
func Lines(ctx context.Context, s string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for off, next := 0, 0; off < len(s); {
			if off >= next {
				if next = off + CheckLen; ctx.Err() != nil {
					return
				}
			}
			line, _, _ := strings.Cut(s[off:], "\n")
			if !yield(off, line) {
				return
			}
			off += len(line) + 1
		}
	}
}

// NewReader returns a reader of r that fails when ctx is done.
func NewReader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

// A reader reads until ctx is done. It is used in one call only.
type reader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p[:min(len(p), CheckLen)])
}
