package mcpsettings_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// FuzzParse checks the properties of every file: nothing panics, errors have their
// kind, no message shows a value of the environment, names that were put in are
// names of the environment, and the layout of JSON does not count.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(hashed))
	f.Add([]byte(`{"mcpServers":{"s":{"command":"${SELF}${NO:-$$}$${A}{env:B}","args":["$BIG$BIG","${"]}}}`))
	f.Add([]byte("a.b.c = [[{x='''\n'''}]]\n[mcp_servers.'']"))
	const secret = "V4LUE-of-the-environment"
	getenv := func(name string) (string, bool) { return secret + "${SELF}$" + name, !strings.HasPrefix(name, "NO") }
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := mcpsettings.Parse("f", data, getenv)
		if err != nil {
			if !errors.Is(err, errkind.Invalid) || strings.Contains(err.Error(), secret) {
				t.Fatalf("Parse(%q) = %v, want an error of kind Invalid without the environment in it", data, err)
			}
			return
		}
		if strings.Contains(strings.Join(s.Warnings, ""), secret) {
			t.Errorf("Parse(%q) warns %q, which shows the environment", data, s.Warnings)
		}
		for i, v := range s.Servers {
			if v.ID == "" || i > 0 && s.Servers[i-1].ID >= v.ID {
				t.Errorf("Parse(%q) has the id %q at %d", data, v.ID, i)
			}
			if v.Problem != nil && (!errors.Is(v.Problem, errkind.Invalid) ||
				strings.Contains(v.Problem.Error(), secret) || v.Disabled) {
				t.Errorf("Parse(%q) has problem %v", data, v.Problem)
			}
			usable := !v.Disabled && v.Problem == nil
			if usable && (v.Transport == mcpsettings.Stdio) != (v.Command != "" && v.Transport == mcpsettings.Stdio) {
				t.Errorf("Parse(%q) has a usable server without a command: %+v", data, v)
			}
			if usable && v.Transport != mcpsettings.Stdio && v.URL == "" {
				t.Errorf("Parse(%q) has a usable server without a URL: %+v", data, v)
			}
			if used := strings.Contains(v.Command+v.URL+v.Dir+strings.Join(v.Args, ""), secret); used &&
				len(v.Expanded) == 0 || !slices.IsSorted(v.Expanded) {
				t.Errorf("Parse(%q) has %+v, whose Expanded is wrong", data, v)
			}
		}
		checkLayout(t, data, s.Hash)
	})
}

// checkLayout checks that the hash of JSON stays the same without comments and
// with other white space, and in another environment.
func checkLayout(t *testing.T, data []byte, want string) {
	t.Helper()
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	var indented bytes.Buffer
	if plain, err := hujson.Standardize(bytes.Clone(text)); err != nil ||
		json.Indent(&indented, plain, " ", "\t") != nil {
		indented = *bytes.NewBuffer(text) // TOML
	}
	s, err := mcpsettings.Parse("g", indented.Bytes(), nil)
	if err != nil {
		t.Fatalf("Parse(%q): %v, but not as %q", indented.Bytes(), err, data)
	}
	if got := s.Hash; got != want {
		t.Errorf("Hash of %q = %s, want that of %q, %s", indented.Bytes(), got, data, want)
	}
}

// BenchmarkParse reads a file of 100 servers.
func BenchmarkParse(b *testing.B) {
	var file strings.Builder
	file.WriteString(`{"mcpServers":{`)
	for i := range 100 {
		if i > 0 {
			file.WriteByte(',')
		}
		file.WriteString(`"server-` + string(rune('a'+i/26)) + string(rune('a'+i%26)) +
			`":{"command":"npx","args":["-y","${HOME}/x","--token=${GITHUB_TOKEN}"],"env":{"A":"$USER"}}`)
	}
	file.WriteString(`}}`)
	data := []byte(file.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := mcpsettings.Parse("f", data, env); err != nil {
			b.Fatal(err)
		}
	}
}
