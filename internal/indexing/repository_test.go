package indexing

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// gitIn returns a function that runs git in a new repository.
func gitIn(t *testing.T, dir string) func(args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no git on the PATH")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=Tester", "-c", "user.email=tester@example.com"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	return git
}

// A repository is followed: a commit, a forced push, and a branch that is deleted
// and comes back. All documents have the URL of the commit. Before the branch comes
// back, the documents of before remain.
func TestRepository(t *testing.T) {
	origin, dir := t.TempDir(), t.TempDir()
	git := gitIn(t, origin)
	commit := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(origin, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-q", "-m", name)
		return git("rev-parse", "HEAD")
	}
	one := commit("a.md", "one")
	path := "git+file://" + filepath.ToSlash(origin) + "#main"
	x := openIndex(t, dir)
	if err := x.AddSource(t.Context(), document.Source{Label: "docs", Path: path}); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := start(t, dir, false)
		check := func(step, commit string, paths ...string) {
			t.Helper()
			synctest.Wait()
			want := map[string]string{}
			for _, name := range paths {
				want[name] = strings.TrimSuffix(path, "#main") + "#" + commit + ":" + name
			}
			got := map[string]string{}
			for name := range p.paths("docs") {
				got[name] = p.url("docs", name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: documents (-want +got):\n%s\n%s", step, diff, p.out.String())
			}
		}
		time.Sleep(time.Second)
		check("first", one, "a.md")
		two := commit("b.md", "two")
		time.Sleep(defaultEvery)
		check("a commit", two, "a.md", "b.md")
		git("reset", "-q", "--hard", one)
		three := commit("c.md", "three")
		time.Sleep(defaultEvery)
		check("a forced push", three, "a.md", "c.md")
		git("checkout", "-q", "-b", "other")
		git("branch", "-q", "-D", "main")
		time.Sleep(defaultEvery)
		check("a deleted branch", three, "a.md", "c.md")
		if !strings.Contains(p.out.String(), "does not have the branch main") {
			t.Errorf("the log does not name the branch: %s", p.out.String())
		}
		time.Sleep(20 * retryAfter)
		if n := strings.Count(p.out.String(), "does not have the branch main"); n != 1 {
			t.Errorf("the log names the branch %d times, want once", n)
		}
		git("branch", "-m", "main")
		four := commit("d.md", "four")
		time.Sleep(defaultEvery)
		check("the branch is back", four, "a.md", "c.md", "d.md")
		git("branch", "-m", "other")
		time.Sleep(defaultEvery)
		if n := strings.Count(p.out.String(), "does not have the branch main"); n != 2 {
			t.Errorf("the log names the branch %d times, want once again", n)
		}
		p.stop()
	})
}

// url returns the URL of a document.
func (p *process) url(label, path string) string {
	p.t.Helper()
	hit, err := p.x.Find(p.t.Context(), document.IDOf(label, path), []string{label})
	if err != nil {
		p.t.Fatal(err)
	}
	return hit.URL
}
