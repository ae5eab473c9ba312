package cos

import (
	"bytes"
	"maps"
	"slices"
)

// objectAt reads "num gen obj ..." at a byte offset.
func (f *File) objectAt(at int) (num int, o Object, ok bool) {
	if at < 0 || at >= len(f.data) {
		return 0, nil, false
	}
	l := Lexer{f.data, at}
	defer func() { f.Budget.Spend(4 * (l.Pos - at)) }() // values cost more than bytes
	n, g, kw := l.Next(), l.Next(), l.Next()
	if n.Kind != TokNumber || g.Kind != TokNumber || kw.Kind != TokKeyword || string(kw.Text) != "obj" {
		return 0, nil, false
	}
	num = int(min(n.Num, maxObjects+1))
	o, ok = l.object(true, 0)
	if !ok {
		return num, nil, true // "1 0 obj endobj" is null
	}
	d, isDict := o.(Dict)
	if !isDict {
		return num, o, true
	}
	save := l.Pos
	if kw := l.Next(); kw.Kind != TokKeyword || string(kw.Text) != "stream" {
		l.Pos = save
		return num, o, true
	}
	return num, f.streamAt(&l, d, Ref{num, int(min(g.Num, 65535))}), true
}

// streamAt makes a stream of the bytes after the keyword. Where Length does
// not lead to "endstream", that word is looked for.
func (f *File) streamAt(l *Lexer, d Dict, id Ref) *Stream {
	if l.peekAt(0) == '\r' {
		l.Pos++
	}
	if l.peekAt(0) == '\n' {
		l.Pos++
	}
	start := min(l.Pos, len(f.data))
	if n, ok := Integer(f.Resolve(d["Length"])); ok && n >= 0 && n <= len(f.data)-start {
		end := Lexer{f.data, start + n}
		end.skipSpace()
		if bytes.HasPrefix(f.data[end.Pos:], []byte("endstream")) || bytes.HasPrefix(f.data[end.Pos:], []byte("endobj")) {
			return &Stream{d, f.data[start : start+n], id}
		}
	}
	rest := f.data[start:]
	n := bytes.Index(rest, []byte("endstream"))
	if n < 0 {
		f.Budget.Spend(len(rest))
		n = bytes.Index(rest, []byte("endobj"))
	}
	if n < 0 {
		n = len(rest)
	}
	f.Budget.Spend(n)
	return &Stream{d, bytes.TrimSuffix(rest[:n], []byte("\n")), id}
}

// fromObjStream takes an object out of an object stream (ISO 32000-1, 7.5.7).
func (f *File) fromObjStream(num int, e entry) (Object, bool) {
	s := f.objStream(e.at)
	if s == nil {
		return nil, false
	}
	i := e.index
	if i < 0 || i >= len(s.nums) || s.nums[i] != num {
		for i = 0; i < len(s.nums) && s.nums[i] != num; i++ {
		}
		if i == len(s.nums) || !f.Budget.Spend(i) {
			return nil, false
		}
	}
	l := Lexer{s.data, s.offsets[i]}
	o, _ := l.object(true, 0)
	f.Budget.Spend(4 * (l.Pos - s.offsets[i]))
	return o, true
}

// objStream returns a decoded object stream, nil if there is none.
func (f *File) objStream(num int) *objStream {
	for i := range f.objStreams {
		if f.objStreams[i].num == num {
			return &f.objStreams[i]
		}
	}
	if f.entries[num].packed {
		return nil // an object stream is never inside another
	}
	st := f.Stream(Ref{num: num})
	if st == nil || st.Dict["Type"] != Name("ObjStm") {
		return nil
	}
	data, err := f.Decode(st)
	first, ok := Integer(f.Resolve(st.Dict["First"]))
	n, ok2 := Integer(f.Resolve(st.Dict["N"]))
	if err != nil && len(data) == 0 || !ok || !ok2 || first < 0 || first > len(data) {
		return nil
	}
	s := objStream{num: num, data: data}
	l := Lexer{data[:first], 0}
	for range n {
		a, b := l.Next(), l.Next()
		if a.Kind != TokNumber || b.Kind != TokNumber || b.Num < 0 || b.Num > float64(len(data)-first) {
			break
		}
		s.nums = append(s.nums, int(min(a.Num, maxObjects+1)))
		s.offsets = append(s.offsets, first+int(b.Num))
	}
	if len(f.objStreams) >= keptObjStreams {
		f.objStreams = f.objStreams[1:]
	}
	f.objStreams = append(f.objStreams, s)
	return &f.objStreams[len(f.objStreams)-1]
}

// repair makes the table of objects by looking for "num gen obj" in the whole
// file. The last of several objects with one number counts, as it would after
// an update; objects in object streams count where there is no other.
func (f *File) repair() {
	if f.repaired || !f.Budget.Spend(len(f.data)) {
		return
	}
	f.repaired = true
	f.forget()
	entries, packed := map[int]entry{}, []int{}
	trailer := Dict{}
	for at := 0; ; {
		i := bytes.Index(f.data[at:], []byte("obj"))
		if i < 0 {
			break
		}
		at += i + 3
		if start, num, ok := objectHead(f.data, at-3); ok && num <= maxObjects {
			entries[num] = entry{at: start}
		}
	}
	f.entries = entries
	for at := 0; ; {
		i := bytes.Index(f.data[at:], []byte("trailer"))
		if i < 0 {
			break
		}
		at += i + len("trailer")
		l := Lexer{f.data, at}
		o, _ := l.object(true, 0)
		if !f.Budget.Spend(l.Pos - at) {
			return
		}
		if d, ok := o.(Dict); ok {
			for k, v := range d {
				trailer[k] = v
			}
		}
	}
	for _, num := range slices.Sorted(maps.Keys(entries)) {
		d := f.Dict(Ref{num: num})
		switch d["Type"] {
		case Name("XRef"):
			for _, k := range []Name{"Root", "Info", "Encrypt", "ID"} {
				if v, ok := d[k]; ok {
					trailer[k] = v
				}
			}
		case Name("ObjStm"):
			packed = append(packed, num)
		case Name("Catalog"):
			if trailer["Root"] == nil {
				trailer["Root"] = Ref{num: num}
			}
		}
	}
	f.trailer = trailer
	f.addPacked(packed)
}

// addPacked notes the objects of object streams, of the later stream where two
// have the same.
func (f *File) addPacked(streams []int) {
	if f.trailer["Encrypt"] != nil && f.crypt == nil {
		if f.decrypt() != nil {
			return
		}
		f.forget()
	}
	for i := len(streams) - 1; i >= 0; i-- {
		s := f.objStream(streams[i])
		if s == nil {
			continue
		}
		for j, n := range s.nums {
			f.add(n, entry{at: streams[i], index: j, packed: true})
		}
	}
	if f.trailer["Root"] != nil {
		return
	}
	for _, num := range slices.Sorted(maps.Keys(f.entries)) {
		if f.Dict(Ref{num: num})["Type"] == Name("Catalog") {
			f.trailer["Root"] = Ref{num: num}
		}
	}
}

// objectHead reads backwards from the "obj" at i; start is where the object's
// number begins.
func objectHead(data []byte, i int) (start, num int, ok bool) {
	if i+3 < len(data) && isRegular(data[i+3]) && !(data[i+3] >= '0' && data[i+3] <= '9') {
		return 0, 0, false
	}
	back := func(j int) (int, int, bool) { // a number that ends before j
		for j > 0 && IsSpace(data[j-1]) {
			j--
		}
		end := j
		for j > 0 && end-j < 10 && data[j-1] >= '0' && data[j-1] <= '9' {
			j--
		}
		v := 0
		for _, c := range data[j:end] {
			v = v*10 + int(c-'0')
		}
		return j, v, j < end
	}
	j, _, ok := back(i)
	if !ok || j == 0 || !IsSpace(data[j-1]) {
		return 0, 0, false
	}
	start, num, ok = back(j)
	return start, num, ok
}
