package pdf

import (
	"cmp"
	"maps"
	"slices"

	"knowhow/internal/extract/pdf/cos"
)

// Bounds on the page tree.
const (
	maxTreeDepth   = 64
	maxAnnotations = 5000 // of one page
)

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// pagesOf returns the pages in order with the resources that they inherit. Where
// the tree is damaged, the pages are those that the file holds, by number.
func pagesOf(f *cos.File) []cos.Dict {
	var out []cos.Dict
	seen := map[cos.Ref]bool{}
	var walk func(o cos.Object, resources cos.Object, depth int)
	walk = func(o cos.Object, resources cos.Object, depth int) {
		if r, ok := o.(cos.Ref); ok {
			if seen[r] {
				return
			}
			seen[r] = true
		}
		d := f.Dict(o)
		if d == nil || depth > maxTreeDepth || len(out) > MaxPages || !f.Budget.Spend(10) {
			return
		}
		if own := d["Resources"]; own != nil {
			resources = own
		}
		kids := f.Array(d["Kids"])
		if kids == nil {
			if n := f.Name(d["Type"]); n == "Page" || n == "" && d["Contents"] != nil {
				if d["Resources"] == nil && resources != nil {
					d["Resources"] = resources
				}
				out = append(out, d)
			}
			return
		}
		for _, k := range kids {
			walk(k, resources, depth+1)
		}
	}
	walk(f.Root()["Pages"], nil, 0)
	if len(out) > 0 {
		return out
	}
	return f.OfType("Page")
}

// contents returns the content streams of a page, which count as one.
func contents(f *cos.File, page cos.Dict) []byte {
	var out []byte
	for _, o := range f.List(page["Contents"]) {
		s := f.Stream(o)
		if s == nil {
			continue
		}
		data, err := f.Decode(s)
		if err != nil || len(out)+len(data) > cos.MaxStream {
			continue // what the other streams hold is still worth having
		}
		if out == nil {
			out = data
			continue
		}
		out = append(append(out, '\n'), data...)
	}
	return out
}

// interpret returns the glyphs of a page and how many characters have no known text.
func interpret(f *cos.File, page cos.Dict, fonts map[cos.Ref]*font) (glyphs []glyph, unknown int) {
	in := &interpreter{f: f, fonts: fonts}
	in.textState = textState{ctm: identity, scale: 1}
	in.tm, in.tlm = identity, identity
	in.run(contents(f, page), f.Dict(page["Resources"]))
	annotations := f.Array(page["Annots"])
	for _, o := range annotations[:min(len(annotations), maxAnnotations)] {
		in.annotation(f.Dict(o))
	}
	return in.glyphs, in.unknown
}

// annotation runs the appearance of a form field or a text box
// (ISO 32000-1, 12.5.5). Links and the like have no text.
func (in *interpreter) annotation(d cos.Dict) {
	if !in.f.Budget.Spend(100) {
		return
	}
	if n := in.f.Name(d["Subtype"]); n != "Widget" && n != "FreeText" || int(in.f.Number(d["F"], 0))&2 != 0 {
		return
	}
	s := in.f.Stream(in.f.Dict(d["AP"])["N"])
	rect := in.f.Array(d["Rect"])
	if s == nil || len(rect) != 4 {
		return
	}
	box := in.f.Array(s.Dict["BBox"])
	if len(box) != 4 {
		return
	}
	in.textState = textState{ctm: identity, scale: 1}
	in.ctm[4] = min(in.f.Number(rect[0], 0), in.f.Number(rect[2], 0)) - min(in.f.Number(box[0], 0), in.f.Number(box[2], 0))
	in.ctm[5] = min(in.f.Number(rect[1], 0), in.f.Number(rect[3], 0)) - min(in.f.Number(box[1], 0), in.f.Number(box[3], 0))
	in.runForm(s, nil)
}
