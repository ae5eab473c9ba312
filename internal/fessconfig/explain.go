package fessconfig

import (
	"errors"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/content"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
)

// Explain adds to an error of packages fess, content and fetch the key that it
// is due to, so that the message states what to change. Other errors are
// returned unchanged.
func (c *Config) Explain(err error) error {
	advice := c.advice(errkind.ReasonOf(err))
	if _, ok := errors.AsType[*explained](err); ok || advice == "" {
		return err
	}
	if r, ok := errors.AsType[*errkind.Remote](err); ok {
		more := *r
		more.Message += advice
		return &explained{strings.Replace(err.Error(), r.Message, more.Message, 1), &more}
	}
	return &explained{errkind.Message(err) + advice, err}
}

// advice returns the end of a message about an error that is due to an option.
func (c *Config) advice(reason errkind.Reason) string {
	switch reason {
	case fess.AddressReason:
		return " (fessBaseUrl)"
	case fess.TokenReason:
		return " (fessAuth.accessToken)"
	case fess.CAReason:
		return " (tls.caFile)"
	case content.DisabledReason:
		return "; set contentFetch.enabled to true in the configuration"
	case content.PDFReason:
		return "; set contentFetch.enablePdf to true in the configuration"
	case fetch.SchemeReason:
		if c.ContentFetch.FessCache == content.CacheAlways {
			return c.schemes() + "; Fess has no copy of the document that can be read"
		}
		return c.schemes() + `; set contentFetch.fessCache to "always" to read the copy that Fess stored, if there is one`
	case fetch.RedirectSchemeReason:
		return c.schemes()
	case fetch.HostReason:
		return ": it is not in contentFetch.allowedHostAllowlist"
	case fetch.PrivateReason:
		return ": name it in contentFetch.allowedHostAllowlist or set contentFetch.allowPrivateNetworkTargets"
	case fetch.ReservedReason:
		return ": set contentFetch.allowPrivateNetworkTargets to allow that"
	case fetch.SizeReason:
		return ", raise contentFetch.maxBytes to read it"
	case fetch.TimeReason:
		return ", or raise contentFetch.timeoutMs"
	case fetch.ProxyReason:
		return ", or check contentFetch.proxy"
	}
	return ""
}

// schemes returns the permitted schemes, as the end of a message.
func (c *Config) schemes() string {
	if len(c.ContentFetch.AllowedSchemes) == 0 {
		return ": contentFetch.allowedSchemes is empty"
	}
	return ": contentFetch.allowedSchemes has " + strings.Join(c.ContentFetch.AllowedSchemes, ", ")
}

// An explained error is an error with the name of a key in its message.
type explained struct {
	message string
	error
}

func (e *explained) Error() string { return e.message }
func (e *explained) Unwrap() error { return e.error }
