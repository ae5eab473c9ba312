package searchmcp

import (
	"testing"

	"knowhow/internal/document"
)

// A section continues after a list of terms inside it, and a term ends there. It
// ends at a later section of the same name.
func TestSectionEndBehindTerms(t *testing.T) {
	list := []document.Section{{Offset: 0, Heading: "A"}, {Offset: 10, Heading: "A > B"},
		{Offset: 20, Heading: "A > B > -x"},
		{Offset: 30, Heading: "A > B > -y"}, {Offset: 40, Heading: "A > B", Continues: true},
		{Offset: 50, Heading: "A > C"}, {Offset: 60, Heading: "A > C"},
		{Offset: 70, Heading: "A > C > D"}, {Offset: 80, Heading: "A > C"}}
	want := map[int]int64{0: 0, 10: 50, 20: 30, 30: 40, 40: 50, 50: 60, 60: 80, 70: 80, 80: 0}
	for i, s := range list {
		if got := sectionEnd(list, i); got != want[s.Offset] {
			t.Errorf("the section at %d ends at %d, want %d", s.Offset, got, want[s.Offset])
		}
	}
}
