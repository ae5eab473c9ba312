// Package skill turns the tools of MCP servers into Agent Skills: directories
// with a SKILL.md that tell an agent what a tool is for and how to call it
// through the bridge, so that the schemas of a hundred tools need not lie in
// its context from the start. The package is pure: it takes catalogs and gives
// back files. The store below it writes them, the command line calls both.
//
// The files follow the Agent Skills specification (agentskills.io) and are
// accepted by its validator. Everything that a server says is foreign text: it
// is bounded, shown as a quotation, and never reaches a path.
package skill

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/mcpclient"
	"knowhow/internal/sanitize"
	"knowhow/internal/spell"
)

// Options say what kind of skills to render. The zero Options render one skill
// a tool with a short description.
type Options struct {
	// GroupByServer makes one skill a server, with references/TOOL.md a tool.
	GroupByServer bool

	// Description is "full" for as much of a tool's description as the
	// frontmatter may hold. Everything else, "" and "first-sentence" among
	// it, means its first sentence; clients list every skill's description at
	// start, some within 8,000 characters for all of them.
	Description string

	// Version is the generator's own, for the metadata.
	Version string

	// Start is the command, as words, that starts the bridge to these servers.
	// Nil means knowhow start --mcp-settings FILE.
	Start []string
}

// startCommand returns the command that starts the bridge, for a shell.
func (o Options) startCommand() string {
	words := o.Start
	if words == nil {
		words = []string{"knowhow", "start", "--mcp-settings", "FILE"}
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		if strings.ContainsFunc(w, sanitize.Invisible) {
			w = cleanLine(w, maxDescription)
		}
		quoted[i] = QuoteShell(w)
	}
	return strings.Join(quoted, " ")
}

// full reports whether descriptions are to be given whole.
func (o Options) full() bool { return o.Description == "full" }

// A Skill is one directory of files.
type Skill struct {
	// Name is the slug and the name of the directory: lower-case letters,
	// digits and single hyphens within, 1 to 64 characters.
	Name string

	Server      string   // id in the settings
	Tools       []string // names as the server spells them, sorted; one unless grouped by server
	Description string   // of the frontmatter: 1 to 1,024 characters on one line

	// SourceHash is the SHA-256 in hex of what the server said of the tools:
	// names, whole descriptions, schemas, hints and, where grouped, the
	// instructions. It changes when and only when one of these does.
	SourceHash string

	Files []File // sorted by Path
}

// A File is one file of a skill.
type File struct {
	Path    string // inside the skill's directory, with slashes: "SKILL.md", "references/schema.json"
	Content []byte
}

// maxToolName is the length in bytes up to which a tool's name is taken. MCP
// allows 128 characters.
const maxToolName = 512

// Render makes the skills of all tools, sorted by Name, and says in warnings,
// sorted too, which tools were left out or got a name other than the plain
// one. The result depends on what the catalogs hold, not on their order or on
// that of their tools. Servers without tools make no skill.
func Render(catalogs []mcpclient.Catalog, o Options) (skills []Skill, warnings []string) {
	sources, warnings := gather(catalogs)
	if o.GroupByServer {
		grouped, more := renderServers(sources, o)
		skills, warnings = grouped, append(warnings, more...)
	} else {
		claims := make([]claim, len(sources))
		for i, s := range sources {
			claims[i] = claimTool(s.catalog.Server, s.tool.Name)
		}
		names, more := assign(claims)
		warnings = append(warnings, more...)
		for i, s := range sources {
			skill, more := renderTool(s, names[i], o)
			skills, warnings = append(skills, skill), append(warnings, more...)
		}
	}
	slices.SortFunc(skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(warnings)
	return skills, warnings
}

// CatalogLine returns how many characters a client lists at start to name all
// the skills: a line "- name: description" each, with its line feed.
func CatalogLine(skills []Skill) (characters int) {
	for _, s := range skills {
		characters += len("- : \n") + utf8.RuneCountInString(s.Name) + utf8.RuneCountInString(s.Description)
	}
	return characters
}

// A source is one tool and the server that offers it.
type source struct {
	catalog *mcpclient.Catalog
	tool    *mcpclient.Tool
}

// hash returns the SHA-256 in hex of what the server said of the tool.
func (s source) hash() string {
	t := s.tool
	return digest(t.Name, t.Title, t.Description, string(t.InputSchema), string(t.OutputSchema),
		string(t.Annotations), t.TaskSupport, fmt.Sprint(s.catalog.TaskCalls))
}

// gather lists the tools that can be rendered, sorted by server and name. Of
// two with the same server and name it takes the one with the lesser hash,
// which is arbitrary but does not depend on the order.
func gather(catalogs []mcpclient.Catalog) (sources []source, warnings []string) {
	for i := range catalogs {
		c := &catalogs[i]
		for j := range c.Tools {
			t := &c.Tools[j]
			if t.Name == "" || len(t.Name) > maxToolName {
				warnings = append(warnings, fmt.Sprintf("a tool of server %s is left out: its name has %d bytes, want 1 to %d",
					spell.Quote(c.Server), len(t.Name), maxToolName))
				continue
			}
			sources = append(sources, source{c, t})
		}
	}
	slices.SortFunc(sources, func(a, b source) int {
		order := cmp.Or(cmp.Compare(a.catalog.Server, b.catalog.Server), cmp.Compare(a.tool.Name, b.tool.Name))
		if order == 0 {
			order = cmp.Compare(a.hash(), b.hash())
		}
		return order
	})
	kept := slices.CompactFunc(slices.Clone(sources), func(a, b source) bool {
		return a.catalog.Server == b.catalog.Server && a.tool.Name == b.tool.Name
	})
	if n := len(sources) - len(kept); n > 0 {
		text := fmt.Sprintf("%d tools are left out: their servers list them more than once", n)
		if n == 1 {
			text = "1 tool is left out: its server lists it more than once"
		}
		warnings = append(warnings, text)
	}
	return kept, warnings
}

// renderTool makes the skill of one tool.
func renderTool(s source, name string, o Options) (Skill, []string) {
	const schemaPath = "references/schema.json"
	p := newPage(s, schemaPath)
	skill := Skill{
		Name:        name,
		Server:      s.catalog.Server,
		Tools:       []string{s.tool.Name},
		Description: toolDescription(s, o),
		SourceHash:  s.hash(),
	}
	var b strings.Builder
	writeFrontmatter(&b, skill, o, []pair{
		{"mcp_server_id", s.catalog.Server},
		{"mcp_tool_name", s.tool.Name},
		{"mcp_bridge_version", o.Version},
		{"mcp_schema_sha256", schemaHash(s.tool)},
	})
	b.WriteByte('\n')
	p.write(&b, o)
	skill.Files = append(skill.Files, File{Path: "SKILL.md", Content: []byte(b.String())})
	if p.schema != nil {
		skill.Files = append(skill.Files, File{Path: schemaPath, Content: p.schema})
	}
	return skill, p.warnings
}

// toolDescription returns the description of a tool's frontmatter.
func toolDescription(s source, o Options) string {
	limit, text := maxSentence, firstSentence(s.tool.Description)
	if o.full() {
		limit, text = maxDescription, s.tool.Description
	}
	if d := plainLine(text, limit); d != "" {
		return d
	}
	return plainLine(fmt.Sprintf("Invoke MCP tool %s on server %s.", s.tool.Name, s.catalog.Server), maxDescription)
}

// schemaHash returns the SHA-256 in hex of a tool's input schema, byte for byte
// as the server wrote it; of {} where it gave none.
func schemaHash(t *mcpclient.Tool) string {
	raw := []byte(t.InputSchema)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// digest returns the SHA-256 in hex of one text as it is, or of several with
// their lengths, so that no two lists give the same.
func digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		if len(texts) > 1 {
			fmt.Fprintf(h, "%d\n", len(t))
		}
		h.Write([]byte(t))
	}
	return hex.EncodeToString(h.Sum(nil))
}
