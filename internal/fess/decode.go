package fess

import (
	"bytes"
	"encoding/json"
	"errors"
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
	var v any
	if err := decodeExactly(data, &v); err != nil {
		return err
	}
	s, _ := scalar(v)
	*t = text(s)
	return nil
}

// A list is a JSON list of strings, or one string. Anything else is empty.
type list []string

// UnmarshalJSON never fails on well-formed JSON.
func (l *list) UnmarshalJSON(data []byte) error {
	var v any
	if err := decodeExactly(data, &v); err != nil {
		return err
	}
	*l = stringList(v)
	return nil
}

// decodeExactly reads one JSON value, behind which nothing may follow, and
// keeps numbers as they were written.
func decodeExactly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// scalar returns a string, number or boolean as a string.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// stringList returns a list's scalars, or one scalar as a list.
func stringList(v any) []string {
	if s, ok := scalar(v); ok {
		return []string{s}
	}
	values, _ := v.([]any)
	var all []string
	for _, v := range values {
		if s, ok := scalar(v); ok {
			all = append(all, s)
		}
	}
	return all
}
