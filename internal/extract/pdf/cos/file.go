package cos

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"knowhow/internal/errkind"
)

// Bounds on the structure of a file. The format's own limit (ISO 32000-1,
// Annex C) is 8,388,607 objects.
const (
	maxObjects     = 8 << 20
	maxSections    = 4096 // cross-reference sections, one more for every update
	maxLoading     = 24   // objects that need each other to be read
	keptObjStreams = 8    // decoded object streams held at a time
)

// An entry says where an object is.
type entry struct {
	at     int // byte offset; in an object stream the number of that stream
	index  int // in the object stream
	packed bool
}

// A File finds the objects of a PDF.
type File struct {
	data    []byte
	entries map[int]entry
	trailer Dict
	Budget  *Budget // of all work on the file
	crypt   *crypt  // nil where the file is not encrypted

	cache      map[int]Object
	loading    int // depth of nested loads
	repaired   bool
	objStreams []objStream
}

// An objStream is a decoded object stream.
type objStream struct {
	num     int
	data    []byte
	offsets []int // of each object in data
	nums    []int // their object numbers
}

// Open reads the cross-reference table, or makes one where it is damaged. Its
// errors are of kind [errkind.Corrupt] where nothing is left of the file, and
// [errkind.Unsupported] where it takes a password or an unknown method to
// decrypt it; their messages are for users.
func Open(data []byte, b *Budget) (*File, error) {
	if i := bytes.Index(data[:min(len(data), 1024)], []byte("%PDF-")); i > 0 {
		data = data[i:] // offsets count from here
	}
	f := &File{data: data, Budget: b, entries: map[int]entry{}, trailer: Dict{}, cache: map[int]Object{}}
	if !f.readXref() || f.pagesRoot() == nil {
		f.repair()
	}
	if f.trailer["Encrypt"] != nil {
		if err := f.decrypt(); err != nil {
			return nil, err
		}
		f.forget()
	}
	if f.pagesRoot() == nil {
		f.repair() // the catalog of an encrypted file may be in an object stream
	}
	if len(f.entries) == 0 {
		return nil, fmt.Errorf("damaged PDF document: it holds no objects: %w", errkind.Corrupt)
	}
	return f, nil
}

// forget drops what was decoded, because the key or the table has changed.
func (f *File) forget() {
	f.cache, f.objStreams = map[int]Object{}, nil
}

// pagesRoot returns the root of the page tree, nil where there is none.
func (f *File) pagesRoot() Dict {
	return f.Dict(f.Root()["Pages"])
}

// readXref follows the chain of cross-reference sections. It reports whether
// all of them could be read.
func (f *File) readXref() bool {
	i := bytes.LastIndex(f.data, []byte("startxref"))
	if i < 0 {
		return false
	}
	l := Lexer{f.data, i + len("startxref")}
	t := l.Next()
	if t.Kind != TokNumber {
		return false
	}
	seen := map[int]bool{}
	todo := []int{int(min(t.Num, 1<<40))}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if at < 0 || at >= len(f.data) || len(seen) >= maxSections {
			return false
		}
		if seen[at] {
			continue
		}
		seen[at] = true
		trailer, ok := f.readSection(at)
		if !ok {
			return false
		}
		for k, v := range trailer {
			if _, have := f.trailer[k]; !have {
				f.trailer[k] = v
			}
		}
		for _, key := range []Name{"XRefStm", "Prev"} {
			if v, ok := Integer(trailer[key]); ok {
				todo = append(todo, v)
			}
		}
	}
	return true
}

// readSection reads a cross-reference table or stream and returns its trailer.
func (f *File) readSection(at int) (Dict, bool) {
	l := Lexer{f.data, at}
	if t := l.Next(); t.Kind == TokKeyword && string(t.Text) == "xref" {
		return f.readTable(&l)
	}
	_, o, ok := f.objectAt(at)
	s, isStream := o.(*Stream)
	if !ok || !isStream || s.Dict["Type"] != Name("XRef") {
		return nil, false
	}
	s.id = Ref{} // never encrypted
	return s.Dict, f.readXrefStream(s)
}

// readTable reads the lines after "xref".
func (f *File) readTable(l *Lexer) (Dict, bool) {
	for {
		t := l.Next()
		if t.Kind == TokKeyword && string(t.Text) == "trailer" {
			o, _ := l.object(true, 0)
			d, ok := o.(Dict)
			return d, ok
		}
		n := l.Next()
		if t.Kind != TokNumber || n.Kind != TokNumber {
			return nil, false
		}
		first := int(min(t.Num, maxObjects))
		for i := range int(min(n.Num, maxObjects)) {
			off, gen, use := l.Next(), l.Next(), l.Next()
			if off.Kind != TokNumber || gen.Kind != TokNumber || use.Kind != TokKeyword || !f.Budget.Spend(20) {
				return nil, false
			}
			if string(use.Text) == "n" {
				f.add(first+i, entry{at: int(min(off.Num, 1<<40))})
			} else {
				f.add(first+i, entry{at: -1})
			}
		}
	}
}

// add notes where an object is, unless a newer section has said so.
func (f *File) add(num int, e entry) {
	if _, have := f.entries[num]; !have && num >= 0 && num <= maxObjects {
		f.entries[num] = e
	}
}

// readXrefStream reads the entries of a cross-reference stream
// (ISO 32000-1, 7.5.8).
func (f *File) readXrefStream(s *Stream) bool {
	var w [3]int
	widths, _ := s.Dict["W"].(Array)
	for i := range w {
		if i >= len(widths) {
			return false
		}
		n, ok := Integer(widths[i])
		if !ok || n < 0 || n > 8 {
			return false
		}
		w[i] = n
	}
	row := w[0] + w[1] + w[2]
	data, err := f.Decode(s)
	if row == 0 || err != nil && len(data) == 0 {
		return false
	}
	index, _ := s.Dict["Index"].(Array)
	if index == nil {
		index = Array{0, s.Dict["Size"]}
	}
	for i := 0; i+1 < len(index); i += 2 {
		first, ok1 := Integer(index[i])
		n, ok2 := Integer(index[i+1])
		if !ok1 || !ok2 {
			return false
		}
		for j := 0; j < n && len(data) >= row && f.Budget.Spend(20); j++ {
			f.addRow(first+j, data[:row], w)
			data = data[row:]
		}
	}
	return true
}

func (f *File) addRow(num int, row []byte, w [3]int) {
	field := func(n int) int {
		v := 0
		for _, c := range row[:n] {
			v = (v<<8 | int(c)) & (1<<40 - 1)
		}
		row = row[n:]
		return v
	}
	kind := 1
	if w[0] > 0 {
		kind = field(w[0])
	}
	a, b := field(w[1]), field(w[2])
	switch kind {
	case 0:
		f.add(num, entry{at: -1})
	case 1:
		f.add(num, entry{at: a})
	case 2:
		f.add(num, entry{at: a, index: b, packed: true})
	}
}

// Root returns the catalog (ISO 32000-1, 7.7.2).
func (f *File) Root() Dict { return f.Dict(f.trailer["Root"]) }

// Info returns a string of the document information dictionary, decrypted but
// not decoded; "" where there is none.
func (f *File) Info(key Name) string {
	s := f.Text(f.Dict(f.trailer["Info"])[key])
	if r, ok := f.trailer["Info"].(Ref); ok && f.crypt != nil && !f.entries[r.num].packed {
		return f.crypt.text(r, s)
	}
	return s
}

// Encrypted reports whether strings outside of content streams are encrypted.
func (f *File) Encrypted() bool { return f.crypt != nil }

// Damaged reports whether the table of objects had to be made anew.
func (f *File) Damaged() bool { return f.repaired }

// OfType returns the dictionaries of a type by number, after a repair: it is
// the way to pages that no tree leads to.
func (f *File) OfType(t Name) []Dict {
	f.repair()
	var out []Dict
	for _, num := range slices.Sorted(maps.Keys(f.entries)) {
		if d := f.Dict(Ref{num: num}); d != nil && f.Name(d["Type"]) == t {
			out = append(out, d)
		}
	}
	return out
}

// Resolve follows references; what does not exist is nil.
func (f *File) Resolve(o Object) Object {
	for range 16 {
		r, ok := o.(Ref)
		if !ok {
			return o
		}
		o = f.load(r.num)
	}
	return nil
}

// Dict returns the dictionary, or that of the stream, that o is or refers to;
// nil where it is none.
func (f *File) Dict(o Object) Dict {
	switch v := f.Resolve(o).(type) {
	case Dict:
		return v
	case *Stream:
		return v.Dict
	}
	return nil
}

// Array returns the array that o is or refers to, nil where it is none.
func (f *File) Array(o Object) Array { a, _ := f.Resolve(o).(Array); return a }

// Stream returns the stream that o refers to, nil where it is none.
func (f *File) Stream(o Object) *Stream { s, _ := f.Resolve(o).(*Stream); return s }

// Name returns the name that o is or refers to, "" where it is none.
func (f *File) Name(o Object) Name { n, _ := f.Resolve(o).(Name); return n }

// Text returns the bytes of the string that o is or refers to, "" where it is
// none.
func (f *File) Text(o Object) string { s, _ := f.Resolve(o).(string); return s }

// Number returns the value of a number, or of a reference to one, else def.
func (f *File) Number(o Object, def float64) float64 {
	if v, ok := number(f.Resolve(o)); ok {
		return v
	}
	return def
}

// load reads an object by its number.
func (f *File) load(num int) Object {
	if o, ok := f.cache[num]; ok {
		return o
	}
	e, ok := f.entries[num]
	if !ok || e.at < 0 || f.loading >= maxLoading || !f.Budget.Spend(50) {
		return nil
	}
	f.loading++
	defer func() { f.loading-- }()
	var o Object
	if e.packed {
		o, ok = f.fromObjStream(num, e)
	} else {
		var got int
		got, o, ok = f.objectAt(e.at)
		ok = ok && got == num
	}
	if !ok && !f.repaired {
		f.repair()
		return f.load(num)
	}
	if !ok {
		o = nil
	}
	f.cache[num] = o
	return o
}
