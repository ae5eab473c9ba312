package document_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// TestCheck checks which documents no store accepts, and what the errors say.
func TestCheck(t *testing.T) {
	good := document.Document{ID: strings.Repeat("x", document.MaxID), Label: "a", Path: "b.md", Text: "text",
		Chunks: []document.Chunk{{Length: 4}}}
	if err := (document.Change{Put: &good}).Check(); err != nil {
		t.Errorf("Check() = %v, want no error", err)
	}
	for want, change := range map[string]func(d *document.Document){
		"has no ID, no label or no path":       func(d *document.Document) { d.ID = "" },
		"has an ID of more than 512 bytes":     func(d *document.Document) { d.ID += "x" },
		"has a text that is not UTF-8":         func(d *document.Document) { d.Text = "\xffabc" },
		"has a chunk outside its text":         func(d *document.Document) { d.Chunks = []document.Chunk{{Offset: 1, Length: 4}} },
		`tag "" cannot be stored: a tag has 1`: func(d *document.Document) { d.Tags = []string{""} },
	} {
		d := good
		change(&d)
		if err := (document.Change{Put: &d}).Check(); !errors.Is(err, errkind.Invalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("Check() = %v, want an error of kind Invalid with %q", err, want)
		}
	}
}
