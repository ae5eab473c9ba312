package invoke

import (
	"errors"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// checkType refuses bodies that are not declared to be JSON. This also protects
// against web pages: a page may send text/plain without a preflight request,
// but not application/json.
func checkType(header http.Header) *failure {
	refuse := func(detail string) *failure {
		return &failure{status: http.StatusUnsupportedMediaType, text: "unsupported content type", detail: detail}
	}
	if e := header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse("send the body without Content-Encoding")
	}
	types := header["Content-Type"]
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

// readBody reads the body, within the time limit of the server.
func readBody(r *http.Request) ([]byte, *failure) {
	body, err := httpguard.ReadBody(r, maxBody)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &failure{status: http.StatusRequestEntityTooLarge, text: "request too large",
			detail: "the body must be at most " + strconv.Itoa(maxBody) + " bytes"}
	}
	if errors.Is(err, httpguard.ErrBodies) {
		return nil, busy(errkind.Message(err))
	}
	if err != nil {
		f := malformed("incomplete request", "the body ended before its announced length, or its chunks are wrong")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			f.detail = "the body did not arrive in time"
		}
		f.ended = true
		return nil, f
	}
	return body, nil
}

// send sends the response.
func (x *exchange) send(w http.ResponseWriter, r *http.Request) {
	if x.failure != nil {
		x.failure.send(w, r)
		return
	}
	length := 0
	for _, part := range x.body {
		length += len(part)
	}
	sendHeader(w, http.StatusOK, length)
	if r.Method != http.MethodHead {
		for _, part := range x.body {
			_, _ = w.Write(part) // an error means that the client is gone
		}
	}
}

// send sends the failure.
func (f *failure) send(w http.ResponseWriter, r *http.Request) {
	if f.header != "" {
		w.Header().Set(f.header, f.value)
	}
	if !f.ended {
		httpguard.Drain(w, r, 2*maxBody)
	}
	body := f.json()
	sendHeader(w, f.status, len(body))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client is gone
	}
}

func sendHeader(w http.ResponseWriter, status, length int) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
}

// Refuse answers a request that was refused before it reached the handler, in
// the form of the handler's failures. It is an [httpguard.RefuseFunc].
func Refuse(w http.ResponseWriter, r *http.Request, refusal httpguard.Refusal) {
	f := &failure{status: refusal.Status, text: strings.ToLower(http.StatusText(refusal.Status)),
		detail: refusal.Message, ended: true}
	switch refusal.Reason {
	case httpguard.NoToken:
		f.text, f.detail = "unauthorized",
			"this bridge requires a token, and the request has none or a wrong one: send Authorization: Bearer TOKEN"
	case httpguard.ForeignHost:
		f.text, f.detail = "host not allowed", "the bridge serves this machine only: use 127.0.0.1 or localhost"
	case httpguard.ForeignOrigin:
		f.text, f.detail = "origin not allowed", "the bridge accepts no requests from web pages: send it from a program"
	}
	f.send(w, r)
}
