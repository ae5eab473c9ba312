package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// parseLine reads a line as slog's text form, with groups as dots.
func parseLine(line string) (map[string]any, error) {
	pair := regexp.MustCompile(`^("(?:[^"\\]|\\.)*"|[^ "=]+)=("(?:[^"\\]|\\.)*"|[^ "]*) ?`)
	all := map[string]any{}
	for line != "" {
		m := pair.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("cannot parse %q", line)
		}
		line = line[len(m[0]):]
		key, value := m[1], m[2]
		if s, err := strconv.Unquote(value); err == nil {
			value = s
		}
		into := all
		for {
			group, rest, ok := strings.Cut(key, ".")
			if !ok {
				break
			}
			if into[group] == nil {
				into[group] = map[string]any{}
			}
			into, key = into[group].(map[string]any), rest
		}
		into[key] = value
	}
	return all, nil
}

func TestHandler(t *testing.T) {
	for _, debug := range []bool{false, true} {
		dir := t.TempDir()
		l := Open(Options{Dir: dir, Debug: debug})
		defer l.Close()
		err := slogtest.TestHandler(l.Handler(), func() []map[string]any {
			var all []map[string]any
			for _, line := range readLines(t, l.path) {
				if debug {
					if !regexp.MustCompile(`^\[00:00:\d\d\] `).MatchString(line) {
						t.Errorf("line %q does not begin with the elapsed time", line)
					}
					line = line[len("[00:00:00] "):]
				}
				m, err := parseLine(line)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, m)
			}
			return all
		})
		if err != nil {
			t.Errorf("debug %v: %v", debug, err)
		}
	}
}

func TestLines(t *testing.T) {
	dir := t.TempDir()
	l := Open(Options{Dir: dir, Level: slog.LevelInfo,
		Secrets: []string{"hunter2", "abc", `p"q&r s`, "hunter2-longer"}})
	l.Debug("not logged")
	l.Info("two\nlines\x1b[31m", "a", 1)
	l.Warn("hunter2 stays hidden", "error", errors.New("GET /?t=hunter2: no"), "other", "abc")
	l.Error("secret keys", "accessToken", "x1", "Authorization", "x2", slog.Group("password", "value", "x3"), "plain",
		"x4")
	l.Info(`p"q&r s`, "url", "http://h/?p%22q%26r+s")
	l.Info("hunter2-longer")
	l.Info(strings.Repeat("ä", longestLine))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	stamp := regexp.MustCompile(`^time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d) `)
	var got []string
	for _, line := range readLines(t, filepath.Join(dir, fileName)) {
		if !stamp.MatchString(line) {
			t.Errorf("line %.100q does not begin with the time", line)
		}
		got = append(got, stamp.ReplaceAllString(line, ""))
	}
	if last := got[len(got)-1]; len(last) > longestLine || !strings.HasSuffix(last, "ä… [cut]") {
		t.Errorf("a long line has %d bytes and ends with %q, want at most %d and a notice", len(last),
			last[len(last)-20:], longestLine)
	}
	want := []string{
		`level=INFO msg="two\nlines\x1b[31m" a=1`,
		`level=WARN msg="[redacted] stays hidden" error="GET /?t=[redacted]: no" other=abc`,
		`level=ERROR msg="secret keys" accessToken=[redacted] Authorization=[redacted] password.value=[redacted] plain=x4`,
		`level=INFO msg="[redacted]" url=http://h/?[redacted]`,
		`level=INFO msg=[redacted]`,
	}
	if diff := cmp.Diff(want, got[:len(got)-1]); diff != "" {
		t.Errorf("lines differ (-want +got):\n%s", diff)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	dir := filepath.Join(t.TempDir(), "a", "log")
	l := Open(Options{Dir: dir})
	l.Info("x")
	l.Close()
	for path, want := range map[string]os.FileMode{dir: 0o700, l.path: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s = %o, want %o", path, got, want)
		}
	}
}

func TestFallback(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	l := Open(Options{Dir: filepath.Join(file, "log"), Debug: true, RetainDays: 1, Secrets: []string{"hunter2"},
		Hint: "try another", Fallback: &out})
	l.Info("after", "x", "hunter2")
	if l.path != "" {
		t.Errorf("path = %q, want none", l.path)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "; try another") ||
		!strings.HasSuffix(lines[1], "msg=after x=[redacted]") {
		t.Errorf("fallback got %q, want a warning and the line", lines)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "[0") {
			t.Errorf("fallback got %q, want the elapsed time first", line)
		}
	}
}

// TestNoFolder checks the lines of a log without a folder.
func TestNoFolder(t *testing.T) {
	for debug, want := range map[bool]string{true: "[00:01:01] time=", false: "time="} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			l := Open(Options{Debug: debug, Fallback: &out})
			time.Sleep(61 * time.Second) // virtual
			l.Info("after")
			l.Close()
			if got := out.String(); !strings.HasPrefix(got, want) {
				t.Errorf("with Debug %v the line is %q, want %q first", debug, got, want)
			}
		})
	}
}

// TestFallbackLater takes the folder away while the log is open, and closes
// it: lines are not lost.
func TestFallbackLater(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a folder with an open file cannot be removed")
	}
	dir := filepath.Join(t.TempDir(), "log")
	var out bytes.Buffer
	l := Open(Options{Dir: dir, Fallback: &out})
	l.Info("one")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l.Info("two")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Info("three")
	l.Close()
	l.Info("four")
	l.Close()
	if got := messages(strings.Split(strings.TrimSpace(out.String()), "\n")); !slices.Equal(got,
		[]string{"two", "four"}) {
		t.Errorf("fallback got %q, want two and four", got)
	}
	if got := messages(readLines(t, l.path)); !slices.Equal(got, []string{"three"}) {
		t.Errorf("file has %q, want three", got)
	}
}

func TestDebugNames(t *testing.T) {
	dir := t.TempDir()
	start := time.Date(2026, 11, 21, 23, 59, 1, 0, time.Local)
	for _, want := range []string{"2026-11-21_23-59-01_server.log", "2026-11-21_23-59-01-2_server.log",
		"2026-11-21_23-59-01-3_server.log"} {
		got, err := createDebugFile(dir, start)
		if err != nil || filepath.Base(got) != want {
			t.Errorf("createDebugFile = %q, %v, want %q", got, err, want)
		}
		if !ours.MatchString(want) {
			t.Errorf("%q is not seen as ours", want)
		}
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                               "[00:00:00] ",
		59*time.Second + 999999999:      "[00:00:59] ",
		time.Hour + 2*time.Minute + 3e9: "[01:02:03] ",
		123*time.Hour + 59*time.Minute:  "[123:59:00] ",
	} {
		if got := string(elapsed(d)); got != want {
			t.Errorf("elapsed(%v) = %q, want %q", d, got, want)
		}
	}
}

// logs returns the sorted names in dir, without the lock.
func logs(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != fileName+".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

// messages returns the msg of each line.
func messages(lines []string) []string {
	var all []string
	for _, line := range lines {
		if m, err := parseLine(line); err == nil {
			all = append(all, m["msg"].(string))
		}
	}
	return all
}

// readLines returns the lines of a file.
func readLines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) == 0 {
		return nil
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		t.Errorf("%s does not end with a line end", path)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func BenchmarkInfo(b *testing.B) {
	l := Open(Options{Dir: b.TempDir(), Secrets: []string{"hunter2", "another secret"}})
	defer l.Close()
	for b.Loop() {
		l.Info("tool called", "tool", "fess_finance_search", "ms", 12, "hits", 20)
	}
}
