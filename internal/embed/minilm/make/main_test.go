package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestFile makes the file of the built-in embedder again. MINILM_DIR names a
// folder with the files of all-MiniLM-L6-v2, or the wheel.
func TestFile(t *testing.T) {
	model := os.Getenv("MINILM_DIR")
	if model == "" {
		t.Skip("MINILM_DIR is not set to the folder of all-MiniLM-L6-v2")
	}
	to := filepath.Join(t.TempDir(), "file")
	if err := run([]string{"-o", to, model}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		differ := 0
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				differ++
			}
		}
		t.Errorf("the file has %d bytes, of which %d differ; the one in the repository has %d bytes", len(got), differ,
			len(want))
	}
}
