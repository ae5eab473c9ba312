package release

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slow limits how long a command may take on a busy machine.
const slow = 2 * time.Minute

// TestInstalled runs installed programs as a user does. .ci/packages installs them.
// KNOWHOW_INSTALLED has a command on each line, and KNOWHOW_VERSION their version.
func TestInstalled(t *testing.T) {
	commands, version := os.Getenv("KNOWHOW_INSTALLED"), os.Getenv("KNOWHOW_VERSION")
	if commands == "" {
		t.Skip("run .ci/packages")
	}
	if path, err := exec.LookPath("go"); err == nil {
		t.Fatalf("there is %s on the PATH", path)
	}
	for line := range strings.Lines(commands) {
		t.Run(strings.TrimSpace(line), func(t *testing.T) {
			p := newInstalled(t, strings.Fields(line))
			p.version(version)
			p.serve()
			p.commands()
			p.client()
			p.terminated()
		})
	}
}

// installed is a program with a folder of documents and a home folder.
type installed struct {
	*testing.T
	command []string
	docs    string
	env     []string
}

func newInstalled(t *testing.T, command []string) *installed {
	home := t.TempDir()
	p := &installed{t, command, filepath.Join(home, "handbook"), append(os.Environ(), "KNOWHOW_DATA="+home+"/data",
		"KB_DATA_DIR="+home+"/data")}
	err := write(p.docs, file{"payments.md", 0o644, []byte("# Payments\n\nSuppliers are paid on the fifteenth.\n")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start returns the command with arguments. If ctx ends, the program and what it
// started are killed.
func (p *installed) start(ctx context.Context, args ...string) *exec.Cmd {
	args = append(p.command[1:len(p.command):len(p.command)], args...)
	cmd := exec.CommandContext(ctx, p.command[0], args...)
	cmd.Env = p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// try runs the program to its end, and returns what it prints.
func (p *installed) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(p.Context(), slow)
	defer cancel()
	cmd := p.start(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%q: %w\n%s%s", args, err, out, stderr.Bytes())
	}
	return string(out), err
}

// run is try for a command that must succeed.
func (p *installed) run(args ...string) string {
	p.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.Fatal(err)
	}
	return out
}

// version checks what the program says about itself.
func (p *installed) version(want string) {
	var got struct{ Version, Commit, Date, Go, OS, Arch string }
	if err := json.Unmarshal([]byte(p.run("version", "--json")), &got); err != nil {
		p.Fatal(err)
	}
	if _, err := time.Parse(time.RFC3339, got.Date); got.Version != want || len(got.Commit) != 40 || err != nil {
		p.Errorf("version --json prints %+v, want version %s", got, want)
	}
	var exit *exec.ExitError
	if _, err := p.try("nonsense"); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		p.Errorf("a command that does not exist ends with %v, want status 2", err)
	}
}

// address matches the address that serve prints.
var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve serves the documents over HTTP until they are indexed.
func (p *installed) serve() {
	ctx, cancel := context.WithTimeout(p.Context(), slow)
	defer cancel()
	cmd := p.start(ctx, "serve", "--addr", "127.0.0.1:0", p.docs)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	url := ""
	lines := bufio.NewScanner(stderr)
	for url == "" && lines.Scan() {
		url = address.FindString(lines.Text())
	}
	if url == "" {
		p.Fatal("serve prints no address")
	}
	p.run("health", url)
	for ctx.Err() == nil {
		if _, err := p.try("search", "suppliers"); err == nil {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Error(err)
	}
	for lines.Scan() { // until the output is closed
	}
	if err := cmd.Wait(); !p.terminates(err) {
		p.Errorf("serve ends with %v after SIGTERM", err)
	}
}

// commands searches, reads and notes without a server.
func (p *installed) commands() {
	for _, tt := range []struct{ args, want string }{
		{"search when are suppliers paid", "payments.md"},
		{"read payments.md", "Suppliers are paid on the fifteenth."},
		{"sources", p.docs},
		{"note add --collection memory Users prefer concise answers.", ""},
		{"kb search concise", "Users prefer concise answers."},
		{"completion bash", "complete"},
		{"help --man serve", ".SH OPTIONS"},
	} {
		if out := p.run(strings.Fields(tt.args)...); !strings.Contains(out, tt.want) {
			p.Errorf("%s prints %q, want %q", tt.args, out, tt.want)
		}
	}
}

// A session is a client that started the program.
type session struct {
	*installed
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	stop  context.CancelFunc
}

// connect starts the program as a client does, and waits for its first answer.
func (p *installed) connect() *session {
	ctx, stop := context.WithTimeout(p.Context(), slow)
	s := &session{installed: p, cmd: p.start(ctx, "mcp", p.docs), stop: stop}
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		p.Fatal(err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	s.lines = bufio.NewScanner(stdout)
	s.lines.Buffer(nil, 1<<20)
	if err := s.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	init := s.call(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	if !strings.Contains(init, `"serverInfo"`) {
		p.Errorf("initialize returns %s", init)
	}
	fmt.Fprintln(s.stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// call sends a request and returns the answer.
func (s *session) call(id int, method, params string) string {
	fmt.Fprintf(s.stdin, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	for s.lines.Scan() {
		if line := s.lines.Text(); strings.Contains(line, fmt.Sprintf(`"id":%d`, id)) {
			return line
		}
	}
	s.Fatalf("%s is not answered: %v", method, s.lines.Err())
	return ""
}

// ended waits until the program ends, and checks that it has left no process.
func (s *session) ended() error {
	for s.lines.Scan() { // until every process that has the output has ended
	}
	err := s.cmd.Wait()
	s.stop()
	running, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range running {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte(s.docs)) {
			s.Errorf("%s still runs: %q", filepath.Dir(name), line)
		}
	}
	return err
}

// client searches, and ends by closing the input.
func (p *installed) client() {
	s := p.connect()
	got := s.call(2, "tools/call", `{"name":"handbook_search","arguments":{"query":"When are suppliers paid?"}}`)
	if !strings.Contains(got, "paid on the fifteenth") {
		p.Errorf("the search returns %s", got)
	}
	s.stdin.Close()
	if err := s.ended(); err != nil {
		p.Errorf("after the end of its input, the program ends with %v", err)
	}
}

// terminated ends the program with a signal while its input is open.
func (p *installed) terminated() {
	s := p.connect()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	if err := s.ended(); !p.terminates(err) {
		p.Errorf("after SIGTERM, the program ends with %v", err)
	}
}

// terminates reports whether err is that of a command that received SIGTERM. The
// program ends with status 0, but npx and uvx end by the signal or with its status.
func (p *installed) terminates(err error) bool {
	var exit *exec.ExitError
	if len(p.command) == 1 || !errors.As(err, &exit) {
		return err == nil
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	return status.Signal() == syscall.SIGTERM || exit.ExitCode() == 128+int(syscall.SIGTERM)
}
