package configfile_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/knowhow-mcp/knowhow/internal/configfile"
)

// checkFile adds an entry to a file and removes it. It reports whether the file
// is one that can be changed.
func checkFile(t *testing.T, format configfile.Format, isList bool, data []byte) bool {
	t.Helper()
	place := placeIn(format, isList)
	_, found, err := configfile.Get(format, data, place)
	if err != nil {
		return false
	}
	got, err := configfile.Set(format, data, place, entry)
	if err != nil {
		return false
	}
	if members, ok, err := configfile.Get(format, got, place); err != nil || !ok || !configfile.Equal(members, entry) {
		t.Fatalf("%q: Get() after Set = %v, %v, %v in %q", data, members, ok, err, got)
	}
	if !found {
		checkKept(t, data, got)
	}
	before, after := decode(format, data), decode(format, got)
	parent := withoutEntry(after, place)
	empty := withoutEntry(before, place)
	if diff := cmp.Diff(before, after, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%q: more than the entry is changed in %q:\n%s", data, got, diff)
	}
	removed, err := configfile.Remove(format, got, place)
	if err != nil {
		t.Fatalf("%q: Remove() from %q: %v", data, got, err)
	}
	if _, ok, err := configfile.Get(format, removed, place); ok || err != nil {
		t.Fatalf("%q: Get() after Remove = %v, %v in %q", data, ok, err, removed)
	}
	if !found && parent > 0 && !bytes.Equal(removed, data) {
		t.Fatalf("%q: Remove(%q) = %q, want the old bytes", data, got, removed)
	}
	undone, err := configfile.Undo(format, got, data, place)
	if err != nil || empty >= 0 && !bytes.Equal(undone, data) && !bytes.Equal(got, data) {
		t.Fatalf("%q: Undo(%q) = %q, %v, want the old bytes", data, got, undone, err)
	}
	return true
}

// checkKept reports bytes of data that got lacks, or has in another order. White
// space and the brackets of collections, which are empty at first, do not count.
func checkKept(t *testing.T, data, got []byte) {
	t.Helper()
	for i, c := range data {
		if bytes.IndexByte([]byte("{}[] \r\n\t"), c) >= 0 {
			continue
		}
		at := bytes.IndexByte(got, c)
		if at < 0 {
			t.Fatalf("%q: %q is lost", data, data[i:])
		}
		got = got[at+1:]
	}
}

// decode decodes a file with another parser than the package where there is one.
func decode(format configfile.Format, data []byte) map[string]any {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var v map[string]any
	switch format {
	case configfile.JSON:
		if json.Unmarshal(data, &v) != nil {
			return nil // with comments
		}
	case configfile.TOML:
		_, _ = toml.Decode(string(data), &v)
	case configfile.YAML:
		_ = yaml.Unmarshal(data, &v)
	}
	return v
}

// withoutEntry removes the entry, and its parent if it is empty then. It returns
// how many entries there are beside it, -1 if the entry was not there.
func withoutEntry(v map[string]any, place configfile.Place) int {
	key := place.Keys[0]
	switch parent := v[key].(type) {
	case map[string]any:
		_, found := parent[place.Name]
		delete(parent, place.Name)
		n := len(parent)
		if n == 0 {
			delete(v, key)
		}
		if !found {
			return -1
		}
		return n
	case map[any]any: // of YAML
		_, found := parent[place.Name]
		delete(parent, place.Name)
		if !found {
			return -1
		}
		return len(parent)
	case []any:
		if len(parent) == 0 {
			delete(v, key)
		}
		for i, e := range parent {
			if m, _ := e.(map[string]any); m["name"] == place.Name {
				v[key] = append(parent[:i:i], parent[i+1:]...)
				if len(parent) == 1 {
					delete(v, key)
				}
				return len(parent) - 1
			}
		}
	case nil:
		delete(v, key)
	}
	return -1
}

func FuzzJSON(f *testing.F) { fuzz(f, configfile.JSON, false) }
func FuzzTOML(f *testing.F) { fuzz(f, configfile.TOML, false) }
func FuzzYAML(f *testing.F) { fuzz(f, configfile.YAML, false) }

func FuzzYAMLList(f *testing.F) { fuzz(f, configfile.YAML, true) }

// fuzz checks files that are made from those of the tables.
func fuzz(f *testing.F, format configfile.Format, isList bool) {
	for _, s := range strange(format, isList) {
		f.Add([]byte(s.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<16 {
			checkFile(t, format, isList, data)
		}
	})
}

// TestLarge checks that no loop over the largest files is quadratic. Those take
// seconds; the limit is for a slow machine.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and minutes with the race detector")
	}
	repeat := func(head, part, tail string) []byte {
		n := (configfile.MaxSize - 1000 - len(head) - len(tail)) / len(part)
		return []byte(head + strings.Repeat(part, n) + tail)
	}
	tests := []struct {
		format configfile.Format
		data   []byte
	}{
		{configfile.JSON, repeat("{\"a\": [", "1234567890123456, \n", "1]}")},
		{configfile.JSON, repeat("{", "\"a\": \"1234567890\", ", "\"b\": 1}")},
		{configfile.JSON, repeat("{", "/**/", "}")},
		{configfile.JSON, repeat("{", "// c\n", "}")},
		{configfile.JSON, repeat("", "{\"a\":", "")},
		{configfile.JSON, repeat("", "/", "")},
		{configfile.JSON, repeat("\"", "\\\"", "")},
		{configfile.TOML, repeat("a = [", "1234567890123456, # ]\n", "]\n")},
		{configfile.TOML, repeat("", "[[a.b]]\nc = '''\n[mcp_servers.files]'''\n", "")},
		{configfile.TOML, repeat("", "# c\n", "")},
		{configfile.TOML, repeat("a = \"", "\\\"", "")},
		{configfile.TOML, repeat("", "a.", "")},
		{configfile.TOML, repeat("a = ", "{a=", "")},
		{configfile.YAML, repeat("a:\n", "- b: 12345678901234567890\n", "")},
		{configfile.YAML, repeat("a: |\n", "  # c\n", "")},
		{configfile.YAML, repeat("", "# c\n", "")},
		{configfile.YAML, repeat("a: ", "[", "")},
		{configfile.YAML, repeat("", "- ", "")},
		{configfile.YAML, repeat("a: \"", "\\\"", "")},
		{configfile.YAML, repeat("", "&a ", "")},
	}
	for _, tt := range tests {
		start := time.Now()
		_, err := configfile.Set(tt.format, tt.data, placeIn(tt.format, false), entry)
		took := time.Since(start)
		t.Logf("%s, %.20q...: %v, %v", tt.format, tt.data, took, err)
		if took > 5*time.Minute {
			t.Errorf("%s, %.20q...: %v", tt.format, tt.data, took)
		}
	}
}
