package fetch

import (
	"context"
	"net/http"
)

// A Request is one request for a document, see [Fetcher.Do].
type Request struct {
	URL    string
	Header http.Header // in addition to those that every request has, such as If-None-Match; may be nil

	// Want reports by the header of a response with status 200 whether its body is
	// read. nil means that it is.
	Want func(http.Header) bool
}

// A Response is the answer to a [Request].
type Response struct {
	Status   int
	Header   http.Header
	Location string // the absolute target of a redirect; "" if there is none
	Data     []byte // the body, decompressed; only with status 200
}

// Do sends one request and returns the response, whatever its status is. It follows
// no redirect: the caller decides about it, and the policy applies when it asks for
// the target. Otherwise Do is like Get, and so are its errors.
func (f *Fetcher) Do(ctx context.Context, r Request) (*Response, error) {
	call, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	u, err := f.policy.check(r.URL)
	if err != nil {
		return nil, err
	}
	header := f.header.Clone()
	for name, values := range r.Header {
		header[name] = values
	}
	req := (&http.Request{Method: http.MethodGet, URL: u, Header: header}).WithContext(call)
	resp, err := f.transport.RoundTrip(req)
	if err != nil {
		return nil, f.callError(ctx, call, u, err, unreachable)
	}
	out := &Response{Status: resp.StatusCode, Header: resp.Header}
	if out.Status == http.StatusNonAuthoritativeInfo {
		out.Status = http.StatusOK
	}
	if out.Status != http.StatusOK || r.Want != nil && !r.Want(resp.Header) {
		resp.Body.Close()
		switch to := resp.Header.Get("Location"); out.Status {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
			http.StatusPermanentRedirect:
			if target, err := u.Parse(to); err == nil && to != "" {
				out.Location = target.String()
			}
		}
		return out, nil
	}
	if out.Data, err = f.read(ctx, call, u, resp, nil); err != nil {
		return nil, err
	}
	return out, nil
}
