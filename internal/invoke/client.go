package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

const (
	probeTime = 2 * time.Second
	maxAnswer = 64 << 20
)

// ClientOptions configure the connection to a bridge.
type ClientOptions struct {
	URL     string        // of the bridge, without a path
	Token   string        // that the bridge requires; "" for none
	Timeout time.Duration // of one request; 0 means no limit except that of the context
}

// TokenReason is the reason of errors that are due to ClientOptions.Token; see
// [errkind.ReasonOf].
const TokenReason errkind.Reason = "invoke: ClientOptions.Token"

// A Client calls the tools of a running bridge. Create one with NewClient. It
// is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient returns a client. If the URL is invalid, the error is of kind
// errkind.Invalid.
func NewClient(o ClientOptions) (*Client, error) {
	u, err := httpclient.ParseBaseURL("the URL of the bridge", o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: strings.TrimRight(u.String(), "/"), token: o.Token, http: httpclient.New(http.DefaultTransport)}
	c.http.Timeout = o.Timeout
	return c, nil
}

// A Tool is a tool as listed by a bridge.
type Tool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"` // as the server wrote it
}

// Probe reports whether a bridge is running. If not, the error is of kind
// errkind.Unavailable.
func (c *Client) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var health struct {
		Status string `json:"status"`
		Name   string `json:"name"`
	}
	if err := c.do(ctx, http.MethodGet, "/", nil, &health); err != nil {
		return err
	}
	if health.Status != "ok" || health.Name == "" {
		return fmt.Errorf("the program at this address is not a bridge: %w", errkind.Unavailable)
	}
	return nil
}

// Tools returns the tools of a server, in the bridge's order. Errors are of the
// kinds of [mcpclient.Pool].
func (c *Client) Tools(ctx context.Context, server string) ([]Tool, error) {
	var answer struct {
		Tools []Tool `json:"tools"`
	}
	if err := c.do(ctx, http.MethodGet, "/tools?server="+url.QueryEscape(server), nil, &answer); err != nil {
		return nil, err
	}
	return answer.Tools, nil
}

// Call calls a tool and returns the result as the server wrote it. Errors are
// of the kinds of [mcpclient.Pool]. A request is never sent twice.
func (c *Client) Call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	body, err := compact.Marshal(struct {
		Server    string          `json:"server_id"`
		Tool      string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments"`
	}{server, tool, arguments})
	if err != nil {
		return nil, fmt.Errorf("writing the arguments: %w: %w", err, errkind.Invalid)
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	if err := c.do(ctx, http.MethodPost, "/invoke", body, &answer); err != nil {
		return nil, err
	}
	return answer.Result, nil
}

// do sends a request and decodes the response into out.
func (c *Client) do(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking the bridge: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return transportError(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return transportError(ctx, err)
	case len(data) > maxAnswer:
		return fmt.Errorf("asking the bridge: the answer is larger than %d MiB: %w", maxAnswer>>20, errkind.TooLarge)
	case resp.StatusCode != http.StatusOK:
		return answeredError(resp.StatusCode, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("asking the bridge: the program at this address is not a bridge: %w", errkind.Unavailable)
	}
	return nil
}

// transportError adds a kind to an error of net/http.
func transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	if httpclient.TimedOut(ctx, err) {
		return fmt.Errorf("asking the bridge: no answer in time: %w", errkind.Timeout)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the URL may contain secrets
	}
	return fmt.Errorf("asking the bridge: %w: %w", err, errkind.Unavailable)
}

// answeredError returns the error in a bridge's response.
func answeredError(status int, body []byte) error {
	var answer struct {
		Error  string          `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == "" {
		return fmt.Errorf("asking the bridge: it answered with status %d: %w", status, errkind.Unavailable)
	}
	kind := errkind.Unavailable
	for _, k := range kinds {
		if k.status == status {
			kind = k.kind
			break
		}
	}
	switch status {
	case http.StatusUnauthorized:
		return &errkind.Restriction{Reason: TokenReason,
			Err: fmt.Errorf("the bridge requires a token: %w", errkind.Unauthorized)}
	case http.StatusBadRequest:
		kind = errkind.Invalid
	}
	detail := string(answer.Detail)
	var text string
	if json.Unmarshal(answer.Detail, &text) == nil {
		detail = text
	}
	return fmt.Errorf("%s: %s: %w", answer.Error, cut(detail, maxDetail), kind)
}
