package windows

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

// A lineEnder writes "\r\n" for "\n", as some clients for Windows do.
type lineEnder struct{ w io.Writer }

func (l lineEnder) Write(b []byte) (int, error) {
	if _, err := io.WriteString(l.w, strings.ReplaceAll(string(b), "\n", "\r\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// TestStdio starts the program as a client does, searches and reads, and ends its
// input.
func TestStdio(t *testing.T) {
	p := newProfile(t)
	p.write("Docs/Sub folder/guide.md", "# Guide\r\n\r\nThe flux capacitor\r\nis on the left.\r\n")
	var s *server
	client := mcptest.Stdio(t, func(_ context.Context, in io.Reader, out io.Writer) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		copied := make(chan struct{})
		go func() {
			defer close(copied)
			_, _ = io.Copy(lineEnder{w}, in) // fails if the program has ended
			w.Close()
		}()
		s = p.start(r, out, "mcp", p.win("Docs"))
		r.Close()
		<-s.ended
		<-copied
		return nil
	})
	client.Initialize("2025-11-25")
	var text string
	within(t, patience, "answer", func() bool {
		found, err := client.Tool("docs_search", map[string]any{"query": "flux capacitor"})
		if err != nil {
			t.Fatal(err)
		}
		text = found
		return strings.Contains(text, `"path":"Sub folder/guide.md"`)
	})
	var page struct {
		Results []struct {
			DocID string `json:"doc_id"`
			Path  string
		}
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Results) != 1 {
		t.Fatalf("docs_search returned %s (%v)", text, err)
	}
	read, toolErr := client.Tool("docs_read_content", map[string]any{"docId": page.Results[0].DocID})
	if toolErr != nil || !strings.Contains(read, `Guide\n\nThe flux capacitor\nis on the left.`) {
		t.Errorf("docs_read_content returned %s (%v)", read, toolErr)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.status(t); got != 0 {
		t.Errorf("the program ended with status %d after the end of its input:\n%s", got, s.printed())
	}
}

// TestServe serves over HTTP, changes files, kills the program, and continues with
// the same data folder.
func TestServe(t *testing.T) {
	p := newProfile(t)
	p.write("Docs/a.txt", "The zebra crosses the river.\r\n")
	p.write("Docs/b.txt", "Nothing here yet.\r\n")
	p.write("Docs/removed.txt", "The walrus leaves.\r\n")
	port := freePort(t)
	s := p.start(nil, nil, "serve", "--port", port, p.win("Docs"))
	url := s.address(t)
	finds := func(query, path string) bool {
		_, stdout, _ := p.run("search", "--json", query)
		return strings.Contains(stdout, `"path":"`+path+`"`)
	}
	within(t, patience, "document", func() bool { return finds("zebra", "a.txt") })
	if got := p.output("read", "a.txt"); strings.TrimSpace(got) != "The zebra crosses the river." {
		t.Errorf("read printed %q", got)
	}
	if got := searchOver(t, url, "walrus"); !strings.Contains(got, "removed.txt") {
		t.Errorf("docs_search over HTTP returned %s", got)
	}
	status := p.output("status")
	if want := p.win("Docs"); !strings.Contains(status, want) || !strings.Contains(status, "3 documents") {
		t.Errorf("status printed %s, want 3 documents of %s", status, want)
	}

	p.write("Docs/b.txt", "The okapi is shy.\r\n")
	p.write("Docs/Übersicht.txt", "The ibex climbs.\r\n")
	if err := os.Remove(p.path("Docs/removed.txt")); err != nil {
		t.Fatal(err)
	}
	const watched = 15 * time.Second
	changed := time.Now()
	within(t, watched, "changed file", func() bool { return finds("okapi", "b.txt") })
	within(t, watched, "new file", func() bool { return finds("ibex", "Übersicht.txt") })
	within(t, watched, "removal", func() bool { return !finds("walrus", "removed.txt") })
	t.Logf("changes were found after %v", time.Since(changed).Round(time.Millisecond))

	foreign, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	_, used, _ := net.SplitHostPort(foreign.Addr().String())
	for port, want := range map[string]string{
		port: "a server of knowhow listens there already",
		used: "the port is in use by another program",
	} {
		code, _, stderr := p.run("serve", "--port", port, p.win("Docs"))
		if code != 1 || !strings.Contains(stderr, want) || !strings.Contains(stderr, "Choose a port with --addr") {
			t.Errorf("serve on a port in use ended with status %d and printed %q, want %q", code, stderr, want)
		}
	}
	other := p.start(nil, nil, "serve", "--port", "0", p.win("Docs"))
	if got := searchOver(t, other.address(t), "okapi"); !strings.Contains(got, "b.txt") {
		t.Errorf("docs_search by a second process returned %s", got)
	}

	// The second process continues when the first is killed.
	s.kill()
	p.write("Docs/later.txt", "The tapir sleeps.\r\n")
	within(t, patience, "file of a killed process", func() bool { return finds("tapir", "later.txt") })
	other.kill()
	if !finds("tapir", "later.txt") {
		t.Error("nothing is found without a server")
	}

	p.write("Docs/last.txt", "The newt swims.\r\n")
	again := p.start(nil, nil, "serve", "--port", port)
	again.address(t)
	within(t, patience, "file after the restart", func() bool { return finds("newt", "last.txt") })
	if got := p.output("status", "--json"); !strings.Contains(got, `"documents":5`) {
		t.Errorf("status --json printed %s, want 5 documents", got)
	}
}

// searchOver searches the domain docs over HTTP and returns the result, or the error.
func searchOver(t *testing.T, url, query string) string {
	t.Helper()
	client := mcptest.HTTP(t, url, nil)
	client.Initialize("2025-11-25")
	defer client.Close()
	got, err := client.Tool("docs_search", map[string]any{"query": query})
	if err != nil {
		return err.Error()
	}
	return got
}
