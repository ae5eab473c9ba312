package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// TestConformance runs the official conformance suite against this package,
// over HTTP, on one endpoint for all revisions. No failure and no warning is
// let pass but those that a baseline file names.
func TestConformance(t *testing.T) {
	modules := os.Getenv("KNOWHOW_CONFORMANCE")
	if modules == "" {
		t.Skip("KNOWHOW_CONFORMANCE names no folder with the conformance suite: run .ci/conformance")
	}
	for _, tc := range []struct {
		name, suite string
		args        []string
		baseline    string // failures that are expected, in the suite's format
		passes      int    // checks that pass at least, so that an empty run is no success
	}{
		{"active suite", "conformance-0.1", nil, "", 40},
		{"2025-11-25", "conformance-0.2", []string{"--requirements", "2025-11-25"}, "", 82},
		{"2026-07-28", "conformance-0.2", []string{"--requirements", "2026-07-28"}, "conformance-2026-07-28.yml", 165},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args, failures := append([]string{filepath.Join(modules, "node_modules", tc.suite, "dist", "index.js"),
				"server"},
				tc.args...), 0
			if tc.baseline != "" {
				file, err := filepath.Abs(filepath.Join("..", "..", ".ci", tc.baseline))
				if err != nil {
					t.Fatal(err)
				}
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				args, failures = append(args, "--expected-failures", file), strings.Count(string(text), "\n  - ")
			}
			got := runSuite(t, filepath.Join(modules, "node_modules", "node", "bin", "node"), args)
			t.Logf("%d checks passed, %d failed, %d warned, %d were skipped", got["SUCCESS"], got["FAILURE"],
				got["WARNING"],
				got["SKIPPED"])
			if got["FAILURE"] != failures || got["WARNING"] != 0 || got["SUCCESS"] < tc.passes {
				t.Errorf("want %d failures, no warnings and %d passes or more", failures, tc.passes)
			}
		})
	}
}

// runSuite runs the suite against a separate server and returns how many
// checks had which status.
func runSuite(t *testing.T, node string, args []string) map[string]int {
	t.Helper()
	s := newSuiteServer()
	h := s.HTTP(HTTPOptions{})
	guarded := httpguard.New(httpguard.Options{Routes: []httpguard.Route{h.Route("/mcp")}, Refuse: Refuse})
	site := httptest.NewServer(s.serve(guarded))
	defer site.Close()
	defer func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown() = %v, want nil", err)
		}
	}()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), node, append(args, "--url", site.URL+"/mcp", "-o", dir)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	_, unexpected := errors.AsType[*exec.ExitError](err) // a failure, or one less than the baseline names
	switch {
	case unexpected:
		t.Errorf("the suite ended with %v:\n%s", err, out)
	case err != nil:
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, file := range files {
		var checks []struct{ ID, Status, ErrorMessage string }
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &checks)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if count[c.Status]++; c.Status == "WARNING" || c.Status == "FAILURE" && unexpected {
				t.Logf("%s: %s: %s %s", filepath.Base(filepath.Dir(file)), c.ID, c.Status, c.ErrorMessage)
			}
		}
	}
	return count
}
