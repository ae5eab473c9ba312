package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// failing is a disk on which writing a file fails once the given number of
// files has been written.
func failing(after int, err error) writeFunc {
	return func(root *os.Root, name string, data []byte, flush bool) error {
		if after--; after < 0 {
			// As a full disk does, it leaves a part.
			_ = writeFile(root, name, data[:len(data)/2], false)
			return &fs.PathError{Op: "write", Path: name, Err: err}
		}
		return writeFile(root, name, data, flush)
	}
}

// Whatever fails and whenever: the lock and the skills it speaks of stay valid,
// nothing is left behind, and the next sync makes it good.
func TestDiskFails(t *testing.T) {
	news := content("a/x", "a/new")
	news.Skills = append(news.Skills, offered("a", "y", "Is new."))
	for _, tt := range []struct {
		err  error
		want []string
		kind error
	}{
		{syscall.ENOSPC, []string{"free space on it"}, errkind.DiskFull},
		{syscall.EACCES, []string{"check the permissions of "}, errkind.Denied},
		{syscall.EROFS, []string{"read-only", "choose another folder"}, errkind.Denied},
		{syscall.EIO, []string{"the disk fails"}, errkind.Unavailable},
	} {
		if runtime.GOOS == "windows" {
			t.Skip("the errors are those of Unix")
		}
		o := options(t)
		mustSync(t, o, content("a/x", "a/y", "a/z"))
		before := tree(t, o.Base)
		failures := 0
		for after := range 100 {
			r, err := syncWith(t.Context(), o, news, failing(after, tt.err))
			if err == nil {
				same(t, "Removed", r.Removed, []string{"a-z"})
				break
			}
			failures++
			if !errors.Is(err, tt.kind) {
				t.Errorf("after %d files: %v, want kind %v", after, err, tt.kind)
			}
			for _, want := range append(tt.want, o.Base) {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), tempPrefix) {
					t.Errorf("after %d files: %v, want %q and no temporary name", after, err, want)
				}
			}
			found := tree(t, o.Base)
			same(t, "lock", found[lockName], before[lockName])
			for p := range found {
				if strings.Contains(p, tempPrefix) {
					t.Errorf("after %d files: %s was left behind", after, p)
				}
			}
			if strings.Contains(err.Error(), lockName) {
				continue // all else is done by then
			}
			same(t, "tree", found, before)
		}
		if failures < 6 {
			t.Errorf("%v: %d syncs failed, want at least 6", tt.err, failures)
		}
		same(t, "tree", paths(t, o.Base), []string{
			"mcp-skills/a-new/SKILL.md", "mcp-skills/a-x/SKILL.md", "mcp-skills/a-y/SKILL.md",
			"skills/a-new -> ../mcp-skills/a-new", "skills/a-x -> ../mcp-skills/a-x", "skills/a-y -> ../mcp-skills/a-y",
		})
		if ok, err := Current(o); !ok || err != nil {
			t.Errorf("Current = %v, %v, want true", ok, err)
		}
	}
}

// A disk that loses what it was given is noticed.
func TestVerify(t *testing.T) {
	o := options(t)
	lossy := func(root *os.Root, name string, data []byte, flush bool) error {
		return writeFile(root, name, bytes.Replace(data, []byte("Does"), []byte("\x00\x00\x00\x00"), 1), flush)
	}
	_, err := syncWith(t.Context(), o, content("a/x"), lossy)
	if err == nil || !strings.Contains(err.Error(), "check the disk") {
		t.Errorf("Sync = %v, want an error about the disk", err)
	}
	same(t, "tree", paths(t, o.Base), []string{"mcp-skills/", "skills/"})
}

func TestInTheWay(t *testing.T) {
	for _, tt := range []struct {
		path string
		want string
	}{
		{"mcp-skills", "choose another folder"},
		{"skills", "choose another folder"},
	} {
		o := options(t)
		write(t, "mine", o.Base, tt.path)
		_, err := Sync(t.Context(), o, content("a/x"))
		if !errors.Is(err, errkind.Conflict) || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), "in the way of the folder "+filepath.Join(o.Base, tt.path)) {
			t.Errorf("Sync with a file %s = %v", tt.path, err)
		}
		same(t, "tree", tree(t, o.Base), map[string]string{tt.path: "mine"})
	}
	o := options(t)
	write(t, "mine", o.Base, lockName, "x")
	if _, err := Sync(t.Context(), o, content("a/x")); !errors.Is(err, errkind.Conflict) {
		t.Errorf("Sync with a folder for a lock = %v, want kind Conflict", err)
	}
	o = options(t)
	symlink(t, "nowhere", o.Base, "skills")
	if _, err := Sync(t.Context(), o, content("a/x")); !errors.Is(err, errkind.Conflict) {
		t.Errorf("Sync with a dangling link for skills = %v, want kind Conflict", err)
	}
}

func TestPermissions(t *testing.T) {
	if os.Getuid() <= 0 {
		t.Skip("permissions don't bind this user")
	}
	for _, dir := range []string{".", "mcp-skills", "mcp-skills/a-x", "skills"} {
		t.Run(dir, func(t *testing.T) {
			o := options(t)
			mustSync(t, o, content("a/x"))
			before := tree(t, o.Base)
			path := filepath.Join(o.Base, dir)
			if err := os.Chmod(path, 0o555); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(path, 0o755) })
			if r := mustSync(t, o, content("a/x")); r.Stale {
				t.Errorf("a sync without work changes something: %+v", r)
			}
			c := Content{Skills: append(content("a/y").Skills, offered("a", "x", "Is new."))}
			_, err := Sync(t.Context(), o, c)
			if !errors.Is(err, errkind.Denied) || !strings.Contains(err.Error(), "check the permissions of "+path) {
				t.Errorf("Sync = %v, want kind Denied and the folder %s", err, path)
			}
			same(t, "tree", tree(t, o.Base), before)
		})
	}
}

// A cancelled sync changes nothing.
func TestCancel(t *testing.T) {
	o := options(t)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	stop := func(root *os.Root, name string, data []byte, flush bool) error {
		if n++; n == 6 {
			cancel()
		}
		return writeFile(root, name, data, flush)
	}
	_, err := syncWith(ctx, o, content("a/x", "a/y", "a/z"), stop)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Sync = %v, want context.Canceled", err)
	}
	same(t, "tree", paths(t, o.Base), []string{"mcp-skills/", "skills/"})
}

// What a killed sync left is swept by the next one that writes.
func TestSweep(t *testing.T) {
	o := options(t)
	for _, dir := range []string{"mcp-skills", "skills", "."} {
		write(t, "x", o.Base, dir, tempPrefix+"1", "a-x", "SKILL.md")
		symlink(t, "../mcp-skills/a-x", o.Base, dir, tempPrefix+"2")
	}
	mustSync(t, o, content("a/x"))
	same(t, "tree", paths(t, o.Base), []string{"mcp-skills/a-x/SKILL.md", "skills/a-x -> ../mcp-skills/a-x"})
}

// Names of servers and tools are foreign; a log's line stays one.
func TestLog(t *testing.T) {
	o := options(t)
	var log bytes.Buffer
	o.Log = logTo(&log, slog.LevelDebug)
	c := content("a/x")
	c.Skills[0].Tools = []string{"x\nlevel=ERROR\x1b[2J"}
	mustSync(t, o, c)
	for line := range strings.SplitSeq(strings.TrimSpace(log.String()), "\n") {
		if !strings.HasPrefix(line, "level=DEBUG") && !strings.HasPrefix(line, "level=INFO") ||
			strings.Contains(line, "\x1b") {
			t.Errorf("log has the line %q", line)
		}
	}
	for _, want := range []string{"Generated skill: ", "(skills/a-x)", "computed the hash", "wrote a skill"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log has no %q:\n%s", want, log.String())
		}
	}
}
