package mcpclient

import (
	"encoding/json"
	"fmt"
)

// A Catalog describes a server and its tools.
type Catalog struct {
	Server       string // the id in the settings
	Instructions string // the server's instructions for its use
	TaskCalls    bool   // tools may be called as tasks (capability tasks.requests.tools.call)
	Tools        []Tool // sorted by name; all pages
}

// A Tool is one entry of a server's tools/list. All of it is foreign text.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`  // as the server wrote it; nil if there is none
	OutputSchema json.RawMessage `json:"outputSchema"` // nil if there is none
	Annotations  json.RawMessage `json:"annotations"`  // nil if there is none
	TaskSupport  string          `json:"-"`            // "", "forbidden", "optional" or "required"
}

// A RemoteError is the JSON-RPC error in a server's response. Like a
// [ServerError] it contains no secrets of the settings: *** replaces them.
type RemoteError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"` // the server's message, at most 32 KiB
	Data    json.RawMessage `json:"data"`    // nil if there is none or if it has more than 64 KiB
}

// Error returns the code and the message, which is quoted and shortened,
// because it is foreign.
func (e *RemoteError) Error() string {
	message := []rune(e.Message)
	if len(message) > 500 {
		message = append(message[:500], '…')
	}
	return fmt.Sprintf("the server answered with error %d: %q", e.Code, string(message))
}
