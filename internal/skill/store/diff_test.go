package store

import (
	"fmt"
	"testing"
)

// TestDiff compares skills with folders that exist only in memory.
func TestDiff(t *testing.T) {
	want := content("a/same", "a/news", "a/fresh")
	folderOf := func(text []byte) *node {
		return &node{dir: true, files: map[string][]byte{skillFile: text, "references/schema.json": []byte("{}\n")}}
	}
	files := func(text []byte) map[string]string {
		return map[string]string{skillFile: sum(text), "references/schema.json": sum([]byte("{}\n"))}
	}
	unchanged, old := want.Skills[0].Files[1].Content, offered("a", "news", "Was old.").Files[1].Content
	gone := offered("b", "gone", "Was here.").Files[1].Content
	d := &disk{
		out: &folder{key: "mcp-skills", nodes: map[string]*node{
			"a-same": folderOf(unchanged), "a-news": folderOf(old), "b-gone": folderOf(gone),
		}},
		links: []*folder{{key: "skills", nodes: map[string]*node{
			"a-same": {target: "x", exact: true, ours: true}, "b-gone": {target: "x", exact: true, ours: true},
			"a-news": {dir: true, files: map[string][]byte{"mine": nil}},
		}}},
		lock: &lock{OutputDir: "mcp-skills", LinkDirs: []string{"skills"}, Skills: map[string]*entry{
			"a-same": {Server: "a", Files: files(unchanged), Links: []string{"skills"}},
			"a-news": {Server: "a", Files: files(old), WrittenDescription: sum([]byte("Was old."))},
			"b-gone": {Server: "b", Files: files(gone), Links: []string{"skills"}},
		}},
	}
	p := diff(want, d)
	var got []string
	for _, c := range p.changes {
		got = append(got, fmt.Sprintf("%s/%s link %v, unlink %v, put %d, drop %d", c.in.key, c.name, c.link, c.unlink,
			len(c.put), len(c.drop)))
	}
	steps := []string{
		"mcp-skills/a-fresh link false, unlink false, put 2, drop 0",
		"mcp-skills/a-news link false, unlink false, put 1, drop 0",
		"skills/a-fresh link true, unlink false, put 2, drop 0",
		"skills/b-gone link false, unlink true, put 0, drop 0",
		"mcp-skills/b-gone link false, unlink false, put 0, drop 2",
	}
	same(t, "changes", got, steps)
	same(t, "kept", kept(p.report), []string{"skills/a-news"})
}
