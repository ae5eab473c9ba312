package fetch

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// One request has one answer, whatever its status, under the policy of Get.
func TestDo(t *testing.T) {
	w := newWeb(t)
	w.host("example.com", publicIP, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			redirect(302, "http://10.0.0.1/x")(rw, r)
		case "/missing":
			http.Error(rw, "no such page", 404)
		case "/large":
			io.WriteString(rw, strings.Repeat("a", 100))
		default:
			if r.Header.Get("If-None-Match") == `"1"` {
				rw.WriteHeader(304)
				return
			}
			answer(r.Header.Get("User-Agent"))(rw, r)
		}
	})
	w.name("private.example", "10.0.0.1")
	f := w.fetcher(Options{UserAgent: "agent/1", MaxBytes: 50})
	type result struct {
		Status         int
		Location, Data string
	}
	for _, tt := range []struct {
		path string
		r    Request
		want result
		kind error
	}{
		{path: "/", want: result{200, "", "agent/1"}},
		{path: "/", r: Request{Header: http.Header{"If-None-Match": {`"1"`}}}, want: result{304, "", ""}},
		{path: "/", r: Request{Want: func(h http.Header) bool { return h.Get("Content-Type") == "image/png" }},
			want: result{200, "", ""}},
		{path: "/moved", want: result{302, "http://10.0.0.1/x", ""}},
		{path: "/missing", want: result{404, "", ""}},
		{path: "/large", kind: errkind.TooLarge},
		{path: "/", r: Request{URL: "http://private.example"}, kind: errkind.Denied},
		{path: "/", r: Request{URL: "http://10.0.0.1"}, kind: errkind.Denied},
	} {
		if tt.r.URL == "" {
			tt.r.URL = "http://example.com"
		}
		tt.r.URL += tt.path
		resp, err := f.Do(t.Context(), tt.r)
		if tt.kind != nil {
			if !errors.Is(err, tt.kind) {
				t.Errorf("%s: error %v, want kind %v", tt.r.URL, err, tt.kind)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.r.URL, err)
			continue
		}
		if diff := cmp.Diff(tt.want, result{resp.Status, resp.Location, string(resp.Data)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.r.URL, diff)
		}
	}
	if diff := cmp.Diff([]string{publicIP + ":80"}, slices.Compact(w.dials())); diff != "" {
		t.Errorf("connections (-want +got):\n%s", diff)
	}
}
