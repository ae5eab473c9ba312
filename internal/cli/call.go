package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/invoke"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
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

// A callCommand calls a tool.
type callCommand struct {
	Settings  filePath      `flag:"mcp-settings" value:"FILE" help:"start the server from this settings file; if no bridge is running, mcp_settings.json and .mcp.json in the working directory are tried"`
	BridgeURL string        `flag:"bridge-url" value:"URL" env:"MCP_BRIDGE_URL" help:"bridge to call through; by default http://127.0.0.1:3333"`
	JSON      bool          `flag:"json" help:"print the whole result as JSON, not only its text"`
	Timeout   time.Duration `flag:"timeout" value:"DURATION" default:"30s" help:"time limit for starting the server, and for the call"`
	Token     token         `env:"MCP_BRIDGE_TOKEN,KNOWHOW_TOKEN" help:"token that the bridge requires"`

	server, tool string
	arguments    []string // KEY=VALUE, or one of "-" and a JSON object
}

func (o *callCommand) run(ctx context.Context, v *invocation) error {
	if o.server == "" {
		return v.usagef("SERVER/TOOL is missing")
	}
	caller, closePool, err := o.connect(ctx, v)
	if err != nil {
		return err
	}
	return errors.Join(o.call(ctx, v, caller), closePool(ctx))
}

// operand parses SERVER/TOOL, then the arguments.
func (o *callCommand) operand(v *invocation, s string) error {
	if o.server == "" {
		var ok bool
		if o.server, o.tool, ok = strings.Cut(s, "/"); !ok || o.server == "" || o.tool == "" {
			return v.usagef("got %q, want SERVER/TOOL first, such as everything/echo", s)
		}
		return nil
	}
	key, _, pair := strings.Cut(s, "=")
	pair = pair && key != "" && !isWhole(s)
	if !pair && !isWhole(s) {
		return v.usagef("got %q, want KEY=VALUE, or one JSON object, or - for one on standard input", s)
	}
	if len(o.arguments) > 0 && (!pair || isWhole(o.arguments[0])) {
		return v.usagef("got %q besides %q: a JSON object, or -, must be the only argument", s, o.arguments[0])
	}
	o.arguments = append(o.arguments, s)
	return nil
}

// isWhole reports whether an operand contains all arguments.
func isWhole(s string) bool { return s == "-" || strings.HasPrefix(s, "{") }

// connect chooses how to call the tool: through the named bridge, else with the
// named settings, else through a running bridge, else with settings in the
// working directory. The returned function ends what connect started.
func (o *callCommand) connect(ctx context.Context, v *invocation) (invoke.Caller, func(context.Context) error, error) {
	url := o.BridgeURL
	if url == "" {
		if o.Settings != "" {
			return o.direct(v, string(o.Settings))
		}
		url = "http://127.0.0.1:" + defaultBridgePort
	}
	client, err := invoke.NewClient(invoke.ClientOptions{URL: url, Token: string(o.Token),
		Timeout: startTime + o.Timeout})
	if err != nil {
		return nil, nil, v.usagef("--bridge-url: %s", errkind.Message(err))
	}
	err = client.Probe(ctx)
	if err == nil {
		return client, func(context.Context) error { return nil }, nil
	}
	if o.Settings != "" {
		return o.direct(v, string(o.Settings))
	}
	if o.BridgeURL == "" {
		for _, name := range defaultSettings {
			if fileExists(name) {
				return o.direct(v, name)
			}
		}
	}
	return nil, nil, &hintError{fmt.Errorf("no bridge answers at %s: %w", url, err),
		fmt.Sprintf("Start one with: %s start --mcp-settings FILE, or call the server directly with --mcp-settings FILE.", v.Program)}
}

// direct returns a caller that starts servers itself.
func (o *callCommand) direct(v *invocation, settings string) (invoke.Caller, func(context.Context) error, error) {
	loaded, err := mcpsettings.Load(settings, v.Lookup)
	if err != nil {
		return nil, nil, err
	}
	log := v.warnings()
	pool := mcpclient.New(mcpclient.Options{Servers: loaded.Servers, Log: log, Version: version(),
		CallTimeout: o.Timeout, ConnectTimeout: o.Timeout})
	return invoke.Direct{Pool: pool}, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), disconnectTime)
		defer cancel()
		return pool.Close(ctx)
	}, nil
}

// call calls the tool and prints the result.
func (o *callCommand) call(ctx context.Context, v *invocation, caller invoke.Caller) error {
	tool, err := invoke.FindTool(ctx, caller, o.server, o.tool)
	if err != nil {
		return explainCall(err)
	}
	arguments, err := o.readArguments(ctx, v, tool)
	if err != nil {
		return err
	}
	result, err := caller.Call(ctx, o.server, o.tool, arguments)
	if err != nil {
		return explainCall(err)
	}
	return o.print(v, result)
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
		return &hintError{err, fmt.Sprintf("Did you mean %s? The server also has %s.", toolNames(unknown.Near),
			toolNames(unknown.Tools))}
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
func (o *callCommand) readArguments(ctx context.Context, v *invocation, tool *invoke.Tool) (json.RawMessage, error) {
	if len(o.arguments) == 0 || !isWhole(o.arguments[0]) {
		arguments, err := invoke.Arguments(tool.InputSchema, o.arguments)
		if err != nil {
			return nil, v.usagef("%s", errkind.Message(err))
		}
		return arguments, nil
	}
	data, where := []byte(o.arguments[0]), "the operand"
	if o.arguments[0] == "-" {
		var err error
		if data, err = v.readInput(ctx, maxArguments+1); err != nil {
			return nil, fmt.Errorf("reading the arguments from standard input: %w", err)
		}
		where = "standard input"
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil || len(data) > maxArguments {
		return nil, v.usagef("%s is not a JSON object of at most 4 MiB", where)
	}
	return data, nil
}

// print prints a result: its text, or all of it as JSON. If the tool reports a
// failure, print returns an error.
func (o *callCommand) print(v *invocation, result json.RawMessage) error {
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
			fmt.Fprintf(&text, "[%s %s, shown with --json]\n", sanitize.Escape(block.Type),
				sanitize.Escape(block.MIMEType))
		}
	}
	if len(r.Content) == 0 && len(r.StructuredContent) > 0 {
		text.Write(append(r.StructuredContent, '\n'))
	}
	switch {
	case o.JSON:
		if _, err := fmt.Fprintf(v.stdout, "%s\n", result); err != nil {
			return err
		}
		if r.IsError {
			return errors.New("the tool reported a failure")
		}
		return nil
	case r.IsError:
		return fmt.Errorf("the tool failed: %s", strings.TrimSpace(text.String()))
	}
	_, err := io.WriteString(v.stdout, text.String())
	return err
}
