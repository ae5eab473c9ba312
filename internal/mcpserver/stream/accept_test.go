package stream

import "testing"

// What a client accepts in two headers, or in one list, is what it accepts in
// either.
func FuzzAccepts(f *testing.F) {
	for _, s := range []string{"", "*/*", "application/json", "text/event-stream;q=0.1, a/b", "text/*,", " APPLICATION/* ;x=\",\""} {
		f.Add(s, "application/json")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		aJSON, aStream := Accepts([]string{a})
		bJSON, bStream := Accepts([]string{b})
		for _, values := range [][]string{{a, b}, {b, a}, {a + "," + b}} {
			asJSON, asStream := Accepts(values)
			if asJSON != (aJSON || bJSON) || asStream != (aStream || bStream) {
				t.Errorf("Accepts(%q) = %t, %t; want %t, %t", values, asJSON, asStream, aJSON || bJSON, aStream || bStream)
			}
		}
	})
}
