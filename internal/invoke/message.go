package invoke

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A bufferPool lends buffers for bodies. The zero value is ready to use.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) get() *bytes.Buffer {
	if b, ok := p.pool.Get().(*bytes.Buffer); ok {
		return b
	}
	return &bytes.Buffer{}
}

// put takes a buffer back. Nothing may refer to what it held.
func (p *bufferPool) put(b *bytes.Buffer) {
	if b.Cap() > keepBuffer {
		return
	}
	b.Reset()
	p.pool.Put(b)
}

// checkType refuses bodies that are not said to be JSON. It is more than a
// formality: a web page may send text/plain to us without being asked first,
// but not application/json.
func checkType(header http.Header) *failure {
	refuse := func(detail string) *failure {
		return &failure{status: http.StatusUnsupportedMediaType, text: "unsupported content type", detail: detail}
	}
	if e := header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse("send the body without Content-Encoding")
	}
	types := header["Content-Type"]
	if len(types) == 1 && types[0] == "application/json" {
		return nil
	}
	if len(types) != 1 {
		return refuse("send one header Content-Type: application/json")
	}
	kind, params, err := mime.ParseMediaType(types[0])
	if err != nil || kind != "application/json" {
		return refuse("send the header Content-Type: application/json")
	}
	if c, ok := params["charset"]; ok && !strings.EqualFold(c, "utf-8") {
		return refuse("JSON is UTF-8: send charset=utf-8, or no charset")
	}
	return nil
}

// readBody reads the body into buf, within the time that the http.Server gives.
func readBody(r *http.Request, buf *bytes.Buffer) *failure {
	tooLarge := &failure{status: http.StatusRequestEntityTooLarge, text: "request too large",
		detail: "the body must be at most " + strconv.Itoa(maxBody) + " bytes"}
	if r.ContentLength > maxBody {
		return tooLarge
	}
	n, err := buf.ReadFrom(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		f := malformed("incomplete request", "the body ended before its announced length, or its chunks are wrong")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			f.detail = "the body did not arrive in time"
		}
		f.ended = true
		return f
	}
	if n > maxBody {
		return tooLarge
	}
	return nil
}

// The parts of a success around its result.
const (
	successHead = `{"status":"success","result":`
	successTail = "}\n"
)

// send answers a request, with one write unless the result is long. The result
// is sent as the server wrote it.
func (h *handler) send(w http.ResponseWriter, r *http.Request, x *exchange) {
	status, body := http.StatusOK, x.body
	header := w.Header()
	if f := x.failure; f != nil {
		status, body = f.status, f.json()
		if f.header != "" {
			header.Set(f.header, f.value)
		}
		if !f.ended {
			drain(w, r)
		}
	}
	result := x.result
	if x.failure != nil {
		result = nil
	}
	length := len(body)
	if result != nil {
		length = len(successHead) + len(result) + len(successTail)
	}
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	// Errors of writing mean that the client is gone.
	switch {
	case result == nil:
		_, _ = w.Write(body)
	case length > keepBuffer:
		_, _ = io.WriteString(w, successHead)
		_, _ = w.Write(result)
		_, _ = io.WriteString(w, successTail)
	default:
		buf := h.buffers.get()
		defer h.buffers.put(buf)
		buf.Grow(length)
		buf.WriteString(successHead)
		buf.Write(result)
		buf.WriteString(successTail)
		_, _ = w.Write(buf.Bytes())
	}
}

// How much is read of a body that was refused, in bytes, and for how long.
const (
	maxRefused = 8 << 20
	drainTime  = 5 * time.Second
)

// drain reads what is left of a body that was refused. Many clients look for an
// answer only when they have sent all of it; to them a connection that is closed
// before is broken, and the status is lost. The deadline stays: it ends what
// net/http reads of the body itself, which sets another for the next request.
func drain(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.Header.Get("Expect") != "" { // the latter waits for the answer
		return
	}
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, maxRefused) // the answer follows in any case
	}
}
