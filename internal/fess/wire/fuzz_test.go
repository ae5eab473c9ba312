package wire

import "testing"

// FuzzDecode decodes bytes as every kind of answer. Rows must have IDs and be few.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"record_count":1,"data":[{"doc_id":"a"},{"doc_id":5},{"title":"x"}],"facet_field":[{"name":"a","result":[]}]}`,
		`{"response":{"status":0,"labels":[{"label":"a","value":"b"}]}}`, `{"response":null}`, `{"data":null}`, `[]`,
		`{"data":[null]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var p Page
		if Decode(body, &p) == nil {
			for _, r := range p.Data {
				if r["doc_id"] == nil || len(p.Data) > maxRows {
					t.Errorf("Decode(%q) has %d rows, one of them %v", body, len(p.Data), r)
				}
			}
		}
		for _, v := range []any{&Page{}, &Labels{}, &PopularWords{}, &Suggestions{}, &SuggestionsV2{}, &Health{},
			&Copy{}} {
			_, _ = Decode(body, v), DecodeV2(body, v)
		}
		ReadFault(body)
		Unframe(body)
		Unmark(string(body))
	})
}
