package fessserver_test

import (
	"encoding/json"
	"net/http"
	gopath "path"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRequest sends any parameters to any path: every answer is well-formed and
// none is a failure of ours.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"q=test&num=5&start=10&sort=created.desc,score.asc", "q=a+OR&fields.label=finance&fields.label=hr",
		"q=%22a&ex_q=b&ex_q=((",
		"as.q=a&as.epq=b+c&as.oq=d+e&as.nq=f&as.filetype=pdf&as.sitesearch=x&as.timestamp=[now+TO+*]&as.occt=allintitle",
		"q=a&facet.field=label&facet.query=a+b&facet.size=1&facet.sort=key.asc&facet.missing=x&facet.minDocCount=0",
		"q=a&geo.location.point=1,2&geo.location.distance=3km", "q=%FF%00%u1234&lang=ja;x=y",
		"num=-1&start=99999999999&track_total_hits=false",
		"fields.label%22+OR=x&fields.=y&fields.host=*", "docId=x&hq=y", "q=allintitle%3A&ex_q=allinurl%3Ab",
		"q=a~2+b^3+c*+?d+timestamp:%7Bx+TO+y%5D",
	} {
		f.Add("/api/v1/documents", s)
		f.Add("/api/v2/search", s)
		f.Add("/api/v2/suggest-words", s)
		f.Add("/cache/", s)
	}
	f.Add("/api/v2/cache/../x", "")
	f.Add("/api/v1/../../x//", "q=a")
	h := handler(f)
	f.Fuzz(func(t *testing.T, path, rawQuery string) {
		if strings.ContainsAny(path, "%?") {
			return // the listener has taken these apart
		}
		w := ask(t, h, http.MethodGet, path+"?"+rawQuery, nil)
		body := w.Body.Bytes()
		switch kind := w.Header().Get("Content-Type"); {
		case strings.HasPrefix(kind, "application/json"):
			var v map[string]any
			if err := json.Unmarshal(body, &v); err != nil {
				t.Errorf("GET %q?%q answers with the JSON %q: %v", path, rawQuery, body, err)
			}
		case !strings.HasPrefix(kind, "text/html"):
			t.Errorf("GET %q?%q answers with the type %q", path, rawQuery, kind)
		}
		if !utf8.Valid(body) {
			t.Errorf("GET %q?%q answers with %q, which is no UTF-8", path, rawQuery, body)
		}
		if w.Code >= 500 && gopath.Clean("/"+path) != "/api/v1/suggest-words" { // that fails without q, as in Fess
			t.Errorf("GET %q?%q = %d %s", path, rawQuery, w.Code, body)
		}
	})
}
