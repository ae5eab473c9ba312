// Package mcpsettings reads the settings files of MCP clients: Claude, Cursor,
// Windsurf, Cline, VS Code, Codex, Gemini CLI, OpenCode and Zed, all into one
// model. The dialect of a file is determined by its content, never by its name.
// Package mcpclient starts and calls the servers in the settings; the command
// line shows the warnings.
//
// An error in the file as a whole, or in a server that is not disabled, is
// returned with its place and the permitted values. Settings that only other
// programs use cause a warning. If only this machine lacks something, such as
// an environment variable, it is the Problem of one server.
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

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Values of Server.Transport.
const (
	Stdio = "stdio" // a program that is started and communicates through its standard input and output
	HTTP  = "http"  // streamable HTTP
	SSE   = "sse"   // HTTP with server-sent events, as of MCP 2024-11-05
)

const (
	// MaxSize is the maximum size of a file, in bytes.
	MaxSize = 4 << 20

	// MaxServers is the maximum number of servers in a file.
	MaxServers = 1000
)

// Settings are the contents of a file.
type Settings struct {
	Dialect  string   // the name of a client, or "bare" for a map of servers at the top level
	Servers  []Server // sorted by ID, including disabled ones
	Warnings []string // sentences for users about what was not understood or is not used

	// Hash is 64 hexadecimal digits that change when the settings of the servers
	// change: an id, whether a server is enabled, and for enabled servers
	// everything in [Server] that comes from the file. Placeholders are hashed as
	// they are written, so the environment has no effect. The order of keys, white
	// space, comments and unused keys have no effect either.
	//
	// Values whose names are those of secrets (a token, a password, an
	// Authorization header, credentials in a URL) are not included, except for
	// the placeholders in them. So the hash reveals nothing about secrets to
	// readers who know the rest of the file, and does not change with a new token.
	Hash string
}

// A Server is one MCP server. If it is disabled, its texts are not expanded, it
// may be incomplete, and its Problem is nil.
type Server struct {
	ID        string // 1 to 128 bytes without slashes, backslashes and control characters
	Disabled  bool
	Transport string            // Stdio, HTTP or SSE; "" if a disabled server does not specify it
	Command   string            // of Stdio: a name on the PATH or a path
	Args      []string          // of Stdio
	Env       map[string]string // of Stdio: additional environment variables
	Dir       string            // of Stdio: its working directory; "" and relative paths refer to that of this program
	URL       string            // of HTTP and SSE: absolute, http or https
	Headers   map[string]string // of HTTP and SSE
	Timeout   time.Duration     // for a call; 0 if the file does not specify it

	// Include and Exclude are patterns of tool names. An empty Include means
	// all tools. Exclude takes precedence over Include.
	Include, Exclude []string

	// Expanded are the names, never the values, of the environment variables
	// that were expanded, sorted.
	Expanded []string

	// Problem is the reason why this server cannot be used although the file is
	// valid, for example environment variables that are not set. It is of kind
	// errkind.Invalid, or nil. The texts of a server with a Problem may be
	// incomplete.
	Problem error
}

// Load reads the file path like [Parse]. If there is no file, the error is of
// kind errkind.NotFound, otherwise of kind errkind.Invalid.
func Load(path string, getenv func(string) (string, bool)) (*Settings, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading MCP settings: there is no file %s; give the path of an existing file, or "+
			"write one such as %s: %w",
			path, examples["claude"], errkind.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading MCP settings: %w (check the path and its permissions): %w", err,
			errkind.Invalid)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("reading MCP settings: %s is a folder; give the path of a file, for example %s: %w",
			path, filepath.Join(path, "mcp_settings.json"), errkind.Invalid)
	}
	// A pipe has no size, so reading is limited too.
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading MCP settings: %w: %w", err, errkind.Invalid)
	}
	return Parse(path, data, getenv)
}

// Parse parses settings in data: TOML, or JSON, which may have comments,
// trailing commas and a byte order mark. path is the name of the file in
// messages, and its folder is the workspace. getenv looks up a variable like
// os.LookupEnv; nil means that none is set. Errors are of kind errkind.Invalid.
//
// The texts of enabled servers are expanded. ${NAME}, ${env:NAME} and, for
// OpenCode, {env:NAME} stand for an environment variable that must be set.
// $NAME is replaced if the variable is set, and kept otherwise. ${NAME:-text}
// is text if NAME is unset or empty. $$ stands for a dollar sign.
// ${workspaceFolder} and ${userHome} stand for folders. Values are not expanded
// again.
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
	return d.settings, nil
}

// workspace returns the value of ${workspaceFolder}: the folder of the file, or
// its parent if the folder belongs to a program, such as .vscode.
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
