package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/invoke"
	"knowhow/internal/mcpclient"
	"knowhow/internal/mcpsettings"
	"knowhow/internal/spell"
	"knowhow/internal/terminal"
)

const callHelp = `Usage: {cmd} [FLAGS] SERVER/TOOL [KEY=VALUE ...]
       {cmd} [FLAGS] SERVER/TOOL '{"KEY": VALUE, ...}'

Calls a tool of an MCP server and prints what it answers: through a running
bridge if there is one, else by starting the server for this one call.

A VALUE is what the tool's schema asks for: text as it is, and numbers, lists and
objects as JSON. A KEY that takes a list may be given several times. All arguments
can also be given as one JSON object, or with "-" be read from standard input.

Flags:
  --mcp-settings FILE    call the server directly, as these settings say; where no
                         bridge runs, mcp_settings.json and .mcp.json are tried
  --bridge-url URL       the bridge to call through (MCP_BRIDGE_URL,
                         http://127.0.0.1:3333)
  --json                 print the whole result as JSON, not its text alone
  --timeout DURATION     how long to wait for the server to start, and then for the
                         answer (30s)

Environment:
  MCP_BRIDGE_TOKEN       token that the bridge asks for

Examples:
  {cmd} everything/echo message=hello
  {cmd} --mcp-settings mcp_settings.json files/read_file path=README.md
  {cmd} github/search_issues query=leak labels=bug labels=ui limit=5
  {cmd} everything/echo '{"message": "hello"}'
  {cmd} everything/echo - <arguments.json
`

// startTime is how long a server may take to start for one call, which adds to
// the time for the call itself.
const startTime = time.Minute

// defaultSettings are the files that call looks for in the working directory.
var defaultSettings = [...]string{"mcp_settings.json", ".mcp.json"}

// A calling is one call of a tool.
type calling struct {
	*invocation
	settings, bridgeURL string
	json                bool
	timeout             time.Duration
	server, tool        string
	arguments           []string // KEY=VALUE, or one of "-" and a JSON object
}

// runCall calls a tool.
func runCall(ctx context.Context, v *invocation, args []string) error {
	c := &calling{invocation: v, timeout: 30 * time.Second}
	set := v.newFlags()
	set.StringVar(&c.settings, "mcp-settings", "", "")
	set.StringVar(&c.bridgeURL, "bridge-url", v.get("MCP_BRIDGE_URL"), "")
	set.BoolVar(&c.json, "json", false, "")
	set.Var((*positiveDuration)(&c.timeout), "timeout", "")
	if err := v.parse(set, args, c.operand); err != nil {
		return err
	}
	if c.server == "" {
		return v.usagef("SERVER/TOOL is missing")
	}
	backend, err := c.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.call(ctx, backend), backend.close(ctx))
}

// operand takes SERVER/TOOL, then the arguments.
func (c *calling) operand(s string) error {
	if c.server == "" {
		server, tool, ok := strings.Cut(s, "/")
		if !ok || server == "" || tool == "" {
			return c.usagef("got %q, want SERVER/TOOL first, such as everything/echo", s)
		}
		c.server, c.tool = server, tool
		return nil
	}
	key, _, pair := strings.Cut(s, "=")
	pair = pair && key != "" && !isWhole(s)
	if !pair && !isWhole(s) {
		return c.usagef("got %q, want KEY=VALUE, or one JSON object, or - for one on standard input", s)
	}
	if len(c.arguments) > 0 && (!pair || isWhole(c.arguments[0])) {
		return c.usagef("got %q besides %q: a JSON object, or -, stands alone", s, c.arguments[0])
	}
	c.arguments = append(c.arguments, s)
	return nil
}

// isWhole reports whether an operand stands for all arguments.
func isWhole(s string) bool { return s == "-" || strings.HasPrefix(s, "{") }

// A callBackend is a way to reach servers. Both methods return errors of the
// kinds that [mcpclient.Pool] has.
type callBackend interface {
	tools(ctx context.Context, server string) ([]invoke.Tool, error)
	call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error)
	close(ctx context.Context) error
}

// connect chooses the way: a bridge that was named, or else settings that were
// named, or else a bridge that runs, or else settings that lie here.
func (c *calling) connect(ctx context.Context) (callBackend, error) {
	url := c.bridgeURL
	if url == "" {
		if c.settings != "" {
			return c.direct(c.settings)
		}
		url = fmt.Sprintf("http://127.0.0.1:%d", defaultBridgePort)
	}
	client, err := invoke.NewClient(invoke.ClientOptions{URL: url, Token: c.get("MCP_BRIDGE_TOKEN"), Timeout: startTime + c.timeout})
	if err != nil {
		return nil, c.usagef("--bridge-url: %s", errkind.Message(err))
	}
	err = client.Probe(ctx)
	if err == nil {
		return bridgeBackend{client}, nil
	}
	if c.settings != "" {
		return c.direct(c.settings)
	}
	if c.bridgeURL == "" {
		for _, name := range defaultSettings {
			if fileExists(name) {
				return c.direct(name)
			}
		}
	}
	return nil, &hintError{fmt.Errorf("no bridge answers at %s: %w", url, err),
		"Start one (start --mcp-settings FILE), or call the server directly with --mcp-settings FILE."}
}

// direct returns a backend that starts servers itself.
func (c *calling) direct(settings string) (callBackend, error) {
	loaded, err := mcpsettings.Load(settings, c.Lookup)
	if err != nil {
		return nil, err
	}
	log := slog.New(terminal.NewHandler(c.stderr, slog.LevelWarn))
	return poolBackend{mcpclient.New(mcpclient.Options{Servers: loaded.Servers, Log: log, Version: version(), CallTimeout: c.timeout, ConnectTimeout: c.timeout})}, nil
}

// call calls the tool and prints the result.
func (c *calling) call(ctx context.Context, backend callBackend) error {
	tools, err := backend.tools(ctx, c.server)
	if err != nil {
		return err
	}
	var names []string
	var tool *invoke.Tool
	for i, t := range tools {
		names = append(names, t.Name)
		if t.Name == c.tool {
			tool = &tools[i]
		}
	}
	if tool == nil {
		hint := fmt.Sprintf("It has %s.", terminal.Plural(len(tools), "tool"))
		if near := spell.Near(c.tool, names, 3); len(near) > 0 {
			hint = fmt.Sprintf("Did you mean %s?", terminal.Printable(strings.Join(near, ", ")))
		}
		return &hintError{fmt.Errorf("server %q has no tool %q: %w", c.server, c.tool, errkind.NotFound), hint}
	}
	arguments, err := c.readArguments(tool)
	if err != nil {
		return err
	}
	result, err := backend.call(ctx, c.server, c.tool, arguments)
	if err != nil {
		return err
	}
	return c.print(result)
}

// maxArguments bounds what is read from standard input: what the bridge takes.
const maxArguments = 4 << 20

// readArguments makes the tool's arguments of what was given.
func (c *calling) readArguments(tool *invoke.Tool) (json.RawMessage, error) {
	if len(c.arguments) == 0 || !isWhole(c.arguments[0]) {
		arguments, err := invoke.Arguments(tool.InputSchema, c.arguments)
		if err != nil {
			return nil, c.usagef("%s", errkind.Message(err))
		}
		return arguments, nil
	}
	data, where := []byte(c.arguments[0]), "the operand"
	if c.arguments[0] == "-" {
		var err error
		if data, err = io.ReadAll(io.LimitReader(c.stdin, maxArguments+1)); err != nil {
			return nil, fmt.Errorf("reading the arguments from standard input: %w", err)
		}
		where = "standard input"
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil || len(data) > maxArguments {
		return nil, c.usagef("%s is no JSON object of at most 4 MiB", where)
	}
	return data, nil
}

// print prints a result: its text, or all of it as JSON. A tool that says that
// it failed makes the command fail.
func (c *calling) print(result json.RawMessage) error {
	var r struct {
		Content []struct {
			Type, Text, MIMEType string
			Data                 string
		} `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           bool            `json:"isError"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	var text strings.Builder
	for _, block := range r.Content {
		switch {
		case block.Type == "text":
			text.WriteString(strings.TrimSuffix(block.Text, "\n") + "\n")
		default:
			fmt.Fprintf(&text, "[%s %s, shown by --json]\n", terminal.Printable(block.Type), terminal.Printable(block.MIMEType))
		}
	}
	if len(r.Content) == 0 && len(r.StructuredContent) > 0 {
		text.Write(append(r.StructuredContent, '\n'))
	}
	switch {
	case c.json:
		if _, err := fmt.Fprintf(c.stdout, "%s\n", result); err != nil {
			return err
		}
		if r.IsError {
			return errors.New("the tool says that it failed")
		}
		return nil
	case r.IsError:
		return fmt.Errorf("the tool failed: %s", strings.TrimSpace(text.String()))
	}
	_, err := io.WriteString(c.stdout, text.String())
	return err
}

// poolBackend starts servers itself.
type poolBackend struct{ pool *mcpclient.Pool }

func (b poolBackend) tools(ctx context.Context, server string) ([]invoke.Tool, error) {
	catalog, err := b.pool.Catalog(ctx, server)
	if err != nil {
		return nil, err
	}
	tools := make([]invoke.Tool, 0, len(catalog.Tools))
	for _, t := range catalog.Tools {
		tools = append(tools, invoke.Tool{Name: t.Name, InputSchema: t.InputSchema})
	}
	return tools, nil
}

func (b poolBackend) call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return nil, err
	}
	return b.pool.Call(ctx, server, "tools/call", params)
}

func (b poolBackend) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), disconnectTime)
	defer cancel()
	return b.pool.Close(ctx)
}

// bridgeBackend calls through a running bridge.
type bridgeBackend struct{ *invoke.Client }

func (b bridgeBackend) tools(ctx context.Context, server string) ([]invoke.Tool, error) {
	return b.Tools(ctx, server)
}

func (b bridgeBackend) call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	return b.Call(ctx, server, tool, arguments)
}

func (bridgeBackend) close(context.Context) error { return nil }
