package pdf

import (
	"cmp"
	"maps"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// Limits on the page tree.
const (
	maxTreeDepth   = 64
	maxAnnotations = 5000 // of one page
)

// Limits on what is kept from one page for the next. The rest is read again.
const (
	keptGlyphs = 1 << 15 // glyphs for which memory is kept
	keptShare  = 16      // fraction of the memory that is kept for fonts, and for objects
)

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// pagesOf returns the pages in order with the resources that they inherit. If
// the tree is damaged, these are the pages in the file, by number. index contains
// the index of each page, and -1 for the other nodes of the tree.
func pagesOf(f *cos.File) (out []cos.Dict, index map[cos.Ref]int) {
	index = map[cos.Ref]int{}
	var walk func(o cos.Object, resources cos.Object, depth int)
	walk = func(o cos.Object, resources cos.Object, depth int) {
		if r, ok := o.(cos.Ref); ok {
			if _, ok := index[r]; ok {
				return
			}
			index[r] = -1
		}
		if depth > maxTreeDepth || len(out) > maxPages || !f.Budget.Spend(10) {
			return
		}
		d := f.Dict(o)
		if d == nil {
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
				if r, ok := o.(cos.Ref); ok {
					index[r] = len(out)
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
		return out, index
	}
	return f.OfType("Page", maxPages+1), index
}

// contents returns the content streams of a page, which are concatenated. The
// caller must free its memory like that of a decoded stream.
func contents(f *cos.File, page cos.Dict) []byte {
	var parts [][]byte
	total := 0
	for _, o := range f.List(page["Contents"]) {
		s := f.Stream(o)
		if s == nil {
			continue
		}
		data, err := f.Decode(s)
		if err != nil || total+len(data) > cos.MaxStream {
			f.Budget.Free(len(data))
			continue // the other streams are still useful
		}
		total += len(data) + 1
		parts = append(parts, data)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	if !f.Budget.Alloc(total) || !f.Budget.Spend(total/8) {
		return nil
	}
	out := make([]byte, 0, total)
	for _, data := range parts {
		out = append(append(out, data...), '\n')
		f.Budget.Free(len(data))
	}
	return out
}

// interpret runs a page with its annotations. It reuses parts of the
// interpreter of the previous page.
func (in *interpreter) interpret(page cos.Dict) {
	*in = interpreter{f: in.f, fonts: in.fonts, glyphs: in.glyphs[:0], mem: in.mem, kept: in.kept}
	in.textState = textState{ctm: identity, scale: 1}
	in.tm, in.tlm = identity, identity
	data := contents(in.f, page)
	in.run(data, in.f.Dict(page["Resources"]))
	in.f.Budget.Free(len(data))
	annotations := in.f.Array(page["Annots"])
	for _, o := range annotations[:min(len(annotations), maxAnnotations)] {
		in.annotation(in.f.Dict(o))
	}
}

// release releases the memory of a page, whose glyphs are no longer used. It
// also drops the fonts, or the objects, if they have more than kept bytes.
func (in *interpreter) release(kept int) {
	clear(in.glyphs) // the texts of marks
	in.mem.Free()
	if cap(in.glyphs) > keptGlyphs {
		in.f.Budget.Free(cap(in.glyphs) * glyphSize)
		in.glyphs = nil
	}
	*in = interpreter{f: in.f, fonts: in.fonts, glyphs: in.glyphs, mem: in.mem, kept: in.kept}
	if in.f.Trim(kept) {
		in.fonts.trim(0) // fonts are identified by their objects
	}
	in.fonts.trim(kept)
}

// annotation runs the appearance of a form field or a text box (ISO 32000-1,
// 12.5.5). Links and similar annotations have no text.
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
	least := func(a []cos.Object, i int) float64 { return min(in.f.Number(a[i], 0), in.f.Number(a[i+2], 0)) }
	in.ctm[4], in.ctm[5] = least(rect, 0)-least(box, 0), least(rect, 1)-least(box, 1)
	in.runForm(s, nil)
}
