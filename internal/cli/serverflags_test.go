package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every server that agents or programs call has the same names for its token,
// its data folder and the level of its log.
func TestFlagsOfServers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	config := `{"fessBaseUrl": "http://127.0.0.1:1", "domain": {"id": "a", "name": "A", "labelFilter": "a"}, "httpTransport": {"port": 0}}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	docs := filepath.Join(dir, "docs")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		log  bool // is written to stderr
	}{
		{"serve", []string{"--addr", "127.0.0.1:0", "--embedder", "none", docs}, true},
		{"kb", []string{"--addr", "127.0.0.1:0", "--embedder", "none"}, true},
		{"engine", []string{"--addr", "127.0.0.1:0", "--embedder", "none"}, true},
		{"datasets", []string{"--addr", "127.0.0.1:0", "--transport", "http", "--datasets", docs}, true},
		{"fess", []string{"--config", file, "--transport", "http"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, level := range []string{"warn", "ERROR"} {
				args := append([]string{tc.name, "--token", "s3cret", "--log-level", level, "--data",
					filepath.Join(dir, tc.name)}, tc.args...)
				out, done, stop := begin(t, args)
				if !out.await("istening on http://", done) || !out.await("\n", done) {
					t.Fatalf("%q is not ready: %s", args, out)
				}
				_, rest, _ := strings.Cut(out.String(), "istening on ")
				address, _, _ := strings.Cut(rest, "\n")
				address, _, _ = strings.Cut(strings.TrimPrefix(address, "http://"), "/")
				r := &running{url: "http://" + address}
				for token, want := range map[string]bool{"Bearer s3cret": true, "Bearer other": false} {
					if got, _, body := r.ask(t, "GET", "/",
						map[string]string{"Authorization": token}); (got != 401) != want {
						t.Errorf("GET / with %s = %d %s", token, got, body)
					}
				}
				if tc.log && level == "warn" && !out.await("refused a request status=401", done) {
					t.Errorf("%q prints %s, want a line for the refused request", args, out)
				}
				stop()
				if text := fmt.Sprint(out); level == "ERROR" && strings.Contains(text, "refused a request") ||
					strings.Contains(text, "s3cret") {
					t.Errorf("%q prints %s, want no warning and no token", args, text)
				}
			}
		})
	}
}
