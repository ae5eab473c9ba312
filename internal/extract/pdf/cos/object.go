// Package cos reads the objects that a PDF file is made of (Adobe calls them
// the Carousel Object System): tokens, dictionaries and streams, the tables
// that find them, filters, and encryption with an empty password.
//
// It serves package pdf, which knows what the objects mean. It is pure and
// made for foreign bytes: damaged tables are made anew, damaged streams give
// what can be decoded, and all work is taken from a [Budget].
package cos

// An Object is a value of a PDF file (ISO 32000-1, 7.3): nil, bool, int,
// float64, string, [Name], [Array], [Dict], [Ref] or *[Stream]. Strings are as
// the file has them: bytes, perhaps encrypted.
type Object any

// A Name is an atom such as /Type, without its slash.
type Name string

// An Array is a list of objects, which may be references.
type Array []Object

// A Dict maps names to objects, which may be references. It is shared: only
// one reader works on a file.
type Dict map[Name]Object

// A Ref names an indirect object.
type Ref struct{ num, gen int }

// A Stream is a dictionary with bytes, still encoded by its filters.
type Stream struct {
	Dict Dict
	raw  []byte
	id   Ref // whose key decrypts it; zero for what is not encrypted
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

// Integer returns the value of a number that fits into 31 bits, so that sums
// of a few cannot overflow.
func Integer(o Object) (int, bool) {
	f, ok := number(o)
	if !ok || f != f || f < -1<<31 || f >= 1<<31 {
		return 0, false
	}
	return int(f), true
}
