package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// leftOutOf returns the left-out paths of a result with their reasons.
func leftOutOf(res *Result) map[string]Reason {
	m := map[string]Reason{}
	for _, l := range res.LeftOutPaths {
		m[l.Path] = l.Reason
	}
	return m
}

func TestIgnoreFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string // of a folder; the source is src in it
		rules document.Rules
		want  []string
		left  map[string]Reason
	}{
		{
			name: "nested and negated",
			files: map[string]string{"src/.gitignore": "*.log\nbuild/\n/top.txt\n", "src/a.txt": "", "src/x.log": "",
				"src/build/y.txt": "", "src/top.txt": "", "src/sub/top.txt": "", "src/sub/.gitignore": "!keep.log\n",
				"src/sub/keep.log": "", "src/sub/z.log": ""},
			want: []string{"a.txt", "sub/keep.log", "sub/top.txt"},
			left: map[string]Reason{".gitignore": Hidden, "sub/.gitignore": Hidden, "build/": Ignored, "x.log": Ignored,
				"top.txt": Ignored, "sub/z.log": Ignored},
		},
		{
			name:  "a file in a folder that is ignored cannot be included",
			files: map[string]string{"src/.gitignore": "build/\n!build/keep.txt\n", "src/build/keep.txt": ""},
			left:  map[string]Reason{".gitignore": Hidden, "build/": Ignored},
		},
		{
			name: ".ignore has precedence over .gitignore",
			files: map[string]string{"src/.gitignore": "*.md\n", "src/.ignore": "!a.md\n",
				"src/sub/.gitignore": "a.md\n", "src/a.md": "", "src/b.md": "", "src/sub/a.md": ""},
			want: []string{"a.md", "sub/a.md"},
			left: map[string]Reason{".gitignore": Hidden, ".ignore": Hidden, "sub/.gitignore": Hidden, "b.md": Ignored},
		},
		{
			name: "above the source, in its repository",
			files: map[string]string{".git/info/exclude": "*.tmp\n", ".gitignore": "/src/docs/x.txt\n*.log\n",
				".ignore": "/src/y.txt\n", "src/docs/x.txt": "", "src/x.txt": "", "src/y.txt": "", "src/a.log": "",
				"src/a.tmp": "", "src/.gitignore": "!b.tmp", "src/b.tmp": ""},
			want: []string{"b.tmp", "x.txt"},
			left: map[string]Reason{".gitignore": Hidden, "docs/x.txt": Ignored, "y.txt": Ignored, "a.log": Ignored,
				"a.tmp": Ignored},
		},
		{
			name:  "above the source, without a repository",
			files: map[string]string{".gitignore": "*\n", "src/x.txt": ""},
			want:  []string{"x.txt"},
		},
		{
			name:  "above the source, which is a repository",
			files: map[string]string{".git/HEAD": "", ".gitignore": "*\n", "src/.git/HEAD": "", "src/x.txt": ""},
			want:  []string{"x.txt"},
			left:  map[string]Reason{".git/": Hidden},
		},
		{
			name:  "the source itself is ignored",
			files: map[string]string{".git/HEAD": "", ".gitignore": "/src/\n", "src/x.txt": ""},
			want:  []string{"x.txt"},
		},
		{
			name: "a repository inside the source",
			files: map[string]string{"src/.gitignore": "*.txt\n", "src/.ignore": "*.log\n",
				"src/sub/.git/info/exclude": "c.*", "src/sub/a.txt": "", "src/sub/b.log": "", "src/sub/c.md": "",
				"src/a.txt": ""},
			want: []string{"sub/a.txt"},
			left: map[string]Reason{".gitignore": Hidden, ".ignore": Hidden, "sub/.git/": Hidden, "sub/b.log": Ignored,
				"sub/c.md": Ignored, "a.txt": Ignored},
		},
		{
			name:  "ignore files have no effect",
			rules: document.Rules{NoIgnore: true},
			files: map[string]string{".git/HEAD": "", ".gitignore": "*\n", "src/.ignore": "*\n", "src/x.txt": ""},
			want:  []string{"x.txt"},
			left:  map[string]Reason{".ignore": Hidden},
		},
		{
			name: "include and exclude",
			rules: document.Rules{Include: []string{"*.md", "docs/", "!draft.md"},
				Exclude: []string{"old/", "*.html", "!keep.html"}},
			files: map[string]string{"src/a.md": "", "src/b.txt": "", "src/docs/c.txt": "", "src/docs/sub/d.txt": "",
				"src/old/e.md": "", "src/draft.md": "", "src/docs/f.html": "", "src/docs/keep.html": ""},
			want: []string{"a.md", "docs/c.txt", "docs/keep.html", "docs/sub/d.txt"},
			left: map[string]Reason{"b.txt": NotIncluded, "old/": Excluded, "draft.md": NotIncluded,
				"docs/f.html": Excluded},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, text := range tt.files {
				if text == "" {
					tt.files[name] = "text"
				}
			}
			root := folder(t, tt.files)
			sink := &memorySink{}
			res, err := New(Options{Sink: sink}).Sync(t.Context(),
				document.Source{Label: "docs", Path: filepath.Join(root, "src"), Rules: tt.rules})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, sink.paths()); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
			if tt.left == nil {
				tt.left = map[string]Reason{}
			}
			if diff := cmp.Diff(tt.left, leftOutOf(res)); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIgnoreFileThatIsTooLarge(t *testing.T) {
	root := folder(t, map[string]string{".gitignore": strings.Repeat("*.log\n", maxIgnoreFile/6+1), "a.log": "a"})
	res := mustSync(t, New(Options{Sink: &memorySink{}}), docs(root),
		Result{Added: 1, SkippedTotal: 1, LeftOut: map[Reason]int{Unreadable: 1, Hidden: 1}})
	if s := res.Skipped[0]; s.Path != ".gitignore" || !strings.Contains(s.Err.Error(), "has no effect") {
		t.Errorf("skipped %v, want the ignore file", s)
	}
}

// A linked ignore file is not read: it may be anywhere.
func TestIgnoreFileThatIsALink(t *testing.T) {
	root := folder(t, map[string]string{"rules.txt": "*.log\n", "a.log": "a"})
	if err := os.Symlink("rules.txt", filepath.Join(root, ".gitignore")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	mustSync(t, New(Options{Sink: &memorySink{}}), docs(root), Result{Added: 2, LeftOut: left(Hidden, 1)})
}

// A change of an ignore file, and only that, adds and removes documents.
func TestSyncFollowsIgnoreFiles(t *testing.T) {
	root := folder(t, map[string]string{".gitignore": "*.log\n", "a.log": "a", "b.txt": "b"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	mustSync(t, g, docs(root), Result{Added: 1, LeftOut: map[Reason]int{Hidden: 1, Ignored: 1}})
	mustSync(t, g, docs(root), Result{Unchanged: 1, LeftOut: map[Reason]int{Hidden: 1, Ignored: 1}})
	write(t, root, ".gitignore", "*.txt\n", anHourAgo())
	mustSync(t, g, docs(root), Result{Added: 1, Removed: 1, LeftOut: map[Reason]int{Hidden: 1, Ignored: 1}})
	if diff := cmp.Diff([]string{"a.log"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	src := docs(root)
	src.Rules.NoIgnore = true
	mustSync(t, g, src, Result{Added: 1, Unchanged: 1, LeftOut: left(Hidden, 1)})
}

func TestSyncLeavesOutGeneratedFiles(t *testing.T) {
	mini := strings.Repeat("function a(b){return b+1};", 200)
	root := folder(t, map[string]string{
		"a.js": "function a() {}\n", "b.min.js": "a", "c.js": mini, "d.js.map": "{}", "mini.txt": mini,
		"e.css":  "/* a */\n" + mini,
		"go.sum": "x", "web/package-lock.json": "{}", "Cargo.lock": "x",
		"gen.go":  "// Code generated by stringer; DO NOT EDIT.\n\npackage a\n",
		"hand.go": "package a\n\n// See \"Code generated\" in the manual.\n",
		"api.py":  "# @generated by protoc\n", "x.pb.go": "package x",
		"notes.md":            "// Code generated by me. DO NOT EDIT.\n",
		"book/searchindex.js": "x", "book/search_index.json": "{}", "search.md": "s", "searching.js": "var a;\n",
		"vendor/modules.txt": "m", "vendor/a/a.go": "package a", "other/vendor/list.md": "v",
		"env/pyvenv.cfg": "x", "env/lib/a.py": "a", "lib/site-packages/a.py": "a", "target/CACHEDIR.TAG": "x",
		"target/a.txt": "a",
	})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	want := map[string]Reason{
		"b.min.js": Generated, "c.js": Generated, "d.js.map": Generated, "e.css": Generated, "go.sum": LockFile,
		"web/package-lock.json": LockFile,
		"Cargo.lock":            LockFile, "gen.go": Generated, "api.py": Generated, "x.pb.go": Generated,
		"book/searchindex.js":    Generated,
		"book/search_index.json": Generated, "vendor/": ThirdParty, "env/": ThirdParty,
		"lib/site-packages/": ThirdParty, "target/": Generated,
	}
	for range 2 {
		res, err := g.Sync(t.Context(), docs(root))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, leftOutOf(res)); diff != "" || res.SkippedTotal != 0 {
			t.Errorf("left out (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"a.js", "hand.go", "mini.txt", "notes.md", "other/vendor/list.md", "search.md",
		"searching.js"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	// A user who names a file wants it.
	mustSync(t, New(Options{Sink: &memorySink{}}), docs(filepath.Join(root, "gen.go")), Result{Added: 1})
	mustSync(t, New(Options{Sink: &memorySink{}}), docs(filepath.Join(root, "go.sum")), Result{Added: 1})
}

func TestSyncLeavesOutBackupFiles(t *testing.T) {
	root := folder(t, map[string]string{
		"notes.txt": "n", "notes.txt~": "n", "notes.txt.~3~": "n", "a.md.bak": "a", "b.MD.BAK": "b", "c.orig": "c",
		"c.rej": "c", "d.go.swp": "d", "#e.md#": "e",
		"f.backup": "f", "x.bak/g.md": "g", "h~/i.md": "i", "bak": "b", "a#b#.md": "a", "#1 list.md": "l",
		"orig.md": "o", "~j.md": "j",
	})
	sink := &memorySink{}
	res, err := New(Options{Sink: sink}).Sync(t.Context(), docs(root))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"#1 list.md", "a#b#.md", "bak", "h~/i.md", "notes.txt", "orig.md", "x.bak/g.md",
		"~j.md"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	want := map[string]Reason{"notes.txt~": Backup, "notes.txt.~3~": Backup, "a.md.bak": Backup, "b.MD.BAK": Backup,
		"c.orig": Backup, "c.rej": Backup,
		"d.go.swp": Backup, "#e.md#": Backup, "f.backup": Backup}
	if diff := cmp.Diff(want, leftOutOf(res)); diff != "" || res.SkippedTotal != 0 {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	// A user who names a file wants it.
	mustSync(t, New(Options{Sink: &memorySink{}}), docs(filepath.Join(root, "a.md.bak")), Result{Added: 1})
}

// A file without text is left out as long as it has none.
func TestSyncLeavesOutEmptyFiles(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "text", "b.txt": "", "__init__.py": "", "blank.md": "\ufeff\n \n",
		"title.html": "<title>T</title>", "c.docx": ""})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	damaged := func(n int) Result {
		return Result{Added: 2, SkippedTotal: 1, LeftOut: map[Reason]int{Empty: n, Damaged: 1}}
	}
	res := mustSync(t, g, docs(root), damaged(3))
	if got := leftOutOf(res); got["b.txt"] != Empty || got["__init__.py"] != Empty || got["blank.md"] != Empty {
		t.Errorf("left out %v", got)
	}
	want := damaged(3)
	want.Added, want.Unchanged = 0, 2
	mustSync(t, g, docs(root), want)

	write(t, root, "a.txt", "", anHourAgo().Add(time.Minute))
	want = damaged(4)
	want.Added, want.Unchanged, want.Removed = 0, 1, 1
	mustSync(t, g, docs(root), want)
	if diff := cmp.Diff([]string{"title.html"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}

	write(t, root, "a.txt", "new", anHourAgo().Add(2*time.Minute))
	write(t, root, "b.txt", "b", anHourAgo().Add(2*time.Minute))
	want = damaged(2)
	want.Unchanged = 1
	mustSync(t, g, docs(root), want)
	if d := sink.doc("a.txt"); d == nil || d.Text != "new" {
		t.Errorf("a.txt = %v, want its new text", d)
	}
}

// An earlier version of the program stored empty files.
func TestSyncRemovesStoredEmptyFiles(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": ""})
	info, err := os.Stat(filepath.Join(root, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sink := &memorySink{docs: map[document.Ref]*document.Document{
		{Label: "docs", Path: "a.txt"}: {Label: "docs", Path: "a.txt", Stamp: stampOf(info)},
	}}
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Removed: 1, LeftOut: left(Empty, 1)})
}

func TestEmptyFilesInArchives(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.zip", zipOf(t, "a.md", "text", "b.md", "", "c.txt~", "old"), anHourAgo())
	write(t, root, "b.zip", zipOf(t, "b.md", ""), anHourAgo())
	sink := &memorySink{}
	res := mustSync(t, New(Options{Sink: sink}), docs(root), Result{Added: 1, LeftOut: map[Reason]int{Empty: 2, Backup: 1}})
	want := map[string]Reason{"a.zip/b.md": Empty, "a.zip/c.txt~": Backup, "b.zip": Empty}
	if diff := cmp.Diff(want, leftOutOf(res)); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}
