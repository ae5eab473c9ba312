package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// A request is the request to a server that a body contains.
type request struct {
	server string
	method string
	tool   string // the tool that is called in format 1, else ""
	params json.RawMessage
}

// fields are the members of a body as written, except for those that are null.
type fields map[string]json.RawMessage

// known are the fields of a body.
var known = []string{"server_id", "tool_name", "method", "arguments", "params"}

const (
	maxMethod = 200 // bytes

	textMalformed = "malformed JSON"
	textInvalid   = "invalid request"
	example       = `{"server_id":"SERVER","tool_name":"TOOL","arguments":{}}`
)

// parse parses the body of POST /invoke (FR-7.2, FR-7.3). It reports the first
// error in this order: malformed JSON, unknown or duplicate fields, server_id,
// tool_name or method, arguments or params. The content of arguments and params is
// not checked. It is sent to the server unchanged.
func parse(body []byte) (request, *failure) {
	f, fail := readFields(body)
	if fail != nil {
		return request{}, fail
	}
	if f["server_id"] == nil {
		return request{}, malformed("missing server_id", "name the server to call in server_id, for example %s",
			example)
	}
	server, fail := f.text("server_id")
	switch {
	case fail != nil:
		return request{}, fail
	case f["tool_name"] != nil:
		return toolRequest(server, f)
	case f["method"] != nil:
		return methodRequest(server, f)
	}
	return request{}, malformed("missing tool_name or method",
		"name the tool to call in tool_name, or the MCP request to send in method, for example %s", example)
}

// readFields reads the members of a body.
func readFields(body []byte) (fields, *failure) {
	switch err := checkJSON(body); {
	case err != nil:
		return nil, malformed(textMalformed, "the body is not valid JSON: %v", err)
	case bytes.TrimSpace(body)[0] != '{':
		return nil, malformed(textInvalid, "the body must be a JSON object, for example %s", example)
	}
	f, seen := fields{}, map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(body)) // without errors: the body is a valid object
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		var value json.RawMessage
		_ = d.Decode(&value)
		switch {
		case !slices.Contains(known, name):
			return nil, malformed("unknown field", "the body has an unknown field %s%s", spell.Quote(name), meant(name))
		case seen[name]:
			return nil, malformed("duplicate field", "the body has %q twice", name)
		}
		if seen[name] = true; string(value) != "null" {
			f[name] = value
		}
	}
	return f, nil
}

// meant suggests known names for an unknown field.
func meant(name string) string {
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
	tool, fail := f.text("tool_name")
	if fail != nil {
		return request{}, fail
	}
	if f["params"] != nil && f["method"] == nil {
		return request{}, malformed(textInvalid, "params goes with method: give what the tool takes as arguments")
	}
	arguments, fail := f.object("arguments")
	if fail != nil {
		return request{}, fail
	}
	params := slices.Concat([]byte(`{"name":`), f["tool_name"], []byte(`,"arguments":`), arguments, []byte("}"))
	return request{server: server, method: "tools/call", tool: tool, params: params}, nil
}

// methodRequest reads format 2.
func methodRequest(server string, f fields) (request, *failure) {
	method, fail := f.text("method")
	if fail != nil {
		return request{}, fail
	}
	switch {
	case len(method) > maxMethod || strings.ContainsFunc(method, sanitize.Invisible):
		return request{}, malformed(textInvalid, "method must be at most %d bytes, without control characters",
			maxMethod)
	case method == "initialize" || strings.HasPrefix(method, "notifications/"):
		return request{}, malformed(textInvalid,
			"%s is not for callers: the bridge connects to servers itself, and passes on requests only",
			spell.Quote(method))
	case f["arguments"] != nil:
		return request{}, malformed(textInvalid, "arguments goes with tool_name: give what the method takes as params")
	}
	params, fail := f.object("params")
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
// MCP, for the task methods of MCP. Other params are returned unchanged.
func taskParams(method string, params json.RawMessage) (json.RawMessage, *failure) {
	switch method {
	case "tasks/get", "tasks/result", "tasks/cancel":
	default:
		return params, nil
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(params, &members) // a valid object
	id, ok := members["task_id"]
	switch {
	case !ok:
		return params, nil
	case members["taskId"] != nil:
		return nil, malformed(textInvalid, "params names the task more than once: give taskId only")
	}
	delete(members, "task_id")
	members["taskId"] = id
	renamed, err := compact.Marshal(members)
	if err != nil {
		return nil, malformed(textInvalid, "params must be a JSON object")
	}
	return renamed, nil
}

// text returns a field that must be a non-empty string.
func (f fields) text(name string) (string, *failure) {
	s := ""
	if json.Unmarshal(f[name], &s) != nil || s == "" {
		return "", malformed(textInvalid, "%s must be a string that is not empty", name)
	}
	return s, nil
}

// object returns a field that must be an object, or {} if it is missing.
func (f fields) object(name string) (json.RawMessage, *failure) {
	switch value := f[name]; {
	case value == nil:
		return json.RawMessage("{}"), nil
	case value[0] != '{':
		return nil, malformed(textInvalid, "%s must be a JSON object", name)
	default:
		return value, nil
	}
}
