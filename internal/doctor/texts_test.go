package doctor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/clients"
)

// testExaminer returns an examiner of a user with the home folder /home/me.
func testExaminer(variables map[string]string) *examiner {
	lookup := func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
	return &examiner{Options: Options{Program: "knowhow",
		System: clients.System{GOOS: "linux", Home: "/home/me", Lookup: lookup}}, secrets: map[string]bool{}}
}

func TestPublish(t *testing.T) {
	e := testExaminer(nil)
	e.secret("Bearer hunter2-hunter2", "hunter2", "abc", "token", "Bearer TOKEN")
	for _, tc := range []struct{ text, want string }{
		{"/home/me/a and /home/me", "~/a and ~"},
		{"/home/me2/a, /home/me.old, /x/home/me/a", "/home/me2/a, /home/me.old, /x/home/me/a"},
		{`"/home/me/a b"`, `"~/a b"`},
		{"the token hunter2-hunter2, Bearer hunter2-hunter2, hunter2", "the token ***, ***, ***"},
		{"abc is too short", "abc is too short"},
		{"https://me:pass@host/x and ftp://me@host", "https://***@host/x and ftp://***@host"},
		{"mail me@example.com", "mail me@example.com"},
		{"refuses the token: a bearer TOKEN is required", "refuses the token: a bearer TOKEN is required"},
		{"a\x1b[2J\r\nb\u202ec", `a\x1b[2J b\u202ec`},
	} {
		if got := e.publish(tc.text); got != tc.want {
			t.Errorf("publish(%q) = %q, want %q", tc.text, got, tc.want)
		}
	}
	if got := e.foreign(strings.Repeat("x", maxInput-3) + "hunter2"); len(got) > 4*maxForeign || strings.Contains(got,
		"hun") {
		t.Errorf("foreign of a long text = %q", got)
	}
}

func FuzzPublish(f *testing.F) {
	f.Add("/home/me/x", "hunter2")
	f.Add("https://a:b@c\x00\u2028", "a:b@")
	f.Fuzz(func(t *testing.T, text, secret string) {
		e := testExaminer(nil)
		e.secret(secret)
		got := e.publish(text)
		if strings.IndexFunc(got, unicode.IsControl) >= 0 || len(got) > 16*maxText {
			t.Errorf("publish(%q) = %q", text, got)
		}
		if got := e.foreign(text); strings.IndexFunc(got, unicode.IsControl) >= 0 || len(got) > 4*maxForeign {
			t.Errorf("foreign(%q) = %q", text, got)
		}
	})
}

func TestWord(t *testing.T) {
	e := testExaminer(nil)
	for path, want := range map[string]string{
		"/a/b":              "/a/b",
		"/a b":              "'/a b'",
		"/home/me/a b":      "~/'a b'",
		"/home/me/it's":     `~/'it'\''s'`,
		"/home/me/handbook": "~/handbook",
		"/a/$(reboot)":      "'/a/$(reboot)'",
	} {
		if got := e.word(path); got != want {
			t.Errorf("word(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestExempt(t *testing.T) {
	for none, want := range map[string]bool{"": false, "*": true, "localhost,127.0.0.1": true, "a, 127.0.0.0/8": true,
		"127.0.0.2": false, ".127.0.0.1": true} {
		if got := exempt(none, "127.0.0.1"); got != want {
			t.Errorf("exempt(%q) = %t", none, got)
		}
	}
}

func TestBuilds(t *testing.T) {
	for _, tc := range []struct {
		out  string
		want Build
		ok   bool
	}{
		{"knowhow v1.0.0\ncommit 0123456789abcdef0123 (modified)\ngo1.26 linux/amd64\n",
			Build{"v1.0.0", "0123456789abcdef0123"}, true},
		{"knowhow devel\ncommit unknown: go run\n", Build{Version: "devel"}, true},
		{"knowhow is a verb\n", Build{}, false}, {"", Build{}, false}, {"hello\n", Build{}, false},
	} {
		got, err := parseVersion("knowhow", tc.out)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("parseVersion(%q) = %+v, %v", tc.out, got, err)
		}
	}
	a := Build{"v1", "0123456789abcdef"}
	for _, tc := range []struct {
		b    Build
		want bool
	}{{Build{"v1", "0123456789ab"}, true}, {Build{"v1", ""}, true}, {Build{"v1", "ffff456789abcdef"}, false},
		{Build{"v2", ""}, false}} {
		if a.same(tc.b) != tc.want {
			t.Errorf("%v.same(%v) = %t", a, tc.b, !tc.want)
		}
	}
}

// TestHangs checks that a check that does not end is reported.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		start := time.Now()
		found := within(t.Context(), check{"disk", func(context.Context) []Finding { <-release; return nil }},
			10*time.Second)
		if len(found) != 1 || found[0].Level != Error || found[0].Subject != "disk" ||
			time.Since(start) != 15*time.Second {
			t.Errorf("after %v: %s", time.Since(start), show(found))
		}
		close(release)
	})
}

// show returns findings on lines of their own.
func show(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "\n%-8s %s: %s | %s", f.Level, f.Subject, f.Message, f.Fix)
	}
	return b.String()
}

// TestDisk checks that a file system without a disk is not reported as full.
func TestDisk(t *testing.T) {
	if s, err := disk(t.TempDir()); err != nil || s.free == 0 {
		t.Errorf("disk of a folder for temporary files = %+v, %v", s, err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if s, err := disk("/proc"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("disk of /proc = %+v, %v, want an error", s, err)
	}
}

// TestLearnEntry checks which texts of an entry are secrets.
func TestLearnEntry(t *testing.T) {
	e := testExaminer(nil)
	e.learnEntry(newEntry("docs", map[string]any{"command": "npx", "args": []any{"mcp-remote", "http://h/mcp?key=hunter1",
		"--header", "Authorization: Bearer hunter2", "--header", "X-Auth: ${HUNTER}", "--token=hunter3",
		"--password", "hunter4"}}))
	for _, want := range []string{"hunter1", "hunter2", "hunter3", "hunter4"} {
		if !e.secrets[want] {
			t.Errorf("the secrets are %v, want %q among them", e.secrets, want)
		}
	}
	if e.secrets["${HUNTER}"] {
		t.Error("the name of a variable is a secret")
	}
}
