package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"knowhow/internal/sanitize"
	"knowhow/internal/spell"
)

// A flag declares a flag of a command, for parsing, the help text and the
// tables in the documentation. A flag without a Name is an environment variable
// without a flag.
type flag struct {
	Name    string // without dashes
	Value   string // placeholder of the value in texts, for example FILE; "" if the flag takes none
	Default string // the value if none is given; "" if there is none
	Env     string // variable that is read if the flag is not given; an empty variable counts as not set
	Help    string // what the flag does, without a final period

	alias    string // another name, which messages and tables do not use
	aliasEnv string // variable that is read if Env is not set

	set    func(value string) error
	many   bool   // may be given more than once
	secret bool   // messages do not contain the value
	what   string // what a secret is, in messages; "" means token
	needed bool   // messages do not advise to leave it out
	given  bool   // on the command line
}

// errHelp reports that the command line requests the help text.
var errHelp = errors.New("help requested")

// A flagSet contains the flags and operands that a command accepts.
type flagSet struct {
	*invocation
	flags    []*flag
	operands []*operand
	operand  func(string) error // called for each operand after operands, in order with the flags; nil means that there are none
}

// An operand declares an operand of a command, or with many all that follow.
type operand struct {
	name                  string // in messages, for example ID
	value                 *string
	many, optional, given bool
}

// Operand declares the next operand, which is required and must not be blank.
func (f *flagSet) Operand(p *string, name string) {
	f.operands = append(f.operands, &operand{name: name, value: p})
}

// Optional declares the last operand, which must not be blank if it is given.
func (f *flagSet) Optional(p *string, name string) {
	f.operands = append(f.operands, &operand{name: name, value: p, optional: true})
}

// Text declares the operands that follow, which are joined with blanks. The text
// is required and must not be blank.
func (f *flagSet) Text(p *string, name string) {
	f.operands = append(f.operands, &operand{name: name, value: p, many: true})
}

// take sets the operand that arg is.
func (f *flagSet) take(arg string) error {
	for _, o := range f.operands {
		switch {
		case !o.given:
			*o.value, o.given = arg, true
			return nil
		case o.many:
			*o.value += " " + arg
			return nil
		}
	}
	if f.operand == nil {
		return f.unexpected(arg)
	}
	return f.operand(arg)
}

// unexpected returns the error for an operand that the command does not take. It
// suggests a command below it.
func (f *flagSet) unexpected(arg string) error {
	e := f.usagef("unexpected argument %q", arg)
	var below []string
	for _, c := range f.commands() {
		if name, ok := strings.CutPrefix(c.name, f.command+" "); ok {
			below = append(below, name)
		}
	}
	if near := spell.Near(arg, below, 1); len(near) > 0 {
		e.hint = fmt.Sprintf("Did you mean %q? A command comes before its flags. ", f.name+" "+near[0]) + e.hint
	} else if len(below) > 0 {
		e.hint = fmt.Sprintf("Commands: %s. ", strings.Join(below, ", ")) + e.hint
	}
	return e
}

// Func declares a flag whose values are passed to set. The errors of set
// describe what is permitted.
func (f *flagSet) Func(d flag, set func(value string) error) {
	d.set = set
	f.flags = append(f.flags, &d)
	if d.Default != "" {
		_ = set(d.Default) // TestDeclarations checks that there is no error
	}
}

// String declares a flag with any text as its value.
func (f *flagSet) String(p *string, d flag) {
	f.Func(d, func(s string) error { *p = s; return nil })
}

// Path declares a flag with a file or a folder as its value.
func (f *flagSet) Path(p *string, d flag) {
	f.Func(d, func(s string) error { *p = f.expand(s); return nil })
}

// Bool declares a flag that is false unless it is given.
func (f *flagSet) Bool(p *bool, d flag) {
	f.Func(d, func(s string) (err error) {
		if *p, err = strconv.ParseBool(s); err != nil {
			return errors.New("want true or false")
		}
		return nil
	})
}

// Int declares a flag for a number from low to high.
func (f *flagSet) Int(p *int, d flag, low, high int) {
	f.Func(d, func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return fmt.Errorf("want a number from %d to %d", low, high)
		}
		*p = n
		return nil
	})
}

// Choice declares a flag with one of words as its value. The first word is the
// default.
func (f *flagSet) Choice(p *string, d flag, words ...string) {
	d.Default, d.Value = words[0], strings.Join(words, "|")
	f.Func(d, func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("want %s", strings.Join(words, " or "))
		}
		*p = s
		return nil
	})
}

// List declares a flag that may be given several times.
func (f *flagSet) List(p *[]string, d flag) {
	d.many = true
	f.Func(d, func(s string) error {
		if s == "" {
			return errors.New("want a value")
		}
		*p = append(*p, s)
		return nil
	})
}

// Paths declares a flag with a file or a folder as its value, which may be given
// several times.
func (f *flagSet) Paths(p *[]string, d flag) {
	d.many = true
	f.Func(d, func(s string) error {
		if s == "" {
			return errors.New("want a path")
		}
		*p = append(*p, f.expand(s))
		return nil
	})
}

// Globs declares a flag for patterns of package path that may be given several
// times.
func (f *flagSet) Globs(p *[]string, d flag) {
	d.many = true
	f.Func(d, func(s string) error {
		if _, err := path.Match(s, ""); err != nil || s == "" {
			return errors.New(`want a pattern such as "get_*" or "github/*"`)
		}
		*p = append(*p, s)
		return nil
	})
}

// Duration declares a flag for a positive Go duration.
func (f *flagSet) Duration(p *time.Duration, d flag) {
	f.Func(d, func(s string) error {
		value, err := time.ParseDuration(s)
		if err != nil || value <= 0 {
			return errors.New("want a duration such as 30s or 5m")
		}
		*p = value
		return nil
	})
}

// visiblePattern matches a valid token.
var visiblePattern = regexp.MustCompile(`^[!-~]+$`)

// Token declares a flag for a bearer token.
func (f *flagSet) Token(p *string, d flag) {
	d.secret = true
	f.Func(d, func(s string) error {
		if !visiblePattern.MatchString(s) {
			return errors.New("want visible ASCII characters without blanks")
		}
		*p = s
		return nil
	})
}

// given reports whether the flag is on the command line.
func (f *flagSet) given(name string) bool { return f.find(name).given }

// find returns the flag with that name, or nil.
func (f *flagSet) find(name string) *flag {
	for _, d := range f.flags {
		if name != "" && (d.Name == name || d.alias == name) {
			return d
		}
	}
	return nil
}

// parse sets the flags from args, in any order with the operands. After "--"
// everything is an operand. A flag that is not in args is set from its
// environment variable. parse returns errHelp if help is requested, and a
// [usageError] if args are invalid. Package flag is not used because it stops
// at the first operand and supports neither variables nor suggestions.
func (f *flagSet) parse(args []string) error {
	onlyOperands := false
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--" && !onlyOperands:
			onlyOperands = true
		case strings.HasPrefix(arg, "-") && arg != "-" && !onlyOperands:
			rest, err := f.parseFlag(arg, args)
			if err != nil {
				return err
			}
			args = rest
		default:
			if err := f.take(arg); err != nil {
				return err
			}
		}
	}
	for _, o := range f.operands {
		switch {
		case !o.given && !o.optional:
			return f.usagef("%s is missing", o.name)
		case o.given && strings.TrimSpace(*o.value) == "": // probably a variable of the shell that is not set
			return f.usagef("%s is empty", o.name)
		}
	}
	for _, d := range f.flags {
		env := d.Env
		if f.get(env) == "" {
			env = d.aliasEnv
		}
		if value := f.get(env); value != "" && !d.given {
			if err := d.set(value); err != nil {
				return f.badValue(d, env, "unset it", value, err)
			}
		}
	}
	return nil
}

// parseFlag sets the flag in arg, with the value after its "=" or the first of
// args, and returns the rest of args.
func (f *flagSet) parseFlag(arg string, args []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	if name == "help" || name == "h" {
		return nil, errHelp
	}
	d := f.find(name)
	switch {
	case d == nil:
		typed, _, _ := strings.Cut(arg, "=")
		return nil, f.unknown(typed, name)
	case hasValue:
	case d.Value == "":
		value = "true"
	case len(args) == 0:
		return nil, f.usagef("flag --%s needs a value", name)
	default:
		value, args = args[0], args[1:]
	}
	d.given = true
	if err := d.set(value); err != nil {
		return nil, f.badValue(d, "flag --"+name, "leave it out", value, err)
	}
	return args, nil
}

// badValue returns the error for an invalid value of a flag. source is the
// origin of the value, and omit describes how to use no value.
func (f *flagSet) badValue(d *flag, source, omit, value string, err error) error {
	if d.secret && d.needed {
		return f.usagef("%s: %v", source, err)
	}
	if d.secret {
		return f.usagef("%s: %v; %s to use no %s", source, err, omit, cmp.Or(d.what, "token"))
	}
	return f.usagef("%s: got %q, %v", source, value, err)
}

// unknown returns the error for a flag that does not exist. arg is the flag as
// it was typed, with its dashes, and name its name.
func (f *flagSet) unknown(arg, name string) error {
	var known []string
	for _, d := range f.flags {
		known = append(known, d.Name)
	}
	e := f.usagef("unknown flag %s", sanitize.Escape(arg))
	if near := spell.Near(name, known, 1); len(near) > 0 {
		e.hint = fmt.Sprintf("Did you mean --%s? ", near[0]) + e.hint
	} else if name == "n" && slices.Contains(known, "top") {
		e.hint = "Did you mean --top? " + e.hint
	} else if len(name) == 1 {
		e.hint = "Flags have no short forms. " + e.hint
	}
	return e
}

// usagef returns a usageError that refers to the command's help.
func (v *invocation) usagef(format string, args ...any) *usageError {
	return &usageError{message: fmt.Sprintf(format, args...), hint: fmt.Sprintf("Run %q for usage.", v.name+" --help")}
}

// String returns the flag or the variable as the user types it.
func (d *flag) String() string {
	switch {
	case d.Name == "":
		return d.Env
	case d.Value == "":
		return "--" + d.Name
	}
	return "--" + d.Name + " " + d.Value
}

const (
	flagColumn = 26 // first column of the descriptions of flags
	helpWidth  = 80 // columns of a help text
)

// text returns the description of the flags for the help text.
func (f *flagSet) text() string {
	var flags, variables strings.Builder
	for _, d := range f.flags {
		b, notes := &flags, []string{}
		if d.Default != "" {
			notes = append(notes, "default "+d.Default)
		}
		switch {
		case d.Name == "":
			b = &variables
		case d.aliasEnv != "":
			notes = append(notes, "environment variable "+d.Env+" or "+d.aliasEnv)
		case d.Env != "":
			notes = append(notes, "environment variable "+d.Env)
		}
		if d.alias != "" {
			notes = append(notes, "also --"+d.alias)
		}
		if d.many {
			notes = append(notes, "repeatable")
		}
		help := d.Help
		if len(notes) > 0 {
			help += " (" + strings.Join(notes, "; ") + ")"
		}
		d.write(b, help)
	}
	text := ""
	if flags.Len() > 0 {
		text = "Flags:\n" + flags.String()
	}
	if variables.Len() > 0 {
		text += "\nEnvironment variables:\n" + variables.String()
	}
	return text
}

// write writes a flag and its description, wrapped in its own column.
func (d *flag) write(b *strings.Builder, help string) {
	line := "  " + d.String()
	if len(line) > flagColumn-2 {
		b.WriteString(line + "\n")
		line = ""
	}
	line += strings.Repeat(" ", flagColumn-1-len(line))
	for word := range strings.FieldsSeq(help) {
		if len(line)+1+len(word) > helpWidth {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", flagColumn-1)
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
