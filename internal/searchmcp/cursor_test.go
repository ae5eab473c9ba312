package searchmcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestCursorComesBack(t *testing.T) {
	for _, off := range []int64{0, 1, 127, 128, 262_144, 1 << 40} {
		c := cursor{kind: textCursor, scope: "finance/d1", mark: "sha256:abc", offset: off}
		p, err := parseCursor(c.String(), textCursor, "finance/d1")
		if err != nil || p.offset != off || !p.isIn("sha256:abc") || p.isIn("sha256:abd") {
			t.Errorf("parseCursor(%s) = %+v, %v, want offset %d and the mark", c, p, err, off)
		}
		if n := len(c.String()); n > 40 {
			t.Errorf("cursor %s has %d characters, want at most 40", c, n)
		}
	}
}

func TestCursorRefused(t *testing.T) {
	good := cursor{kind: textCursor, scope: "finance/d1", mark: "m", offset: 300}.String()
	swapped := []byte(good)
	swapped[20], swapped[21] = swapped[21], swapped[20]
	for _, tt := range []struct{ name, in string }{
		{"empty", ""},
		{"number", "5"},
		{"not base64", "!!!"},
		{"padding", good + "=="},
		{"line end", good + "\n"},
		{"cut", good[:len(good)-2]},
		{"doubled", good + good},
		{"slip of the hand", string(swapped)},
		{"upper case", strings.ToUpper(good)},
		{"other document", cursor{kind: textCursor, scope: "finance/d2", mark: "m", offset: 300}.String()},
		{"other kind", cursor{kind: listCursor, scope: "finance/d1", offset: 300}.String()},
		{"huge", strings.Repeat("A", 100_000)},
		{"offset out of range", cursor{kind: textCursor, scope: "finance/d1", mark: "m", offset: -1}.String()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parseCursor(tt.in, textCursor, "finance/d1")
			var arg *errkind.Argument
			if !errors.As(err, &arg) || arg.Name != "cursor" {
				t.Errorf("parseCursor(%.60q) = %+v, %v, want an error about argument cursor", tt.in, p, err)
			}
		})
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(cursor{kind: textCursor, scope: "s", mark: "m", offset: 7}.String())
	f.Add(cursor{kind: listCursor, scope: "s", offset: 100}.String())
	f.Add("AQx0")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseCursor(s, textCursor, "s")
		if err != nil {
			return
		}
		if p.offset < 0 {
			t.Fatalf("parseCursor(%q).offset = %d", s, p.offset)
		}
		if p.isIn("m") {
			if again := (cursor{kind: textCursor, scope: "s", mark: "m",
				offset: p.offset}).String(); len(again) > len(s) {
				t.Errorf("parseCursor(%q) has a longer form %q", s, again)
			}
		}
	})
}
