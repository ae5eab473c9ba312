package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A closing content reports whether it was closed.
type closing struct {
	io.ReadSeeker
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

func TestFile(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	closed := false
	o := Options{File: func(_ context.Context, id string) (*File, error) {
		if id != "a1" {
			return nil, fmt.Errorf("no document %q: %w", id, errkind.NotFound)
		}
		return &File{Name: "a \"b\".html", Modified: modified,
			Content: closing{strings.NewReader("<script>1</script>"), &closed}}, nil
	}}
	for _, tc := range []struct {
		method, query, span string
		status              int
		body, length        string
	}{
		{"GET", "id=a1", "", 200, "<script>1</script>", "18"},
		{"HEAD", "id=a1", "", 200, "", "18"},
		{"GET", "id=a1", "bytes=1-6", 206, "script", "6"},
		{"GET", "id=a1", "bytes=99-", 416, "", ""},
		{"GET", "id=b", "", 404, `no document "b"`, ""},
		{"GET", "", "", 400, `argument "id"`, ""},
		{"GET", "id=%ff", "", 400, `argument "id"`, ""},
		{"GET", "id=" + strings.Repeat("a", maxText+1), "", 400, `argument "id"`, ""},
	} {
		closed = false
		r := httptest.NewRequest(tc.method, "/console/file?"+tc.query, nil)
		if tc.span != "" {
			r.Header.Set("Range", tc.span)
		}
		w := ask(t, o, r)
		if w.Code != tc.status || !strings.HasPrefix(w.Body.String(), tc.body) || tc.status == 200 && w.Body.String() != tc.body {
			t.Errorf("%s %s %s = %d %q, want %d %q", tc.method, tc.query, tc.span, w.Code, w.Body, tc.status, tc.body)
		}
		if tc.status >= 400 && tc.status != 416 {
			continue
		}
		if !closed {
			t.Errorf("%s %s: the file was not closed", tc.method, tc.query)
		}
		for name, want := range map[string]string{"Content-Security-Policy": "sandbox; default-src 'none'",
			"X-Content-Type-Options": "nosniff", "Content-Disposition": `attachment; filename="a \"b\".html"`,
			"Cross-Origin-Resource-Policy": "same-origin"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", tc.query, tc.span, name, got, want)
			}
		}
		if tc.status < 300 && (w.Header().Get("Content-Type") != "application/octet-stream" || w.Header().Get("Content-Length") != tc.length) {
			t.Errorf("the header is %v", w.Header())
		}
	}
}

// A download ends when the caller loses rights.
func TestFileEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &content{strings.NewReader("text"), ctx}
	if n, err := c.Read(make([]byte, 2)); n != 2 || err != nil {
		t.Errorf("Read = %d, %v", n, err)
	}
	cancel()
	if n, err := c.Read(make([]byte, 2)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Read after the end = %d, %v", n, err)
	}
}

// The name of a download is one name that can be printed.
func FuzzDisposition(f *testing.F) {
	for _, s := range []string{"a.pdf", "../../a", `..\a`, "a\r\nSet-Cookie: b", "\u202etxt.exe", "Übung.md", "\xff", "", `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		h := disposition(name)
		kind, parameters, err := mime.ParseMediaType(h)
		got := parameters["filename"]
		if err != nil || kind != "attachment" || strings.ContainsAny(got, `/\`) ||
			strings.ContainsFunc(got+h, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the name %q becomes %q: %v", name, h, err)
		}
	})
}
