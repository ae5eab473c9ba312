package doctor

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
)

// readFile returns the bytes of a configuration file. One that is too large is cut to one
// byte more than what package configfile accepts.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened, which waits for the writer of a pipe
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &configfile.Error{Reason: "it is not a file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, configfile.MaxSize+1))
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
func entries(f clients.File, data []byte) (list []entry, err error) {
	found, err := configfile.Entries(f.Format, data, f.Place)
	for name, values := range found {
		list = append(list, newEntry(name, values))
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return list, err
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
