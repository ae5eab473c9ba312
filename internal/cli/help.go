package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
)

const helpHelp = `Usage: {cmd} [COMMAND]

Shows the help of a command, or the list of commands.

Examples:
  {cmd}
  {cmd} fess
`

// A helpCommand shows the help of a command, or the overview.
type helpCommand struct {
	Topic []string `arg:"COMMAND"`
}

func (o *helpCommand) run(_ context.Context, v *invocation) error {
	topic := strings.Join(o.Topic, " ")
	if topic == "" {
		if v.Command == "" {
			_, err := io.WriteString(v.stdout, overview(v.Env))
			return err
		}
		topic = v.Command
	}
	cmd, ok := v.find(topic)
	switch {
	case !ok && len(o.Topic) > 1:
		return v.usagef("unexpected argument %q", o.Topic[len(o.Topic)-1])
	case !ok:
		return unknownCommand(topic, v)
	}
	_, err := io.WriteString(v.stdout, commandHelp(cmd, v))
	return err
}

// overview returns the list of commands.
func overview(e Env) string {
	var b strings.Builder
	if e.Commands == nil {
		fmt.Fprintf(&b,
			"%s gives AI agents access to an organisation's documents through the Model\nContext Protocol (MCP), and turns MCP servers into skills.\n\n", e.Program)
	} else {
		fmt.Fprintf(&b, "%s turns MCP servers into skills that agents load when they need them.\n\n", e.Program)
	}
	fmt.Fprintf(&b, "Usage: %s COMMAND [FLAGS]\n\nCommands:\n", e.Program)
	for _, c := range e.commands() {
		if c.summary == "" {
			continue
		}
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprintf(&b, "\nRun %q for a command's flags and examples.\n", e.Program+" help COMMAND")
	return b.String()
}

// commandHelp returns the help of a command, with its name as the user calls
// it.
func commandHelp(c command, v *invocation) string {
	typed := v.Program
	if v.Command != c.name {
		typed += " " + c.name
	}
	f := newFlagSet(v, c.options)
	return strings.NewReplacer("{cmd}", typed, "{flags}\n", f.text()).Replace(c.help)
}
