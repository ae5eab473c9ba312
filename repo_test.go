package knowhow_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// goFiles returns the contents of all Go files of the repository by path.
// Reading them invalidates the test cache when one changes.
func goFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") &&
			file != ".") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		files[filepath.ToSlash(file)], err = os.ReadFile(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestFormat checks that every Go file is formatted with gofmt.
func TestFormat(t *testing.T) {
	for file, src := range goFiles(t) {
		out, err := format.Source(src)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		} else if !bytes.Equal(src, out) {
			t.Errorf("%s is not formatted: run gofmt -w %s", file, file)
		}
	}
}

// TestDocComments reports exported functions and methods without a doc comment.
func TestDocComments(t *testing.T) {
	for file, src := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && fn.Name.IsExported() && fn.Doc == nil && (fn.Recv == nil || exportedReceiver(fn)) {
				t.Errorf("%s: %s is exported and has no doc comment", file, fn.Name.Name)
			}
		}
	}
}

// exportedReceiver reports whether a method belongs to an exported type.
func exportedReceiver(fn *ast.FuncDecl) bool {
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// anchors returns the anchors of the headings of a Markdown text, as GitHub makes them.
func anchors(text []byte) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^#+ (.+)$").FindAllSubmatch(text, -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, string(m[1]))
		all[anchor] = true
	}
	return all
}

// TestLinks checks that the relative links in Markdown files lead to existing
// files and headings.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".md") {
			return nil
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllSubmatch(src, -1) {
			to := string(m[1])
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(to, "#")
			if path = filepath.Join(filepath.Dir(file), path); strings.HasPrefix(to, "#") {
				path = file
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, to)
				continue
			}
			if anchor == "" || !strings.HasSuffix(path, ".md") {
				continue
			}
			target, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if !anchors(target)[anchor] {
				t.Errorf("%s links to %s, which is no heading there", file, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGuides checks that each guide that the README lists has one picture and fits
// on a screen.
func TestGuides(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(readme), "\n## Guides\n")
	list, _, _ = strings.Cut(list, "\n## ")
	guides := regexp.MustCompile(`\]\((docs/[a-z-]+\.md)\)`).FindAllStringSubmatch(list, -1)
	if len(guides) < 13 {
		t.Fatalf("README.md lists %d guides, want at least 13", len(guides))
	}
	picture := regexp.MustCompile(`(?m)^!\[[^\]]+\]\(\.\./(assets/[a-z-]+\.(svg|png))\)$`)
	for _, m := range guides {
		text, err := os.ReadFile(m[1])
		if err != nil {
			t.Error(err) // TestLinks checks pictures
			continue
		}
		if n := len(picture.FindAll(text, -1)); n != 1 {
			t.Errorf("%s has %d pictures with an alternative text, want 1", m[1], n)
		}
		if n := bytes.Count(text, []byte("\n")); n > 65 {
			t.Errorf("%s has %d lines, want at most 65: move details to a page of the reference", m[1], n)
		}
	}
}

// TestPictures checks that pictures are small, and that drawings show the same
// everywhere: they have no scripts and refer to no other file.
func TestPictures(t *testing.T) {
	pages, err := filepath.Glob("assets/*.png")
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, file := range pages {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if total += info.Size(); info.Size() > 120_000 {
			t.Errorf("%s has %d bytes, want at most 120,000: .ci/console -pictures makes it smaller", file, info.Size())
		}
	}
	if total > 500_000 {
		t.Errorf("the files %s have %d bytes, want at most 500,000", pages, total)
	}
	files, err := filepath.Glob("assets/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 8192 {
			t.Errorf("%s has %d bytes, want at most 8192", file, len(text))
		}
		decoder := xml.NewDecoder(bytes.NewReader(text))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			switch start.Name.Local {
			case "svg", "title", "rect", "circle", "path", "text", "tspan", "defs", "marker":
			default:
				t.Errorf("%s has the element %s", file, start.Name.Local)
			}
			for _, attr := range start.Attr {
				if attr.Name.Local == "href" || strings.HasPrefix(attr.Name.Local, "on") {
					t.Errorf("%s has the attribute %s", file, attr.Name.Local)
				}
			}
		}
	}
}
