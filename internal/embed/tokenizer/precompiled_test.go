package tokenizer

import (
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// testCharsmap is the table that SentencePiece makes of six rules: ﬁ, ①, ｶ, ｶ with a
// separate mark, an ideographic space, and a zero-width space that is removed.
//
//go:embed testdata/charsmap.txt
var testCharsmap string

func TestPrecompiled(t *testing.T) {
	replace, err := precompiled(testCharsmap)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                     "",
		"fine":                 "fine",
		"ﬁne ①":                "fine 1",
		"ｶｶﾞｷ":                 "カガｷ", // the longest one
		"a\u3000b\u200bc":      "a bc",
		"\xffﬁ\xe3\x80":        "\xfffi\xe3\x80",
		"日本\x00ﬁ":              "日本\x00fi",
		strings.Repeat("①", 3): "111",
	} {
		if got := replace(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestPrecompiledGrowth checks that a table cannot make a text much longer.
func TestPrecompiledGrowth(t *testing.T) {
	data, err := base64.StdEncoding.DecodeString(testCharsmap)
	if err != nil {
		t.Fatal(err)
	}
	size := 4 + binary.LittleEndian.Uint32(data)
	for i := range data[size:] {
		data[size:][i] = 'x'
	}
	long := append(data, append([]byte(strings.Repeat("y", maxReplacement-20)), 0)...)
	replace, err := precompiled(base64.StdEncoding.EncodeToString(long))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("①", 10_000)
	if got := replace(text); len(got) > len(text)+maxGrowth {
		t.Errorf("%d bytes became %d", len(text), len(got))
	}
}

func FuzzPrecompiled(f *testing.F) {
	data, err := base64.StdEncoding.DecodeString(testCharsmap)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, "ﬁne ①\u3000ｶﾞ\xff")
	f.Add([]byte{4, 0, 0, 0, 255, 255, 255, 255}, "a")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		replace, err := precompiled(base64.StdEncoding.EncodeToString(data))
		if err != nil {
			if !errors.Is(err, errkind.Corrupt) {
				t.Errorf("precompiled() = %v, want kind Corrupt", err)
			}
			return
		}
		if got := replace(text); len(got) > len(text)+maxGrowth {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
	})
}
