package fesstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	path, ok := strings.CutPrefix(r.URL.Path, h.o.ContextPath)
	if !ok || path != "" && path[0] != '/' {
		writeHTML(w, http.StatusNotFound) // Tomcat's own page
		return
	}
	api, ok := strings.CutPrefix(path, "/api/v1")
	if !ok || api != "" && api[0] != '/' {
		// Fess's error page, of which the location is the interesting part.
		w.Header().Set("Location", h.o.ContextPath+"/error/notfound/?url="+url.QueryEscape(r.URL.Path))
		writeHTML(w, http.StatusFound)
		return
	}
	if strings.ContainsAny(r.URL.RawQuery, "[]{}|") || len(r.RequestURI) > 8<<10 {
		writeHTML(w, http.StatusBadRequest)
		return
	}
	h.serveAPI(w, r, strings.TrimSuffix(api, "/"))
}

// serveAPI answers the calls below /api/v1.
func (h *Handler) serveAPI(w http.ResponseWriter, r *http.Request, api string) {
	if r.Method != http.MethodGet {
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"message": r.Method + " is not allowed."})
		return
	}
	if api == "/health" {
		h.health(w)
		return
	}
	if !h.allowed(w, r) {
		return
	}
	values := r.URL.Query()
	switch {
	case api == "", api == "/documents", strings.HasPrefix(api, "/documents/") && api != "/documents/all":
		h.documents(w, values)
	case api == "/documents/all":
		writeJSON(w, http.StatusBadRequest, map[string]string{"message": "Scroll Search is not available."})
	case api == "/labels":
		writeJSON(w, http.StatusOK, listing(h.o.Labels, func(l search.Label) any {
			return map[string]string{"label": l.Name, "value": l.Value}
		}))
	case api == "/popular-words":
		h.popularWords(w, values)
	case api == "/suggest-words":
		h.suggestWords(w, values)
	case api == "/favorites":
		writeJSON(w, http.StatusBadRequest, map[string]string{"message": "Unsupported operation."})
	default:
		writeJSON(w, http.StatusNotFound, map[string]string{"message": "Not found."})
	}
}

// allowed checks the access token and answers where it is not good.
func (h *Handler) allowed(w http.ResponseWriter, r *http.Request) bool {
	given := r.Header.Get("Authorization")
	switch {
	case given != "" && h.engineState() == "down":
		h.fail(w, http.StatusInternalServerError)
		return false
	case given == "" && h.o.Token == "", h.o.Token != "" && (given == h.o.Token || given == "Bearer "+h.o.Token):
		return true
	}
	reason := "invalid_token"
	if words := strings.Fields(given); len(words) > 2 || len(words) == 2 && words[0] != "Bearer" {
		reason = "invalid_request"
	}
	w.Header().Set("WWW-Authenticate", `Bearer error="`+reason+`"`)
	h.fail(w, http.StatusUnauthorized)
	return false
}

// health answers with the engine's state; a red one is a 503 with the same body.
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

// suggestWords answers with words that begin with q.
func (h *Handler) suggestWords(w http.ResponseWriter, values url.Values) {
	if !values.Has("q") || h.engineState() == "down" {
		h.fail(w, http.StatusInternalServerError)
		return
	}
	num, err := strconv.Atoi(values.Get("num"))
	if err != nil || num < 0 {
		num = 10
	}
	found, total := []any{}, 0
	for _, x := range h.words {
		if !strings.HasPrefix(x.text, strings.ToLower(values.Get("q"))) || !x.has(values["label"], values["field"]) {
			continue
		}
		if total++; len(found) < num {
			found = append(found, map[string]any{"text": x.text, "labels": x.labels})
		}
	}
	answer := map[string]any{"query_time": 3, "record_count": total, "page_size": len(found)}
	if len(found) > 0 {
		answer["data"] = found
	}
	writeJSON(w, http.StatusOK, answer)
}

// popularWords answers with the documents' most frequent words: nobody has
// searched for any yet.
func (h *Handler) popularWords(w http.ResponseWriter, values url.Values) {
	found := []string{}
	for _, x := range h.words {
		if len(found) < 10 && h.engineState() != "down" && x.has(values["label"], values["field"]) {
			found = append(found, x.text)
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"record_count": len(found), "data": found})
}

// listing is the answer of calls that list things; an empty one has no data.
func listing[T any](all []T, row func(T) any) map[string]any {
	answer := map[string]any{"record_count": len(all)}
	for _, x := range all {
		rows, _ := answer["data"].([]any)
		answer["data"] = append(rows, row(x))
	}
	return answer
}

// errorCode is the same for all errors; a real one is random.
const errorCode = "33dd765d-1469-4ce2-9db1-deb4be61b700"

// fail answers with an error code.
func (h *Handler) fail(w http.ResponseWriter, status int) {
	key := "error_code:"
	if h.o.OmitColon {
		key = "error_code"
	}
	writeJSON(w, status, map[string]string{key: errorCode})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // only plain data comes here
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client has gone if this fails
}

func writeHTML(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><html><head><title>HTTP Status %d</title></head><body></body></html>", status)
}

// A word is a word of the documents, for suggestions.
type word struct {
	text   string
	labels []string // of documents that have it
	fields []string // "title", "content"
	count  int
}

// has says whether the word is of one of the labels and one of the fields; none
// are any.
func (x word) has(labels, fields []string) bool {
	anyOf := func(want, have []string) bool {
		return len(want) == 0 || slices.ContainsFunc(want, func(s string) bool { return slices.Contains(have, s) })
	}
	return anyOf(labels, x.labels) && anyOf(fields, x.fields)
}

// countWords lists the words of docs, the most frequent first.
func countWords(docs []doc) []word {
	var words []word
	at := map[string]int{}
	add := func(d doc, field string, tokens []string) {
		for _, text := range tokens {
			i, ok := at[text]
			if !ok {
				i = len(words)
				at[text] = i
				words = append(words, word{text: text})
			}
			words[i].count++
			for list, value := range map[*[]string]string{&words[i].labels: d.Label, &words[i].fields: field} {
				if !slices.Contains(*list, value) {
					*list = append(*list, value)
				}
			}
		}
	}
	for _, d := range docs {
		add(d, "title", d.title)
		add(d, "content", d.content)
	}
	slices.SortStableFunc(words, func(a, b word) int { return b.count - a.count })
	return words
}
