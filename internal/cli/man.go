package cli

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// A manWriter writes a page for man in the macros of man(7).
type manWriter struct {
	strings.Builder
	verbatim  bool // between .nf and .fi
	paragraph bool // the next text begins a paragraph
}

// roffText escapes a text. A "-" would otherwise become a hyphen, with which a command
// cannot be copied from the page.
var roffText = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// text writes a line of text.
func (w *manWriter) text(line string) {
	if w.paragraph {
		w.macro(".PP")
	}
	line = roffText.Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	w.WriteString(line + "\n")
}

// bold returns a line of text in bold type.
func (w *manWriter) bold(line string) { w.WriteString(`\fB` + roffText.Replace(line) + `\fR` + "\n") }

// macro writes a macro.
func (w *manWriter) macro(line string) {
	w.paragraph = false
	w.WriteString(line + "\n")
}

// example begins or ends lines that are printed as they are.
func (w *manWriter) example(on bool) {
	switch {
	case on && !w.verbatim:
		w.macro(".RS 4\n.nf")
	case !on && w.verbatim:
		w.macro(".fi\n.RE")
	}
	w.verbatim = on
}

// head writes the title, and the section NAME.
func (w *manWriter) head(name, summary string) {
	info, _ := debug.ReadBuildInfo()
	date, _, _ := strings.Cut(buildOf(info).Date, "T")
	fmt.Fprintf(w, ".TH \"%s\" 1 \"%s\" \"knowhow %s\" \"Knowhow Manual\"\n", roffText.Replace(strings.ToUpper(name)), date,
		roffText.Replace(version()))
	w.macro(".SH NAME")
	w.WriteString(roffText.Replace(name) + ` \- ` + roffText.Replace(summary) + "\n")
}

// flags writes the sections about flags and environment variables.
func (w *manWriter) flags(all []*flag) {
	for _, section := range []struct {
		title    string
		variable bool
	}{{"OPTIONS", false}, {"ENVIRONMENT", true}} {
		title := section.title
		for _, d := range all {
			if (d.Name == "") != section.variable {
				continue
			}
			if title != "" {
				w.macro(".SH " + title)
				title = ""
			}
			w.macro(".TP")
			w.bold(d.String())
			w.text(d.describe() + ".")
		}
	}
}

// manPageName returns the name of the page of a command, such as
// knowhow-datasets-create.
func manPageName(program, command string) string {
	return program + "-" + strings.ReplaceAll(command, " ", "-")
}

// manOverview returns the page of the program, which lists the pages of its commands.
func manOverview(e Env) string {
	w := &manWriter{}
	about, _, _ := strings.Cut(overview(e), "\n\n")
	about = strings.Join(strings.Fields(about), " ")
	w.head(e.Program, strings.TrimSuffix(strings.TrimPrefix(about, e.Program+" "), "."))
	w.macro(".SH SYNOPSIS")
	w.bold(e.Program + " COMMAND [FLAGS] [ARGUMENT ...]")
	w.macro(".SH DESCRIPTION")
	w.text(about)
	w.macro(".SH COMMANDS")
	for _, c := range e.commands() {
		if c.hidden() {
			continue
		}
		w.macro(".TP")
		fmt.Fprintf(w, ".BR %s (1)\n", roffText.Replace(manPageName(e.Program, c.name)))
		w.text(c.about() + ".")
	}
	return w.String()
}

// manCommand returns the page of a command, made from its help text and its flags.
func manCommand(c command, v *invocation) string {
	w := &manWriter{}
	name := v.Program
	if v.Command != c.name {
		name = manPageName(v.Program, c.name)
	}
	w.head(name, c.about())
	usage, rest, _ := strings.Cut(strings.ReplaceAll(c.help, "{cmd}", v.typed(c)), "\n\n")
	w.macro(".SH SYNOPSIS")
	for line := range strings.Lines(strings.TrimPrefix(usage, "Usage:")) {
		w.bold(strings.TrimSpace(line))
		w.macro(".br")
	}
	w.macro(".SH DESCRIPTION")
	flags := newFlagSet(v, c.options).flags
	after := false // right after the flags
	for line := range strings.SplitSeq(strings.TrimSuffix(rest, "\n"), "\n") {
		indented := strings.HasPrefix(line, "  ")
		w.example(indented || w.verbatim && line == "")
		switch {
		case line == "{flags}":
			w.flags(flags)
			after = true
		case strings.HasPrefix(line, "Example"):
			w.macro(".SH EXAMPLES")
			after = false
		case indented:
			w.text(strings.TrimPrefix(line, "  "))
		case line == "":
			w.paragraph = !w.verbatim
		case after:
			w.macro(".SH NOTES")
			w.text(line)
			after = false
		default:
			w.text(line)
		}
	}
	w.example(false)
	if v.Command == "" {
		w.macro(".SH SEE ALSO")
		fmt.Fprintf(w, ".BR %s (1)\n", roffText.Replace(v.Program))
	}
	return w.String()
}
