//go:build unix

package doctor

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/site"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// secretWord is in every secret of the tests. No finding may contain it.
const secretWord = "hunter2"

// A fixture is a machine for a test: without a fault, as newFixture returns it.
type fixture struct {
	*testing.T
	Options
	env  map[string]string
	docs string // the folder of the source
}

// newFixture returns a machine on which nothing is wrong and nothing is indexed.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	f := &fixture{T: t, docs: filepath.Join(dir, "home", "handbook")}
	bin := filepath.Join(dir, "bin")
	f.write(filepath.Join(bin, "knowhow"), program("v1.2.3"), 0o755)
	f.write(filepath.Join(f.docs, "leave.md"), "# Leave\n\nThirty days of leave.\n", 0o644)
	f.write(filepath.Join(f.docs, "travel.md"), "# Travel\n\nTrains are best.\n", 0o644)
	f.env = map[string]string{"PATH": bin}
	f.Options = Options{
		Program: "knowhow", Executable: filepath.Join(bin, "knowhow"), Build: Build{Version: "v1.2.3"},
		System: clients.System{GOOS: "linux", Home: filepath.Join(dir, "home"), Dir: filepath.Join(dir, "home",
			"project"),
			Lookup:  func(name string) (string, bool) { value, ok := f.env[name]; return value, ok },
			Exists:  func(path string) bool { _, err := os.Stat(path); return err == nil },
			Program: f.onPath},
		Data: filepath.Join(dir, "home", "data"),
		Addr: closedPort(t), Limit: time.Minute, Explain: func(err error) error { return err },
		machine: machine{host: "laptop",
			writable: func(string) error { return nil },
			disk: func(string) (diskState, error) {
				return diskState{free: 1 << 40, files: 1e6, limited: true},
					nil
			},
			alive:    func(pid int) bool { return pid == os.Getpid() },
			watches:  func() int { return 65536 },
			listener: func(int) string { return "process 7 (\x1b]0;nginx)" },
		},
		Ours: func(_ context.Context, s clients.Server) bool {
			return strings.Contains(s.Command, "knowhow") || strings.Contains(s.URL, "127.0.0.1")
		},
		Parse: parseFake,
	}
	f.Rewrite = f.rewriteFake
	f.mkdir(f.Dir)
	return f
}

// onPath returns the path of a program on the PATH.
func (f *fixture) onPath(name string) string {
	for _, dir := range filepath.SplitList(f.env["PATH"]) {
		if path := filepath.Join(dir, name); f.Exists(path) {
			return path
		}
	}
	return ""
}

// rewriteFake writes a file of Cursor with one server.
func (f *fixture) rewriteFake(_ *clients.Client, file clients.File, _ string, s clients.Server) error {
	return os.WriteFile(file.Path, []byte(stdio(s.Command, s.Args...)), 0o600)
}

// parseFake reads the arguments of commands that have no flags but --transport.
func parseFake(_ string, args []string, env map[string]string) (CommandLine, error) {
	if len(args) == 0 {
		return CommandLine{}, errors.New("a command is missing")
	}
	line := CommandLine{Command: args[0], Stdio: args[0] == "mcp" || args[0] == "fess" ||
		env["KNOWHOW_TRANSPORT"] == "stdio"}
	for i := 1; i < len(args); i++ {
		switch {
		case args[i] == "--transport":
			i++
			line.Stdio = true
		case strings.HasPrefix(args[i], "-"):
			return line, fmt.Errorf("unknown flag %s", args[i])
		default:
			line.Paths = append(line.Paths, args[i])
		}
	}
	return line, nil
}

// program returns a script that prints its version like this program.
func program(version string) string {
	return "#!/bin/sh\necho knowhow " + version + "\necho commit unknown\n"
}

// closedPort returns an address on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (f *fixture) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) mkdir(dir string) { f.check(os.MkdirAll(dir, 0o700)) }

// write writes a file, and makes its folder.
func (f *fixture) write(path, text string, mode os.FileMode) {
	f.Helper()
	f.mkdir(filepath.Dir(path))
	syscall.ForkLock.RLock() // a process that is started now would keep a program open for writing
	err := os.WriteFile(path, []byte(text), mode)
	syscall.ForkLock.RUnlock()
	f.check(err)
	f.check(os.Chmod(path, mode))
	old := time.Now().Add(-time.Hour)
	f.check(os.Chtimes(path, old, old)) // a file that has just changed may still be changing
}

// settle closes the index again until its log is empty: on a busy machine, closing it
// may leave that to the next program.
func (f *fixture) settle() {
	f.Helper()
	log := filepath.Join(f.Data, index.FileName+"-wal")
	for range 100 {
		if info, err := os.Stat(log); err != nil || info.Size() == 0 {
			return
		}
		f.check(f.open().Close())
	}
	f.Fatal("the log of the index stays")
}

// open opens the index of the data folder.
func (f *fixture) open() *index.Index {
	f.Helper()
	x, err := index.Open(f.Context(), index.Options{Dir: f.Data})
	f.check(err)
	return x
}

// index indexes sources into the data folder.
func (f *fixture) index(sources ...document.Source) {
	f.Helper()
	x := f.open()
	for _, s := range sources {
		f.check(x.AddSource(f.Context(), s))
	}
	log := slog.New(slog.DiscardHandler)
	f.check(indexing.New(indexing.Options{Index: x, Lines: terminal.NewLines(io.Discard, nil), Log: log, Once: true,
		Dir: f.Data}).Run(f.Context()))
	f.check(x.Close())
}

// handbook indexes the source.
func (f *fixture) handbook() { f.index(document.Source{Label: "handbook", Path: f.docs}) }

// siteAddress is the address of a web site.
const siteAddress = "https://docs.example.com/"

// site puts a web site with one document into the index.
func (f *fixture) site(leftOut map[site.Reason]int) {
	f.Helper()
	counts := map[string]int{}
	for reason, n := range leftOut {
		counts[string(reason)] = n
	}
	f.remote("site", siteAddress, counts)
}

// remote puts a source with one document into the index that is not on this machine.
func (f *fixture) remote(label, path string, leftOut map[string]int) {
	f.Helper()
	x := f.open()
	f.check(x.AddSource(f.Context(), document.Source{Label: label, Path: path}))
	const text = "A page."
	f.check(x.Apply(f.Context(), []document.Change{{Put: &document.Document{ID: document.IDOf(label, "index"),
		Label: label, Path: "index", FromSource: true, Title: "Page", Text: text,
		Chunks: []document.Chunk{{Length: len(text)}}}}}))
	f.check(x.SetLeftOut(f.Context(), label, index.LeftOut{Counts: leftOut}))
	f.check(x.Close())
}

// change changes bytes of the file of the index.
func (f *fixture) change(at int64, bytes ...byte) {
	f.Helper()
	file, err := os.OpenFile(filepath.Join(f.Data, index.FileName), os.O_RDWR, 0)
	f.check(err)
	_, err = file.WriteAt(bytes, at)
	f.check(err)
	f.check(file.Close())
}

// serve starts an HTTP server and returns its URL.
func (f *fixture) serve(h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	f.Cleanup(s.Close)
	return s.URL
}

// mcp starts a server of this program and returns the URL of MCP.
func (f *fixture) mcp(token string) string {
	m := mcpserver.New(mcpserver.Options{Name: "test"})
	mcpserver.AddTool(m, mcpserver.Tool{Name: "handbook_search", Description: "Searches."},
		func(context.Context, struct {
			Query string `json:"query"`
		}) (any, error) {
			return map[string]any{"results": []string{}}, nil
		})
	guard := httpguard.New(httpguard.Options{Token: token, Refuse: mcpserver.Refuse,
		HostHint: "allow it with --allow-host",
		Routes:   []httpguard.Route{m.HTTP(mcpserver.HTTPOptions{}).Route("/mcp")}})
	return f.serve(guard.ServeHTTP) + "/mcp"
}

// client writes the configuration file of the user of a client.
func (f *fixture) client(name, text string) (path string) {
	f.Helper()
	c, _ := clients.Find(name)
	file, ok := c.File(f.System, clients.User)
	if !ok {
		f.Fatalf("%s has no file", name)
	}
	f.write(file.Path, text, 0o600)
	return file.Path
}

// stdio returns the entry of a client in JSON that starts a program.
func stdio(command string, args ...string) string {
	return fmt.Sprintf(`{"mcpServers":{"handbook":{"command":%q,"args":["%s"]}}}`, command, strings.Join(args, `","`))
}

// A planted fault is found with a level, a subject, and texts that message and fix
// contain.
type planted struct {
	name         string
	plant        func(f *fixture)
	level        Level
	subject      string
	message, fix string
	repaired     bool // with Fix, nothing is wrong afterwards
	needsUser    bool // root may do everything
}

func TestPlantedFaults(t *testing.T) {
	for _, tc := range slicesOf(otherFaults, programFaults, dataFaults, indexFaults, serverFaults, serviceFaults, clientFaults) {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.needsUser && os.Getuid() == 0 {
				t.Skip("root may read everything")
			}
			f := newFixture(t)
			tc.plant(f)
			found := Run(t.Context(), f.Options)
			checkFound(t, found, tc)
			if !tc.repaired {
				return
			}
			f.Fix = true
			repaired := Run(t.Context(), f.Options)
			for _, r := range repaired {
				if r.Subject == tc.subject && r.Level == OK && strings.HasPrefix(r.Message, "repaired: ") {
					f.Fix = false
					if again := Run(t.Context(), f.Options); Count(again, Error)+Count(again, Warning) > 0 {
						t.Errorf("after the repair, Run() = %s", show(again))
					}
					return
				}
			}
			t.Errorf("with Fix, Run() = %s, want a repair", show(repaired))
		})
	}
}

// slicesOf joins tables.
func slicesOf(tables ...[]planted) (all []planted) {
	for _, table := range tables {
		all = append(all, table...)
	}
	return all
}

// checkFound checks that a fault is found, and nothing worse.
func checkFound(t *testing.T, found []Finding, want planted) {
	t.Helper()
	hit := false
	for _, f := range found {
		if f.Level != OK && f.Fix == "" {
			t.Errorf("%+v does not say what to do", f)
		}
		if text := f.Subject + f.Message + f.Fix; strings.Contains(text, secretWord) || strings.ContainsAny(text,
			"\x1b\n\r\u202e") {
			t.Errorf("%+v contains a secret or a control character", f)
		}
		switch {
		case f.Level == want.level && f.Subject == want.subject && strings.Contains(f.Message, want.message) &&
			strings.Contains(f.Fix, want.fix):
			hit = true
		case f.Level == Error && want.level != Error || f.Level == Warning && want.level == OK:
			t.Errorf("Run() also found %+v", f)
		}
	}
	if !hit {
		t.Errorf("Run() = %s,\nwant %s, %s, %q, %q", show(found), want.level, want.subject, want.message, want.fix)
	}
}

// TestHealthy checks that nothing but ok is reported where nothing is wrong, and that
// nothing is changed.
func TestHealthy(t *testing.T) {
	for name, prepare := range map[string]func(f *fixture){
		"nothing installed": func(f *fixture) { f.Home = f.TempDir(); f.Data = filepath.Join(f.Home, "a", "b") },
		"empty data folder": func(f *fixture) { f.mkdir(f.Data) },
		"indexed":           (*fixture).handbook,
		"not on the PATH":   func(f *fixture) { f.env["PATH"] = "/nowhere" },
		"sources that are asked": func(f *fixture) {
			f.client("cursor", stdio(f.Executable, "mcp", f.docs, "fess:"+f.docs, "datasets:"+f.docs, "kb", "kb:minutes",
				"file:"+f.docs))
		},
		"relative PATH": func(f *fixture) { f.env["PATH"] = ".::bin" },
		"connected": func(f *fixture) {
			f.handbook()
			f.client("cursor", stdio(f.Executable, "mcp", f.docs))
			f.client("codex", fmt.Sprintf("[mcp_servers.handbook]\ncommand = %q\nargs = [\"mcp\", %q]\n", f.Executable,
				f.docs))
			f.client("goose",
				fmt.Sprintf("extensions:\n  handbook:\n    type: stdio\n    cmd: %s\n    args: [mcp, %s]\n",
					f.Executable, f.docs))
			f.client("vscode", "// no servers yet\n{}")
			f.client("gemini",
				`{"theme":"dark","mcpServers":{"other":{"command":"/bin/other"},"web":{"url":"https://example.com/mcp"}}}`)
			f.client("zed", "")
		},
		"server": func(f *fixture) {
			f.Token = "0123456789abcdef0123"
			url := f.mcp(f.Token)
			f.Addr = strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
			f.client("cursor",
				fmt.Sprintf(`{"mcpServers":{"handbook":{"url":%q,"headers":{"Authorization":"Bearer ${env:KNOWHOW_TOKEN}"}}}}`,
					url))
		},
		"site with links that lead nowhere": func(f *fixture) {
			f.site(map[site.Reason]int{site.Answered(http.StatusNotFound): 9, site.Outside: 9, site.NoText: 9})
		},
		"site of which a page fails": func(f *fixture) { f.site(map[site.Reason]int{site.Answered(500): 1}) },
		"wanted maximum of pages": func(f *fixture) {
			f.site(map[site.Reason]int{site.OverLimit: 9})
			x := f.open()
			f.check(x.AddSource(f.Context(), document.Source{Label: "site", Path: siteAddress,
				Rules: document.Rules{MaxPages: 1}}))
			f.check(x.Close())
		},
		"repository with a submodule": func(f *fixture) {
			f.remote("repository", "git+https://git.example.com/team/handbook",
				map[string]int{string(ingest.Submodule): 1})
		},
		"Fess": func(f *fixture) { f.fess(f.TempDir(), `"labelFilter":"finance"`) },
		"store": func(f *fixture) {
			f.Store = &fakeStore{health: search.Health{Status: "green"}, vectors: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			prepare(f)
			f.settle()
			before := snapshot(t, f.Home)
			found := Run(t.Context(), f.Options)
			if Count(found, OK) != len(found) || len(found) < 6 {
				t.Errorf("Run() = %s, want nothing but ok", show(found))
			}
			if diff := cmp.Diff(before, snapshot(t, f.Home)); diff != "" {
				t.Errorf("Run() changed files (-before +after):\n%s", diff)
			}
		})
	}
}

// TestWhileServed checks a data folder that another process uses.
func TestWhileServed(t *testing.T) {
	f := newFixture(t)
	f.handbook()
	x := f.open()
	_, err := x.Lease(t.Context(), fmt.Sprintf("laptop-%d-abcdefgh", os.Getpid()), time.Hour, "indexing:handbook")
	f.check(err)
	found := Run(t.Context(), f.Options)
	if Count(found, OK) != len(found) || !strings.Contains(show(found),
		fmt.Sprintf("process %d uses the data folder (source handbook)", os.Getpid())) {
		t.Errorf("Run() = %s, want nothing but ok", show(found))
	}
	f.check(x.Close())
}

// snapshot returns the files below a folder with their modes and contents.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = fmt.Sprintf("%d bytes %x", len(data), data[:min(len(data), 64)])
		}
		files[path] = info.Mode().String() + " " + text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var otherFaults = []planted{
	{name: "home folder in the command of another program", plant: func(f *fixture) {
		f.client("cursor", `{"mcpServers":{"other":{"command":"~/bin/other"}}}`)
	}, level: Error, subject: "Cursor", message: "~/bin/other", fix: "Write the whole path"},
}

var programFaults = []planted{
	{name: "another program", plant: func(f *fixture) { f.first("#!/bin/sh\necho hello\n", 0o755) },
		level: Error, subject: "PATH", message: "is another program", fix: "Remove or rename it"},
	{name: "program that fails", plant: func(f *fixture) { f.first("#!/bin/sh\nexit 3\n", 0o755) },
		level: Error, subject: "PATH", message: "is another program", fix: "Remove or rename it"},
	{name: "program that does not start", plant: func(f *fixture) { f.first("#!/no/shell\n", 0o755) },
		level: Error, subject: "PATH", message: "does not start", fix: "Install it again"},
	{name: "older program first", plant: func(f *fixture) { f.first(program("v0.9.0"), 0o755) },
		level: Warning, subject: "PATH", message: "is version v0.9.0, and this is version v1.2.3", fix: "Update it"},
	{name: "older program second", plant: func(f *fixture) {
		dir := f.TempDir()
		f.write(filepath.Join(dir, "knowhow"), program("v0.9.0"), 0o755)
		f.env["PATH"] += ":" + dir
	}, level: Warning, subject: "PATH", message: "a second knowhow", fix: "Remove it"},
	{name: "not executable", plant: func(f *fixture) { f.first(program("v1.2.3"), 0o644) },
		level: Warning, subject: "PATH", message: "cannot be executed", fix: "chmod +x"},
	{name: "go run", plant: func(f *fixture) {
		f.Executable = filepath.Join(f.TempDir(), "go-build1", "knowhow")
		f.write(f.Executable, program("v1.2.3"), 0o755)
	}, level: Warning, subject: "program", message: "temporary", fix: "Install the program"},
	{name: "program in quarantine",
		plant: func(f *fixture) { f.machine.quarantined = func(string) bool { return true } },
		level: Warning, subject: "program", message: "macOS", fix: "xattr -d"},
	{name: "few watches", plant: func(f *fixture) { f.machine.watches = func() int { return 128 } },
		level: Warning, subject: "environment", message: "only 128", fix: "sysctl"},
	{name: "transport stdio", plant: func(f *fixture) { f.env["KNOWHOW_TRANSPORT"] = "stdio" },
		level: Warning, subject: "environment", message: "KNOWHOW_TRANSPORT is stdio", fix: "Unset it"},
	{name: "transport unknown", plant: func(f *fixture) { f.env["KNOWHOW_TRANSPORT"] = "sse\x1b[2J" },
		level: Error, subject: "environment", message: "KNOWHOW_TRANSPORT is", fix: "http or stdio"},
	{name: "no home folder", plant: func(f *fixture) { f.Home, f.Data = "", "" },
		level: Error, subject: "data folder", message: "not known", fix: "Set HOME"},
	{name: "token with blanks", plant: func(f *fixture) { f.Token = "a b " + secretWord + " very long" },
		level: Error, subject: "token", message: "contains blanks", fix: "openssl rand"},
	{name: "short token", plant: func(f *fixture) { f.Token = secretWord },
		level: Warning, subject: "token", message: "fewer than 16", fix: "openssl rand"},
	{name: "proxy for this machine", plant: func(f *fixture) {
		f.env["HTTP_PROXY"], f.env["NO_PROXY"] = "http://me:"+secretWord+"@proxy:3128", "example.com"
	}, level: Warning, subject: "proxy", message: "HTTP_PROXY is set", fix: "NO_PROXY=localhost,127.0.0.1,::1"},
	{name: "two proxies for this machine", plant: func(f *fixture) {
		f.env["HTTP_PROXY"], f.env["HTTPS_PROXY"] = "http://proxy:3128", "http://proxy:3128"
	}, level: Warning, subject: "proxy", message: "HTTP_PROXY and HTTPS_PROXY are set", fix: "NO_PROXY="},
	{name: "proxy without host", plant: func(f *fixture) {
		f.env["https_proxy"], f.env["no_proxy"] = "http://", "localhost,127.0.0.1"
	}, level: Error, subject: "proxy", message: "https_proxy is not the URL", fix: "Set https_proxy"},
	{name: "no folder for temporary files", plant: func(f *fixture) {
		f.machine.writable = func(dir string) error {
			if dir == os.TempDir() {
				return syscall.EACCES
			}
			return nil
		}
	}, level: Error, subject: "environment", message: "temporary files", fix: "TMPDIR"},
}

// first puts a program before the others on the PATH.
func (f *fixture) first(text string, mode os.FileMode) {
	dir := f.TempDir()
	f.write(filepath.Join(dir, "knowhow"), text, mode)
	f.env["PATH"] = dir + ":" + f.env["PATH"]
}

var dataFaults = []planted{
	{name: "data folder is a file", plant: func(f *fixture) { f.write(f.Data, "", 0o600) },
		level: Error, subject: "data folder", message: "is a file", fix: "Move it away"},
	{name: "data folder leads nowhere", plant: func(f *fixture) { f.check(os.Symlink("/nowhere/at/all", f.Data)) },
		level: Error, subject: "data folder", message: "is a link", fix: "remove the link"},
	{name: "data folder below a file", plant: func(f *fixture) {
		f.Data = filepath.Join(f.docs, "leave.md", "data")
	}, level: Error, subject: "data folder", message: "cannot be read", fix: "--data"},
	{name: "data folder of another user", plant: func(f *fixture) {
		f.mkdir(f.Data)
		f.machine.writable = func(dir string) error {
			if dir == f.Data {
				return syscall.EACCES
			}
			return nil
		}
	}, level: Error, subject: "data folder", message: "permission denied", fix: "its owner"},
	{name: "read-only disk", plant: func(f *fixture) {
		f.machine.writable = func(dir string) error {
			if dir == f.Home {
				return syscall.EROFS
			}
			return nil
		}
	}, level: Error, subject: "data folder", message: "read-only file system", fix: "--data"},
	{name: "data folder for everyone", plant: func(f *fixture) { f.mkdir(f.Data); f.check(os.Chmod(f.Data, 0o755)) },
		level: Warning, subject: "data folder", message: "other users", fix: "chmod 700 ~/data", repaired: true},
	{name: "data folder without rights", plant: func(f *fixture) { f.mkdir(f.Data); f.check(os.Chmod(f.Data, 0o500)) },
		level: Error, subject: "data folder", message: "may not read and write", fix: "KNOWHOW_DATA, or type: chmod 700 ~/data",
		repaired: true},
	{name: "index without rights", plant: func(f *fixture) {
		f.handbook()
		f.check(os.Chmod(filepath.Join(f.Data, index.FileName), 0o400))
	}, level: Error, subject: "data folder", message: "knowhow.db", fix: "chmod u+rw ~/data/knowhow.db",
		repaired: true},
	{name: "full disk", plant: func(f *fixture) { f.disk(diskState{free: 1 << 20}) },
		level: Error, subject: "disk", message: "only 1.0 MB left", fix: "Free space"},
	{name: "scarce disk", plant: func(f *fixture) { f.disk(diskState{free: 200 << 20}) },
		level: Warning, subject: "disk", message: "only 209.7 MB left", fix: "Free space"},
	{name: "no more files", plant: func(f *fixture) { f.disk(diskState{free: 1 << 40, files: 3, limited: true}) },
		level: Error, subject: "disk", message: "3 more files", fix: "Remove files"},
	{name: "network file system", plant: func(f *fixture) { f.disk(diskState{free: 1 << 40, network: "NFS"}) },
		level: Warning, subject: "disk", message: "NFS", fix: "local disk"},
}

// disk plants the state of the disk.
func (f *fixture) disk(s diskState) {
	f.machine.disk = func(string) (diskState, error) { return s, nil }
}

var indexFaults = []planted{
	{name: "not an index", plant: func(f *fixture) {
		f.mkdir(f.Data)
		f.write(filepath.Join(f.Data, index.FileName), "a text of another program, which is long enough", 0o600)
	}, level: Error, subject: "index", message: "is not an index of knowhow", fix: "--data"},
	{name: "index of a newer version", plant: func(f *fixture) {
		f.handbook()
		f.change(60, binary.BigEndian.AppendUint32(nil, 1000)...)
	}, level: Error, subject: "index", message: "newer version", fix: "Update the program"},
	{name: "index of an older version", plant: func(f *fixture) {
		f.handbook()
		f.change(60, binary.BigEndian.AppendUint32(nil, 7)...)
	}, level: OK, subject: "index", message: "older version", fix: ""},
	{name: "index from before the first release", plant: func(f *fixture) {
		f.handbook()
		f.change(60, binary.BigEndian.AppendUint32(nil, 3)...)
	}, level: Error, subject: "index", message: "before the first release", fix: "--data"},
	{name: "damaged index", plant: func(f *fixture) {
		f.handbook()
		info, err := os.Stat(filepath.Join(f.Data, index.FileName))
		f.check(err)
		for at := int64(8192); at < info.Size(); at += 4096 {
			f.change(at, []byte(strings.Repeat("\xa5", 64))...)
		}
	}, level: Error, subject: "index", message: "damaged", fix: "copy ~/data"},
	{name: "damaged words", plant: func(f *fixture) {
		f.handbook()
		db, err := sql.Open("sqlite", filepath.Join(f.Data, index.FileName))
		f.check(err)
		_, err = db.Exec(`UPDATE segment_bodies SET body=zeroblob(length(body))`)
		f.check(err)
		f.check(db.Close())
	}, level: Warning, subject: "index", message: "the words of the label", fix: "Nothing is lost"},
	{name: "pipe in place of the index", plant: func(f *fixture) {
		f.mkdir(f.Data)
		f.check(syscall.Mkfifo(filepath.Join(f.Data, index.FileName), 0o600))
	}, level: Error, subject: "index", message: "a named pipe", fix: "--data"},
	{name: "lease of a process that has ended", plant: func(f *fixture) {
		f.handbook()
		x := f.open()
		_, err := x.Lease(f.Context(), "laptop-99999999-abcdefgh", time.Hour, "indexing:handbook")
		f.check(err)
		f.check(x.Close())
	}, level: Warning, subject: "processes", message: "process 99999999 has ended", fix: "knowhow doctor --fix",
		repaired: true},
	{name: "source that is gone", plant: func(f *fixture) { f.handbook(); f.check(os.RemoveAll(f.docs)) },
		level: Error, subject: "source handbook", message: "does not exist", fix: "knowhow sources rm handbook"},
	{name: "source without rights", plant: func(f *fixture) {
		f.handbook()
		f.check(os.Chmod(f.docs, 0))
		f.Cleanup(func() { os.Chmod(f.docs, 0o700) })
	}, level: Error, subject: "source handbook", message: "permission denied", fix: "chmod u+rX ~/handbook",
		needsUser: true},
	{name: "source that was not indexed", plant: func(f *fixture) {
		x := f.open()
		f.check(x.AddSource(f.Context(), document.Source{Label: "handbook", Path: f.docs}))
		f.check(x.Close())
	}, level: Warning, subject: "source handbook", message: "indexing has not begun", fix: "knowhow serve ~/handbook"},
	{name: "source that has changed", plant: func(f *fixture) {
		f.handbook()
		f.write(filepath.Join(f.docs, "leave.md"), "Forty days of leave, and more.", 0o644)
		f.check(os.Remove(filepath.Join(f.docs, "travel.md")))
	}, level: Warning, subject: "source handbook", message: "1 changed and 1 were removed",
		fix: "knowhow serve ~/handbook"},
	{name: "source without documents", plant: func(f *fixture) {
		empty := filepath.Join(f.Home, "empty folder")
		f.mkdir(empty)
		f.index(document.Source{Label: "empty", Path: empty})
	}, level: Warning, subject: "source empty", message: "no document", fix: "knowhow status --left-out --label empty"},
	{name: "damaged document", plant: func(f *fixture) {
		f.write(filepath.Join(f.docs, "broken.pdf"), "%PDF-1.7\nnothing", 0o644)
		f.handbook()
	}, level: Warning, subject: "source handbook", message: "1 file could not be read", fix: "--left-out"},
	{name: "site of which most pages fail", plant: func(f *fixture) {
		f.site(map[site.Reason]int{site.Answered(http.StatusForbidden): 7, site.Unanswered: 1, site.Answered(404): 9})
	}, level: Warning, subject: "source site",
		message: "did not send 8 of 9 pages (7 answered with status 403, 1 not answered by the server)",
		fix:     "--left-out --label site"},
	{name: "site with too many pages", plant: func(f *fixture) {
		f.site(map[site.Reason]int{site.OverLimit: 3})
	}, level: Warning, subject: "source site", message: "3 pages are over the maximum number of pages",
		fix: "knowhow serve --max-pages N https://docs.example.com/"},
	{name: "source inside another", plant: func(f *fixture) {
		f.write(filepath.Join(f.docs, "legal", "nda.md"), "Secrets stay here.", 0o644)
		f.index(document.Source{Label: "handbook", Path: f.docs},
			document.Source{Label: "legal", Path: filepath.Join(f.docs, "legal")})
	}, level: Warning, subject: "source legal", message: "inside the source handbook", fix: "knowhow sources rm LABEL"},
	{name: "home folder as a source", plant: func(f *fixture) { f.index(document.Source{Label: "home", Path: f.Home}) },
		level: Warning, subject: "source home", message: "home folder", fix: "Serve a smaller folder"},
	{name: "vectors are missing", plant: func(f *fixture) { f.handbook(); f.Model = fakeModel{} },
		level: Warning, subject: "vectors", message: "2 of 2 passages have none", fix: "knowhow serve"},
	{name: "folder that is not indexed", plant: func(f *fixture) { f.mkdir(f.Data); f.Folder = f.docs },
		level: Warning, subject: "source", message: "is not indexed", fix: "knowhow serve ~/handbook"},
	{name: "folder that does not exist", plant: func(f *fixture) { f.Folder = filepath.Join(f.Home, "missing") },
		level: Error, subject: "source", message: "missing", fix: "Check the spelling"},
	{name: "named folder that has changed", plant: func(f *fixture) {
		f.handbook()
		f.Folder = f.docs
		f.write(filepath.Join(f.docs, "leave.md"), "Forty days of leave, and more.", 0o644)
	}, level: Warning, subject: "source handbook", message: "1 changed", fix: "knowhow serve ~/handbook"},
}

// quietTLS starts a server with a certificate that is not trusted.
func quietTLS(f *fixture) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(http.NotFound))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	f.Cleanup(s.Close)
	return s
}

// A fakeModel is a model that fails.
type fakeModel struct{ embed.Embedder }

func (fakeModel) ID() string { return "fake" }

func (fakeModel) Embed(context.Context, []string, embed.Kind) ([][]float32, error) {
	return nil, fmt.Errorf("asking http://me:%s@models: %w", secretWord, errkind.Unavailable)
}

var serverFaults = []planted{
	{name: "port of another program", plant: func(f *fixture) {
		f.Addr = strings.TrimPrefix(f.serve(http.NotFound), "http://")
	}, level: Warning, subject: "port", message: "another program: process 7", fix: "--port"},
	{name: "server with another token", plant: func(f *fixture) {
		f.Token = secretWord + "-0123456789abcdef"
		f.Addr = strings.TrimSuffix(strings.TrimPrefix(f.mcp("0123456789abcdef-other"), "http://"), "/mcp")
	}, level: Error, subject: "server", message: "refuses the token", fix: "Use the token"},
	{name: "URL without token", plant: func(f *fixture) { f.URL = f.mcp("0123456789abcdef0") },
		level: Error, subject: "server", message: "requires a token", fix: "KNOWHOW_TOKEN"},
	{name: "URL with a token that no server accepts", plant: func(f *fixture) {
		f.URL, f.Token = f.mcp("0123456789abcdef0"), "a "+secretWord
	}, level: Error, subject: "token", message: "contains blanks", fix: "openssl rand"},
	{name: "URL of another host", plant: func(f *fixture) {
		f.URL = f.serve(func(w http.ResponseWriter, _ *http.Request) {
			mcpserver.Refuse(w, nil, httpguard.Refusal{Reason: httpguard.ForeignHost, Status: 403,
				Message: "the host is not allowed"})
		})
	}, level: Error, subject: "server", message: "status 403", fix: "--allow-host"},
	{name: "URL with a redirect", plant: func(f *fixture) {
		f.URL = f.serve(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://me:"+secretWord+"@sso.example.com/login?ticket="+secretWord, http.StatusFound)
		})
	}, level: Error, subject: "server", message: "redirects to https://sso.example.com/login", fix: "Use that address"},
	{name: "URL of a web page", plant: func(f *fixture) {
		f.URL = f.serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html><h1>Hello</h1>") })
	}, level: Error, subject: "server", message: "a web page answers", fix: "Check the host"},
	{name: "URL of another API", plant: func(f *fixture) {
		f.URL = f.serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"hello":"world"}`)
		})
	}, level: Error, subject: "server", message: "not MCP", fix: "/mcp"},
	{name: "URL without path", plant: func(f *fixture) { f.URL = strings.TrimSuffix(f.mcp(""), "/mcp") + "/sse" },
		level: Error, subject: "server", message: "not served at the path \"/sse\"", fix: "/mcp"},
	{name: "URL of a broken server", plant: func(f *fixture) {
		f.URL = f.serve(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "token "+f.Token, 500) })
		f.Token = secretWord + "-0123456789abcdef"
	}, level: Error, subject: "server", message: "status 500", fix: "log of the server"},
	{name: "URL where nothing listens", plant: func(f *fixture) { f.URL = "http://" + closedPort(f.T) + "/mcp" },
		level: Error, subject: "server", message: "nothing listens", fix: "knowhow serve"},
	{name: "URL without TLS", plant: func(f *fixture) { f.URL = strings.Replace(f.mcp(""), "http:", "https:", 1) },
		level: Error, subject: "server", message: "does not speak TLS", fix: "http://"},
	{name: "URL with TLS", plant: func(f *fixture) {
		s := quietTLS(f)
		f.URL = strings.Replace(s.URL, "https:", "http:", 1)
	}, level: Error, subject: "server", message: "speaks TLS", fix: "https://"},
	{name: "certificate that is not trusted", plant: func(f *fixture) {
		f.URL = quietTLS(f).URL
	}, level: Error, subject: "server", message: "is not trusted", fix: "certificate"},
	{name: "URL with a password", plant: func(f *fixture) {
		f.URL = strings.Replace(f.mcp(""), "//",
			"//me:"+secretWord+"@", 1)
	},
		level: Error, subject: "server", message: "contains a user or a password", fix: "Authorization"},
	{name: "URL of a file", plant: func(f *fixture) { f.URL = "ftp://example.com/mcp" },
		level: Error, subject: "server", message: "the scheme \"ftp\"", fix: "http://"},
	{name: "handshake that fails", plant: func(f *fixture) {
		f.URL = f.serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no \u001b]0;`+`way"}}`)
		})
	}, level: Error, subject: "server", message: "does not complete the handshake", fix: "log"},
}

var serviceFaults = []planted{
	{name: "model that cannot be opened",
		plant: func(f *fixture) { f.ModelErr = errors.New("there is no model in /models") },
		level: Error, subject: "model", message: "no model in /models", fix: "KNOWHOW_EMBEDDER"},
	{name: "service of vectors that fails", plant: func(f *fixture) { f.Model, f.Remote = fakeModel{}, true },
		level: Error, subject: "model", message: "http://***@models", fix: "Start it"},
	{name: "store that cannot be used", plant: func(f *fixture) { f.StoreErr = errors.New("no certificates") },
		level: Error, subject: "store", message: "no certificates", fix: "OPENSEARCH_CA_FILE"},
	{name: "store that is down", plant: func(f *fixture) {
		f.Store = &fakeStore{err: fmt.Errorf("the cluster does not answer: %w", errkind.Unavailable)}
	}, level: Error, subject: "store", message: "does not answer", fix: "KNOWHOW_STORE"},
	{name: "store that refuses the password", plant: func(f *fixture) {
		f.Store = &fakeStore{err: fmt.Errorf("refused: %w", errkind.Unauthorized)}
	}, level: Error, subject: "store", message: "refused", fix: "OPENSEARCH_PASSWORD"},
	{name: "red store", plant: func(f *fixture) {
		f.Store = &fakeStore{health: search.Health{Status: "red"}, vectors: true}
	}, level: Error, subject: "store", message: "red", fix: "nodes"},
	{name: "store without vectors", plant: func(f *fixture) {
		f.Store = &fakeStore{health: search.Health{Status: "green"}}
	}, level: Warning, subject: "store", message: "k-NN", fix: "opensearch-knn"},
	{name: "engine that is down", plant: func(f *fixture) { f.Engine = "http://" + closedPort(f.T) },
		level: Error, subject: "engine", message: "nothing listens", fix: "knowhow engine"},
	{name: "engine of another program", plant: func(f *fixture) { f.Engine = f.serve(http.NotFound) },
		level: Error, subject: "engine", message: "is not an engine", fix: "KB_ENGINE_URL"},
	{name: "configuration of Fess that is damaged", plant: func(f *fixture) {
		f.FessConfig = filepath.Join(f.Home, "fess.json")
		f.write(f.FessConfig,
			`{"fessBaseUrl": "http://localhost", "fessAuth": {"accessToken": "`+secretWord+` x"}, "domain": {}}`, 0o600)
	}, level: Error, subject: "Fess", message: "fess.json", fix: "Correct ~/fess.json"},
	{name: "unknown key for Fess", plant: func(f *fixture) { f.fess(f.Home, `"labelFilter":"finance","lable":"x"`) },
		level: Error, subject: "Fess", message: `unknown key "lable"`, fix: "Correct ~/fess.json"},
	{name: "label that Fess does not have", plant: func(f *fixture) { f.fess(f.Home, `"labelFilter":"finanze"`) },
		level: Warning, subject: "Fess", message: "finanze", fix: "domain.labelFilter"},
	{name: "Fess that is down", plant: func(f *fixture) {
		f.FessConfig = filepath.Join(f.Home, "fess.json")
		f.write(f.FessConfig,
			fmt.Sprintf(`{"fessBaseUrl": "http://%s", "domain": {"id":"a","name":"A","labelFilter":"a"}}`,
				closedPort(f.T)), 0o600)
	}, level: Error, subject: "Fess", message: "cannot be reached", fix: "Check that Fess runs"},
}

// fess starts a fake Fess server, and writes the configuration for it into a folder.
func (f *fixture) fess(dir, domain string) {
	server := fesstest.New(f.T, []document.Document{{ID: "1", Label: "finance", Title: "Budget", Text: "A budget."}},
		fesstest.Options{})
	f.FessConfig = filepath.Join(dir, "fess.json")
	f.write(f.FessConfig, fmt.Sprintf(`{"fessBaseUrl": %q, "domain": {"id":"finance","name":"Finance",%s}}`, server.URL,
		domain), 0o600)
}

// A fakeStore is a store with a state.
type fakeStore struct {
	err     error
	health  search.Health
	vectors bool
}

func (s *fakeStore) Open(context.Context) error                    { return s.err }
func (s *fakeStore) Health(context.Context) (search.Health, error) { return s.health, s.err }
func (s *fakeStore) HasVectors() bool                              { return s.vectors }

var clientFaults = []planted{
	{name: "client file that is damaged", plant: func(f *fixture) { f.client("cursor", "{\n\"mcpServers\": {\n,,}") },
		level: Error, subject: "Cursor", message: "line 3, column 1: invalid JSON", fix: "Correct the file"},
	{name: "client file that is damaged, TOML", plant: func(f *fixture) {
		f.client("codex",
			"[mcp_servers.a]\ntoken = "+secretWord+"\n\x1b")
	},
		level: Error, subject: "Codex", message: "invalid TOML", fix: "Correct the file"},
	{name: "client file that is damaged, YAML", plant: func(f *fixture) {
		f.client("goose",
			"extensions:\n  key: *"+secretWord+"\n\t- a: [")
	},
		level: Error, subject: "Goose", message: "invalid YAML", fix: "Correct the file"},
	{name: "client file that is not UTF-8", plant: func(f *fixture) { f.client("cursor", "\xff\xfe{") },
		level: Error, subject: "Cursor", message: "UTF-16", fix: "Correct the file"},
	{name: "huge client file", plant: func(f *fixture) {
		f.client("cursor", strings.Repeat(" ",
			configfile.MaxSize+1))
	},
		level: Error, subject: "Cursor", message: "larger than 4 MiB", fix: "Correct the file"},
	{name: "deep client file", plant: func(f *fixture) { f.client("cursor", strings.Repeat("[", configfile.MaxSize)) },
		level: Error, subject: "Cursor", message: "nested", fix: "Correct the file"},
	{name: "client file that is a folder", plant: func(f *fixture) {
		f.check(os.MkdirAll(filepath.Join(f.Home,
			".cursor", "mcp.json"), 0o700))
	},
		level: Error, subject: "Cursor", message: "not a file", fix: "Correct the file"},
	{name: "servers under another key", plant: func(f *fixture) {
		f.client("vscode", stdio(f.Executable, "mcp",
			f.docs))
	},
		level: Error, subject: "VS Code", message: `"mcpServers", but VS Code reads them from "servers"`,
		fix: "Rename the key"},
	{name: "command below a tilde", plant: func(f *fixture) {
		f.client("cursor", stdio("~/bin/knowhow", "mcp",
			f.docs))
	},
		level: Error, subject: `Cursor, "handbook"`, message: `"~"`, fix: "knowhow connect cursor"},
	{name: "command below $HOME", plant: func(f *fixture) {
		f.client("cursor", stdio("$HOME/bin/knowhow", "mcp",
			f.docs))
	},
		level: Error, subject: `Cursor, "handbook"`, message: "variables", fix: "knowhow connect cursor"},
	{name: "command that moved", plant: func(f *fixture) {
		f.client("cursor", stdio("/opt/old/knowhow", "mcp",
			f.docs))
	},
		level: Error, subject: `Cursor, "handbook"`, message: "/opt/old/knowhow, which does not exist",
		fix: "knowhow connect cursor"},
	{name: "command that is not executable", plant: func(f *fixture) {
		path := filepath.Join(f.Home, "knowhow")
		f.write(path, program("v1.2.3"), 0o644)
		f.client("cursor", stdio(path, "mcp", f.docs))
	}, level: Error, subject: `Cursor, "handbook"`, message: "cannot be executed", fix: "chmod +x ~/knowhow"},
	{name: "command without folder", plant: func(f *fixture) {
		f.client("claude-desktop", stdio("knowhow", "mcp",
			f.docs))
	},
		level: Warning, subject: `Claude Desktop, "handbook"`, message: "without its folder",
		fix: "knowhow connect claude-desktop"},
	{name: "command that is not on the PATH", plant: func(f *fixture) {
		f.client("claude-code", stdio("knowhow-fess"))
	}, level: Error, subject: `Claude Code, "handbook"`, message: "not on the PATH",
		fix: "knowhow connect claude-code"},
	{name: "relative command", plant: func(f *fixture) { f.client("cursor", stdio("./bin/knowhow", "mcp", f.docs)) },
		level: Error, subject: `Cursor, "handbook"`, message: "depends on the folder", fix: "knowhow connect cursor"},
	{name: "command of another version", plant: func(f *fixture) {
		path := filepath.Join(f.Home, "old", "knowhow")
		f.write(path, program("v0.9.0"), 0o755)
		f.client("cursor", stdio(path, "mcp", f.docs))
	}, level: Warning, subject: `Cursor, "handbook"`, message: "of version v0.9.0", fix: "knowhow connect cursor"},
	{name: "command that is another program", plant: func(f *fixture) {
		path := filepath.Join(f.Home, "other", "knowhow")
		f.write(path, "#!/bin/sh\n", 0o755)
		f.client("cursor", stdio(path, "mcp", f.docs))
	}, level: Error, subject: `Cursor, "handbook"`, message: "is another program", fix: "knowhow connect cursor"},
	{name: "old name", plant: func(f *fixture) {
		f.client("cursor", stdio(f.Executable, "serve", "--transport", "stdio", f.docs))
	}, level: Warning, subject: `Cursor, "handbook"`, message: "serve --transport stdio", fix: `"mcp"`},
	{name: "flag that was removed", plant: func(f *fixture) {
		f.client("gemini", stdio(f.Executable, "serve",
			f.docs))
	},
		level: Error, subject: `Gemini CLI, "handbook"`, message: "listens for HTTP", fix: `"mcp"`},
	{name: "command that is no server", plant: func(f *fixture) {
		f.client("gemini", stdio(f.Executable, "search",
			"leave"))
	},
		level: Error, subject: `Gemini CLI, "handbook"`, message: "does not answer the client",
		fix: "knowhow connect gemini"},
	{name: "wrong flag", plant: func(f *fixture) { f.client("gemini", stdio(f.Executable, "mcp", "--fodler", f.docs)) },
		level: Error, subject: `Gemini CLI, "handbook"`, message: "unknown flag --fodler",
		fix: "knowhow connect gemini"},
	{name: "folder of a client that is gone", plant: func(f *fixture) {
		f.client("cursor", stdio(f.Executable, "mcp", filepath.Join(f.Home, "old handbook")))
	}, level: Error, subject: `Cursor, "handbook"`, message: "~/old handbook, which does not exist",
		fix: "Put the folder back"},
	{name: "folder below $HOME", plant: func(f *fixture) {
		f.client("cursor", stdio(f.Executable, "mcp",
			"$HOME/handbook"))
	},
		level: Error, subject: `Cursor, "handbook"`, message: "variables", fix: "knowhow connect cursor"},
	{name: "relative folder of datasets", plant: func(f *fixture) {
		f.client("cursor", stdio(f.Executable, "mcp", "datasets:handbook"))
	}, level: Warning, subject: `Cursor, "handbook"`, message: "depends on the folder", fix: "whole path"},
	{name: "relative folder", plant: func(f *fixture) { f.client("cursor", stdio(f.Executable, "mcp", "handbook")) },
		level: Warning, subject: `Cursor, "handbook"`, message: "depends on the folder", fix: "whole path"},
	{name: "old program and old name", plant: func(f *fixture) {
		f.client("cursor", stdio("/opt/old/knowhow", "serve", "--transport", "stdio", f.docs))
	}, level: Error, subject: `Cursor, "handbook"`, message: "/opt/old/knowhow, which does not exist",
		fix: "knowhow connect", repaired: true},
	{name: "bridge that moved", plant: func(f *fixture) {
		f.client("cursor", strings.Replace(stdio("/opt/knowhow/mcp-fess", "--x"), `"--x"`, "", 1))
	}, level: Error, subject: `Cursor, "handbook"`, message: "/opt/knowhow/mcp-fess, which does not exist",
		fix: "knowhow connect", repaired: true},
	{name: "one server twice", plant: func(f *fixture) {
		f.client("cursor", stdio(f.Executable, "mcp", f.docs))
		f.write(filepath.Join(f.Dir, ".cursor", "mcp.json"), stdio(f.Executable, "mcp", f.docs), 0o644)
	}, level: Warning, subject: "Cursor", message: "one server twice", fix: "--remove --name handbook"},
	{name: "token in a project", plant: func(f *fixture) {
		url := f.mcp(secretWord + "-0123456789")
		f.write(filepath.Join(f.Dir, ".cursor", "mcp.json"),
			fmt.Sprintf(`{"mcpServers":{"knowhow":{"url":%q,"headers":{"Authorization":"Bearer %s-0123456789"}}}}`, url,
				secretWord), 0o644)
	}, level: Warning, subject: `Cursor, "knowhow"`, message: "contains a token, and files of a project",
		fix: "--token-env"},
	{name: "token that others can read", plant: func(f *fixture) {
		path := f.client("cursor",
			fmt.Sprintf(`{"mcpServers":{"handbook":{"command":%q,"args":["mcp",%q],"env":{"KB_API_KEY":%q}}}}`,
				f.Executable, f.docs, secretWord+"-key"))
		f.check(os.Chmod(path, 0o644))
	}, level: Warning, subject: `Cursor, "handbook"`, message: "other users of this machine may read it",
		fix: "chmod 600 ~/.cursor/mcp.json"},
	{name: "URL for Claude Desktop", plant: func(f *fixture) {
		f.client("claude-desktop", fmt.Sprintf(`{"mcpServers":{"knowhow":{"url":%q}}}`, f.mcp("")))
	}, level: Error, subject: `Claude Desktop, "knowhow"`, message: "does not connect to a URL",
		fix: "knowhow connect claude-desktop FOLDER"},
	{name: "URL under another key", plant: func(f *fixture) {
		f.client("windsurf", fmt.Sprintf(`{"mcpServers":{"knowhow":{"url":%q}}}`, f.mcp("")))
	}, level: Error, subject: `Windsurf, "knowhow"`, message: `"serverUrl"`, fix: "knowhow connect windsurf --url"},
	{name: "stale URL", plant: func(f *fixture) {
		f.client("cursor", fmt.Sprintf(`{"mcpServers":{"docs":{"url":"http://%s/mcp"}}}`, f.Addr))
	}, level: Error, subject: `Cursor, "docs"`, message: "nothing listens", fix: "knowhow serve"},
	{name: "client with a wrong token", plant: func(f *fixture) {
		f.client("cursor",
			fmt.Sprintf(`{"mcpServers":{"docs":{"url":%q,"headers":{"Authorization":"Bearer %s-wrong"}}}}`,
				f.mcp("0123456789abcdef"), secretWord))
	}, level: Error, subject: `Cursor, "docs"`, message: "refuses the token", fix: "Use the token"},
	{name: "entry of one project", plant: func(f *fixture) {
		f.client("claude-code",
			fmt.Sprintf(`{"projects":{%q:{"mcpServers":{"handbook":{"command":"/opt/old/knowhow","args":["mcp"]}}}}}`,
				f.Dir))
	}, level: Error, subject: `Claude Code, "handbook"`, message: "does not exist", fix: "knowhow connect claude-code"},
	{name: "client that is not installed", plant: func(f *fixture) { f.Client, _ = clients.Find("zed") },
		level: Warning, subject: "Zed", message: "not seem to be installed", fix: "knowhow connect zed"},
	{name: "client that is not connected", plant: func(f *fixture) {
		f.client("zed", "{}")
		f.Client,
			_ = clients.Find("zed")
	},
		level: Warning, subject: "Zed", message: "is not connected", fix: "knowhow connect zed FOLDER"},
	{name: "hostile entry", plant: func(f *fixture) {
		f.client("cursor",
			`{"mcpServers":{"know\u001b]0;owned\u0007\u202ehow":{"command":"/opt/\u001b[2J\n\u202e/knowhow","args":["mcp","`+
				strings.Repeat("a", 1<<20)+`"]}}}`)
	}, level: Error, subject: `Cursor, "know\x1b]0;owned\a\u202ehow"`, message: "does not exist",
		fix: "knowhow connect cursor"},
}
