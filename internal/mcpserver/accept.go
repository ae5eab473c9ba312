package mcpserver

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"

	"knowhow/internal/mcpserver/stream"
	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// anyAccept lets clients through to next, a handler of the SDK that answers with
// streams, that do not say that they take both JSON and streams. The revisions
// from 2025-03-26 on want them to; many simple clients name JSON alone, and a
// server may answer each request with either. They get JSON, without the
// notifications that would have come before the answer. All others pass as they
// are.
func anyAccept(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asJSON, asStream := stream.Accepts(r.Header.Values("Accept"))
		if r.Method != http.MethodPost || asJSON == asStream {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Set("Accept", "application/json, text/event-stream")
		if asStream { // what next answers with in any case
			next.ServeHTTP(w, r)
			return
		}
		if f, ok := w.(*filter); ok {
			f.noStream()
		}
		j := &joiner{to: w, header: http.Header{}, batch: isBatch(r)}
		next.ServeHTTP(j, r)
		j.finish()
	})
}

// isBatch says whether the body of a request, which is in memory, is a batch.
func isBatch(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false // next finds out as well
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	body = bytes.TrimSpace(body)
	return len(body) > 0 && body[0] == '['
}

// A joiner is a response that makes one JSON body of a stream's answers. What is
// no stream it passes on.
type joiner struct {
	to      http.ResponseWriter
	header  http.Header
	batch   bool
	decided bool
	stream  bool
	answers []json.RawMessage
}

// Header implements [http.ResponseWriter].
func (j *joiner) Header() http.Header { return j.header }

// WriteHeader implements [http.ResponseWriter].
func (j *joiner) WriteHeader(status int) {
	if j.decided {
		return
	}
	j.decided = true
	if j.stream = strings.HasPrefix(j.header.Get("Content-Type"), "text/event-stream"); j.stream {
		return
	}
	maps.Copy(j.to.Header(), j.header)
	j.to.WriteHeader(status)
}

// Write implements [http.ResponseWriter]. The SDK writes one event at a time.
func (j *joiner) Write(b []byte) (int, error) {
	j.WriteHeader(http.StatusOK)
	if !j.stream {
		return j.to.Write(b)
	}
	for line := range bytes.Lines(b) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		data = bytes.TrimSpace(data)
		if m, err := wire.Decode(data); err == nil {
			if _, ok := m.(*jsonrpc.Response); ok {
				j.answers = append(j.answers, bytes.Clone(data))
			}
		}
	}
	return len(b), nil
}

// Flush implements [http.Flusher]: there is nothing to show before the end.
func (j *joiner) Flush() { j.WriteHeader(http.StatusOK) }

// finish sends the body that the answers make. Without answers, which is what
// becomes of a cancelled request, it leaves the response as it is.
func (j *joiner) finish() {
	if !j.stream {
		return
	}
	maps.Copy(j.to.Header(), j.header)
	h := j.to.Header()
	h.Set("Content-Type", "application/json")
	switch {
	case len(j.answers) == 0:
		h.Del("Content-Type")
		j.to.WriteHeader(http.StatusAccepted)
	case j.batch:
		_, _ = j.to.Write(wire.Batch(j.answers)) // an error means that the client is gone
	default:
		_, _ = j.to.Write(j.answers[0]) // likewise
	}
}
