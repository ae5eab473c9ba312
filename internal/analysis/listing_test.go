package analysis

import (
	"strings"
	"testing"
)

// TestIsListing checks which texts are lists of names or change logs.
func TestIsListing(t *testing.T) {
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
		{"a change log of patches", "Patch 8.2.1230\nProblem: It fails.\nPatch 8.2.1231\nPatch 8.2.1232\nPatch v8.2.1233\n" +
			"Solution: Make it work, and test that it does.\nThing 8.2.1234", "", true},
		{"a change log with reports", "- A fix, #1230\n- bpo-1231: Another\n- It works (Closes: 1232)\n- GH-1233: More.\n" +
			"- The last one, which is CVE 2024.", "", true},
		{"the same patch again", strings.Repeat("Patch 8.2.1230 is the one that you need for it.\n", 10), "en", false},
		{"sections, addresses and numbers", "5.11.1. One\n5.11.2. Two\n5.11.3. Three\n5.11.4. Four\nat 10.0.0.1 and 10.0.0.2\n" +
			"of 1230 or 1231 or 1232 to 1233, and 1234", "en", false},
		{"nothing", "", "en", false},
	} {
		if got := IsListing(tt.text, tt.lang); got != tt.want {
			t.Errorf("%s: IsListing(%.60q) = %t, want %t", tt.name, tt.text, got, tt.want)
		}
	}
}

func BenchmarkIsListing(b *testing.B) {
	for name, text := range map[string]string{
		"prose": strings.Repeat("The names of the algorithms are separated by commas. ", 23),
		"list":  strings.Repeat("AllowOverride\nBrowserMatch\nCheckSpelling\n", 30),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				IsListing(text, "en")
			}
		})
	}
}
