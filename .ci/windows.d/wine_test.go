// Package windows drives the program for Windows with Wine. Script windows sets
// the environment variables that it needs.
package windows

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is the time that the program has for what it does at once.
const patience = time.Minute

var (
	wine    = os.Getenv("KNOWHOW_WINE")
	program = os.Getenv("KNOWHOW_WINDOWS_PROGRAM")
	drive   = filepath.Join(os.Getenv("WINEPREFIX"), "drive_c") // C:
)

// A profile is a folder in the home folder of the user of Windows, with the files of
// a test.
type profile struct {
	t    *testing.T
	home string   // in this system
	env  []string // of the programs
}

// newProfile makes a profile. Its path has a space and a character that is not ASCII.
func newProfile(t *testing.T) *profile {
	t.Helper()
	if wine == "" || program == "" {
		t.Fatal("run .ci/windows, which sets KNOWHOW_WINE and KNOWHOW_WINDOWS_PROGRAM")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Join(drive, "users", me.Username), "Test ")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := &profile{t: t, home: filepath.Join(dir, "Zoë")}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); name != "HOME" && !strings.HasPrefix(name, "XDG_") &&
			!strings.HasPrefix(name, "KNOWHOW_") {
			p.env = append(p.env, e)
		}
	}
	p.mkdir("")
	return p
}

// path returns the path of a file of the profile in this system.
func (p *profile) path(name string) string { return filepath.Join(p.home, filepath.FromSlash(name)) }

// win returns the path of a file of the profile in Windows.
func (p *profile) win(name string) string {
	rel, err := filepath.Rel(drive, p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return `C:\` + strings.ReplaceAll(rel, "/", `\`)
}

func (p *profile) mkdir(name string) {
	p.t.Helper()
	if err := os.MkdirAll(p.path(name), 0o700); err != nil {
		p.t.Fatal(err)
	}
}

func (p *profile) write(name, text string) {
	p.t.Helper()
	p.mkdir(filepath.Dir(name))
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// command returns a command line of the program, in the folder of the profile.
func (p *profile) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, wine, append([]string{program}, args...)...)
	cmd.Dir, cmd.Env = p.home, append(p.env, "KNOWHOW_DATA="+p.win("data"))
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// run runs the program to its end.
func (p *profile) run(args ...string) (status int, stdout, stderr string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	cmd := p.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		err = nil
	}
	if err != nil {
		p.t.Fatalf("%q: %v\n%s", args, err, errs.String())
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// output returns what a command prints that must succeed.
func (p *profile) output(args ...string) string {
	p.t.Helper()
	status, stdout, stderr := p.run(args...)
	if status != 0 {
		p.t.Fatalf("%q ended with status %d: %s", args, status, stderr)
	}
	return stdout
}

// A server is a running program.
type server struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended

	mu     sync.Mutex
	stderr strings.Builder
}

// start starts the program as a server, with the given pipes or none. It ends with
// the test.
func (p *profile) start(in io.Reader, out io.Writer, args ...string) *server {
	p.t.Helper()
	s := &server{cmd: p.command(context.Background(), args...), ended: make(chan struct{})}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = in, out, s
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // the state contains the result
	}()
	p.t.Cleanup(func() {
		s.kill()
		if p.t.Failed() {
			p.t.Logf("%q printed:\n%s", args, s.printed())
		}
	})
	return s
}

// Write implements io.Writer for the messages of the program.
func (s *server) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.Write(b)
}

// printed returns the messages so far.
func (s *server) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
}

// kill ends the program at once, as the task manager does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// status waits for the end of the program and returns its exit status.
func (s *server) status(t *testing.T) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatalf("the program did not end; it printed:\n%s", s.printed())
	}
	return s.cmd.ProcessState.ExitCode()
}

// address waits until the program serves, and returns the URL of its endpoint.
func (s *server) address(t *testing.T) string {
	t.Helper()
	var url string
	within(t, patience, "listening", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("the program ended with %s:\n%s", s.cmd.ProcessState, s.printed())
		default:
		}
		lines := bufio.NewScanner(strings.NewReader(s.printed()))
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				url = rest
			}
		}
		return url != ""
	})
	return url
}

// within waits until a condition is true.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within %v", what, limit)
		}
	}
}

// freePort returns a port that no program uses.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
