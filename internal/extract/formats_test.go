package extract

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each extension and media type belongs to one format.
func TestFormatsAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, f := range formats {
		for word := range strings.FieldsSeq(f.ext + " " + f.media + " " + f.alias) {
			if other := seen[word]; other != "" {
				t.Errorf("%s belongs to %s and %s", word, other, f.name)
			}
			seen[word] = f.name
		}
	}
}

// The formats that docs/formats.md lists as read are declared so.
func TestDocumentedFormats(t *testing.T) {
	doc, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(doc), "\n\nThe values of front matter")
	extension := regexp.MustCompile(`(?:^|[ \x60,])(\.[a-z0-9]+)\b`)
	n := 0
	for row := range strings.Lines(table) {
		columns := strings.Split(row, "|")
		if len(columns) < 3 {
			continue
		}
		for _, m := range extension.FindAllStringSubmatch(columns[2], -1) {
			n++
			if f := byExtension[m[1]]; f.kind == unreadFile || f.kind == unreadDocument {
				t.Errorf("%s is documented and not read", m[1])
			}
		}
	}
	if n < 60 {
		t.Errorf("found %d extensions", n)
	}
}
