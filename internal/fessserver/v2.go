package fessserver

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

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
		c.writeV2(map[string][]string{"queries": {}})
	case "/related-content":
		c.writeV2(map[string]string{"content": "", "content_type": "html"})
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
	c.writeV2(d)
}

// labelsV2 answers with the labels.
func (c *call) labelsV2() {
	all, err := c.labels()
	if err != nil {
		c.failV2(err)
		return
	}
	c.writeV2(wire.Labels{RecordCount: wire.Number(len(all)), Labels: all})
}

// popularWordsV2 answers with the popular words.
func (c *call) popularWordsV2() {
	words, err := c.popularWords()
	if err != nil {
		c.failV2(err)
		return
	}
	c.writeV2(wire.PopularWords{RecordCount: wire.Number(len(words)), PopularWords: words})
}

// suggestWordsV2 answers with words that begin with q. Its parameter for fields
// is fn.
func (c *call) suggestWordsV2() {
	num := wire.Int(c.params, wire.Num, defaultNum)
	if num <= 0 {
		c.failV2(&refusal{fmt.Sprintf("num must be positive, got: %d", num)})
		return
	}
	words, total, took, err := c.suggest(c.list("fn"), num)
	if err != nil {
		c.failV2(err)
		return
	}
	list := wire.SuggestionsV2{Q: c.params.Get("q"), PageSize: new(wire.Number(len(words))), RecordCount: total,
		QueryTime:    took,
		SuggestWords: wire.List[wire.Suggestion]{}}
	for _, w := range words {
		list.SuggestWords = append(list.SuggestWords, wire.Suggestion{Text: new(wire.Text(w.Text)),
			Types: wire.Texts(w.Labels)})
	}
	c.writeV2(list)
}

// healthV2 answers with the state of the service.
func (c *call) healthV2() {
	h, err := c.backend.Health(c.r.Context())
	if err != nil {
		c.failV2(err)
		return
	}
	state := &wire.Engine{Status: wire.Text(strings.ToUpper(h.Status)), PingStatus: 0}
	if h.Status == "red" {
		state.PingStatus = 1
		data, err := wire.EncodeError(http.StatusServiceUnavailable, "search engine cluster is red",
			&wire.Details{Engine: state})
		c.write(http.StatusServiceUnavailable, data, err)
		return
	}
	c.writeV2(wire.Health{Engine: state})
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
	c.writeV2(wire.Copy{DocID: new(wire.Text(id)), MIMEType: "text/html", Content: new(wire.Text(page)), URL: hit.URL,
		Created: created(hit, wire.TimeForm), Charset: "UTF-8"})
}

// failV2 answers with an error. The cause is only sent if it is an error of the
// caller; otherwise it is only logged.
func (c *call) failV2(err error) {
	code := newUUID()
	c.logFailure(err, code)
	s, message := status(err), "internal error"
	switch {
	case s < http.StatusInternalServerError:
		message = sentenceOf(err)
	case s == http.StatusServiceUnavailable:
		message = "the documents cannot be reached now, try again"
	}
	c.refuseV2(s, message)
}

// refuseV2 answers with an error.
func (c *call) refuseV2(status int, msg string) {
	data, err := wire.EncodeError(status, msg, nil)
	c.write(status, data, err)
}

// writeV2 answers with a success.
func (c *call) writeV2(v any) {
	data, err := wire.EncodeV2(v)
	c.write(http.StatusOK, data, err)
}
