package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/errkind"
	"knowhow/internal/mcpclient"
	"knowhow/internal/skill/store"
	"knowhow/internal/terminal"
)

// fakeServers are servers by id, each with its tools; nil is one that fails.
type fakeServers struct {
	tools map[string][]string

	mu    sync.Mutex
	asked []string
}

func (f *fakeServers) Catalog(_ context.Context, id string) (*mcpclient.Catalog, error) {
	f.mu.Lock()
	f.asked = append(f.asked, id)
	f.mu.Unlock()
	if f.tools[id] == nil {
		return nil, fmt.Errorf("server %q: connecting: no luck: %w", id, errkind.Unavailable)
	}
	c := &mcpclient.Catalog{Server: id}
	for _, t := range f.tools[id] {
		c.Tools = append(c.Tools, mcpclient.Tool{Name: t, Description: "Does " + t + "."})
	}
	return c, nil
}

// newSkillWriter returns a writer for the servers a and b, and the log.
func newSkillWriter(t *testing.T, f *fakeServers) (*skillWriter, *strings.Builder) {
	log := &strings.Builder{}
	return &skillWriter{
		servers: f, enabled: []string{"a", "b"}, log: slog.New(slog.NewTextHandler(log, nil)),
		store: store.Options{Base: t.TempDir()},
	}, log
}

// skillsOnDisk lists the skills on disk.
func skillsOnDisk(t *testing.T, w *skillWriter) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.store.Base, "mcp-skills"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestAskAndWrite(t *testing.T) {
	f := &fakeServers{tools: map[string][]string{"a": {"one", "two"}}}
	w, log := newSkillWriter(t, f)
	var answered []string
	var mu sync.Mutex
	note := func(id string) { mu.Lock(); answered = append(answered, id); mu.Unlock() }
	w.keep = func(_, tool string) bool { return tool != "two" }
	a, err := w.ask(t.Context(), note)
	slices.Sort(answered)
	if err != nil || len(a.catalogs) != 1 || !errors.Is(a.failed["b"], errkind.Unavailable) || !slices.Equal(answered, []string{"a", "b"}) {
		t.Fatalf("ask = %+v, %v, answered by %q, want one catalog and one failure", a, err, answered)
	}
	if n := strings.Count(log.String(), "no luck"); n != 1 || !strings.Contains(log.String(), `level=ERROR msg="Server b failed: connecting: no luck"`) {
		t.Errorf("the log does not say once which server failed and why: %s", log)
	}
	report, skills, err := w.write(t.Context(), a)
	if err != nil || len(skills) != 1 || !slices.Equal(report.Written, []string{"a-one"}) {
		t.Fatalf("write = %+v, %v, %v, want a-one written", report, skills, err)
	}
	if diff := cmp.Diff([]string{"a-one"}, skillsOnDisk(t, w)); diff != "" {
		t.Errorf("the skills differ (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.ask(ctx, note); !errors.Is(err, context.Canceled) {
		t.Errorf("ask, cancelled = %v, want %v", err, context.Canceled)
	}
}

// TestFollow asks the other servers only where a server's tools have changed.
func TestFollow(t *testing.T) {
	f := &fakeServers{tools: map[string][]string{"a": {"one"}, "b": {"two"}}}
	w, log := newSkillWriter(t, f)
	a, err := w.ask(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.write(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	f.asked = nil
	if err := w.follow(t.Context(), "a"); err != nil || !slices.Equal(f.asked, []string{"a"}) {
		t.Errorf("follow without a change = %v and asked %q, want only a", err, f.asked)
	}
	f.tools["a"] = []string{"one", "late"}
	if err := w.follow(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-late", "a-one", "b-two"}, skillsOnDisk(t, w)); diff != "" {
		t.Errorf("after a change the skills differ (-want +got):\n%s", diff)
	}
	if err := w.follow(t.Context(), "c"); err != nil || strings.Count(log.String(), "no luck") != 1 {
		t.Errorf("follow of a server that fails = %v, log %s, want one line", err, log)
	}
}

// TestWatch waits for servers where there is no terminal: a line every ten
// seconds says for which.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		lines := terminal.NewLines(&out, nil)
		y := &syncing{invocation: &invocation{stderr: &out}, log: slog.New(terminal.NewHandler(lines, slog.LevelInfo)), lines: lines}
		answered, end := y.watch([]string{"b", "a\x1b", "c"})
		time.Sleep(9 * time.Second)
		answered("c")
		time.Sleep(12 * time.Second)
		answered("b")
		time.Sleep(10 * time.Second)
		end()
		time.Sleep(time.Minute)
		want := []string{"INFO Waiting for 2 of 3 servers: a\\x1b, b", "INFO Waiting for 2 of 3 servers: a\\x1b, b", "INFO Waiting for 1 of 3 servers: a\\x1b"}
		var got []string
		for line := range strings.Lines(out.String()) {
			_, text, _ := strings.Cut(strings.TrimSpace(line), " ") // behind the time
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the log differs (-want +got):\n%s", diff)
		}
	})
}
