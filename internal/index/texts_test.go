package index

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// TestTextParts reads windows of texts that are stored in several parts, some of
// which are compressed.
func TestTextParts(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, textPart)
	for i := range noise {
		noise[i] = byte(33 + r.IntN(90))
	}
	text := strings.Repeat("A walrus eats clams. ", 2*textPart/21) + string(noise) + strings.Repeat("und Häuser ", 500)
	texts := map[string]string{"long": text, "short": "Clams.", "empty": ""}
	for id, text := range texts {
		apply(t, x, document.Change{Put: &document.Document{ID: id, Label: "a", Path: id, Title: id, Text: text}})
	}
	var packed, whole int
	if err := scanRow(t, x, `SELECT sum(size>0), sum(size=0) FROM texts`, &packed, &whole); err != nil ||
		packed == 0 || whole < 2 {
		t.Errorf("%d parts are compressed and %d are not, %v; want some of both", packed, whole, err)
	}
	for id, text := range texts {
		for range 50 {
			from := r.IntN(len(text) + 2)
			n := r.IntN(len(text) + 2)
			got, err := x.ReadText(t.Context(), id, nil, int64(from), n)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if at := int(got.Offset); at < len(text) {
				want = document.Truncate(text[at:], max(n-(at-from), 0))
			}
			if got.Window != want {
				t.Fatalf("ReadText(%s, %d, %d) has %d bytes at %d, want %d", id, from, n, len(got.Window), got.Offset,
					len(want))
			}
		}
	}
	if problems, err := x.Examine(t.Context()); err != nil || problems != nil {
		t.Errorf("Examine() = %v, %v", problems, err)
	}
	for _, damage := range []string{`size=size+1`, `size=1000000000`, `body=substr(body, 2)`, `body=x'ffffffff7f00'`,
		`body=x''`, `body=zeroblob(length(body))`,
		`body=body||x'00'`, `body=substr(body, 1, 2)||x'ffff'||substr(body, 5)`} {
		execute(t, x, `UPDATE texts SET `+damage+` WHERE size>0`)
		for _, n := range []int{10, 3 * textPart} {
			if _, err := x.ReadText(t.Context(), "long", nil, 0, n); !errors.Is(err, errkind.Corrupt) {
				t.Errorf("%s: ReadText() of %d bytes = %v, want an error of kind Corrupt", damage, n, err)
			}
		}
	}
}
