package cos

import "bytes"

// objectAt reads "num gen obj ..." at a byte offset.
func (f *File) objectAt(at int) (num int, o Object, mem Share, ok bool) {
	if at < 0 || at >= len(f.data) {
		return 0, nil, f.Budget.Share(), false
	}
	l := NewLexer(f.data, at, f.Budget)
	n, g, kw := l.Next(), l.Next(), l.Next()
	if n.Kind != TokNumber || g.Kind != TokNumber || kw.Kind != TokKeyword || string(kw.Text) != "obj" {
		return 0, nil, l.mem, false
	}
	num = int(min(n.Num, maxObjects+1))
	o, ok = l.object(true, 0)
	if !ok {
		return num, nil, l.mem, true // "1 0 obj endobj" is null
	}
	d, isDict := o.(Dict)
	if !isDict {
		return num, o, l.mem, true
	}
	save := l.Pos
	if kw := l.Next(); kw.Kind != TokKeyword || string(kw.Text) != "stream" {
		l.Pos = save
		return num, o, l.mem, true
	}
	return num, f.streamAt(l, d, Ref{num, int(min(g.Num, 65535))}), l.mem, true
}

// streamAt returns the stream with the bytes after the keyword. If Length does
// not lead to "endstream", it searches for that word.
func (f *File) streamAt(l *Lexer, d Dict, id Ref) *Stream {
	if l.peekAt(0) == '\r' {
		l.Pos++
	}
	if l.peekAt(0) == '\n' {
		l.Pos++
	}
	start := min(l.Pos, len(f.data))
	if n, ok := Integer(f.Resolve(d["Length"])); ok && n >= 0 && n <= len(f.data)-start {
		end := NewLexer(f.data, start+n, f.Budget)
		end.skipSpace()
		if !f.Budget.Spend(end.Pos - (start + n)) {
			return nil
		}
		if bytes.HasPrefix(f.data[end.Pos:], []byte("endstream")) ||
			bytes.HasPrefix(f.data[end.Pos:], []byte("endobj")) {
			return &Stream{d, f.data[start : start+n], id}
		}
	}
	rest := f.data[start:]
	n := f.index(rest, "endstream")
	if n < 0 {
		n = f.index(rest, "endobj")
	}
	if n < 0 {
		n = len(rest)
	}
	return &Stream{d, bytes.TrimSuffix(rest[:n], []byte("\n")), id}
}

// index returns the position of a word in data, or -1 if there is none or the
// budget is exhausted.
func (f *File) index(data []byte, word string) int {
	const piece = 1 << 20
	for at := 0; at < len(data) && f.Budget.Spend(100); at += piece {
		part := data[at:min(len(data), at+piece+len(word)-1)]
		if i := bytes.Index(part, []byte(word)); i >= 0 {
			if !f.Budget.Spend(i / 8) {
				return -1
			}
			return at + i
		}
		if !f.Budget.Spend(len(part) / 8) {
			return -1
		}
	}
	return -1
}

// fromObjStream returns an object in an object stream (ISO 32000-1, 7.5.7).
func (f *File) fromObjStream(num int, e entry) (Object, Share, bool) {
	s := f.objStream(int(e.at))
	if s == nil {
		return nil, f.Budget.Share(), false
	}
	i := int(e.index)
	if i >= len(s.objects) || int(s.objects[i].num) != num {
		for i = 0; i < len(s.objects) && int(s.objects[i].num) != num; i++ {
		}
		if !f.Budget.Spend(i) || i == len(s.objects) {
			return nil, f.Budget.Share(), false
		}
	}
	l := NewLexer(s.data, int(s.objects[i].offset), f.Budget)
	o, _ := l.object(true, 0)
	return o, l.mem, true
}

// objStream returns a decoded object stream, or nil if there is none. The
// stream may be dropped when another object is read.
func (f *File) objStream(num int) *objStream {
	for i := range f.objStreams {
		if f.objStreams[i].num == num {
			return &f.objStreams[i]
		}
	}
	if f.entries.get(num).kind == inStream {
		return nil // an object stream is never inside another one
	}
	st := f.Stream(Ref{num: num})
	if st == nil || st.Dict["Type"] != Name("ObjStm") {
		return nil
	}
	first, ok := Integer(f.Resolve(st.Dict["First"]))
	n, ok2 := Integer(f.Resolve(st.Dict["N"]))
	if !ok || !ok2 {
		return nil
	}
	data, err := f.Decode(st)
	n = max(0, min(n, first/4+1)) // "1 0 " is the shortest
	if err != nil || first < 0 || first > len(data) || !f.Budget.Alloc(8*n) {
		f.Budget.Free(len(data))
		return nil
	}
	s := objStream{num: num, data: data, objects: make([]packedObject, 0, n)}
	l := NewLexer(data[:first], 0, f.Budget)
	for range n {
		a, b := l.Next(), l.Next()
		if a.Kind != TokNumber || b.Kind != TokNumber || b.Num < 0 || b.Num > float64(len(data)-first) {
			break
		}
		s.objects = append(s.objects, packedObject{int32(max(-1, min(a.Num, maxObjects+1))), int32(first + int(b.Num))})
	}
	f.Budget.Free(8 * (n - len(s.objects)))
	f.dropObjStreams(max(0, keptObjBytes-s.bytes()))
	f.objStreams = append(f.objStreams, s)
	return &f.objStreams[len(f.objStreams)-1]
}

// dropObjStreams drops object streams, the oldest first, until fewer than
// keptObjStreams are left, with at most max bytes.
func (f *File) dropObjStreams(max int) {
	total := 0
	for i := range f.objStreams {
		total += f.objStreams[i].bytes()
	}
	for len(f.objStreams) > 0 && (total > max || len(f.objStreams) >= keptObjStreams) {
		n := f.objStreams[0].bytes()
		total -= n
		f.Budget.Free(n)
		f.objStreams[0] = objStream{}
		f.objStreams = f.objStreams[1:]
	}
}

// repair builds the table of objects by searching for "num gen obj" in the
// whole file. Of several objects with the same number, the last one counts, as
// after an update. Objects in object streams count if there is no other one.
func (f *File) repair() {
	if f.repaired || !f.Budget.Spend(len(f.data)) {
		return
	}
	f.repaired = true
	f.forget()
	f.entries.mem.Free()
	f.entries = table{mem: f.Budget.Share()}
	for at := 0; ; {
		i := bytes.Index(f.data[at:], []byte("obj"))
		if i < 0 || !f.Budget.Spend(10) {
			break
		}
		at += i + 3
		if start, num, ok := objectHead(f.data, at-3); ok {
			f.entries.set(num, atOffset(start))
		}
	}
	trailer := f.trailers()
	var streams []int
	for num := range f.entries.objects() {
		o, mem := f.peek(num)
		d := f.Dict(o)
		switch d["Type"] {
		case Name("XRef"):
			for _, k := range []Name{"Root", "Info", "Encrypt", "ID"} {
				if v, ok := d[k]; ok {
					trailer[k] = v
				}
			}
			continue // the trailer contains parts of d
		case Name("ObjStm"):
			streams = append(streams, num)
		case Name("Catalog"):
			if trailer["Root"] == nil {
				trailer["Root"] = Ref{num: num}
			}
		}
		mem.Free()
	}
	f.trailer = trailer
	f.addPacked(streams)
}

// trailers returns the members of all trailers in the file; later trailers take
// precedence.
func (f *File) trailers() Dict {
	trailer := Dict{}
	for at := 0; ; {
		i := bytes.Index(f.data[at:], []byte("trailer"))
		if i < 0 {
			return trailer
		}
		at += i + len("trailer")
		l := NewLexer(f.data, at, f.Budget)
		o, ok := l.object(true, 0)
		if f.Budget.Err() != nil {
			return trailer
		}
		d, isDict := o.(Dict)
		if !ok || !isDict {
			l.Free()
			continue
		}
		for k, v := range d {
			trailer[k] = v
		}
	}
}

// addPacked records the objects in object streams. If two streams have the same
// object, the later one counts.
func (f *File) addPacked(streams []int) {
	if f.trailer["Encrypt"] != nil && f.crypt == nil {
		if f.decrypt() != nil {
			return
		}
		f.forget()
	}
	for i := len(streams) - 1; i >= 0; i-- {
		s := f.objStream(streams[i])
		if s == nil || !f.Budget.Spend(2*len(s.objects)) {
			continue
		}
		for j, o := range s.objects {
			f.entries.add(int(o.num), entry{kind: inStream, at: uint32(streams[i]), index: uint32(j)})
		}
	}
	if f.trailer["Root"] != nil {
		return
	}
	for num := range f.entries.objects() {
		o, mem := f.peek(num)
		if f.Dict(o)["Type"] == Name("Catalog") {
			f.trailer["Root"] = Ref{num: num}
		}
		mem.Free()
	}
}

// objectHead reads backwards from the "obj" at i. start is the position of the
// object's number.
func objectHead(data []byte, i int) (start, num int, ok bool) {
	if i+3 < len(data) && isRegular(data[i+3]) && !(data[i+3] >= '0' && data[i+3] <= '9') {
		return 0, 0, false
	}
	back := func(j int) (int, int, bool) { // reads a number that ends before j
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
