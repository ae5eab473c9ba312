package fessserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A recording is an exchange with a real Fess server. Of a list of hits its
// answer has the first alone.
type recording struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Target  string            `json:"target"`
	Headers map[string]string `json:"headers"`
	Status  int               `json:"status"`
	Type    string            `json:"type"`
	Allow   string            `json:"allow"`
	Body    any               `json:"body"` // nil where the answer is no JSON
}

// recordings reads the exchanges with one server.
func recordings(t *testing.T, file string) []recording {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all []recording
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// An exception is a difference from Fess that is meant: those differences of
// recordings whose names match, that match.
type exception struct{ name, difference, reason string }

// A matched backend finds as many documents as the recorded server did, so that
// what follows from their number can be compared.
type matched struct {
	search.Service
	total *int // nil: as many as there are
}

// Search changes the number of documents found and the length of the page.
func (m *matched) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	p, err := m.Service.Search(ctx, q)
	if err != nil || m.total == nil {
		return p, err
	}
	p.Total = *m.total
	n := max(min(q.Num, p.Total-q.Start), 0)
	for len(p.Hits) < n {
		p.Hits = append(p.Hits, search.Hit{ID: "x", Title: "x", URL: "http://127.0.0.1/", Filename: "x",
			FileType: "html", MIMEType: "text/html",
			Digest: search.Excerpt{Text: "x"}, Size: 1, Created: time.Unix(0, 0), Modified: time.Unix(0, 0),
			Timestamp: time.Unix(0, 0)})
	}
	p.Hits = p.Hits[:n]
	return p, nil
}

// recorded returns the number of documents that a recorded answer tells, nil
// where it does not or tells no exact one.
func (r recording) recorded() *int {
	body, _ := r.Body.(map[string]any)
	if inner, ok := body["response"].(map[string]any); ok {
		body = inner
	}
	n, ok := body["record_count"].(float64)
	if !ok || body["record_count_relation"] != "EQUAL_TO" {
		return nil
	}
	return new(int(n))
}

// replay asks what was asked of a real server, and compares the answers.
func replay(t *testing.T, file string, exceptions []exception) {
	backend := &matched{Service: open(t, corpus(t))}
	h := fessserver.New(fessserver.Options{Backend: backend})
	all := recordings(t, file)
	rows := rowTypes(all)
	used := make([]bool, len(exceptions))
	equal := 0
	for _, r := range all {
		backend.total = r.recorded()
		c := comparison{rows: rows}
		c.exchange(t, r, ask(t, h, r.Method, r.Target, r.Headers))
		if len(c.found) == 0 {
			equal++
		}
		if left := unexplained(r.Name, c.found, exceptions, used); len(left) > 0 {
			t.Errorf("%s: %s %.150s\n\t%s", r.Name, r.Method, r.Target, strings.Join(left, "\n\t"))
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("exception %q %q (%s) excuses nothing", e.name, e.difference, e.reason)
		}
	}
	t.Logf("%d of %d answers are those of Fess without exception", equal, len(all))
}

// unexplained drops the differences that are meant, and notes which exceptions
// were of use.
func unexplained(name string, found []string, exceptions []exception, used []bool) []string {
	return slices.DeleteFunc(slices.Clone(found), func(difference string) bool {
		meant := false
		for i, e := range exceptions {
			if regexp.MustCompile("^(?:"+e.name+")$").MatchString(name) &&
				regexp.MustCompile(e.difference).MatchString(difference) {
				used[i], meant = true, true
			}
		}
		return meant
	})
}

// exchange compares a recorded answer with ours.
func (c *comparison) exchange(t *testing.T, r recording, w *httptest.ResponseRecorder) {
	t.Helper()
	c.value("status", float64(r.Status), float64(w.Code))
	if got := w.Header().Get("Content-Type"); fold(got) != fold(r.Type) {
		c.say("type", "recorded %q, here %q", r.Type, got)
	}
	c.value("allow", r.Allow, w.Header().Get("Allow"))
	if len(c.found) > 0 || r.Body == nil {
		return
	}
	var here any
	if err := json.Unmarshal(w.Body.Bytes(), &here); err != nil {
		t.Fatalf("%s: the answer %q is no JSON: %v", r.Name, w.Body, err)
	}
	c.any("", "", r.Body, here)
}

func fold(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "")) }

// kindOf is the JSON type of a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// A rowType describes the recorded rows of a list: types by key, and the keys
// that all have.
type rowType struct {
	types  map[string]string
	always map[string]bool
}

// rowTypes learns from all recorded hits what a hit looks like.
func rowTypes(all []recording) rowType {
	rows := rowType{types: map[string]string{}}
	for _, r := range all {
		body, _ := r.Body.(map[string]any)
		if inner, ok := body["response"].(map[string]any); ok {
			body = inner
		}
		data, _ := body["data"].([]any)
		for _, x := range data {
			row, ok := x.(map[string]any)
			if !ok || row["doc_id"] == nil {
				continue
			}
			first := rows.always == nil
			if first {
				rows.always = map[string]bool{}
			}
			for k, v := range row {
				rows.types[k] = kindOf(v)
				if first {
					rows.always[k] = true
				}
			}
			for k := range rows.always {
				if _, ok := row[k]; !ok {
					delete(rows.always, k)
				}
			}
		}
	}
	return rows
}

// A comparison collects the differences of two answers.
type comparison struct {
	rows  rowType
	found []string
}

func (c *comparison) say(where, format string, args ...any) {
	c.found = append(c.found, where+": "+fmt.Sprintf(format, args...))
}

// value compares two values.
func (c *comparison) value(where string, old, now any) {
	if !gocmp.Equal(old, now) {
		c.say(where, "recorded %.100v, here %.100v", old, now)
	}
}

// What is not compared, beside its presence and its type.
var (
	// These are others at each call.
	random = []string{"query_id", "exec_time", "query_time", "requested_time", "error_code:", "csrf_token"}
	// These follow from the number of hits.
	ofCount = []string{"page_count", "page_numbers", "next_page", "start_record_number", "end_record_number", "data",
		"facet_field", "facet_query"}
	// Lists of these belong to a server.
	configured = []string{"locales", "theme", "features", "sort_options", "num_options", "lang_options",
		"notifications", "facet_views",
		"filetype_options", "site_name", "created", "content", "url"}
)

// any compares two JSON values.
func (c *comparison) any(where, key string, old, now any) {
	if kindOf(old) != kindOf(now) {
		c.say(where, "recorded %s (%.60v), here %s (%.60v)", kindOf(old), old, kindOf(now), now)
		return
	}
	switch old := old.(type) {
	case map[string]any:
		c.object(where, old, now.(map[string]any))
	case []any:
		c.list(where, key, old, now.([]any))
	default:
		if key == "highlight_params" && old != nil {
			c.value(where, sorted(old.(string)), sorted(now.(string)))
		} else if !slices.Contains(random, key) && !slices.Contains(configured, key) {
			c.value(where, old, now)
		}
	}
}

// sorted brings the terms to highlight into one order: Fess's is that of a hash.
func sorted(params string) string {
	terms := strings.Split(params, "&")
	slices.Sort(terms)
	return strings.Join(terms, "&")
}

// object compares two JSON objects.
func (c *comparison) object(where string, old, now map[string]any) {
	for k := range now {
		if _, ok := old[k]; !ok {
			c.say(where, "key %s is not in the recording", k)
		}
	}
	other := !gocmp.Equal(old["record_count"], now["record_count"])
	for _, k := range slices.Sorted(keys(old)) {
		v, ok := now[k]
		switch {
		case !ok:
			c.say(where, "key %s is missing", k)
		case other && slices.Contains(ofCount, k):
			if kindOf(old[k]) != kindOf(v) {
				c.say(where+"."+k, "recorded %s, here %s", kindOf(old[k]), kindOf(v))
			}
			if rows, ok := v.([]any); ok && len(rows) > 0 && hasKey(rows[0], "doc_id") {
				c.hits(where, rows)
			}
		default:
			c.any(where+"."+k, k, old[k], v)
		}
	}
}

func keys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// list compares two lists. Words are a server's own affair.
func (c *comparison) list(where, key string, old, now []any) {
	switch {
	case key == "data" && len(now) > 0 && hasKey(now[0], "doc_id"):
		c.value(where+" is empty", len(old) == 0, len(now) == 0)
		c.hits(where, now)
	case key == "data" && len(now) > 0 && hasKey(now[0], "text"), key == "suggest_words":
		if len(old) > 0 && len(now) > 0 {
			c.keysOf(where, old[0], now[0])
		}
	case slices.Contains(configured, key):
		if len(old) > 0 && len(now) > 0 {
			c.keysOf(where, old[0], now[0])
		}
	case key == "popular_words", key == "data" && len(old)+len(now) > 0 && kindOf(append(old, now...)[0]) == "string":
	case len(old) != len(now):
		c.say(where, "%d items recorded, %d here", len(old), len(now))
	default:
		for i, x := range old {
			y := now[i]
			if j := slices.IndexFunc(now, func(y any) bool { return sameName(x, y) }); j >= 0 {
				y = now[j]
			}
			c.any(fmt.Sprintf("%s[%d]", where, i), "", x, y)
		}
	}
}

// keysOf compares the keys of two objects.
func (c *comparison) keysOf(where string, old, now any) {
	a, _ := old.(map[string]any)
	b, _ := now.(map[string]any)
	c.value(where+" keys", slices.Sorted(keys(a)), slices.Sorted(keys(b)))
}

// hasKey reports whether a value is an object with a key.
func hasKey(v any, key string) bool {
	m, _ := v.(map[string]any)
	_, ok := m[key]
	return ok
}

// sameName reports whether two items of a list are about the same thing.
func sameName(x, y any) bool {
	a, _ := x.(map[string]any)
	b, _ := y.(map[string]any)
	for _, k := range []string{"value", "name"} {
		if a[k] != nil {
			return a[k] == b[k]
		}
	}
	return false
}

// hits checks that rows look like recorded ones.
func (c *comparison) hits(where string, rows []any) {
	for _, x := range rows {
		row, _ := x.(map[string]any)
		for k := range c.rows.always {
			if _, ok := row[k]; !ok && k != "score" {
				c.say(where, "a hit lacks %s, which all recorded ones have", k)
			}
		}
		for k, v := range row {
			if want, ok := c.rows.types[k]; !ok {
				c.say(where, "a hit has %s, which no recorded one has", k)
			} else if want != kindOf(v) {
				c.say(where, "a hit's %s is a %s, recorded %s", k, kindOf(v), want)
			}
		}
	}
	slices.Sort(c.found)
	c.found = slices.Compact(c.found)
}
