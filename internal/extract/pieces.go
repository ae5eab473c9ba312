package extract

import (
	"context"
	"io"
	"iter"
	"unicode/utf8"
)

// pieceLen is the number of bytes between two checks of the context, which take
// about a millisecond to process.
const pieceLen = 1 << 17

// pieces yields s in pieces, with their offsets, until ctx is done. It always
// yields the first piece. No character is split.
func pieces[T string | []byte](ctx context.Context, s T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for at := 0; at < len(s) && (at == 0 || ctx.Err() == nil); {
			end := len(s)
			if at+pieceLen < end {
				end = at + pieceLen
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
	return r.r.Read(p[:min(len(p), pieceLen)])
}
