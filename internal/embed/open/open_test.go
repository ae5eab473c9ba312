package open

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/embed/minilm"
	"github.com/knowhow-mcp/knowhow/internal/embed/remote"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestEmbedder(t *testing.T) {
	empty := t.TempDir()
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "config.json"), []byte(`{"model_type":"mpnet","hidden_size":768}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{MaxTokens: 128, Model: "all-minilm", Getenv: func(string) string { return empty }}
	for _, setting := range []string{"", "builtin"} {
		e, err := Embedder(setting, o)
		if b, ok := e.(*minilm.Embedder); err != nil || !ok || b.MaxTokens() != 128 {
			t.Errorf("Embedder(%q) = %v, %v, want the built-in one with 128 tokens", setting, e, err)
		}
	}
	if e, err := Embedder("none", o); e != nil || err != nil {
		t.Errorf("Embedder(none) = %v, %v, want nil, nil", e, err)
	}
	for _, setting := range []string{"http://127.0.0.1:11434", "HTTPS://api.openai.com/v1"} {
		e, err := Embedder(setting, o)
		if _, ok := e.(*remote.Embedder); err != nil || !ok || e.ID() != "all-minilm-l6-v2@remote" {
			t.Errorf("Embedder(%q) = %v, %v, want a service", setting, e, err)
		}
	}
	for _, tt := range []struct {
		setting string
		kind    error
	}{
		{"ftp://host/model", errkind.Invalid},
		{"http://", errkind.Invalid},
		{filepath.Join(empty, "missing"), errkind.NotFound},
		{"sentence-transformers/missing", errkind.NotFound},
		{empty, errkind.NotFound},
		{other, errkind.Unsupported},
	} {
		if e, err := Embedder(tt.setting, o); e != nil || !errors.Is(err, tt.kind) {
			t.Errorf("Embedder(%q) = %v, %v, want kind %v", tt.setting, e, err, tt.kind)
		}
	}
}
