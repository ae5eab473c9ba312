package fess

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
)

// errShape reports that a value in an answer does not have the type that Fess
// sends.
var errShape = errors.New("a value of another type was expected")

// A number is a non-negative JSON number. Numbers above the maximum int32
// become that maximum. All counts and times in Fess's answers are such numbers,
// except those in a hit; see [row].
type number float64

// UnmarshalJSON refuses any other value, including null.
func (n *number) UnmarshalJSON(data []byte) error {
	var f float64
	if bytes.Equal(data, []byte("null")) || json.Unmarshal(data, &f) != nil || f < 0 {
		return errShape
	}
	*n = number(min(f, math.MaxInt32))
	return nil
}

// A text is a JSON string.
type text string

// UnmarshalJSON refuses any other value, including null.
func (t *text) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return errShape
	}
	return json.Unmarshal(data, (*string)(t))
}

// texts turns texts into strings.
func texts(list []text) []string {
	all := make([]string, len(list))
	for i, t := range list {
		all[i] = string(t)
	}
	return all
}

// A reader decodes itself. Its checks go beyond what struct tags can express.
type reader interface{ read(d *json.Decoder) error }

// decode decodes a whole answer into v, a [reader] or a pointer for package
// encoding/json. In API v2 the answer is inside of an envelope.
func decode(a *answer, v any) error {
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	read := func() error {
		if r, ok := v.(reader); ok {
			return r.read(d)
		}
		return d.Decode(v)
	}
	var err error
	if versionOf(a.path) == v2 {
		err = errShape
		if broken := members(d, func(name string) error {
			if name != "response" {
				return skip(d)
			}
			err = read()
			return err
		}); broken != nil {
			err = broken
		}
	} else {
		err = read()
	}
	if _, end := d.Token(); err != nil || end != io.EOF {
		return notFess(a)
	}
	return nil
}

// members decodes an object. It calls f with the name of each member; f must
// decode the value.
func members(d *json.Decoder, f func(name string) error) error {
	return list(d, '{', func() error {
		name, err := d.Token()
		if err != nil {
			return err
		}
		return f(name.(string)) // Token returns nothing else here
	})
}

// elements decodes an array. It calls f for each element; f must decode it.
func elements(d *json.Decoder, f func() error) error { return list(d, '[', f) }

// list decodes an object or an array and calls f for each item in it.
func list(d *json.Decoder, opening json.Delim, f func() error) error {
	if t, err := d.Token(); err != nil || t != opening {
		return errShape
	}
	for d.More() {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// skip skips a value.
func skip(d *json.Decoder) error {
	var raw json.RawMessage
	return d.Decode(&raw)
}

// A listing is an answer that contains a list. The name of the list's member is
// "data" in API v1 and differs between the calls of API v2.
type listing[T any] struct {
	member string
	rows   []T
	total  *number // number of existing rows
	size   *number // number of rows in the answer; nil in most answers
}

// read implements [reader].
func (l *listing[T]) read(d *json.Decoder) error {
	err := members(d, func(name string) error {
		switch name {
		case l.member:
			if err := d.Decode(&l.rows); err != nil || l.rows == nil {
				return errShape
			}
			return nil
		case "record_count":
			return d.Decode(&l.total)
		case "page_size":
			return d.Decode(&l.size)
		}
		return skip(d)
	})
	if err == nil && l.total == nil {
		return errShape
	}
	return err
}

// rows returns the list in an answer; member is the name of the list in API v2.
// API v1 omits an empty list, except that of popular words.
func rows[T any](a *answer, member string) ([]T, error) {
	l := listing[T]{member: member}
	if versionOf(a.path) == v1 {
		l.member = "data"
	}
	if err := decode(a, &l); err != nil {
		return nil, err
	}
	sent := l.total
	if l.size != nil {
		sent = l.size
	}
	if l.rows == nil && (versionOf(a.path) != v1 || a.is(popularCall) || *sent > 0) {
		return nil, notFess(a)
	}
	return l.rows, nil
}
