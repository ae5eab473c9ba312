package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Methods and notifications that this package handles specially.
const (
	methodInitialize    = "initialize"
	methodPing          = "ping"
	methodDiscover      = "server/discover"
	methodListen        = "subscriptions/listen" // of 2026-07-28: it lasts until it is cancelled
	methodListTools     = "tools/list"
	methodCallTool      = "tools/call"
	methodListResources = "resources/list"
	methodReadResource  = "resources/read"
	methodListTemplates = "resources/templates/list"
	notifyInitialized   = "notifications/initialized"
	notifyCancelled     = "notifications/cancelled"
	notifyProgress      = "notifications/progress"
)

// errCancelled is the error of a cancelled request, which gets no response.
var errCancelled = errors.New("cancelled")

// guard is the outermost middleware. It handles panics, the gate, shutdown,
// cancellation and errors.
func (s *Server) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		start, c := time.Now(), connFrom(ctx)
		defer func() {
			if p, ok := errors.AsType[*panicError](err); ok {
				err = s.peerError(p, &call{method: method})
			}
			s.logRequest(method, time.Since(start), res, err)
		}()
		next := func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return try(ctx, method, req, next)
		}
		k := callOf(req)
		answer := func(ctx context.Context) (mcp.Result, error) {
			switch {
			case method == methodInitialize:
				return s.initialize(ctx, c, req, next)
			case method == notifyInitialized:
				res, err := next(ctx, method, req)
				if err == nil {
					c.initialized()
				}
				return res, err
			case k == nil, method == methodPing, method == methodDiscover:
				return next(ctx, method, req)
			default:
				return s.serve(ctx, c, k, req, next)
			}
		}
		if s.opts.Around == nil || k == nil || method == methodPing {
			return answer(ctx)
		}
		return s.around(ctx, k, req, answer)
	}
}

// around answers a request by Options.Around.
func (s *Server) around(ctx context.Context, k *call, req mcp.Request,
	answer func(context.Context) (mcp.Result, error)) (res mcp.Result, err error) {
	r := Request{Method: k.method, Client: k.conn.clientName(), Session: k.conn.id}
	if c, ok := requestMeta(req)[mcp.MetaKeyClientInfo].(map[string]any); ok {
		r.Client, _ = c["name"].(string)
	}
	switch p := req.GetParams().(type) {
	case *mcp.InitializeParams:
		if p != nil && p.ClientInfo != nil {
			r.Client = p.ClientInfo.Name
			k.conn.setClient(r.Client)
		}
	case *mcp.CallToolParamsRaw:
		if p != nil {
			r.Name = p.Name
		}
	case *mcp.ReadResourceParams:
		if p != nil {
			r.Name = p.URI
		}
	}
	failure := s.opts.Around(ctx, r, func(ctx context.Context) Outcome {
		res, err = answer(ctx)
		return outcomeOf(res, err)
	})
	if failure != nil {
		return s.failed(k, failure)
	}
	return res, err
}

// codeCancelled is the code of a request that the client has cancelled, which gets no
// response. It is that of the Language Server Protocol.
const codeCancelled = -32800

// outcomeOf returns how a request ended.
func outcomeOf(res mcp.Result, err error) Outcome {
	if r, ok := res.(*toolResult); ok && r.IsError {
		err, _ = r.Meta["error"].(error)
	}
	if err == nil {
		return Outcome{}
	}
	if errors.Is(err, errCancelled) {
		return Outcome{codeCancelled, "CANCELLED"}
	}
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return Outcome{codeInternal, "INTERNAL"}
	}
	var data struct{ Code string }
	_ = json.Unmarshal(e.Data, &data) // there may be none
	return Outcome{e.Code, data.Code}
}

// initialize is never cancelled, and the SDK's errors may be sent.
func (s *Server) initialize(ctx context.Context, c *conn, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, methodInitialize, req)
	if _, panicked := errors.AsType[*panicError](err); err != nil && !panicked {
		err = newError(codeInvalidRequest, sentence(err.Error()), nil)
	}
	if r, ok := res.(*initializeResult); ok {
		c.negotiated(r.ProtocolVersion)
	}
	return res, err
}

// serve answers a request that requires an initialized session, or that
// specifies its revision, as those of 2026-07-28 do.
func (s *Server) serve(ctx context.Context, c *conn, k *call, req mcp.Request,
	next mcp.MethodHandler) (mcp.Result, error) {
	meta := requestMeta(req)
	k.token = progressToken(meta)
	if k.revision, _ = meta[mcp.MetaKeyProtocolVersion].(string); k.revision < statelessRevision {
		k.revision = c.revisionInUse()
		if !c.awaitReady(ctx) {
			return nil, notInitialized(k.method)
		}
	}
	ctx = context.WithValue(ctx, callKey{}, k)
	if s.opts.Header != nil && k.header != nil {
		ctx = s.opts.Header(ctx, k.header)
	}
	ctx, end, err := c.begin(ctx, k)
	if err != nil {
		return s.failed(k, shuttingDown())
	}
	defer end()
	defer k.finish()
	res, err := next(ctx, k.method, req)
	switch {
	case c.isCancelled(k):
		return nil, errCancelled
	case c.isInterrupted(k):
		err = errInterrupted
	case err == nil:
		return res, nil
	case c.isStopped():
		err = shuttingDown()
	}
	return s.failed(k, err)
}

// A panicError is a recovered panic. Its text is only logged.
type panicError struct {
	value any
	stack []byte
}

// Error returns the value and the stack.
func (p *panicError) Error() string {
	return fmt.Sprintf("the handler panicked: %v\n%s", p.value, p.stack)
}

// try calls next and turns a panic into an error.
func try(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (res mcp.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, &panicError{p, debug.Stack()}
		}
	}()
	return next(ctx, method, req)
}

// requestMeta returns the _meta of a request's params, or nil.
func requestMeta(req mcp.Request) map[string]any {
	// The interface may contain a nil pointer, on which GetMeta panics.
	if p := req.GetParams(); p != nil && !reflect.ValueOf(p).IsNil() {
		return p.GetMeta()
	}
	return nil
}

// failed returns the answer to a call that failed with err: a JSON-RPC error,
// or from 2025-11-25 on, if a tool failed, a result with isError. Clients show
// such results to the model and discard JSON-RPC errors. An err that is already
// a JSON-RPC error concerns the request, not the tool.
func (s *Server) failed(k *call, err error) (mcp.Result, error) {
	e := s.peerError(err, k)
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused || k.method != methodCallTool ||
		k.revision < resultsRevision {
		return nil, e
	}
	res := newToolResult(e.Message, k.revision)
	res.IsError, res.Meta = true, mcp.Meta{"error": e}
	s.sign(res, k.revision)
	return res, nil
}

// peerError returns a handler's error in a form that a peer may receive. An
// error without a kind is logged instead.
func (s *Server) peerError(err error, k *call) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	o := k.describe(err)
	if o.Code == codeInternal {
		s.log.Error("request failed", "method", k.method, "error", err)
	}
	return o.wire()
}

func (s *Server) logRequest(method string, took time.Duration, res mcp.Result, err error) {
	if r, ok := res.(*toolResult); ok && r.IsError {
		err, _ = r.Meta["error"].(error)
	}
	code := int64(0)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		code = e.Code
	}
	s.log.Debug("request", "method", method, "ms", took.Milliseconds(), "code", code)
}

// dispatch handles the methods that this package serves itself and passes other
// requests to the SDK.
func (s *Server) dispatch(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		k, offer := callFrom(ctx), s.offer.Load()
		if limited(method) {
			if err := s.limit.Acquire(ctx); err != nil {
				return nil, err
			}
			k.slot = true
			defer func() {
				if k.slot {
					s.limit.Release()
				}
			}()
		}
		if k != nil && !offer.has(method, k.revision) {
			return nil, errUnknownMethod(method)
		}
		switch p := req.GetParams().(type) {
		case *mcp.ListToolsParams:
			if p != nil && p.Cursor != "" {
				return nil, noCursor(p.Cursor)
			}
			return offer.listTools(k.revision), nil
		case *mcp.CallToolParamsRaw:
			return offer.callTool(ctx, p, k.revision)
		case *mcp.ListResourcesParams:
			return offer.listResources(ctx, p, k.revision)
		case *mcp.ReadResourceParams:
			return offer.readResource(ctx, p, k.revision)
		case *mcp.ListResourceTemplatesParams:
			if p != nil && p.Cursor != "" {
				return nil, noCursor(p.Cursor)
			}
			return offer.listTemplates(k.revision), nil
		}
		return next(ctx, method, req)
	}
}

// has reports whether a method belongs to a declared capability. For clients of
// older revisions, lists of resources are empty without the capability, because
// many of them do not check it.
func (o *offer) has(method, revision string) bool {
	switch {
	case slices.Contains(undeclaredMethods, method):
		return false
	case strings.HasPrefix(method, "resources/"):
		return o.hasResources() || revision < statelessRevision
	}
	return true
}
