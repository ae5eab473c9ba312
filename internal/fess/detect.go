package fess

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"

	"knowhow/internal/errkind"
)

// A detector remembers which version of its API a server speaks. Which that is
// does not hang on who asks.
type detector struct {
	fixed version // unknown unless the configuration says so

	mu    sync.Mutex // guards what follows
	found version
	probe *probe // under way; nil if none is
}

// A probe is a search for API v2.
type probe struct {
	done chan struct{} // closed when ok is set
	ok   bool
}

// known returns the version that is known, or unknown.
func (d *detector) known() version {
	if d.fixed != unknown {
		return d.fixed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found
}

// remember sets what is known, and says whether that is news.
func (d *detector) remember(v version) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	news := d.found != v
	d.found = v
	return news
}

// ask puts a question in the dialect that the server speaks and returns its
// answer, which is JSON of any status.
//
// Which dialect that is shows in the answer to the first question: it is put to
// API v1, and where there is none, API v2's health decides. So a server with
// API v1 gets no request that nobody asked for. An answer which says that the
// API is gone makes the client look anew, once.
func (c *Client) ask(ctx context.Context, q question) (*answer, error) {
	known := c.api.known()
	if known == unknown {
		return c.detect(ctx, q, nil)
	}
	a, err := c.put(ctx, known, q)
	if err != nil {
		return nil, err
	}
	if !a.elsewhere() || c.api.fixed != unknown {
		return a, c.unusable(a)
	}
	if c.api.remember(unknown) {
		c.log.WarnContext(ctx, "Fess's API is gone: looking for it anew", "version", known.String(), "status", a.status)
	}
	if known == v2 {
		a = nil
	}
	return c.detect(ctx, q, a)
}

// detect finds the version by putting the question. a is the answer of API v1
// where it was asked already. A server that does not answer, or that fails,
// leaves the version unknown.
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
	case !a.elsewhere() && !a.stranger():
		return a, c.unusable(a)
	}
	ok, err := c.joinProbe(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		if a.wanted && a.status == http.StatusOK {
			return nil, notFess(a)
		}
		return a, c.unusable(a)
	}
	if a, err = c.put(ctx, v2, q); err != nil {
		return nil, err
	}
	return a, c.unusable(a)
}

// found remembers a version.
func (c *Client) found(ctx context.Context, v version) {
	if c.api.remember(v) {
		c.log.InfoContext(ctx, "Fess's API found", "version", v.String())
	}
}

// joinProbe asks for API v2 and says whether it is there. Callers share one
// probe's success; a failure is the caller's own, because it may be due to who
// asked.
func (c *Client) joinProbe(ctx context.Context) (bool, error) {
	d := &c.api
	d.mu.Lock()
	p := d.probe
	leading := p == nil
	if leading {
		p = &probe{done: make(chan struct{})}
		d.probe = p
	}
	d.mu.Unlock()
	if !leading {
		select {
		case <-p.done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if p.ok {
			return true, nil
		}
	}
	ok, err := c.probeV2(ctx)
	if ok {
		c.found(ctx, v2)
	}
	if leading {
		d.mu.Lock()
		d.probe = nil
		d.mu.Unlock()
		p.ok = ok
		close(p.done)
	}
	return ok, err
}

// probeV2 makes the request of a probe. A server that cannot be reached is an
// error.
func (c *Client) probeV2(ctx context.Context) (bool, error) {
	a, err := c.put(ctx, v2, question{to: healthCall})
	return err == nil && a.isV2(), err
}

// elsewhere says that the API is not where it was asked for: Fess redirects to
// an error page then, and a server that is none answers with a page of its own.
func (a *answer) elsewhere() bool {
	s := a.status
	if 300 <= s && s < 400 {
		return true
	}
	return !a.wanted && s < 500 && s != http.StatusBadRequest && s != http.StatusRequestTimeout && s != http.StatusTooManyRequests
}

// stranger says that a JSON answer cannot come from Fess's API v1, and that
// it is no complaint of what stands before both versions.
func (a *answer) stranger() bool {
	return a.wanted && a.status < 500 && a.status != http.StatusTooManyRequests && !a.isV1()
}

// isV1 says whether the answer is one of API v1. The filter that limits rates
// answers before the API and has a key "error". A success has something to tell.
func (a *answer) isV1() bool {
	var keys map[string]json.RawMessage
	if !a.wanted || a.status < 200 || 300 <= a.status && a.status < 400 || json.Unmarshal(a.body, &keys) != nil {
		return false
	}
	if keys["error"] != nil || keys["response"] != nil {
		return false
	}
	told := []string{"data", "record_count", "error_code", "error_code:", "message"}
	if a.status == http.StatusOK {
		told = told[:2]
	}
	return slices.ContainsFunc(told, func(key string) bool { return keys[key] != nil })
}

// isV2 says whether the answer is one of API v2 to a question for its health.
func (a *answer) isV2() bool {
	var said struct {
		Response struct {
			Engine *json.RawMessage `json:"engine"`
			Error  *json.RawMessage `json:"error"`
		} `json:"response"`
	}
	return a.wanted && json.Unmarshal(a.body, &said) == nil && (said.Response.Engine != nil || said.Response.Error != nil)
}

// unusable explains an answer that is no JSON; it is nil for all others.
func (c *Client) unusable(a *answer) error {
	if a.wanted && (a.status < 300 || a.status >= 400) {
		return nil
	}
	err := noJSON(a)
	if r, ok := errors.AsType[*errkind.Remote](err); ok && a.elsewhere() && c.api.fixed != unknown {
		r.Message += "; fessApi is " + c.api.fixed.String() + ", auto finds the version that the server speaks"
	}
	return err
}
