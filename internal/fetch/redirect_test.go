package fetch

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Errors about a redirect say what went wrong, but not where it leads: a host
// of the operator's network, a path on it, an address.
func TestRedirectErrorsNameNobody(t *testing.T) {
	const start = "http://start.example/report"
	tests := []struct {
		name string
		to   string
		o    Options
		want string
	}{
		{"private", "http://db7.corp.example/admin",
			Options{}, "the host that it leads to is in a private or reserved network"},
		{"private literal", "http://10.9.8.7/admin", Options{}, "the host that it leads to is in a private"},
		{"odd literal", "http://0x0a090807/admin",
			Options{}, "the host that it leads to is an address in an unusual spelling"},
		{"localhost", "http://db7.corp.localhost/admin", Options{}, "the host that it leads to is in a private"},
		{"not listed", "http://db7.corp.example/admin", Options{AllowedHosts: []string{"start.example"}},
			"the host that it leads to is not allowed"},
		{"metadata, listed", "http://meta7.corp.example/admin", Options{AllowedHosts: []string{"*.example"}},
			"the host that it leads to has a link-local"},
		{"scheme", "ftp://db7.corp.example/admin", Options{}, `the scheme "ftp" is not allowed`},
		{"no name", "http://gone7.corp.example/admin", Options{}, "cannot be resolved"},
		{"no server", "http://dead7.corp.example/admin", Options{}, "cannot be reached"},
		{"status", "http://web7.corp.example/admin/404", Options{}, "no longer at its address"},
		{"redirects on to nowhere", "http://web7.corp.example/admin/nowhere", Options{}, "redirects to nowhere"},
		{"redirects on for ever", "http://web7.corp.example/admin/loop", Options{}, "redirects too often"},
		{"too large", "http://web7.corp.example/admin/large", Options{MaxBytes: 10}, "larger than 10 bytes"},
		{"broken off", "http://web7.corp.example/admin/short", Options{}, "ended its answer early"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeb(t)
			w.host("start.example", otherIP, redirect(http.StatusFound, tt.to))
			w.name("db7.corp.example", "10.9.8.7")
			w.name("meta7.corp.example", "169.254.169.254")
			w.name("dead7.corp.example", "93.184.216.77")
			w.host("web7.corp.example", publicIP, func(rw http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/admin/nowhere":
					redirect(http.StatusFound, "")(rw, r)
				case "/admin/loop":
					redirect(http.StatusFound, "/admin/loop")(rw, r)
				case "/admin/large":
					answer("more than ten bytes")(rw, r)
				case "/admin/short":
					rw.Header().Set("Content-Length", "100")
					answer("short")(rw, r)
				default:
					http.NotFound(rw, r)
				}
			})
			_, err := w.fetcher(tt.o).Get(t.Context(), start, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(),
				"following a redirect of the document") {
				t.Fatalf("Get() = %v, want %q", err, tt.want)
			}
			said := err.Error()
			if r, ok := errors.AsType[*errkind.Remote](err); ok {
				if said += r.Endpoint; r.Endpoint != "/report" {
					t.Errorf("the endpoint is %q, want that of the document, /report", r.Endpoint)
				}
			} else if !errors.Is(err, errkind.Denied) && !errors.Is(err, errkind.TooLarge) {
				t.Errorf("%v is of no kind that is right", err)
			}
			for _, leak := range []string{"7.corp", "10.9.8.7", "0x0a", "169.254", "93.184", "admin", "fessCache"} {
				if strings.Contains(said, leak) {
					t.Errorf("%q contains %q", said, leak)
				}
			}
		})
	}
}

// The document's own host may be named, because the caller knows it.
func TestRefusalNamesTheDocumentsHost(t *testing.T) {
	w := newWeb(t)
	w.name("db7.corp.example", "10.9.8.7")
	_, err := w.fetcher(Options{}).Get(t.Context(), "http://db7.corp.example/", nil)
	if err == nil || !strings.Contains(err.Error(), `the host "db7.corp.example"`) {
		t.Errorf("Get() = %v, want the document's host in it", err)
	}
}
