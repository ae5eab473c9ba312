package store

import (
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

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
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

// newGenerator returns a generator for the servers a and b, and the log.
func newGenerator(t *testing.T, f *fakeServers) (*Generator, *strings.Builder) {
	log := &strings.Builder{}
	o := options(t)
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	return &Generator{
		Servers: f, Enabled: []string{"a", "b"},
		Store: o,
	}, log
}

// skillsOnDisk lists the skills on disk.
func skillsOnDisk(t *testing.T, g *Generator) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(g.Store.Base, "mcp-skills"))
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
	g, log := newGenerator(t, f)
	var answered []string
	var mu sync.Mutex
	note := func(id string) { mu.Lock(); answered = append(answered, id); mu.Unlock() }
	g.Keep = func(_, tool string) bool { return tool != "two" }
	a, err := g.Ask(t.Context(), note)
	slices.Sort(answered)
	if err != nil || len(a.Catalogs) != 1 || !errors.Is(a.Failed["b"], errkind.Unavailable) ||
		!slices.Equal(answered, []string{"a", "b"}) {
		t.Fatalf("Ask = %+v, %v, answered by %q, want one catalog and one failure", a, err, answered)
	}
	if n := strings.Count(log.String(), "no luck"); n != 1 ||
		!strings.Contains(log.String(), `level=ERROR msg="Server b failed: connecting: no luck"`) {
		t.Errorf("the log does not say once which server failed and why: %s", log)
	}
	report, skills, err := g.Write(t.Context(), a)
	if err != nil || len(skills) != 1 || !slices.Equal(report.Written, []string{"a-one"}) {
		t.Fatalf("Write = %+v, %v, %v, want a-one written", report, skills, err)
	}
	if diff := cmp.Diff([]string{"a-one"}, skillsOnDisk(t, g)); diff != "" {
		t.Errorf("the skills differ (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Ask(ctx, note); !errors.Is(err, context.Canceled) {
		t.Errorf("Ask, cancelled = %v, want %v", err, context.Canceled)
	}
}

// TestFollow asks the other servers only where a server's tools have changed.
func TestFollow(t *testing.T) {
	f := &fakeServers{tools: map[string][]string{"a": {"one"}, "b": {"two"}}}
	g, log := newGenerator(t, f)
	a, err := g.Ask(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.Write(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	f.asked = nil
	if err := g.Follow(t.Context(), "a"); err != nil || !slices.Equal(f.asked, []string{"a"}) {
		t.Errorf("Follow without a change = %v and asked %q, want only a", err, f.asked)
	}
	f.tools["a"] = []string{"one", "late"}
	if err := g.Follow(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-late", "a-one", "b-two"}, skillsOnDisk(t, g)); diff != "" {
		t.Errorf("after a change the skills differ (-want +got):\n%s", diff)
	}
	if err := g.Follow(t.Context(), "c"); err != nil || strings.Count(log.String(), "no luck") != 1 {
		t.Errorf("Follow of a server that fails = %v, log %s, want one line", err, log)
	}
}
