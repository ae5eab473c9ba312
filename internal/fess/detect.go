package fess

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A detector stores the API version of a server. The version is the same for
// all callers.
type detector struct {
	fixed version // from the configuration, or unknown
	found atomic.Int32
}

// known returns the version, or unknown.
func (d *detector) known() version {
	if d.fixed != unknown {
		return d.fixed
	}
	return version(d.found.Load())
}

// remember sets the version and reports whether it changed.
func (d *detector) remember(v version) bool { return version(d.found.Swap(int32(v))) != v }

// ask sends a question in the server's API version and returns the answer,
// which is JSON of any status.
//
// The first question detects the version. It is sent to API v1. If the server
// has no API v1, the answer to a health request to API v2 decides. So a server
// with API v1 receives no additional request. If a later answer shows that the
// API no longer exists, the version is detected once more.
func (c *Client) ask(ctx context.Context, q question) (*answer, error) {
	known := c.api.known()
	if known == unknown {
		return c.detect(ctx, q, nil)
	}
	a, err := c.put(ctx, known, q)
	if err != nil {
		return nil, err
	}
	if !a.notFound() || c.api.fixed != unknown {
		return a, c.unusable(a)
	}
	if c.api.remember(unknown) {
		c.log.WarnContext(ctx, "Fess's API no longer exists: detecting its version again", "version", known.String(),
			"status", a.status)
	}
	if known == v2 {
		a = nil
	}
	return c.detect(ctx, q, a)
}

// detect detects the version by sending the question. a is the answer of API v1
// if the question was already sent to it. The version stays unknown if the
// server does not answer or fails.
func (c *Client) detect(ctx context.Context, q question, a *answer) (*answer, error) {
	if a == nil {
		var err error
		if a, err = c.put(ctx, v1, q); err != nil {
			return nil, err
		}
	}
	switch {
	case a.isV1():
		c.found(ctx, v1)
		return a, nil
	case !a.notFound() && !a.isForeign():
		return a, c.unusable(a)
	}
	health, err := c.put(ctx, v2, question{to: healthCall})
	if err != nil {
		return nil, err
	}
	if !health.isV2() {
		if a.wanted && a.status == http.StatusOK {
			return nil, notFess(a)
		}
		return a, c.unusable(a)
	}
	c.found(ctx, v2)
	if a, err = c.put(ctx, v2, q); err != nil {
		return nil, err
	}
	return a, c.unusable(a)
}

// found stores the version.
func (c *Client) found(ctx context.Context, v version) {
	if c.api.remember(v) {
		c.log.InfoContext(ctx, "Fess's API found", "version", v.String())
	}
}

// notFound reports whether the server has no API at the path. In that case Fess
// redirects to an error page, and other servers answer with their own page.
func (a *answer) notFound() bool {
	s := a.status
	if 300 <= s && s < 400 {
		return true
	}
	return !a.wanted && s < 500 && s != http.StatusBadRequest && s != http.StatusRequestTimeout &&
		s != http.StatusTooManyRequests
}

// isForeign reports whether a JSON answer cannot come from Fess's API v1, nor
// from the filters in front of both versions.
func (a *answer) isForeign() bool {
	return a.wanted && a.status < 500 && a.status != http.StatusTooManyRequests && !a.isV1()
}

// isV1 reports whether the answer comes from API v1. The filter that limits
// rates answers before the API, with a key "error".
func (a *answer) isV1() bool {
	var keys map[string]json.RawMessage
	if !a.wanted || a.status < 200 || 300 <= a.status && a.status < 400 || json.Unmarshal(a.body, &keys) != nil {
		return false
	}
	if keys["error"] != nil || keys["response"] != nil {
		return false
	}
	keysV1 := []string{"data", "record_count", "error_code", "error_code:", "message"}
	if a.status == http.StatusOK {
		keysV1 = keysV1[:2]
	}
	return slices.ContainsFunc(keysV1, func(key string) bool { return keys[key] != nil })
}

// isV2 reports whether the answer comes from API v2 and belongs to a health
// request.
func (a *answer) isV2() bool {
	var body struct {
		Response struct {
			Engine *json.RawMessage `json:"engine"`
			Error  *json.RawMessage `json:"error"`
		} `json:"response"`
	}
	return a.wanted && json.Unmarshal(a.body, &body) == nil &&
		(body.Response.Engine != nil || body.Response.Error != nil)
}

// unusable returns the error for an answer that is not JSON, or nil.
func (c *Client) unusable(a *answer) error {
	if a.wanted && (a.status < 300 || a.status >= 400) {
		return nil
	}
	err := noJSON(a)
	if r, ok := errors.AsType[*errkind.Remote](err); ok && a.notFound() && c.api.fixed != unknown {
		r.Message += "; fessApi is " + c.api.fixed.String() + ", auto detects the version of the server"
	}
	return err
}
