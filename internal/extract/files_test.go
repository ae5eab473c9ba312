package extract

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestFiles extracts the files in testdata/formats and compares the results
// with the golden files beside them.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/formats/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			in := Input{Name: filepath.Base(file), Data: data}
			err = Parts(t.Context(), in, func(string) bool { return true }, func(p Part) error {
				got += describe(t, p)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			golden := file + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// describe returns a document as it stands in a golden file.
func describe(t *testing.T, p Part) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ntype: %s, %s, %s\ntitle: %s\n", p.Name, p.MediaType, p.FileType, p.Lang, p.Title)
	for _, h := range p.Headings {
		if h.Offset < 0 || h.Offset >= len(p.Body) || h.Offset > 0 && p.Body[h.Offset-1] == '\r' {
			t.Errorf("heading %q stands at %d of %d", h.Text, h.Offset, len(p.Body))
			continue
		}
		line, _, _ := strings.Cut(p.Body[h.Offset:], "\n")
		fmt.Fprintf(&b, "heading %d: %s", h.Level, h.Text)
		if !strings.HasPrefix(line, h.Text) {
			fmt.Fprintf(&b, " (at %q)", line)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "----\n%s\n====\n", p.Body)
	return b.String()
}

// Declarations in one line, and those inside a class, are headings, too.
func TestDeclarations(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      []string // text of the headings
	}{
		{"a.go", "type (\n\t// A is.\n\tA struct {\n\t\tx int\n\t}\n\tB[T any] interface{ M() }\n)\n",
			[]string{"A struct", "B[T any] interface"}},
		{"a.js", "class A {\n  static async load(x) { return 1 }\n  get b() { return this.c }\n  run() {\n    if (a) { b() }\n    call(function () { x() })\n  }\n}\n", []string{"class A", "static async load(x)", "get b()", "run()"}},
		{"a.c", "struct point { int x; };\nstruct point p = {1};\nenum color { RED, GREEN };\nint f(struct point *p) {\n\tif (p) { g(p); }\n\twhile (g(p)) {\n\t}\n}\n", []string{"struct point", "enum color", "int f(struct point *p)"}},
		{"a.cpp", "class A {\n public:\n  int size() const { return n; }\n  virtual void run(int x) override {\n    if (x) { go(); } else if (y) { z(); }\n    for (auto& i : v) {\n    }\n  }\n  ~A() {}\n};\n", []string{"class A", "int size() const", "virtual void run(int x) override"}},
		{"deploy", "#!/usr/bin/env bash\nroll_out() {\n\ttrue\n}\n", []string{"roll_out()"}},
		{"tool", "#!/usr/bin/env -S python3.11 -u\ndef main():\n    pass\n", []string{"def main()"}},
		{"x", "#!/usr/bin/awk -f\n{ print }\n", nil},
	} {
		var got []string
		for _, h := range mustExtract(t, Input{Name: tt.name, Data: []byte(tt.src)}).Headings {
			got = append(got, h.Text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The end of a line between two characters of Chinese or Japanese is not a blank.
func TestLineEndsOfCJK(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a.1", ".TH A 1\n.SH 書式\nファイ\nルを開く。\n次の文 は\nls の\n.B 出力\nです\nls\nまたは\n.PP\n한국\n어\n",
			"書式\n\nファイルを開く。次の文 は ls の出力です ls または\n\n한국 어"},
		{"a.1", ".TH A 1\n.SH 書式\n.TP\n.B 引数\n値\nです\n.nf\n一\n二\n", "書式\n\n引数\n値です\n\n一\n二"},
		{"a.html", "<p>ファイ\n  ルを<b>開\n</b>\nく。 次\tの文\nls\nの<br>\n出\r\n力 \n です</p><pre>一\n二</pre>",
			"ファイルを開く。 次 の文 ls の\n出力です\n\n一\n二"},
		{"a.html", "<p>한국\n어</p>", "한국 어"},
	} {
		if x := mustExtract(t, Input{Name: tt.name, Data: []byte(tt.in)}); x.Body != tt.want {
			t.Errorf("Extract(%q) = %q, want %q", tt.in, x.Body, tt.want)
		}
	}
}

// Escape sequences with characters that are not ASCII are read as a whole.
func TestManualCharacters(t *testing.T) {
	src := ".TH A 1\n.SH Ім\\'я\na \\fж b \\(жук c \\*ж d \\[ж e \\hжxж f \\ж g \\*(ж\n"
	x := mustExtract(t, Input{Name: "a.1", Data: []byte(src)})
	if want := "Ім'я\n\na  b к c  d ж e  f ж g"; x.Body != want {
		t.Errorf("Extract = %q, want %q", x.Body, want)
	}
}
