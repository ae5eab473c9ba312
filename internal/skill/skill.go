// Package skill generates Agent Skills from the tools of MCP servers. A skill
// is a folder with a SKILL.md that tells an agent what a tool is for and how to
// call it through the bridge, so that the agent's context does not have to
// contain the schemas of all tools. The package is pure: it turns catalogs into
// files. Package store writes the files, and the command line calls both.
//
// The files follow the Agent Skills specification (agentskills.io) and are
// accepted by its validator. All text from a server is foreign: its length is
// limited, it is shown as a quotation, and it is never part of a path.
package skill

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// Options configure the rendering. The zero Options render one skill for each
// tool, with a short description.
type Options struct {
	// GroupByServer renders one skill for each server, with a file
	// references/TOOL.md for each tool.
	GroupByServer bool

	// Description is "full" for the complete description of a tool, up to the
	// limit of the frontmatter. Any other value, such as "" and
	// "first-sentence", means its first sentence. Clients list the descriptions
	// of all skills at start, some of them only 8,000 characters in total.
	Description string

	// Version is the version of the generator, for the metadata.
	Version string

	// Start is the command, as words, that starts the bridge to these servers.
	// nil means knowhow start --mcp-settings FILE.
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

// full reports whether descriptions are complete.
func (o Options) full() bool { return o.Description == "full" }

// A Skill is a folder of files.
type Skill struct {
	// Name is the slug and the name of the folder: lower-case letters, digits
	// and single hyphens between them, 1 to 64 characters.
	Name string

	Server      string   // id in the settings
	Tools       []string // names in the spelling of the server, sorted; one unless grouped by server
	Description string   // of the frontmatter: 1 to 1,024 characters on one line

	// SourceHash is the SHA-256 in hex of the server's data about the tools:
	// names, complete descriptions, schemas, hints and, if grouped, the
	// instructions. It changes if and only if one of these does.
	SourceHash string

	Files []File // sorted by Path
}

// A File is one file of a skill.
type File struct {
	Path    string // inside the skill's folder, with slashes: "SKILL.md", "references/schema.json"
	Content []byte
}

// maxToolName is the maximum length of a tool's name, in bytes. MCP permits 128
// characters.
const maxToolName = 512

// Render renders the skills of all tools, sorted by Name. The sorted warnings
// name the tools that were left out or did not get the plain name. The result
// does not depend on the order of the catalogs and tools. Servers without tools
// have no skill.
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

// CatalogLine returns the number of characters with which clients list a skill
// at start: the line "- name: description", including its line feed.
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

// hash returns the SHA-256 in hex of the server's data about the tool.
func (s source) hash() string {
	t := s.tool
	return digest(t.Name, t.Title, t.Description, string(t.InputSchema), string(t.OutputSchema),
		string(t.Annotations), t.TaskSupport, fmt.Sprint(s.catalog.TaskCalls))
}

// gather returns the tools that can be rendered, sorted by server and name. If
// a server lists a name twice, the tool with the lesser hash is used, which is
// arbitrary but independent of the order.
func gather(catalogs []mcpclient.Catalog) (sources []source, warnings []string) {
	for i := range catalogs {
		c := &catalogs[i]
		for j := range c.Tools {
			t := &c.Tools[j]
			if t.Name == "" || len(t.Name) > maxToolName {
				warnings = append(warnings, fmt.Sprintf("a tool of server %s is left out: its name has %d bytes, "+
					"want 1 to %d",
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

// renderTool renders the skill of one tool.
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

// toolDescription returns the description of a tool for the frontmatter.
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
// as the server wrote it, or of {} if there is none.
func schemaHash(t *mcpclient.Tool) string {
	raw := []byte(t.InputSchema)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// digest returns the SHA-256 in hex of a single text, or of several texts with
// their lengths, so that different lists have different digests.
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
