package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// testInvocation returns an invocation with its stderr.
func testInvocation(env map[string]string) (*invocation, *bytes.Buffer) {
	var stderr bytes.Buffer
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	return &invocation{
		Env: Env{Program: "knowhow", Lookup: lookup}, name: "knowhow test",
		stdin: strings.NewReader(""), stdout: io.Discard, stderr: &stderr,
	}, &stderr
}

func TestParse(t *testing.T) {
	tests := []struct {
		args string
		want string // flags and operands as they come, or the error
	}{
		{"", ""},
		{"a b", "a b"},
		{"--name=x", "name=x"},
		{"--name x", "name=x"},
		{"-name x", "name=x"},
		{"--name -x", "name=-x"},
		{"--name --", "name=--"},
		{"--name=", "name="},
		{"--name=a=b", "name=a=b"},
		{"a --name x b --name y c", "a name=x b name=y c"},
		{"--on a", "a on"},
		{"--on=true --on=false a", "a"},
		{"- a", "- a"},
		{"a -- --name x -- --on", "a --name x -- --on"},
		{"a --help --nope", "error: help requested"},
		{"a -h", "error: help requested"},
		{"a --nam x", `error: unknown flag --nam / Did you mean --name? Run "knowhow test --help" for usage.`},
		{"--name", `error: flag --name needs a value / Run "knowhow test --help" for usage.`},
		{"--on=x", `error: flag --on: got "x", want true or false / Run "knowhow test --help" for usage.`},
		{"--api-token hünter2", `error: flag --api-token: want visible ASCII characters without blanks; leave it out to use no token / Run "knowhow test --help" for usage.`},
		{"refused", "error: refused"},
	}
	for _, tt := range tests {
		v, _ := testInvocation(nil)
		o := &testCommand{}
		o.Name.seen = &o.seen
		err := newFlagSet(v, o).parse(strings.Fields(tt.args))
		if o.On {
			o.seen = append(o.seen, "on")
		}
		text := strings.Join(o.seen, " ")
		if err != nil {
			text = "error: " + err.Error()
			if usage, ok := errors.AsType[*hintError](err); ok {
				text += " / " + usage.hint
			}
		}
		if text != tt.want {
			t.Errorf("parse(%q) = %q, want %q", tt.args, text, tt.want)
		}
	}
}

// A testCommand records its flags and operands as they come.
type testCommand struct {
	Name  testName `flag:"name" value:"NAME"`
	Token token    `flag:"api-token" value:"TOKEN"`
	On    bool     `flag:"on"`

	seen []string
}

func (o *testCommand) operand(_ *invocation, arg string) error {
	if arg == "refused" {
		return errors.New("refused")
	}
	o.seen = append(o.seen, arg)
	return nil
}

type testName struct{ seen *[]string }

func (n *testName) set(s string) error {
	*n.seen = append(*n.seen, "name="+s)
	return nil
}

// TestOtherNames checks the order in which the names of a flag and its variables
// count.
func TestOtherNames(t *testing.T) {
	for _, tt := range []struct {
		args string
		env  map[string]string
		want string
	}{
		{"--key a", nil, "a"}, {"--token b", nil, "b"}, {"--token=b", map[string]string{"OWN": "c", "SHARED": "d"},
			"b"},
		{"", map[string]string{"OWN": "c", "SHARED": "d"}, "c"}, {"", map[string]string{"OWN": "", "SHARED": "d"}, "d"},
		{"", map[string]string{"SHARED": "a b"}, "SHARED: want visible ASCII characters without blanks; unset it to use no token"},
		{"--token=", nil, "flag --token: want visible ASCII characters without blanks; leave it out to use no token"},
	} {
		v, _ := testInvocation(tt.env)
		var o struct {
			Key token `flag:"key,token" value:"KEY" env:"OWN,SHARED"`
		}
		err := newFlagSet(v, &o).parse(strings.Fields(tt.args))
		got := string(o.Key)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q with %v = %q, want %q", tt.args, tt.env, got, tt.want)
		}
	}
}

// TestHomeInPaths checks what "~" stands for.
func TestHomeInPaths(t *testing.T) {
	home := filepath.Join(t.TempDir(), "me")
	v, _ := testInvocation(map[string]string{"HOME": home})
	for path, want := range map[string]string{
		"~": home, "~/": home, "~/a b": filepath.Join(home, "a b"), "~you/a": "~you/a", "./~/a": "./~/a", "a~": "a~",
		"": "", "https://host/~/a": "https://host/~/a",
	} {
		if got := v.expand(path); got != want {
			t.Errorf("expand(%q) = %q, want %q", path, got, want)
		}
	}
	for source, want := range map[string]string{
		"~/a": filepath.Join(home, "a"), "file:~/a": "file:" + filepath.Join(home, "a"),
		"file://~/a": "file://" + filepath.Join(home, "a"), "fess:~/a": "fess:" + filepath.Join(home, "a"),
		"datasets:~": "datasets:" + home, "kb:~": "kb:~", "file:a": "file:a", "https://host/~/a": "https://host/~/a",
	} {
		if got := v.expandSource(source); got != want {
			t.Errorf("expandSource(%q) = %q, want %q", source, got, want)
		}
	}
	if got, err := dataPath(v.Env, "~/data"); err != nil || got != filepath.Join(home, "data") {
		t.Errorf("dataPath = %q, %v", got, err)
	}
	v, _ = testInvocation(nil)
	if got := v.expand("~/a"); got != "~/a" {
		t.Errorf("expand without a home folder = %q", got)
	}
}

// TestExitStatus checks what becomes of a command's error.
func TestExitStatus(t *testing.T) {
	sig := func(s os.Signal) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(SignalError{s})
		return ctx
	}
	tests := []struct {
		name   string // and the command, if it is "serve"
		ctx    context.Context
		err    error
		want   int
		stderr string
	}{
		{"success", t.Context(), nil, 0, ""},
		{"failure", t.Context(), errors.New("why"), 1, "knowhow test: why\n"},
		{"hint", t.Context(), fmt.Errorf("outer: %w", &hintError{errors.New("why"), "Do this."}), 1,
			"knowhow test: outer: why\nDo this.\n"},
		{"usage", t.Context(), fmt.Errorf("odd: %w", errkind.Usage), 2,
			"knowhow test: odd\nRun \"knowhow test --help\" for usage.\n"},
		{"interrupted in order", sig(os.Interrupt), nil, 130, ""},
		{"interrupted", sig(os.Interrupt), fmt.Errorf("reading: %w", context.Canceled), 130, ""},
		{"interrupted and failed", sig(os.Interrupt), errors.New("why"), 130, "knowhow test: why\n"},
		{"terminated in order", sig(syscall.SIGTERM), nil, 0, ""},
		{"terminated before the end", sig(syscall.SIGTERM), context.Canceled, 1, ""},
		{"serve", sig(syscall.SIGTERM), fmt.Errorf("opening: %w", context.Canceled), 0, ""},
		{"serve", sig(os.Interrupt), context.Canceled, 130, ""},
		{"serve", sig(syscall.SIGTERM), errors.New("why"), 1, "knowhow test: why\n"},
	}
	for _, tt := range tests {
		v, stderr := testInvocation(nil)
		v.command = tt.name
		if got := v.fail(tt.ctx, tt.err); got != tt.want || stderr.String() != tt.stderr {
			t.Errorf("%s: fail(%v) = %d with %q, want %d with %q", tt.name, tt.err, got, stderr, tt.want, tt.stderr)
		}
	}
}

// TestInputInterrupted checks that a command that reads its standard input ends
// with its context.
func TestInputInterrupted(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	v, _ := testInvocation(nil)
	v.stdin = r
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if text, err := v.noteText(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("noteText() = %q, %v, want context.Canceled", text, err)
	}
}

// TestFullStdout checks that a result that cannot be written is a failure.
func TestFullStdout(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"help"}, {"fess", "--help"}} {
		var stderr bytes.Buffer
		env := Env{Program: "knowhow", Lookup: func(string) (string, bool) { return "", false }}
		if got := Main(t.Context(), args, env, strings.NewReader(""), brokenWriter{}, &stderr); got != 1 {
			t.Errorf("Main(%q) = %d, want 1", args, got)
		}
		if !strings.HasSuffix(stderr.String(), ": broken\n") {
			t.Errorf("Main(%q) wrote %q, want the error", args, &stderr)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

// TestPrepare prints to os.Stdout and to what Prepare returned, in a process of
// its own, and looks at its garbage collector.
func TestPrepare(t *testing.T) {
	if os.Getenv("TEST_PREPARE") != "" {
		stdout := Prepare()
		fmt.Println("stray")
		fmt.Fprintln(stdout, "protocol", debug.SetGCPercent(100))
		os.Exit(0)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for gogc, want := range map[string]string{"": "protocol 400\n", "50": "protocol 50\n"} {
		cmd := exec.Command(exe, "-test.run", "^TestPrepare$")
		cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GOGC=") })
		cmd.Env = append(cmd.Env, "TEST_PREPARE=1")
		if gogc != "" {
			cmd.Env = append(cmd.Env, "GOGC="+gogc)
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(stdout) != want || !strings.Contains(stderr.String(), "stray") {
			t.Errorf("GOGC=%q: stdout %q, stderr %q, want stdout %q and the stray print on stderr", gogc, stdout,
				&stderr, want)
		}
	}
}

// TestMemoryLimit counts the garbage collections of a process that uses more
// memory than the limit, while it leaves 200 MiB of garbage.
func TestMemoryLimit(t *testing.T) {
	if os.Getenv("TEST_MEMORY_LIMIT") != "" {
		stdout := Prepare()
		used := make([]byte, 2*memoryLimit)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 3200 {
			sha256.Sum256(bytes.Repeat([]byte("x"), 64<<10))
		}
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(used)
		fmt.Fprint(stdout, after.NumGC-before.NumGC)
		os.Exit(0)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run", "^TestMemoryLimit$")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GOGC=") || strings.HasPrefix(s, "GOMEMLIMIT=") })
	cmd.Env = append(cmd.Env, "TEST_MEMORY_LIMIT=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(string(out)); err != nil || n > 20 {
		t.Errorf("%s collections, %v, want at most 20", out, err)
	}
}

// TestHelpTexts checks what every command's help must have.
func TestHelpTexts(t *testing.T) {
	v, _ := testInvocation(nil)
	for _, c := range v.commands() {
		text := commandHelp(c, v)
		for _, want := range []string{"Usage: knowhow " + c.name, "\nExample", "\n  knowhow " + c.name} {
			if !strings.Contains(text, want) {
				t.Errorf("help of %s lacks %q", c.name, want)
			}
		}
		if strings.Contains(text, "{cmd}") || !strings.HasSuffix(text, "\n") {
			t.Errorf("help of %s has a placeholder left or no line end: %s", c.name, text)
		}
		for _, line := range strings.Split(text, "\n") {
			if len(line) > helpWidth+20 {
				t.Errorf("help of %s has a line of %d bytes: %s", c.name, len(line), line)
			}
		}
	}
}

// TestEnvironment checks that a flag takes precedence over its variable, and
// the variable over the default.
func TestEnvironment(t *testing.T) {
	for _, tt := range []struct{ args, addr, token, want string }{
		{"", "", "", "localhost "},
		{"", "example.com", "s3cret", "example.com s3cret"},
		{"--addr here", "example.com", "", "here "},
		{"--addr=", "example.com", "", " "},
		{"--token x", "", "not valid", "localhost x"},
		{"", "a b", "", `error: ADDR: got "a b", want no blank`},
		{"", "", "not valid", "error: TOKEN: want visible ASCII characters without blanks; unset it to use no token"},
	} {
		v, _ := testInvocation(map[string]string{"ADDR": tt.addr, "TOKEN": tt.token})
		var o struct {
			Addr  testAddr `flag:"addr" value:"HOST" default:"localhost" env:"ADDR"`
			Token token    `flag:"token" value:"TOKEN" env:"TOKEN"`
		}
		err := newFlagSet(v, &o).parse(strings.Fields(tt.args))
		got := string(o.Addr) + " " + string(o.Token)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tt.want {
			t.Errorf("parse(%q) with ADDR=%q TOKEN=%q = %q, want %q", tt.args, tt.addr, tt.token, got, tt.want)
		}
	}
}

type testAddr string

func (a *testAddr) set(s string) error {
	if *a = testAddr(s); strings.Contains(s, " ") {
		return errors.New("want no blank")
	}
	return nil
}

// TestDeclarations checks what is declared about the flags of every command.
func TestDeclarations(t *testing.T) {
	v, _ := testInvocation(nil)
	for _, c := range v.commands() {
		f := newFlagSet(v, c.options)
		for _, d := range f.flags {
			if d.Default != "" && d.set(d.Default) != nil {
				t.Errorf("%s: %s does not accept its default %q", c.name, d, d.Default)
			}
			if d.Help == "" || strings.HasSuffix(d.Help, ".") || d.Name == "" && d.Env == "" {
				t.Errorf("%s: %s is declared with the name %q, the variable %q and the help %q", c.name, d, d.Name,
					d.Env, d.Help)
			}
			if d.Name != "" && f.find(d.Name) != d {
				t.Errorf("%s: %s is declared twice", c.name, d)
			}
		}
		if (len(f.flags) > 0) != strings.Contains(c.help, "\n{flags}\n\n") {
			t.Errorf("%s: the help text and the %d flags do not agree", c.name, len(f.flags))
		}
	}
}

func TestFindFessConfig(t *testing.T) {
	home := t.TempDir()
	v, _ := testInvocation(map[string]string{"HOME": home})
	_, err := v.findFessConfig()
	want := []string{filepath.Join(home, ".mcp-feiss", "config.json"), filepath.Join(home, "mcp-feiss", "config.json"),
		filepath.Join(home, ".mcp-fess", "config.json")}
	for _, path := range want {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("findFessConfig() = %v, want an error that names %s", err, path)
		}
	}
	var got []string
	for _, path := range slices.Backward(want) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := v.findFessConfig()
		if err != nil {
			t.Fatal(err)
		}
		got = append([]string{found}, got...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findFessConfig differs (-want +got):\n%s", diff)
	}
}

// TestSections checks that the overview has every command that is not listed
// elsewhere, once.
func TestSections(t *testing.T) {
	v, _ := testInvocation(nil)
	text := overview(v.Env)
	for _, c := range v.commands() {
		want := 1
		if c.summary == "" {
			want = 0
		}
		if n := strings.Count(text, "\n  "+c.name+" "); n != want {
			t.Errorf("the overview lists %s %d times, want %d", c.name, n, want)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > helpWidth {
			t.Errorf("the overview has a line of %d bytes: %s", len(line), line)
		}
	}
}
