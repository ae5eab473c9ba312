package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/sanitize"
	"knowhow/internal/spell"
)

// A request is the request to a server that a body contains.
type request struct {
	server string
	method string
	tool   string // the tool that is called in format 1, else ""
	params json.RawMessage
}

// fields are the members of a body as written; nil if missing or null.
type fields struct{ serverID, toolName, method, arguments, params []byte }

const (
	maxMethod = 200 // bytes

	textMalformed = "malformed JSON"
	textInvalid   = "invalid request"
	example       = `{"server_id":"SERVER","tool_name":"TOOL","arguments":{}}`
)

// parse parses the body of POST /invoke (FR-7.2, FR-7.3). It reports the first
// error in this order: malformed JSON, unknown or duplicate fields, server_id,
// tool_name or method, arguments or params. The content of arguments and params
// is not checked. It is sent to the server unchanged.
func parse(body []byte) (request, *failure) {
	f, fail := readFields(body)
	if fail != nil {
		return request{}, fail
	}
	if f.serverID == nil {
		return request{}, malformed("missing server_id", "name the server to call in server_id, for example %s", example)
	}
	server, fail := text("server_id", f.serverID)
	if fail != nil {
		return request{}, fail
	}
	switch {
	case f.toolName != nil:
		return toolRequest(server, f)
	case f.method != nil:
		return methodRequest(server, f)
	}
	return request{}, malformed("missing tool_name or method", "name the tool to call in tool_name, or the MCP request to send in method, for example %s", example)
}

// readFields reads the members of a body.
func readFields(body []byte) (f fields, fail *failure) {
	switch err := checkJSON(body); {
	case err != nil:
		return f, malformed(textMalformed, "the body is not valid JSON: %v", err)
	case bytes.TrimSpace(body)[0] != '{':
		return f, malformed(textInvalid, "the body must be a JSON object, for example %s", example)
	}
	known := []string{"server_id", "tool_name", "method", "arguments", "params"}
	at := []*[]byte{&f.serverID, &f.toolName, &f.method, &f.arguments, &f.params}
	var seen [5]bool
	for m := range members(body) {
		i := slices.Index(known, m.name)
		switch {
		case i < 0:
			return f, malformed("unknown field", "the body has an unknown field %s%s", spell.Quote(m.name), meant(m.name, known))
		case seen[i]:
			return f, malformed("duplicate field", "the body has %q twice", m.name)
		}
		if seen[i] = true; m.value[0] != 'n' { // null
			*at[i] = m.value
		}
	}
	return f, nil
}

// meant suggests known names for an unknown field.
func meant(name string, known []string) string {
	if near := spell.Near(name, known, 1); len(near) > 0 {
		return ", did you mean " + spell.List(near) + "?"
	}
	return "; known fields are " + spell.List(known)
}

// checkJSON returns an error if text is not valid JSON.
func checkJSON(body []byte) error {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return errors.New("it is empty")
	case !utf8.Valid(body):
		return errors.New("it is not UTF-8")
	case json.Valid(body):
		return nil
	}
	var raw json.RawMessage
	return json.Unmarshal(body, &raw)
}

// toolRequest reads format 1.
func toolRequest(server string, f fields) (request, *failure) {
	tool, fail := text("tool_name", f.toolName)
	if fail != nil {
		return request{}, fail
	}
	if f.params != nil && f.method == nil {
		return request{}, malformed(textInvalid, "params goes with method: give what the tool takes as arguments")
	}
	arguments, fail := object("arguments", f.arguments)
	if fail != nil {
		return request{}, fail
	}
	params := slices.Concat([]byte(`{"name":`), f.toolName, []byte(`,"arguments":`), arguments, []byte("}"))
	return request{server: server, method: "tools/call", tool: tool, params: params}, nil
}

// methodRequest reads format 2.
func methodRequest(server string, f fields) (request, *failure) {
	method, fail := text("method", f.method)
	if fail != nil {
		return request{}, fail
	}
	switch {
	case len(method) > maxMethod || strings.ContainsFunc(method, sanitize.Invisible):
		return request{}, malformed(textInvalid, "method must be at most %d bytes, without control characters", maxMethod)
	case method == "initialize" || strings.HasPrefix(method, "notifications/"):
		return request{}, malformed(textInvalid, "%s is not for callers: the bridge connects to servers itself, and passes on requests only", spell.Quote(method))
	case f.arguments != nil:
		return request{}, malformed(textInvalid, "arguments goes with tool_name: give what the method takes as params")
	}
	params, fail := object("params", f.params)
	if fail != nil {
		return request{}, fail
	}
	if method == "tasks/status" { // not in any revision of MCP, but used by skills
		method = "tasks/get"
	}
	params, fail = taskParams(method, params)
	return request{server: server, method: method, params: params}, fail
}

// taskParams returns params in which task_id is renamed to taskId, its name in
// MCP, for the task methods of MCP.
func taskParams(method string, params []byte) (json.RawMessage, *failure) {
	switch method {
	case "tasks/get", "tasks/result", "tasks/cancel":
	default:
		return params, nil
	}
	var renamed json.RawMessage
	count, at := 0, 0
	for m := range members(params) {
		if m.name != "taskId" && m.name != "task_id" {
			continue
		}
		if count++; m.name == "task_id" {
			renamed = append(append(renamed, params[at:m.start]...), `"taskId"`...)
			at = m.start + m.nameLen
		}
	}
	if count > 1 {
		return nil, malformed(textInvalid, "params names the task more than once: give taskId only")
	}
	return append(renamed, params[at:]...), nil
}

// A member is a member of a JSON object.
type member struct {
	name           string
	start, nameLen int             // position of its name in the object, including quotes
	value          json.RawMessage // as written, without the white space around
}

// members returns the members of a valid JSON object, in their order.
func members(object []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		dec := json.NewDecoder(bytes.NewReader(object))
		_, err := dec.Token() // the brace
		for err == nil && dec.More() {
			at := int(dec.InputOffset())
			m := member{start: at + bytes.IndexByte(object[at:], '"')} // at most a comma precedes it
			var name json.Token
			if name, err = dec.Token(); err != nil {
				return
			}
			m.name, _ = name.(string)
			m.nameLen = int(dec.InputOffset()) - m.start
			if err = dec.Decode(&m.value); err != nil || !yield(m) {
				return
			}
		}
	}
}

// text returns a field that must be a non-empty string.
func text(name string, value []byte) (string, *failure) {
	s := ""
	if json.Unmarshal(value, &s) != nil || s == "" {
		return "", malformed(textInvalid, "%s must be a string that is not empty", name)
	}
	return s, nil
}

// object returns a field that must be an object, or {} if it is missing.
func object(name string, value []byte) ([]byte, *failure) {
	switch {
	case value == nil:
		return []byte("{}"), nil
	case value[0] != '{':
		return nil, malformed(textInvalid, "%s must be a JSON object", name)
	}
	return value, nil
}
