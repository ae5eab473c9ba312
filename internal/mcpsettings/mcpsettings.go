// Package mcpsettings reads the files in which MCP clients keep their servers:
// those of Claude, Cursor, Windsurf, Cline, VS Code, Codex, Gemini CLI, OpenCode
// and Zed, all into one model. A file's content tells its dialect, never its
// name. Package mcpclient starts and calls the servers that are found here; the
// command line shows the warnings.
//
// What is wrong with the file as a whole, or with a server that is not switched
// off, is an error that says where and what is allowed. What other programs may
// have written for themselves is a warning. What only this machine lacks, such
// as an environment variable, is the Problem of one server.
package mcpsettings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"knowhow/internal/errkind"
)

// The values of Server.Transport.
const (
	Stdio = "stdio" // a program that is started and spoken to through its standard input and output
	HTTP  = "http"  // streamable HTTP
	SSE   = "sse"   // HTTP with server-sent events, as of MCP 2024-11-05
)

const (
	// MaxSize is the largest file that is read, in bytes.
	MaxSize = 4 << 20

	// MaxServers is how many servers a file may name.
	MaxServers = 1000
)

// Settings are what a file says.
type Settings struct {
	Dialect  string   // "claude", "vscode", "codex", "gemini", "opencode", "zed", or "bare" for a map of servers with nothing around it
	Servers  []Server // sorted by ID; those that are switched off too
	Warnings []string // a sentence each, for people: what was not understood or is not used

	// Hash is 64 hexadecimal digits that change when what the file says about the
	// servers does: an id, a switch, and of the enabled ones everything in [Server]
	// that comes from the file. Placeholders count as they are written, so the
	// environment plays no part; nor do the order of keys, white space, comments,
	// and keys that are not used.
	//
	// Values that are secret by the look of their names (a token, a password, an
	// Authorization header, credentials in a URL) are left out of it, but for the
	// placeholders in them: nobody who knows the rest of the file learns anything
	// about them from the hash. So a new token alone does not change it.
	Hash string
}

// A Server is one MCP server. Of one that is disabled, texts are as the file
// has them, it may be incomplete, and its Problem is nil.
type Server struct {
	ID        string // 1 to 128 bytes without slashes, backslashes and control characters
	Disabled  bool
	Transport string            // Stdio, HTTP or SSE; "" where a disabled server does not say
	Command   string            // of Stdio: a name to look up or a path
	Args      []string          // of Stdio
	Env       map[string]string // of Stdio: added to the environment
	Dir       string            // of Stdio: where it runs; "" and relative paths mean the working directory
	URL       string            // of HTTP and SSE: absolute, http or https
	Headers   map[string]string // of HTTP and SSE
	Timeout   time.Duration     // for a call; 0 where the file does not say

	// Include and Exclude are patterns of tool names. No Include means all
	// tools; Exclude beats Include.
	Include, Exclude []string

	// Expanded are the names, never the values, of the environment variables
	// that were put in, sorted.
	Expanded []string

	// Problem is why this server cannot be used although the file is fine: all
	// the environment variables that are not set, for example. It is of kind
	// errkind.Invalid, and nil where there is none. Texts of a server with a
	// Problem may lack what was not there to put in.
	Problem error
}

// Load reads the file path as [Parse] does. An error is of kind
// errkind.NotFound where there is no file, else errkind.Invalid.
func Load(path string, getenv func(string) (string, bool)) (*Settings, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading MCP settings: there is no file %s; give the path of an existing file, or write one such as %s: %w",
			path, examples["claude"], errkind.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading MCP settings: %w (check the path and its permissions): %w", err, errkind.Invalid)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("reading MCP settings: %s is a folder; give the path of a file, for example %s: %w",
			path, filepath.Join(path, "mcp_settings.json"), errkind.Invalid)
	}
	// A pipe has no size to look at, so the reading itself is bounded.
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading MCP settings: %w: %w", err, errkind.Invalid)
	}
	return Parse(path, data, getenv)
}

// Parse reads the settings in data: JSON, which may have comments, trailing
// commas and a byte order mark, or TOML. path is what messages call the file,
// and its folder stands for the workspace. getenv looks up a variable as
// os.LookupEnv does; nil means that none is set. Errors are of kind
// errkind.Invalid.
//
// In the texts of enabled servers ${NAME}, ${env:NAME} and, for OpenCode,
// {env:NAME} stand for an environment variable that must be set; $NAME for one
// that may be, else it stays as it is; ${NAME:-text} for text where NAME is
// unset or empty; $$ for a dollar sign; ${workspaceFolder} and ${userHome} for
// folders. What was put in is not looked at again.
func Parse(path string, data []byte, getenv func(string) (string, bool)) (*Settings, error) {
	src := &source{path: path, dialect: "claude"}
	root, err := src.parse(data)
	if err != nil {
		return nil, err
	}
	found, err := src.find(root)
	if err != nil {
		return nil, err
	}
	d := &decoder{src: src, settings: &Settings{Dialect: src.dialect}}
	drafts, err := d.servers(root, found)
	if err != nil {
		return nil, err
	}
	var raw []Server
	if getenv == nil {
		getenv = func(string) (string, bool) { return "", false }
	}
	workspace := workspace(path)
	for _, r := range drafts {
		raw = append(raw, r.server)
		server := r.server
		if !server.Disabled {
			server, err = d.finish(r, newExpander(getenv, workspace, src.dialect == "opencode"))
		}
		if err != nil {
			return nil, err
		}
		d.settings.Servers = append(d.settings.Servers, server)
	}
	d.settings.Hash = hash(raw)
	switch {
	case d.more == 1:
		d.settings.Warnings = append(d.settings.Warnings, "there is 1 more warning of this sort")
	case d.more > 1:
		d.settings.Warnings = append(d.settings.Warnings, fmt.Sprintf("there are %d more warnings of this sort", d.more))
	}
	return d.settings, nil
}

// workspace returns what ${workspaceFolder} stands for: the folder of the file,
// or the one around it where that is a program's own, such as .vscode.
func workspace(path string) string {
	dir := filepath.Dir(path)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if base := filepath.Base(dir); len(base) > 1 && strings.HasPrefix(base, ".") && base != ".." {
		dir = filepath.Dir(dir)
	}
	return dir
}
