package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// serveData serves what the page asks for.
func (c *console) serveData(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, dataPath) {
	case "/status":
		c.serveStatus(w, r)
	case "/left-out":
		c.serveLeftOut(w, r)
	case "/file":
		c.serveFile(w, r)
	case "/pages":
		c.servePages(w, r)
	case "/similar":
		c.serveSimilar(w, r)
	case "/connect":
		c.serveConnect(w, r)
	default:
		c.o.Refuse(w, r, httpguard.Refusal{Reason: httpguard.NotFound, Status: http.StatusNotFound,
			Message: "the console has nothing at this path"})
	}
}

// send sends a value as JSON, or the refusal for an error.
func (c *console) send(w http.ResponseWriter, r *http.Request, value any, err error) {
	if err != nil {
		c.fail(w, r, err)
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	secure(w.Header())
	_, _ = w.Write(append(body, '\n')) // an error means that the client is gone
}

// fail refuses a request because of an error. What is not the fault of the caller is
// logged and not sent.
func (c *console) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := httpguard.Refusal{Status: http.StatusInternalServerError,
		Message: "the index cannot be read, see the log of knowhow"}
	switch {
	case r.Context().Err() != nil: // nobody reads the answer, or the rights of the caller were reduced
		f.Status, f.Message = http.StatusServiceUnavailable, "the request has ended"
	case errors.Is(err, errkind.NotFound):
		f.Reason, f.Status, f.Message = httpguard.NotFound, http.StatusNotFound, errkind.Message(err)
	case errors.Is(err, errkind.Invalid):
		f.Status, f.Message = http.StatusBadRequest, errkind.Message(err)
	case errors.Is(err, errkind.Unavailable), errors.Is(err, errkind.Timeout):
		c.o.Log.Error("answering the console", "path", r.URL.Path, "error", err)
		f.Status = http.StatusServiceUnavailable
		f.Message = "the store of the documents does not answer, try again later or see the log of knowhow"
	default:
		c.o.Log.Error("answering the console", "path", r.URL.Path, "error", err)
	}
	c.o.Refuse(w, r, f)
}
