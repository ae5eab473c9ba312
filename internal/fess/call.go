package fess

import (
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A param is one parameter of a request. Parameters are kept in a list, so that
// they have a readable order.
type param struct{ name, value string }

// encode returns parameters as the query of a URL. Everything except letters,
// digits and "-_.~" is escaped, because Tomcat refuses raw brackets and bars.
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

// repeat returns one parameter for each value that is not blank.
func repeat(name string, values []string) []param {
	var params []param
	for _, v := range values {
		if strings.TrimSpace(v) != "" {
			params = append(params, param{name, v})
		}
	}
	return params
}

// Types of answers.
const (
	jsonType = "application/json"
	htmlType = "text/html"
)

// An answer is an HTTP response of any status and type.
type answer struct {
	path   string // of the request
	status int
	header http.Header
	wanted bool   // it has the requested type
	body   []byte // nil if the type is not the requested one
}

// send makes one request for path, such as "/api/v1/labels". It returns an
// answer of any status and type. The body is read only if the answer has the
// requested type. A body that is too large is an error.
func (c *Client) send(ctx context.Context, path string, params []param, want string) (*answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	authorization, err := c.authorization(ctx, path)
	if err != nil {
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
	req.Header = http.Header{"Accept": {want}, "User-Agent": {c.userAgent}}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	start := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, callError(ctx, call, path, err)
	}
	defer resp.Body.Close()
	a := &answer{path: path, status: resp.StatusCode, header: resp.Header, wanted: hasType(resp.Header, want)}
	if a.wanted {
		a.body, err = io.ReadAll(io.LimitReader(resp.Body, c.maxBody+1))
		if err != nil {
			return nil, callError(ctx, call, path, err)
		}
	}
	if int64(len(a.body)) > c.maxBody {
		return nil, &errkind.Remote{Endpoint: path, Status: http.StatusBadGateway,
			Message: "the Fess server's answer is too large; ask for fewer results"}
	}
	c.log.DebugContext(ctx, "asked Fess", "endpoint", path, "status", a.status, "bytes", len(a.body),
		"took", time.Since(start).Round(time.Microsecond))
	return a, nil
}

// authorization returns the Authorization header of a request, or "" for none.
// A client that passes tokens through sends the caller's token, and fails if
// there is none.
func (c *Client) authorization(ctx context.Context, path string) (string, error) {
	token := c.token
	if c.passThrough {
		token = search.TokenFrom(ctx)
		if token == "" || !httpclient.ValidKey(token) {
			return "", &errkind.Remote{Kind: errkind.Unauthorized, Endpoint: path, Status: http.StatusUnauthorized,
				Message: "every caller needs its own access token for Fess; send it in the header X-Fess-Token"}
		}
	}
	if token == "" {
		return "", nil
	}
	return "Bearer " + token, nil
}

// hasType reports whether an answer has a media type.
func hasType(h http.Header, want string) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && t == want
}

// callError returns the error of a call: that of the caller's context, a timeout,
// or a failed connection.
func callError(ctx, call context.Context, path string, err error) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	if httpclient.TimedOut(call, err) {
		return &errkind.Remote{Kind: errkind.Timeout, Endpoint: path, Status: http.StatusGatewayTimeout,
			Message: "the Fess server did not answer in time; try again, or raise the request timeout in the " +
				"configuration"}
	}
	return transportError(path, err)
}
