package fessserver

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"knowhow/internal/errkind"
)

// An envelope contains an answer of API v2.
type envelope struct {
	Response any `json:"response"`
}

// A failure is an error answer of API v2.
type failure struct {
	Status int          `json:"status"` // 1: an error of the caller, 9: an error of the server
	Error  failureError `json:"error"`
}

// A failureError is the error of a failure.
type failureError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details any    `json:"details,omitempty"`
}

// engine is the state of the service in API v2.
type engine struct {
	Status     string `json:"status"`
	PingStatus int    `json:"ping_status"`
}

// serveV2 answers the calls below /api/v2 (Fess 15.7, package api.v2).
func (c *call) serveV2() {
	c.w.Header().Set("Cache-Control", "no-store")
	switch c.r.Method {
	case http.MethodGet:
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		c.refuseV2(http.StatusForbidden, "invalid csrf token")
		return
	default:
		c.w.Header().Set("Allow", "GET")
		c.refuseV2(http.StatusMethodNotAllowed, "method not allowed")
		return
	}
	switch c.path {
	case "/search":
		c.searchV2()
	case "/labels":
		c.labelsV2()
	case "/popular-words":
		c.popularWordsV2()
	case "/suggest-words":
		c.suggestWordsV2()
	case "/health":
		c.healthV2()
	case "/ui/config":
		c.uiConfig()
	case "/related-queries":
		c.writeV2(struct {
			Status  int      `json:"status"`
			Queries []string `json:"queries"`
		}{0, []string{}})
	case "/related-content":
		c.writeV2(struct {
			Status      int    `json:"status"`
			Content     string `json:"content"`
			ContentType string `json:"content_type"`
		}{0, "", "html"})
	case "/documents/all":
		c.refuseV2(http.StatusBadRequest, "Scroll Search is not available.")
	case "/favorites":
		c.refuseV2(http.StatusBadRequest, "favorite feature is not available")
	default:
		c.otherV2()
	}
}

// otherV2 answers calls about one document, and unknown calls.
func (c *call) otherV2() {
	if id, ok := strings.CutPrefix(c.path, "/cache/"); ok {
		c.cacheV2(id)
		return
	}
	if _, ok := strings.CutPrefix(c.path, "/documents/"); ok {
		if strings.HasSuffix(c.path, "/favorite") {
			c.refuseV2(http.StatusBadRequest, "favorite feature is not available")
			return
		}
		c.refuseV2(http.StatusNotFound, "unknown action on document: "+cut(c.path))
		return
	}
	c.refuseV2(http.StatusNotFound, "endpoint not found: "+cut(c.path))
}

// searchV2 answers a search.
func (c *call) searchV2() {
	x, err := c.question(true)
	if err != nil {
		c.failV2(err)
		return
	}
	d, err := c.search(c.r.Context(), x, rowV2)
	if err != nil {
		c.failV2(err)
		return
	}
	d.ExecTime = fmt.Sprint(d.ExecTime)
	c.writeV2(struct {
		Status int `json:"status"`
		*documents
	}{0, d})
}

// labelsV2 answers with the labels.
func (c *call) labelsV2() {
	all, err := c.labels()
	if err != nil {
		c.failV2(err)
		return
	}
	c.writeV2(struct {
		Status      int     `json:"status"`
		RecordCount int     `json:"record_count"`
		Labels      []label `json:"labels"`
	}{0, len(all), all})
}

// popularWordsV2 answers with the popular words.
func (c *call) popularWordsV2() {
	words, err := c.popularWords()
	if err != nil {
		c.failV2(err)
		return
	}
	c.writeV2(struct {
		Status       int      `json:"status"`
		RecordCount  int      `json:"record_count"`
		PopularWords []string `json:"popular_words"`
	}{0, len(words), words})
}

// suggestWordsV2 answers with words that begin with q. Its parameter for fields
// is fn.
func (c *call) suggestWordsV2() {
	num := c.integer("num", defaultNum)
	if num <= 0 {
		c.failV2(&refusal{fmt.Sprintf("num must be positive, got: %d", num)})
		return
	}
	words, total, took, err := c.suggest(c.list("fn"), num)
	if err != nil {
		c.failV2(err)
		return
	}
	type word struct {
		Text  string   `json:"text"`
		Types []string `json:"types"`
	}
	list := []word{}
	for _, w := range words {
		list = append(list, word{w.Text, w.Labels})
	}
	c.writeV2(struct {
		Status       int    `json:"status"`
		Q            string `json:"q"`
		PageSize     int    `json:"page_size"`
		RecordCount  int    `json:"record_count"`
		QueryTime    int64  `json:"query_time"`
		SuggestWords []word `json:"suggest_words"`
	}{0, c.params.Get("q"), len(list), total, took, list})
}

// healthV2 answers with the state of the service.
func (c *call) healthV2() {
	h, err := c.backend.Health(c.r.Context())
	if err != nil {
		c.failV2(err)
		return
	}
	state := engine{Status: strings.ToUpper(h.Status)}
	if h.Status == "red" {
		state.PingStatus = 1
		c.writeJSON(http.StatusServiceUnavailable, envelope{failure{9, failureError{"service_unavailable", "search engine cluster is red",
			map[string]any{"engine": state}}}}, asItIs)
		return
	}
	c.writeV2(struct {
		Status int    `json:"status"`
		Engine engine `json:"engine"`
	}{0, state})
}

// idForm matches the ID of a document, which has at most 128 bytes.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// validID reports whether an ID has the form of a document's ID.
func validID(id string) bool { return len(id) <= 128 && idForm.MatchString(id) }

// cacheV2 answers with the whole text of a document.
func (c *call) cacheV2(id string) {
	if !validID(id) {
		c.failV2(&refusal{"invalid doc_id"})
		return
	}
	page, hit, err := c.cached(id)
	switch {
	case errors.Is(err, errkind.NotFound):
		c.refuseV2(http.StatusNotFound, "doc not found: "+id)
		return
	case err != nil:
		c.failV2(err)
		return
	}
	c.writeV2(struct {
		Status   int    `json:"status"`
		DocID    string `json:"doc_id"`
		MIMEType string `json:"mimetype"`
		Content  string `json:"content"`
		URL      string `json:"url"`
		Created  string `json:"created"`
		Charset  string `json:"charset"`
	}{0, id, "text/html", page, hit.URL, created(hit, timeForm), "UTF-8"})
}

// codes are the error codes of API v2 for statuses.
var codes = map[int]string{
	http.StatusBadRequest:            "invalid_request",
	http.StatusUnauthorized:          "auth_required",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not_found",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusRequestEntityTooLarge: "payload_too_large",
	http.StatusTooManyRequests:       "rate_limited",
	http.StatusInternalServerError:   "internal_error",
}

// failV2 answers with an error. The cause is only sent if it is an error of the
// caller; otherwise it is only logged.
func (c *call) failV2(err error) {
	code := newUUID()
	c.logFailure(err, code)
	s := status(err)
	if s >= http.StatusInternalServerError {
		c.writeJSON(s, envelope{failure{9, failureError{codes[s], "internal error", nil}}}, asItIs)
		return
	}
	c.refuseV2(s, sentenceOf(err))
}

// refuseV2 answers with an error of the caller.
func (c *call) refuseV2(status int, msg string) {
	c.writeJSON(status, envelope{failure{1, failureError{codes[status], msg, nil}}}, asItIs)
}

// writeV2 answers with a success.
func (c *call) writeV2(v any) { c.writeJSON(http.StatusOK, envelope{v}, asItIs) }

// asItIs returns JSON unchanged.
func asItIs(data []byte) []byte { return data }
