package configfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/configfile"
)

func TestEntries(t *testing.T) {
	type entries = map[string]map[string]any
	for _, tc := range []struct {
		format configfile.Format
		data   string
		place  configfile.Place
		want   entries
	}{
		{configfile.JSON, `{"servers": {"a": {"url": "u"}, "b": 1, /* c */ "c": {}}}`,
			configfile.Place{Keys: []string{"servers"}}, entries{"a": {"url": "u"}, "c": {}}},
		{configfile.JSON, `{"p": {"/d": {"servers": {"a": {}}}}}`, configfile.Place{Keys: []string{"p", "/d", "servers"}},
			entries{"a": {}}},
		{configfile.JSON, `{}`, configfile.Place{Keys: []string{"servers"}}, entries{}},
		{configfile.JSON, `{"servers": [1]}`, configfile.Place{Keys: []string{"servers"}}, entries{}},
		{configfile.JSON, ``, configfile.Place{Keys: []string{"servers"}}, entries{}},
		{configfile.TOML, "[servers.a]\nargs = ['x', 'y']\n", configfile.Place{Keys: []string{"servers"}},
			entries{"a": {"args": []any{"x", "y"}}}},
		{configfile.YAML, "servers:\n  - name: a\n    url: u\n  - url: v\n  - 5\n",
			configfile.Place{Keys: []string{"servers"}, List: true}, entries{"a": {"url": "u"}}},
	} {
		got, err := configfile.Entries(tc.format, []byte(tc.data), tc.place)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.data, err, diff)
		}
	}
	if _, err := configfile.Entries(configfile.JSON, []byte(`{"a"`), configfile.Place{}); err == nil {
		t.Error("a damaged file has entries")
	}
}
