package fessserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"knowhow/internal/search"
)

// A message is the answer of API v1 to a refused request.
type message struct {
	Message string `json:"message"`
}

// serveV1 answers the calls below /api/v1 (Fess 15.4, SearchApiManager).
func (c *call) serveV1() {
	favorite := strings.HasPrefix(c.path, "/documents/") && strings.HasSuffix(c.path, "/favorite")
	if want := map[bool]string{false: http.MethodGet, true: http.MethodPost}[favorite]; c.r.Method != want {
		c.writeV1(http.StatusMethodNotAllowed, message{c.r.Method + " is not allowed."})
		return
	}
	switch {
	case favorite, c.path == "/favorites":
		c.writeV1(http.StatusBadRequest, message{"Unsupported operation."})
	case c.path == "/documents/all":
		c.writeV1(http.StatusBadRequest, message{"Scroll Search is not available."})
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
		c.writeV1(http.StatusNotFound, message{"Not found."})
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

// A listing is a list with its length. Fess omits an empty list in the answers
// about labels and suggestions.
type listing[T any] struct {
	QueryTime   *int64 `json:"query_time,omitempty"`
	RecordCount int    `json:"record_count"`
	PageSize    *int   `json:"page_size,omitempty"`
	Data        []T    `json:"data,omitempty"`
}

// A label is one label.
type label struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// labels lists the labels.
func (c *call) labels() ([]label, error) {
	list, err := c.backend.Labels(c.r.Context())
	all := []label{}
	for _, l := range list {
		all = append(all, label{l.Name, l.Value})
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
	c.writeV1(http.StatusOK, listing[label]{RecordCount: len(all), Data: all})
}

// popularWords lists the popular words.
func (c *call) popularWords() ([]string, error) {
	if err := c.checkSizes(true); err != nil {
		return nil, err
	}
	fields, ok := knownFields(c.list("field"))
	if !ok {
		return []string{}, nil
	}
	words, err := c.backend.PopularWords(c.r.Context(), search.WordsQuery{Seed: c.params.Get("seed"), Labels: c.list("label"), Fields: fields})
	return append([]string{}, words...), err
}

// popularWordsV1 answers with the popular words.
func (c *call) popularWordsV1() {
	words, err := c.popularWords()
	if err != nil {
		c.failV1(err)
		return
	}
	c.writeV1(http.StatusOK, struct {
		RecordCount int      `json:"record_count"`
		Data        []string `json:"data"`
	}{len(words), words})
}

// A suggestion is a word, with the labels of documents that contain it.
type suggestion struct {
	Text   string   `json:"text"`
	Labels []string `json:"labels"`
}

// suggest completes the parameter q. It returns the first num words, the number
// of words (up to 100), and the duration in milliseconds.
func (c *call) suggest(fields []string, num int) (words []suggestion, total int, took int64, err error) {
	began := time.Now()
	words = []suggestion{}
	if err := c.checkSizes(true); err != nil {
		return nil, 0, 0, err
	}
	if known, ok := knownFields(fields); ok {
		list, err := c.completions(known)
		if err != nil {
			return nil, 0, 0, err
		}
		total = len(list)
		for _, s := range list[:min(num, total)] {
			words = append(words, suggestion{s.Text, append([]string{}, s.Labels...)})
		}
	}
	return words, total, int64(time.Since(began)/time.Millisecond) + 1, nil
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
		c.writeV1(http.StatusInternalServerError, map[string]string{codeKey: newUUID()}) // Fess fails here
		return
	}
	num := c.integer("num", defaultNum)
	if num < 0 {
		num = defaultNum
	}
	words, total, took, err := c.suggest(c.list("field"), num)
	if err != nil {
		c.failV1(err)
		return
	}
	size := len(words)
	c.writeV1(http.StatusOK, listing[suggestion]{QueryTime: &took, RecordCount: total, PageSize: &size, Data: words})
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
	c.writeV1(status, map[string]any{"data": map[string]any{"status": h.Status, "timed_out": h.TimedOut}})
}

// failV1 answers with an error. Fess sends only a code, and logs the rest.
func (c *call) failV1(err error) {
	code := newUUID()
	c.logFailure(err, code)
	c.writeV1(status(err), map[string]string{codeKey: code})
}

// codeKey is the key of an error's code, with the colon of Fess (15.4,
// SearchApiManager).
const codeKey = "error_code:"

// writeV1 answers with JSON in ASCII.
func (c *call) writeV1(status int, v any) {
	c.writeJSON(status, v, toASCII)
}

// writeJSON answers with JSON.
func (c *call) writeJSON(status int, v any, form func([]byte) []byte) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		c.log.Error("an answer of the Fess API cannot be written", "path", c.path, "error", err)
		writeHTML(c.w, http.StatusInternalServerError, "The answer cannot be written: see the log.")
		return
	}
	c.w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	c.w.Header().Set("Referrer-Policy", "strict-origin-when-cross-origin")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(form(bytes.TrimSpace(b.Bytes()))) // an error means that the client is gone
}

// toASCII writes JSON like Java's StringEscapeUtils.escapeJson: in ASCII, with
// a backslash before each slash.
func toASCII(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/4)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == '/':
			out = append(out, '\\', '/')
		case r < utf8.RuneSelf:
			out = append(out, data[0])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04X\u%04X`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04X`, r)
		}
		data = data[n:]
	}
	return out
}
