// Package compact writes JSON for readers who count every byte: without white
// space, without escaping what only HTML needs escaped, and with an object's
// members in an order that was chosen. The MCP door, the schemas of its tools
// and the tools themselves use it.
package compact

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal without the escaping of <, > and &, which would make
// texts longer and harder to read for a model.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := write(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// An Object is a JSON object whose members keep the order they came in. The
// zero Object is empty and ready to use. As a member of something else it is
// given as its Bytes.
type Object struct{ members bytes.Buffer }

// Add appends a member, written as by [Marshal]. A value that JSON cannot hold,
// such as a NaN, is left out with its name. A name that is added twice is there
// twice.
func (o *Object) Add(name string, v any) {
	length := o.members.Len()
	if length > 0 {
		o.members.WriteByte(',')
	}
	if write(&o.members, name) == nil {
		o.members.WriteByte(':')
		if write(&o.members, v) == nil {
			return
		}
	}
	o.members.Truncate(length)
}

// Bytes returns the object as JSON, {} if nothing was added.
func (o *Object) Bytes() json.RawMessage {
	b := make([]byte, 0, o.members.Len()+2)
	b = append(b, '{')
	b = append(b, o.members.Bytes()...)
	return append(b, '}')
}

// write appends v to b, or nothing if JSON cannot hold it.
func write(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder ends with a line feed
	return nil
}
