package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestManPages checks that every command has a page with the usual sections, that each
// line that begins like a macro is one, and that each flag is on the page.
func TestManPages(t *testing.T) {
	v, _ := testInvocation(nil)
	macro := regexp.MustCompile(`^\.(TH|SH [A-Z ]+|TP|PP|BR|br|RS 4|RE|nf|fi)( |$)`)
	for _, c := range v.commands() {
		page := manCommand(c, v)
		var sections []string
		for line := range strings.Lines(page) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, ".") && !macro.MatchString(line) || line == "" || strings.HasPrefix(line, "'") {
				t.Errorf("%s: line %q", c.name, line)
			}
			if title, ok := strings.CutPrefix(line, ".SH "); ok {
				sections = append(sections, title)
			}
		}
		want := []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT", "NOTES", "EXAMPLES", "SEE ALSO"}
		if !slices.IsSortedFunc(sections, func(a, b string) int {
			return slices.Index(want, a) - slices.Index(want, b)
		}) || len(sections) < 4 {
			t.Errorf("%s: sections %q", c.name, sections)
		}
		for _, d := range newFlagSet(v, c.options).flags {
			if !strings.Contains(page, "\n.TP\n\\fB"+roffText.Replace(d.String())+"\\fR\n") {
				t.Errorf("%s: the page does not have %s", c.name, d)
			}
		}
		if listed := strings.Contains(manOverview(v.Env), "\n.BR "+
			roffText.Replace(manPageName("knowhow", c.name))+" (1)\n"); listed == c.hidden() {
			t.Errorf("%s: listed is %v", c.name, listed)
		}
	}
}

func TestManPage(t *testing.T) {
	v, _ := testInvocation(nil)
	c := command{name: "try it", help: `Usage: {cmd} [FLAGS] FILE
       {cmd} --all

Tries it. This is
the rest.

.hidden begins with a period.

{flags}

The file:
  {"a\b": 1}
It is read.

Example:
  {cmd} --x-y a
`, options: &struct {
		group
		Flag string `flag:"x-y" value:"N" default:"3" env:"X" help:"how often"`
	}{}}
	_, got, _ := strings.Cut(manCommand(c, v), "\n")
	want := `.SH NAME
knowhow\-try\-it \- tries it
.SH SYNOPSIS
\fBknowhow try it [FLAGS] FILE\fR
.br
\fBknowhow try it \-\-all\fR
.br
.SH DESCRIPTION
Tries it. This is
the rest.
.PP
\&.hidden begins with a period.
.SH OPTIONS
.TP
\fB\-\-x\-y N\fR
how often (default 3; environment variable X).
.SH NOTES
The file:
.RS 4
.nf
{"a\eb": 1}
.fi
.RE
It is read.
.SH EXAMPLES
.RS 4
.nf
knowhow try it \-\-x\-y a
.fi
.RE
.SH SEE ALSO
.BR knowhow (1)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}
