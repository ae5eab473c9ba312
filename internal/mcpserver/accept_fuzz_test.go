package mcpserver

import "testing"

// What a client accepts in two headers, or in one list, is what it accepts in
// either.
func FuzzAccepts(f *testing.F) {
	for _, s := range []string{"", "*/*", "application/json", "text/event-stream;q=0.1, a/b", "text/*,", " APPLICATION/* ;x=\",\""} {
		f.Add(s, "application/json")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		aJSON, aStream := accepts([]string{a})
		bJSON, bStream := accepts([]string{b})
		for _, values := range [][]string{{a, b}, {b, a}, {a + "," + b}} {
			asJSON, asStream := accepts(values)
			if asJSON != (aJSON || bJSON) || asStream != (aStream || bStream) {
				t.Errorf("accepts(%q) = %t, %t; want %t, %t", values, asJSON, asStream, aJSON || bJSON, aStream || bStream)
			}
		}
	})
}
