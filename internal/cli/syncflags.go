package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

const syncHelp = `Usage: {cmd} --mcp-settings FILE [FLAGS]

Writes each tool of the MCP servers as an Agent Skill (SKILL.md), which an agent
loads only when it needs it. Links to the skills are written to skills/. The lock
file mcp_settings.lock records what was generated.

{flags}

Examples:
  {cmd} --mcp-settings mcp_settings.json
  {cmd} --mcp-settings ~/.claude.json --skills-dir .claude/skills --group-by server
  {cmd} --mcp-settings mcp_settings.json --check
`

// syncFlags are the flags of sync, which start has too.
type syncFlags struct {
	Settings    filePath      `flag:"mcp-settings" value:"FILE" help:"required: settings file that lists the MCP servers, in the format of Claude, Cursor, VS Code, Codex, Gemini, OpenCode or others"`
	OutputDir   filePath      `flag:"output-dir" value:"DIR" default:"mcp-skills" help:"folder for the generated skills"`
	SkillsDirs  []filePath    `flag:"skills-dir" value:"DIR" help:"folder for links to the skills, for example .claude/skills; by default the folders of the last sync, or skills"`
	Force       bool          `flag:"force-refresh" help:"write all skills again, and undo edits of descriptions"`
	Check       bool          `flag:"check" help:"change nothing; exit with status 1 if a skill is stale"`
	DryRun      bool          `flag:"dry-run" help:"change nothing; print what would change"`
	GroupBy     string        `flag:"group-by" value:"tool|server" default:"tool" help:"write one skill for each tool or for each server"`
	Description string        `flag:"description" value:"first-sentence|full" default:"first-sentence" help:"how much of a tool's description agents see in the list of skills"`
	Include     globs         `flag:"include" value:"GLOB" help:"only these tools, as TOOL or SERVER/TOOL"`
	Exclude     globs         `flag:"exclude" value:"GLOB" help:"leave out these tools"`
	Strict      bool          `flag:"strict" help:"exit with status 1 if any server fails, not only if all do; start serves in either case"`
	Timeout     time.Duration `flag:"timeout" value:"DURATION" default:"30s" help:"time limit for starting a server, and for one call"`
	levelFlag   `standard:"info"`
}

// defaultOutputDir is the default of --output-dir.
const defaultOutputDir = "mcp-skills"

// configHash is the hash of all inputs of the skills except the answers of the
// servers. As long as it is the same, so are the skills of servers that have
// not changed.
func (f *syncFlags) configHash(program string, settings *mcpsettings.Settings) string {
	// strings and lists can always be encoded
	data, _ := json.Marshal([]any{settings.Hash, version(), f.startCommand(program)})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// startCommand returns the words of the command that starts the bridge to the
// same servers and generates the same skills. The folders of links are in the
// lock file.
func (f *syncFlags) startCommand(program string) []string {
	words := []string{program, "start", "--mcp-settings", string(f.Settings)}
	if f.OutputDir != "" && f.OutputDir != defaultOutputDir {
		words = append(words, "--output-dir", string(f.OutputDir))
	}
	if f.GroupBy == "server" {
		words = append(words, "--group-by", "server")
	}
	if f.Description == "full" {
		words = append(words, "--description", "full")
	}
	for _, glob := range f.Include {
		words = append(words, "--include", glob)
	}
	for _, glob := range f.Exclude {
		words = append(words, "--exclude", glob)
	}
	return words
}

// keeps reports whether the flags permit a tool.
func (f *syncFlags) keeps(server, tool string) bool {
	return (len(f.Include) == 0 || matchesAny(f.Include, server, tool)) && !matchesAny(f.Exclude, server, tool)
}

// matchesAny reports whether one of the patterns matches a tool, by its name or
// as SERVER/TOOL.
func matchesAny(patterns []string, server, tool string) bool {
	for _, p := range patterns {
		serverPattern, toolPattern, both := strings.Cut(p, "/")
		if !both {
			serverPattern, toolPattern = "*", p
		}
		// A name may contain a slash, which "*" does not match.
		plain := strings.NewReplacer("/", "_")
		s, _ := path.Match(serverPattern, server) // checked when the flag was parsed
		t, _ := path.Match(plain.Replace(toolPattern), plain.Replace(tool))
		if s && t {
			return true
		}
	}
	return false
}
