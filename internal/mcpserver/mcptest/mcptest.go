// Package mcptest is a client for tests of MCP servers that sends and receives
// raw JSON-RPC. It sends what the test specifies, returns what it received, and
// fails the test on anything that is not JSON-RPC. It is used by the tests of
// mcpserver and of the servers built on it.
package mcptest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
)

// maxWait is the maximum time of any wait for a message. In a synctest bubble, it
// is virtual time.
const maxWait = 20 * time.Second

// A Message is a message from a server.
type Message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
	Raw     string          `json:"-"` // as received
}

// An Error is the error of a response.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message with its code and data.
func (e *Error) Error() string {
	return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data)
}

// Field returns a member of the error's data as JSON, but a string without its
// quotes. It returns "" if there is no such member.
func (e *Error) Field(name string) string {
	var data map[string]json.RawMessage
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	var s string
	if json.Unmarshal(data[name], &s) == nil {
		return s
	}
	return string(data[name])
}

// Decode decodes the result into v. It fails the test if it cannot, or if the
// message is an error.
func (m Message) Decode(t testing.TB, v any) {
	t.Helper()
	if m.Error != nil {
		t.Fatalf("got the error %v, want a result", m.Error)
	}
	if err := json.Unmarshal(m.Result, v); err != nil {
		t.Fatalf("decoding the result %s: %v", m.Result, err)
	}
}

// A Session is a client of a server. Its methods fail the test if the server
// violates the protocol or does not respond.
type Session struct {
	t    testing.TB
	send func(line string)
	end  func() error
	http *httpClient // nil on stdio

	mu            sync.Mutex // guards the fields below
	lastID        int
	early         map[string]Message // responses that no call has waited for yet
	notifications []Message
	inbox         chan Message // responses, in the order of arrival
}

func newSession(t testing.TB) *Session {
	return &Session{t: t, early: map[string]Message{}, inbox: make(chan Message, 4096)}
}

// receive handles a message, or an array of messages, from the server.
func (s *Session) receive(raw string) {
	var batch []json.RawMessage
	if json.Unmarshal([]byte(raw), &batch) == nil {
		s.deliver(Message{JSONRPC: "2.0", Raw: raw})
		return
	}
	var m Message
	if err := json.Unmarshal([]byte(raw), &m); err != nil || m.JSONRPC != "2.0" {
		s.t.Errorf("the server sent %q, want JSON-RPC", raw)
		return
	}
	m.Raw = raw
	s.deliver(m)
}

func (s *Session) deliver(m Message) {
	if m.Method == "" {
		s.inbox <- m
		return
	}
	s.mu.Lock()
	s.notifications = append(s.notifications, m)
	s.mu.Unlock()
}

// Send sends a line unchanged; it need not be JSON.
func (s *Session) Send(line string) { s.send(line) }

// Next returns the next response that arrives, whatever its id. A batch is
// returned as a Message in which only Raw is set.
func (s *Session) Next() Message {
	s.t.Helper()
	select {
	case m, ok := <-s.inbox:
		if !ok {
			s.t.Fatal("the server has ended, want a message")
		}
		return m
	case <-time.After(maxWait):
		s.t.Fatal("no message arrived")
	}
	return Message{}
}

// Pending returns how many responses have arrived that the test has not
// received. A test that expects no response should first wait until the server
// is idle, with synctest.Wait or for the response to a later request.
func (s *Session) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inbox) + len(s.early)
}

// Start sends a request and returns its id.
func (s *Session) Start(method string, params any) int {
	s.t.Helper()
	s.mu.Lock()
	s.lastID++
	id := s.lastID
	s.mu.Unlock()
	s.send(s.encode(map[string]any{"jsonrpc": "2.0", "id": id, "method": method}, params))
	return id
}

// Wait returns the response to the request with an id.
func (s *Session) Wait(id int) Message {
	s.t.Helper()
	want := strconv.Itoa(id)
	s.mu.Lock()
	m, ok := s.early[want]
	delete(s.early, want)
	s.mu.Unlock()
	if ok {
		return m
	}
	for {
		m := s.Next()
		if string(m.ID) == want {
			return m
		}
		s.mu.Lock()
		s.early[string(m.ID)] = m
		s.mu.Unlock()
	}
}

// Call sends a request and returns the response to it.
func (s *Session) Call(method string, params any) Message {
	s.t.Helper()
	return s.Wait(s.Start(method, params))
}

// Notify sends a notification.
func (s *Session) Notify(method string, params any) {
	s.t.Helper()
	s.send(s.encode(map[string]any{"jsonrpc": "2.0", "method": method}, params))
}

// Cancel sends notifications/cancelled for a request.
func (s *Session) Cancel(id int) {
	s.t.Helper()
	s.Notify("notifications/cancelled", map[string]any{"requestId": id})
}

func (s *Session) encode(m map[string]any, params any) string {
	s.t.Helper()
	if params != nil {
		m["params"] = params
	}
	b, err := json.Marshal(m)
	if err != nil {
		s.t.Fatalf("encoding a request: %v", err)
	}
	return string(b)
}

// Handshake sends initialize alone and returns the response.
func (s *Session) Handshake(revision string) Message {
	s.t.Helper()
	return s.Call("initialize", map[string]any{"protocolVersion": revision, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "mcptest", "version": "1"}})
}

// Initialize sends initialize and notifications/initialized. It returns the
// response to initialize, which must be a result.
func (s *Session) Initialize(revision string) Message {
	s.t.Helper()
	m := s.Handshake(revision)
	if m.Error != nil {
		s.t.Fatalf("initialize: %v", m.Error)
	}
	var r struct{ ProtocolVersion string }
	if m.Decode(s.t, &r); s.http != nil && r.ProtocolVersion >= "2025-06-18" {
		s.SetHeader("Mcp-Protocol-Version", r.ProtocolVersion)
	}
	s.Notify("notifications/initialized", nil)
	return m
}

// Tool calls a tool and returns the text of its only content block, or the
// error. It fails the test if the result has another form.
func (s *Session) Tool(name string, args any) (string, *Error) {
	s.t.Helper()
	return s.ToolText(s.Call("tools/call", map[string]any{"name": name, "arguments": args}))
}

// ToolText returns the text of a response to tools/call, or the error if the
// call failed. In a result with isError, the error is in _meta.error.
func (s *Session) ToolText(m Message) (string, *Error) {
	s.t.Helper()
	if m.Error != nil {
		return "", m.Error
	}
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
		Meta    struct{ Error *Error } `json:"_meta"`
	}
	m.Decode(s.t, &r)
	if len(r.Content) != 1 || r.Content[0].Type != "text" || r.IsError != (r.Meta.Error != nil) {
		s.t.Fatalf("the tool's result is %s, want one text block, and _meta.error with isError", m.Result)
	}
	if r.IsError {
		return "", r.Meta.Error
	}
	return r.Content[0].Text, nil
}

// Notifications returns the notifications and requests that the server has
// sent so far.
func (s *Session) Notifications() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.notifications...)
}

// Close ends the session. On stdio, it closes the server's input, waits, and
// returns the error of serve. On HTTP, it sends DELETE.
func (s *Session) Close() error { return s.end() }
