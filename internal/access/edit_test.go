package access_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/access"
)

// editorVariable makes the test binary a process that edits an access file.
const editorVariable = "KNOWHOW_TEST_EDITOR"

func TestMain(m *testing.M) {
	if name := os.Getenv(editorVariable); name != "" {
		if err := editOften(os.Getenv("KNOWHOW_TEST_FILE"), name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// edits is how often each process edits the file.
const edits = 10

// editOften adds users to a file.
func editOften(path, name string) error {
	for i := range edits {
		err := access.Edit(context.Background(), path, func(c *access.Content) error {
			c.Users = append(c.Users, access.User{Name: fmt.Sprintf("%s-%d", name, i)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestEditByProcesses checks that no edit of processes at the same time is lost.
func TestEditByProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "access.json")
	const processes = 5
	commands := make([]*exec.Cmd, processes)
	for i := range commands {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), fmt.Sprintf("%s=p%d", editorVariable, i), "KNOWHOW_TEST_FILE="+path)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		commands[i] = c
	}
	for _, c := range commands {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	c, err := access.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(c.Users), processes*edits; got != want {
		t.Errorf("%d users after %d edits", got, want)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files that stay: %v, %v", left, err)
	}
}

func TestEdit(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "a", "access.json")
	refuse := errors.New("refused")
	if err := access.Edit(ctx, path, func(*access.Content) error { return refuse }); !errors.Is(err, refuse) {
		t.Errorf("Edit = %v, want the error of change", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("an edit that is refused makes a folder")
	}
	err := access.Edit(ctx, path, func(c *access.Content) error {
		c.Users = append(c.Users, access.User{Name: "zoe", SHA256: hashA, Read: []string{"docs"}, Admin: true},
			access.User{Name: "a&b <c>", Write: []string{"*"}})
		c.Groups = append(c.Groups, access.Group{Name: "staff"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "users": {
    "zoe": {"sha256":"` + hashA + `","read":["docs"],"write":[],"admin":true},
    "a&b <c>": {"read":[],"write":["*"],"admin":false}
  },
  "groups": {
    "staff": {"read":[],"write":[]}
  }
}
`
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("the file differs (-want +got):\n%s%v", cmp.Diff(want, string(data)), err)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	bad := func(c *access.Content) error { c.Users[0].SHA256 = hashA[1:]; return nil }
	if err := access.Edit(ctx, path, bad); err == nil || !strings.Contains(err.Error(), "users.zoe.sha256") {
		t.Errorf("Edit with a bad hash = %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("an edit that fails changes the file: %s, %v", data, err)
	}
}

// TestEditDamaged checks that a damaged file is not overwritten.
func TestEditDamaged(t *testing.T) {
	for _, text := range []string{"", "{", `{"users":{"a":{"raed":[]}}}`} {
		path := write(t, text)
		err := access.Edit(context.Background(), path, func(*access.Content) error { return nil })
		if data, _ := os.ReadFile(path); err == nil || string(data) != text {
			t.Errorf("Edit(%q) = %v, and the file is %q", text, err, data)
		}
	}
}

// TestEditLink checks that a link to an access file stays one, and that what it leads to
// is protected.
func TestEditLink(t *testing.T) {
	target := write(t, `{}`)
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := os.Chmod(target, 0o644); err != nil {
		t.Fatal(err)
	}
	err := access.Edit(context.Background(), link, func(c *access.Content) error {
		c.Groups = append(c.Groups, access.Group{Name: "g"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != target {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if c, err := access.Read(target); err != nil || c.Group("g") == nil {
		t.Errorf("the target has %v, %v", c, err)
	}
	if info, err := os.Stat(target); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the target has mode %v, %v", info.Mode(), err)
	}
}

// TestEditCancelled checks that an edit that waits for another one ends with its context.
func TestEditCancelled(t *testing.T) {
	path := write(t, `{}`)
	ctx, cancel := context.WithCancel(context.Background())
	err := access.Edit(context.Background(), path, func(*access.Content) error {
		cancel()
		err := access.Edit(ctx, path, func(*access.Content) error { return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a second edit = %v, want it to wait", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
