package fess

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// A number is a JSON number, or a string that holds one: Fess's numbers are
// strings where a document was crawled, and numbers where it was loaded through
// the administration's API. Anything else is 0.
type number float64

// UnmarshalJSON never fails on well-formed JSON.
func (n *number) UnmarshalJSON(data []byte) error {
	f, _ := strconv.ParseFloat(strings.TrimSpace(string(bytes.Trim(data, `"`))), 64)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	*n = number(min(max(f, math.MinInt32), math.MaxInt32))
	return nil
}

// A text is a JSON string, or a number or boolean as a string. Anything else is
// "".
type text string

// UnmarshalJSON never fails on well-formed JSON.
func (t *text) UnmarshalJSON(data []byte) error {
	s, _ := scalar(string(data))
	*t = text(s)
	return nil
}

// A list is a JSON list of strings, or one string. Anything else is empty.
type list []string

// UnmarshalJSON never fails on well-formed JSON.
func (l *list) UnmarshalJSON(data []byte) error {
	*l = stringList(string(data))
	return nil
}
