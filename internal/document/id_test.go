package document

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"regexp"
	"testing"
)

// TestIDOf has IDs that must never change: they are in data folders, and in what
// people and agents have written.
func TestIDOf(t *testing.T) {
	tests := []struct{ label, path, want string }{
		// printf 'docs\0a/b.md' | sha256sum | cut -c1-16 is 38ac3698fb8ca353.
		{"docs", "a/b.md", "fc194oz157dm25eh"},
		{"docs", "a/c.md", "ar746uu740kk00tf"},
		{"", ".notes/a06862fe86b1236a1b75af2bf8cb5289.md", "hv149xk847cl54cq"},
		{"", ".files/ü/compost.txt", "wa383sx451kx37mg"},
	}
	form := regexp.MustCompile(`^[a-z]{2}[0-9]{3}[a-z]{2}[0-9]{3}[a-z]{2}[0-9]{2}[a-z]{2}$`)
	for _, tt := range tests {
		got := IDOf(tt.label, tt.path)
		if got != tt.want {
			t.Errorf("IDOf(%q, %q) = %s, want %s", tt.label, tt.path, got, tt.want)
		}
		if !form.MatchString(got) {
			t.Errorf("IDOf(%q, %q) = %s, which has another form", tt.label, tt.path, got)
		}
		// Earlier programs used 16 bytes of the hash in hex.
		sum := sha256.Sum256([]byte(tt.label + "\x00" + tt.path))
		if old := hex.EncodeToString(sum[:16]); PresentID(old) != got {
			t.Errorf("PresentID(%s) = %s, want %s", old, PresentID(old), got)
		}
		if PresentID(got) != got {
			t.Errorf("PresentID(%s) = %s, want no change", got, PresentID(got))
		}
	}
}

func TestFormID(t *testing.T) {
	tests := []struct {
		n    uint64
		want string
	}{
		{0, "aa000aa000aa00aa"},
		{25, "aa000aa000aa00az"},
		{26*26*100 - 1, "aa000aa000aa99zz"},
		{26 * 26 * 100, "aa000aa000ab00aa"},
		{math.MaxUint64, "wz144uc113ns84qp"},
	}
	for _, tt := range tests {
		if got := formID(tt.n); got != tt.want {
			t.Errorf("formID(%d) = %s, want %s", tt.n, got, tt.want)
		}
	}
}

func TestPresentID(t *testing.T) {
	for _, id := range []string{"", "n1", "38ac3698fb8ca353", "38ac3698fb8ca3534f1c31cb75a5599", "zzac3698fb8ca3534f1c31cb75a5599e"} {
		if got := PresentID(id); got != id {
			t.Errorf("PresentID(%q) = %q, want no change", id, got)
		}
	}
}
