// Package cos reads the objects of PDF files (called the Carousel Object System
// by Adobe): tokens, dictionaries and streams, cross-reference tables, filters,
// and encryption with an empty password.
//
// Package pdf uses it and interprets the objects. It is pure and designed for
// foreign bytes: damaged tables are rebuilt, damaged streams are decoded as far
// as possible, and all work is taken from a [Budget].
package cos

// An Object is a value of a PDF file (ISO 32000-1, 7.3): nil, bool, int,
// float64, string, [Name], [Array], [Dict], [Ref] or *[Stream]. Strings are the
// bytes in the file, possibly encrypted.
type Object any

// A Name is an atom such as /Type, without its slash.
type Name string

// An Array is a list of objects, which may be references.
type Array []Object

// A Dict maps names to objects, which may be references. It is shared, because
// only one reader uses a file.
type Dict map[Name]Object

// A Ref identifies an indirect object.
type Ref struct{ num, gen int }

// A Stream is a dictionary with bytes, which are still encoded by its filters.
type Stream struct {
	Dict Dict
	raw  []byte
	id   Ref // selects the decryption key; zero if it is not encrypted
}

// number returns the value of an int or float64.
func number(o Object) (float64, bool) {
	switch v := o.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Integer returns the value of a number that fits into 31 bits, so that small
// sums cannot overflow.
func Integer(o Object) (int, bool) {
	f, ok := number(o)
	if !ok || f != f || f < -1<<31 || f >= 1<<31 {
		return 0, false
	}
	return int(f), true
}
