package store

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// What lies where a link shall be decides what becomes of it.
func TestLinks(t *testing.T) {
	const want = "-> ../mcp-skills/a-x"
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, o Options)
		first  bool // an earlier sync ran
		want   string
		kept   bool
		warned string // a link that was replaced
	}{
		{"nothing", func(*testing.T, Options) {}, false, want, false, ""},
		{"a lost link", func(t *testing.T, o Options) { remove(t, o.Base, "skills") }, true, want, false, ""},
		{"another target of ours", func(t *testing.T, o Options) {
			remove(t, o.Base, "skills/a-x")
			symlink(t, "../mcp-skills/a-y", o.Base, "skills/a-x")
		}, false, want, false, "../mcp-skills/a-y"},
		{"an absolute link of ours", func(t *testing.T, o Options) {
			symlink(t, filepath.Join(o.Base, "mcp-skills", "a-x"), o.Base, "skills/a-x")
		}, false, want, false, ""},
		{"a dangling link of ours", func(t *testing.T, o Options) {
			symlink(t, "../mcp-skills/old", o.Base, "skills/a-x")
		}, false, want, false, "../mcp-skills/old"},
		{"our link, led astray", func(t *testing.T, o Options) {
			remove(t, o.Base, "skills/a-x")
			symlink(t, "../elsewhere", o.Base, "skills/a-x")
		}, true, want, false, "../elsewhere"},
		{"a foreign link", func(t *testing.T, o Options) { symlink(t, "../else\nwhere", o.Base, "skills/a-x") }, false,
			want, false, `../else\nwhere`},
		{"a foreign link after a sync", func(t *testing.T, o Options) {
			symlink(t, "../elsewhere", o.Base, "skills/a-x")
			mustSync(t, o, content("a/x"))
		}, false, want, false, ""},
		{"a link beside ours", func(t *testing.T, o Options) {
			symlink(t, "../mcp-skills-old/a-x", o.Base, "skills/a-x")
		}, false, want, false, "../mcp-skills-old/a-x"},
		{"a file", func(t *testing.T, o Options) { write(t, "mine", o.Base, "skills/a-x") }, false, "mine", true, ""},
		{"an empty folder", func(t *testing.T, o Options) {
			if err := os.MkdirAll(filepath.Join(o.Base, "skills/a-x"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, false, "dir", true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			if tt.first {
				mustSync(t, o, content("a/x"))
			}
			tt.before(t, o)
			dry := o
			dry.DryRun = true
			planned := mustSync(t, dry, content("a/x"))
			r := mustSync(t, o, content("a/x"))
			same(t, "the warnings of a dry run", planned.Warnings, r.Warnings)
			got := tree(t, o.Base)["skills/a-x"] + tree(t, o.Base)["skills/a-x/"]
			if got != tt.want {
				t.Errorf("skills/a-x = %q, want %q", got, tt.want)
			}
			if names := kept(r); (len(names) > 0) != tt.kept || tt.warned == "" && len(r.Warnings) != len(names) {
				t.Errorf("Warnings = %q, want one of a kept file: %v", r.Warnings, tt.kept)
			}
			if want := "the link skills/a-x to " + tt.warned +
				" is replaced by one to the skill of that name"; tt.warned != "" {
				same(t, "Warnings", r.Warnings, []string{want})
			}
			if again := mustSync(t, o, content("a/x")); again.Stale {
				t.Errorf("a second sync changes something: %+v", again)
			}
		})
	}
}

// Of a disabled server's links those go that are ours.
func TestUnlink(t *testing.T) {
	disabled := Content{Skills: content("git-hub/list").Skills, Disabled: []string{"git"}}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, o Options)
		want   string // what is then at skills/git-status
	}{
		{"nothing", func(*testing.T, Options) {}, ""},
		{"the target is gone", func(t *testing.T, o Options) { remove(t, o.Base, "mcp-skills/git-status") }, ""},
		{"the lock is gone", func(t *testing.T, o Options) { remove(t, o.Base, lockName) }, ""},
		{"lock and target are gone", func(t *testing.T, o Options) {
			remove(t, o.Base, lockName)
			remove(t, o.Base, "mcp-skills/git-status")
		}, ""},
		{"a link elsewhere", func(t *testing.T, o Options) {
			remove(t, o.Base, "skills/git-status")
			symlink(t, "../mine", o.Base, "skills/git-status")
		}, "-> ../mine"},
		{"a file", func(t *testing.T, o Options) {
			remove(t, o.Base, "skills/git-status")
			write(t, "mine", o.Base, "skills/git-status")
		}, "mine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			mustSync(t, o, content("git/status", "git-hub/list"))
			write(t, "mine", o.Base, "skills/README.md")
			write(t, "mine", o.Base, "skills/git-own/SKILL.md")
			symlink(t, "../mcp-skills/git-hub-list", o.Base, "skills/my-list")
			tt.change(t, o)
			mustSync(t, o, disabled)
			found := tree(t, o.Base)
			if got := found["skills/git-status"]; got != tt.want {
				t.Errorf("skills/git-status = %q, want %q", got, tt.want)
			}
			for p, want := range map[string]string{
				"skills/README.md": "mine", "skills/git-own/SKILL.md": "mine",
				"skills/my-list":      "-> ../mcp-skills/git-hub-list",
				"skills/git-hub-list": "-> ../mcp-skills/git-hub-list",
			} {
				if found[p] != want {
					t.Errorf("%s = %q, want %q", p, found[p], want)
				}
			}
		})
	}
}

// Where links are refused skills are copied. A copy stays a copy.
func TestCopies(t *testing.T) {
	o := options(t)
	o.LinkDirs = []string{"skills", ".claude/skills"}
	var log bytes.Buffer
	o.Log = logTo(&log, slog.LevelWarn)
	o.Link = refuse
	r := mustSync(t, o, content("a/x", "a/y"))
	same(t, "Copied", r.Copied, []string{".claude/skills/a-x", ".claude/skills/a-y", "skills/a-x", "skills/a-y"})
	if n := strings.Count(log.String(), "level=WARN"); n != 2 || !strings.Contains(log.String(), "copied") {
		t.Errorf("log = %q, want one warning for each folder", log.String())
	}
	found := tree(t, o.Base)
	for _, p := range []string{"a-x/SKILL.md", "a-y/references/schema.json"} {
		if found["skills/"+p] != found["mcp-skills/"+p] || found["skills/"+p] == "" {
			t.Errorf("the copy of %s is %q, want %q", p, found["skills/"+p], found["mcp-skills/"+p])
		}
	}
	if again := mustSync(t, o, content("a/x", "a/y")); again.Stale {
		t.Errorf("a second sync changes something: %+v", again)
	}
	dry := o
	dry.DryRun, dry.Link = true, nil
	if r := mustSync(t, dry, content("a/x", "a/y")); r.Stale {
		t.Errorf("copies are stale: %+v", r)
	}

	// One changes, one goes.
	c := Content{Skills: append(content().Skills, offered("a", "x", "Is new."))}
	write(t, "mine", o.Base, "skills/a-y/notes.txt")
	r = mustSync(t, o, c)
	same(t, "Copied", r.Copied, []string{".claude/skills/a-x", "skills/a-x"})
	same(t, "Unlinked", r.Unlinked, []string{".claude/skills/a-y"})
	same(t, "Kept", kept(r), []string{"skills/a-y"})
	same(t, "tree", paths(t, o.Base), []string{
		".claude/skills/a-x/SKILL.md", "mcp-skills/a-x/SKILL.md", "skills/a-x/SKILL.md", "skills/a-y/notes.txt",
	})
	same(t, "the copy", read(t, o.Base, "skills/a-x/SKILL.md"), read(t, o.Base, "mcp-skills/a-x/SKILL.md"))

	write(t, "mine", o.Base, "skills/a-x/notes.txt")
	o.Link = nil
	if r := mustSync(t, o, c); r.Stale {
		t.Errorf("with links permitted again, a sync changes something: %+v", r)
	}
	remove(t, o.Base, ".claude/skills/a-x")
	mustSync(t, o, Content{Skills: append(content("a/z").Skills, offered("a", "x", "Is newer."))})
	same(t, "tree", paths(t, o.Base), []string{
		".claude/skills/a-x -> ../../mcp-skills/a-x", ".claude/skills/a-z -> ../../mcp-skills/a-z",
		"mcp-skills/a-x/SKILL.md", "mcp-skills/a-z/SKILL.md",
		"skills/a-x/SKILL.md", "skills/a-x/notes.txt", "skills/a-y/notes.txt", "skills/a-z -> ../mcp-skills/a-z",
	})
	same(t, "the copy", read(t, o.Base, "skills/a-x/SKILL.md"), read(t, o.Base, "mcp-skills/a-x/SKILL.md"))
}

// A folder of the user's is no copy of ours, whatever the lock says of others.
func TestNoCopyOfOurs(t *testing.T) {
	o := options(t)
	write(t, "mine", o.Base, "skills/a-x/SKILL.md")
	o.Link = refuse
	c := content("a/x", "a/y")
	for range 2 {
		r := mustSync(t, o, c)
		same(t, "Kept", kept(r), []string{"skills/a-x"})
	}
	mustSync(t, o, Content{Disabled: []string{"a"}})
	same(t, "tree", paths(t, o.Base), []string{"mcp-skills/", "skills/a-x/SKILL.md"})
}

// Unchanged copies are recognized without a lock.
func TestCopyWithoutLock(t *testing.T) {
	o := options(t)
	o.Link = refuse
	mustSync(t, o, content("a/x", "a/y"))
	remove(t, o.Base, lockName)
	replace(t, "Does y.", "Was mine.", o.Base, "skills/a-y/SKILL.md")
	o.Link = nil
	r := mustSync(t, o, content("a/x", "a/y"))
	same(t, "Linked", r.Linked, []string(nil))
	same(t, "Kept", kept(r), []string{"skills/a-y"})
}

// TestOutputIsLink refuses to write skills through a link.
func TestOutputIsLink(t *testing.T) {
	for _, target := range []string{"elsewhere", "nowhere"} {
		o := options(t)
		write(t, "mine", o.Base, "elsewhere/x")
		symlink(t, target, o.Base, "mcp-skills")
		for _, act := range []func() error{
			func() error { return Check(o) },
			func() error { _, err := Current(o); return err },
			func() error { _, err := Sync(t.Context(), o, content("a/x")); return err },
		} {
			err := act()
			if !errors.Is(err, errkind.Conflict) || !strings.Contains(err.Error(),
				"is a symbolic link to "+target+": remove it, or choose ") {
				t.Errorf("with a link to %s in place of the folder: %v, want kind Conflict", target, err)
			}
		}
		same(t, "tree", paths(t, o.Base), []string{"elsewhere/x", "mcp-skills -> " + target})
	}

	// The folder of the last sync became a link.
	o := options(t)
	mustSync(t, o, content("a/x"))
	if err := os.Rename(filepath.Join(o.Base, "mcp-skills"), filepath.Join(o.Base, "moved")); err != nil {
		t.Fatal(err)
	}
	symlink(t, "moved", o.Base, "mcp-skills")
	o.OutputDir = "gen"
	r := mustSync(t, o, content("a/x"))
	same(t, "Warnings", r.Warnings, []string{usedBefore("mcp-skills")})
	same(t, "tree", paths(t, o.Base), []string{
		"gen/a-x/SKILL.md", "mcp-skills -> moved", "moved/a-x/SKILL.md", "skills/a-x -> ../gen/a-x",
	})
}

// TestRememberedLinks syncs without a word on where links go: they stay where
// the last sync put them.
func TestRememberedLinks(t *testing.T) {
	outside := t.TempDir()
	for _, dirs := range [][]string{{".claude/skills"}, {".claude/skills", ".agents/skills"}, {outside},
		{"skills", filepath.Join("..", "x")}} {
		for _, link := range []func(string, string) error{nil, refuse} {
			o := options(t)
			o.Base = filepath.Join(o.Base, "base")
			if err := os.Mkdir(o.Base, 0o755); err != nil {
				t.Fatal(err)
			}
			o.LinkDirs, o.Link = dirs, link
			mustSync(t, o, content("a/x"))
			before := paths(t, filepath.Dir(o.Base))
			o.LinkDirs = nil
			if ok, err := Current(o); !ok || err != nil {
				t.Errorf("%q: Current = %v, %v, want true", dirs, ok, err)
			}
			if r := mustSync(t, o, content("a/x")); r.Stale {
				t.Errorf("%q: a second sync changes something: %+v", dirs, r)
			}
			same(t, "tree", paths(t, filepath.Dir(o.Base)), before)
			mustSync(t, o, content("a/x", "a/y"))
			for _, dir := range dirs {
				if !filepath.IsAbs(dir) {
					dir = filepath.Join(o.Base, dir)
				}
				if _, err := os.Stat(filepath.Join(dir, "a-y", "SKILL.md")); err != nil {
					t.Errorf("%q: a new skill has no link: %v", dirs, err)
				}
			}
			mustSync(t, o, Content{Disabled: []string{"a"}})
		}
	}

	// Others are named: the links there are made, the earlier ones stay, and a
	// warning names their folder.
	o := options(t)
	var log bytes.Buffer
	o.Log = logTo(&log, slog.LevelInfo)
	o.LinkDirs = []string{".claude/skills"}
	mustSync(t, o, content("a/x", "a/y"))
	o.LinkDirs = []string{"skills"}
	mustSync(t, o, content("a/x", "a/y"))
	same(t, "tree", paths(t, o.Base), []string{
		".claude/skills/a-x -> ../../mcp-skills/a-x", ".claude/skills/a-y -> ../../mcp-skills/a-y",
		"mcp-skills/a-x/SKILL.md", "mcp-skills/a-y/SKILL.md", "skills/a-x -> ../mcp-skills/a-x",
		"skills/a-y -> ../mcp-skills/a-y",
	})
	if want := "level=WARN msg=\"the last sync used the folder .claude/skills, which is left as it is: remove"; !strings.Contains(log.String(), want) {
		t.Errorf("log = %s, want %s", log.String(), want)
	}
}

// TestHostileLinkDirs has a lock, which may come with a repository, that names a
// folder outside.
func TestHostileLinkDirs(t *testing.T) {
	o := options(t)
	outside := t.TempDir()
	write(t, "mine", outside, "own/SKILL.md")
	write(t, `{"version":1,"link_dirs":["`+filepath.ToSlash(outside)+`"],"skills":{}}`, o.Base, lockName)
	mustSync(t, o, content("a/x"))
	same(t, "the folder outside", tree(t, outside), map[string]string{"own/SKILL.md": "mine"})
	same(t, "tree", paths(t, o.Base), []string{"mcp-skills/a-x/SKILL.md", "skills/a-x -> ../mcp-skills/a-x"})
}

// The folders may be anywhere, and that of the links be a link itself.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, o *Options)
		link   string // where the link is
		target string
	}{
		{"output elsewhere", func(_ *testing.T, o *Options) { o.OutputDir = "gen/skills" }, "skills/a-x",
			"../gen/skills/a-x"},
		{"absolute", func(_ *testing.T, o *Options) { o.OutputDir = filepath.Join(o.Base, "gen") }, "skills/a-x",
			"../gen/a-x"},
		{"deep links", func(_ *testing.T, o *Options) { o.LinkDirs = []string{".claude/skills"} },
			".claude/skills/a-x", "../../mcp-skills/a-x"},
		{"links in a linked folder", func(t *testing.T, o *Options) {
			write(t, "", o.Base, "deep/er/skills/x")
			symlink(t, "deep/er/skills", o.Base, "skills")
		}, "deep/er/skills/a-x", "../../../mcp-skills/a-x"},
		{"the output folder contains the links", func(_ *testing.T, o *Options) { o.OutputDir = "." }, "skills/a-x",
			"../a-x"},
		{"two names of one folder", func(t *testing.T, o *Options) {
			write(t, "", o.Base, "skills/x")
			symlink(t, "skills", o.Base, "alias")
			o.LinkDirs = []string{"skills", "alias"}
		}, "skills/a-x", "../mcp-skills/a-x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			tt.change(t, &o)
			mustSync(t, o, content("a/x"))
			if got, want := tree(t, o.Base)[tt.link], "-> "+tt.target; got != want {
				t.Errorf("%s = %q, want %q", tt.link, got, want)
			}
			if _, err := os.ReadFile(filepath.Join(o.Base, filepath.FromSlash(tt.link), "SKILL.md")); err != nil {
				t.Error(err)
			}
			if r := mustSync(t, o, content("a/x")); r.Stale {
				t.Errorf("a second sync changes something: %+v", r)
			}
			if ok, err := Current(o); !ok || err != nil {
				t.Errorf("Current = %v, %v, want true", ok, err)
			}
			mustSync(t, o, Content{Disabled: []string{"a"}})
			for _, p := range paths(t, o.Base) {
				if strings.Contains(p, "a-x") {
					t.Errorf("%s is still there", p)
				}
			}
		})
	}
}

// usedBefore returns the warning of a folder that a sync does not use any more.
func usedBefore(dir string) string {
	return "the last sync used the folder " + dir +
		", which is left as it is: remove the skills in it if you do not need them"
}

// TestMove syncs to other folders: nothing is changed in the earlier ones.
func TestMove(t *testing.T) {
	o := options(t)
	mustSync(t, o, content("a/x", "a/y", "b/z"))
	replace(t, "Does x.", "Better.", o.Base, "mcp-skills/a-x/SKILL.md")
	o.OutputDir, o.LinkDirs = "gen", []string{"links"}
	c := content("a/x", "a/y")
	c.Failed = []string{"b"}
	r := mustSync(t, o, c)
	same(t, "tree", paths(t, o.Base), []string{
		"gen/a-x/SKILL.md", "gen/a-y/SKILL.md", "links/a-x -> ../gen/a-x", "links/a-y -> ../gen/a-y",
		"mcp-skills/a-x/SKILL.md", "mcp-skills/a-y/SKILL.md", "mcp-skills/b-z/SKILL.md",
		"skills/a-x -> ../mcp-skills/a-x", "skills/a-y -> ../mcp-skills/a-y", "skills/b-z -> ../mcp-skills/b-z",
	})
	same(t, "Warnings", r.Warnings, []string{usedBefore("mcp-skills"), usedBefore("skills")})
	if r := mustSync(t, o, c); r.Stale || len(r.Warnings) > 0 {
		t.Errorf("a second sync changes something: %+v", r)
	}

	// Back again: the description edited there is still the user's.
	o.OutputDir, o.LinkDirs = "", []string{"skills"}
	r = mustSync(t, o, c)
	same(t, "Warnings", r.Warnings, []string{usedBefore("gen"), usedBefore("links")})
	if md := read(t, o.Base, "mcp-skills/a-x/SKILL.md"); !strings.Contains(md, `description: "Better."`) {
		t.Errorf("the edited description is lost:\n%s", md)
	}
}

// TestMoveOutput syncs other servers to another folder for skills, with links in
// the same one: only the links of disabled servers are removed.
func TestMoveOutput(t *testing.T) {
	for _, link := range []func(string, string) error{nil, refuse} {
		o := options(t)
		mustSync(t, o, content("a/x", "b/y", "c/z"))
		symlink(t, "../mcp-skills/own", o.Base, "skills/own")
		o.OutputDir, o.Link = "gen", link
		c := content("c/z")
		c.Disabled = []string{"b"}
		dry := o
		dry.DryRun = true
		foreseen := mustSync(t, dry, c)
		r := mustSync(t, o, c)
		want := []string{
			"gen/c-z/SKILL.md", "mcp-skills/a-x/SKILL.md", "mcp-skills/b-y/SKILL.md", "mcp-skills/c-z/SKILL.md",
			"skills/a-x -> ../mcp-skills/a-x", "skills/c-z -> ../gen/c-z", "skills/own -> ../mcp-skills/own",
		}
		if link == nil {
			same(t, "report of the dry run", foreseen, r)
			same(t, "Warnings", r.Warnings, []string{usedBefore("mcp-skills")})
		} else {
			want[5] = "skills/c-z/SKILL.md"
		}
		same(t, "tree", paths(t, o.Base), want)
	}
}

// Links that can't be renewed become copies, and a copy that can't be written
// is an error.
func TestLinksBecomeCopies(t *testing.T) {
	o := options(t)
	mustSync(t, o, content("a/x", "a/y"))
	before := read(t, o.Base, lockName)
	o.OutputDir, o.Link = "gen", refuse
	failures := 0
	for after := range 100 {
		_, err := syncWith(t.Context(), o, content("a/x", "a/y"), failing(after, syscall.ENOSPC))
		if err == nil {
			break
		}
		failures++
		if !errors.Is(err, errkind.DiskFull) {
			t.Errorf("after %d files: Sync = %v, want no space", after, err)
		}
		same(t, "lock", read(t, o.Base, lockName), before)
		for _, name := range []string{"a-x", "a-y"} {
			if md := read(t, o.Base, "skills", name, "SKILL.md"); !strings.Contains(md, "Does") {
				t.Errorf("after %d files: skills/%s can't be read", after, name)
			}
		}
	}
	if failures < 8 {
		t.Errorf("%d syncs failed, want at least 8", failures)
	}
	same(t, "tree", paths(t, o.Base), []string{
		"gen/a-x/SKILL.md", "gen/a-y/SKILL.md", "mcp-skills/a-x/SKILL.md", "mcp-skills/a-y/SKILL.md",
		"skills/a-x/SKILL.md", "skills/a-y/SKILL.md",
	})
	if r := mustSync(t, o, content("a/x", "a/y")); r.Stale {
		t.Errorf("a second sync changes something: %+v", r)
	}
}

// TestOutputBelowLink refuses to write skills through a link anywhere below the
// working directory.
func TestOutputBelowLink(t *testing.T) {
	for _, out := range []string{"gen/sub", "gen/sub/deeper", "a/../gen/sub", "abs"} {
		o := options(t)
		outside := t.TempDir()
		symlink(t, filepath.ToSlash(outside), o.Base, "gen")
		o.OutputDir = out
		if out == "abs" {
			o.OutputDir = filepath.Join(o.Base, "gen", "sub")
		}
		for _, act := range []func() error{
			func() error { return Check(o) },
			func() error { _, err := Sync(t.Context(), o, content("a/x")); return err },
		} {
			err := act()
			if !errors.Is(err, errkind.Conflict) || !strings.Contains(err.Error(),
				filepath.Join(o.Base, "gen")+", which is written to, is a symbolic link to ") {
				t.Errorf("OutputDir %s: %v, want kind Conflict", out, err)
			}
		}
		same(t, "the folder outside", tree(t, outside), map[string]string{})
		if _, err := os.Stat(filepath.Join(o.Base, "skills")); err == nil {
			t.Errorf("OutputDir %s: links were made", out)
		}
	}

	// Links above the working directory are the user's choice.
	o := options(t)
	alias := filepath.Join(t.TempDir(), "alias")
	symlink(t, filepath.ToSlash(o.Base), alias)
	o.Base, o.OutputDir = alias, "gen/sub"
	mustSync(t, o, content("a/x"))
}
