package cli

import (
	"cmp"
	"context"
	"embed"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const completionHelp = `Usage: {cmd} bash|zsh|fish|powershell

Prints a script with which a shell completes commands, flags and labels.

Examples:
  {cmd} bash >~/.local/share/bash-completion/completions/knowhow
  {cmd} zsh >~/.zsh/completions/_knowhow
  {cmd} fish >~/.config/fish/completions/knowhow.fish
  {cmd} powershell >>$PROFILE
`

const completeHelp = `Usage: {cmd} -- WORD ...

Prints the possible values of the last WORD of a command line, with descriptions
after a tab. The scripts of completion call it.

Example:
  {cmd} -- search --label ''
`

// scripts has a script for each shell, named like the shell. It passes the words of
// the command line up to the cursor to __complete. If that prints nothing, the shell
// completes names of files. {cmd} is replaced by the name of the program, and {func} by
// a name for functions.
//
//go:embed completion
var scripts embed.FS

// shells are the shells in the order of texts.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// A completionCommand prints the script of a shell.
type completionCommand struct {
	Shell string `arg:"SHELL"`
}

func (o *completionCommand) run(_ context.Context, v *invocation) error {
	if !slices.Contains(shells, o.Shell) {
		return v.usagef("got %q, want one of %s", o.Shell, strings.Join(shells, ", "))
	}
	script, err := scripts.ReadFile("completion/" + o.Shell)
	if err != nil {
		return err
	}
	name := "_" + strings.ReplaceAll(v.Program, "-", "_")
	if o.Shell == "fish" {
		name = "_" + name // one underscore is a command of fish
	}
	_, err = io.WriteString(v.stdout, strings.NewReplacer("{cmd}", v.Program, "{func}", name).Replace(string(script)))
	return err
}

// A completeCommand prints the possible values of the last word of a command line.
type completeCommand struct {
	Words []string `arg:"WORD"`
}

func (o *completeCommand) run(ctx context.Context, v *invocation) error {
	var b strings.Builder
	for _, c := range v.complete(ctx, o.Words) {
		b.WriteString(c.value)
		if c.about != "" {
			b.WriteString("\t" + c.about)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(v.stdout, b.String())
	return err
}

// A candidate is a possible value of a word.
type candidate struct{ value, about string }

// complete returns the possible values of the last of words, without the name of
// the program. It returns none if the shell should complete names of files.
func (v *invocation) complete(ctx context.Context, words []string) []candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	words, current := words[:len(words)-1], words[len(words)-1]
	if current == `""` { // PowerShell before version 7.3 does not pass an empty word
		current = ""
	}
	var all []candidate
	if len(words) == 0 {
		for _, c := range v.commands() {
			if c.summary != "" {
				all = append(all, candidate{c.name, c.summary})
			}
		}
		return startingWith(all, current)
	}
	name, operands := v.split(words)
	cmd, ok := v.find(name)
	if !ok {
		return nil
	}
	f := newFlagSet(v, cmd.options)
	operands, last := splitFlags(f, operands)
	// bash makes three words of --flag=value.
	if current == "=" && last != nil {
		current = ""
	}
	if flagName, value, ok := strings.Cut(strings.TrimLeft(current, "-"), "="); ok && strings.HasPrefix(current, "-") {
		prefix := strings.TrimSuffix(current, value)
		for _, c := range f.values(ctx, f.find(flagName)) {
			all = append(all, candidate{prefix + c.value, c.about})
		}
		return startingWith(all, current)
	}
	switch {
	case last != nil:
		all = f.values(ctx, last)
	case strings.HasPrefix(current, "-"):
		for _, d := range f.flags {
			if d.Name != "" {
				all = append(all, candidate{"--" + d.Name, d.Help})
			}
		}
		all = append(all, candidate{"--help", "show help"})
	default:
		all = f.operandValues(ctx, name, operands)
	}
	return startingWith(all, current)
}

// startingWith returns the candidates that begin with a word.
func startingWith(all []candidate, word string) []candidate {
	return slices.DeleteFunc(all, func(c candidate) bool { return !strings.HasPrefix(c.value, word) })
}

// splitFlags returns the operands in args, which precede the current word, and
// the flag whose value the current word is; nil if it is no value. It records the
// values of flags.
func splitFlags(f *flagSet, args []string) (operands []string, last *flag) {
	for _, arg := range args {
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case arg == "=" && last != nil: // as bash splits words
		case last != nil:
			last.typed, last = arg, nil
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			if d := f.find(name); d != nil && hasValue {
				d.typed = value
			} else if d != nil && d.Value != "" {
				last = d
			}
		default:
			operands = append(operands, arg)
		}
	}
	return operands, last
}

// values returns the possible values of a flag: the words of a choice, or the
// labels.
func (f *flagSet) values(ctx context.Context, d *flag) (all []candidate) {
	switch {
	case d == nil:
	case slices.Contains([]string{"label", "read", "write"}, d.Name):
		return f.labels(ctx)
	case strings.Contains(d.Value, "|"):
		for value := range strings.SplitSeq(d.Value, "|") {
			all = append(all, candidate{value: value})
		}
	}
	return all
}

// operandValues returns the possible values of the next operand of a command.
func (f *flagSet) operandValues(ctx context.Context, name string, operands []string) (all []candidate) {
	switch {
	case name == "completion" && len(operands) == 0:
		for _, shell := range shells {
			all = append(all, candidate{value: shell})
		}
	case (name == "connect" || name == "doctor") && len(operands) == 0:
		for _, c := range clients.All() {
			all = append(all, candidate{c.Name, c.Title})
		}
		return append(all, candidate{"all", "all that are installed"})
	case name == "sources" && len(operands) == 0:
		return []candidate{{"list", "list the remembered sources"}, {"rm", "remove a source"}}
	case name == "sources" && operands[0] == "rm" && len(operands) == 1:
		return f.labels(ctx)
	case slices.Contains([]string{"access set", "access rm", "access rotate"}, name) && len(operands) == 0:
		return f.users()
	case name == "help" && len(operands) == 0:
		return f.complete(ctx, []string{""})
	case name == "help" && len(operands) == 1:
		return f.operandValues(ctx, operands[0], nil)
	case len(operands) == 0:
		for _, c := range f.commands() {
			if second, ok := strings.CutPrefix(c.name, name+" "); ok {
				all = append(all, candidate{value: second})
			}
		}
	}
	return all
}

// labelTime limits how long the shell waits for labels.
const labelTime = time.Second

// labels returns the labels of the sources in the data folder that the command
// line names, with their paths. It returns none if they cannot be read.
func (f *flagSet) labels(ctx context.Context) (all []candidate) {
	named := ""
	if d := f.find("data"); d != nil {
		named = d.typed
	}
	ctx, cancel := context.WithTimeout(ctx, labelTime)
	defer cancel()
	x, _, err := f.openExisting(ctx, named, datafolder.Model{})
	if x == nil || err != nil {
		return nil
	}
	defer x.Close()
	sources, _ := x.Sources(ctx)
	for _, src := range sources {
		all = append(all, candidate{src.Label, sanitize.Escape(src.Path)})
	}
	return all
}

// users returns the users of the access file that the command line names, and its groups.
func (f *flagSet) users() (all []candidate) {
	typed := func(name string) string {
		if d := f.find(name); d != nil {
			return d.typed
		}
		return ""
	}
	o := accessFlag{filePath(f.expand(cmp.Or(typed("access"), f.get("KNOWHOW_ACCESS"))))}
	path, err := o.path(f.Env, typed("data"))
	if err != nil {
		return nil
	}
	c, err := access.Read(path)
	if err != nil {
		return nil
	}
	for _, u := range c.Users {
		all = append(all, candidate{sanitize.Escape(u.Name), "user"})
	}
	for _, g := range c.Groups {
		all = append(all, candidate{sanitize.Escape(g.Name), "group"})
	}
	return all
}
