package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"knowhow/internal/compact"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The methods that are prepared for the SDK.
const (
	MethodCallTool     = "tools/call"
	MethodReadResource = "resources/read"
)

// The members of params._meta that carry what the SDK shows to nobody: the cursor
// of a read, which it drops, and the id of a request.
const (
	MetaCursor  = "cursor"
	MetaRequest = "knowhow/requestId"
)

// Undeclared returns the methods of capabilities that no server of ours declares.
func Undeclared() []string {
	return []string{"prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
}

// Adapt prepares a message for the SDK, which is a matter of requests.
//
// Params that are missing become empty ones, so that what they lack is reported
// by name. The cursor of resources/read goes where the SDK keeps it, and so does
// the id of a request that may be cancelled after its answer. And where one
// revision is pinned, the revision that a 2026-07-28 client puts into each
// request is hidden: the SDK would answer it with -32022, upon which a client
// must not fall back to initialize.
func Adapt(m jsonrpc.Message, pinned bool) {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return
	}
	if len(r.Params) == 0 || bytes.Equal(r.Params, []byte("null")) {
		if r.Method == MethodCallTool || r.Method == MethodReadResource || slices.Contains(Undeclared(), r.Method) {
			r.Params = json.RawMessage("{}")
		}
		return
	}
	cursor := r.Method == MethodReadResource && bytes.Contains(r.Params, []byte(`"cursor"`))
	revision := pinned && NamesRevision(r.Params)
	id, err := compact.Marshal(r.ID.Raw())
	lasting := err == nil && r.IsCall() && (r.Method == MethodCallTool || r.Method == MethodReadResource)
	if !cursor && !revision && !lasting {
		return
	}
	var params, meta map[string]json.RawMessage
	if json.Unmarshal(r.Params, &params) != nil || params["_meta"] != nil && json.Unmarshal(params["_meta"], &meta) != nil {
		return // the SDK says what is wrong with it
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	if revision {
		delete(meta, mcp.MetaKeyProtocolVersion)
	}
	if cursor && params["cursor"] != nil {
		meta[MetaCursor] = params["cursor"]
	}
	if lasting {
		meta[MetaRequest] = id
	}
	if params["_meta"], err = compact.Marshal(meta); err != nil {
		return
	}
	if p, err := compact.Marshal(params); err == nil {
		r.Params = p
	}
}

// maxNesting bounds the brackets in the params of a plain call. The SDK has a
// bound of its own for what is deeper.
const maxNesting = 100

// PlainCall returns the SDK's form of a tools/call with nothing out of the
// ordinary in it, nil for all else.
func PlainCall(r *jsonrpc.Request, pinned bool) *mcp.CallToolParamsRaw {
	if r.Method != MethodCallTool || !r.IsCall() || !pinned && NamesRevision(r.Params) ||
		bytes.Count(r.Params, []byte("{"))+bytes.Count(r.Params, []byte("[")) > maxNesting {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(r.Params, &members) != nil {
		return nil
	}
	p := &mcp.CallToolParamsRaw{Arguments: members["arguments"]}
	for name, raw := range members {
		switch {
		case name == "arguments":
		case name == "name" && raw[0] == '"':
			if json.Unmarshal(raw, &p.Name) != nil {
				return nil
			}
		case name == "_meta" && raw[0] == '{':
			if json.Unmarshal(raw, &p.Meta) != nil {
				return nil
			}
		default:
			return nil
		}
	}
	if members["name"] == nil {
		return nil
	}
	if p.Meta == nil {
		p.Meta = mcp.Meta{}
	}
	delete(p.Meta, mcp.MetaKeyProtocolVersion) // see Adapt
	p.Meta[MetaRequest] = r.ID.Raw()
	if n, ok := r.ID.Raw().(int64); ok {
		p.Meta[MetaRequest] = float64(n)
	}
	return p
}
