package httpclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for v, want := range map[string]time.Duration{
			"": 0, "soon": 0, "-1": 0, "1.5": 0, "0": 0, " 90 ": 90 * time.Second, "3601": time.Hour,
			"9999999999": time.Hour, "9223372036854775807": time.Hour, "99999999999999999999": 0,
			in(time.Minute): time.Minute, in(-time.Minute): 0, in(48 * time.Hour): time.Hour,
		} {
			if got := RetryAfter(http.Header{"Retry-After": {v}}); got != want {
				t.Errorf("RetryAfter(%q) = %v, want %v", v, got, want)
			}
		}
	})
}

func TestParseURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:8000": "", "https://example.com/a/b": "", "HTTP://h": "",
		"": "absolute", "example.com": "absolute", "127.0.0.1:8000": "absolute", "ftp://h": "absolute",
		"http://": "absolute", "http://:80": "absolute",
		"http:h": "absolute", "/path": "absolute", "http://h\x7f": "absolute",
		"http://secret@h": "user", "http://u:secret@h": "user", "http://h/#secret": "fragment",
		"http://h/?secret": "query", "http://h?": "query",
	} {
		for name, parse := range map[string]func(string, string) (*url.URL, error){"ParseURL": ParseURL,
			"ParseBaseURL": ParseBaseURL} {
			want := want
			if want == "query" && name == "ParseURL" {
				want = ""
			}
			u, err := parse("the address of the engine", in)
			switch {
			case want == "" && (err != nil || u.Host == ""):
				t.Errorf("%s(%q) = %v, %v", name, in, u, err)
			case want != "" && (!errors.Is(err, errkind.Invalid) ||
				!strings.Contains(err.Error(), "the address of the engine: want") ||
				!strings.Contains(err.Error(), want)):
				t.Errorf("%s(%q) = %v, want an error about %q", name, in, err, want)
			case want != "" && strings.Contains(err.Error(), "secret"):
				t.Errorf("%s(%q) = %v, which contains a secret", name, in, err)
			}
		}
	}
}

func TestCheckKey(t *testing.T) {
	for key, valid := range map[string]bool{
		"": true, "sk-1_~!": true, strings.Repeat("x", 4096): true,
		" ": false, "two words": false, "a\r\nX-Evil: 1": false, "töken": false, "a\x7f": false,
		strings.Repeat("x", 4097): false,
	} {
		err := CheckKey("the key of the engine", key)
		if ValidKey(key) != valid || (err == nil) != valid {
			t.Errorf("key %.20q: %v, %v, want valid %v", key, ValidKey(key), err, valid)
		}
		if err != nil && (!errors.Is(err, errkind.Invalid) || strings.Contains(err.Error(), key) && key != " ") {
			t.Errorf("key %.20q: %v, want kind Invalid without the key", key, err)
		}
	}
}

func TestCauseOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Cause
		text string
	}{
		{&net.DNSError{Err: "no such host", Name: "secret"}, NoHost,
			"the engine cannot be reached, because its host name cannot be resolved"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, NotTrusted,
			"the engine cannot be reached, because its certificate is not trusted"},
		{tls.RecordHeaderError{Msg: "secret"}, NoTLS, "the engine cannot be reached, because it does not speak TLS"},
		{http.ErrSchemeMismatch, NoTLS, "the engine cannot be reached, because it does not speak TLS"},
		{errors.New("secret"), Unknown, "otherwise"},
	} {
		err := &url.Error{Op: "Get", URL: "http://secret", Err: fmt.Errorf("dialing: %w", tt.err)}
		c := CauseOf(err)
		if text := c.Message("the engine", "otherwise"); c != tt.want || !strings.HasPrefix(text, tt.text) ||
			strings.Contains(text, "secret") {
			t.Errorf("%v: cause %d, message %q", tt.err, c, text)
		}
	}
}

// The causes are those of real connections.
func TestRealCauses(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for _, tt := range []struct {
		url  string
		want Cause
	}{
		{strings.Replace(plain.URL, "http:", "https:", 1), NoTLS}, {secure.URL, NotTrusted},
		{"http://127.0.0.1:1", Unknown},
	} {
		transport := NewTransport(1)
		transport.Proxy = nil
		_, err := New(transport).Get(tt.url)
		if got := CauseOf(err); err == nil || got != tt.want {
			t.Errorf("%s: %v has the cause %d, want %d", tt.url, err, got, tt.want)
		}
	}
}

func TestTimedOut(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		call context.Context
		err  error
		want bool
	}{
		{t.Context(), errors.New("x"), false}, {ended, errors.New("x"), true},
		{t.Context(), &url.Error{Err: context.DeadlineExceeded}, true},
		{t.Context(), &net.DNSError{IsTimeout: true}, true},
	} {
		if got := TimedOut(tt.call, tt.err); got != tt.want {
			t.Errorf("TimedOut(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

// A client does not follow redirects, which would receive its key.
func TestNoRedirects(t *testing.T) {
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	c := New(nil)
	c.Transport.(*http.Transport).Proxy = nil
	defer c.CloseIdleConnections()
	resp, err := c.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || requests != 1 {
		t.Errorf("status %d after %d requests, want 307 after one", resp.StatusCode, requests)
	}
}
