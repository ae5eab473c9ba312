// Package compact writes JSON for readers who count every byte: without white
// space, without escaping what only HTML needs escaped, and with an object's
// members in an order that was chosen. The MCP door, the schemas of its tools
// and the tools themselves use it.
package compact

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Marshal is json.Marshal without the escaping of <, > and &, which would make
// texts longer and harder to read for a model.
func Marshal(v any) (json.RawMessage, error) { return Append(nil, v) }

// Append appends what [Marshal] returns of v to b. Where that fails it returns b
// as it was.
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
		// The others have an exponent, or are none.
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
	// Everything else takes several times as long.
	w := bytes.NewBuffer(b)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return b, err
	}
	w.Truncate(w.Len() - 1) // the encoder ends with a line feed
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

// An Object is a JSON object whose members keep the order they came in. The
// zero Object is empty and ready to use. A *Object, or a list of them, may be a
// member of another one, and is written without being looked at again; changes
// that come later do not show there.
type Object struct{ members []byte }

// Add appends a member, written as by [Marshal]. A value that JSON cannot hold,
// such as a NaN, is left out with its name. A name that is added twice is there
// twice.
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

// Grow makes room for n bytes more.
func (o *Object) Grow(n int) { o.members = slices.Grow(o.members, n) }

// Len returns how many bytes the object takes as JSON.
func (o *Object) Len() int { return len(o.members) + len("{}") }

// Bytes returns the object as JSON, {} if nothing was added.
func (o *Object) Bytes() json.RawMessage { return appendObject(make([]byte, 0, o.Len()), o) }

// MarshalJSON implements [json.Marshaler].
func (o *Object) MarshalJSON() ([]byte, error) { return o.Bytes(), nil }
