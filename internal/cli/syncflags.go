package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"knowhow/internal/mcpsettings"
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
	settings, outputDir  string
	skillsDirs           []string
	force, check, dryRun bool
	strict               bool
	groupBy, description string
	include, exclude     []string
	level                slog.Level
	timeout              time.Duration
	port                 int           // of start
	idleTimeout          time.Duration // of start
	token                string        // of start
}

const defaultOutputDir = "mcp-skills"

// define declares the flags of sync in f.
func (o *syncFlags) define(f *flagSet) {
	f.Path(&o.settings, flag{Name: "mcp-settings", Value: "FILE",
		Help: "required: settings file that lists the MCP servers, in the format of Claude, Cursor, VS Code, Codex, Gemini, OpenCode or others"})
	f.Path(&o.outputDir, flag{Name: "output-dir", Value: "DIR", Default: defaultOutputDir, Help: "folder for the generated skills"})
	f.Paths(&o.skillsDirs, flag{Name: "skills-dir", Value: "DIR",
		Help: "folder for links to the skills, for example .claude/skills; by default the folders of the last sync, or skills"})
	f.Bool(&o.force, flag{Name: "force-refresh", Help: "write all skills again, and undo edits of descriptions"})
	f.Bool(&o.check, flag{Name: "check", Help: "change nothing; exit with status 1 if a skill is stale"})
	f.Bool(&o.dryRun, flag{Name: "dry-run", Help: "change nothing; print what would change"})
	f.Choice(&o.groupBy, flag{Name: "group-by", Help: "write one skill for each tool or for each server"}, "tool", "server")
	f.Choice(&o.description, flag{Name: "description", Help: "how much of a tool's description agents see in the list of skills"}, "first-sentence", "full")
	f.Globs(&o.include, flag{Name: "include", Value: "GLOB", Help: "only these tools, as TOOL or SERVER/TOOL"})
	f.Globs(&o.exclude, flag{Name: "exclude", Value: "GLOB", Help: "leave out these tools"})
	f.Bool(&o.strict, flag{Name: "strict", Help: "exit with status 1 if any server fails, not only if all do"})
	f.Duration(&o.timeout, flag{Name: "timeout", Value: "DURATION", Default: "30s", Help: "time limit for starting a server, and for one call"})
	f.Func(flag{Name: "log-level", Value: "LEVEL", Default: "INFO", Env: "KNOWHOW_LOG_LEVEL", Help: "DEBUG, INFO, WARN or ERROR"}, func(s string) error {
		if !slices.Contains([]string{"DEBUG", "INFO", "WARN", "ERROR"}, strings.ToUpper(s)) {
			return errors.New("want DEBUG, INFO, WARN or ERROR")
		}
		return o.level.UnmarshalText([]byte(s))
	})
}

// required checks the flags that have no default.
func (f *syncFlags) required(v *invocation) error {
	if f.settings == "" {
		e := v.usagef("--mcp-settings is missing: name the file that lists the MCP servers")
		e.hint = "For example: " + v.name + " --mcp-settings mcp_settings.json"
		return e
	}
	return nil
}

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
	words := []string{program, "start", "--mcp-settings", f.settings}
	if f.outputDir != "" && f.outputDir != defaultOutputDir {
		words = append(words, "--output-dir", f.outputDir)
	}
	if f.groupBy == "server" {
		words = append(words, "--group-by", "server")
	}
	if f.description == "full" {
		words = append(words, "--description", "full")
	}
	for _, glob := range f.include {
		words = append(words, "--include", glob)
	}
	for _, glob := range f.exclude {
		words = append(words, "--exclude", glob)
	}
	return words
}

// keeps reports whether the flags permit a tool.
func (f *syncFlags) keeps(server, tool string) bool {
	return (len(f.include) == 0 || matchesAny(f.include, server, tool)) && !matchesAny(f.exclude, server, tool)
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
