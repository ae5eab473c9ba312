package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/knowhow-mcp/knowhow/internal/clients"
)

const helpHelp = `Usage: {cmd} [--man] [COMMAND]

Shows the help of a command, or the list of commands.

{flags}

Examples:
  {cmd}
  {cmd} fess
  {cmd} --man | man -l -
`

// A helpCommand shows the help of a command, or the overview.
type helpCommand struct {
	Man   bool     `flag:"man" help:"print a page for man, in roff"`
	Topic []string `arg:"COMMAND"`
}

func (o *helpCommand) run(_ context.Context, v *invocation) error {
	topic := strings.Join(o.Topic, " ")
	if topic == "" {
		if v.Command == "" && o.Man {
			_, err := io.WriteString(v.stdout, manOverview(v.Env))
			return err
		}
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
	text := commandHelp(cmd, v)
	if o.Man {
		text = manCommand(cmd, v)
	}
	_, err := io.WriteString(v.stdout, text)
	return err
}

// sections are the commands in the overview, those first that most people need. The
// others are for those who know that they need them.
var sections = []struct{ title, commands string }{
	{"Commands that most people need", "serve connect search read status doctor"},
	{"Notes and files that agents add", "note kb"},
	{"Skills made from MCP servers", "sync start call"},
	{"Vector datasets", "datasets"},
	{"A Fess server", "fess"},
	{"Administration", "access mcp sources engine store health completion version help"},
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
	fmt.Fprintf(&b, "Usage: %s COMMAND [FLAGS]\n", e.Program)
	for _, s := range sections {
		title := "\n" + s.title + ":\n"
		for name := range strings.FieldsSeq(s.commands) {
			if c, ok := e.find(name); ok {
				fmt.Fprintf(&b, "%s  %-10s  %s\n", title, c.name, c.summary)
				title = ""
			}
		}
	}
	fmt.Fprintf(&b, "\nRun %q for a command's flags and examples.\n", e.Program+" help COMMAND")
	return b.String()
}

// firstSteps prints what the program without a command prints on a terminal: what it can
// do, and what to type next. It names the clients that are installed. If it can ask, it
// offers to connect those that are not connected, and returns the commands for that.
func (v *invocation) firstSteps(ctx context.Context) (commands [][]string, err error) {
	client, found := "claude-code", []*clients.Client(nil)
	system := v.clientSystem()
	for _, c := range clients.All() {
		if c.Installed(system) {
			found = append(found, c)
		}
	}
	if len(found) > 0 {
		client = found[0].Name
	}
	steps := []struct{ command, does string }{
		{"serve ~/my-documents", "index a folder and serve it to agents"},
		{"connect " + client + " ~/my-documents", "let an agent use a folder"},
		{`search "how long is the warranty?"`, "search what is indexed yourself"},
		{"status", "show what is indexed"},
		{"doctor", "find out why something does not work"},
		{"help", "list all commands"},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s lets AI agents search and read your documents.\n\n", v.Program)
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, s := range steps {
		fmt.Fprintf(w, "  %s %s\t%s\n", v.Program, s.command, s.does)
	}
	_ = w.Flush() // to a strings.Builder, which returns no error
	connected, _ := v.findConnections(ctx, system, found)
	free := slices.DeleteFunc(slices.Clone(found), func(c *clients.Client) bool { return len(connected[c.Name]) > 0 })
	in, ok := v.stdin.(*os.File)
	ask := ok && len(free) > 0 && term.IsTerminal(int(in.Fd()))
	if len(found) > 1 {
		client = "all"
	}
	if len(found) > 0 && !ask {
		fmt.Fprintf(&b, "\nFound %s: %s connect %s ~/my-documents\n", someOf(titles(found)), v.Program, client)
	}
	if _, err := io.WriteString(v.stdout, b.String()); err != nil || !ask {
		return nil, err
	}
	folder, err := v.askFolder(ctx, in, free)
	switch {
	case err != nil || folder == "":
		return nil, err
	case len(free) == len(found) && len(free) > 1:
		return [][]string{{"connect", "all", folder}}, nil
	}
	for _, c := range free {
		commands = append(commands, []string{"connect", c.Name, folder})
	}
	return commands, nil
}

// titles returns the titles of clients.
func titles(all []*clients.Client) (list []string) {
	for _, c := range all {
		list = append(list, c.Title)
	}
	return list
}

// askFolder asks to which folder clients are to be connected. It returns "" for none.
func (v *invocation) askFolder(ctx context.Context, in io.Reader, all []*clients.Client) (string, error) {
	_, err := fmt.Fprintf(v.stdout, "\nConnect %s to a folder now? Folder (empty for no): ", someOf(titles(all)))
	if err != nil {
		return "", err
	}
	answer, err := await(ctx, func() (string, error) { return bufio.NewReader(in).ReadString('\n') })
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && answer == "":
		_, err = fmt.Fprintln(v.stdout) // the input has ended
		return "", err
	}
	answer = strings.TrimSpace(answer)
	if n := len(answer); n > 1 && answer[0] == answer[n-1] && strings.ContainsRune(`'"`, rune(answer[0])) {
		answer = answer[1 : n-1] // a folder that was dropped on the terminal
	}
	_, missing := os.Stat(answer)
	switch {
	case missing != nil && slices.Contains([]string{"n", "no"}, strings.ToLower(answer)):
		return "", nil
	case strings.HasPrefix(answer, "-"): // not a flag
		answer = "./" + answer
	}
	return answer, nil
}

// commandHelp returns the help of a command.
func commandHelp(c command, v *invocation) string {
	f := newFlagSet(v, c.options)
	return strings.NewReplacer("{cmd}", v.typed(c), "{flags}\n", f.text()).Replace(c.help)
}

// typed returns a command as the user calls it.
func (v *invocation) typed(c command) string {
	if v.Command == c.name {
		return v.Program
	}
	return v.Program + " " + c.name
}

// hidden reports whether a command is only for programs, not for people.
func (c command) hidden() bool { return strings.HasPrefix(c.name, "__") }

// about returns what a command does, in a line without a final period.
func (c command) about() string {
	if c.summary != "" {
		return c.summary
	}
	_, text, _ := strings.Cut(c.help, "\n\n")
	text, _, _ = strings.Cut(text, "\n\n")
	text = strings.Join(strings.Fields(text), " ") + " "
	text, _, _ = strings.Cut(text, ". ")
	return strings.ToLower(text[:1]) + text[1:]
}
