package index

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestPackText packs parts of all kinds and reads windows of them, also after
// damage.
func TestPackText(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, textPart)
	for i := range noise {
		noise[i] = byte(r.IntN(256))
	}
	plain := strings.Repeat("A walrus eats clams. ", textPart/21+1)[:textPart]
	kinds := map[string]string{"plain": plain, "noise": string(noise), "mixed": plain[:textBlock] +
		string(noise[:textBlock]) + plain[:2*textBlock]}
	bounds := []int64{math.MinInt64, -40000, -10, -1, 0, 1, textBlock - 1, textBlock, textBlock + 1, 3 * textBlock,
		textPart - 1, textPart, textPart + 1, math.MaxInt64}
	for kind, whole := range kinds {
		for _, n := range []int{0, 1, minPacked - 1, minPacked, minPacked + 1, textBlock - 1, textBlock, textBlock +
			1, 2 * textBlock, 3*textBlock + 1, textPart - 1, textPart} {
			text := whole[:n]
			size, body := packText(text)
			if size != 0 && size != n || len(body) > n {
				t.Fatalf("%s: packText() of %d bytes = %d and %d bytes", kind, n, size, len(body))
			}
			windows := append([]int64{int64(n) - 1, int64(n), int64(n) + 1}, bounds...)
			for range 5 {
				windows = append(windows, int64(r.IntN(textPart)))
			}
			for _, from := range windows {
				for _, to := range windows {
					begin := min(max(from, 0), int64(n))
					want := text[begin:max(begin, min(to, int64(n)))]
					got, err := appendText([]byte("before"), size, body, from, to)
					if err != nil || string(got) != "before"+want {
						t.Fatalf("%s: appendText(%d, %d) of %d bytes has %d bytes, %v, want %d", kind, from, to, n,
							len(got)-6, err, len(want))
					}
				}
			}
			for range 200 {
				if size == 0 {
					break
				}
				damaged, length := append([]byte(nil), body...), size
				switch r.IntN(4) {
				case 0:
					damaged[r.IntN(len(damaged))] ^= 1 << r.IntN(8)
				case 1:
					damaged = damaged[:r.IntN(len(damaged))]
				case 2:
					length = r.IntN(2*textPart) - textPart
					if length == 0 { // not compressed
						continue
					}
				case 3:
					for i := range min(16, len(damaged)) {
						damaged[i] = byte(r.IntN(256))
					}
				}
				from := int64(r.IntN(n + 1))
				to := from + int64(r.IntN(n+1))
				got, err := appendText(nil, length, damaged, from, to)
				if err != nil && !errors.Is(err, errkind.Corrupt) || int64(len(got)) > to-from {
					t.Fatalf("%s: appendText() of a damaged part has %d bytes, %v", kind, len(got), err)
				}
			}
		}
	}
}

// TestDamagedChunks searches while the bounds of chunks are wrong.
func TestDamagedChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds, many times that with the race detector, and has one goroutine")
	}
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	texts := map[string]string{"short": "A walrus eats clams.", "long": strings.Repeat("A walrus eats clams. ", 4000)}
	for id, text := range texts {
		d := &document.Document{ID: id, Label: "a", Path: id, Title: id, Text: text,
			Chunks: []document.Chunk{{Length: min(len(text), 1000)}}}
		apply(t, x, document.Change{Put: d})
	}
	for _, damage := range []string{`off=-5, len=3`, `off=-5, len=5`, `off=-5, len=20`, `off=0, len=-5`,
		`off=10, len=-20`, `off=-40000, len=10`, `off=-40000, len=60000`,
		`off=9223372036854775807, len=100`, `off=-9223372036854775808, len=-100`, `off=32768, len=-32769`,
		`off=100000000000, len=10`} {
		execute(t, x, `UPDATE chunks SET `+damage)
		for name, f := range map[string]func(context.Context) error{
			"Search": func(ctx context.Context) error {
				_, err := x.Search(ctx, search.Query{Text: query.MustParse("walrus"), Num: 10})
				return err
			},
			"passages": func(ctx context.Context) error {
				_, err := x.Search(ctx, search.Query{Text: query.MustParse("walrus"), Num: 10, Passages: 1000})
				return err
			},
			"Chunks": func(ctx context.Context) error {
				_, _, _, err := x.Chunks(ctx, 1, 0, 100)
				return err
			},
			"SearchChunks": func(ctx context.Context) error {
				_, err := x.SearchChunks(ctx, search.ChunkQuery{Text: query.MustParse("walrus"), Top: 10})
				return err
			},
		} {
			if err := f(t.Context()); err != nil && !errors.Is(err, errkind.Corrupt) {
				t.Errorf("%s: %s() = %v", damage, name, err)
			}
		}
	}
}
