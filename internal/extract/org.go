package extract

import (
	"context"
	"regexp"
	"strings"
)

var (
	orgHeading  = regexp.MustCompile(`^(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING|HOLD|CANCELLED|CANCELED)[ \t]+)?(?:\[#[A-Z0-9]\][ \t]+)?(.*?)(?:[ \t]+:[\w@#%:]+:)?[ \t]*$`)
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

// extractOrg extracts the text of an Org document. Keywords, drawers, planning
// lines and the marks inside lines are left out.
func extractOrg(ctx context.Context, t *Text, src string) {
	var out lines
	drawer, skip, verbatim := false, false, false
	for line := range eachLine(ctx, src) {
		line = strings.TrimRight(line, " \t")
		switch {
		case len(line) > maxMarkupLine:
			out.add(line)
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
			out.blank()
			continue
		}
		if skip || verbatim {
			if verbatim {
				out.add(line)
			}
			continue
		}
		if m := orgHeading.FindStringSubmatch(line); m != nil {
			out.heading(len(m[1]), orgText(m[2]))
			continue
		}
		if m := orgKeyword.FindStringSubmatch(line); m != nil {
			switch strings.ToLower(m[1]) {
			case "title":
				t.Title = oneLine(strings.TrimSpace(t.Title + " " + orgText(m[2])))
			case "language":
				t.Lang = strings.ToLower(m[2])[:min(len(m[2]), 10)]
			case "caption", "subtitle", "description", "author", "keywords":
				out.add(orgText(m[2]))
			case "filetags":
				out.add(strings.TrimSpace(strings.ReplaceAll(m[2], ":", " ")))
			case "attr_html":
				if m := orgAlt.FindStringSubmatch(m[2]); m != nil {
					out.add(orgText(m[1]))
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
			out.add(orgText(line))
		}
	}
	out.finish(t)
}

// orgText returns a line without the marks of links and emphasis.
func orgText(s string) string {
	if strings.Contains(s, "[") {
		s = orgLink.ReplaceAllStringFunc(s, func(m string) string {
			sub := orgLink.FindStringSubmatch(m)
			if sub[2] != "" {
				return sub[2]
			}
			return strings.TrimPrefix(sub[1], "file:")
		})
		s = orgFootnote.ReplaceAllString(s, "")
	}
	if !strings.ContainsAny(s, "*/_=~+") {
		return s
	}
	return orgEmphasis.ReplaceAllStringFunc(s, func(m string) string {
		sub := orgEmphasis.FindStringSubmatch(m)
		if sub[2] != sub[4] {
			return m
		}
		return sub[1] + sub[3] + sub[5]
	})
}
