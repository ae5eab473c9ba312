package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A lock that can't be read counts as absent; the sync continues.
func TestBadLock(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "null", `"x"`, `{"version":2,"skills":{}}`, `{"version":"1"}`,
		"<<<<<<< HEAD\n{}", `{"version":1,"output_dir":"a\u0000b"}`, `{"version":1,"skills":[]}`} {
		o := options(t)
		mustSync(t, o, content("a/x"))
		write(t, text, o.Base, lockName)
		r := mustSync(t, o, content("a/x"))
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], lockName) {
			t.Errorf("with lock %q: Warnings = %q, want one about the lock", text, r.Warnings)
		}
		same(t, "Written", r.Written, []string{"a-x"})
		if r := mustSync(t, o, content("a/x")); r.Stale || len(r.Warnings) > 0 {
			t.Errorf("a second sync changes something: %+v", r)
		}
	}
}

// Whatever a lock says, nothing of others is changed.
func TestHostileLock(t *testing.T) {
	victim := sum([]byte("mine"))
	entryOf := func(files map[string]string) map[string]any {
		return map[string]any{"server": "a", "files": files, "links": []string{"skills", "."}, "copied": true}
	}
	skills := func(name string, files map[string]string) map[string]any {
		return map[string]any{name: entryOf(files)}
	}
	for _, tt := range []struct {
		name   string
		lock   map[string]any
		change func(t *testing.T, base string)
	}{
		{"a name that climbs", map[string]any{"skills": skills("../victim", map[string]string{"SKILL.md": victim})},
			nil},
		{"an absolute name", map[string]any{"skills": skills("/victim", map[string]string{"SKILL.md": victim})}, nil},
		{"a file that climbs", map[string]any{"skills": skills("x",
			map[string]string{"SKILL.md": victim, "../../victim/SKILL.md": victim})}, nil},
		{"another output folder", map[string]any{"output_dir": ".",
			"skills": skills("victim", map[string]string{"SKILL.md": victim})}, nil},
		{"an output folder that climbs", map[string]any{"output_dir": "mcp-skills/..",
			"skills": skills("victim", map[string]string{"SKILL.md": victim})}, nil},
		{"another folder of links", map[string]any{"link_dirs": []string{"."},
			"skills": skills("victim", map[string]string{"SKILL.md": victim})}, nil},
		{"a link to a skill", map[string]any{"skills": skills("victim", map[string]string{"SKILL.md": victim})},
			func(t *testing.T, base string) { symlink(t, "../victim", base, "mcp-skills/victim") }},
		{"a link in a skill", map[string]any{"skills": skills("x",
			map[string]string{"SKILL.md": victim, "references/SKILL.md": victim})},
			func(t *testing.T, base string) {
				write(t, "mine", base, "mcp-skills/x/SKILL.md")
				symlink(t, "../../victim", base, "mcp-skills/x/references")
			}},
		{"a link within the folder", map[string]any{"skills": skills("x",
			map[string]string{"SKILL.md": victim, "references/SKILL.md": victim})},
			func(t *testing.T, base string) {
				write(t, "mine", base, "mcp-skills/own/SKILL.md")
				symlink(t, "../own", base, "mcp-skills/x/references")
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			write(t, "mine", o.Base, "victim/SKILL.md")
			write(t, "mine", o.Base, "skills/victim/SKILL.md")
			if tt.change != nil {
				tt.change(t, o.Base)
			}
			before := tree(t, o.Base)
			tt.lock["version"] = 1
			data, err := json.Marshal(tt.lock)
			if err != nil {
				t.Fatal(err)
			}
			write(t, string(data), o.Base, lockName)
			mustSync(t, o, content("a/new"))
			mustSync(t, o, Content{Disabled: []string{"a"}})
			after := tree(t, o.Base)
			for p, text := range before {
				if strings.HasPrefix(p, "mcp-skills/x/SKILL.md") {
					continue // where the lock and the hash agree, it is ours
				}
				if after[p] != text && text != "dir" {
					t.Errorf("%s = %q, want %q", p, after[p], text)
				}
			}
		})
	}
}

// Folders that were exchanged for links lead nowhere else.
func TestWriteThroughLink(t *testing.T) {
	o := options(t)
	mustSync(t, o, content("a/x"))
	outside := t.TempDir()
	remove(t, o.Base, "mcp-skills/a-x/references")
	symlink(t, outside, o.Base, "mcp-skills/a-x/references")
	r := mustSync(t, o, Content{Skills: append(content().Skills, offered("a", "x", "Is new."))})
	same(t, "Kept", kept(r), []string{"mcp-skills/a-x"})
	same(t, "the folder outside", tree(t, outside), map[string]string{})
}

func FuzzParseLock(f *testing.F) {
	f.Add([]byte(`{"version":1,"output_dir":"mcp-skills","link_dirs":["skills"],"skills":{"a-x":{"server":"a",` +
		`"files":{"SKILL.md":"` + strings.Repeat("0", 64) + `"}}}}`))
	f.Add([]byte(`{"version":1,"skills":{"../x":null,"a":{"files":{"../SKILL.md":""}}}}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := parseLock(raw)
		if err != nil {
			return
		}
		for name, e := range l.Skills {
			for p := range e.Files {
				full := filepath.Join(name, filepath.FromSlash(p))
				if !filepath.IsLocal(full) || filepath.Dir(full) == "." || strings.ContainsAny(name, `/\.:`) {
					t.Errorf("file %q of skill %q leads out of its folder", p, name)
				}
			}
		}
		again, err := parseLock(l.encode())
		if err != nil {
			t.Fatalf("the lock can't be read again: %v", err)
		}
		same(t, "lock", again.encode(), l.encode())
	})
}

// manyTools are those of ten servers with fifty tools each.
func manyTools() Content {
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("server%d/tool%d", i%10, i))
	}
	c := content(names...)
	for i := range c.Skills {
		f := &c.Skills[i].Files[1]
		f.Content = append(f.Content, strings.Repeat("More about the tool and its arguments.\n", 50)...)
	}
	return c
}

func BenchmarkHash(b *testing.B) {
	texts := map[string][]byte{}
	for _, sk := range manyTools().Skills {
		texts[sk.Name] = sk.Files[1].Content
	}
	for b.Loop() {
		hashOf(texts)
	}
}

func BenchmarkLock(b *testing.B) {
	o := options(b)
	mustSync(b, o, manyTools())
	raw := []byte(read(b, o.Base, lockName))
	for b.Loop() {
		l, err := parseLock(raw)
		if err != nil {
			b.Fatal(err)
		}
		l.encode()
	}
}

func BenchmarkFirstSync(b *testing.B) {
	o := options(b)
	c := manyTools()
	for b.Loop() {
		b.StopTimer()
		if err := os.RemoveAll(o.Base); err != nil {
			b.Fatal(err)
		}
		if err := os.Mkdir(o.Base, 0o755); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		mustSync(b, o, c)
	}
}

func BenchmarkSyncAgain(b *testing.B) {
	o := options(b)
	c := manyTools()
	mustSync(b, o, c)
	for b.Loop() {
		mustSync(b, o, c)
	}
}

func BenchmarkCurrent(b *testing.B) {
	o := options(b)
	mustSync(b, o, manyTools())
	for b.Loop() {
		if ok, err := Current(o); !ok || err != nil {
			b.Fatalf("Current = %v, %v", ok, err)
		}
	}
}
