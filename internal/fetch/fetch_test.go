package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/google/go-cmp/cmp"
)

const (
	publicIP = "93.184.215.14"
	otherIP  = "93.184.215.15"
)

func TestGet(t *testing.T) {
	w := newWeb(t)
	var header http.Header
	w.host("example.com", publicIP, func(rw http.ResponseWriter, r *http.Request) {
		header = r.Header
		answer("<p>"+r.Host+r.RequestURI)(rw, r)
	})
	var reports [][2]int64
	got, err := w.fetcher(Options{UserAgent: "agent/1"}).Get(t.Context(), "http://Example.com/a b?c#d",
		func(done, total int64) { reports = append(reports, [2]int64{done, total}) })
	want := &Document{URL: "http://example.com/a%20b?c", MediaType: "text/html; charset=utf-8",
		Data: []byte("<p>example.com/a%20b?c")}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("Get() = %v (-want +got):\n%s", err, d)
	}
	if d := cmp.Diff([][2]int64{{22, 22}}, reports); d != "" {
		t.Errorf("reports (-want +got):\n%s", d)
	}
	wantHeader := http.Header{"User-Agent": {"agent/1"}, "Accept-Encoding": {"gzip"},
		"Accept": {"text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.8"}}
	if d := cmp.Diff(wantHeader, header); d != "" {
		t.Errorf("the request's header (-want +got):\n%s", d)
	}
}

// What a URL, a name or a redirect leads to must be public, or named; nothing
// else is ever dialled.
func TestGetPolicy(t *testing.T) {
	const private = "private network targets are not allowed"
	tests := []struct {
		name  string
		addrs []string // of h.example
		to    string   // where http://start.example/ redirects to
		o     Options
		dials string
		want  string // part of the error, "" for none
	}{
		{"public", []string{publicIP}, "http://h.example/", Options{}, publicIP + ":80", ""},
		{"private", []string{"10.0.0.5"}, "http://h.example/", Options{}, "", private},
		{"private, named", []string{"10.0.0.5"}, "http://h.example/", Options{AllowedHosts: []string{"*.example"}},
			"10.0.0.5:80", ""},
		{"private, allowed", []string{"10.0.0.5"}, "http://h.example/", Options{AllowPrivate: true}, "10.0.0.5:80", ""},
		{"loopback", []string{"127.0.0.1"}, "http://h.example/", Options{}, "", private},
		{"mapped", []string{"::ffff:127.0.0.1"}, "http://h.example/", Options{}, "", private},
		{"mapped, named", []string{"::ffff:10.0.0.5"}, "http://h.example/",
			Options{AllowedHosts: []string{"*.example"}},
			"10.0.0.5:80", ""},
		{"NAT64", []string{"64:ff9b::10.0.0.5"}, "http://h.example/", Options{}, "", private},
		{"metadata", []string{"169.254.169.254"}, "http://h.example/", Options{}, "", private},
		{"metadata, named", []string{"169.254.169.254"}, "http://h.example/",
			Options{AllowedHosts: []string{"*.example"}},
			"", "link-local"},
		{"zone", []string{"fe80::1%eth0"}, "http://h.example/", Options{}, "", private},
		{"inside and outside", []string{"10.0.0.5", publicIP}, "http://h.example/", Options{}, publicIP + ":80", ""},
		{"no address", nil, "http://h.example/", Options{}, "", "cannot be resolved"},
		{"literal", nil, "http://10.0.0.5/", Options{}, "", private},
		{"literal, named", nil, "http://10.0.0.5/", Options{AllowedHosts: []string{"10.0.0.5", "*.example"}},
			"10.0.0.5:80", ""},
		{"odd literal", nil, "http://0x0a000005/", Options{}, "", "unusual spelling"},
		{"other port", []string{publicIP}, "http://h.example:81/", Options{}, publicIP + ":81", ""},
		{"not named", []string{publicIP}, "http://h.example/", Options{AllowedHosts: []string{"start.example"}}, "",
			"is not allowed"},
		{"scheme", nil, "file:///etc/passwd", Options{}, "", `the scheme "file" is not allowed`},
		{"https forbidden", []string{publicIP}, "https://h.example/", Options{Schemes: []string{"http"}}, "",
			`the scheme "https" is not allowed`},
		{"credentials", []string{publicIP}, "http://u:secret@h.example/", Options{}, "", "user name or a password"},
		{"no URL", nil, "http://a..b/", Options{}, "", "is not a web address"},
	}
	for _, tt := range tests {
		w := newWeb(t)
		w.host("start.example", otherIP, redirect(http.StatusFound, tt.to))
		w.name("h.example", tt.addrs...)
		for _, at := range []string{publicIP + ":80", publicIP + ":81", "10.0.0.5:80", "169.254.169.254:80",
			"127.0.0.1:80"} {
			w.serve(at, answer("text")).server.Start()
		}
		for _, via := range []bool{false, true} {
			w.dialed = nil
			start, dials := tt.to, strings.Fields(tt.dials)
			if via {
				start, dials = "http://start.example/", append([]string{otherIP + ":80"}, dials...)
			}
			f := w.fetcher(tt.o)
			doc, err := f.Get(t.Context(), start, nil)
			f.Close()
			if tt.want == "" && (err != nil || string(doc.Data) != "text") {
				t.Errorf("%s, redirect %t: Get() = %v", tt.name, via, err)
			}
			if tt.want != "" {
				checkRefusal(t, fmt.Sprintf("%s, redirect %t", tt.name, via), err, tt.want)
			}
			if d := cmp.Diff(dials, w.dials()); d != "" && len(dials)+len(w.dials()) > 0 {
				t.Errorf("%s, redirect %t: dialled (-want +got):\n%s", tt.name, via, d)
			}
		}
	}
}

// checkRefusal checks that err says want, and no address that a name server
// gave.
func checkRefusal(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: Get() = %v, want %q", name, err, want)
		return
	}
	if _, ok := errors.AsType[*errkind.Remote](err); !ok && !errors.Is(err, errkind.Denied) &&
		!errors.Is(err, errkind.Unsupported) {
		t.Errorf("%s: %v is of no kind that is right", name, err)
	}
	for _, leak := range []string{"10.0.0.5", "169.254", "127.0.0.1", "secret", "10.9.8.7"} {
		if strings.Contains(err.Error(), leak) && !strings.Contains(name, "literal") {
			t.Errorf("%s: %q contains %q", name, err, leak)
		}
	}
}

// An error names the option that it is due to.
func TestReasons(t *testing.T) {
	w := newWeb(t)
	w.host("big.example", publicIP, answer(strings.Repeat("x", 11)))
	w.host("start.example", otherIP, redirect(http.StatusFound, "ftp://h.example/"))
	w.name("meta.example", "169.254.169.254")
	for _, tt := range []struct {
		url  string
		o    Options
		want errkind.Reason
	}{
		{"ftp://h.example/", Options{}, SchemeReason},
		{"http://h.example/", Options{Schemes: []string{}}, SchemeReason},
		{"http://start.example/", Options{}, RedirectSchemeReason},
		{"http://h.example/", Options{AllowedHosts: []string{"other.example"}}, HostReason},
		{"http://10.0.0.5/", Options{}, PrivateReason},
		{"http://meta.example/", Options{AllowedHosts: []string{"*.example"}}, ReservedReason},
		{"http://big.example/", Options{MaxBytes: 10}, SizeReason},
		{"http://u:p@h.example/", Options{}, ""},
		{"http://0x0a000005/", Options{}, ""},
	} {
		f := w.fetcher(tt.o)
		_, err := f.Get(t.Context(), tt.url, nil)
		f.Close()
		if got := errkind.ReasonOf(err); err == nil || got != tt.want {
			t.Errorf("%+v: Get(%s) = %v with the reason %q, want %q", tt.o, tt.url, err, got, tt.want)
		}
	}
}

// A name server that answers differently the second time gains nothing.
func TestGetRebinding(t *testing.T) {
	w := newWeb(t)
	w.name("evil.example", publicIP, "|", "127.0.0.1")
	w.serve(publicIP+":80", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "close")
		redirect(http.StatusFound, "/again")(rw, r)
	}).server.Start()
	w.serve("127.0.0.1:80", answer("secret")).server.Start()
	_, err := w.fetcher(Options{}).Get(t.Context(), "http://evil.example/", nil)
	checkRefusal(t, "rebinding", err, "private network targets are not allowed")
	if d := cmp.Diff([]string{publicIP + ":80"}, w.dials()); d != "" {
		t.Errorf("dialled (-want +got):\n%s", d)
	}
	if n := w.looked["evil.example"]; n != 2 {
		t.Errorf("%d lookups for two connections, want 2: what was checked is what is dialled", n)
	}
}

// A hop takes nothing along from the one before.
func TestRedirects(t *testing.T) {
	w := newWeb(t)
	var headers []http.Header
	var method string
	w.host("a.example", publicIP, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Set-Cookie", "session=1; Domain=example")
		var n int
		fmt.Sscanf(r.URL.Path, "/%d", &n)
		if n == 0 {
			headers, method = append(headers, r.Header), r.Method
			answer("end")(rw, r)
			return
		}
		status := []int{301, 302, 303, 307, 308}[n%5]
		redirect(status, fmt.Sprintf("%d?secret=1#x", n-1))(rw, r)
	})
	w.host("b.example", otherIP, redirect(302, "http://a.example/0"))
	f := w.fetcher(Options{})
	for _, start := range []string{"http://a.example/0", "http://a.example/5", "http://b.example/x?secret=1"} {
		doc, err := f.Get(t.Context(), start, nil)
		if err != nil || string(doc.Data) != "end" {
			t.Errorf("Get(%s) = %v, %v", start, doc, err)
		}
		if d := cmp.Diff(headers[0], headers[len(headers)-1]); d != "" || method != "GET" {
			t.Errorf("Get(%s): %s, header of the last hop (-of a request without one +got):\n%s", start, method, d)
		}
	}
	for _, tt := range []struct {
		o     Options
		start string
		want  string
	}{
		{Options{}, "http://a.example/6", "redirects too often"},
		{Options{MaxRedirects: 1}, "http://a.example/2", "redirects too often"},
		{Options{MaxRedirects: -1}, "http://a.example/1", "redirects too often"},
	} {
		_, err := w.fetcher(tt.o).Get(t.Context(), tt.start, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errkind.Retryable(err) {
			t.Errorf("%+v: Get(%s) = %v, want %q for good", tt.o, tt.start, err, tt.want)
		}
	}
	for i, to := range []string{"", "http://[", "http://%zz/"} {
		name := fmt.Sprintf("c%d.example", i)
		w.host(name, fmt.Sprintf("93.184.216.%d", i), redirect(302, to))
		_, err := w.fetcher(Options{}).Get(t.Context(), "http://"+name+"/", nil)
		if err == nil || !strings.Contains(err.Error(), "redirects to nowhere") {
			t.Errorf("Get() of a redirect to %q = %v", to, err)
		}
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		status    int
		kind      error
		retryable bool
	}{
		{204, errkind.Unavailable, false}, {206, errkind.Unavailable, false}, {300, errkind.Unavailable, false},
		{304, errkind.Unavailable, false},
		{400, errkind.Unavailable, false}, {401, errkind.Unauthorized, false}, {403, errkind.Denied, false},
		{404, errkind.NotFound, false},
		{407, errkind.Unauthorized, false}, {410, errkind.NotFound, false}, {418, errkind.Unavailable, false},
		{408, errkind.Timeout, true}, {429, errkind.Busy, true}, {500, errkind.Unavailable, false},
		{502, errkind.Unavailable,
			true}, {503, errkind.Unavailable, true},
		{504, errkind.Timeout, true}, {599, errkind.Unavailable, false}, {999, errkind.Unavailable, false},
	}
	w := newWeb(t)
	var status int
	w.host("example.com", publicIP, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "7")
		rw.WriteHeader(status)
		if status != 204 && status != 304 {
			_, _ = rw.Write([]byte("stack trace with a password"))
		}
	})
	f := w.fetcher(Options{})
	for _, tt := range tests {
		status = tt.status
		_, err := f.Get(t.Context(), "http://example.com/a%2Fb?token=secret", nil)
		r, ok := errors.AsType[*errkind.Remote](err)
		want := tt.status
		if want == http.StatusRequestTimeout {
			want = http.StatusGatewayTimeout // which a timeout counts as
		}
		if !ok || !errors.Is(err, tt.kind) || r.Status != want || r.Endpoint != "/a%2Fb" || r.Retry != 7*time.Second ||
			errkind.Retryable(err) != tt.retryable || strings.Contains(err.Error(), "password") {
			t.Errorf("status %d: Get() = %+v", tt.status, err)
		}
		if advised := strings.Contains(err.Error(), "try again"); advised != tt.retryable {
			t.Errorf("status %d: Get() = %v, which says to try again: %v, want %v", tt.status, err, advised,
				tt.retryable)
		}
	}
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

func TestBodies(t *testing.T) {
	text := strings.Repeat("0123456789", 100)
	send := func(encoding string, data []byte) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Encoding", encoding)
			_, _ = rw.Write(data)
		}
	}
	raw := func(answer string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			conn, _, err := rw.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, answer)
		}
	}
	endless := func(rw http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := rw.Write(make([]byte, 1000)); err != nil {
				return
			}
		}
	}
	bomb := zipped(make([]byte, 10<<20))
	tests := []struct {
		name string
		h    http.HandlerFunc
		len  int
		kind error
	}{
		{"limit", send("", []byte(text)), 1000, nil},
		{"limit, zipped", send("gzip", zipped([]byte(text))), 1000, nil},
		{"empty", send("", nil), 0, nil},
		{"identity", send("identity", []byte("x")), 1, nil},
		{"over the limit", send("", []byte(text+"x")), 0, errkind.TooLarge},
		{"over the limit, zipped", send("gzip", zipped([]byte(text+"x"))), 0, errkind.TooLarge},
		{"bomb", send("gzip", bomb), 0, errkind.TooLarge},
		{"endless", endless, 0, errkind.TooLarge},
		{"not zipped", send("gzip", []byte(text)), 0, errkind.Unavailable},
		{"zipped, damaged", send("gzip", append(zipped([]byte(text))[:20], "damaged"...)), 0, errkind.Unavailable},
		{"zipped, cut", send("gzip", zipped([]byte(text))[:20]), 0, errkind.Unavailable},
		{"deflate", send("deflate", []byte("x")), 0, errkind.Unsupported},
		{"br", send("br", []byte("x")), 0, errkind.Unsupported},
		{"twice", send("gzip, gzip", zipped(zipped([]byte(text)))), 0, errkind.Unsupported},
		{"promised too much", raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nx"), 0, errkind.TooLarge},
		{"cut", raw("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nx"), 0, errkind.Unavailable},
		{"cut chunks", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nx"), 0, errkind.Unavailable},
		{"till the end", raw("HTTP/1.0 200 OK\r\n\r\nxyz"), 3, nil},
		{"no HTTP", raw("SSH-2.0-OpenSSH_9.9\r\n"), 0, errkind.Unavailable},
		{"nothing", raw(""), 0, errkind.Unavailable},
		{"two lengths", raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), 0,
			errkind.Unavailable},
		{"long header", raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\nx"), 0,
			errkind.Unavailable},
		{"long type", raw("HTTP/1.0 200 OK\r\nContent-Type: " + strings.Repeat("x", 9999) + "\r\n\r\nx"), 1, nil},
	}
	for _, tt := range tests {
		w := newWeb(t)
		w.host("example.com", publicIP, tt.h)
		doc, err := w.fetcher(Options{MaxBytes: 1000}).Get(t.Context(), "http://example.com/", nil)
		if !errors.Is(err, tt.kind) || tt.kind == nil && (len(doc.Data) != tt.len ||
			len(doc.MediaType) > maxMediaType) {
			t.Errorf("%s: Get() = %v, %v, want %d bytes or %v", tt.name, doc, err, tt.len, tt.kind)
		}
		if err != nil && strings.Contains(err.Error(), "SSH") {
			t.Errorf("%s: %v passes on what the server said", tt.name, err)
		}
	}
}

// Reports rise, and know the total where the server says it.
func TestReports(t *testing.T) {
	const size = 300_000
	for _, known := range []bool{true, false} {
		w := newWeb(t)
		w.host("example.com", publicIP, func(rw http.ResponseWriter, _ *http.Request) {
			if known {
				rw.Header().Set("Content-Length", fmt.Sprint(size))
			}
			_, _ = rw.Write(make([]byte, size))
		})
		var last, calls int64
		doc, err := w.fetcher(Options{}).Get(t.Context(), "http://example.com/", func(done, total int64) {
			if done <= last || total != map[bool]int64{true: size}[known] {
				t.Errorf("report %d of %d after %d", done, total, last)
			}
			last = done
			calls++
		})
		if err != nil || len(doc.Data) != size || last != size || calls < 5 {
			t.Errorf("known %t: %v; the last of %d reports was %d", known, err, calls, last)
		}
	}
}

// Whatever a server delays, the timeout bounds the whole.
func TestTimeout(t *testing.T) {
	drip := func(rw http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = rw.Write([]byte("x"))
			rw.(http.Flusher).Flush()
			time.Sleep(time.Second) // in the bubble's time
		}
	}
	tests := []struct {
		name string
		h    http.HandlerFunc // nil: the server does not take the connection
	}{
		{"drip", drip},
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"slow redirects", func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(6 * time.Second)
			redirect(302, "/")(rw, r)
		}},
		{"no connection", nil},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb(t)
			w.name("example.com", publicIP)
			if tt.h != nil {
				w.serve(publicIP+":80", tt.h).server.Start()
			} else {
				w.sites[publicIP+":80"] = &site{}
			}
			f := w.fetcher(Options{})
			start := time.Now()
			_, err := f.Get(t.Context(), "http://example.com/", nil)
			r, ok := errors.AsType[*errkind.Remote](err)
			if !ok || !errors.Is(err, errkind.Timeout) || r.Status != 504 || errkind.ReasonOf(err) != TimeReason ||
				time.Since(start) != 20*time.Second {
				t.Errorf("%s: Get() = %v after %v, want a timeout after 20s", tt.name, err, time.Since(start))
			}
			// The caller's own end is not called a timeout.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if _, err := f.Get(ctx, "http://example.com/", nil); !errors.Is(err, context.DeadlineExceeded) ||
				errors.Is(err, errkind.Timeout) {
				t.Errorf("%s: past the caller's context: %v", tt.name, err)
			}
		})
	}
}

// An address that does not answer costs seconds, not the document.
func TestSeveralAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		w.name("example.com", "2606:4700::1", otherIP, publicIP)
		w.sites["[2606:4700::1]:80"] = &site{}
		w.serve(publicIP+":80", answer("text")).server.Start()
		f := w.fetcher(Options{})
		start := time.Now()
		doc, err := f.Get(t.Context(), "http://example.com/", nil)
		if err != nil || string(doc.Data) != "text" || time.Since(start) != addressTimeout {
			t.Errorf("Get() = %v, %v after %v", doc, err, time.Since(start))
		}
		want := []string{"[2606:4700::1]:80", otherIP + ":80", publicIP + ":80"}
		if d := cmp.Diff(want, w.dials()); d != "" {
			t.Errorf("dialled (-want +got):\n%s", d)
		}
	})
}

func TestUnreachable(t *testing.T) {
	w := newWeb(t)
	w.name("closed.example", publicIP)
	w.host("plain.example", otherIP, answer("text"))
	w.serve(otherIP+":443", answer("text")).server.Start()
	tests := []struct{ url, want string }{
		{"http://closed.example/x", "cannot be reached"},
		{"http://unknown.example/x", "cannot be resolved"},
		{"https://plain.example/x", "does not speak TLS"},
	}
	long := strings.Repeat("x", 500)
	for _, path := range []string{"", "/x", "/" + long} {
		_, err := w.fetcher(Options{}).Get(t.Context(), "http://closed.example"+path+"?secret", nil)
		r, ok := errors.AsType[*errkind.Remote](err)
		if want := "/" + strings.TrimPrefix(path, "/"); !ok || r.Endpoint != want[:min(len(want), maxEndpoint)] {
			t.Errorf("Get() of the path %q = %v, want the path alone, in bounds", path, err)
		}
	}
	for _, tt := range tests {
		_, err := w.fetcher(Options{}).Get(t.Context(), tt.url, nil)
		r, ok := errors.AsType[*errkind.Remote](err)
		if !ok || r.Status != 502 || !errkind.Retryable(err) || r.Endpoint != "/x" ||
			!strings.Contains(r.Message, tt.want) {
			t.Errorf("Get(%s) = %v, want %q", tt.url, err, tt.want)
		}
		checkRefusal(t, tt.url, err, tt.want)
	}
}

func TestTLS(t *testing.T) {
	w := newWeb(t)
	w.name("example.com", publicIP)
	w.name("other.example", publicIP)
	pool := w.serve(publicIP+":443", func(rw http.ResponseWriter, r *http.Request) { answer(r.Proto)(rw, r) }).startTLS()
	trusting, wary := w.fetcher(Options{RootCAs: pool}), w.fetcher(Options{})
	doc, err := trusting.Get(t.Context(), "https://example.com/", nil)
	if err != nil || string(doc.Data) != "HTTP/2.0" {
		t.Errorf("Get() = %v, %v, want HTTP/2.0", doc, err)
	}
	for name, f := range map[string]*Fetcher{"https://other.example/": trusting, "https://example.com/": wary} {
		if _, err := f.Get(t.Context(), name, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("Get(%s) with a certificate that is not right for it = %v", name, err)
		}
	}
}

func TestProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:1")
	t.Setenv("http_proxy", "http://192.0.2.1:1")
	w := newWeb(t)
	w.host("example.com", publicIP, answer("direct"))
	w.serve("proxy.internal:3128", func(rw http.ResponseWriter, r *http.Request) {
		user, _, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
		answer("proxy "+user+" "+r.RequestURI)(rw, r)
	}).server.Start()
	proxy := &url.URL{Scheme: "http", Host: "proxy.internal:3128", User: url.UserPassword("u", "secret")}
	for _, tt := range []struct {
		proxy *url.URL
		want  string
	}{{nil, "direct"}, {proxy, "proxy Basic http://example.com/"}} {
		doc, err := w.fetcher(Options{Proxy: tt.proxy}).Get(t.Context(), "http://example.com/", nil)
		if err != nil || string(doc.Data) != tt.want {
			t.Errorf("proxy %v: Get() = %v, %v, want %q", tt.proxy, doc, err, tt.want)
		}
	}
	// URLs that can be checked without a name server are still refused.
	_, err := w.fetcher(Options{Proxy: proxy}).Get(t.Context(), "http://10.0.0.5/", nil)
	checkRefusal(t, "a literal behind the proxy", err, "private network targets are not allowed")
	proxy.Host = "gone.internal:3128"
	_, err = w.fetcher(Options{Proxy: proxy}).Get(t.Context(), "http://example.com/", nil)
	checkRefusal(t, "no proxy", err, "cannot be reached")
	if got := errkind.ReasonOf(err); got != ProxyReason {
		t.Errorf("no proxy: the reason is %q, want %q", got, ProxyReason)
	}
}

// The real resolver and dialler, on this machine alone.
func TestLoopback(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: answer("text"), ReadHeaderTimeout: time.Minute}
	go s.Serve(l)
	defer s.Close()
	for _, name := range []string{"127.0.0.1", "localhost"} {
		raw := "http://" + strings.Replace(l.Addr().String(), "127.0.0.1", name, 1) + "/"
		for _, tt := range []struct {
			o    Options
			want error
		}{{Options{}, errkind.Denied}, {Options{AllowPrivate: true}, nil},
			{Options{AllowedHosts: []string{name}}, nil}} {
			f, err := New(tt.o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Get(t.Context(), raw, nil)
			f.Close()
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("%+v: Get(%s) = %v, want %v", tt.o, raw, err, tt.want)
			}
			if err := f.Check(raw); (err == nil) != (tt.want == nil) {
				t.Errorf("%+v: Check(%s) = %v, want %v", tt.o, raw, err, tt.want)
			}
		}
	}
}
