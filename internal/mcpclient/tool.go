package mcpclient

import (
	"encoding/json"
	"fmt"
)

// A Catalog is what a server says of itself and offers.
type Catalog struct {
	Server       string // the id in the settings
	Instructions string // how to use the server, in its own words
	TaskCalls    bool   // tools may be called as tasks (capability tasks.requests.tools.call)
	Tools        []Tool // sorted by name; all pages
}

// A Tool is one entry of a server's tools/list. All of it is foreign text.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`  // as the server wrote it, its members in their order; nil where it gave none
	OutputSchema json.RawMessage `json:"outputSchema"` // nil where it gave none
	Annotations  json.RawMessage `json:"annotations"`  // nil where it gave none
	TaskSupport  string          `json:"-"`            // execution.taskSupport: "", "forbidden", "optional" or "required"
}

// A RemoteError is the JSON-RPC error by which a server answered a request. Like
// a [ServerError] it shows no secrets of the settings: *** stands for them.
type RemoteError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"` // in the server's words, at most 32 KiB
	Data    json.RawMessage `json:"data"`    // nil where it gave none, and where it has more than 64 KiB
}

// Error says the code and the message, quoted and cut, because they come from outside.
func (e *RemoteError) Error() string {
	message := []rune(e.Message)
	if len(message) > 500 {
		message = append(message[:500], '…')
	}
	return fmt.Sprintf("the server answered with error %d: %q", e.Code, string(message))
}
