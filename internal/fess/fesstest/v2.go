package fesstest

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

// serveV2 serves the paths below /api/v2 (Fess 15.7).
func (h *Handler) serveV2(w http.ResponseWriter, r *http.Request, api string) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodHead, http.MethodOptions:
		w.Header().Set("Allow", "GET")
		failV2(w, http.StatusMethodNotAllowed, "method not allowed: "+r.Method)
		return
	default: // Fess checks this first: the request has no session and no CSRF token
		failV2(w, http.StatusForbidden, "invalid csrf token")
		return
	}
	if api == "/health" {
		h.healthV2(w)
		return
	}
	values := r.URL.Query()
	id, isCopy := strings.CutPrefix(api, "/cache/")
	known := map[string]func(http.ResponseWriter, *http.Request, roles){
		"/search": h.searchV2, "/labels": h.labelsV2, "/suggest-words": h.suggestV2,
		"/popular-words": func(w http.ResponseWriter, _ *http.Request, caller roles) {
			found := h.popular(values, caller)
			writeV2(w, wire.PopularWords{RecordCount: wire.Number(len(found)), PopularWords: found})
		},
	}
	answer, ok := known[api]
	if isCopy {
		answer, ok = func(w http.ResponseWriter, _ *http.Request, caller roles) { h.cacheV2(w, id, caller) }, true
	}
	caller, valid := h.authenticate(r)
	switch {
	case !ok:
		failV2(w, http.StatusNotFound, "endpoint not found: "+api)
	case !valid, h.engineState() == "down" && r.Header.Get("Authorization") != "":
		internalV2(w)
	default:
		answer(w, r, caller)
	}
}

// failV2 writes an error of API v2.
func failV2(w http.ResponseWriter, status int, message string) {
	data, err := wire.EncodeError(status, message, nil)
	writeJSON(w, status, data, err)
}

// internalV2 writes the error of API v2 for an internal failure and for an
// invalid token.
func internalV2(w http.ResponseWriter) { failV2(w, http.StatusInternalServerError, "internal error") }

// writeV2 writes a successful answer of API v2.
func writeV2(w http.ResponseWriter, v any) {
	data, err := wire.EncodeV2(v)
	writeJSON(w, http.StatusOK, data, err)
}

// checkV2 checks the limits of API v2 (api.v2.param.max.*).
func checkV2(values url.Values) error {
	for _, name := range []string{wire.Num, wire.Start, "offset"} {
		if n, err := strconv.ParseInt(values.Get(name), 10, 32); err == nil && (n < 0 || n == 0 && name == wire.Num) {
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
		failV2(w, http.StatusBadRequest, err.Error())
		return
	}
	found := h.find(values, caller)
	if found == nil {
		failV2(w, http.StatusBadRequest,
			`Failed query: {"from":0,"query":{"bool":{"must":[{"term":{"role":"Rguest"}}]}}}`)
		return
	}
	found.ExecTime = fmt.Sprint(found.ExecTime)
	writeV2(w, found)
}

func (h *Handler) labelsV2(w http.ResponseWriter, r *http.Request, caller roles) {
	list := h.labels(r, caller)
	writeV2(w, wire.Labels{RecordCount: wire.Number(len(list)), Labels: list})
}

func (h *Handler) suggestV2(w http.ResponseWriter, r *http.Request, caller roles) {
	values := r.URL.Query()
	num := wire.Int(values, wire.Num, 10)
	switch {
	case num <= 0:
		failV2(w, http.StatusBadRequest, "num must be positive")
		return
	case h.engineState() == "down":
		internalV2(w)
		return
	}
	found, total := h.suggest(values, min(num, 100), values["fn"], caller)
	list := wire.SuggestionsV2{Q: values.Get(wire.Query), PageSize: new(wire.Number(len(found))),
		RecordCount: wire.Number(total), QueryTime: 3,
		SuggestWords: wire.List[wire.Suggestion]{}}
	for _, x := range found {
		list.SuggestWords = append(list.SuggestWords, wire.Suggestion{Text: new(wire.Text(x.text)),
			Types: wire.Texts(x.labels)})
	}
	writeV2(w, list)
}

// healthV2 serves the state of the engine.
func (h *Handler) healthV2(w http.ResponseWriter) {
	state := h.engineState()
	engine := &wire.Engine{Status: wire.Text(strings.ToUpper(state)), PingStatus: 0}
	switch state {
	case "down":
		internalV2(w)
	case "red":
		engine.PingStatus = 1
		data, err := wire.EncodeError(http.StatusServiceUnavailable, "search engine cluster is red",
			&wire.Details{Engine: engine})
		writeJSON(w, http.StatusServiceUnavailable, data, err)
	default:
		writeV2(w, wire.Health{Engine: engine})
	}
}

// idForm matches the document IDs that API v2 accepts.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (h *Handler) cacheV2(w http.ResponseWriter, id string, caller roles) {
	d, page := h.copyOf(id, caller)
	switch {
	case !idForm.MatchString(id):
		failV2(w, http.StatusBadRequest, "invalid doc_id")
	case h.engineState() == "down":
		internalV2(w)
	case d == nil:
		failV2(w, http.StatusNotFound, "doc not found: "+id)
	default:
		writeV2(w, wire.Copy{DocID: new(wire.Text(id)), MIMEType: "text/html", Content: new(wire.Text(page)),
			URL:     d.URL,
			Created: stamp(d.Modified), Charset: "UTF-8"})
	}
}
