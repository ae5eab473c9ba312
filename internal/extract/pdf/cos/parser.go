package cos

// maxNesting is the maximum nesting depth of arrays and dictionaries.
const maxNesting = 64

// The memory of objects in bytes, in addition to that of their text.
const (
	objectSize = 40  // an interface, twice because arrays grow, and its value
	dictSize   = 352 // a map of up to eight entries
	entrySize  = 40  // of a larger map, or the text of a key
)

// object reads the next object. ok is false at any other keyword, at a closing
// bracket and at the end. References ("3 0 R") are only read if refs is set:
// content streams have none.
func (l *Lexer) object(refs bool, depth int) (o Object, ok bool) {
	return l.objectFrom(l.Next(), refs, depth)
}

func (l *Lexer) objectFrom(t Token, refs bool, depth int) (o Object, ok bool) {
	if !l.alloc(objectSize + len(t.Text)) {
		return nil, false
	}
	switch t.Kind {
	case TokNumber:
		if !t.Whole || t.Num >= 1<<53 || t.Num <= -1<<53 {
			return t.Num, true
		}
		if refs && t.Num >= 0 {
			if r, ok := l.reference(int(t.Num)); ok {
				return r, true
			}
		}
		return int(t.Num), true
	case TokString:
		return string(t.Text), true
	case TokName:
		return Name(t.Text), true
	case TokOpenArray:
		return l.array(refs, depth+1), true
	case TokOpenDict:
		return l.dict(refs, depth+1), true
	case TokKeyword:
		switch string(t.Text) {
		case "true":
			return true, true
		case "false":
			return false, true
		case "null":
			return nil, true
		}
	}
	return nil, false
}

// PropertyList reads the rest of a dictionary in a content stream, after the
// token <<.
func (l *Lexer) PropertyList() Dict { return l.dict(false, 1) }

// reference reads the rest of "num gen R" if there is one.
func (l *Lexer) reference(num int) (Ref, bool) {
	save := l.Pos
	if g := l.Next(); g.Kind == TokNumber && g.Whole && g.Num >= 0 && g.Num <= 65535 {
		l.skipSpace()
		if l.peekAt(0) == 'R' && !isRegular(l.peekAt(1)) {
			l.Pos++
			return Ref{num, int(g.Num)}, true
		}
	}
	l.Pos = save
	return Ref{}, false
}

func (l *Lexer) array(refs bool, depth int) Array {
	a := Array{}
	for {
		t := l.Next()
		if t.Kind == TokEOF || t.Kind == tokCloseArray || t.Kind == tokCloseDict || depth > maxNesting ||
			endsObject(t) {
			return a
		}
		if o, ok := l.objectFrom(t, refs, depth); ok {
			a = append(a, o)
		}
	}
}

func (l *Lexer) dict(refs bool, depth int) Dict {
	d := Dict{}
	if !l.alloc(dictSize) {
		return d
	}
	for {
		t := l.Next()
		if t.Kind == TokEOF || t.Kind == tokCloseDict || depth > maxNesting || endsObject(t) {
			return d
		}
		if t.Kind != TokName && !refs {
			return d // in a content stream, the next operators are more important
		}
		if t.Kind != TokName {
			continue
		}
		save := l.Pos
		v, ok := l.object(refs, depth)
		if !ok {
			l.Pos = save // the value is missing, and the next token may end the dictionary
			if t := l.Next(); t.Kind == TokKeyword && !endsObject(t) {
				continue
			}
			l.Pos = save
			continue
		}
		if _, twice := d[Name(t.Text)]; !twice && l.alloc(entrySize+len(t.Text)) {
			d[Name(t.Text)] = v
		}
	}
}

// endsObject reports whether a keyword indicates a missing closing bracket.
func endsObject(t Token) bool {
	if t.Kind != TokKeyword {
		return false
	}
	switch string(t.Text) {
	case "endobj", "stream", "endstream", "obj", "xref", "trailer":
		return true
	}
	return false
}
