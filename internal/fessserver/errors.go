package fessserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// A refusal is an error of kind Invalid with a sentence for the caller.
type refusal struct{ msg string }

// Error returns the sentence.
func (e *refusal) Error() string { return e.msg }

// Unwrap returns errkind.Invalid.
func (e *refusal) Unwrap() error { return errkind.Invalid }

// status returns the HTTP status of an error. As in Fess, it is 500 for every
// failure that was not caused by the caller, but 503 if trying again may help,
// so that clients do.
func status(err error) int {
	switch {
	case errors.Is(err, errkind.Invalid), errors.Is(err, errkind.Unsupported):
		return http.StatusBadRequest
	case errors.Is(err, errkind.NotFound):
		return http.StatusNotFound
	case errors.Is(err, errkind.TooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errkind.Busy):
		return http.StatusTooManyRequests
	case errors.Is(err, errkind.Unavailable), errors.Is(err, errkind.Timeout):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// sentenceOf returns the message for the caller about an error of status 4xx.
func sentenceOf(err error) string {
	if r, ok := errors.AsType[*errkind.Remote](err); ok {
		return r.Message
	}
	return err.Error()
}

// cut shortens a value for a message.
func cut(s string) string { return sanitize.Short(s, 80, 320) }

// logFailure logs an error under the code in the response. Mistakes of callers
// and cancelled calls are logged at level debug only.
func (c *call) logFailure(err error, code string) {
	level := slog.LevelError
	if status(err) < 500 || errors.Is(err, context.Canceled) {
		level = slog.LevelDebug
	}
	c.log.Log(c.r.Context(), level, "a request of the Fess API failed", "path", c.path, "code", code, "error", err)
}

// randomHex returns n random bytes in hexadecimal digits.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// writeHTML answers with an HTML page that contains a message.
func writeHTML(w http.ResponseWriter, status int, msg string) {
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w,
		"<!doctype html><html lang=\"en\"><head><title>HTTP Status %d</title></head><body><p>%s</p></body></html>\n",
		status, html.EscapeString(msg)) // an error means that the client is gone
}
