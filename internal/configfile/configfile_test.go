package configfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// entry is what the tests add.
var entry = []configfile.Member{
	{"type", "stdio"}, {"command", "/usr/bin/knowhow"}, {"args", []string{"mcp", "/home/ann/hand book"}},
	{"env", []configfile.Member{{"A", "1"}}}, {"enabled", true}, {"timeout", 300},
}

// small is an entry that fits in goldens.
var small = []configfile.Member{{"command", "x"}, {"args", []string{"a", "b"}}}

// placeIn returns the place of the entry "files" that the tests use.
func placeIn(format configfile.Format, isList bool) configfile.Place {
	switch {
	case isList:
		return configfile.Place{Keys: []string{"mcpServers"}, Name: "files", List: true}
	case format == configfile.TOML:
		return configfile.Place{Keys: []string{"mcp_servers"}, Name: "files"}
	case format == configfile.YAML:
		return configfile.Place{Keys: []string{"extensions"}, Name: "files"}
	}
	return configfile.Place{Keys: []string{"mcpServers"}, Name: "files"}
}

func TestSet(t *testing.T) {
	json, toml, yaml := configfile.JSON, configfile.TOML, configfile.YAML
	tests := []struct {
		name       string
		format     configfile.Format
		list       bool
		data, want string
		exact      bool // Remove returns data
	}{
		{"no file", json, false, "", `{
  "mcpServers": {
    "files": {
      "command": "x",
      "args": ["a", "b"]
    }
  }
}
`, false},
		{"empty object", json, false, "{}\n", `{
  "mcpServers": {
    "files": {
      "command": "x",
      "args": ["a", "b"]
    }
  }
}
`, false},
		{"neighbours with tabs and comments", json, false, `{
	// the servers
	"mcpServers": {
		"a": {
			"command": "y", // c
			"args": [
				"z"
			]
		} // last
		// end
	},
	"b": 1.50, "b": 2
}`, `{
	// the servers
	"mcpServers": {
		"a": {
			"command": "y", // c
			"args": [
				"z"
			]
		}, // last
		"files": {
			"command": "x",
			"args": [
				"a",
				"b"
			]
		}
		// end
	},
	"b": 1.50, "b": 2
}`, true},
		{"trailing commas and one-line entries", json, false,
			"{\r\n    \"mcpServers\": {\r\n        \"a\": { \"command\": \"y\" }, // c\r\n    },\r\n}\r\n",
			"{\r\n    \"mcpServers\": {\r\n        \"a\": { \"command\": \"y\" }, // c\r\n" +
				"        \"files\": { \"command\": \"x\", \"args\": [\"a\", \"b\"] },\r\n    },\r\n}\r\n", true},
		{"minified", json, false, `{"mcpServers":{"a":{"command":"y","args":["z"]}}}`,
			`{"mcpServers":{"a":{"command":"y","args":["z"]},"files":{"command":"x","args":["a","b"]}}}`, true},
		{"replaced", json, false, `{"mcpServers": {"files": {"command": "old"}, "b": {}}}`,
			`{"mcpServers": {"files": {"command": "x", "args": ["a", "b"]}, "b": {}}}`, false},
		{"key with escapes", json, false, `{"mcp\u0053ervers": {"a": {"url": "u"}}}`,
			`{"mcp\u0053ervers": {"a": {"url": "u"}, "files": {"command": "x", "args": ["a", "b"]}}}`, true},
		{"byte order mark", json, false, "\ufeff{\"mcpServers\": {\"a\": null}}",
			"\ufeff{\"mcpServers\": {\"a\": null, \"files\": {\"command\": \"x\", \"args\": [\"a\", \"b\"]}}}", true},

		{"no file", toml, false, "", "[mcp_servers.files]\ncommand = \"x\"\nargs = [\"a\", \"b\"]\n", true},
		{"after the other tables", toml, false, `model = "m" # c

[mcp_servers.a]
command = "y"
# off = 1

# the profile
[profile]
text = '''
[mcp_servers.files]
'''
`, `model = "m" # c

[mcp_servers.a]
command = "y"
# off = 1

[mcp_servers.files]
command = "x"
args = ["a", "b"]

# the profile
[profile]
text = '''
[mcp_servers.files]
'''
`, true},
		{"no line end", toml, false, "a = 1", "a = 1\n\n[mcp_servers.files]\ncommand = \"x\"\nargs = [\"a\", \"b\"]", true},
		{"inline parent", toml, false, "mcp_servers = { a = { command = 'y' } } # c\n",
			"mcp_servers = { a = { command = 'y' }, files = { command = \"x\", args = [\"a\", \"b\"] } } # c\n", true},
		{"inline entry", toml, false, "[mcp_servers]\nfiles = { command = 'y' } # c\n",
			"[mcp_servers]\nfiles = { command = \"x\", args = [\"a\", \"b\"] } # c\n", false},
		{"tables in different places", toml, false,
			"[mcp_servers.files]\ncommand = 'y'\n\n[z]\nq = 1\n\n[mcp_servers.files.env]\nA = '1'\n\n[last]\n",
			"[mcp_servers.files]\ncommand = \"x\"\nargs = [\"a\", \"b\"]\n\n[z]\nq = 1\n\n[last]\n", false},

		{"no file", yaml, false, "", "extensions:\n  files:\n    command: x\n    args:\n      - a\n      - b\n", false},
		{"neighbours", yaml, false, "extensions:\n    a: # c\n        args:\n        - 1\n        # d\n\n# e\nlast: |\n  # f\n",
			"extensions:\n    a: # c\n        args:\n        - 1\n        # d\n    files:\n        command: x\n" +
				"        args:\n        - a\n        - b\n\n# e\nlast: |\n  # f\n", true},
		{"list", yaml, true, "mcpServers:\n  - name: a\n    command: y\nname: z",
			"mcpServers:\n  - name: a\n    command: y\n  - name: files\n    command: x\n    args:\n      - a\n      - b\nname: z", true},
		{"JSON", yaml, false, `{"extensions": {"a": {}}}`,
			`{"extensions": {"a": {}, "files": {"command": "x", "args": ["a", "b"]}}}`, true},
	}
	for _, tt := range tests {
		t.Run(string(tt.format)+" "+tt.name, func(t *testing.T) {
			place := placeIn(tt.format, tt.list)
			got, err := configfile.Set(tt.format, []byte(tt.data), place, small)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("Set (-want +got):\n%s", diff)
			}
			if again, err := configfile.Set(tt.format, got, place, small); err != nil || string(again) != string(got) {
				t.Errorf("second Set() = %q, %v, want the same", again, err)
			}
			members, found, err := configfile.Get(tt.format, got, place)
			if err != nil || !found || !configfile.Equal(members, small) {
				t.Errorf("Get() = %v, %v, %v, want the entry", members, found, err)
			}
			back, err := configfile.Remove(tt.format, got, place)
			if err != nil || tt.exact && string(back) != tt.data {
				t.Errorf("Remove() = %q, %v, want %q", back, err, tt.data)
			}
			if _, found, err := configfile.Get(tt.format, back, place); found || err != nil {
				t.Errorf("Get() after Remove = %v, %v, want false", found, err)
			}
		})
	}
}

func TestSetErrors(t *testing.T) {
	json, toml, yaml := configfile.JSON, configfile.TOML, configfile.YAML
	tests := []struct {
		format       configfile.Format
		data         string
		line, column int
		want         string
	}{
		{json, "{\n  \"mcpServers\": []\n}", 2, 17, `"mcpServers" is a list, want an object`},
		{json, "[]", 1, 1, "the file is a list, want an object"},
		{json, "{\n\"mcpServers\": {},\n \"mcpServers\": {}}", 3, 2, `"mcpServers" is there twice; remove one`},
		{json, "{\"mcpServers\": {\"files\": {}, \"f\\u0069les\": {}}}", 1, 30, `"files" is there twice`},
		{json, "{\n\"a\": secret}", 2, 6, "there is a word or a string that is not valid JSON"},
		{json, "{\n  \"mcpServers\": {\n", 3, 1, "the file ends too early"},
		{json, "{}\n\x00", 2, 1, "NUL"},
		{json, "\xff\xfe{\x00}\x00", 1, 1, "UTF-16"},
		{json, "{\"a\": \"\xff\"}", 1, 8, "not UTF-8"},
		{json, strings.Repeat("[", 300), 1, 201, "nested more than 200 deep"},
		{json, "{}" + strings.Repeat(" ", configfile.MaxSize), 0, 0, "larger than 4 MiB"},
		{toml, "a = 1\n\n[[mcp_servers]]\nname = 'a'\n", 3, 1, `"mcp_servers" is a list, want a table`},
		{toml, "a = 1\nmcp_servers = 'x'\n", 2, 1, `"mcp_servers" is a string, want a table`},
		{toml, "a = 1\na = 2\n", 2, 1, "already been defined"},
		{toml, "a = 1\nb = \n", 2, 5, "invalid TOML"},
		{toml, "a = " + strings.Repeat("[", 300), 1, 205, "nested more than 200 deep"},
		{toml, "mcp_servers = { files.command = 'x' }", 1, 15, "write it as a table"},
		{yaml, "a: 1\nextensions:\n  - name: a\n", 3, 3, `"extensions" is not a mapping`},
		{yaml, "a: 1\nextensions: x\n", 2, 13, `"extensions" is not a mapping`},
		{yaml, "extensions:\n  a: 1\nextensions:\n  b: 1\n", 3, 1, `"extensions" is there twice`},
		{yaml, "a: &x\n  b: 1\nextensions: *x\n", 3, 13, `"extensions" is not a mapping`},
		{yaml, "extensions: &x\n  a: 1\nb: *x\n", 1, 13, `"extensions" has an anchor`},
		{yaml, "a: &x\n  extensions: {}\n<<: *x\n", 1, 1, "merge key"},
		{yaml, "a: 1\n---\nb: 1\n", 2, 1, "more than one document"},
		{yaml, "extensions: {a: {cmd: x}}\n", 1, 13, "write each on lines of its own"},
		{yaml, "a: 1\n\tb: 2\n", 2, 1, "invalid YAML: "},
		{yaml, "a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), 1, 204, "nested more than 200 deep"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %.40q", tt.format, tt.data), func(t *testing.T) {
			for name, change := range map[string]func() ([]byte, error){
				"Set": func() ([]byte, error) {
					return configfile.Set(tt.format, []byte(tt.data), placeIn(tt.format, false), entry)
				},
				"Remove": func() ([]byte, error) {
					return configfile.Remove(tt.format, []byte(tt.data), placeIn(tt.format, false))
				},
			} {
				_, err := change()
				if err == nil && name == "Remove" && strings.Contains(tt.want, "on lines of its own") {
					continue // there is nothing to remove
				}
				e, ok := errors.AsType[*configfile.Error](err)
				if !ok || !errors.Is(err, errkind.Invalid) || !strings.Contains(err.Error(), tt.want) ||
					strings.Contains(err.Error(), "secret") {
					t.Fatalf("%s: %v, want %q", name, err, tt.want)
				}
				if e.Line != tt.line || e.Column != tt.column {
					t.Errorf("%s: %v, want line %d and column %d", name, err, tt.line, tt.column)
				}
			}
		})
	}
}
