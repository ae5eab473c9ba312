package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"github.com/knowhow-mcp/knowhow/internal/clients"
)

// Limits of the configuration files of clients. The parsers recurse, and the time of the
// one for TOML grows more than linearly with the depth.
const (
	maxFile  = 4 << 20
	maxDepth = 200
)

// A fileError is an error of a file that cannot be used, without its path.
type fileError struct {
	message string
	line    int // from 1; 0 if it is not known
}

// Error returns the message with the line.
func (e *fileError) Error() string {
	if e.line > 0 {
		return fmt.Sprintf("line %d: %s", e.line, e.message)
	}
	return e.message
}

// readFile returns the values of a configuration file. It is an error for which the
// client, too, cannot use the file.
func readFile(f clients.File) (map[string]any, error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fileError{message: "it is not a file"}
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, &fileError{message: "it is larger than 4 MiB"}
	}
	return parse(f.Format, data)
}

// parse returns the values in data. An empty file has none.
func parse(format clients.Format, data []byte) (values map[string]any, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case !utf8.Valid(data):
		return nil, &fileError{message: "it is not UTF-8"}
	case len(bytes.TrimSpace(data)) == 0:
		return nil, nil
	case tooDeep(data, format):
		return nil, &fileError{message: "its values are nested too deep"}
	}
	switch format {
	case clients.TOML:
		err = parseTOML(data, &values)
	case clients.YAML:
		if err = yaml.Unmarshal(data, &values); err != nil {
			err = &fileError{message: "it is not valid YAML", line: lineIn(err.Error(), "line %d:")}
		}
	default:
		err = parseJSON(data, &values)
	}
	return values, err
}

// tooDeep reports whether values are nested deeper than parsers can bear. It also counts
// brackets and dots in strings.
func tooDeep(data []byte, format clients.Format) bool {
	depth, dots := 0, 0 // the parts of a TOML key nest as well
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '.':
			dots++
		case '=', '\n':
			dots = 0
		}
		if depth > maxDepth || format == clients.TOML && dots > maxDepth {
			return true
		}
	}
	return false
}

// parseJSON parses JSON with comments and trailing commas.
func parseJSON(data []byte, values *map[string]any) error {
	standard, err := hujson.Standardize(append(slices.Clone(data), '\n')) // a comment must end with a line
	if err != nil {
		return &fileError{message: "it is not valid JSON", line: lineIn(err.Error(), "hujson: line %d,")}
	}
	if err := json.Unmarshal(standard, values); err != nil {
		return &fileError{message: "it is not a JSON object"}
	}
	return nil
}

// parseTOML parses TOML.
func parseTOML(data []byte, values *map[string]any) error {
	if err := toml.Unmarshal(data, values); err != nil {
		failed, _ := errors.AsType[toml.ParseError](err)
		return &fileError{message: "it is not valid TOML", line: failed.Position.Line}
	}
	return nil
}

// lineIn returns the number of a line in a message.
func lineIn(message, format string) (line int) {
	for i := range message {
		if _, err := fmt.Sscanf(message[i:], format, &line); err == nil {
			return line
		}
	}
	return 0
}

// An entry is a server in a configuration file.
type entry struct {
	name    string
	values  map[string]any
	server  clients.Server
	headers map[string]string
	off     bool
}

// entries returns the servers at a place of a file, sorted by name.
func entries(values map[string]any, place clients.Place) (list []entry) {
	var at any = values
	for _, key := range place.Keys {
		object, _ := at.(map[string]any)
		at = object[key]
	}
	switch servers := at.(type) {
	case map[string]any:
		for name, value := range servers {
			if object, ok := value.(map[string]any); ok {
				list = append(list, newEntry(name, object))
			}
		}
	case []any:
		for _, value := range servers {
			if object, ok := value.(map[string]any); ok {
				name, _ := object["name"].(string)
				list = append(list, newEntry(name, object))
			}
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return list
}

// newEntry returns an entry.
func newEntry(name string, values map[string]any) entry {
	e := entry{name: name, values: values, server: clients.Read(name, values), headers: map[string]string{}}
	objects := []any{values["headers"], values["http_headers"]}
	if options, ok := values["requestOptions"].(map[string]any); ok {
		objects = append(objects, options["headers"])
	}
	for _, object := range objects {
		headers, _ := object.(map[string]any)
		for key, value := range headers {
			if s, ok := value.(string); ok {
				e.headers[key] = s
			}
		}
	}
	disabled, _ := values["disabled"].(bool)
	enabled, given := values["enabled"].(bool)
	e.off = disabled || given && !enabled
	return e
}
