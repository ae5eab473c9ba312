package fess

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

// A version is a version of Fess's API.
type version int32

const (
	unknown version = iota
	v1
	v2
)

// String returns the version as in the configuration, or "?" if it is unknown.
func (v version) String() string { return [...]string{"?", "v1", "v2"}[v] }

// An endpoint is a call of Fess's API, in all versions.
type endpoint int

const (
	documentsCall endpoint = iota
	suggestCall
	popularCall
	labelsCall
	healthCall
)

// paths are the paths of the calls in both versions.
var paths = [...][3]string{
	documentsCall: {v1: "/api/v1/documents", v2: "/api/v2/search"},
	suggestCall:   {v1: "/api/v1/suggest-words", v2: "/api/v2/suggest-words"},
	popularCall:   {v1: "/api/v1/popular-words", v2: "/api/v2/popular-words"},
	labelsCall:    {v1: "/api/v1/labels", v2: "/api/v2/labels"},
	healthCall:    {v1: "/api/v1/health", v2: "/api/v2/health"},
}

// versionOf returns the version that a path belongs to.
func versionOf(path string) version {
	switch {
	case strings.HasPrefix(path, "/api/v1/"):
		return v1
	case strings.HasPrefix(path, "/api/v2/"):
		return v2
	}
	return unknown
}

// is reports whether the answer comes from an endpoint.
func (a *answer) is(e endpoint) bool { return a.path == paths[e][v1] || a.path == paths[e][v2] }

// A question is a call and its parameters.
type question struct {
	to     endpoint
	params []param
	v2     []param // parameters for API v2; nil means the same
}

// in returns the parameters for a version.
func (q question) in(v version) []param {
	if v == v2 && q.v2 != nil {
		return q.v2
	}
	return q.params
}

// put sends a question in one version.
func (c *Client) put(ctx context.Context, v version, q question) (*answer, error) {
	if v == v2 {
		if err := checkV2(q.in(v)); err != nil {
			return nil, err
		}
	}
	return c.send(ctx, paths[q.to][v], q.in(v), jsonType)
}

// get sends a question and returns the answer if it is a success.
func (c *Client) get(ctx context.Context, q question) (*answer, error) {
	a, err := c.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return a, c.check(ctx, a)
}

// check returns the error in an answer, or nil for a success. In API v2 the
// envelope counts too: an error in it is treated like an answer with the
// corresponding status.
func (c *Client) check(ctx context.Context, a *answer) error {
	if a.status != http.StatusOK {
		return c.refusal(ctx, a)
	}
	if versionOf(a.path) != v2 || a.succeeded() {
		return nil
	}
	failed := *a
	if failed.status = wire.StatusOf(readFault(a.body).code); failed.status == 0 {
		return notFess(a)
	}
	return c.refusal(ctx, &failed)
}

// succeeded reports whether the envelope of an API v2 answer has the status of
// a success.
func (a *answer) succeeded() bool {
	var v struct{ Status json.RawMessage }
	return wire.DecodeV2(a.body, &v) == nil && string(v.Status) == "0"
}

// notFess returns the error for an answer that is not from a Fess server.
func notFess(a *answer) error {
	return &errkind.Remote{Kind: errkind.Unavailable, Endpoint: a.path, Status: http.StatusBadGateway,
		Code:    readFault(a.body).code,
		Message: "the Fess server's answer is not what its API sends; check that its address is right",
		Reason:  AddressReason}
}
