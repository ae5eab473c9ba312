package fesstest

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests = append(h.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone()})
	h.mu.Unlock()
	if h.o.Delay != nil {
		h.o.Delay(r)
	}
	below, ok := strings.CutPrefix(r.URL.Path, h.o.ContextPath)
	switch {
	case !ok || below != "" && below[0] != '/':
		writeHTML(w, http.StatusNotFound) // by Tomcat
		return
	case below == "":
		redirect(w, h.o.ContextPath+"/")
		return
	case strings.ContainsAny(r.URL.RawQuery, "[]{}|"), len(r.RequestURI) > 8<<10:
		writeHTML(w, http.StatusBadRequest) // also by Tomcat
		return
	case r.Method == http.MethodOptions && r.Header.Get("Origin") != "":
		w.WriteHeader(http.StatusAccepted)
		return
	}
	below = path.Clean(below)
	api, isV1 := wire.Below(below, "/api/v1")
	apiV2, isV2 := wire.Below(below, "/api/v2")
	switch {
	case isV1 && h.o.API != "v2":
		h.serveV1(w, r, api)
	case isV2 && (h.o.API == "v2" || h.o.API == "both"):
		h.serveV2(w, r, apiV2)
	case below == "/":
		writeHTML(w, http.StatusOK)
	case below == "/cache":
		h.cachePage(w, r)
	default:
		w.Header().Set("Content-Type", htmlType)
		redirect(w, h.o.ContextPath+"/error/notfound/?url="+url.QueryEscape(r.URL.Path))
	}
}

// serveV1 serves the paths below /api/v1.
func (h *Handler) serveV1(w http.ResponseWriter, r *http.Request, api string) {
	values := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		writeV1(w, http.StatusMethodNotAllowed, wire.Message{Message: r.Method + " is not allowed."})
		return
	case api == "/health":
		h.health(w)
		return
	}
	caller, ok := h.authorize(w, r)
	if !ok {
		return
	}
	switch {
	case api == "/documents/all":
		writeV1(w, http.StatusBadRequest, wire.Message{Message: "Scroll Search is not available."})
	case api == "", api == "/documents", strings.HasPrefix(api, "/documents/"):
		h.documents(w, values, caller)
	case api == "/labels":
		list := h.labels(r, caller)
		writeV1(w, http.StatusOK, wire.Labels{RecordCount: wire.Number(len(list)), Data: list})
	case api == "/popular-words":
		found := h.popular(values, caller)
		writeV1(w, http.StatusOK, wire.PopularWords{RecordCount: wire.Number(len(found)), Data: found})
	case api == "/suggest-words":
		h.suggestWords(w, values, caller)
	default:
		writeV1(w, http.StatusNotFound, wire.Message{Message: "Not found."})
	}
}

// health serves the state of the engine. For a red engine, the status is 503
// with the same body.
func (h *Handler) health(w http.ResponseWriter) {
	state, status := h.engineState(), http.StatusOK
	switch state {
	case "down":
		h.fail(w, http.StatusInternalServerError)
		return
	case "red":
		status = http.StatusServiceUnavailable
	}
	writeV1(w, status, wire.Health{Data: &wire.Engine{Status: wire.Text(state), TimedOut: false}})
}

// errorCode is the code of all errors. A real server's codes are random.
const errorCode = "33dd765d-1469-4ce2-9db1-deb4be61b700"

// fail writes an error with a code.
func (h *Handler) fail(w http.ResponseWriter, status int) {
	key, value := wire.CodeKey, errorCode
	if h.o.OmitColon {
		key = "error_code"
	}
	if h.o.StackTraces {
		key, value = "message",
			"Something failed. [ org.codelibs.fess.exception.FessSystemException: Something failed.\n\tat org.codelibs.fess ]"
	}
	writeV1(w, status, map[string]string{key: value})
}

// writeV1 writes an answer of API v1.
func writeV1(w http.ResponseWriter, status int, v any) {
	data, err := wire.Encode(v)
	writeJSON(w, status, data, err)
}

func writeJSON(w http.ResponseWriter, status int, data []byte, err error) {
	if err != nil { // cannot happen with plain data
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", wire.JSONType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(data) // an error means that the client has gone
}

// htmlType is the content type of Fess's pages.
const htmlType = "text/html;charset=UTF-8"

// redirect redirects as Fess does: to a path without a host, and without a
// page.
func redirect(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	if w.Header().Get("Content-Type") == "" {
		w.Header()["Content-Type"] = nil // keeps net/http from guessing one
	}
	w.WriteHeader(http.StatusFound)
}

func writeHTML(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", htmlType)
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><html><head><title>HTTP Status %d</title></head><body></body></html>", status)
}
