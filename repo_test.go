package knowhow_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
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
