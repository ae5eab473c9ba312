package fesstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"knowhow/internal/search"
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
	api, isV1 := cutPath(below, "/api/v1")
	apiV2, isV2 := cutPath(below, "/api/v2")
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

// cutPath returns p without prefix. ok is false unless prefix is a sequence of
// whole elements of p.
func cutPath(p, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(p, prefix)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// serveV1 serves the paths below /api/v1.
func (h *Handler) serveV1(w http.ResponseWriter, r *http.Request, api string) {
	values := r.URL.Query()
	id, isFavorite := strings.CutSuffix(api, "/favorite")
	isFavorite = isFavorite && strings.HasPrefix(api, "/documents/")
	switch {
	case isFavorite != (r.Method == http.MethodPost), !isFavorite && r.Method != http.MethodGet:
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"message": r.Method + " is not allowed."})
		return
	case api == "/health":
		h.health(w)
		return
	case isFavorite || api == "/favorites":
		h.favorite(w, values, strings.TrimPrefix(id, "/documents/"), isFavorite)
		return
	}
	caller, ok := h.authorize(w, r)
	if !ok {
		return
	}
	switch {
	case api == "/documents/all":
		h.scroll(w, values, caller, h.scrollV1)
	case api == "", api == "/documents", strings.HasPrefix(api, "/documents/"):
		h.documents(w, values, caller)
	case api == "/labels":
		writeJSON(w, http.StatusOK, listing(h.labels(r, caller), func(l search.Label) any {
			return map[string]string{"label": l.Name, "value": l.Value}
		}))
	case api == "/popular-words":
		found := h.popular(values, caller)
		writeJSON(w, http.StatusOK, map[string]any{"record_count": len(found), "data": found})
	case api == "/suggest-words":
		h.suggestWords(w, values, caller)
	default:
		writeJSON(w, http.StatusNotFound, map[string]string{"message": "Not found."})
	}
}

// favorite serves the calls for favorites, which fail because API calls have no
// session.
func (h *Handler) favorite(w http.ResponseWriter, values url.Values, id string, set bool) {
	known := slices.ContainsFunc(h.docs, func(d doc) bool { return d.ID == id })
	switch {
	case !h.o.Favorites:
		writeJSON(w, http.StatusBadRequest, map[string]string{"message": "Unsupported operation."})
	case set && !values.Has("queryId"):
		h.fail(w, http.StatusInternalServerError)
	case set && !known:
		h.fail(w, http.StatusNotFound)
	default:
		h.fail(w, http.StatusBadRequest)
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
	writeJSON(w, status, map[string]any{"data": map[string]any{"status": state, "timed_out": false}})
}

// listing returns the answer of a call that lists things. An empty list has no
// data.
func listing[T any](all []T, row func(T) any) map[string]any {
	answer := map[string]any{"record_count": len(all)}
	for _, x := range all {
		rows, _ := answer["data"].([]any)
		answer["data"] = append(rows, row(x))
	}
	return answer
}

// errorCode is the code of all errors. A real server's codes are random.
const errorCode = "33dd765d-1469-4ce2-9db1-deb4be61b700"

// fail writes an error with a code.
func (h *Handler) fail(w http.ResponseWriter, status int) {
	key, value := "error_code:", errorCode
	if h.o.OmitColon {
		key = "error_code"
	}
	if h.o.StackTraces {
		key, value = "message", "Something failed. [ org.codelibs.fess.exception.FessSystemException: Something failed.\n\tat org.codelibs.fess ]"
	}
	writeJSON(w, status, map[string]string{key: value})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // cannot happen with plain data
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the client has gone
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
