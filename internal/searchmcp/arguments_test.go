package searchmcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestArgumentsRefused is AT-ERR-001 and the second half of AT-TOOL-003: every
// bad argument is an error that names it and says what is allowed, and never
// reaches the service.
func TestArgumentsRefused(t *testing.T) {
	list := func(n int) []string {
		l := make([]string, n)
		for i := range l {
			l[i] = "x"
		}
		return l
	}
	sortFields, hitFields := strings.Join(search.SortFields[:], ", "), strings.Join(fieldNames[:], ", ")
	facetFields := strings.Join(search.FacetFields[:], ", ")
	for _, tt := range []struct {
		tool, argument string // tool and the argument that the error names
		args           args   // beside the required ones
		contains       string
	}{
		{"search", "query", args{"query": nil}, "a string"},
		{"search", "query", args{"query": ""}, "not empty"},
		{"search", "query", args{"query": " \t\u3000"}, "at least one word"},
		{"search", "query", args{"query": `""`}, "at least one word"},
		{"search", "query", args{"query": 5}, "a string"},
		{"search", "query", args{"query": []string{"a"}}, "a string"},
		{"search", "pageSize", args{"pageSize": -5}, "from 1 to 100"},
		{"search", "pageSize", args{"pageSize": 0}, "from 1 to 100"},
		{"search", "pageSize", args{"pageSize": 150}, "got 150, want an integer from 1 to 100"},
		{"search", "pageSize", args{"pageSize": "5"}, "an integer"},
		{"search", "pageSize", args{"pageSize": 1.5}, "an integer"},
		{"search", "start", args{"start": -1}, "from 0 to 9999"},
		{"search", "start", args{"start": 9981}, "at most 10000"},
		{"search", "start", args{"start": json.RawMessage("1e15")}, "from 0 to 9999"},
		{"search", "sort", args{"sort": "date"}, sortFields},
		{"search", "sort", args{"sort": "score.down"}, sortFields},
		{"search", "sort", args{"sort": "CREATED.ASC"}, sortFields},
		{"search", "sort", args{"sort": "score.desc label:hr OR"}, sortFields},
		{"search", "sort", args{"sort": "score,,created"}, sortFields},
		{"search", "sort", args{"sort": "score" + strings.Repeat(",score", 8)}, sortFields},
		{"search", "lang", args{"lang": "english!"}, "language code"},
		{"search", "lang", args{"lang": "en,"}, "language code"},
		{"search", "lang", args{"lang": "en" + strings.Repeat(",en", 10)}, "up to 10"},
		{"search", "facets", args{"facets": args{}}, "a field or a query"},
		{"search", "facets", args{"facets": "label"}, "an object"},
		{"search", "facets.field", args{"facets": args{"field": "title"}}, facetFields},
		{"search", "facets.field", args{"facets": args{"field": strings.Split(strings.Repeat("label ", 12), " ")[:12]}},
			facetFields},
		{"search", "facets.query", args{"facets": args{"query": " "}}, "at least one word"},
		{"search", "facets.query", args{"facets": args{"query": strings.Repeat("q", 1001)}}, "at most 1000 bytes"},
		{"search", "facets.query", args{"facets": args{"query": list(21)}}, "at most 20"},
		{"search", "facets.size", args{"facets": args{"field": "label", "size": 0}}, "from 1 to 1000"},
		{"search", "facets.size", args{"facets": args{"field": "label", "size": 1001}}, "from 1 to 1000"},
		{"search", "facets.minDocCount", args{"facets": args{"field": "label", "minDocCount": -1}}, "from 0 to"},
		{"search", "facets.sort", args{"facets": args{"field": "label", "sort": "up"}}, "count.desc"},
		{"search", "facets.missing", args{"facets": args{"field": "label", "missing": strings.Repeat("m", 101)}},
			"at most 100 bytes"},
		{"search", "facets.sizes", args{"facets": args{"field": "label", "sizes": 1}}, "facets.size"},
		{"search", "geo.distance", args{"geo": args{"point": "1,2"}}, "missing"},
		{"search", "geo.point", args{"geo": args{"distance": "10km"}}, "missing"},
		{"search", "geo.point", args{"geo": args{"point": "1", "distance": "10km"}}, "lat,lon"},
		{"search", "geo.point", args{"geo": args{"point": "90.1,0", "distance": "10km"}}, "from -90 to 90"},
		{"search", "geo.point", args{"geo": args{"point": "0,-180.5", "distance": "10km"}}, "from -180 to 180"},
		{"search", "geo.point", args{"geo": args{"point": "NaN,0", "distance": "10km"}}, "lat,lon"},
		{"search", "geo.distance", args{"geo": args{"point": "1,2", "distance": "10"}}, "a unit"},
		{"search", "geo.distance", args{"geo": args{"point": "1,2", "distance": "0.0km"}}, "above 0"},
		{"search", "geo.distance", args{"geo": args{"point": "1,2", "distance": "-1km"}}, "above 0"},
		{"search", "geo.distance", args{"geo": args{"point": "1,2", "distance": "10 leagues"}}, "a unit"},
		{"search", "includeFields", args{"includeFields": []string{"title", "body"}}, hitFields},
		{"search", "includeFields", args{"includeFields": "title"}, "a list"},
		{"search", "includeFields[0]", args{"includeFields": []any{1}}, "a string"},
		{"search", "page_size", args{"page_size": 5}, `"pageSize"`},
		{"suggest", "prefix", args{"prefix": nil}, "a string"},
		{"suggest", "prefix", args{"prefix": " "}, "beginning of a word"},
		{"suggest", "prefix", args{"prefix": strings.Repeat("p", 1001)}, "at most 1000 bytes"},
		{"suggest", "num", args{"num": 0}, "from 1 to 100"},
		{"suggest", "num", args{"num": 101}, "from 1 to 100"},
		{"suggest", "fields", args{"fields": "title"}, "a list"},
		{"suggest", "fields", args{"fields": []string{"ti tle"}}, "title"},
		{"suggest", "fields", args{"fields": list(11)}, "at most 10"},
		{"suggest", "lang", args{"lang": "?"}, "language code"},
		{"popular_words", "seed", args{"seed": "1"}, "an integer"},
		{"popular_words", "field", args{"field": "a&b"}, "title"},
		{"popular_words", "query", args{"query": "x"}, "seed"},
		{"list_labels", "label", args{"label": "x"}, "no argument"},
		{"health", "x", args{"x": 1}, "no argument"},
		{"get_document", "docId", args{"docId": nil}, "docId"},
		{"get_document", "docId", args{"docId": "fess://finance/doc/d3"}, "doc_id of a search hit"},
		{"get_document", "docId", args{"docId": ""}, "doc_id of a search hit"},
		{"get_document", "docId", args{"docId": "d1\" OR label:\"hr"}, "doc_id of a search hit"},
		{"get_document", "doc_id", args{"doc_id": "d1"}, "only one"},
		{"get_document", "cursor", args{"cursor": "x"}, "no argument"},
		{"read_content", "docId", args{"docId": nil}, "docId"},
		{"read_content", "cursor", args{"cursor": "x"}, "nextCursor"},
		{"read_content", "cursor", args{"cursor": 5}, "a string"},
	} {
		t.Run(tt.tool+" "+tt.argument, func(t *testing.T) {
			f := corpus()
			c := start(t, Options{Domain: finance, Backend: f}, mcpserver.Pinned)
			a := args{}
			for name, v := range required[tt.tool] {
				a[name] = v
			}
			for name, v := range tt.args {
				if a[name] = v; v == nil {
					delete(a, name)
				}
			}
			got := c.tool(tt.tool, a)
			if got.Error == nil || got.Error.Code != -32602 {
				t.Fatalf("%s(%.200v) = %s, want error -32602", tt.tool, a, got.Raw)
			}
			if got.Error.Field("argument") != tt.argument || !strings.Contains(got.Error.Message, tt.contains) {
				t.Errorf("%s(%.200v): argument %s, message %q, want argument %s and a message with %q",
					tt.tool, a, got.Error.Field("argument"), got.Error.Message, tt.argument, tt.contains)
			}
			if len(got.Error.Message) > 700 || len(f.calls) > 0 {
				t.Errorf("%s(%.200v): message of %d bytes, calls %v", tt.tool, a, len(got.Error.Message), f.calls)
			}
		})
	}
}
