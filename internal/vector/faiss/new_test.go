package faiss

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewFAISS is TestFixtures for files that FAISS 1.15.1 wrote. The script
// beside them describes the files.
func TestNewFAISS(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "1.15.1", "*.index"))
	if err != nil || len(files) != 12 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".index"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			x, err := read(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(strings.TrimSuffix(name, ".index") + ".f32")
			if err != nil {
				t.Fatal(err)
			}
			want := make([]float32, len(raw)/4)
			flat{len(want)}.decode(want, raw)
			for i := range 5 {
				var ids []int64
				var scores []float64
				for j := range 5 {
					ids = append(ids, int64(want[80+5*i+j]))
					scores = append(scores, float64(want[105+5*i+j]))
				}
				compare(t, fixture{Params: filepath.Base(name)}, x, want[16*i:16*i+16], ids, scores)
			}
		})
	}
}
