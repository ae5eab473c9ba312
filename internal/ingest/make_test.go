package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestMake(t *testing.T) {
	day := time.Date(2025, 4, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name  string
		data  string
		known document.Document
		want  document.Document
	}{
		{"a file", "Plain words.\n", document.Document{Label: "docs", Path: "sub/a.txt", SourcePath: "sub/a.txt",
			Modified: day},
			document.Document{ID: document.IDOf("docs", "sub/a.txt"), Label: "docs", Path: "sub/a.txt", SourcePath: "sub/a.txt",
				Modified: day,
				Type:     "text", Title: "a.txt", MIMEType: "text/plain", FileType: "txt", Filename: "a.txt", Size: 13,
				Text: "Plain words."}},
		{"a note", "# Bullet points\n\nThe user likes them.",
			document.Document{ID: "note-7", Label: "memory", Path: ".notes/7", Type: "note",
				MIMEType: "text/markdown; charset=utf-8", Tags: []string{"feedback"}},
			document.Document{ID: "note-7", Label: "memory", Path: ".notes/7", Type: "note", Tags: []string{"feedback"},
				Lang:  "en",
				Title: "Bullet points", MIMEType: "text/markdown", FileType: "txt", Filename: "7", Size: 37,
				Text:     "# Bullet points\n\nThe user likes them.",
				Sections: []document.Section{{Heading: "Bullet points"}}}},
		{"with a title and a name", "<title>Page</title><p>Text",
			document.Document{Label: "web", Path: "p", Title: "Mine", Filename: "index.html",
				MIMEType: "text/html", URL: "https://example.com/p", Host: "example.com"},
			document.Document{ID: document.IDOf("web", "p"), Label: "web", Path: "p", Type: "html", Title: "Mine",
				MIMEType: "text/html", FileType: "html",
				Filename: "index.html", URL: "https://example.com/p", Host: "example.com", Size: 26, Text: "Text"}},
		{"pages", "%PDF-1.4\n" + `1 0 obj <</Type/Catalog/Pages 2 0 R/PageLabels<</Nums[0<</S/r/St 4>>]>>>> endobj
2 0 obj <</Kids[3 0 R]>> endobj 3 0 obj <</Type/Page/Contents 4 0 R/Resources<</Font<</F<</Subtype/Type1/BaseFont/Helvetica>>>>>>>> endobj
4 0 obj <</Length 33>> stream
BT /F 10 Tf 72 700 Td (Text) Tj ET
endstream endobj
trailer <</Root 1 0 R>>`, document.Document{Label: "docs", Path: "a.pdf"},
			document.Document{ID: document.IDOf("docs", "a.pdf"), Label: "docs", Path: "a.pdf", Type: "pdf", Title: "a.pdf",
				MIMEType: "application/pdf",
				FileType: "pdf", Filename: "a.pdf", Size: 334, Text: "Text", Pages: []document.Page{{Label: "iv"}}}},
		{"nothing", "", document.Document{Label: "docs", Path: "empty.md"},
			document.Document{ID: document.IDOf("docs", "empty.md"), Label: "docs", Path: "empty.md", Type: "markdown",
				Title:    "empty.md",
				MIMEType: "text/markdown", FileType: "txt", Filename: "empty.md"}},
	}
	for _, test := range tests {
		got, err := Make(t.Context(), []byte(test.data), test.known)
		if err != nil {
			t.Errorf("%s: Make() = %v", test.name, err)
			continue
		}
		test.want.Hash = chunk.Hash(test.want.Text)
		if len(got.Chunks) != min(len(test.want.Text), 1) {
			t.Errorf("%s: %d chunks, want one if there is a text", test.name, len(got.Chunks))
		}
		got.Chunks = nil
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("%s: Make() (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestMakeType(t *testing.T) {
	for name, want := range map[string]string{"a.md": "markdown", "a.csv": "csv", "a.txt": "text", "a.html": "html"} {
		if d, err := Make(t.Context(), []byte("a,b"), document.Document{Label: "docs", Path: name}); err != nil ||
			d.Type != want {
			t.Errorf("Make(%s) = %v, %v, want type %s", name, d, err, want)
		}
	}
	names, err := filepath.Glob("../extract/testdata/documents/libreoffice.*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimPrefix(filepath.Ext(name), ".")
		if d, err := Make(t.Context(), data, document.Document{Label: "docs", Path: filepath.Base(name)}); err == nil &&
			d.Type != want {
			t.Errorf("Make(%s) has type %s, want %s", name, d.Type, want)
		}
	}
}

// The names of columns are in every chunk of a table, as text in the first one
// and as a heading in the others.
func TestMakeTable(t *testing.T) {
	data := "city,people\n" + strings.Repeat("Graz an der Mur,291134\n", 500)
	d, err := Make(t.Context(), []byte(data), document.Document{Label: "docs", Path: "a.csv"})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range d.Chunks {
		if c.Heading != "city | people" {
			t.Errorf("chunk %d has heading %q, want the names of the columns", i, c.Heading)
		}
	}
	if len(d.Chunks) < 5 || d.Title != "a.csv" {
		t.Errorf("Make() = %d chunks of %q, want at least 5 of a.csv", len(d.Chunks), d.Title)
	}
}

func TestMakeRefuses(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		ctx  context.Context
		data string
		path string
		want error
	}{
		{t.Context(), "\x89PNG\r\n\x1a\n", "a.png", errkind.Unsupported},
		{t.Context(), "%PDF-1.4\nnothing else", "a.pdf", errkind.Corrupt},
		{ended, "text", "a.txt", context.Canceled},
	}
	for _, test := range tests {
		if d, err := Make(test.ctx, []byte(test.data), document.Document{Label: "docs", Path: test.path}); d != nil ||
			!errors.Is(err, test.want) {
			t.Errorf("Make(%s) = %v, %v, want an error of kind %v", test.path, d, err, test.want)
		}
	}
}

// FuzzMake checks what an index demands of a document.
func FuzzMake(f *testing.F) {
	for _, name := range []string{"a.md", "a.html", "a.txt", "a.pdf", "a", ""} {
		f.Add([]byte("# Title\n\ntext <b>of</b> 検索\n"), name, "")
		f.Add([]byte("\xff\xfe<\x00h\x00>\x00"), name, "text/html; charset=utf-16")
	}
	f.Fuzz(func(t *testing.T, data []byte, name, media string) {
		d, err := Make(t.Context(), data, document.Document{Label: "docs", Path: name, MIMEType: media})
		if err != nil {
			return
		}
		if d.ID == "" || d.Title == "" || d.Type == "" || d.Filename == "" || !utf8.ValidString(d.Text) ||
			d.Size != int64(len(data)) {
			t.Errorf("Make(%q, %q, %q) = %+v, want all fields set", data, name, media, d)
		}
		end := 0
		for _, c := range d.Chunks {
			if c.Offset != end || c.Length <= 0 {
				t.Errorf("Make(%q, %q, %q) has chunks %v, want them side by side", data, name, media, d.Chunks)
			}
			end = c.Offset + c.Length
		}
		if end != len(d.Text) {
			t.Errorf("Make(%q, %q, %q) has chunks up to %d of %d bytes", data, name, media, end, len(d.Text))
		}
	})
}

// The files in a folder help to read one of them in an old character set.
func TestSyncReadsCharsetsOfNeighbours(t *testing.T) {
	const polish = "Ten dokument nie jest bardzo długi, ale jest po polsku."
	root := folder(t, map[string]string{
		"a/city.txt": "Gda\xf1sk", "a/one.md": polish, "a/two.txt": polish + " Także ten.",
		"a/x.html":   "<p>The page of the project is in English and that is all.",
		"b/city.txt": "Espa\xf1a", "b/uno.txt": "El documento es de la empresa y no está en inglés.",
		"alone/city.txt": "Wa\xb3brzych", "alone/pic.png": "\x89PNG\r\n\x1a\n",
	})
	sink := &memorySink{}
	if _, err := New(Options{Sink: sink}).Sync(t.Context(), docs(root)); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{"a/city.txt": "Gdańsk", "b/city.txt": "España"} {
		if d := sink.doc(p); d == nil || d.Text != want {
			t.Errorf("%s = %+v, want %q", p, d, want)
		}
	}
}
