package ingest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// Files of a mirror have paths and URLs of their own. A page may have a path below that
// of another one, and is removed without it.
func TestMap(t *testing.T) {
	root := folder(t, map[string]string{"1": "<html><p>guide", "2": "pages", "3": "a part", "4": "hidden", "5": zipOf(t, "a.txt", "a")})
	for i, name := range []string{"1", "2", "3", "4", "5"} {
		at := anHourAgo().Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(filepath.Join(root, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	paths := map[string]string{"1": "guide", "2": "guide/x", "3": "guide/x/y.png", "5": "files"}
	sink := &memorySink{}
	missing := []LeftOut{{"gone", "answered with status 404"}}
	ingester := func() *Ingester {
		return New(Options{Sink: sink, Root: root, Missing: missing, Map: func(name string) (string, string, bool) {
			path, ok := paths[name]
			return path, "https://h.example/" + path, ok
		}})
	}
	src := document.Source{Label: "docs", Path: "https://h.example/"}
	left := map[Reason]int{"answered with status 404": 1, NoText: 1}
	mustSync(t, ingester(), src, Result{Added: 3, LeftOut: left})
	for path, url := range map[string]string{"guide": "guide", "guide/x": "guide/x", "files/a.txt": "files#a.txt"} {
		if d := sink.doc(path); d == nil || d.URL != "https://h.example/"+url {
			t.Errorf("document %s: %+v", path, d)
		}
	}
	mustSync(t, ingester(), src, Result{Unchanged: 3, LeftOut: left})
	delete(paths, "2")
	g := ingester()
	mustSync(t, g, src, Result{Unchanged: 2, Removed: 1, LeftOut: left})
	delete(paths, "5")
	paths["1"] = "other"
	mustSync(t, g, src, Result{Added: 1, Removed: 2, LeftOut: left})
}
