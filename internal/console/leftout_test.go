package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// get returns the status and the body of the answer to a request for data.
func get(t *testing.T, o Options, target string) (int, string) {
	t.Helper()
	w := ask(t, o, httptest.NewRequest(http.MethodGet, target, nil))
	return w.Code, w.Body.String()
}

// ask returns the answer to a request for data.
func ask(t *testing.T, o Options, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	o.Refuse = func(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) { http.Error(w, f.Message, f.Status) }
	_, data, _ := Routes(o)
	w := httptest.NewRecorder()
	data.Handler.ServeHTTP(w, r)
	return w
}

func TestLeftOut(t *testing.T) {
	o := Options{LeftOut: func(_ context.Context, label string) ([]Path, error) {
		switch label {
		case "docs":
			return []Path{{Path: "</script>\x00\xff\u202e.md", Reason: "hidden"}, {Path: "B.pdf", Reason: "error", Message: "it is Broken"}}, nil
		case "many":
			paths := make([]Path, 120)
			for i := range paths {
				paths[i] = Path{Path: fmt.Sprintf("%03d", i), Reason: "hidden"}
			}
			return paths, nil
		case "broken":
			return nil, errkind.Unavailable
		}
		return nil, fmt.Errorf("no source %q: %w", label, errkind.NotFound)
	}}
	for _, tc := range []struct {
		query  string
		status int
		body   string // a part
	}{
		{"source=docs", 200, `{"source":"docs","total":2,"start":0,"paths":[{"path":"\u003c/script\u003e\u0000\ufffd` + "\u202e" +
			`.md","reason":"hidden"},{"path":"B.pdf","reason":"error","message":"it is Broken"}]}`},
		{"source=docs&q=b.PDF", 200, `"total":1,"start":0,"paths":[{"path":"B.pdf"`},
		{"source=docs&q=broken", 200, `"total":1,"start":0,"paths":[{"path":"B.pdf"`},
		{"source=docs&q=HIDDEN", 200, `"total":1,"start":0,"paths":[{"path":"\u003c/script`},
		{"source=docs&q=zz", 200, `"total":0,"start":0,"paths":[]`},
		{"source=many&start=119", 200, `"total":120,"start":119,"paths":[{"path":"119","reason":"hidden"}]`},
		{"source=many&start=9223372036854775807", 200, `"total":120,"start":9223372036854775807,"paths":[]`},
		{"source=many&start=-1", 400, `argument "start"`},
		{"source=many&start=9223372036854775808", 400, `argument "start"`},
		{"source=many&start=x", 400, `argument "start"`},
		{"source=docs&q=" + strings.Repeat("x", maxText+1), 400, `argument "q"`},
		{"source=docs&q=%ff", 400, `argument "q"`},
		{"", 400, `argument "source"`},
		{"source=other", 404, `no source "other"`},
		{"source=broken", 503, "does not answer"},
	} {
		if code, body := get(t, o, "/console/left-out?"+tc.query); code != tc.status || !strings.Contains(body, tc.body) {
			t.Errorf("%s = %d %s, want %d and %s", tc.query, code, body, tc.status, tc.body)
		}
	}
	if code, _ := get(t, o, "/console/other"); code != 404 {
		t.Errorf("an unknown path has status %d", code)
	}
}

// Every part of the answers together is what matches, in order.
func FuzzLeftOut(f *testing.F) {
	f.Add("source=docs&q=a&start=1", "a\nb\nA\xff")
	f.Add("source=%00&q=&start=-0", "")
	f.Fuzz(func(t *testing.T, query, names string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		answer, text, err := leftOutQuery(q)
		if err != nil {
			return
		}
		var all, want, got []Path
		for name := range strings.SplitSeq(names, "\n") {
			all = append(all, Path{Path: name})
			if contains(name, strings.ToLower(text)) {
				want = append(want, Path{Path: name})
			}
		}
		answer.choose(all, text)
		if answer.Total != len(want) {
			t.Fatalf("%q has %d matches of %q, want %d", names, answer.Total, text, len(want))
		}
		for answer.Start = 0; answer.Start < len(want); answer.Start += leftOutPage {
			answer.Total = 0
			answer.choose(all, text)
			got = append(got, answer.Paths...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
