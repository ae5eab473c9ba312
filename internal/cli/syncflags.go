package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"

	"knowhow/internal/mcpsettings"
)

const syncFlagsHelp = `  --mcp-settings FILE    settings that name the MCP servers (required); the files of
                         Claude, Cursor, VS Code, Codex, Gemini and OpenCode will do
  --output-dir DIR       where skills are generated (mcp-skills)
  --skills-dir DIR       where links to them go; repeatable, for example
                         .claude/skills and .agents/skills (where the last sync
                         put them, or else skills)
  --force-refresh        write all skills again, and undo edits of descriptions
  --check                change nothing; end with 1 if a skill is stale
  --dry-run              change nothing; say what would change
  --group-by KIND        one skill a tool, or one skill a server (tool)
  --description KIND     first-sentence or full, in the list that agents see
  --include GLOB         only these tools, as TOOL or SERVER/TOOL; repeatable
  --exclude GLOB         without these tools; repeatable
  --strict               end with 1 if any server fails, not only if all do
  --timeout DURATION     limit of a server's start, and of one call to it (30s)
  --log-level LEVEL      DEBUG, INFO, WARN or ERROR (INFO)
`

const syncHelp = `Usage: {cmd} --mcp-settings FILE [FLAGS]

Asks MCP servers for their tools and writes each as an Agent Skill (SKILL.md),
which an agent loads only when it needs it. Links to the skills go to skills/,
what was generated is remembered in mcp_settings.lock.

Flags:
` + syncFlagsHelp + `
Examples:
  {cmd} --mcp-settings mcp_settings.json
  {cmd} --mcp-settings ~/.claude.json --skills-dir .claude/skills --group-by server
  {cmd} --mcp-settings mcp_settings.json --check
`

// syncFlags are the flags of sync, which start has too.
type syncFlags struct {
	settings, outputDir  string
	skillsDirs           list
	force, check, dryRun bool
	strict               bool
	groupBy, description *choice
	include, exclude     list
	level                *levelFlag
	timeout              time.Duration
	port                 int           // of start
	idleTimeout          time.Duration // of start
	token                string        // of start
}

// define makes set the flags of f, with their defaults.
func (f *syncFlags) define(set *flag.FlagSet) {
	f.groupBy = newChoice("tool", "server")
	f.description = newChoice("first-sentence", "full")
	f.level = new(levelFlag)
	set.StringVar(&f.settings, "mcp-settings", "", "")
	set.StringVar(&f.outputDir, "output-dir", "", "")
	set.Var(&f.skillsDirs, "skills-dir", "")
	set.BoolVar(&f.force, "force-refresh", false, "")
	set.BoolVar(&f.check, "check", false, "")
	set.BoolVar(&f.dryRun, "dry-run", false, "")
	set.BoolVar(&f.strict, "strict", false, "")
	set.Var(f.groupBy, "group-by", "")
	set.Var(f.description, "description", "")
	set.Var(globs{&f.include}, "include", "")
	set.Var(globs{&f.exclude}, "exclude", "")
	set.Var(f.level, "log-level", "")
	f.timeout = 30 * time.Second
	set.Var((*positiveDuration)(&f.timeout), "timeout", "")
}

// required checks what no default can stand for.
func (f *syncFlags) required(v *invocation) error {
	if f.settings == "" {
		e := v.usagef("--mcp-settings is missing: name the file that lists the MCP servers")
		e.hint = "For example: " + v.name + " --mcp-settings mcp_settings.json"
		return e
	}
	return nil
}

// configHash is the hash of everything but the servers' answers that decides
// what is generated: as long as it is the same, so are the skills of servers that
// have not changed.
func (f *syncFlags) configHash(program string, settings *mcpsettings.Settings) string {
	// Strings and lists: marshalling cannot fail.
	data, _ := json.Marshal([]any{settings.Hash(), version(), f.startCommand(program)})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// startCommand returns the words of the command that starts the bridge to the
// same servers and generates the same skills. Where links go the lock file knows.
func (f *syncFlags) startCommand(program string) []string {
	words := []string{program, "start", "--mcp-settings", f.settings}
	if f.outputDir != "" {
		words = append(words, "--output-dir", f.outputDir)
	}
	if f.groupBy.value == "server" {
		words = append(words, "--group-by", "server")
	}
	if f.description.value == "full" {
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

// keeps reports whether the flags let a tool through.
func (f *syncFlags) keeps(server, tool string) bool {
	return (len(f.include) == 0 || matchesAny(f.include, server, tool)) && !matchesAny(f.exclude, server, tool)
}

// matchesAny reports whether one of the patterns matches a tool, by its name or as
// SERVER/TOOL.
func matchesAny(patterns []string, server, tool string) bool {
	for _, p := range patterns {
		serverPattern, toolPattern, both := strings.Cut(p, "/")
		if !both {
			serverPattern, toolPattern = "*", p
		}
		// A name may hold a slash, which "*" would not match.
		plain := strings.NewReplacer("/", "_")
		s, _ := path.Match(serverPattern, server) // checked when the flag was read
		t, _ := path.Match(plain.Replace(toolPattern), plain.Replace(tool))
		if s && t {
			return true
		}
	}
	return false
}

// globs is a flag.Value that takes patterns.
type globs struct{ *list }

// Set adds a pattern.
func (g globs) Set(s string) error {
	if _, err := path.Match(s, ""); err != nil || s == "" {
		return errors.New(`want a pattern such as "get_*" or "github/*"`)
	}
	return g.list.Set(s)
}

// A levelFlag is a flag.Value that takes a log level in any case.
type levelFlag struct{ slog.Level }

// Set sets the level.
func (l *levelFlag) Set(s string) error {
	switch strings.ToUpper(s) {
	case "DEBUG", "INFO", "WARN", "ERROR":
		return l.UnmarshalText([]byte(s))
	}
	return errors.New("want DEBUG, INFO, WARN or ERROR")
}

// A positiveDuration is a flag.Value that takes a Go duration above zero.
type positiveDuration time.Duration

// String returns the duration as Set takes it.
func (d *positiveDuration) String() string { return time.Duration(*d).String() }

// Set sets the duration.
func (d *positiveDuration) Set(s string) error {
	value, err := time.ParseDuration(s)
	if err != nil || value <= 0 {
		return fmt.Errorf("want a duration such as 30s or 5m")
	}
	*d = positiveDuration(value)
	return nil
}
