package markup

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

var (
	orgHeading = regexp.MustCompile(`^(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING|HOLD|CANCELLED|CANCELED)[ \t]+)?` +
		`(?:\[#[A-Z0-9]\][ \t]+)?(.*?)(?:[ \t]+:[\w@#%:]+:)?[ \t]*$`)
	orgKeyword  = regexp.MustCompile(`(?i)^[ \t]*#\+([\w-]+):[ \t]*(.*)$`)
	orgBlock    = regexp.MustCompile(`(?i)^[ \t]*#\+(begin|end)_?(\w*).*$`)
	orgDrawer   = regexp.MustCompile(`(?i)^[ \t]*:(PROPERTIES|LOGBOOK|CLOCK|[\w-]+):[ \t]*$`)
	orgPlanning = regexp.MustCompile(`^[ \t]*(SCHEDULED|DEADLINE|CLOSED|CLOCK):`)
	orgLink     = regexp.MustCompile(`\[\[([^\[\]]+)\](?:\[([^\[\]]+)\])?\]`)
	orgFootnote = regexp.MustCompile(`\[fn:[^\[\]:]*\]`)
	orgEmphasis = regexp.MustCompile(`(^|[\s('"{-])([*/_=~+])(\S|\S[^*/_=~+]*\S)([*/_=~+])([\s.,:;!?'")}-]|$)`)
	orgAlt      = regexp.MustCompile(`(?:^|[ \t]):alt[ \t]+(.*?)(?:[ \t]+:[a-z-]+(?:[ \t].*)?)?$`)
	orgRule     = regexp.MustCompile(`^[ \t]*(\|[-+|]+|-{5,})$`)
)

// Org extracts the text of an Org document. Keywords, drawers, planning
// lines and the marks inside lines are left out.
func Org(ctx context.Context, t *plain.Text, src string) {
	out := plain.NewWriter(ctx)
	drawer, skip, verbatim := false, false, false
	for _, line := range plain.Lines(ctx, src) {
		line = strings.TrimRight(line, " \t")
		switch {
		case len(line) > plain.MaxMarked:
			out.Line(line)
			continue
		case drawer:
			drawer = !strings.EqualFold(strings.TrimSpace(line), ":end:")
			continue
		}
		if m := orgBlock.FindStringSubmatch(line); m != nil {
			begin := strings.EqualFold(m[1], "begin")
			switch strings.ToLower(m[2]) {
			case "comment", "export":
				skip = begin
			case "src", "example":
				verbatim = begin
			}
			out.Blank()
			continue
		}
		if skip || verbatim {
			if verbatim {
				out.Line(line)
			}
			continue
		}
		if m := orgHeading.FindStringSubmatch(line); m != nil {
			out.Heading(len(m[1]), orgText(m[2]))
			continue
		}
		if m := orgKeyword.FindStringSubmatch(line); m != nil {
			switch strings.ToLower(m[1]) {
			case "title":
				t.Title = plain.OneLine(strings.TrimSpace(t.Title + " " + orgText(m[2])))
			case "language":
				t.Lang = strings.ToLower(m[2])[:min(len(m[2]), 10)]
			case "caption", "subtitle", "description", "author", "keywords":
				out.Line(orgText(m[2]))
			case "filetags":
				out.Line(strings.TrimSpace(strings.ReplaceAll(m[2], ":", " ")))
			case "attr_html":
				if m := orgAlt.FindStringSubmatch(m[2]); m != nil {
					out.Line(orgText(m[1]))
				}
			}
			continue
		}
		switch {
		case orgDrawer.MatchString(line):
			drawer = true
		case orgPlanning.MatchString(line), orgRule.MatchString(line):
		case strings.HasPrefix(strings.TrimLeft(line, " \t"), "# "), strings.TrimSpace(line) == "#":
		default:
			out.Line(orgText(line))
		}
	}
	out.Finish(t)
}

// orgText returns a line without the marks of links and emphasis.
func orgText(s string) string {
	s = replaceFunc(orgLink, s, "[", func(m []string) string {
		return cmp.Or(m[2], strings.TrimPrefix(m[1], "file:"))
	})
	s = replace(orgFootnote, s, "", "[fn:")
	if !strings.ContainsAny(s, "*/_=~+") {
		return s
	}
	return replaceFunc(orgEmphasis, s, "", func(m []string) string {
		if m[2] != m[4] {
			return m[0]
		}
		return m[1] + m[3] + m[5]
	})
}
