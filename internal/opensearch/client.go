package opensearch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// Limits of requests.
const (
	maxAnswer  = 256 << 20 // bytes of an answer
	maxReason  = 300       // bytes of a reason that the cluster gives
	attempts   = 5         // of a request that the cluster is too busy for
	firstPause = 100 * time.Millisecond
)

// object is a JSON object of a request.
type object = map[string]any

// A client sends requests to one cluster.
type client struct {
	base, username, password, agent string
	timeout                         time.Duration
	http                            *http.Client
	lost                            func() // is called if an index is missing
}

// errMissing and errChanged are what the cluster says about a document that does
// not exist, and about one that has changed since it was read.
var (
	errMissing = errors.New("the document does not exist")
	errChanged = errors.New("the document has changed meanwhile")
)

// do sends a request and decodes the answer into out, unless it is nil. A body
// that is a []byte is sent as it is, any other as JSON. While the cluster is too
// busy, the request is sent again. The error is errMissing for status 404,
// errChanged for 409, and otherwise an *errkind.Remote, or that of ctx.
func (c *client) do(ctx context.Context, method, path string, params url.Values, body, out any) error {
	var data []byte
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		data, kind = b, "application/x-ndjson"
	default:
		var err error
		if data, err = json.Marshal(b); err != nil {
			return fmt.Errorf("writing a request to OpenSearch: %w", err)
		}
	}
	return c.again(ctx, func() error { return c.once(ctx, method, path, params, kind, data, out) })
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *client) once(ctx context.Context, method, path string, params url.Values, kind string, data []byte,
	out any) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	target := c.base + path
	if len(params) > 0 {
		target += "?" + params.Encode()
	}
	req, err := http.NewRequestWithContext(limited, method, target, bytes.NewReader(data))
	if err != nil {
		return unusable(AddressReason, errkind.Invalid, "the address of OpenSearch cannot be used: check it")
	}
	if c.username != "" || c.password != "" {
		req.SetBasicAuth(c.username, c.password)
	}
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Accept", "application/json")
	if data != nil {
		req.Header.Set("Content-Type", kind)
	}
	if strings.HasSuffix(path, "search") || strings.HasSuffix(path, "/_mget") {
		// The request changes nothing, so net/http sends it again if a node ends a
		// connection that was used before. An empty list is not sent as a header.
		req.Header["Idempotency-Key"] = []string{}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreached(ctx, limited, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return c.unreached(ctx, limited, path, err)
	}
	if len(answer) > maxAnswer {
		return &errkind.Remote{Kind: errkind.TooLarge, Endpoint: path, Status: http.StatusBadGateway,
			Message: "the answer of OpenSearch is too large: ask for less"}
	}
	if resp.StatusCode/100 != 2 {
		return c.noted(refused(path, resp.StatusCode, answer))
	}
	if out == nil {
		out = &json.RawMessage{}
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return notOpenSearch(path)
	}
	return nil
}

// unreached returns the error for a request without a whole answer.
func (c *client) unreached(ctx, limited context.Context, path string, err error) error {
	remote := &errkind.Remote{Kind: errkind.Unavailable, Endpoint: path, Status: http.StatusBadGateway,
		Reason: AddressReason, Unanswered: true,
		Message: "OpenSearch cannot be reached: check that it runs, and its address"}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(limited.Err(), context.DeadlineExceeded) {
		remote.Kind, remote.Status, remote.Reason = errkind.Timeout, http.StatusGatewayTimeout, ""
		remote.Message = fmt.Sprintf("OpenSearch did not answer within %v: try again later", c.timeout)
		return remote
	}
	_, wrongHost := errors.AsType[x509.HostnameError](err)
	switch cause := httpclient.CauseOf(err); {
	case wrongHost:
		return unusable(AddressReason, errkind.Denied,
			"the certificate of OpenSearch is for another host: use the name in the certificate in the address")
	case cause == httpclient.NotTrusted:
		return unusable(CAReason, errkind.Denied,
			"the certificate of OpenSearch is not trusted: name a file with the certificate of its authority")
	case cause == httpclient.NoTLS:
		return unusable(AddressReason, errkind.Denied,
			"OpenSearch answers without TLS at this address: use opensearch+http")
	}
	return remote
}

// unusable returns an error that the operator must change something for, so that
// another attempt is of no use.
func unusable(reason errkind.Reason, kind error, message string) error {
	return &errkind.Restriction{Reason: reason, Err: fmt.Errorf("%s: %w", message, kind)}
}

func notOpenSearch(path string) error {
	return &errkind.Remote{Kind: errkind.Unavailable, Endpoint: path, Status: http.StatusBadGateway,
		Reason:  AddressReason,
		Message: "the answer is not from OpenSearch, but perhaps from a proxy before it: check the address"}
}

// A failure is the answer of OpenSearch to a request that failed, or about one
// operation of a bulk request.
type failure struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Root   []struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	} `json:"root_cause"`
}

// refused returns the error for an answer that is a failure.
func refused(path string, status int, answer []byte) error {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	var f failure
	if json.Unmarshal(answer, &body) == nil {
		_ = json.Unmarshal(body.Error, &f) // a text instead of an object has no type
	}
	switch {
	case status == http.StatusUnauthorized:
		return &errkind.Remote{Kind: errkind.Unauthorized, Endpoint: path, Status: status, Reason: CredentialsReason,
			Message: "OpenSearch refuses the credentials: check user and password"}
	case status == http.StatusNotFound && json.Valid(answer) && !strings.Contains(f.Type, "index_not_found"):
		return errMissing
	case status == http.StatusConflict:
		return errChanged
	case status == http.StatusRequestEntityTooLarge:
		return f.error(path, status)
	case !json.Valid(answer) || status/100 == 3:
		if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests ||
			status == http.StatusGatewayTimeout {
			return f.error(path, status)
		}
		return notOpenSearch(path)
	}
	return f.error(path, status)
}

// error returns the error for a failure with a status.
func (f failure) error(path string, status int) error {
	kind, reason := f.Type, f.Reason
	if len(f.Root) > 0 {
		kind, reason = cmp.Or(f.Root[0].Type, kind), cmp.Or(f.Root[0].Reason, reason)
	}
	remote := &errkind.Remote{Kind: errkind.Unavailable, Endpoint: path, Status: http.StatusServiceUnavailable,
		Code: code(kind)}
	switch {
	case kind == "too_many_nested_clauses" || kind == "too_many_clauses":
		remote.Kind, remote.Status, remote.Message = errkind.Invalid, http.StatusBadRequest,
			"the query has too many words for OpenSearch: use fewer words or operators"
	case kind == "cluster_block_exception" && strings.Contains(reason, "disk usage"):
		remote.Message = "OpenSearch does not accept changes because its disk is almost full: free space on its disk; what is queued is stored afterwards"
	case kind == "cluster_block_exception":
		remote.Message = "OpenSearch does not accept the request because an index is blocked, or has no master node: try again when the block is removed"
	case status == http.StatusTooManyRequests:
		remote.Kind, remote.Status, remote.Message = errkind.Busy, status,
			"OpenSearch has too much to do: try again later"
	case status == http.StatusForbidden:
		remote.Kind, remote.Status, remote.Reason = errkind.Denied, status, CredentialsReason
		remote.Message = "the user may not do this in OpenSearch: give the user the right to manage, read and write the indexes of the store"
	case strings.Contains(kind, "index_not_found"), strings.Contains(reason, "require_alias"):
		remote.Message = "an index of the store is missing in OpenSearch, or is just moving to another node: try again, then start the program again, or restore the index"
	case status >= 500:
		remote.Message = "OpenSearch cannot answer at the moment, perhaps because some of its shards are missing: check its health"
	case status == http.StatusRequestEntityTooLarge:
		remote.Kind, remote.Status, remote.Message = errkind.TooLarge, status,
			"the document is too large for OpenSearch: split it, or increase http.max_content_length there"
	default:
		remote.Kind, remote.Status = errkind.Unsupported, http.StatusNotImplemented
		remote.Message = "OpenSearch does not understand the request: use OpenSearch 2.19 or later; it says: " +
			short(reason)
	}
	return remote
}

// code returns the type of a failure if it has the form of one.
func code(s string) string {
	if len(s) > 80 || strings.ContainsFunc(s, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return ""
	}
	return s
}

// short returns a reason as one line of at most maxReason bytes.
func short(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), maxReason)]
}

// lostIndex is the code of errors that are due to an index that does not exist.
const lostIndex = "index_not_found_exception"

// noted returns an error, and calls c.lost if it is due to a missing index.
func (c *client) noted(err error) error {
	if remote, ok := errors.AsType[*errkind.Remote](err); ok && remote.Code == lostIndex {
		c.lost()
	}
	return err
}

// again calls f until it returns another error than that the cluster is too busy.
func (c *client) again(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if !errors.Is(err, errkind.Busy) || n == attempts {
			return err
		}
		if err := wait(ctx, firstPause<<(n-1)); err != nil {
			return err
		}
	}
}

// An operation is one operation of a bulk request.
type operation struct {
	action  string // create, index, update or delete
	meta    object // _index, _id, ...
	body    any    // nil for delete
	version        // of the row after the operation
}

// bulkSize is the size of a bulk request in bytes at which it is sent. OpenSearch
// accepts 100 MB, and one operation may be large.
const bulkSize = 16 << 20

// bulk sends operations, in requests of about bulkSize bytes, and returns the
// error of each: nil, errMissing, errChanged or an *errkind.Remote. Operations
// that the cluster is too busy for are sent again. With refresh, searches see
// the changes when bulk returns.
func (c *client) bulk(ctx context.Context, ops []operation, refresh bool) ([]error, error) {
	errs := make([]error, len(ops))
	todo := make([]int, len(ops))
	for i := range ops {
		todo[i] = i
	}
	for n := 1; ; n++ {
		again, err := c.bulkOnce(ctx, ops, todo, errs, refresh)
		if err != nil || len(again) == 0 || n == attempts {
			return errs, err
		}
		todo = again
		if err := wait(ctx, firstPause<<(n-1)); err != nil {
			return errs, err
		}
	}
}

// bulkOnce sends some of the operations. It returns those to send again.
func (c *client) bulkOnce(ctx context.Context, ops []operation, todo []int, errs []error, refresh bool) (
	again []int, err error) {
	params := url.Values{"require_alias": {"true"},
		"filter_path": {"items.*.status,items.*._seq_no,items.*._primary_term,items.*.error.type,items.*.error.reason"}}
	if refresh {
		params.Set("refresh", "true")
	}
	for len(todo) > 0 {
		var body bytes.Buffer
		n := 0
		for ; n < len(todo) && body.Len() < bulkSize; n++ {
			op := ops[todo[n]]
			out := json.NewEncoder(&body)
			out.SetEscapeHTML(false)
			if err := out.Encode(object{op.action: op.meta}); err != nil {
				return nil, fmt.Errorf("writing a request to OpenSearch: %w", err)
			}
			if op.body == nil {
				continue
			}
			if err := out.Encode(op.body); err != nil {
				return nil, fmt.Errorf("writing a request to OpenSearch: %w", err)
			}
		}
		var answer struct {
			Items []map[string]struct {
				version
				Status int     `json:"status"`
				Error  failure `json:"error"`
			} `json:"items"`
		}
		if err := c.do(ctx, http.MethodPost, "/_bulk", params, body.Bytes(), &answer); err != nil {
			return nil, err
		}
		if len(answer.Items) != n {
			return nil, notOpenSearch("/_bulk")
		}
		for i, item := range answer.Items {
			at := todo[i]
			errs[at] = nil
			for _, r := range item {
				switch ops[at].version = r.version; {
				case r.Status/100 == 2:
				case r.Status == http.StatusNotFound && r.Error.Type == "" ||
					r.Error.Type == "document_missing_exception":
					errs[at] = errMissing
				case r.Status == http.StatusConflict:
					errs[at] = errChanged
				case r.Status == http.StatusTooManyRequests && r.Error.Type != "cluster_block_exception":
					again = append(again, at)
					fallthrough
				default:
					errs[at] = c.noted(r.Error.error("/_bulk", r.Status))
				}
			}
		}
		todo = todo[n:]
	}
	return again, nil
}
