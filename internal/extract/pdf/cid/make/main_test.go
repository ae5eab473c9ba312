package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	texts, err := parse("2 beginbfchar\n<0000> <fffd>\n<0002> <82a6db40dd00>\nendbfchar\n2 beginbfrange\n<0003> <0005> <0041>\n<0007> <0008> <00280031>\nendbfrange " +
		"1 beginbfchar <0009> <e000> endbfchar")
	want := []string{"", "", "芦", "A", "B", "C", "", "(1", "(2", ""}
	if diff := cmp.Diff(want, texts); err != nil || diff != "" {
		t.Errorf("parse: %v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "beginbfchar <00> <00> endbfchar", "beginbfchar <0001> endbfchar",
		"beginbfrange <0001> <0002> [<0041> <0042>] endbfrange"} {
		if texts, err := parse(bad); err == nil {
			t.Errorf("parse(%q) = %q, want an error", bad, texts)
		}
	}
}

// TestFiles makes the files again from the folder CMAPS.
func TestFiles(t *testing.T) {
	cmaps := os.Getenv("CMAPS")
	if cmaps == "" {
		t.Skip("CMAPS is not set: it is the folder with the CMaps, for example /usr/share/poppler/cMap")
	}
	to := t.TempDir()
	if err := run([]string{"-o", to, cmaps}); err != nil {
		t.Fatal(err)
	}
	for _, c := range collections {
		got, err := os.ReadFile(filepath.Join(to, c))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", c))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the file in the repository", c)
		}
	}
}
