package windows

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// status is what the command status prints.
type status struct {
	Documents int
	Sources   []struct {
		Label, Path string
		Documents   int
		LeftOut     map[string]int
	}
}

// status returns what is indexed.
func (p *profile) status() (s status) {
	p.t.Helper()
	text := p.output("status", "--json")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		p.t.Fatalf("status --json printed %q: %v", text, err)
	}
	return s
}

// TestNames indexes files with all kinds of names and texts.
func TestNames(t *testing.T) {
	p := newProfile(t)
	utf16LE := "\xff\xfe"
	for _, u := range utf16.Encode([]rune("The heron of Notepad.\r\n")) {
		utf16LE += string([]byte{byte(u), byte(u >> 8)})
	}
	deep := strings.TrimSuffix(strings.Repeat("a folder with a rather long name/", 12), "/")
	found := map[string]struct{ file, text string }{
		"heron":    {"notepad.txt", utf16LE},
		"bittern":  {"with mark.md", "\ufeff# Mark\r\n\r\nThe bittern of an editor.\r\n"},
		"egret":    {deep + "/egret.txt", "The egret is far away.\r\n"},
		"stork":    {"100% of a+b & c #1 (copy).md", "The stork has a strange name.\r\n"},
		"pelican":  {"日本/ペリカン.txt", "The pelican is abroad.\r\n"},
		"spoonbil": {"Upper.TXT", "The spoonbil is in capitals.\r\n"},
	}
	for _, f := range found {
		p.write("Docs/"+f.file, f.text)
	}
	p.write("Docs/Same.txt", "The first of two files.\r\n")
	p.write("Docs/same.txt", "The second of two files.\r\n")
	p.write("Docs/nul.txt", "A reserved name.\r\n")
	p.write("Docs/con", "A reserved name.\r\n")
	p.write("Docs/.gitignore", "ignored.txt\r\n# a comment\r\n/private/\r\n")
	p.write("Docs/ignored.txt", "The flamingo is ignored.\r\n")
	p.write("Docs/private/a.txt", "The flamingo is private.\r\n")
	s := p.start(nil, nil, "serve", "--port", "0", "--embedder", "none", p.win("Docs"))
	s.address(t)
	within(t, patience, "document", func() bool { return p.status().Documents >= len(found)+2 })
	for word, f := range found {
		var page struct{ Results []struct{ Path string } }
		_, stdout, stderr := p.run("search", "--json", word)
		if err := json.Unmarshal([]byte(stdout), &page); err != nil || len(page.Results) != 1 ||
			page.Results[0].Path != f.file {
			t.Errorf("search %s printed %s%s, want %s", word, stdout, stderr, f.file)
		}
	}
	for _, name := range []string{p.win("Docs/notepad.txt"), strings.ReplaceAll(p.win("Docs/notepad.txt"), `\`, "/"), "notepad.txt",
		`DOCS\NOTEPAD.TXT`, `Docs\notepad.txt`, p.win("Docs/" + deep + "/egret.txt"), deep + "/egret.txt"} {
		if code, stdout, stderr := p.run("read", name); code != 0 || !strings.HasPrefix(stdout, "The ") {
			t.Errorf("read %s printed %q%s", name, stdout, stderr)
		}
	}
	if code, stdout, _ := p.run("search", "flamingo"); code != 1 {
		t.Errorf("an ignored file was found: %s", stdout)
	}
}

// TestSpellings names one folder in many ways: it is one source.
func TestSpellings(t *testing.T) {
	p := newProfile(t)
	p.write("Docs/a.txt", "The crane dances.\r\n")
	path := p.win("Docs")
	below := strings.TrimPrefix(path, p.win("../.."))
	s := p.start(nil, nil, "serve", "--port", "0", "--embedder", "none", path, strings.ToUpper(path),
		strings.ToLower(path[:1])+path[1:], strings.ReplaceAll(path, `\`, "/"), path+`\`, "~"+below,
		"~"+strings.ReplaceAll(below, `\`, "/"), "Docs", `.\Docs\..\DOCS`, `\\?\`+path)
	s.address(t)
	within(t, patience, "document", func() bool { return p.status().Documents == 1 })
	got := p.status()
	if len(got.Sources) != 1 || got.Sources[0].Label != "docs" || got.Sources[0].Path != path {
		t.Errorf("the sources are %+v, want %s", got.Sources, path)
	}
	user := p.win("../..")
	for _, home := range []string{"~", user, strings.ToUpper(user), strings.ReplaceAll(user, `\`, "/")} {
		if code, _, stderr := p.run("serve", "--port", "0", home); code == 0 || !strings.Contains(stderr, "your home folder") {
			t.Errorf("serve %s ended with status %d and printed %q", home, code, stderr)
		}
	}
}

// TestTools adds and finds a note, makes and replaces a dataset, and calls a tool of
// a server that the program starts. (The command line of Wine cannot run batch files
// with a space in their path.)
func TestTools(t *testing.T) {
	p := newProfile(t)
	p.write("Docs/a.txt", "The avocet is black and white.\r\n")
	p.output("note", "add", "--collection", "memory", "Users prefer concise answers.")
	if got := p.output("kb", "search", "concise"); !strings.Contains(got, "Users prefer concise answers.") {
		t.Errorf("kb search printed %q", got)
	}
	for range 2 {
		p.output("datasets", "create", "--datasets", p.win("sets"), "--id", "birds", "--source", p.win("Docs"),
			"--embedder", "none", "--force")
	}
	if got := p.output("datasets", "search", "--datasets", p.win("sets"), "birds", "avocet"); !strings.Contains(got,
		"black and white") {
		t.Errorf("datasets search printed %q", got)
	}
	files, err := filepath.Glob(p.path("sets/.*"))
	if err != nil || len(files) != 0 {
		t.Errorf("creating a dataset left %q (%v)", files, err)
	}

	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"docs": map[string]any{
		"command": `Z:` + strings.ReplaceAll(program, "/", `\`),
		"args":    []string{"mcp", "--embedder", "none", p.win("Docs")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	p.write("settings.json", "\ufeff"+strings.ReplaceAll(string(data), ",", ",\r\n"))
	within(t, patience, "answer", func() bool {
		code, stdout, stderr := p.run("call", "--mcp-settings", p.win("settings.json"), "docs/docs_search", "query=avocet")
		if code != 0 {
			t.Fatalf("call ended with status %d: %s", code, stderr)
		}
		return strings.Contains(stdout, "black and white")
	})
}

// TestBatchFile calls a tool of a server that is a batch file on the PATH, as npx is. Characters
// that mean something to cmd.exe are not among its arguments, because that of Wine reads
// those of batch files in another way.
func TestBatchFile(t *testing.T) {
	p := newProfile(t)
	p.write("Docs more/a.txt", "The ibis wades.\r\n")
	exe := `Z:` + strings.ReplaceAll(program, "/", `\`)
	bin, err := os.MkdirTemp(drive, "bin") // cmd.exe of Wine starts no batch file below a folder with a space
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(bin)
	if err := os.WriteFile(filepath.Join(bin, "server.cmd"), []byte("@\""+exe+"\" %*\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"docs": map[string]any{
		"command": "server", "args": []string{"mcp", "--data", p.win("other data"), "--embedder", "none",
			"--description", "all of it", p.win("Docs more")},
		"env": map[string]string{"PATH": `C:\` + filepath.Base(bin)}}}})
	if err != nil {
		t.Fatal(err)
	}
	p.write("settings.json", string(settings))
	within(t, patience, "document", func() bool {
		code, stdout, stderr := p.run("call", "--mcp-settings", p.win("settings.json"), "docs/docs_more_search", "query=ibis")
		if code != 0 {
			t.Fatalf("call ended with status %d: %s%s", code, stdout, stderr)
		}
		return strings.Contains(stdout, "The ibis wades.")
	})
	if got := p.output("sources", "--data", p.win("other data")); !strings.Contains(got, "all of it") {
		t.Errorf("sources printed %s, want the description", got)
	}
}
