package index_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"knowhow/internal/document"
	"knowhow/internal/index"
	"knowhow/internal/query"
	"knowhow/internal/search"
)

var store = flag.Bool("store", false, "write the index file of this version to testdata, to test later migrations")

// TestStore writes the file that migrations of later versions are tested with.
func TestStore(t *testing.T) {
	if !*store {
		t.Skip("writes testdata with -store only")
	}
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	for _, s := range []document.Source{
		{Label: "docs", Path: "/srv/docs", Description: "How the program is used"},
		{Label: "notes-2", Path: "/srv/notes"},
	} {
		if err := x.AddSource(t.Context(), s); err != nil {
			t.Fatalf("AddSource(%v) = %v", s, err)
		}
	}
	in := func(lang string, d document.Document) document.Document { d.Lang = lang; return d }
	put(t, x,
		in("en", doc("docs", "en.md", "Installing knowhow", "Installing needs one program.\n\nThen index a folder and search it.")),
		in("en", doc("docs", "gone.md", "Gone", "This document is removed again.")),
		in("de", doc("docs", "de.md", "Häuser", "Die Häuser stehen am Fluss.\n\nEin Schloss steht auf dem Hügel.")),
		in("ja", doc("notes-2", "ja.md", "全文検索", "東京都の全文検索システムについて。\n\n日本語の文書を検索する。")),
		in("en", doc("notes-2", "en.md", "Installing knowhow", "A note about installing, under the same path as another document.")),
		in("fr", doc("notes-2", "fr/été.md", "L'été", "Les fenêtres sont ouvertes pendant l'été.")),
		in("en", doc("notes-2", "last.md", "Last", "The last document is removed too.")))
	err = x.Apply(t.Context(), []document.Change{
		{Delete: &document.Ref{Label: "docs", Path: "gone.md"}},
		{Delete: &document.Ref{Label: "notes-2", Path: "last.md"}},
	})
	if err != nil {
		t.Fatalf("Apply() = %v", err)
	}
	page(t, x, search.Query{Text: query.MustParse("installing")}) // is remembered
	if err := x.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, index.FileName))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("testdata/v%d.db.gz", index.Version), packed.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}
