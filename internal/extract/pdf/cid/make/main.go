// Make writes the files of package cid.
//
// Usage:
//
//	go run ./internal/extract/pdf/cid/make [-o FOLDER] CMAPS
//
// CMAPS is a folder with the CMaps of Adobe's mapping-resources-pdf, such as
// Adobe-Japan1/Adobe-Japan1-UCS2. The Debian package poppler-data has them in
// /usr/share/poppler/cMap.
package main

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const output = "internal/extract/pdf/cid"

var collections = []string{"Adobe-CNS1", "Adobe-GB1", "Adobe-Japan1", "Adobe-Korea1"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

// run writes the files.
func run(args []string) error {
	to := output
	if len(args) >= 2 && args[0] == "-o" {
		to, args = args[1], args[2:]
	}
	if len(args) != 1 {
		return errors.New("usage: make [-o FOLDER] CMAPS")
	}
	for _, c := range collections {
		cmap, err := os.ReadFile(filepath.Join(args[0], c, c+"-UCS2"))
		if err != nil {
			return err
		}
		texts, err := parse(string(cmap))
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		packed, err := pack(texts)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, c), packed, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d CIDs, %d bytes\n", c, len(texts), len(packed))
	}
	return nil
}

var (
	section = regexp.MustCompile(`(?s)begin(bfchar|bfrange)(.*?)endbf`)
	value   = regexp.MustCompile(`<([0-9A-Fa-f]+)>`)
)

// parse returns the texts of a ToUnicode CMap by CID. A CID without one has the
// text "".
func parse(cmap string) ([]string, error) {
	var texts []string
	for _, s := range section.FindAllStringSubmatch(cmap, -1) {
		if strings.Contains(s[2], "[") {
			return nil, errors.New("a range with an array is not supported")
		}
		var values [][]byte
		for _, v := range value.FindAllStringSubmatch(s[2], -1) {
			b, err := hex.DecodeString(v[1])
			if err != nil || len(b)%2 != 0 {
				return nil, fmt.Errorf("bad value %s", v[0])
			}
			values = append(values, b)
		}
		n := 2 // values of an entry
		if s[1] == "bfrange" {
			n = 3
		}
		for ; len(values) >= n; values = values[n:] {
			lo, hi := int(binary.BigEndian.Uint16(values[0])), int(binary.BigEndian.Uint16(values[n-2]))
			text := utf16Text(values[n-1])
			for cid := lo; cid <= hi; cid++ {
				for len(texts) <= cid {
					texts = append(texts, "")
				}
				text[len(text)-1] += rune(min(cid-lo, 1))
				texts[cid] = readable(text)
			}
		}
		if len(values) > 0 {
			return nil, errors.New("an entry is not complete")
		}
	}
	if len(texts) == 0 {
		return nil, errors.New("no entries")
	}
	return texts, nil
}

func utf16Text(b []byte) []rune {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.BigEndian.Uint16(b[2*i:])
	}
	return utf16.Decode(u)
}

// readable returns a text without selectors of variants, which no search finds, or
// "" if it contains private or replacement characters.
func readable(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Variation_Selector, r):
		case unicode.Is(unicode.Co, r), r == utf8.RuneError, unicode.IsControl(r):
			return ""
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// pack returns the file for some texts; package cid describes its format.
func pack(texts []string) ([]byte, error) {
	plain := binary.AppendUvarint(nil, uint64(len(texts)))
	var rest []byte
	var last rune
	more, lastMore := 0, 0
	for cid, text := range texts {
		r, n := utf8.DecodeRuneInString(text) // U+FFFD if there is none
		plain = binary.AppendVarint(plain, int64(r-last-1))
		last = r
		if tail := text[n:]; tail != "" {
			rest = binary.AppendUvarint(rest, uint64(cid-lastMore))
			rest = binary.AppendUvarint(rest, uint64(len(tail)))
			rest = append(rest, tail...)
			more, lastMore = more+1, cid
		}
	}
	plain = append(binary.AppendUvarint(plain, uint64(more)), rest...)
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
