package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A filter stands between the SDK and an HTTP response. It drops the answers to
// cancelled requests, gives the SDK's errors the form of ours, turns its plain
// text refusals into JSON-RPC errors, and keeps idle streams alive.
type filter struct {
	http.ResponseWriter
	header http.Header       // the SDK's; copied when it is sent, so that comment never reads it
	id     jsonrpc.ID        // of the request, for refusals
	stream bool              // a stream is what the answer will be, unless it is a refusal
	ready  []json.RawMessage // answers to elements of a batch, to be sent with the SDK's

	plain bool // what is written is a result, which needs no change

	// resumed says that the request resumes a stream. If nothing more comes on
	// it, because its last answer was dropped, the client must be told so: by
	// 204, else it would resume it for ever.
	resumed bool

	mu      sync.Mutex // guards what follows and the writer
	started bool       // the header has been sent
	events  bool       // and it said that a stream follows
	status  int        // of a plain text refusal, whose body is collected; else 0
	text    bytes.Buffer
	silent  bool // the answer was dropped, nothing may follow
	ended   bool // the request is done
	timer   *time.Timer
}

func newFilter(w http.ResponseWriter) *filter {
	return &filter{ResponseWriter: w, header: http.Header{}}
}

// Unwrap gives [http.ResponseController] the writer below.
func (f *filter) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// Header implements [http.ResponseWriter].
func (f *filter) Header() http.Header { return f.header }

// answered says whether a status has been sent.
func (f *filter) answered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

func (f *filter) streaming() bool {
	return strings.HasPrefix(f.header.Get("Content-Type"), "text/event-stream")
}

// send sends the header, once.
func (f *filter) send(status int) {
	if f.started {
		return
	}
	f.started, f.events = true, f.streaming()
	maps.Copy(f.ResponseWriter.Header(), f.header)
	f.ResponseWriter.WriteHeader(status)
	f.sendReady()
}

// sendReady sends the ready answers as the first events of a stream.
func (f *filter) sendReady() {
	if f.events {
		for _, a := range f.ready {
			_, _ = fmt.Fprintf(f.ResponseWriter, "event: message\ndata: %s\n\n", a) // an error means that the client is gone
		}
		f.ready = nil
	}
}

// tell writes answers into a stream that has begun.
func (f *filter) tell(answers []json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ready = answers
		f.sendReady()
		_ = http.NewResponseController(f.ResponseWriter).Flush() // best effort
	}
}

// WriteHeader implements [http.ResponseWriter].
func (f *filter) WriteHeader(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if status >= 400 && strings.HasPrefix(f.header.Get("Content-Type"), "text/plain") {
		f.status = status
		return
	}
	switch {
	case status >= 400:
		f.ready = nil // the whole is refused
	case len(f.ready) > 0 && !f.streaming(): // the SDK has nothing to say
		f.sendBatch(nil)
		return
	}
	f.send(status)
}

// sendBatch sends the ready answers and the SDK's as one array.
func (f *filter) sendBatch(answers []byte) {
	all, more := f.ready, []json.RawMessage(nil)
	if json.Unmarshal(answers, &more) == nil {
		all = append(all, more...)
	}
	f.ready = nil
	f.header.Set("Content-Type", "application/json")
	f.send(http.StatusOK)
	_, _ = f.ResponseWriter.Write(wire.Batch(all)) // an error means that the client is gone
}

// Flush implements [http.Flusher].
func (f *filter) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status == 0 && !f.silent && (f.started || !f.resumed) {
		f.send(http.StatusOK)
		_ = http.NewResponseController(f.ResponseWriter).Flush() // best effort, as in the SDK
	}
}

// suspects are what the messages that must be changed contain. All others pass
// without being parsed.
var suspects = [][]byte{
	[]byte(`"error":{"code":-31999`), []byte(`"error":{"code":0,`), []byte(wire.SDKTypeName), []byte(wire.SDKUninitialized),
}

// Write implements [http.ResponseWriter]. The SDK writes one event at a time.
func (f *filter) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status != 0 {
		return f.text.Write(b)
	}
	// The SDK names the event that begins a stream "prime". Some clients complain
	// about names that are not "message"; without a name it is one of those.
	out := bytes.TrimPrefix(b, []byte("event: prime\n"))
	if !f.plain && slices.ContainsFunc(suspects, func(s []byte) bool { return bytes.Contains(b, s) }) {
		out = f.rewrite(out)
	}
	if len(f.ready) > 0 && !f.streaming() {
		f.sendBatch(out)
		return len(b), nil
	}
	if len(out) == 0 {
		if !f.started && !f.streaming() {
			f.header.Del("Content-Type")
			f.send(http.StatusAccepted)
			f.silent = true
		}
		return len(b), nil
	}
	f.send(http.StatusOK)
	if _, err := f.ResponseWriter.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// rewrite returns what to send in the place of an event or of a JSON body,
// nothing if it must not be sent.
func (f *filter) rewrite(b []byte) []byte {
	if !f.streaming() {
		return wire.MendBody(b)
	}
	head, data, ok := bytes.Cut(b, []byte("data: "))
	if !ok {
		return b
	}
	mended := wire.MendMessage(bytes.TrimRight(data, "\n"))
	if mended == nil {
		return nil
	}
	return slices.Concat(head, []byte("data: "), mended, []byte("\n\n"))
}

// finish ends the response when the SDK is done with it. A plain text refusal
// is sent as a JSON-RPC error. It returns the status of a refusal, else 0.
func (f *filter) finish() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	if f.timer != nil {
		f.timer.Stop()
	}
	switch {
	case f.started:
	case f.status != 0:
		f.header.Set("Content-Type", "application/json")
		f.header.Del("X-Content-Type-Options")
		f.header.Del("Content-Length")
		f.send(f.status)
		// An error means that the client is gone.
		_, _ = f.ResponseWriter.Write(wire.Refusal(f.id, fault.New(fault.CodeInvalidRequest, fault.Sentence(f.text.String()), nil)))
	case f.resumed:
		f.header.Del("Content-Type")
		f.send(http.StatusNoContent)
	default:
		f.send(http.StatusOK)
	}
	return f.status
}

// noStream says that the answer will not be a stream.
func (f *filter) noStream() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stream = false
}

// keepAlive writes a comment on the stream every so often until finish, so
// that nothing between us and the client takes it for dead.
func (f *filter) keepAlive(every time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = time.AfterFunc(every, func() { f.comment(every) })
}

func (f *filter) comment(every time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.status != 0 || f.silent || f.started && !f.events || !f.started && !f.stream {
		return
	}
	if !f.started { // the SDK sends nothing before the first event
		f.started, f.events = true, true
		f.ResponseWriter.Header().Set("Content-Type", "text/event-stream")
		f.ResponseWriter.Header().Set("Cache-Control", "no-cache, no-transform")
		f.ResponseWriter.WriteHeader(http.StatusOK)
		f.sendReady()
	}
	// An error means that the client is gone, which ends the request elsewhere.
	_, _ = f.ResponseWriter.Write([]byte(": keep-alive\n\n"))
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	f.timer.Reset(every)
}
