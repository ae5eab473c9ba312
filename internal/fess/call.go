package fess

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"knowhow/internal/errkind"
)

// A param is one parameter of a request. They are kept in a list, because a
// request's order is easier to read than the alphabet's.
type param struct{ name, value string }

// encode writes parameters as a URL's query. Everything but letters, digits and
// "-_.~" is escaped: Tomcat refuses raw brackets and bars.
func encode(params []param) string {
	var b strings.Builder
	for i, p := range params {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name)
		b.WriteByte('=')
		b.WriteString(url.QueryEscape(p.value))
	}
	return b.String()
}

// repeat makes one parameter of each value that is not blank.
func repeat(name string, values []string) []param {
	var params []param
	for _, v := range values {
		if strings.TrimSpace(v) != "" {
			params = append(params, param{name, v})
		}
	}
	return params
}

// An answer is a JSON answer of any status.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get asks for path, such as "/api/v1/labels", and decodes the answer into v. A
// status other than 200 is an error.
func (c *Client) get(ctx context.Context, path string, params []param, v any) error {
	a, err := c.fetch(ctx, path, params)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return statusError(path, a)
	}
	return decode(path, a.body, v)
}

// decode reads a whole answer into v.
func decode(path string, body []byte, v any) error {
	if !json.Valid(body) || decodeExactly(body, v) != nil {
		return &errkind.Remote{Endpoint: path, Status: http.StatusBadGateway,
			Message: "the Fess server's answer is not what API v1 sends; check that fessBaseUrl names a Fess server"}
	}
	return nil
}

// fetch makes one request. It returns an answer whatever its status, if it is
// JSON of a bearable size.
func (c *Client) fetch(ctx context.Context, path string, params []param) (*answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	call, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	u := *c.base
	u.Path, u.RawPath = strings.TrimSuffix(c.base.Path, "/")+path, ""
	u.RawQuery = encode(params)
	req, err := http.NewRequestWithContext(call, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, transportError(path, err)
	}
	req.Header = c.header.Clone()
	start := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, callError(ctx, call, path, err)
	}
	defer resp.Body.Close()
	if !isJSON(resp.Header) {
		return nil, noJSON(path, resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.maxBody+1))
	if err != nil {
		return nil, callError(ctx, call, path, err)
	}
	if int64(len(body)) > c.maxBody {
		return nil, &errkind.Remote{Endpoint: path, Status: http.StatusBadGateway,
			Message: "the Fess server's answer is too large; ask for fewer results"}
	}
	c.log.DebugContext(ctx, "asked Fess", "endpoint", path, "status", resp.StatusCode, "bytes", len(body),
		"took", time.Since(start).Round(time.Microsecond))
	return &answer{resp.StatusCode, resp.Header, body}, nil
}

// isJSON says whether the answer calls itself JSON.
func isJSON(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && t == "application/json"
}

// callError tells the caller's end, our own time limit and a failed connection
// apart.
func callError(ctx, call context.Context, path string, err error) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	var timeout interface{ Timeout() bool }
	if call.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		return &errkind.Remote{Kind: errkind.Timeout, Endpoint: path, Status: http.StatusGatewayTimeout,
			Message: "the Fess server did not answer in time; try again, or raise the request timeout in the configuration"}
	}
	return transportError(path, err)
}
