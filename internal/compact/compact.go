// Package compact writes compact JSON: without white space, without escapes
// that only HTML needs, and with the members of objects in a chosen order. It
// is used for MCP messages, schemas and tool results, where every byte costs
// tokens of a model.
package compact

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Marshal is like [json.Marshal], but does not escape <, > and &, because the
// escapes make texts longer and harder to read for a model.
func Marshal(v any) (json.RawMessage, error) { return Append(nil, v) }

// Append appends the JSON encoding of v, as returned by [Marshal], to b. If it
// returns an error, it returns b unchanged.
func Append(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case string:
		return AppendString(b, v), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		// Other numbers have an exponent or are not valid JSON.
		if abs := math.Abs(v); v == 0 || abs >= 1e-6 && abs < 1e21 {
			return strconv.AppendFloat(b, v, 'f', -1, 64), nil
		}
	case []string:
		if v != nil {
			return appendList(b, v, AppendString), nil
		}
	case *Object:
		if v != nil {
			return appendObject(b, v), nil
		}
	case []*Object:
		if v != nil {
			return appendList(b, v, appendObject), nil
		}
	}
	// The encoder is several times slower.
	w := bytes.NewBuffer(b)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return b, err
	}
	w.Truncate(w.Len() - 1) // the encoder appends a newline
	return w.Bytes(), nil
}

func appendList[T any](b []byte, list []T, element func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, v)
	}
	return append(b, ']')
}

func appendObject(b []byte, o *Object) []byte {
	if o == nil {
		return append(b, "null"...)
	}
	b = append(b, '{')
	b = append(b, o.members...)
	return append(b, '}')
}

// An Object is a JSON object whose members stay in the order of insertion. The
// zero Object is empty and ready to use. A *Object, or a list of them, may be a
// member of another Object. Its current members are copied; later changes have
// no effect on the other Object.
type Object struct{ members []byte }

// Add appends a member, encoded as by [Marshal]. If the value cannot be
// encoded, such as a NaN, the member is omitted. A name that is added twice
// occurs twice.
func (o *Object) Add(name string, v any) {
	b := o.members
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = append(AppendString(b, name), ':')
	if b, err := Append(b, v); err == nil {
		o.members = b
	}
}

// Grow reserves space for n more bytes.
func (o *Object) Grow(n int) { o.members = slices.Grow(o.members, n) }

// Len returns the length of the JSON encoding in bytes.
func (o *Object) Len() int { return len(o.members) + len("{}") }

// Bytes returns the JSON encoding as a new slice, {} if nothing was added.
func (o *Object) Bytes() json.RawMessage { return appendObject(make([]byte, 0, o.Len()), o) }

// MarshalJSON implements [json.Marshaler].
func (o *Object) MarshalJSON() ([]byte, error) { return o.Bytes(), nil }
