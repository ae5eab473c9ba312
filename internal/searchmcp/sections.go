package searchmcp

import (
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// headingSeparator stands between the headings of a path.
const headingSeparator = " > "

// findSection returns where a section begins and where it ends, sections below
// it included; an end of 0 means the end of the text. The name is the path of
// the headings or the last of them, in any case.
func findSection(list []document.Section, name string) (from, end int64, err error) {
	i := -1
	for _, same := range []func(heading string) bool{
		func(h string) bool { return plain(h) == plain(name) },
		func(h string) bool { return plain(lastHeading(h)) == plain(name) },
		func(h string) bool { return strings.HasSuffix(plain(h), plain(headingSeparator+name)) },
	} {
		if i = slices.IndexFunc(list, func(s document.Section) bool { return same(s.Heading) }); i >= 0 {
			break
		}
	}
	if i < 0 {
		return 0, 0, &errkind.Argument{Name: "section", Value: name, Want: wantSection(list, name)}
	}
	return int64(list[i].Offset), sectionEnd(list, i), nil
}

// sectionEnd returns where the i-th section ends, the sections below it included;
// 0 means the end of the text.
func sectionEnd(list []document.Section, i int) int64 {
	for _, s := range list[i+1:] {
		below := strings.HasPrefix(s.Heading, list[i].Heading+headingSeparator)
		if !below && (s.Heading != list[i].Heading || !s.Continues) {
			return int64(s.Offset)
		}
	}
	return 0
}

// lastHeading returns the last heading of a path.
func lastHeading(path string) string {
	if i := strings.LastIndex(path, headingSeparator); i >= 0 {
		return path[i+len(headingSeparator):]
	}
	return path
}

// plain returns a heading in the form in which headings are compared.
func plain(heading string) string { return strings.ToLower(strings.Join(strings.Fields(heading), " ")) }

// wantSection returns what to request instead of a section that does not exist.
func wantSection(list []document.Section, name string) string {
	if len(list) == 0 {
		return "no section: this document has no headings; use from"
	}
	var known []string
	for _, s := range list {
		known = append(known, lastHeading(s.Heading))
	}
	near := spell.Near(name, known, 3)
	if len(near) == 0 {
		near = known[:min(len(known), 5)]
	}
	for i, h := range near {
		near[i] = strconv.Quote(digest(h, headingRunes))
	}
	return "a heading of the document, such as " + strings.Join(near, ", ")
}
