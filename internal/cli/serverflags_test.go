package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every server that agents or programs call has the same names for its token,
// its data folder and the level of its log, as flags and as variables. The names of
// the specifications mean the same.
func TestFlagsOfServers(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // start writes a lock file
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	config := write("config.json", `{"fessBaseUrl": "http://127.0.0.1:1", "domain": {"id": "a", "name": "A", "labelFilter": "a"}, "httpTransport": {"port": 0}}`)
	settings := write("settings.json", `{"mcpServers": {}}`)
	docs := filepath.Join(dir, "docs")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		args  []string
		token [2]string // older names: a flag and a variable
		data  string    // older name of the variable; "-" if the server has no data folder
		log   bool      // is written to stderr
	}{
		{"serve", []string{"--addr", "127.0.0.1:0", "--embedder", "none", docs}, [2]string{}, "", true},
		{"kb", []string{"--addr", "127.0.0.1:0", "--embedder", "none"}, [2]string{"--api-key", "KB_MCP_API_KEY"},
			"KB_DATA_DIR", true},
		{"engine", []string{"--addr", "127.0.0.1:0", "--embedder", "none"}, [2]string{"--api-key", "KB_API_KEY"},
			"KB_DATA_DIR", true},
		{"datasets", []string{"--addr", "127.0.0.1:0", "--transport", "http", "--datasets", docs}, [2]string{}, "-",
			true},
		{"fess", []string{"--config", config, "--transport", "http"}, [2]string{}, "-", false},
		{"start", []string{"--mcp-settings", settings, "--port", "0", "--output-dir", filepath.Join(dir, "skills"),
			"--skills-dir", filepath.Join(dir, "links")}, [2]string{"", "MCP_BRIDGE_TOKEN"}, "-", true},
	} {
		folder := func(how string) string { return filepath.Join(dir, tc.name+"-"+how) }
		check := func(how, level string, variables map[string]string, flags ...string) {
			t.Run(tc.name+" "+how, func(t *testing.T) {
				args := append(append([]string{tc.name}, flags...), tc.args...)
				out, done, stop := beginIn(t, variables, args)
				if !out.await("istening on http://", done) || !out.await("\n", done) {
					t.Fatalf("%q is not ready: %s", args, out)
				}
				_, rest, _ := strings.Cut(out.String(), "istening on http://")
				address := rest[:strings.IndexAny(rest, "/\n")]
				r := &running{url: "http://" + strings.Replace(address, "localhost", "127.0.0.1", 1)}
				path := "/"
				if tc.name == "start" {
					path = "/servers" // anyone may GET / of start
				}
				for token, want := range map[string]bool{"Bearer s3cret": true, "Bearer other": false} {
					if got, _, body := r.ask(t, "GET", path,
						map[string]string{"Authorization": token}); (got != 401) != want {
						t.Errorf("GET %s with %s = %d %s", path, token, got, body)
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
				if _, err := os.Stat(filepath.Join(folder(how), "knowhow.db")); err != nil && tc.data != "-" {
					t.Errorf("%q does not use the data folder: %v", args, err)
				}
			})
		}
		data := []string{"--data", folder("flags")}
		if tc.name == "start" {
			data = nil
		}
		check("flags", "warn", nil, append([]string{"--token", "s3cret", "--log-level", "warn"}, data...)...)
		check("variables", "ERROR", map[string]string{"KNOWHOW_TOKEN": "s3cret", "KNOWHOW_LOG_LEVEL": "ERROR",
			"KNOWHOW_DATA": folder("variables")})
		if tc.data != "" && tc.data != "-" {
			check("older variables", "warn", map[string]string{tc.token[1]: "s3cret", tc.data: folder("older variables"),
				"KNOWHOW_TOKEN": "other", "KNOWHOW_DATA": folder("flags")})
			check("older flags", "warn", nil, tc.token[0], "s3cret", "--data", folder("older flags"))
		} else if tc.token[1] != "" {
			check("older variables", "warn", map[string]string{tc.token[1]: "s3cret", "KNOWHOW_TOKEN": "other"})
		}
	}
}
