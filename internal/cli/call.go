package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/invoke"
	"knowhow/internal/mcpclient"
	"knowhow/internal/mcpsettings"
	"knowhow/internal/sanitize"
)

const callHelp = `Usage: {cmd} [FLAGS] SERVER/TOOL [KEY=VALUE ...]
       {cmd} [FLAGS] SERVER/TOOL '{"KEY": VALUE, ...}'

Calls a tool of an MCP server and prints the result. The call uses a running
bridge if there is one. Otherwise it starts the server for this call.

A VALUE must match the tool's schema: text is written as it is, and numbers, lists
and objects as JSON. A KEY that takes a list may be given several times. All
arguments can also be given as one JSON object. With "-", that is read from
standard input.

{flags}

Examples:
  {cmd} everything/echo message=hello
  {cmd} --mcp-settings mcp_settings.json files/read_file path=README.md
  {cmd} github/search_issues query=leak labels=bug labels=ui limit=5
  {cmd} everything/echo '{"message": "hello"}'
  {cmd} everything/echo - <arguments.json
`

// startTime is the time limit for starting a server for one call, in addition
// to the time limit of the call.
const startTime = time.Minute

// defaultSettings are the files that call looks for in the working directory.
var defaultSettings = [...]string{"mcp_settings.json", ".mcp.json"}

// A calling is one call of a tool.
type calling struct {
	*invocation
	settings, bridgeURL, token string
	json                       bool
	timeout                    time.Duration
	server, tool               string
	arguments                  []string // KEY=VALUE, or one of "-" and a JSON object
}

// callCommand calls a tool.
func callCommand(v *invocation, f *flagSet) func(context.Context) error {
	c := &calling{invocation: v}
	f.Path(&c.settings, flag{Name: "mcp-settings", Value: "FILE",
		Help: "start the server from this settings file; if no bridge is running, mcp_settings.json and .mcp.json in the working directory are tried"})
	f.String(&c.bridgeURL, flag{Name: "bridge-url", Value: "URL", Env: "MCP_BRIDGE_URL",
		Help: fmt.Sprintf("bridge to call through; by default http://127.0.0.1:%s", defaultBridgePort)})
	f.Bool(&c.json, flag{Name: "json", Help: "print the whole result as JSON, not only its text"})
	f.Duration(&c.timeout, flag{Name: "timeout", Value: "DURATION", Default: "30s", Help: "time limit for starting the server, and for the call"})
	f.Token(&c.token, flag{Env: "MCP_BRIDGE_TOKEN", aliasEnv: "KNOWHOW_TOKEN", Help: "token that the bridge requires"})
	f.operand = c.operand
	return func(ctx context.Context) error {
		if c.server == "" {
			return v.usagef("SERVER/TOOL is missing")
		}
		caller, closePool, err := c.connect(ctx)
		if err != nil {
			return err
		}
		return errors.Join(c.call(ctx, caller), closePool(ctx))
	}
}

// operand parses SERVER/TOOL, then the arguments.
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
		return c.usagef("got %q besides %q: a JSON object, or -, must be the only argument", s, c.arguments[0])
	}
	c.arguments = append(c.arguments, s)
	return nil
}

// isWhole reports whether an operand contains all arguments.
func isWhole(s string) bool { return s == "-" || strings.HasPrefix(s, "{") }

// connect chooses how to call the tool: through the named bridge, else with the
// named settings, else through a running bridge, else with settings in the
// working directory. The returned function ends what connect started.
func (c *calling) connect(ctx context.Context) (invoke.Caller, func(context.Context) error, error) {
	url := c.bridgeURL
	if url == "" {
		if c.settings != "" {
			return c.direct(c.settings)
		}
		url = "http://127.0.0.1:" + defaultBridgePort
	}
	client, err := invoke.NewClient(invoke.ClientOptions{URL: url, Token: c.token, Timeout: startTime + c.timeout})
	if err != nil {
		return nil, nil, c.usagef("--bridge-url: %s", errkind.Message(err))
	}
	err = client.Probe(ctx)
	if err == nil {
		return client, func(context.Context) error { return nil }, nil
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
	return nil, nil, &hintError{fmt.Errorf("no bridge answers at %s: %w", url, err),
		fmt.Sprintf("Start one with: %s start --mcp-settings FILE, or call the server directly with --mcp-settings FILE.", c.Program)}
}

// direct returns a caller that starts servers itself.
func (c *calling) direct(settings string) (invoke.Caller, func(context.Context) error, error) {
	loaded, err := mcpsettings.Load(settings, c.Lookup)
	if err != nil {
		return nil, nil, err
	}
	log := c.warnings()
	pool := mcpclient.New(mcpclient.Options{Servers: loaded.Servers, Log: log, Version: version(), CallTimeout: c.timeout, ConnectTimeout: c.timeout})
	return invoke.Direct{Pool: pool}, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), disconnectTime)
		defer cancel()
		return pool.Close(ctx)
	}, nil
}

// call calls the tool and prints the result.
func (c *calling) call(ctx context.Context, caller invoke.Caller) error {
	tool, err := invoke.FindTool(ctx, caller, c.server, c.tool)
	if err != nil {
		return explainCall(err)
	}
	arguments, err := c.readArguments(ctx, tool)
	if err != nil {
		return err
	}
	result, err := caller.Call(ctx, c.server, c.tool, arguments)
	if err != nil {
		return explainCall(err)
	}
	return c.print(result)
}

// explainCall adds advice to the error of a call.
func explainCall(err error) error {
	unknown, ok := errors.AsType[*invoke.UnknownToolError](err)
	switch {
	case ok && len(unknown.Near)+len(unknown.Tools) == 0:
		return &hintError{err, "The server has no tools."}
	case ok && len(unknown.Near) == 0:
		return &hintError{err, fmt.Sprintf("The server has %s.", toolNames(unknown.Tools))}
	case ok && len(unknown.Tools) == 0:
		return &hintError{err, fmt.Sprintf("Did you mean %s?", toolNames(unknown.Near))}
	case ok:
		return &hintError{err, fmt.Sprintf("Did you mean %s? The server also has %s.", toolNames(unknown.Near), toolNames(unknown.Tools))}
	case errkind.ReasonOf(err) == invoke.TokenReason:
		return &hintError{err, "Set MCP_BRIDGE_TOKEN to the token of the bridge."}
	}
	return err
}

// toolNames lists some names of tools, which are those of a server.
func toolNames(names []string) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = sanitize.Short(name, 64, 256)
	}
	return someOf(shown)
}

// maxArguments limits the input from standard input to the limit of the bridge.
const maxArguments = 4 << 20

// readArguments returns the arguments of the tool.
func (c *calling) readArguments(ctx context.Context, tool *invoke.Tool) (json.RawMessage, error) {
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
		if data, err = c.readInput(ctx, maxArguments+1); err != nil {
			return nil, fmt.Errorf("reading the arguments from standard input: %w", err)
		}
		where = "standard input"
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil || len(data) > maxArguments {
		return nil, c.usagef("%s is not a JSON object of at most 4 MiB", where)
	}
	return data, nil
}

// print prints a result: its text, or all of it as JSON. If the tool reports a
// failure, print returns an error.
func (c *calling) print(result json.RawMessage) error {
	var r invoke.Result
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	var text strings.Builder
	for _, block := range r.Content {
		switch {
		case block.Type == "text":
			text.WriteString(strings.TrimSuffix(block.Text, "\n") + "\n")
		default:
			fmt.Fprintf(&text, "[%s %s, shown with --json]\n", sanitize.Escape(block.Type), sanitize.Escape(block.MIMEType))
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
			return errors.New("the tool reported a failure")
		}
		return nil
	case r.IsError:
		return fmt.Errorf("the tool failed: %s", strings.TrimSpace(text.String()))
	}
	_, err := io.WriteString(c.stdout, text.String())
	return err
}
