package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A charsmap is the table of replacements of SentencePiece's normalizers: a
// double-array trie of the texts that are replaced (Darts-clone), whose values are
// offsets of the replacements, each of which ends with a zero byte.
type charsmap struct {
	units        []uint32
	replacements string
}

// maxReplacement is the maximum length of a replacement in bytes. The longest one of
// NFKC has 33.
const maxReplacement = 100

// precompiled returns the function of a normalizer of type Precompiled.
func precompiled(table string) (func(string) string, error) {
	data, err := base64.StdEncoding.DecodeString(table)
	if err != nil || len(data) < 4 {
		return nil, fmt.Errorf("reading tokenizer.json: the precompiled normalizer is not a table: %w", errkind.Corrupt)
	}
	size, data := uint64(binary.LittleEndian.Uint32(data)), data[4:]
	if size == 0 || size%4 != 0 || size > uint64(len(data)) {
		return nil, fmt.Errorf("reading tokenizer.json: the table of the precompiled normalizer is cut off: %w",
			errkind.Corrupt)
	}
	m := &charsmap{units: make([]uint32, size/4), replacements: string(data[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return m.apply, nil
}

// apply replaces, from left to right, the longest text that the table has.
func (m *charsmap) apply(s string) string {
	var out strings.Builder
	kept := 0 // offset of the text that is not yet in out
	for i := 0; i < len(s); {
		n, replacement := m.longest(s[i:])
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s[i:])
			i += n
			continue
		}
		out.WriteString(s[kept:i])
		if out.Len()+len(replacement) <= len(s)+maxGrowth {
			out.WriteString(replacement)
		}
		i += n
		kept = i
	}
	if kept == 0 {
		return s
	}
	out.WriteString(s[kept:])
	return out.String()
}

// longest returns the length of the longest beginning of s that is replaced, which is
// 0 if there is none, and its replacement.
func (m *charsmap) longest(s string) (n int, replacement string) {
	next := func(at, unit uint32) uint32 { return at ^ unit>>10<<(unit&(1<<9)>>6) }
	at := next(0, m.units[0])
	for i := range len(s) {
		at ^= uint32(s[i])
		if s[i] == 0 || uint64(at) >= uint64(len(m.units)) {
			break
		}
		unit := m.units[at]
		if unit&(1<<31|0xff) != uint32(s[i]) {
			break
		}
		at = next(at, unit)
		if uint64(at) >= uint64(len(m.units)) {
			break
		}
		if unit>>8&1 == 0 {
			continue
		}
		if value := m.units[at] &^ (1 << 31); uint64(value) < uint64(len(m.replacements)) {
			rest := m.replacements[value:]
			if end := strings.IndexByte(rest[:min(len(rest), maxReplacement+1)], 0); end >= 0 {
				n, replacement = i+1, rest[:end]
			}
		}
	}
	return n, replacement
}
