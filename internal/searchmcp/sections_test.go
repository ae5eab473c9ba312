package searchmcp

import (
	"fmt"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// TestListedSections checks which sections of a long document are listed.
func TestListedSections(t *testing.T) {
	sections := func(parents, children int) (list []document.Section) {
		for i := range parents {
			parent := fmt.Sprintf("Part %d", i)
			list = append(list, document.Section{Offset: len(list), Heading: parent})
			for j := range children {
				list = append(list, document.Section{Offset: len(list), Heading: fmt.Sprintf("%s > -%d", parent, j)})
			}
			list = append(list, document.Section{Offset: len(list), Heading: parent, Continues: true})
		}
		return list
	}
	for _, tt := range []struct {
		name                            string
		parents, children, listed, left int
	}{
		{"none", 0, 0, 0, 0},
		{"all", 10, 19, listedSections, 0},
		{"many options", 10, 20, 10, 200},
		{"one part", 1, listedSections, listedSections, 1},
		{"many parts", listedSections + 1, 1, listedSections, listedSections + 2},
	} {
		var s summary
		s.list(sections(tt.parents, tt.children))
		if s.Sections == nil || len(s.Sections) != tt.listed || s.More != tt.left {
			t.Errorf("%s: %d sections are listed and %d left out, want %d and %d",
				tt.name, len(s.Sections), s.More, tt.listed, tt.left)
		}
	}
}
