package mcpsettings

import (
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// examples contain one line of a correct file for each dialect.
var examples = map[string]string{
	"claude": `{"mcpServers":{"files":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem",` +
		`"."]},"web":{"url":"https://example.com/mcp"}}}`,
	"vscode": `{"servers":{"files":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem",` +
		`"."]},"web":{"type":"http","url":"https://example.com/mcp"}}}`,
	"codex": `mcp_servers.files = { command = "npx", args = ["-y", "@modelcontextprotocol/server-filesystem", ` +
		`"."] }`,
	"gemini": `{"mcpServers":{"files":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem",` +
		`"."]},"web":{"httpUrl":"https://example.com/mcp"}}}`,
	"opencode": `{"mcp":{"files":{"type":"local","command":["npx","-y","@modelcontextprotocol/server-filesystem",` +
		`"."]},"web":{"type":"remote","url":"https://example.com/mcp"}}}`,
	"zed": `{"context_servers":{"files":{"command":"npx","args":["-y",` +
		`"@modelcontextprotocol/server-filesystem","."]},"web":{"url":"https://example.com/mcp"}}}`,
	"bare": `{"files":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","."]},` +
		`"web":{"url":"https://example.com/mcp"}}`,
}

// places are the keys that contain the servers; the first one in a file counts.
// Gemini CLI has "mcp" besides "mcpServers". VS Code has its servers in
// mcp.json, in settings.json, in a workspace file and in a devcontainer.json.
// OpenCode 2 has them in "mcp.servers" like VS Code; the entries distinguish
// the two.
var places = []struct{ path, dialect string }{
	{"mcpServers", "claude"},
	{"servers", "vscode"},
	{"mcp_servers", "codex"},
	{"context_servers", "zed"},
	{"mcp/mcpServers", "claude"},
	{"mcp/servers", "vscode"},
	{"mcp.servers", "vscode"},
	{"amp.mcpServers", "claude"},
	{"settings/mcp/servers", "vscode"},
	{"customizations/vscode/mcp/servers", "vscode"},
	{"customizations/vscode/settings/mcp/servers", "vscode"},
	{"mcp", "opencode"},
}

// find returns the object that contains the servers, with its path as the name,
// and sets the dialect.
func (s *source) find(root node) (member, error) {
	if root.kind != object {
		return member{}, s.mismatch(root, "", "an object")
	}
	for _, p := range places {
		found, err := s.walk(root, strings.Split(p.path, "/"))
		if err != nil {
			return member{}, err
		}
		if found.value.kind == "" {
			continue
		}
		s.dialect = p.dialect
		if found.value.kind != object {
			return member{}, s.mismatch(found.value, found.name, "an object with a key for each server")
		}
		s.dialect = refine(p.dialect, root, found.value)
		return found, nil
	}
	if isBare(root) {
		s.dialect = "bare"
		return member{value: root}, nil
	}
	hint := ""
	for _, m := range root.members {
		keys := []string{"mcpServers", "servers", "mcp_servers", "context_servers"}
		if near := spell.Near(m.name, keys, 1); len(near) > 0 {
			hint = "; is " + spell.Quote(m.name) + " meant to be " + spell.Quote(near[0]) + "?"
			break
		}
	}
	if s.toml {
		s.dialect = "codex"
	}
	return member{}, s.fail(root.at, "",
		`no MCP servers in the file, want a key "mcpServers" (Claude, Cursor, Gemini CLI), "servers" (VS Code), `+
			`"mcp_servers" (Codex), "context_servers" (Zed) or "mcp" (OpenCode)%s`, hint)
}

// walk returns the value at a path of keys. The zero member means that there is
// none. It is an error if the last key is given twice.
func (s *source) walk(from node, keys []string) (member, error) {
	m := member{value: from}
	for _, k := range keys {
		if m.value.kind != object {
			return member{}, nil
		}
		path, parent := key(m.name, k), m.value
		next := slices.IndexFunc(parent.members, func(m member) bool { return m.name == k })
		if next < 0 {
			return member{}, nil
		}
		for _, other := range parent.members[next+1:] {
			if other.name == k {
				return member{}, s.fail(other.at, path, "given twice; put the two together")
			}
		}
		m = member{path, parent.members[next].at, parent.members[next].value}
	}
	return m, nil
}

// refine distinguishes dialects that have their servers in the same place.
func refine(dialect string, root, servers node) string {
	has := func(e node, names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := e.get(n); return ok })
	}
	switch mcp, _ := root.get("mcp"); dialect {
	case "claude":
		if has(mcp, "allowed", "excluded", "serverCommand") {
			return "gemini"
		}
		for _, m := range servers.members {
			if has(m.value, "httpUrl", "includeTools", "excludeTools", "trust") {
				return "gemini"
			}
		}
	case "vscode":
		for _, m := range servers.members {
			how, _ := m.value.get("type")
			command, _ := m.value.get("command")
			if how.text == "local" || how.text == "remote" || command.kind == list || has(m.value, "environment") {
				return "opencode"
			}
		}
	}
	return dialect
}

// isBare reports whether root itself is the map of servers: every object in it
// looks like one.
func isBare(root node) bool {
	servers := 0
	for _, m := range root.members {
		if m.value.kind != object {
			continue
		}
		if !slices.ContainsFunc(m.value.members, func(m member) bool {
			return slices.Contains([]string{"command", "url", "serverUrl", "httpUrl", "disabled", "enabled"}, m.name)
		}) {
			return false
		}
		servers++
	}
	return servers > 0
}
