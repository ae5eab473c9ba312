package cos

import (
	"bytes"
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Limits on the structure of a file.
const (
	maxSections    = 4096     // cross-reference sections, one for every update
	maxLoading     = 24       // nesting of objects that are needed to read another one
	keptObjStreams = 8        // decoded object streams that are kept,
	keptObjBytes   = 16 << 20 // and their bytes, unless a single one has more
)

// A File provides access to the objects of a PDF.
type File struct {
	Budget *Budget // of all work on the file

	data    []byte
	entries table
	trailer Dict
	crypt   *crypt // nil if the file is not encrypted

	cache      map[int]Object
	cached     Share // memory of the cache
	loading    int   // depth of nested loads
	repaired   bool
	objStreams []objStream
	inflater   inflater
}

// An objStream is a decoded object stream.
type objStream struct {
	num     int
	data    []byte
	objects []packedObject
}

// A packedObject is the position of an object in the data of an object stream.
type packedObject struct{ num, offset int32 }

func (s *objStream) bytes() int { return len(s.data) + 8*len(s.objects) }

// cacheEntrySize is the memory of an entry of the cache, without the object.
const cacheEntrySize = 64

// Open reads the cross-reference table. If it is damaged, Open creates a new
// one from the objects in the file. Errors are of kind [errkind.Corrupt] if the
// file contains no objects, and [errkind.Unsupported] if it requires a password
// or an unknown method to decrypt it; their messages are for users. If the
// budget is exhausted, Open returns the budget's error.
func Open(data []byte, b *Budget) (*File, error) {
	if i := bytes.Index(data[:min(len(data), 1024)], []byte("%PDF-")); i > 0 {
		data = data[i:] // offsets are relative to here
	}
	f := &File{Budget: b, data: data, entries: table{mem: b.Share()}, trailer: Dict{}, cache: map[int]Object{},
		cached: b.Share()}
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
	if err := b.Err(); err != nil {
		return nil, err
	}
	if len(f.entries.chunks) == 0 {
		return nil, fmt.Errorf("damaged PDF document: it contains no objects: save or download it again: %w",
			errkind.Corrupt)
	}
	return f, nil
}

// forget drops all decoded objects, because the key or the table has changed.
// Their memory is not released, because callers may still use some of them.
func (f *File) forget() {
	f.cache, f.cached = map[int]Object{}, f.Budget.Share()
	f.dropObjStreams(-1)
}

// Trim drops the objects that were read since Pin, if they take more than max
// bytes, and reports whether it did. The caller must not use them any more.
func (f *File) Trim(max int) bool {
	if f.cached.Size() <= max {
		return false
	}
	f.cached.Free()
	f.cache = map[int]Object{}
	return true
}

// Pin declares that the caller may keep the objects that were read so far: Trim
// does not release their memory.
func (f *File) Pin() { f.cached = f.Budget.Share() }

// pagesRoot returns the root of the page tree, or nil if there is none.
func (f *File) pagesRoot() Dict {
	return f.Dict(f.Root()["Pages"])
}

// readXref follows the chain of cross-reference sections. It reports whether
// all of them are readable.
func (f *File) readXref() bool {
	i := bytes.LastIndex(f.data, []byte("startxref"))
	if i < 0 {
		return false
	}
	t := NewLexer(f.data, i+len("startxref"), f.Budget).Next()
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
	l := NewLexer(f.data, at, f.Budget)
	if t := l.Next(); t.Kind == TokKeyword && string(t.Text) == "xref" {
		return f.readTable(l)
	}
	_, o, _, ok := f.objectAt(at)
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
			if off.Kind != TokNumber || gen.Kind != TokNumber || use.Kind != TokKeyword {
				return nil, false
			}
			if string(use.Text) == "n" {
				f.entries.add(first+i, atOffset(int(min(off.Num, 1<<40))))
			} else {
				f.entries.add(first+i, entry{kind: free})
			}
		}
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
	all, err := f.Decode(s)
	defer f.Budget.Free(len(all))
	if row == 0 || err != nil {
		return false
	}
	index, _ := s.Dict["Index"].(Array)
	if index == nil {
		index = Array{0, s.Dict["Size"]}
	}
	data := all
	for i := 0; i+1 < len(index); i += 2 {
		first, ok1 := Integer(index[i])
		n, ok2 := Integer(index[i+1])
		if !ok1 || !ok2 {
			return false
		}
		for j := 0; j < n && len(data) >= row && f.Budget.Spend(5); j++ {
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
		f.entries.add(num, entry{kind: free})
	case 1:
		f.entries.add(num, atOffset(a))
	case 2:
		f.entries.add(num, entry{kind: inStream, at: uint32(min(a, maxObjects+1)), index: uint32(min(b, maxObjects+1))})
	}
}

// Root returns the catalog (ISO 32000-1, 7.7.2).
func (f *File) Root() Dict { return f.Dict(f.trailer["Root"]) }

// Info returns a string of the document information dictionary, decrypted but
// not decoded, or "" if there is none.
func (f *File) Info(key Name) string {
	s := f.Text(f.Dict(f.trailer["Info"])[key])
	if r, ok := f.trailer["Info"].(Ref); ok && f.crypt != nil && f.entries.get(r.num).kind == inFile {
		return f.crypt.text(r, s, f.Budget)
	}
	return s
}

// Encrypted reports whether strings outside of content streams are encrypted.
func (f *File) Encrypted() bool { return f.crypt != nil }

// Damaged reports whether the table of objects was damaged.
func (f *File) Damaged() bool { return f.repaired }

// OfType returns the first dictionaries of a type by number, at most max, after
// a repair. It finds pages that are not in the tree.
func (f *File) OfType(t Name, max int) []Dict {
	f.repair()
	var out []Dict
	for num := range f.entries.objects() {
		o, mem := f.peek(num)
		d := f.Dict(o)
		if d == nil || f.Name(d["Type"]) != t {
			mem.Free()
			continue
		}
		if out = append(out, d); len(out) >= max {
			break
		}
	}
	return out
}

// Resolve follows references. It returns nil if the object does not exist.
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

// Dict returns the dictionary that o is or refers to, or that of the stream, or
// nil.
func (f *File) Dict(o Object) Dict {
	switch v := f.Resolve(o).(type) {
	case Dict:
		return v
	case *Stream:
		return v.Dict
	}
	return nil
}

// Array returns the array that o is or refers to, or nil.
func (f *File) Array(o Object) Array { a, _ := f.Resolve(o).(Array); return a }

// Stream returns the stream that o refers to, or nil.
func (f *File) Stream(o Object) *Stream { s, _ := f.Resolve(o).(*Stream); return s }

// Name returns the name that o is or refers to, or "".
func (f *File) Name(o Object) Name { n, _ := f.Resolve(o).(Name); return n }

// Text returns the bytes of the string that o is or refers to, or "".
func (f *File) Text(o Object) string { s, _ := f.Resolve(o).(string); return s }

// Number returns the value of a number, or of a reference to one, otherwise
// def.
func (f *File) Number(o Object, def float64) float64 {
	if v, ok := number(f.Resolve(o)); ok {
		return v
	}
	return def
}

// load returns an object by its number, or nil if there is none, and caches it.
func (f *File) load(num int) Object {
	if o, ok := f.cache[num]; ok {
		return o
	}
	o, mem, ok := f.read(num)
	if !ok || !mem.Alloc(cacheEntrySize) {
		return nil
	}
	f.cached.take(&mem)
	f.cache[num] = o
	return o
}

// peek is like load but does not add the object to the cache. The returned
// memory is empty for an object from the cache.
func (f *File) peek(num int) (Object, Share) {
	if o, ok := f.cache[num]; ok {
		return o, f.Budget.Share()
	}
	o, mem, _ := f.read(num)
	return o, mem
}

// read reads an object by its number and returns the memory that it takes. ok
// is false if there is no such object or if it cannot be read now. A damaged
// object is nil.
func (f *File) read(num int) (o Object, mem Share, ok bool) {
	mem = f.Budget.Share()
	e := f.entries.get(num)
	if e.kind <= free || f.loading >= maxLoading || !f.Budget.Spend(50) {
		return nil, mem, false
	}
	f.loading++
	defer func() { f.loading-- }()
	var found bool
	if e.kind == inStream {
		o, mem, found = f.fromObjStream(num, e)
	} else {
		var got int
		got, o, mem, found = f.objectAt(int(e.at))
		found = found && got == num
	}
	if !found {
		mem.Free()
		if !f.repaired {
			f.repair()
			return f.read(num)
		}
		return nil, mem, f.Budget.Err() == nil
	}
	return o, mem, f.Budget.Err() == nil
}
