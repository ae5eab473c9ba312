package fess

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

// A param is one parameter of a request. Parameters are kept in a list, because
// their order in a request is easier to read than the alphabetical one.
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

// The types of answers that are read.
const (
	jsonType = "application/json"
	htmlType = "text/html"
)

// An answer is an HTTP response of any status and type.
type answer struct {
	path   string // of the request
	status int
	header http.Header
	wanted bool   // it has the type that was asked for
	body   []byte // nil unless wanted
}

// send makes one request for path, such as "/api/v1/labels". It returns an
// answer of any status and type. It reads the body only of an answer of the wanted
// type. A body that is too large is an error.
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
		a.body, err = c.body(resp)
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

// body reads the body of an answer, up to one byte more than the limit. It begins
// with a buffer of the usual size, because growing costs more than reading.
func (c *Client) body(resp *http.Response) ([]byte, error) {
	var b bytes.Buffer
	room := resp.ContentLength
	if room < 0 {
		room = c.usual.Load()
	}
	b.Grow(int(min(max(room, 0), maxUsual)) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(resp.Body, c.maxBody+1))
	c.usual.Store(int64(b.Len()))
	return b.Bytes(), err
}

// maxUsual bounds the buffer that is made before anything was read, in bytes.
const maxUsual = 256 << 10

// maxToken bounds a token, in bytes. Tomcat takes header lines of 8 KB.
const maxToken = 4096

// visible reports whether a token can be sent.
func visible(token string) bool {
	return len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// authorization returns the Authorization header of a request, "" for none. A
// client that passes tokens through sends the caller's token or no request.
func (c *Client) authorization(ctx context.Context, path string) (string, error) {
	token := c.token
	if c.passThrough {
		token = search.TokenFrom(ctx)
		if token == "" || !visible(token) {
			return "", &errkind.Remote{Kind: errkind.Unauthorized, Endpoint: path, Status: http.StatusUnauthorized,
				Message: "every caller needs an access token for Fess of his own; send it in the header X-Fess-Token"}
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
	var timeout interface{ Timeout() bool }
	if call.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		return &errkind.Remote{Kind: errkind.Timeout, Endpoint: path, Status: http.StatusGatewayTimeout,
			Message: "the Fess server did not answer in time; try again, or raise the request timeout in the configuration"}
	}
	return transportError(path, err)
}
