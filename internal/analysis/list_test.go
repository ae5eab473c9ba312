package analysis

import (
	"strings"
	"testing"
)

// TestIsList checks that lists of names are told from prose, tables and code.
func TestIsList(t *testing.T) {
	names := "ecdsa-sha2-nistp256-cert-v01@openssh.com, ssh-ed25519-cert-v01@openssh.com, rsa-sha2-512, rsa-sha2-256,\n"
	for _, tt := range []struct {
		name, text, lang string
		want             bool
	}{
		{"names of algorithms", strings.Repeat(names, 4), "en", true},
		{"a table of contents",
			strings.Repeat("4.2. Configuration Parameters\n4.3. Server Log Files\n5. Backup\n", 10), "en", true},
		{"an index in German", strings.Repeat("AllowOverride\nBrowserMatch\nCheckSpelling\n", 20), "de", true},
		{"a short one", names, "en", false},
		{"prose", strings.Repeat("The names of the algorithms are separated by commas.\n", 10), "en", false},
		{"descriptions", strings.Repeat("-n\tnumber of lines\n-q\tprint nothing at all\n", 15), "en", false},
		{"code", strings.Repeat("int err = open(name, flags);\nif (err != 0) {\n\treturn err;\n}\n", 10), "en", false},
		{"a language without function words",
			strings.Repeat("Nazwy algorytmów są oddzielone przecinkami.\n", 20), "pl", false},
		{"an unknown language", strings.Repeat(names, 4), "", false},
		{"nothing", "", "en", false},
	} {
		if got := IsList(tt.text, tt.lang); got != tt.want {
			t.Errorf("%s: IsList(%.60q) = %t, want %t", tt.name, tt.text, got, tt.want)
		}
	}
}

func BenchmarkIsList(b *testing.B) {
	for name, text := range map[string]string{
		"prose": strings.Repeat("The names of the algorithms are separated by commas. ", 23),
		"list":  strings.Repeat("AllowOverride\nBrowserMatch\nCheckSpelling\n", 30),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				IsList(text, "en")
			}
		})
	}
}
