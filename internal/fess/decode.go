package fess

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
)

// errShape means that a value of an answer is not of the type that Fess sends.
var errShape = errors.New("a value of another type was expected")

// A number is a JSON number from 0 on; what is above an int32 is its greatest
// value. All counts and times of Fess's answers are such numbers, but not the
// numbers of a hit, which a [row] reads.
type number float64

// UnmarshalJSON refuses everything else, null included.
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

// UnmarshalJSON refuses everything else, null included.
func (t *text) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return errShape
	}
	*t = text(unquote(string(data)))
	return nil
}

// texts turns texts into strings.
func texts(list []text) []string {
	all := make([]string, len(list))
	for i, t := range list {
		all[i] = string(t)
	}
	return all
}

// A listing is an answer that lists things. The list is in the member "data" of
// API v1, in one of its own name in v2.
type listing[T any] struct {
	member string
	rows   []T
	total  *number // of rows that there are
	size   *number // of rows that were sent; nil in most answers
}

// read implements [reader].
func (l *listing[T]) read(s *scanner) bool {
	ok := s.object(func(name []byte) bool {
		switch string(name) {
		case l.member:
			return s.into(&l.rows) && l.rows != nil
		case "record_count":
			return s.into(&l.total)
		case "page_size":
			return s.into(&l.size)
		}
		return s.skip()
	})
	return ok && l.total != nil
}

// rows returns what an answer lists; member is the list's name in API v2. API v1
// leaves the list out where it would be empty, but not that of popular words.
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
