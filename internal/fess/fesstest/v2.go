package fesstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// serveV2 serves the paths below /api/v2 (Fess 15.7).
func (h *Handler) serveV2(w http.ResponseWriter, r *http.Request, api string) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodHead, http.MethodOptions:
		w.Header().Set("Allow", "GET")
		failV2(w, http.StatusMethodNotAllowed, "method_not_allowed", "method not allowed: "+r.Method)
		return
	default: // Fess checks this first: the request has no session and no CSRF token
		failV2(w, http.StatusForbidden, "forbidden", "invalid csrf token")
		return
	}
	if api == "/health" {
		h.healthV2(w)
		return
	}
	values := r.URL.Query()
	id, isCopy := strings.CutPrefix(api, "/cache/")
	known := map[string]func(http.ResponseWriter, *http.Request, roles){
		"/search": h.searchV2, "/documents/all": h.scrollAllV2, "/labels": h.labelsV2, "/suggest-words": h.suggestV2,
		"/popular-words": func(w http.ResponseWriter, _ *http.Request, caller roles) {
			found := h.popular(values, caller)
			envelope(w, map[string]any{"record_count": len(found), "popular_words": found})
		},
		"/favorites": func(w http.ResponseWriter, _ *http.Request, _ roles) {
			failV2(w, http.StatusBadRequest, "invalid_request", "user favorite is disabled")
		},
	}
	answer, ok := known[api]
	if isCopy {
		answer, ok = func(w http.ResponseWriter, _ *http.Request, caller roles) { h.cacheV2(w, id, caller) }, true
	}
	caller, valid := h.authenticate(r)
	switch {
	case !ok:
		failV2(w, http.StatusNotFound, "not_found", "endpoint not found: "+api)
	case !valid, h.engineState() == "down" && r.Header.Get("Authorization") != "":
		internalV2(w)
	default:
		answer(w, r, caller)
	}
}

// failV2 writes an error of API v2.
func failV2(w http.ResponseWriter, status int, code, message string) {
	class := 1
	if status >= 500 {
		class = 9
	}
	writeJSON(w, status, map[string]any{"response": map[string]any{"status": class, "error": map[string]any{"code": code, "message": message}}})
}

// internalV2 writes the error of API v2 for an internal failure and for an
// invalid token.
func internalV2(w http.ResponseWriter) {
	failV2(w, http.StatusInternalServerError, "internal_error", "internal error")
}

// envelope writes a successful response of API v2.
func envelope(w http.ResponseWriter, response map[string]any) {
	response["status"] = 0
	writeJSON(w, http.StatusOK, map[string]any{"response": response})
}

// checkV2 checks the limits of API v2 (api.v2.param.max.*).
func checkV2(values url.Values) error {
	for _, name := range []string{"num", "start", "offset"} {
		if n, err := strconv.ParseInt(values.Get(name), 10, 32); err == nil && (n < 0 || n == 0 && name == "num") {
			return fmt.Errorf("%s must be positive, got: %d", name, n)
		}
	}
	for name, list := range values {
		if len(list) > 100 && !strings.HasPrefix(name, "facet.") {
			return fmt.Errorf("too many values of %s", name)
		}
		for _, v := range list {
			if len([]rune(v)) > 1000 {
				return fmt.Errorf("%s is too long", name)
			}
		}
	}
	return nil
}

// searchV2 serves a search.
func (h *Handler) searchV2(w http.ResponseWriter, r *http.Request, caller roles) {
	values := r.URL.Query()
	if err := checkV2(values); err != nil {
		failV2(w, http.StatusBadRequest, "invalid_request", err.Error())
		return
	}
	found := h.find(values, caller)
	if found == nil {
		failV2(w, http.StatusBadRequest, "invalid_request", `Failed query: {"from":0,"query":{"bool":{"must":[{"term":{"role":"Rguest"}}]}}}`)
		return
	}
	data, err := json.Marshal(found)
	response := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &response)
	}
	if err != nil { // cannot happen with plain data
		internalV2(w)
		return
	}
	response["exec_time"] = strconv.FormatFloat(found.ExecTime, 'f', -1, 64)
	envelope(w, response)
}

// scrollAllV2 serves a scroll search.
func (h *Handler) scrollAllV2(w http.ResponseWriter, r *http.Request, caller roles) {
	if h.engineState() == "down" {
		internalV2(w)
		return
	}
	lines, err := h.lines(r.URL.Query(), caller, h.scrollV2)
	if err != nil || !h.o.Scroll {
		failV2(w, http.StatusBadRequest, "invalid_request", "cannot scroll")
		return
	}
	writeLines(w, lines)
}

func (h *Handler) labelsV2(w http.ResponseWriter, r *http.Request, caller roles) {
	list := []any{}
	for _, l := range h.labels(r, caller) {
		list = append(list, map[string]string{"label": l.Name, "value": l.Value})
	}
	envelope(w, map[string]any{"record_count": len(list), "labels": list})
}

func (h *Handler) suggestV2(w http.ResponseWriter, r *http.Request, caller roles) {
	values := r.URL.Query()
	num := number(values.Get("num"), 10)
	switch {
	case num <= 0:
		failV2(w, http.StatusBadRequest, "invalid_request", "num must be positive")
		return
	case h.engineState() == "down":
		internalV2(w)
		return
	}
	found, total := h.suggest(values, min(num, 100), values["fn"], caller)
	list := []any{}
	for _, x := range found {
		list = append(list, map[string]any{"text": x.text, "types": x.labels})
	}
	envelope(w, map[string]any{"q": values.Get("q"), "page_size": len(list), "record_count": total, "query_time": 3, "suggest_words": list})
}

// healthV2 serves the state of the engine.
func (h *Handler) healthV2(w http.ResponseWriter) {
	state := h.engineState()
	engine := map[string]any{"status": strings.ToUpper(state), "ping_status": 0}
	switch state {
	case "down":
		internalV2(w)
	case "red":
		engine["ping_status"] = 1
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{"response": map[string]any{"status": 9, "error": map[string]any{
			"code": "service_unavailable", "message": "search engine cluster is red", "details": map[string]any{"engine": engine}}}})
	default:
		envelope(w, map[string]any{"engine": engine})
	}
}

// idForm matches the document IDs that API v2 accepts.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (h *Handler) cacheV2(w http.ResponseWriter, id string, caller roles) {
	d, page := h.copyOf(id, caller)
	switch {
	case !idForm.MatchString(id):
		failV2(w, http.StatusBadRequest, "invalid_request", "invalid doc_id")
	case h.engineState() == "down":
		internalV2(w)
	case d == nil:
		failV2(w, http.StatusNotFound, "not_found", "doc not found: "+id)
	default:
		envelope(w, map[string]any{"doc_id": id, "mimetype": "text/html", "content": page, "url": d.URL, "created": stamp(d.Modified), "charset": "UTF-8"})
	}
}
