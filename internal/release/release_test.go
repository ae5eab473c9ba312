package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

const root = "../.."

// testRelease returns a release whose programs have the name of their platform as
// their content.
func testRelease(t *testing.T, version string) *Release {
	t.Helper()
	dist := t.TempDir()
	var artifacts []map[string]any
	for _, os := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, id := range []string{"knowhow", "mcp-fess"} {
				name := fmt.Sprintf("%s_%s_%s", id, os, arch)
				if err := write(dist, file{name, 0o755, []byte(name)}); err != nil {
					t.Fatal(err)
				}
				artifacts = append(artifacts, map[string]any{"path": filepath.Join(dist, name), "goos": os, "goarch": arch,
					"type": "Binary", "extra": map[string]any{"ID": id}})
			}
		}
	}
	artifacts = append(artifacts, map[string]any{"path": "x.tar.gz", "goos": "linux", "goarch": "amd64",
		"type": "Archive", "extra": map[string]any{"ID": "knowhow"}})
	for name, v := range map[string]any{"artifacts.json": artifacts,
		"metadata.json": map[string]string{"version": version}} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(dist, file{name, 0o644, data}); err != nil {
			t.Fatal(err)
		}
	}
	date := time.Date(2026, 11, 22, 18, 18, 34, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dist, "metadata.json"), date, date); err != nil {
		t.Fatal(err)
	}
	r, err := Open(root, dist)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// list returns the names of the files in a folder.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// untar returns the files of an archive by name; the names of programs end with "*".
func untar(t *testing.T, name string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode&0o111 != 0 {
			h.Name += "*"
		}
		files[h.Name] = string(text)
		if want := time.Date(2026, 11, 22, 18, 18, 34, 0, time.UTC); !h.ModTime.Equal(want) {
			t.Errorf("%s: %s is from %v, want %v", name, h.Name, h.ModTime, want)
		}
	}
}

func TestNPM(t *testing.T) {
	r, dir := testRelease(t, "1.2.3-rc.1"), t.TempDir()
	if err := r.NPM(root, dir); err != nil {
		t.Fatal(err)
	}
	want := []string{"knowhow-1.2.3-rc.1.tgz", "knowhow-mcp-darwin-arm64-1.2.3-rc.1.tgz",
		"knowhow-mcp-darwin-x64-1.2.3-rc.1.tgz", "knowhow-mcp-linux-arm64-1.2.3-rc.1.tgz",
		"knowhow-mcp-linux-x64-1.2.3-rc.1.tgz", "knowhow-mcp-win32-arm64-1.2.3-rc.1.tgz",
		"knowhow-mcp-win32-x64-1.2.3-rc.1.tgz"}
	if diff := cmp.Diff(want, list(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	files := untar(t, filepath.Join(dir, want[0]))
	if diff := cmp.Diff([]string{"package/LICENSE", "package/README.md", "package/knowhow.js*", "package/package.json"},
		slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files of the main package (-want +got):\n%s", diff)
	}
	var top npmPackage
	if err := json.Unmarshal([]byte(files["package/package.json"]), &top); err != nil {
		t.Fatal(err)
	}
	if top.Name != "knowhow" || top.MCPName != "io.github.knowhow-mcp/knowhow" || len(top.Optional) != 6 ||
		strings.Contains(files["package/package.json"], "scripts") {
		t.Errorf("package.json is %s", files["package/package.json"])
	}
	for _, tt := range []struct{ file, name, os, cpu, program, content string }{
		{want[4], "@knowhow-mcp/linux-x64", "linux", "x64", "package/bin/knowhow*", "knowhow_linux_amd64"},
		{want[5], "@knowhow-mcp/win32-arm64", "win32", "arm64", "package/bin/knowhow.exe*", "knowhow_windows_arm64"},
	} {
		files := untar(t, filepath.Join(dir, tt.file))
		var pkg npmPackage
		if err := json.Unmarshal([]byte(files["package/package.json"]), &pkg); err != nil {
			t.Fatal(err)
		}
		if pkg.Name != tt.name || pkg.Version != "1.2.3-rc.1" || top.Optional[tt.name] != pkg.Version ||
			!slices.Equal(pkg.OS, []string{tt.os}) || !slices.Equal(pkg.CPU, []string{tt.cpu}) ||
			files[tt.program] != tt.content {
			t.Errorf("%s has %s", tt.file, files)
		}
	}
}

func TestWheels(t *testing.T) {
	r, dir, docs := testRelease(t, "1.2.3-rc.1"), t.TempDir(), t.TempDir()
	if err := write(docs, file{"man/knowhow.1.gz", 0o644, []byte("page")}); err != nil {
		t.Fatal(err)
	}
	if err := r.Wheels(root, docs, dir); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"knowhow_mcp-1.2.3rc1-py3-none-macosx_12_0_arm64.whl", "knowhow_mcp-1.2.3rc1-py3-none-macosx_12_0_x86_64.whl",
		"knowhow_mcp-1.2.3rc1-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
		"knowhow_mcp-1.2.3rc1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
		"knowhow_mcp-1.2.3rc1-py3-none-win_amd64.whl", "knowhow_mcp-1.2.3rc1-py3-none-win_arm64.whl",
	}
	if diff := cmp.Diff(want, list(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	zr, err := zip.OpenReader(filepath.Join(dir, want[3]))
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	files, modes := map[string]string{}, map[string]os.FileMode{}
	for _, f := range zr.File {
		data, err := contentOf(f)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name], modes[f.Name] = string(data), f.Mode()
	}
	program := "knowhow_mcp-1.2.3rc1.data/scripts/knowhow"
	if files[program] != "knowhow_linux_amd64" || modes[program]&0o111 == 0 || modes[program+"-mcp"]&0o111 == 0 {
		t.Errorf("the program is %q with mode %v, the other script has mode %v", files[program], modes[program],
			modes[program+"-mcp"])
	}
	if !strings.Contains(files["knowhow_mcp-1.2.3rc1.dist-info/WHEEL"], "\nTag: py3-none-musllinux_1_1_x86_64\n") ||
		!strings.Contains(files["knowhow_mcp-1.2.3rc1.dist-info/METADATA"], "mcp-name: io.github.knowhow-mcp/knowhow") ||
		files["knowhow_mcp-1.2.3rc1.data/data/share/man/man1/knowhow.1.gz"] != "page" {
		t.Errorf("files: %q", files)
	}
	// RECORD lists every file with its hash, except itself.
	rows, err := csv.NewReader(strings.NewReader(files["knowhow_mcp-1.2.3rc1.dist-info/RECORD"])).ReadAll()
	if err != nil || len(rows) != len(files) {
		t.Fatalf("RECORD has %d rows, %v, want %d", len(rows), err, len(files))
	}
	for _, row := range rows[:len(rows)-1] {
		sum := sha256.Sum256([]byte(files[row[0]]))
		if row[1] != "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]) || row[2] != fmt.Sprint(len(files[row[0]])) {
			t.Errorf("RECORD has %q", row)
		}
	}
}

// contentOf returns the content of a file.
func contentOf(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestPythonVersion(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3rc1", "1.2.3-beta2": "1.2.3b2",
		"1.2.3-alpha": "1.2.3a0", "0.0.1-dev": "0.0.1.dev0", "1.2": "", "1.2.3-next": "", "v1.2.3": ""} {
		got, err := (&Release{Version: version}).python()
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s is %q, %v, want %q", version, got, err, want)
		}
	}
}

// TestSame checks that equal input gives equal files.
func TestSame(t *testing.T) {
	var sums [2]map[string][32]byte
	for i := range sums {
		r, dir, docs := testRelease(t, "1.2.3"), t.TempDir(), t.TempDir()
		sums[i] = map[string][32]byte{}
		if err := errors.Join(r.NPM(root, dir), r.Wheels(root, docs, dir), r.Gemini(root, dir)); err != nil {
			t.Fatal(err)
		}
		for _, name := range list(t, dir) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			sums[i][name] = sha256.Sum256(data)
		}
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Error(diff)
	}
}

func TestBundles(t *testing.T) {
	r, dir := testRelease(t, "1.2.3"), t.TempDir()
	if err := r.Bundles(root, filepath.Join(dir, "bundles")); err != nil {
		t.Fatal(err)
	}
	var m struct {
		Version string
		Server  struct {
			Entry string `json:"entry_point"`
		}
		Compatibility struct{ Platforms []string }
	}
	if err := readJSON(filepath.Join(dir, "bundles", "knowhow-windows-arm64", "manifest.json"), &m); err != nil {
		t.Fatal(err)
	}
	if m.Version != "1.2.3" || m.Server.Entry != "server/knowhow.exe" ||
		!slices.Equal(m.Compatibility.Platforms, []string{"win32"}) {
		t.Errorf("manifest: %+v", m)
	}
	data, err := os.ReadFile(filepath.Join(dir, "bundles", "knowhow-windows-arm64", m.Server.Entry))
	if err != nil || string(data) != "knowhow_windows_arm64" {
		t.Errorf("program: %q, %v", data, err)
	}

	// The entry of the registry has the hashes of the bundles.
	if err := r.Server(root, dir, dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Server() = %v without bundles, want %v", err, os.ErrNotExist)
	}
	for _, name := range list(t, filepath.Join(dir, "bundles")) {
		if err := write(dir, file{name + ".mcpb", 0o644, []byte("bundle")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Server(root, dir, dir); err != nil {
		t.Fatal(err)
	}
	var server struct {
		Name, Version, Description string
		Packages                   []struct {
			RegistryType, Identifier, Version, FileSha256 string
		}
	}
	if err := readJSON(filepath.Join(dir, "server.json"), &server); err != nil {
		t.Fatal(err)
	}
	if server.Version != "1.2.3" || len(server.Description) > 100 || len(server.Packages) != 8 ||
		server.Packages[0].Version != "1.2.3" || server.Packages[2].FileSha256 != fmt.Sprintf("%x", sha256.Sum256([]byte("bundle"))) ||
		server.Packages[2].Identifier !=
			"https://github.com/knowhow-mcp/knowhow/releases/download/v1.2.3/knowhow-darwin-amd64.mcpb" {
		t.Errorf("server.json: %+v", server)
	}
}

func TestGemini(t *testing.T) {
	r, dir := testRelease(t, "1.2.3"), t.TempDir()
	if err := r.Gemini(root, dir); err != nil {
		t.Fatal(err)
	}
	files := untar(t, filepath.Join(dir, "win32.x64.knowhow.tar.gz"))
	if files["knowhow.exe*"] != "knowhow_windows_amd64" || files["skills/knowhow/SKILL.md"] == "" ||
		!strings.Contains(files["gemini-extension.json"], `"${extensionPath}${/}knowhow.exe"`) ||
		!strings.Contains(files["gemini-extension.json"], `"version": "1.2.3"`) {
		t.Errorf("files: %q", files)
	}
}

func TestChangelog(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.md": "**Second.** See [docs](../../docs/b.md).\n\nDo this:\n\n```\nx\n```\n",
		"a.md": "**First.**\n"} {
		if err := write(dir, file{"changelog/unreleased/" + name, 0o644, []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	date := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for _, version := range []string{"", "v1.2.3", "1.2", "../1.2.3"} {
		if err := Changelog(dir, version, date); !errors.Is(err, errkind.Invalid) {
			t.Errorf("Changelog(%q) = %v, want %v", version, err, errkind.Invalid)
		}
	}
	if err := Changelog(dir, "1.2.3", date); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "changelog", "v1.2.3.md"))
	want := "# v1.2.3, 2026-11-27\n\n- **First.**\n- **Second.** See [docs](../docs/b.md).\n\n  Do this:\n\n  ```\n  x\n  ```\n"
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if left := list(t, filepath.Join(dir, "changelog", "unreleased")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if err := Changelog(dir, "1.2.3", date); !errors.Is(err, errkind.Conflict) {
		t.Errorf("Changelog() = %v, want %v", err, errkind.Conflict)
	}
	if err := Changelog(dir, "1.2.4", date); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Changelog() = %v, want %v", err, errkind.NotFound)
	}
}

// TestDocs uses a script in place of the program.
func TestDocs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	script := `#!/bin/sh
case "$*" in
"help --man") printf '.TH x\n.TP\n.BR knowhow\\-serve (1)\n.BR knowhow\\-note\\-add (1)\n' ;;
*) echo "$*" ;;
esac
`
	if err := write(dir, file{"program", 0o755, []byte(script)}); err != nil {
		t.Fatal(err)
	}
	if err := Docs(t.Context(), filepath.Join(dir, "program"), dir); err != nil {
		t.Fatal(err)
	}
	want := []string{"knowhow-note-add.1.gz", "knowhow-serve.1.gz", "knowhow.1.gz"}
	if diff := cmp.Diff(want, list(t, filepath.Join(dir, "man"))); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	got, err := os.ReadFile(filepath.Join(dir, "completions", "zsh", "_knowhow"))
	if err != nil || string(got) != "completion zsh\n" {
		t.Errorf("completion of zsh: %q, %v", got, err)
	}
	if err := Docs(t.Context(), filepath.Join(dir, "nothing"), dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Docs() = %v, want %v", err, os.ErrNotExist)
	}
}
