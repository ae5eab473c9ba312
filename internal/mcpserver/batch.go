package mcpserver

import (
	"net/http"
	"slices"

	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// sift keeps from the SDK the elements of a batch for which it would refuse the
// whole. What is said to them goes out with the answers to the others. If there
// are no others, the request has been answered, and sift says no.
func (x *exchange) sift(p *wire.Payload) bool {
	if x.batchless() {
		refuse(x.filter, http.StatusBadRequest, "the negotiated revision has no batches")
		return false
	}
	unknown, seen := false, map[jsonrpc.ID]bool{}
	p.Msgs = slices.DeleteFunc(p.Msgs, func(m jsonrpc.Message) bool {
		r, ok := m.(*jsonrpc.Request)
		if !ok {
			return false
		}
		e := elementError(r)
		switch {
		case !r.IsCall():
			return e != nil
		case e == nil && seen[r.ID]:
			p.Bad = append(p.Bad, wire.DuplicateID(r.ID))
			return true
		case e == nil:
			seen[r.ID] = true
			return false
		}
		unknown = unknown || e.Code == fault.CodeMethodNotFound
		p.Bad = append(p.Bad, wire.Refusal(r.ID, e))
		return true
	})
	switch {
	case x.old(): // answers go to the stream that started the session
		if ss := x.oldSession(); ss != nil {
			ss.old.Response.(*filter).tell(p.Bad)
		}
		return true
	case len(p.Msgs) > 0:
		x.filter.ready = p.Bad
		return true
	case len(p.Bad) == 0:
		x.filter.WriteHeader(http.StatusAccepted)
	case unknown: // as for an unknown method that comes alone
		writeJSON(x.filter, http.StatusOK, wire.Batch(p.Bad))
	default:
		writeJSON(x.filter, http.StatusBadRequest, wire.Batch(p.Bad))
	}
	return false
}

// batchless says whether the revision of the request has no batches. Not every
// client says it in the header.
func (x *exchange) batchless() bool {
	revision := x.request.Header.Get(headerRevision)
	ss := x.handler.session(x.request.Header.Get(headerSession))
	if x.old() {
		ss = x.oldSession()
	}
	if ss != nil {
		revision = max(revision, ss.revisionInUse())
	}
	return revision >= unbatchedRevision
}

// elementError says why the SDK would refuse a request, nil if it would not.
func elementError(r *jsonrpc.Request) *jsonrpc.Error {
	notification := slices.Contains(legacyNotifications, r.Method)
	switch {
	case r.Method == methodInitialize:
		return fault.BatchedInitialize()
	case !notification && !slices.Contains(legacyMethods, r.Method):
		return errUnknownMethod(r.Method)
	case notification == r.IsCall(), r.Method == notifyProgress && len(r.Params) == 0:
		return fault.New(fault.CodeInvalidRequest, "invalid request: a notification has no id, and all else has one", nil)
	}
	return nil
}
