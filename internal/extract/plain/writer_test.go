package plain

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

func TestWriter(t *testing.T) {
	type heading = document.Heading
	for _, tt := range []struct {
		name  string
		write func(w *Writer)
		want  Text
	}{
		{"lines", func(w *Writer) {
			w.Line("a  ")
			w.Line("b")
			w.Line(" ")
			w.Line("")
			w.Line("  c")
			w.Blank()
		}, Text{Body: "a\nb\n\n  c"}},
		{"headings and terms", func(w *Writer) {
			w.Heading(1, " A  b ")
			w.Heading(9, "C")
			w.Term(0, "-x")
			w.Line("text")
			w.EndTerms(0)
			w.Blank()
			w.Line("after")
			w.Heading(2, " ")
		}, Text{Body: "A b\n\nC\n\n-x\ntext\n\nafter", Headings: []heading{
			{Level: 1, Text: "A b"}, {Offset: 5, Level: 6, Text: "C"}, {Offset: 8, Level: 7, Text: "-x"},
			{Offset: 17, Level: 7}}}},
		{"blocks", func(w *Writer) {
			w.Block(Paragraph, " a\x00\n")
			w.Block(Paragraph, "b")
			w.Block(Item, "  - c")
			w.Block(Item, "  - d")
			w.Block(Paragraph, "\u00a0")
			w.Block(TableRow, JoinCells([]string{"", "e", "", "f", ""}))
			w.Blank()
			w.Block(TableRow, "g")
			w.Block(Code, "  h\n")
			w.Put(Block{Level: 2, Text: "i  j"}, nil)
		}, Text{Body: "a\n\nb\n\n  - c\n  - d\n\n| e |  | f\n\ng\n\n  h\n\ni j",
			Headings: []heading{{Offset: 39, Level: 2, Text: "i j"}}}},
		{"another text", func(w *Writer) {
			w.Heading(1, "A")
			w.Part(&Text{Body: "x\n\n\n  B  \ny", Headings: []heading{{Offset: 6, Level: 1, Text: "B"},
				{Offset: 10, Level: 7, Text: "y"}}}, 2)
		}, Text{Body: "A\n\nx\n\n  B\ny", Headings: []heading{
			{Level: 1, Text: "A"}, {Offset: 8, Level: 3, Text: "B"}, {Offset: 10, Level: 7, Text: "y"}}}},
		{"rows", func(w *Writer) {
			var row, single Row
			row.Add([]Block{{Text: "a"}, {Text: "b "}})
			row.Skip(1)
			row.Add([]Block{{Text: "c"}})
			w.Row(&row, nil)
			single.Add(nil)
			single.Add([]Block{{Text: "d"}, {Text: "e"}})
			w.Row(&single, nil)
		}, Text{Body: "a b |  | c\n\nd\n\ne"}},
		{"sheets", func(w *Writer) {
			s := Sheet{W: w, Level: 2}
			s.Row([]Cell{{Text: "name"}, {Text: "2024", Value: true}})
			s.Row([]Cell{{Gap: 1, Text: "1", Value: true}})
			s.Row(nil)
			s.Row([]Cell{{Gap: 20, Text: "far"}})
		}, Text{Body: "name | 2024\n| 1\n\n| far", Headings: []heading{{Level: 2, Text: "name | 2024"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWriter(t.Context())
			tt.write(w)
			var got Text
			if w.Finish(&got); w.Err != nil {
				t.Fatal(w.Err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWriterIsBounded(t *testing.T) {
	w := NewWriter(t.Context())
	var held []Block
	text := string(make([]byte, 1<<20))
	for range MaxText>>20 + 1 {
		w.Put(Block{Text: "x" + text}, &held)
	}
	if w.Err != ErrLong || len(held) > MaxText>>20 {
		t.Errorf("error %v after %d blocks, want ErrLong", w.Err, len(held))
	}
}
