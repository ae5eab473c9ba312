package document

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// idForm is the form of an ID: 64 bits, with a letter of a-z for each a and a digit
// for each 0. In most vocabularies, nearly all pairs of letters and all groups of three
// digits are one token, so an ID is cut into the same seven pieces wherever it stands.
// An ID has no capitals and no sign that ends a word in a path or a URL, and cannot
// be taken for a word or a number.
//
// Mean tokens of 1,000 IDs of 64 bits (o200k, cl100k, and Llama 2, which has a token
// for each digit), and their length:
//
//	this form          7.2   7.3  13.0   16 characters
//	letters            7.4   7.7   8.5   14
//	decimal            7.0   7.0  20.0   20
//	base58             7.6   8.1   9.1   11
//	base64url          7.7   8.0   9.2   11
//	base36             8.5   8.6  10.3   13
//	Crockford base32   8.6   8.7  10.5   13
//	consonants         8.7   8.9  10.1   15
//	syllables          8.8   9.8  10.1   21
//	hex                9.4   9.4  14.4   16
//	hex in fours      12.5  12.5  17.6   19
const idForm = "aa000aa000aa00aa"

// IDOf returns the ID of the document with a path inside the source with a label. It
// never changes. Documents that belong to no source have the label "" here.
func IDOf(label, path string) string {
	sum := sha256.Sum256([]byte(label + "\x00" + path))
	return formID(binary.BigEndian.Uint64(sum[:]))
}

// formID returns the ID that stands for a number. Different numbers have different
// IDs.
func formID(n uint64) string {
	id := []byte(idForm)
	for i := len(id) - 1; i >= 0; i-- {
		base := uint64(10)
		if id[i] == 'a' {
			base = 26
		}
		id[i] += byte(n % base)
		n /= base
	}
	return string(id)
}

// oldIDBytes is how many bytes of the same hash an ID had before, in hex.
const oldIDBytes = 16

// PresentID returns the ID that a document has now: of an ID of 32 hex digits, which
// earlier programs gave to documents, that in the present form, otherwise id.
func PresentID(id string) string {
	if len(id) != hex.EncodedLen(oldIDBytes) {
		return id
	}
	sum, err := hex.DecodeString(id)
	if err != nil {
		return id
	}
	return formID(binary.BigEndian.Uint64(sum))
}
