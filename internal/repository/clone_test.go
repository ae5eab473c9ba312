package repository

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/google/go-cmp/cmp"
)

// An origin is a repository that is cloned.
type origin struct {
	t   *testing.T
	dir string
	env []string
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no git on the PATH")
	}
	home := t.TempDir()
	o := &origin{t, t.TempDir(), append(os.Environ(), "HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "XDG_CONFIG_HOME="+home)}
	o.git("init", "-q", "-b", "main")
	o.git("config", "user.name", "Tester")
	o.git("config", "user.email", "tester@example.com")
	return o
}

func (o *origin) git(args ...string) string {
	o.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = o.dir, o.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.t.Fatalf("git %s: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files and commits everything.
func (o *origin) commit(files map[string]string) string {
	o.t.Helper()
	for name, text := range files {
		path := filepath.Join(o.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			o.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			o.t.Fatal(err)
		}
	}
	o.git("add", "-A")
	o.git("commit", "-q", "--allow-empty", "-m", "change")
	return o.git("rev-parse", "HEAD")
}

func (o *origin) clone(place string) *Clone {
	o.t.Helper()
	r, err := Parse("git+file://" + filepath.ToSlash(o.dir) + place)
	if err != nil {
		o.t.Fatal(err)
	}
	return Open(o.t.TempDir(), r, o.env)
}

// files returns the texts of all files of a clone.
func files(t *testing.T, c *Clone) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(c.Root()), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(c.Root(), path))
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// update updates a clone and checks its commit and files.
func update(t *testing.T, c *Clone, commit string, want map[string]string) {
	t.Helper()
	got, err := c.Update(t.Context())
	if err != nil || got != commit || c.Commit(t.Context()) != commit {
		t.Fatalf("Update = %q, %v, then commit %q, want %q", got, err, c.Commit(t.Context()), commit)
	}
	if diff := cmp.Diff(want, files(t, c)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// A clone follows its branch: commits, forced pushes, and a default branch.
func TestUpdate(t *testing.T) {
	o := newOrigin(t)
	one := o.commit(map[string]string{"a.md": "one", "docs/b.md": "b"})
	c, folder := o.clone(""), o.clone("#main:docs")
	if got := c.Commit(t.Context()); got != "" {
		t.Errorf("commit before the first update = %q, want none", got)
	}
	update(t, c, one, map[string]string{"a.md": "one", "docs/b.md": "b"})
	update(t, folder, one, map[string]string{"b.md": "b"})
	if _, err := os.Stat(filepath.Join(folder.dir, "tree", "a.md")); err == nil {
		t.Error("a file outside of the folder was checked out")
	}
	two := o.commit(map[string]string{"a.md": "two", "docs/c d.md": "c"})
	update(t, c, two, map[string]string{"a.md": "two", "docs/b.md": "b", "docs/c d.md": "c"})
	update(t, folder, two, map[string]string{"b.md": "b", "c d.md": "c"})
	o.git("reset", "-q", "--hard", one) // as after a forced push
	o.git("rm", "-q", "docs/b.md")
	three := o.commit(map[string]string{"docs/é.md": "é"})
	update(t, c, three, map[string]string{"a.md": "one", "docs/é.md": "é"})
	update(t, c, three, map[string]string{"a.md": "one", "docs/é.md": "é"})

	// A file that was lost and a lock of a process that died are restored.
	if err := os.Remove(filepath.Join(c.Root(), "a.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.gitDir(), "index.lock"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	update(t, c, three, map[string]string{"a.md": "one", "docs/é.md": "é"})
}

// A branch, a folder or a repository that does not exist is an error, and the files
// of before remain.
func TestGone(t *testing.T) {
	o := newOrigin(t)
	commit := o.commit(map[string]string{"a.md": "one"})
	o.git("branch", "topic")
	c := o.clone("#topic")
	update(t, c, commit, map[string]string{"a.md": "one"})
	o.git("branch", "-D", "topic")
	if _, err := c.Update(t.Context()); !errors.Is(err, errkind.NotFound) || !strings.Contains(err.Error(), "branch topic") {
		t.Errorf("update of a deleted branch: %v, want an error of kind NotFound", err)
	}
	if diff := cmp.Diff(map[string]string{"a.md": "one"}, files(t, c)); diff != "" || c.Commit(t.Context()) != commit {
		t.Errorf("files after the branch was deleted (-want +got):\n%s", diff)
	}
	none := o.clone("#main:none")
	if _, err := none.Update(t.Context()); !errors.Is(err, errkind.NotFound) ||
		!strings.Contains(err.Error(), "the branch main has no folder none") || none.Commit(t.Context()) != "" {
		t.Errorf("update of a folder that does not exist: %v, want an error of kind NotFound, and no commit", err)
	}
	docs := o.clone("#main:docs")
	commit = o.commit(map[string]string{"docs/b.md": "b"})
	update(t, docs, commit, map[string]string{"b.md": "b"})
	o.git("rm", "-q", "docs/b.md")
	o.commit(map[string]string{"docs": "a file"})
	if _, err := docs.Update(t.Context()); !errors.Is(err, errkind.NotFound) {
		t.Errorf("update of a folder that is gone: %v, want an error of kind NotFound", err)
	}
	if diff := cmp.Diff(map[string]string{"b.md": "b"}, files(t, docs)); diff != "" || docs.Commit(t.Context()) != commit {
		t.Errorf("files after the folder is gone (-want +got):\n%s", diff)
	}
	missing := &origin{t, filepath.Join(o.dir, "missing"), o.env}
	if _, err := missing.clone("").Update(t.Context()); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("update of a repository that does not exist: %v, want an error of kind Unavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Update(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("update after its context ended: %v, want %v", err, context.Canceled)
	}
}

// Neither hooks nor filters run, those of the user's configuration included, and
// submodules are left out.
func TestNothingRuns(t *testing.T) {
	o := newOrigin(t)
	ran := filepath.Join(t.TempDir(), "ran")
	hooks := t.TempDir()
	for _, name := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"} {
		if err := os.WriteFile(filepath.Join(hooks, name), []byte("#!/bin/sh\necho "+name+" >>"+ran+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	inner := newOrigin(t)
	inner.commit(map[string]string{"x.md": "x"})
	o.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.dir, "module")
	commit := o.commit(map[string]string{
		"a.txt": "plain\r\n", ".gitattributes": "*.txt filter=evil\n*.bin filter=lfs\n*.u working-tree-encoding=UTF-16\n",
		"p.bin": "version https://git-lfs.github.com/spec/v1\n", "b.u": "\xff\xfeb\x00",
	})
	for _, s := range [][2]string{{"core.hooksPath", hooks}, {"filter.evil.smudge", "touch " + ran}, {"filter.evil.clean", "cat"},
		{"filter.evil.required", "true"}, {"filter.lfs.smudge", "touch " + ran}, {"filter.lfs.process", "touch " + ran},
		{"init.templateDir", hooks}, {"core.fsmonitor", "touch " + ran}} {
		o.git("config", "--global", s[0], s[1])
	}
	c := o.clone("")
	for range 2 {
		got, err := c.Update(t.Context())
		if err != nil || got != commit {
			t.Fatalf("Update = %q, %v, want %q", got, err, commit)
		}
	}
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("git ran a hook or a filter: %s", data)
	}
	found := files(t, c)
	if found["a.txt"] != "plain\r\n" || found["b.u"] != "b" || found["p.bin"] == "" || found["module/x.md"] != "" {
		t.Errorf("files = %q, want them as they are stored, without the submodule", found)
	}
	if got, err := c.Submodules(t.Context()); len(got) != 1 || got[0] != "module" || err != nil {
		t.Errorf("submodules = %q, %v, want module", got, err)
	}
}

// Without the program git, the error says what to install.
func TestNoGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c := Open(t.TempDir(), Remote{URL: "https://example.com/r"}, nil)
	_, err := c.Update(t.Context())
	if !errors.Is(err, errkind.Unsupported) || !strings.Contains(err.Error(), "apt install git") {
		t.Errorf("Update = %v, want an error that says what to install", err)
	}
}

// The variables of another repository and those that ask have no effect.
func TestEnvironment(t *testing.T) {
	got := environment([]string{"HOME=/h", "GIT_DIR=/x", "GIT_ASKPASS=/ask", "HTTPS_PROXY=p", "GIT_CONFIG_COUNT=1"},
		Remote{URL: "ssh://h/r"})
	want := []string{"HOME=/h", "HTTPS_PROXY=p", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_ALLOW_PROTOCOL=https:ssh:file",
		"LC_ALL=C", "SSH_ASKPASS_REQUIRE=never", "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=20"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
