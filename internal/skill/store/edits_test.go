package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/skill"
)

const file = "mcp-skills/a-x/SKILL.md"

// A description edited by hand survives; every other edit is undone.
func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, o *Options)
		then   Content
		want   string // the description
	}{
		{"description", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `"Better."`, o.Base, file)
		}, content("a/x"), "Better."},
		{"description in another form", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `>-
  Better
  so.`, o.Base, file)
		}, content("a/x"), "Better so."},
		{"description that is not YAML", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `Use this: *now* #1`, o.Base, file)
		}, content("a/x"), "Use this: *now* #1"},
		{"description that is not YAML, without a lock", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `Use this: *now* #1`, o.Base, file)
			remove(t, o.Base, lockName)
		}, content("a/x"), "Use this: *now* #1"},
		{"long description", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, strings.Repeat("words and ", 110), o.Base, file)
		}, content("a/x"), strings.TrimSpace(strings.Repeat("words and ", 102)) + "…"},
		{"description and the rest", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `Better.`, o.Base, file)
			replace(t, "# MCP Tool", "# My Tool", o.Base, file)
		}, content("a/x"), "Better."},
		{"the server has news too", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `"Better."`, o.Base, file)
		}, Content{Skills: append(content().Skills, offered("a", "x", "Does x and y."))}, "Better."},
		{"only the server has news", func(*testing.T, *Options) {},
			Content{Skills: append(content().Skills, offered("a", "x", "Does x and y."))}, "Does x and y."},
		{"without a lock", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `"Better."`, o.Base, file)
			remove(t, o.Base, lockName)
		}, content("a/x"), "Better."},
		{"without a lock, and the rest differs", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `"Better."`, o.Base, file)
			remove(t, o.Base, lockName)
		}, Content{Skills: append(content().Skills, offered("a", "x", "Does x and y."))}, "Does x and y."},
		{"forced", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `"Better."`, o.Base, file)
			o.Force = true
		}, content("a/x"), "Does x."},
		{"emptied", func(t *testing.T, o *Options) {
			replace(t, `"Does x."`, `""`, o.Base, file)
		}, content("a/x"), "Does x."},
		{"body", func(t *testing.T, o *Options) {
			replace(t, "# MCP Tool", "# My Tool", o.Base, file)
		}, content("a/x"), "Does x."},
		{"frontmatter", func(t *testing.T, o *Options) { write(t, "nothing", o.Base, file) }, content("a/x"),
			"Does x."},
		{"schema", func(t *testing.T, o *Options) { write(t, "x", o.Base, "mcp-skills/a-x/references/schema.json") },
			content("a/x"), "Does x."},
		{"file removed", func(t *testing.T, o *Options) { remove(t, o.Base, file) }, content("a/x"), "Does x."},
		{"folder removed", func(t *testing.T, o *Options) { remove(t, o.Base, "mcp-skills") }, content("a/x"),
			"Does x."},
		{"file made a folder of links", func(t *testing.T, o *Options) {
			remove(t, o.Base, file)
			symlink(t, "/etc/hostname", o.Base, file)
		}, content("a/x"), "Does x."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			mustSync(t, o, content("a/x"))
			tt.change(t, &o)
			mustSync(t, o, tt.then)
			o.Force = false
			want := strings.Replace(string(tt.then.Skills[0].Files[1].Content),
				"description: \""+tt.then.Skills[0].Description+"\"", "description: \""+tt.want+"\"", 1)
			same(t, "the file", read(t, o.Base, file), want)
			same(t, "the schema", read(t, o.Base, "mcp-skills/a-x/references/schema.json"), "{}\n")
			if r := mustSync(t, o, tt.then); r.Stale {
				t.Errorf("a second sync changes something: %+v", r)
			}
			if ok, err := Current(o); !ok || err != nil {
				t.Errorf("Current = %v, %v, want true", ok, err)
			}
		})
	}
}

// An edited description outlives later syncs, until it is made ours again.
func TestEditStays(t *testing.T) {
	t.Run("links", func(t *testing.T) { editStays(t, options(t)) })
	t.Run("copies", func(t *testing.T) {
		o := options(t)
		o.Link = refuse
		editStays(t, o)
	})
}

func editStays(t *testing.T, o Options) {
	mustSync(t, o, content("a/x"))
	replace(t, `"Does x."`, `"Better."`, o.Base, file)
	mustSync(t, o, content("a/x"))
	news := Content{Skills: append(content().Skills, offered("a", "x", "Does x and y."))}
	mustSync(t, o, news)
	mustSync(t, o, Content{Failed: []string{"a"}})
	if md := read(t, o.Base, file); !strings.Contains(md, `description: "Better."`) ||
		!strings.Contains(md, "Does x and y.") {
		t.Errorf("file = %s, want the edited description and the new text", md)
	}
	replace(t, `"Better."`, `"Best."`, o.Base, file)
	mustSync(t, o, news)
	if md := read(t, o.Base, file); !strings.Contains(md, `description: "Best."`) {
		t.Errorf("file = %s, want the description edited again", md)
	}
	// The server is switched off: the user's work stays, without a link, and
	// is taken up again.
	r := mustSync(t, o, Content{Disabled: []string{"a"}})
	same(t, "Kept", kept(r), []string{"mcp-skills/a-x"})
	same(t, "tree", paths(t, o.Base), []string{file, "skills/"})
	mustSync(t, o, news)
	if md := read(t, o.Base, file); !strings.Contains(md, `description: "Best."`) {
		t.Errorf("file = %s, want the edited description", md)
	}
	replace(t, `"Best."`, `"Does x and y."`, o.Base, file)
	mustSync(t, o, news)
	mustSync(t, o, content("a/x"))
	if md := read(t, o.Base, file); !strings.Contains(md, `description: "Does x."`) {
		t.Errorf("file = %s, want the server's description", md)
	}
}

// TestRename has skills whose tools are the same and whose names are not: as when
// names are made in another way. Their old folders go, edited descriptions stay.
func TestRename(t *testing.T) {
	named := func(name, text string) Content {
		sk := offered("git", "diff", text)
		md := &sk.Files[1]
		md.Content = []byte(strings.Replace(string(md.Content), "name: \"git-diff\"", "name: \""+name+"\"", 1))
		sk.Name = name
		return Content{Skills: []skill.Skill{sk, offered("git", "log", "Does log.")}}
	}
	for _, link := range []func(string, string) error{nil, refuse} {
		for _, tt := range []struct {
			name         string
			edit         string
			force        bool
			text         string
			want         string
			changed, own bool
		}{
			{name: "plain", text: "Does diff.", want: "Does diff."},
			{name: "edited", edit: "Better.", text: "Does diff.", want: "Better."},
			{name: "edited, and the server has news", edit: "Better.", text: "Does more.", want: "Better.",
				changed: true},
			{name: "forced", edit: "Better.", force: true, text: "Does diff.", want: "Does diff."},
			{name: "a file of the user's", text: "Does diff.", want: "Does diff.", own: true},
		} {
			o := options(t)
			o.Link = link
			mustSync(t, o, named("git-git-diff", "Does diff."))
			if tt.edit != "" {
				replace(t, `"Does diff."`, `"`+tt.edit+`"`, o.Base, "mcp-skills/git-git-diff/SKILL.md")
			}
			if tt.own {
				write(t, "mine", o.Base, "mcp-skills/git-git-diff/notes.txt")
			}
			o.Force = tt.force
			r := mustSync(t, o, named("git-diff", tt.text))
			md := read(t, o.Base, "mcp-skills/git-diff/SKILL.md")
			if !strings.Contains(md, "name: \"git-diff\"") || !strings.Contains(md, "description: \""+tt.want+"\"") {
				t.Errorf("%s: the skill is\n%s", tt.name, md)
			}
			old := []string{}
			for _, p := range paths(t, o.Base) {
				if strings.Contains(p, "git-git-diff") {
					old = append(old, p)
				}
			}
			if tt.own {
				same(t, tt.name, old, []string{"mcp-skills/git-git-diff/notes.txt"})
			} else {
				same(t, tt.name, old, []string{})
			}
			if changed := len(r.Changed) > 0; changed != tt.changed {
				t.Errorf("%s: Changed = %q, want some: %v", tt.name, r.Changed, tt.changed)
			}
			o.Force = false
			if r := mustSync(t, o, named("git-diff", tt.text)); r.Stale || len(kept(r)) > 0 {
				t.Errorf("%s: a second sync changes something: %+v", tt.name, r)
			}
		}
	}
}

// A description edited in a copy counts as well.
func TestEditInCopy(t *testing.T) {
	o := options(t)
	o.Link = refuse
	mustSync(t, o, content("a/x"))
	replace(t, `"Does x."`, `"Better."`, o.Base, "skills/a-x/SKILL.md")
	mustSync(t, o, content("a/x"))
	for _, dir := range []string{"skills", "mcp-skills"} {
		if md := read(t, o.Base, dir, "a-x/SKILL.md"); !strings.Contains(md, `description: "Better."`) {
			t.Errorf("file in %s = %s, want the edited description", dir, md)
		}
	}
	if r := mustSync(t, o, content("a/x")); r.Stale {
		t.Errorf("a second sync changes something: %+v", r)
	}
}

// A description that is gone is replaced, but not silently.
func TestBadEdit(t *testing.T) {
	o := options(t)
	mustSync(t, o, content("a/x"))
	replace(t, `description: "Does x."`, "", o.Base, file)
	if r := mustSync(t, o, content("a/x")); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], file) {
		t.Errorf("Warnings = %q, want one about %s", r.Warnings, file)
	}
}

// What users put beside our files stays there.
func TestUsersFiles(t *testing.T) {
	o := options(t)
	write(t, "mine", o.Base, "mcp-skills/a-taken/SKILL.md")
	write(t, "mine", o.Base, "mcp-skills/a-file")
	write(t, "mine", o.Base, "outside/SKILL.md")
	symlink(t, "../outside", o.Base, "mcp-skills/a-link")
	write(t, "mine", o.Base, "mcp-skills/a-folder/SKILL.md/notes")
	c := content("a/taken", "a/file", "a/link", "a/folder", "a/x", "a/y")
	r := mustSync(t, o, c)
	same(t, "Kept", kept(r), []string{"mcp-skills/a-file", "mcp-skills/a-folder", "mcp-skills/a-link",
		"mcp-skills/a-taken"})
	remove(t, o.Base, "mcp-skills/a-folder")
	same(t, "Written", r.Written, []string{"a-x", "a-y"})
	same(t, "tree", paths(t, o.Base), []string{
		"mcp-skills/a-file", "mcp-skills/a-link -> ../outside", "mcp-skills/a-taken/SKILL.md",
		"mcp-skills/a-x/SKILL.md", "mcp-skills/a-y/SKILL.md", "outside/SKILL.md",
		"skills/a-x -> ../mcp-skills/a-x", "skills/a-y -> ../mcp-skills/a-y",
	})
	for _, p := range []string{"mcp-skills/a-taken/SKILL.md", "mcp-skills/a-file", "outside/SKILL.md"} {
		same(t, p, read(t, o.Base, p), "mine")
	}

	write(t, "mine", o.Base, "mcp-skills/a-x/notes.txt")
	write(t, "changed", o.Base, "mcp-skills/a-y/references/schema.json")
	r = mustSync(t, o, Content{Disabled: []string{"a"}})
	same(t, "tree", paths(t, o.Base), []string{
		"mcp-skills/a-file", "mcp-skills/a-link -> ../outside", "mcp-skills/a-taken/SKILL.md",
		"mcp-skills/a-x/notes.txt", "outside/SKILL.md", "skills/",
	})
	same(t, "the changed schema", read(t, o.Base, "mcp-skills/a-y/references/schema.json"), "changed")
	same(t, "Kept", kept(r), []string{"mcp-skills/a-x", "mcp-skills/a-y"})
}

// Files that a skill has no more are removed, if they are as we wrote them.
func TestDroppedFiles(t *testing.T) {
	o := options(t)
	mustSync(t, o, content("a/x", "a/y"))
	write(t, "changed", o.Base, "mcp-skills/a-y/references/schema.json")
	c := content("a/x", "a/y")
	for i := range c.Skills {
		c.Skills[i].Files = c.Skills[i].Files[1:]
	}
	r := mustSync(t, o, c)
	same(t, "Kept", kept(r), []string{"mcp-skills/a-y/references/schema.json"})
	same(t, "Written", r.Written, []string{"a-x"})
	if _, err := os.Stat(filepath.Join(o.Base, "mcp-skills/a-x/references")); err == nil {
		t.Error("the folder of a dropped file is still there")
	}
	if r := mustSync(t, o, c); r.Stale {
		t.Errorf("a second sync changes something: %+v", r)
	}
}

// A folder with our metadata is ours without a lock; another server's is not.
func TestAdoption(t *testing.T) {
	o := options(t)
	mustSync(t, o, content("a/x", "a/y"))
	remove(t, o.Base, lockName)
	replace(t, `mcp_server_id: "a"`, `mcp_server_id: "b"`, o.Base, "mcp-skills/a-y/SKILL.md")
	r := mustSync(t, o, content("a/x", "a/y"))
	same(t, "Kept", kept(r), []string{"mcp-skills/a-y"})
	same(t, "Written", r.Written, []string{"a-x"}) // again, because nothing says that it is up to date
}

// Skills as they are really rendered are known again without a lock, and keep
// edited descriptions, one skill a tool as well as one a server.
func TestRendered(t *testing.T) {
	catalog := mcpclient.Catalog{Server: "my.Server", Tools: []mcpclient.Tool{
		{Name: "getUserData", Description: "Gets --- the user's \"data\".\n\nAll of it.",
			InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "listFiles", InputSchema: json.RawMessage(`{"type":"object","properties":{"dir":{"type":"string"}},` +
			`"required":["dir"]}`)},
	}}
	for _, grouped := range []bool{false, true} {
		skills, _ := skill.Render([]mcpclient.Catalog{catalog}, skill.Options{GroupByServer: grouped})
		if len(skills) == 0 {
			t.Fatal("nothing was rendered")
		}
		o := options(t)
		r := mustSync(t, o, Content{Skills: skills})
		for _, sk := range skills {
			path := filepath.Join("mcp-skills", sk.Name, "SKILL.md")
			if got := skill.FrontmatterServer([]byte(read(t, o.Base, path))); got != sk.Server {
				t.Errorf("skill.FrontmatterServer(%s) = %q, want %q", path, got, sk.Server)
			}
		}
		remove(t, o.Base, lockName)
		again := mustSync(t, o, Content{Skills: skills})
		same(t, "Written again", again.Written, r.Written)
		path := filepath.Join("mcp-skills", skills[0].Name, "SKILL.md")
		edited, err := skill.SetFrontmatterDescription([]byte(read(t, o.Base, path)), "Better: # so.")
		if err != nil {
			t.Fatal(err)
		}
		write(t, string(edited), o.Base, path)
		mustSync(t, o, Content{Skills: skills})
		same(t, "the edited file", read(t, o.Base, path), string(edited))
		if r := mustSync(t, o, Content{Skills: skills}); r.Stale {
			t.Errorf("a second sync changes something: %+v", r)
		}
	}
}
