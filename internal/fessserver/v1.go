package fessserver

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// serveV1 answers the calls below /api/v1 (Fess 15.4, SearchApiManager).
func (c *call) serveV1() {
	favorite := strings.HasPrefix(c.path, "/documents/") && strings.HasSuffix(c.path, "/favorite")
	if want := map[bool]string{false: http.MethodGet, true: http.MethodPost}[favorite]; c.r.Method != want {
		c.writeV1(http.StatusMethodNotAllowed, wire.Message{Message: c.r.Method + " is not allowed."})
		return
	}
	switch {
	case favorite, c.path == "/favorites":
		c.writeV1(http.StatusBadRequest, wire.Message{Message: "Unsupported operation."})
	case c.path == "/documents/all":
		c.writeV1(http.StatusBadRequest, wire.Message{Message: "Scroll Search is not available."})
	case c.path == "", c.path == "/documents", strings.HasPrefix(c.path, "/documents/"):
		c.documentsV1()
	case c.path == "/labels":
		c.labelsV1()
	case c.path == "/popular-words":
		c.popularWordsV1()
	case c.path == "/suggest-words":
		c.suggestWordsV1()
	case c.path == "/health":
		c.healthV1()
	default:
		c.writeV1(http.StatusNotFound, wire.Message{Message: "Not found."})
	}
}

// documentsV1 answers a search.
func (c *call) documentsV1() {
	x, err := c.question(false)
	if err != nil {
		c.failV1(err)
		return
	}
	d, err := c.search(c.r.Context(), x, rowV1)
	if err != nil {
		c.failV1(err)
		return
	}
	c.writeV1(http.StatusOK, d)
}

// labels lists the labels.
func (c *call) labels() ([]wire.Label, error) {
	list, err := c.backend.Labels(c.r.Context())
	all := []wire.Label{}
	for _, l := range list {
		all = append(all, wire.Label{Label: wire.Text(l.Name), Value: new(wire.Text(l.Value))})
	}
	return all, err
}

// labelsV1 answers with the labels.
func (c *call) labelsV1() {
	all, err := c.labels()
	if err != nil {
		c.failV1(err)
		return
	}
	c.writeV1(http.StatusOK, wire.Labels{RecordCount: wire.Number(len(all)), Data: all})
}

// popularWords lists the popular words.
func (c *call) popularWords() (wire.List[wire.Text], error) {
	if err := c.checkSizes(true); err != nil {
		return nil, err
	}
	fields, ok := knownFields(c.list("field"))
	if !ok {
		return wire.Texts(nil), nil
	}
	words, err := c.backend.PopularWords(c.r.Context(), search.WordsQuery{Seed: c.params.Get("seed"),
		Labels: c.list("label"), Fields: fields})
	return wire.Texts(words), err
}

// popularWordsV1 answers with the popular words.
func (c *call) popularWordsV1() {
	words, err := c.popularWords()
	if err != nil {
		c.failV1(err)
		return
	}
	c.writeV1(http.StatusOK, wire.PopularWords{RecordCount: wire.Number(len(words)), Data: words})
}

// suggest completes the parameter q. It returns the first num words, the number
// of words (up to 100), and the duration in milliseconds.
func (c *call) suggest(fields []string, num int) (words []search.Suggestion, total, took wire.Number, err error) {
	began := time.Now()
	if err := c.checkSizes(true); err != nil {
		return nil, 0, 0, err
	}
	if known, ok := knownFields(fields); ok {
		if words, err = c.completions(known); err != nil {
			return nil, 0, 0, err
		}
	}
	return words[:min(num, len(words))], wire.Number(len(words)), milliseconds(time.Since(began)), nil
}

// completions returns all words that begin with q. Without q, Fess returns any
// words; here they are the popular ones.
func (c *call) completions(fields []string) ([]search.Suggestion, error) {
	if q := c.params.Get("q"); strings.TrimSpace(q) != "" {
		return c.backend.Suggest(c.r.Context(), search.SuggestQuery{Prefix: q, Num: search.MaxNum,
			Labels: c.list("label"), Fields: fields, Langs: c.list("lang")})
	}
	words, err := c.backend.PopularWords(c.r.Context(), search.WordsQuery{Labels: c.list("label"), Fields: fields})
	var list []search.Suggestion
	for _, w := range words {
		list = append(list, search.Suggestion{Text: w})
	}
	return list, err
}

// knownFields returns the fields that words can come from. ok is false if
// fields are given but none of them is known, so that there are no words.
func knownFields(fields []string) (known []string, ok bool) {
	for _, f := range fields {
		if slices.Contains([]string{"content", "title", "_default"}, f) {
			known = append(known, f)
		}
	}
	return known, len(known) > 0 || len(fields) == 0
}

// suggestWordsV1 answers with words that begin with q.
func (c *call) suggestWordsV1() {
	if !c.params.Has("q") {
		c.writeV1(http.StatusInternalServerError, map[string]string{wire.CodeKey: newUUID()}) // Fess fails here
		return
	}
	num := wire.Int(c.params, wire.Num, defaultNum)
	if num < 0 {
		num = defaultNum
	}
	words, total, took, err := c.suggest(c.list("field"), num)
	if err != nil {
		c.failV1(err)
		return
	}
	list := wire.Suggestions{QueryTime: took, RecordCount: total, PageSize: new(wire.Number(len(words)))}
	for _, w := range words {
		list.Data = append(list.Data, wire.Suggestion{Text: new(wire.Text(w.Text)), Labels: wire.Texts(w.Labels)})
	}
	c.writeV1(http.StatusOK, list)
}

// healthV1 answers with the state of the service.
func (c *call) healthV1() {
	h, err := c.backend.Health(c.r.Context())
	if err != nil {
		c.failV1(err)
		return
	}
	status := http.StatusOK
	if h.Status == "red" {
		status = http.StatusServiceUnavailable
	}
	c.writeV1(status, wire.Health{Data: &wire.Engine{Status: wire.Text(h.Status), TimedOut: h.TimedOut}})
}

// failV1 answers with an error. Fess sends only a code, and logs the rest.
func (c *call) failV1(err error) {
	code := newUUID()
	c.logFailure(err, code)
	c.writeV1(status(err), map[string]string{wire.CodeKey: code})
}

// writeV1 answers with JSON of API v1.
func (c *call) writeV1(status int, v any) {
	data, err := wire.Encode(v)
	c.w.Header().Set("Cache-Control", "no-store")
	c.write(status, data, err)
}

// write answers with JSON, unless it could not be encoded.
func (c *call) write(status int, data []byte, err error) {
	if err != nil {
		c.log.Error("an answer of the Fess API cannot be written", "path", c.path, "error", err)
		writeHTML(c.w, http.StatusInternalServerError, "The answer cannot be written: see the log.")
		return
	}
	c.w.Header().Set("Content-Type", wire.JSONType)
	c.w.Header().Set("Referrer-Policy", "strict-origin-when-cross-origin")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(data) // an error means that the client is gone
}
