package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The methods and notifications that this package treats apart.
const (
	methodInitialize    = "initialize"
	methodPing          = "ping"
	methodDiscover      = "server/discover"
	methodListTools     = "tools/list"
	methodCallTool      = wire.MethodCallTool
	methodListResources = "resources/list"
	methodReadResource  = wire.MethodReadResource
	methodListTemplates = "resources/templates/list"
	notifyInitialized   = "notifications/initialized"
	notifyCancelled     = "notifications/cancelled"
	notifyProgress      = "notifications/progress"
)

// requestMeta returns the _meta of a request's params, nil if it has none.
func requestMeta(req mcp.Request) map[string]any {
	// The interface may hold a nil pointer, on which GetMeta panics.
	if p := req.GetParams(); p != nil && !reflect.ValueOf(p).IsNil() {
		return p.GetMeta()
	}
	return nil
}

// requestRevision returns the revision that a request names for itself, as
// those of 2026-07-28 do; "" if it relies on the handshake.
func requestRevision(req mcp.Request) string {
	v, _ := requestMeta(req)[mcp.MetaKeyProtocolVersion].(string)
	return v
}

// guard is the outermost layer around every request: panics, the gate,
// shutdown, cancellation, and errors.
func (s *Server) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		start := time.Now()
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, s.peerError(panicked(p), &call{method: method})
			}
			s.logRequest(method, time.Since(start), err)
		}()
		ss := sessionFrom(ctx)
		switch method {
		case methodInitialize:
			return s.initialize(ctx, ss, req, next)
		case notifyInitialized:
			if res, err = next(ctx, method, req); err == nil {
				ss.initialized()
			}
			return res, err
		case methodPing, methodDiscover, notifyCancelled:
			if method == notifyCancelled {
				ss.cancelled(cancelledID(req))
			}
			return next(ctx, method, req)
		}
		return s.serve(ctx, ss, method, req, next)
	}
}

// initialize is never cancelled, and the SDK's own errors are fit to show.
func (s *Server) initialize(ctx context.Context, ss *session, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, methodInitialize, req)
	if err != nil {
		return nil, fault.New(fault.CodeInvalidRequest, fault.Sentence(err.Error()), nil)
	}
	if r, ok := res.(*initializeResult); ok {
		sdk, _ := req.GetSession().(*mcp.ServerSession)
		ss.negotiated(sdk, r.ProtocolVersion)
	}
	return res, nil
}

// serve answers a request that needs a session in order, or that brings its
// revision along.
func (s *Server) serve(ctx context.Context, ss *session, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	c := &call{revision: requestRevision(req), token: progressToken(requestMeta(req)), id: metaID(requestMeta(req)[wire.MetaRequest])}
	c.sdk, _ = req.GetSession().(*mcp.ServerSession)
	if c.revision < statelessRevision {
		c.revision = ss.revisionInUse()
		if !ss.awaitReady(ctx) {
			if cancelledByPeer(ctx) {
				return nil, fault.Cancelled()
			}
			return nil, fault.NotInitialized(method)
		}
	}
	c.method = method
	work, end, err := ss.begin(context.WithValue(s.withHeader(ctx, ss, req), callKey{}, c), c)
	if err != nil {
		return s.failed(c, fault.ShuttingDown())
	}
	defer end()
	defer c.finish()
	res, err := s.try(work, method, req, next)
	switch {
	case cancelledByPeer(ctx):
		ss.cancelled(c.id)
		return nil, fault.Cancelled()
	case err == nil:
		return res, nil
	case ss.stopped():
		err = fault.ShuttingDown()
	}
	return s.failed(c, err)
}

// try calls next and turns a panic into an error.
func (s *Server) try(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (res mcp.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, panicked(p)
		}
	}()
	return next(ctx, method, req)
}

// panicked returns the error of a recovered panic, for the log.
func panicked(p any) error { return fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack()) }

// failed returns the answer to a call that failed with err: a JSON-RPC error, or
// from 2025-11-25 on, if a tool failed, a result that says so. Clients show such
// results to the model and discard JSON-RPC errors. An err that is one already is
// about the request, not of the tool.
func (s *Server) failed(c *call, err error) (mcp.Result, error) {
	e := s.peerError(err, c)
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused || c.method != methodCallTool || c.revision < resultsRevision {
		return nil, e
	}
	res := wire.NewToolResult(e.Message, c.revision)
	res.IsError, res.Meta = true, mcp.Meta{"error": e}
	s.sign(res, c.revision)
	return res, nil
}

// withHeader returns ctx with what the caller takes from the HTTP header.
func (s *Server) withHeader(ctx context.Context, ss *session, req mcp.Request) context.Context {
	header := ss.header
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		header = extra.Header
	}
	if s.opts.Header == nil || header == nil {
		return ctx
	}
	return s.opts.Header(ctx, header)
}

// cancelledByPeer says whether the request was cancelled by a notification.
// The SDK gives every other end of a request another cause.
func cancelledByPeer(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled)
}

// peerError turns a handler's error into one that a peer may see. An error of
// no kind goes to the log instead.
func (s *Server) peerError(err error, c *call) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	o := c.describe(err)
	if o.Code == fault.CodeInternal {
		s.log.Error("request failed", "method", c.method, "error", err)
	}
	return o.Wire()
}

func (s *Server) logRequest(method string, took time.Duration, err error) {
	code := int64(0)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		code = e.Code
	}
	s.log.Debug("request", "method", method, "ms", took.Milliseconds(), "code", code)
}

// dispatch answers what this package serves itself and leaves the rest of the
// protocol to the SDK.
func (s *Server) dispatch(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if limited(method) {
			if err := s.limit.acquire(ctx); err != nil {
				return nil, err
			}
			defer s.limit.release()
		}
		c := callFrom(ctx)
		if c != nil && !s.has(method, c.revision) {
			return nil, errUnknownMethod(method)
		}
		switch p := req.GetParams().(type) {
		case *mcp.ListToolsParams:
			if p != nil && p.Cursor != "" {
				return nil, fault.NoCursor(p.Cursor)
			}
			return s.listTools(c.revision), nil
		case *mcp.CallToolParamsRaw:
			return s.callTool(ctx, p, c.revision)
		case *mcp.ListResourcesParams:
			if s.res != nil {
				return s.listResources(ctx, p, c.revision)
			}
		case *mcp.ReadResourceParams:
			if s.res != nil {
				return s.readResource(ctx, p, c.revision)
			}
		case *mcp.ListResourceTemplatesParams:
			if s.res != nil && p != nil && p.Cursor != "" {
				return nil, fault.NoCursor(p.Cursor)
			}
			if s.res != nil {
				return s.listTemplates(c.revision), nil
			}
		}
		return next(ctx, method, req)
	}
}

// has says whether a method belongs to something that the server declares.
// Clients of older revisions get empty lists of resources where it does not,
// because many of them ask without looking.
func (s *Server) has(method, revision string) bool {
	switch {
	case slices.Contains(wire.Undeclared(), method):
		return false
	case strings.HasPrefix(method, "resources/"):
		return s.res != nil || revision < statelessRevision
	}
	return true
}
