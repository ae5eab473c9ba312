package configfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A client is the file of a client on disk.
type client struct {
	t      *testing.T
	format configfile.Format
	path   string
	secret bool
}

// entries returns the number of entries, without the one of the user.
func (c client) entries(data []byte) int {
	c.t.Helper()
	entries, err := configfile.Entries(c.format, data, c.place(""))
	if err != nil {
		c.t.Fatal(err)
	}
	delete(entries, "own")
	return len(entries)
}

// change changes the file, and reports whether it has entries before and after.
func (c client) change(change func(old []byte) ([]byte, error)) {
	c.t.Helper()
	old, err := configfile.Read(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	changed, err := change(old)
	if err != nil {
		c.t.Fatal(err)
	}
	o := configfile.Options{First: c.entries(old) == 0, Last: c.entries(changed) == 0, Secret: c.secret}
	if err := configfile.Change(c.path, o, change); err != nil {
		c.t.Fatal(err)
	}
}

// place returns the place of an entry.
func (c client) place(name string) configfile.Place {
	p := placeIn(c.format, false)
	p.Name = name
	return p
}

// add adds an entry.
func (c client) add(name, command string) {
	c.t.Helper()
	c.change(func(old []byte) ([]byte, error) {
		return configfile.Set(c.format, old, c.place(name), []configfile.Member{{"command", command}})
	})
}

// remove removes an entry.
func (c client) remove(name string) {
	c.t.Helper()
	backup, err := configfile.Backup(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	c.change(func(old []byte) ([]byte, error) { return configfile.Undo(c.format, old, backup, c.place(name)) })
}

// text returns the file, "none" if there is none.
func (c client) text() string {
	c.t.Helper()
	data, err := os.ReadFile(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return "none"
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}

// write writes the file, as a user would; "none" removes it.
func (c client) write(text string) {
	c.t.Helper()
	var err error
	if text == "none" {
		err = os.Remove(c.path)
	} else {
		err = os.WriteFile(c.path, []byte(text), 0o600)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
}

// edit replaces a text in the file.
func (c client) edit(old, changed string) {
	c.t.Helper()
	text := c.text()
	if !strings.Contains(text, old) {
		c.t.Fatalf("the file has no %q: %q", old, text)
	}
	c.write(strings.Replace(text, old, changed, 1))
}

// TestUndo checks that entries can be added and removed in any order, and that
// the file is then what it was before.
func TestUndo(t *testing.T) {
	files := map[configfile.Format][]string{
		configfile.JSON: {"none", "", "\n", "{}", "{ }\n", "{\n}", "{\"mcpServers\":{}}", "{\n  \"mcpServers\": {\n  }\n}\n",
			"{\r\n\t\"mcpServers\": { /* none */ },\r\n\t\"x\": 1,\r\n}", "// c", "\ufeff{\"a\": 1.0}",
			"{\"mcpServers\": {\"own\": {\"command\": \"o\"}}}"},
		configfile.TOML: {"none", "", "\n", "\n\n", "\n\n\n", "\r\n\r\n", "# c", "a = 1", "[mcp_servers]\n", "mcp_servers = {}\n", "[z]\na = 1\n\n\n",
			"\r\n[mcp_servers]\r\n\r\n# c", "[mcp_servers.own]\ncommand = \"o\""},
		configfile.YAML: {"none", "", "# c", "---\n", "a: 1", "extensions:", "extensions: # c\n", "extensions: {}\n",
			"{}", "extensions: { } # c\na: 1\n", "a: 1\r\n\r\n# c\r\n", "extensions:\n  own:\n    command: o"},
	}
	sequences := map[string]func(c client){
		"one": func(c client) { c.add("a", "x"); c.remove("a") },
		"two": func(c client) { c.add("a", "x"); c.add("b", "y"); c.remove("a"); c.remove("b") },
		"both": func(c client) {
			c.add("a", "x")
			c.add("b", "x")
			c.add("a", "y")
			c.remove("b")
			c.add("c", "z")
			c.remove("a")
			c.remove("c")
		},
		"again": func(c client) { c.add("a", "x"); c.remove("a"); c.add("a", "x"); c.remove("a"); c.remove("a") },
	}
	for format, texts := range files {
		for _, text := range texts {
			for name, sequence := range sequences {
				t.Run(fmt.Sprintf("%s %s %q", format, name, text), func(t *testing.T) {
					c := client{t, format, filepath.Join(tempDir(t), "folder", "config"), false}
					if text != "none" {
						if err := os.Mkdir(filepath.Dir(c.path), 0o700); err != nil {
							t.Fatal(err)
						}
					}
					c.write(text)
					sequence(c)
					if got := c.text(); got != text {
						t.Errorf("the file became %q", got)
					}
					if left, _ := filepath.Glob(c.path + "*"); len(left) > 1 || text == "none" && len(left) > 0 {
						t.Errorf("there are %v", left)
					}
					if _, err := os.Stat(filepath.Dir(c.path)); text == "none" && err == nil {
						t.Error("the folder that was made for the file is left")
					}
				})
			}
		}
	}
}

// TestUndoKeepsEdits checks that what a user changes meanwhile stays, that objects that
// were added are removed if they are empty, and that the backup is removed.
func TestUndoKeepsEdits(t *testing.T) {
	tests := []struct {
		format            configfile.Format
		before, old, text string // old is replaced by text
		want              string
	}{
		{configfile.JSON, "none", "{\n", "{\n  \"b\": 1,\n", "{\n  \"b\": 1\n}\n"},
		{configfile.JSON, "{\"a\": 1}", "1", "2", "{\"a\": 2}"},
		{configfile.JSON, "{\"a\": 1, \"mcpServers\": {}}", "1", "2", "{\"a\": 2, \"mcpServers\": {}}"},
		{configfile.JSON, "{\"a\": 1, \"mcpServers\": {}}", "\"x\"", "\"changed\"", "{\"a\": 1, \"mcpServers\": {}}"},
		{configfile.JSON, "{\"a\": 1}", "\"mcpServers\": {", "\"mcpServers\": {\"own\": {}, ",
			"{\"a\": 1, \"mcpServers\": {\"own\": {}}}"},
		{configfile.TOML, "a = 1\n", "a = 1", "a = 2 # c", "a = 2 # c\n"},
		{configfile.TOML, "a = 1\n[mcp_servers]\n", "a = 1", "a = 2", "a = 2\n[mcp_servers]\n"},
		{configfile.YAML, "a: 1\n", "a: 1", "a: 2 # c", "a: 2 # c\n"},
		{configfile.YAML, "a: 1\nextensions: {}\n", "a: 1", "a: 2 # c", "a: 2 # c\nextensions: {}\n"},
	}
	for _, tt := range tests {
		for _, two := range []bool{false, true} {
			c := client{t, tt.format, filepath.Join(tempDir(t), "config"), false}
			c.write(tt.before)
			c.add("files", "x")
			c.edit(tt.old, tt.text)
			if two {
				c.add("other", "x")
				c.remove("files")
				c.remove("other")
			} else {
				c.remove("files")
			}
			if got := c.text(); got != tt.want {
				t.Errorf("%q became %q, want %q", tt.before, got, tt.want)
			}
			if _, err := os.Stat(c.path + ".knowhow.bak"); err == nil {
				t.Errorf("%q: the backup is left", tt.before)
			}
		}
	}
}

// TestBackup checks when the backup is written, replaced and removed.
func TestBackup(t *testing.T) {
	c := client{t, configfile.JSON, filepath.Join(tempDir(t), "mcp.json"), false}
	backup := func(want string) {
		t.Helper()
		data, err := configfile.Backup(c.path)
		if err != nil || string(data) != want {
			t.Errorf("the backup is %q, %v, want %q", data, err, want)
		}
	}
	c.write(`{"theme": "dark"}`)
	c.add("a", "x")
	backup(`{"theme": "dark"}`)
	c.add("b", "y")
	c.add("a", "z")
	c.edit("dark", "light")
	c.add("b", "x")
	backup(`{"theme": "dark"}`)
	c.remove("a")
	backup(`{"theme": "dark"}`)
	c.remove("b")
	backup("")
	if got, want := c.text(), `{"theme": "light"}`; got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
	c.add("a", "x")
	c.write(`{"theme": "mine"}`) // without the entry, the backup is from earlier
	c.add("a", "x")
	backup(`{"theme": "mine"}`)
	c.write("none") // the backup may be the last copy
	c.add("a", "x")
	backup(`{"theme": "mine"}`)
	c.remove("a")
	backup(`{"theme": "mine"}`)
	c.write(`{"theme": "new"}`)
	c.change(func(old []byte) ([]byte, error) { return old, nil })
	backup("")
}

// Folders that were made for a file are removed with it, unless something is in them.
func TestFolders(t *testing.T) {
	for _, used := range []bool{false, true} {
		dir := tempDir(t)
		c := client{t, configfile.JSON, filepath.Join(dir, "a", "b", "c", "mcp.json"), false}
		if err := os.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		c.add("files", "x")
		if used {
			if err := os.WriteFile(filepath.Join(dir, "a", "b", "mine"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.remove("files")
		var left []string
		for _, name := range []string{"a", "a/b", "a/b/c"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				left = append(left, name)
			}
		}
		want := []string{"a"}
		if used {
			want = append(want, "a/b")
		}
		if fmt.Sprint(left) != fmt.Sprint(want) {
			t.Errorf("the folders %v are left, want %v", left, want)
		}
	}
}

// TestUsersBackup checks that a backup that a user has made stays.
func TestUsersBackup(t *testing.T) {
	c := client{t, configfile.JSON, filepath.Join(tempDir(t), "mcp.json"), false}
	c.write("{}")
	if err := os.WriteFile(c.path+".bak", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.add("a", "x")
	c.remove("a")
	if data, err := os.ReadFile(c.path + ".bak"); err != nil || string(data) != "{}" {
		t.Errorf("the backup of the user has %q, %v", data, err)
	}
}

func TestChangeModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the permissions are those of Unix")
	}
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for _, was := range []os.FileMode{0o600, 0o640, 0o644, 0o664, 0o755} {
		for _, secret := range []bool{false, true} {
			c := client{t, configfile.TOML, filepath.Join(tempDir(t), "config.toml"), secret}
			c.write("a = 1\n")
			if err := os.Chmod(c.path, was); err != nil {
				t.Fatal(err)
			}
			c.add("files", "x")
			want := was
			if secret {
				want = 0o600
			}
			if got := mode(c.path); got != want {
				t.Errorf("mode %o becomes %o, want %o", was, got, want)
			}
			if got := mode(c.path + ".knowhow.bak"); got != was {
				t.Errorf("the backup of a file of mode %o has %o", was, got)
			}
		}
	}
	c := client{t, configfile.TOML, filepath.Join(tempDir(t), "config.toml"), false}
	c.add("files", "x")
	if got := mode(c.path); got != 0o600 {
		t.Errorf("a new file has mode %o", got)
	}
}

// TestChangeLinks checks that links stay links, and what they lead to is changed.
func TestChangeLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	other := t.TempDir()
	if shared, err := os.MkdirTemp("/dev/shm", "configfile"); err == nil { // another file system
		other = shared
		t.Cleanup(func() { _ = os.RemoveAll(shared) })
	}
	for name, link := range map[string]struct{ target, real string }{
		"relative":          {"real.json", "real.json"},
		"in another folder": {"sub/real.json", "sub/real.json"},
		"absolute":          {filepath.Join(other, "real.json"), filepath.Join(other, "real.json")},
		"of a link":         {"second.json", "real.json"},
	} {
		for _, dangling := range []bool{false, true} {
			dir := t.TempDir()
			c := client{t, configfile.JSON, filepath.Join(dir, "mcp.json"), false}
			_ = os.Symlink("real.json", filepath.Join(dir, "second.json"))
			if err := os.Symlink(link.target, c.path); err != nil {
				t.Fatal(err)
			}
			real := link.real
			if !filepath.IsAbs(real) {
				real = filepath.Join(dir, real)
			}
			_ = os.MkdirAll(filepath.Dir(real), 0o700)
			_ = os.Remove(real)
			_ = os.Remove(real + ".knowhow.bak")
			want := "none"
			if !dangling {
				want = `{"a": 1}`
				if err := os.WriteFile(real, []byte(want), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c.add("files", "x")
			if data, err := os.ReadFile(real); err != nil || !bytes.Contains(data, []byte("files")) {
				t.Errorf("%s: the file has %q, %v", name, data, err)
			}
			if info, err := os.Lstat(c.path); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s: the link was replaced: %v, %v", name, info, err)
			}
			if _, err := os.Stat(real + ".knowhow.bak"); err != nil {
				t.Errorf("%s: there is no backup beside the file: %v", name, err)
			}
			c.remove("files")
			if got := c.text(); got != want {
				t.Errorf("%s: removed: %q, want %q", name, got, want)
			}
		}
	}
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop.json")
	if err := os.Symlink("loop.json", loop); err != nil {
		t.Fatal(err)
	}
	err := configfile.Change(loop, configfile.Options{}, func([]byte) ([]byte, error) { return []byte("{}"), nil })
	if !errors.Is(err, errkind.Invalid) {
		t.Errorf("a loop: %v, want Invalid", err)
	}
}

// TestChangeRefused checks that nothing is changed if something is in the way.
func TestChangeRefused(t *testing.T) {
	set := func(old []byte) ([]byte, error) {
		return configfile.Set(configfile.JSON, old, placeIn(configfile.JSON, false), entry)
	}
	refused := func(name, path string, kind error, want string) {
		t.Helper()
		before, _ := os.ReadFile(path)
		err := configfile.Change(path, configfile.Options{First: true}, set)
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %v with %q and the path", name, err, kind, want)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s: %q became %q", name, before, after)
		}
		left, _ := os.ReadDir(filepath.Dir(path))
		for _, f := range left {
			if strings.HasSuffix(f.Name(), ".tmp") || strings.HasSuffix(f.Name(), ".bak") {
				t.Errorf("%s leaves %s", name, f.Name())
			}
		}
	}
	file := func(text string, mode os.FileMode) string {
		path := filepath.Join(tempDir(t), "mcp.json")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged := file("{\n \"mcpServers\": [}", 0o600)
	refused("damaged", damaged, errkind.Invalid, damaged+":2:17: ")
	refused("read-only", file("{}", 0o400), errkind.Denied, "read-only")
	refused("too large", file("{}"+strings.Repeat(" ", configfile.MaxSize), 0o600), errkind.Invalid, "4 MiB")
	refused("a folder", t.TempDir(), errkind.Invalid, "not a file")
	if runtime.GOOS != "windows" && os.Getuid() != 0 {
		path := file("{}", 0o600)
		_ = os.Chmod(filepath.Dir(path), 0o500)
		t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o700) })
		refused("read-only folder", path, errkind.Denied, "permission denied")
	}
}

// TestChangeConflict checks that a file that another program writes at the same
// time is read again.
func TestChangeConflict(t *testing.T) {
	c := client{t, configfile.JSON, filepath.Join(tempDir(t), "mcp.json"), false}
	c.write("{}")
	o := configfile.Options{First: true}
	calls := 0
	err := configfile.Change(c.path, o, func(old []byte) ([]byte, error) {
		if calls++; calls == 1 {
			c.write(`{"theme": "dark"}`)
		}
		return configfile.Set(configfile.JSON, old, c.place("files"), entry)
	})
	if err != nil || calls != 2 || !strings.Contains(c.text(), "dark") {
		t.Errorf("Change() = %v after %d calls, the file has %q", err, calls, c.text())
	}
	err = configfile.Change(c.path, o, func(old []byte) ([]byte, error) {
		c.write(c.text() + " ")
		return configfile.Remove(configfile.JSON, old, c.place("files"))
	})
	if !errors.Is(err, errkind.Conflict) || !strings.Contains(c.text(), "files") {
		t.Errorf("Change() = %v, want Conflict; the file has %q", err, c.text())
	}
}
