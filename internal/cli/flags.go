package cli

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// A flag is a flag of a command, for parsing, the help text, completion and the
// tables in the documentation. A flag without a Name is an environment variable
// without a flag. It is declared by a field of the options of the command, with
// these tags:
//
//	flag     its name without dashes; after a comma, another one, which messages do not use
//	env      the variable that is read if the flag is not given; after a comma, one that
//	         is read if that is not set
//	value    the placeholder of the value in texts, for example FILE; in lower case, the
//	         permitted values, separated by "|"
//	default  the value if none is given
//	range    the permitted numbers, for example 1-100; of a text, the numbers of characters
//	secret   what the value is, for messages, which do not contain it; "" if they must
//	         not advise to leave it out; a [token] needs no tag
//	help     what the flag does, without a final period
//
// An empty variable counts as not set. Boolean flags have no placeholder. Flags
// for slices may be given several times.
type flag struct {
	Name, Value, Default, Env, Help string

	alias, aliasEnv string

	set    func(value string) error // its errors describe what is permitted
	many   bool                     // may be given more than once
	secret bool                     // messages do not contain the value
	what   string                   // what a secret is; "" if messages must not advise to leave it out
	given  bool                     // on the command line
	typed  string                   // its value on a command line that is being completed
}

// errHelp reports that the command line requests the help text.
var errHelp = errors.New("help requested")

// A flagSet contains the flags and operands that a command accepts.
type flagSet struct {
	*invocation
	flags    []*flag
	operands []*operand

	// rest is called for each operand after operands, in order with the flags; nil means
	// that there are none.
	rest func(string) error
}

// An operand is an operand of a command, or with many all that follow, joined with
// blanks. It must not be blank. It is declared by a string with the tag arg: the
// name, and after a comma "optional" or "many". A slice takes all operands that
// follow, which may be blank.
type operand struct {
	name                  string // in messages, for example ID
	value                 *string
	many, optional, given bool
}

// An operandTaker is a command that takes its operands itself, in order with the
// flags.
type operandTaker interface {
	operand(v *invocation, arg string) error
}

// newFlagSet returns the flags and operands that the fields of options declare, a
// pointer to a struct.
func newFlagSet(v *invocation, options any) *flagSet {
	f := &flagSet{invocation: v}
	if taker, ok := options.(operandTaker); ok {
		f.rest = func(arg string) error { return taker.operand(v, arg) }
	}
	f.declare(reflect.ValueOf(options).Elem(), func(s string) string { return s })
	return f
}

// placeholder matches what the tag of a field with a struct replaces in the tags of
// the fields of the struct: "{of}" is replaced by the tag "of".
var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// declare adds what the fields of a struct declare. fill replaces placeholders in
// their tags.
func (f *flagSet) declare(options reflect.Value, fill func(string) string) {
	for i := range options.NumField() {
		field, tag := options.Field(i), options.Type().Field(i).Tag
		get := func(key string) string { return fill(tag.Get(key)) }
		name, isFlag := tag.Lookup("flag")
		env, isVariable := tag.Lookup("env")
		arg, isOperand := tag.Lookup("arg")
		switch {
		case isOperand:
			f.declareOperand(field, arg)
		case isFlag || isVariable:
			d := &flag{Value: get("value"), Default: get("default"), Help: get("help")}
			d.Name, d.alias, _ = strings.Cut(fill(name), ",")
			d.Env, d.aliasEnv, _ = strings.Cut(fill(env), ",")
			d.what, d.secret = tag.Lookup("secret")
			if field.Type() == reflect.TypeFor[token]() {
				d.what, d.secret = "token", true
			}
			d.many = field.Kind() == reflect.Slice
			d.set = f.setter(field, d, tag.Get("range"))
			if d.Default != "" {
				_ = d.set(d.Default) // TestDeclarations checks that there is no error
			}
			f.flags = append(f.flags, d)
		case field.Kind() == reflect.Struct:
			f.declare(field, func(s string) string {
				return placeholder.ReplaceAllStringFunc(s, func(p string) string { return get(strings.Trim(p, "{}")) })
			})
		}
	}
}

// declareOperand adds an operand.
func (f *flagSet) declareOperand(field reflect.Value, arg string) {
	name, kind, _ := strings.Cut(arg, ",")
	switch p := field.Addr().Interface().(type) {
	case *string:
		f.operands = append(f.operands, &operand{name: name, value: p, many: kind == "many",
			optional: kind == "optional"})
	case *[]string:
		f.rest = func(arg string) error { *p = append(*p, arg); return nil }
	}
}

// A setter is a field that parses the value of its flag. Its errors describe what is
// permitted.
type setter interface{ set(value string) error }

// setter returns the function that sets a field to a value of the flag d.
func (f *flagSet) setter(field reflect.Value, d *flag, limits string) func(string) error {
	from, to, limited := strings.Cut(limits, "-")
	low, _ := strconv.Atoi(from)
	high, _ := strconv.Atoi(to)
	switch p := field.Addr().Interface().(type) {
	case setter:
		return p.set
	case *filePath:
		return func(s string) error { *p = filePath(f.expand(s)); return nil }
	case *folder:
		return func(s string) error {
			if s == "" {
				return errors.New("want a folder")
			}
			*p = folder(f.expand(s))
			return nil
		}
	case *[]filePath:
		return func(s string) error {
			if s == "" {
				return errors.New("want a path")
			}
			*p = append(*p, filePath(f.expand(s)))
			return nil
		}
	case *[]string:
		return func(s string) error {
			if s == "" {
				return errors.New("want a value")
			}
			*p = append(*p, s)
			return nil
		}
	case *bool:
		return func(s string) (err error) {
			*p, err = parseBool(s)
			return err
		}
	case **bool:
		return func(s string) error {
			value, err := parseBool(s)
			*p = &value
			return err
		}
	case *time.Duration:
		return func(s string) error {
			value, err := time.ParseDuration(s)
			if err != nil || value <= 0 {
				return errors.New("want a duration such as 30s or 5m")
			}
			*p = value
			return nil
		}
	case *int:
		return func(s string) error {
			n, err := strconv.Atoi(s)
			if err != nil || n < low || n > high {
				return fmt.Errorf("want a number from %d to %d", low, high)
			}
			*p = n
			return nil
		}
	}
	words := strings.Split(d.Value, "|")
	choice := d.Value != "" && d.Value == strings.ToLower(d.Value)
	return func(s string) error {
		n := utf8.RuneCountInString(strings.TrimSpace(s))
		switch {
		case choice && !slices.Contains(words, s):
			return fmt.Errorf("want %s", strings.Join(words, " or "))
		case limited && (n < low || n > high):
			return fmt.Errorf("want %d to %d characters", low, high)
		case d.Value == "DIR" && s == "": // probably a variable of the shell that is not set
			return errors.New("want a folder")
		}
		field.SetString(s)
		return nil
	}
}

// parseBool parses the value of a flag that is true or false.
func parseBool(s string) (bool, error) {
	value, err := strconv.ParseBool(s)
	if err != nil {
		return false, errors.New("want true or false")
	}
	return value, nil
}

// A filePath is the name of a file or a folder, with the home folder in place of a
// "~" at its start.
type filePath string

// A folder is a [filePath] that is not empty.
type folder string

// stringsOf returns paths as strings.
func stringsOf(paths []filePath) (list []string) {
	for _, p := range paths {
		list = append(list, string(p))
	}
	return list
}

// globs are patterns of package path.
type globs []string

func (g *globs) set(s string) error {
	if _, err := path.Match(s, ""); err != nil || s == "" {
		return errors.New(`want a pattern such as "get_*" or "github/*"`)
	}
	*g = append(*g, s)
	return nil
}

// A token is a bearer token.
type token string

// visiblePattern matches a valid token.
var visiblePattern = regexp.MustCompile(`^[!-~]+$`)

func (t *token) set(s string) error {
	if !visiblePattern.MatchString(s) {
		return errors.New("want visible ASCII characters without blanks")
	}
	*t = token(s)
	return nil
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
	if f.rest == nil {
		return f.unexpected(arg)
	}
	return f.rest(arg)
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

// given reports whether the flag is on the command line.
func (v *invocation) given(name string) bool { return v.flags.find(name).given }

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
	switch {
	case d.secret && d.what == "":
		return f.usagef("%s: %v", source, err)
	case d.secret:
		return f.usagef("%s: %v; %s to use no %s", source, err, omit, d.what)
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
		b := &flags
		if d.Name == "" {
			b = &variables
		}
		d.write(b, d.describe())
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

// describe returns what a flag does, with its default, its other names and its variable.
func (d *flag) describe() string {
	var notes []string
	if d.Default != "" {
		notes = append(notes, "default "+d.Default)
	}
	switch {
	case d.Name == "":
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
	if len(notes) == 0 {
		return d.Help
	}
	return d.Help + " (" + strings.Join(notes, "; ") + ")"
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
