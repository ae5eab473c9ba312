package analysis_test

import (
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
)

// BenchmarkHostile measures texts that are made to be slow. The rates are those
// of three passes. They must not decrease as the texts grow.
func BenchmarkHostile(b *testing.B) {
	for name, unit := range map[string]string{
		"bad bytes":       "\xff",
		"cut runes":       "\xe3\x81",
		"marks":           "\u0301",
		"mixed marks":     "\u0301\u0323",
		"letter and mark": "か\u3099",
		"expanding":       "\uFDFA",
		"jamo":            "\u1100\u1161",
		"apostrophes":     "a'",
		"soft hyphens":    "a\u00ad",
		"one word":        "é",
		"long words":      "abcdefghij",
	} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for range analysis.Tokens(text, analysis.English) {
				}
				analysis.Digest(text, analysis.English, terms("値", "absent"), 240)
				for range analysis.Analyze(text, analysis.English) {
				}
			}
		})
	}
}
