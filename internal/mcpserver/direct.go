package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/mcpserver/stream"
	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK reads the params of a call three times, with 32 KiB of buffer each, and
// writes a result twice. For tools/call, which is nearly all that a client asks
// for, that is most of what a call costs; so plain calls go around it, through the
// same layers of ours. Whatever is out of the ordinary goes through the SDK.

// callDirectly starts a plain call and says whether it is one. The session waits
// for the goroutine that answers it.
func (c *stdioConn) callDirectly(ctx context.Context, r *jsonrpc.Request) bool {
	sdk := c.session.sdkSession()
	if sdk == nil || !c.session.isReady() || c.inBatch(r.ID) {
		return false
	}
	p := wire.PlainCall(r, c.pinned)
	if p == nil {
		return false
	}
	ctx, end, ok := c.session.beginDirect(ctx, r.ID)
	if !ok {
		return false
	}
	go func() {
		defer end()
		res, err := c.handle(ctx, methodCallTool, &mcp.CallToolRequest{Session: sdk, Params: p})
		response := &jsonrpc.Response{ID: r.ID, Error: err}
		// An error of writing means that the client is gone, which ends reading.
		if data, ok := wire.Frame(r.ID, res); ok && err == nil {
			_ = c.send(response, data, false)
			return
		}
		if err == nil {
			response.Error = fault.NoResult()
		}
		_ = c.Write(ctx, response)
	}()
	return true
}

// inBatch says whether a call came in a batch.
func (c *stdioConn) inBatch(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id] == nil || c.calls[id].batch != nil
}

// callDirectly answers a plain call, and says whether it is one. Its stream is
// written and kept as the SDK does it.
func (x *exchange) callDirectly(p wire.Payload) bool {
	h, header := x.handler, x.request.Header
	if p.Batch || len(p.Msgs) != 1 || h.events == nil {
		return false
	}
	r, ok := p.Msgs[0].(*jsonrpc.Request)
	session := header.Get(headerSession)
	ss := h.session(session)
	if !ok || ss == nil || ss.sdkSession() == nil || !ss.isReady() || !plainHeader(header, ss.revisionInUse()) {
		return false
	}
	params := wire.PlainCall(r, h.pinned)
	// Progress goes into the stream of its request, by way of the SDK.
	if params == nil || params.Meta["progressToken"] != nil || !ss.mayBypass(h.opts.SessionIdle/idleShare) {
		return false
	}
	ctx, end, ok := ss.beginDirect(withSession(context.WithoutCancel(x.request.Context()), ss), r.ID)
	if !ok {
		return false
	}
	defer end()
	name := rand.Text()
	_ = h.events.Open(ctx, session, name) // returns nil
	for name, value := range streamHeader {
		x.filter.Header().Set(name, value)
	}
	x.filter.keepAlive(keepAlive)
	res, err := h.server.handle(ctx, methodCallTool, &mcp.CallToolRequest{Session: ss.sdkSession(), Params: params,
		Extra: &mcp.RequestExtra{Header: header}})
	data, ok := wire.Frame(r.ID, res)
	if x.filter.plain = ok && err == nil; !x.filter.plain {
		data = wire.Refusal(r.ID, asWireError(err))
	}
	_ = h.events.Append(ctx, session, name, data) // the session was closed; so is the client
	event := slices.Concat([]byte("event: message\nid: "+name+"_0\ndata: "), data, []byte("\n\n"))
	_, _ = x.filter.Write(event) // the client is gone
	x.filter.finish()
	return true
}

// taken answers a body with a call whose id a plain call of the session has that is
// running, as the SDK does for those that it knows.
func (x *exchange) taken(p wire.Payload) bool {
	ss := x.handler.session(x.request.Header.Get(headerSession))
	for _, m := range p.Msgs {
		if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && ss.runsDirectly(r.ID) {
			reply(x.filter, http.StatusBadRequest, r.ID, fault.New(fault.CodeInvalidRequest, fmt.Sprintf("duplicate in-flight request ID %v", r.ID.Raw()), nil))
			return true
		}
	}
	return false
}

// idleShare is the part of a session's idle time, as in 1/64, that plain calls may
// go around the SDK before it sees one again: it ends sessions of which it hears
// nothing.
const idleShare = 64

// streamHeader is the header of a stream, as the SDK writes it.
var streamHeader = map[string]string{"Cache-Control": "no-cache, no-transform", "Content-Type": "text/event-stream", "Connection": "keep-alive"}

// primedRevision and later ones begin each stream with an event of its own.
const primedRevision = "2025-11-25"

// plainHeader says whether the header of a request holds nothing that the SDK
// would look at twice.
func plainHeader(h http.Header, inUse string) bool {
	revision := h.Get(headerRevision)
	asJSON, asStream := stream.Accepts(h.Values("Accept"))
	return (revision == "" || revision == inUse && revision < primedRevision) && h.Get(headerResume) == "" &&
		(asJSON && asStream || h.Get("Accept") == "")
}

// asWireError returns an error of our layers, which all have this form.
func asWireError(err error) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	return fault.NoResult()
}

// notHandled is below our layers where the SDK is not. Nothing gets there.
func notHandled(_ context.Context, method string, _ mcp.Request) (mcp.Result, error) {
	return nil, errUnknownMethod(method)
}
