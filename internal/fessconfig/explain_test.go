package fessconfig

import (
	"errors"
	"fmt"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/content"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
)

func TestExplain(t *testing.T) {
	denied := func(reason errkind.Reason, text string) error {
		return &errkind.Restriction{Reason: reason, Err: fmt.Errorf("%s: %w", text, errkind.Denied)}
	}
	remote := &errkind.Remote{Endpoint: "/doc", Status: 504, Kind: errkind.Timeout,
		Message: "the document did not arrive in time; try again", Reason: fetch.TimeReason}
	for _, tt := range []struct {
		name  string
		err   error
		cache string
		want  string
	}{
		{"a scheme", denied(fetch.SchemeReason, `the scheme "file" is not allowed`), "policy",
			`the scheme "file" is not allowed: contentFetch.allowedSchemes has http, https; set contentFetch.fessCache to "always" to read the copy that Fess stored, if there is one`},
		{"a scheme, and there is no copy", denied(fetch.SchemeReason, `the scheme "file" is not allowed`), "always",
			`the scheme "file" is not allowed: contentFetch.allowedSchemes has http, https; Fess has no copy of the document that can be read`},
		{"a redirect", fmt.Errorf("following a redirect: %w",
			denied(fetch.RedirectSchemeReason, `the scheme "ftp" is not allowed`)), "policy",
			`following a redirect: the scheme "ftp" is not allowed: contentFetch.allowedSchemes has http, https`},
		{"no PDF", denied(content.PDFReason, "PDF conversion is disabled"), "policy",
			"PDF conversion is disabled; set contentFetch.enablePdf to true in the configuration"},
		{"a timeout", fmt.Errorf("following a redirect: %w", remote), "policy",
			"following a redirect: the document did not arrive in time; try again, or raise contentFetch.timeoutMs (/doc, status 504)"},
		{"Fess", &errkind.Remote{Endpoint: "/", Status: 502, Message: "check that its address is right",
			Reason: fess.AddressReason}, "policy",
			"check that its address is right (fessBaseUrl) (/, status 502)"},
		{"another error", errkind.Busy, "policy", "busy"},
	} {
		c := defaults()
		c.ContentFetch.FessCache = tt.cache
		err := c.Explain(tt.err)
		if err.Error() != tt.want {
			t.Errorf("%s: Explain = %q, want %q", tt.name, err, tt.want)
		}
		if again := c.Explain(err); again != err {
			t.Errorf("%s: Explain of what is explained = %v", tt.name, again)
		}
		if r, ok := errors.AsType[*errkind.Remote](tt.err); ok {
			got, ok := errors.AsType[*errkind.Remote](err)
			if !ok || got.Message == r.Message || !errors.Is(err, r.Unwrap()) {
				t.Errorf("%s: Explain = %#v, want a Remote of the same kind with another message", tt.name, err)
			}
		} else if !errors.Is(err, errkind.Denied) && tt.err != errkind.Busy {
			t.Errorf("%s: Explain = %v, which lost its kind", tt.name, err)
		}
	}
	// Every reason has its advice.
	for _, reason := range []errkind.Reason{fess.AddressReason, fess.TokenReason, fess.CAReason,
		content.DisabledReason, content.PDFReason, fetch.SchemeReason,
		fetch.RedirectSchemeReason, fetch.HostReason, fetch.PrivateReason, fetch.ReservedReason, fetch.SizeReason,
		fetch.TimeReason, fetch.ProxyReason} {
		if defaults().advice(reason) == "" {
			t.Errorf("there is no advice for errors that are due to %s", reason)
		}
	}
}
