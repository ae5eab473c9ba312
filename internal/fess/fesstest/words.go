package fesstest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

// suggest returns up to num words that begin with q, and the number of all such
// words.
func (h *Handler) suggest(values url.Values, num int, fields []string, caller roles) (found []word, total int) {
	for _, x := range h.words {
		if !strings.HasPrefix(x.text, strings.ToLower(values.Get("q"))) || !x.has(values["label"], fields, caller) {
			continue
		}
		if total++; len(found) < num {
			found = append(found, x)
		}
	}
	return found, total
}

// suggestWords serves words that begin with q.
func (h *Handler) suggestWords(w http.ResponseWriter, values url.Values, caller roles) {
	if !values.Has("q") || h.engineState() == "down" {
		h.fail(w, http.StatusInternalServerError)
		return
	}
	num, err := strconv.Atoi(values.Get("num"))
	if err != nil || num < 0 {
		num = 10
	}
	found, total := h.suggest(values, num, values["field"], caller)
	list := wire.Suggestions{QueryTime: 3, RecordCount: wire.Number(total), PageSize: new(wire.Number(len(found)))}
	for _, x := range found {
		list.Data = append(list.Data, wire.Suggestion{Text: new(wire.Text(x.text)), Labels: wire.Texts(x.labels)})
	}
	writeV1(w, http.StatusOK, list)
}

// popular returns the most frequent words of the documents. A real server
// returns the words that were searched for most, whose field is _default.
func (h *Handler) popular(values url.Values, caller roles) []wire.Text {
	found := []wire.Text{}
	if fields := wire.Values(values, "field"); len(fields) > 0 && !slices.Contains(fields, "_default") {
		return found
	}
	for _, x := range h.words {
		if len(found) < 10 && h.engineState() != "down" && x.has(values["label"], nil, caller) {
			found = append(found, wire.Text(x.text))
		}
	}
	return found
}

// A word is a word of the documents.
type word struct {
	text   string
	labels []string // of the documents that contain the word
	fields []string // "title", "content"
	docs   []doc
	count  int
}

// has reports whether the word has one of the labels and one of the fields, and
// is in a document that caller may see. An empty list of labels or fields is no
// condition.
func (x word) has(labels, fields []string, caller roles) bool {
	anyOf := func(want, have []string) bool {
		return len(want) == 0 || slices.ContainsFunc(want, func(s string) bool { return slices.Contains(have, s) })
	}
	return anyOf(labels, x.labels) && anyOf(fields, x.fields) && slices.ContainsFunc(x.docs, caller.canSee)
}

// countWords returns the words of docs, the most frequent first.
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
			x := &words[i]
			x.count++
			if len(x.docs) == 0 || x.docs[len(x.docs)-1].ID != d.ID {
				x.docs = append(x.docs, d)
			}
			for list, values := range map[*[]string][]string{&x.labels: d.labels(), &x.fields: {field}} {
				for _, v := range values {
					if !slices.Contains(*list, v) {
						*list = append(*list, v)
					}
				}
			}
		}
	}
	for _, d := range docs {
		add(d, "title", d.title.all)
		add(d, "content", d.content.all)
	}
	slices.SortStableFunc(words, func(a, b word) int { return b.count - a.count })
	return words
}
