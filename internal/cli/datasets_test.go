package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A vectorServer is a server with the API of OpenAI for vectors: for each of its
// words, a text has a component.
type vectorServer struct {
	mu    sync.Mutex
	words []string
	keys  map[string]bool // that were sent
	model string          // of the last request
}

func (s *vectorServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var req struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.keys[r.Header.Get("Authorization")], s.model = true, req.Model
	type item struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []item
	for i, text := range req.Input {
		v := make([]float32, len(s.words)+1)
		v[len(s.words)] = -0.1
		for k, word := range s.words {
			v[k] = float32(strings.Count(strings.ToLower(text), word)) - 0.01
		}
		data = append(data, item{"embedding", i, v})
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": req.Model, "data": data})
}

// A dataset is created and searched with the model of a server, which is set by
// the environment.
func TestDatasetsWithServer(t *testing.T) {
	fake := &vectorServer{words: []string{"apple", "pear", "plum"}, keys: map[string]bool{}}
	web := httptest.NewServer(fake)
	defer web.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "An apple a day keeps the doctor away.",
		"b": "A pear tree stands in the garden.", "c": "Plums are picked in the late summer."} {
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"EMBED_URL": web.URL, "EMBED_MODEL": "fruit", "EMBED_API_KEY": "k3y",
		"KNOWHOW_DATASETS": filepath.Join(dir, "sets")}
	run := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
		got := Main(t.Context(), append([]string{"datasets"}, args...), Env{Program: "knowhow", Lookup: lookup},
			strings.NewReader(""), &stdout, &stderr)
		if got != want {
			t.Fatalf("%q ended with %d, want %d: %s", args, got, want, &stderr)
		}
		if strings.Contains(stdout.String()+stderr.String(), "k3y") {
			t.Errorf("%q shows the key", args)
		}
		return stdout.String() + stderr.String()
	}
	has := func(text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q", text, want)
		}
	}
	run(exitOK, "create", "--id", "fruit", "--source", dir)
	has(run(exitOK, "check", "fruit"), "fruit made the vectors (cosine 1.000 with its own)")
	has(run(exitOK, "search", "--json", "fruit", "apples"), `"scoreKind":"fused"`)
	if len(fake.keys) != 1 || !fake.keys["Bearer k3y"] || fake.model != "fruit" {
		t.Errorf("the server got the keys %v and the model %q", fake.keys, fake.model)
	}
	// With the built-in model alone, the words are searched.
	env["EMBED_URL"] = ""
	has(run(exitOK, "search", "fruit", "pear"), "note: the metadata names")
	// A server that is down is said to be, with the setting that names it.
	env["EMBED_URL"] = "http://127.0.0.1:1/"
	has(run(exitOK, "check", "fruit"), "check --embedder or EMBED_URL")
}
