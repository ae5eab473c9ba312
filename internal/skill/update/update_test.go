package update_test

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

	"knowhow/internal/errkind"
	"knowhow/internal/mcpclient"
	"knowhow/internal/skill/store"
	"knowhow/internal/skill/update"
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

// newOptions returns options for the servers a and b, and the log.
func newOptions(t *testing.T, f *fakeServers) (update.Options, *strings.Builder) {
	log := &strings.Builder{}
	return update.Options{
		Servers: f, Enabled: []string{"a", "b"}, Log: slog.New(slog.NewTextHandler(log, nil)),
		Store: store.Options{Base: t.TempDir()},
	}, log
}

// names lists the skills on disk.
func names(t *testing.T, o update.Options) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(o.Store.Base, "mcp-skills"))
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
	o, log := newOptions(t, f)
	answered := 0
	var mu sync.Mutex
	o.Answered = func() { mu.Lock(); answered++; mu.Unlock() }
	o.Keep = func(_, tool string) bool { return tool != "two" }
	a, err := update.Ask(t.Context(), o)
	if err != nil || len(a.Catalogs) != 1 || !errors.Is(a.Failed["b"], errkind.Unavailable) || answered != 2 {
		t.Fatalf("Ask = %+v, %v after %d answers, want one catalog and one failure", a, err, answered)
	}
	if !strings.Contains(log.String(), `msg="Server b failed: connecting: no luck"`) {
		t.Errorf("the log does not say which server failed and why: %s", log)
	}
	report, skills, err := update.Write(t.Context(), o, a)
	if err != nil || len(skills) != 1 || !slices.Equal(report.Written, []string{"a-one"}) {
		t.Fatalf("Write = %+v, %v, %v, want a-one written", report, skills, err)
	}
	if diff := cmp.Diff([]string{"a-one"}, names(t, o)); diff != "" {
		t.Errorf("the skills differ (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := update.Ask(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("Ask, cancelled = %v, want %v", err, context.Canceled)
	}
}

// TestFollow asks the other servers only where a server's tools have changed.
func TestFollow(t *testing.T) {
	f := &fakeServers{tools: map[string][]string{"a": {"one"}, "b": {"two"}}}
	o, _ := newOptions(t, f)
	a, err := update.Ask(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := update.Write(t.Context(), o, a); err != nil {
		t.Fatal(err)
	}
	f.asked = nil
	if err := update.Follow(t.Context(), o, "a"); err != nil || !slices.Equal(f.asked, []string{"a"}) {
		t.Errorf("Follow without a change = %v and asked %q, want only a", err, f.asked)
	}
	f.tools["a"] = []string{"one", "late"}
	if err := update.Follow(t.Context(), o, "a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-late", "a-one", "b-two"}, names(t, o)); diff != "" {
		t.Errorf("after a change the skills differ (-want +got):\n%s", diff)
	}
	if err := update.Follow(t.Context(), o, "c"); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("Follow of a server that fails = %v, want %v", err, errkind.Unavailable)
	}
}
