package fesstest

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// The access tokens that were valid when the recordings were made.
const (
	adminToken = "E44TjYrJQadtGBFFuECA0SBqqVtqj7lRGmhYep53ixNdvlRxnkhwqCVCpRoO"
	boardToken = "board000000000000000000000000000000000000000000000000000000"
)

// exceptions are the recordings that the fake answers differently, and why.
var exceptions = []struct{ name, why string }{
	{`^v1/admin-(doc|labeltypes)`, "the admin API is not implemented"},
	{`^v1/(go-|path-root)`, "of the web pages, only that of a stored copy is implemented"},
	{`^v1/ctx-unknown-path`, "Tomcat chooses the charset of an empty page"},
	{`^v1/down-popular-cached`, "a cached answer from before the engine was down"},
	{`^v1/(suggest-elevate|suggest-field-default|suggest-ja-reading)$`,
		"words that were added or searched for, and Japanese readings, are not implemented"},
	{`^v1/search-ja-katakana-halfwidth`, "words are not folded to one width"},
	{`^v2/(auth-me|auth-wrong-ui-config|click|down-ui-config|related-|ui-config)`, "calls that the client never makes"},
	{`/(scroll|down-scroll|auth-wrong-documents-all|fav|auth-wrong-favorites)`, "calls that the client never makes"},
	{`/(as-|sdh$|search-track-total-)`, "parameters that the client never sends"},
}

// A setting is a configuration of a recorded server.
type setting struct {
	name   string // matches the names of the recordings of this server
	change func(*Options)
}

// settings are the configurations. The first one that matches applies.
var settings = []setting{
	{`^(ctx-|exc-included-)`, func(o *Options) { o.ContextPath, o.StackTraces = "/fess", true }},
	{`^down-`, func(o *Options) { o.Engine = "down" }},
	{`^(health-red|red-)`, func(o *Options) { o.Engine = "red" }},
	{`^health-yellow`, func(o *Options) { o.Engine = "yellow" }},
	{``, func(*Options) {}},
}

// TestReplay sends every recorded request to the fake and compares the form of
// the answers: status, content type, the keys of every object and the type of
// every value. Values are not compared, because the fake has no search engine.
func TestReplay(t *testing.T) {
	used, compared := map[string]bool{}, 0
	for _, folder := range []string{"v1", "v1-plugin-15.7", "v2"} {
		all := Recordings(t, path.Join("..", "testdata", "recordings", folder+".jsonl.gz"))
		known := learn(all)
		for i, s := range settings {
			group := slices.Clone(all)
			group = slices.DeleteFunc(group, func(r Recording) bool { return settingOf(r.Name) != i })
			o := Options{Roles: map[string][]string{adminToken: {"Radmin-api"}, boardToken: {"Rboard"}}}
			o.OmitColon = folder == "v1-plugin-15.7"
			if folder == "v2" {
				o.API = "both"
			}
			s.change(&o)
			h := corpus(t, o, all, group)
			for _, r := range group {
				diffs := compare(h, r, known)
				if why := exceptionFor(folder+"/"+r.Name, used); why != "" {
					continue
				}
				compared++
				if len(diffs) > 0 {
					t.Errorf("%s/%s: %s %s?%.150s\n\t%s", folder, r.Name, r.Method, r.Path, r.Query,
						strings.Join(diffs, "\n\t"))
				}
			}
		}
	}
	for _, e := range exceptions {
		if !used[e.name] {
			t.Errorf("exception %s matches no recording", e.name)
		}
	}
	if compared < 440 {
		t.Errorf("%d answers were compared, want almost all of those to the requests of the client, 440", compared)
	}
}

func settingOf(name string) int {
	return slices.IndexFunc(settings, func(s setting) bool { return matches(s.name, name) })
}

// patterns are the compiled patterns; each is matched with hundreds of names.
var patterns = map[string]*regexp.Regexp{}

// matches reports whether a name matches a pattern.
func matches(pattern, name string) bool {
	if patterns[pattern] == nil {
		patterns[pattern] = regexp.MustCompile(pattern)
	}
	return patterns[pattern].MatchString(name)
}

// exceptionFor returns why a recording is an exception, "" if it is not.
func exceptionFor(name string, used map[string]bool) string {
	for _, e := range exceptions {
		if matches(e.name, name) {
			used[e.name] = true
			return e.why
		}
	}
	return ""
}

// A loaded is a document that was loaded into the recorded servers.
type loaded struct {
	URL, Title, Content, MIMEType, FileType, Host, Filename, Cache string

	Role, Lang, Label []string
	Length            int64     `json:"content_length"`
	Modified          time.Time `json:"last_modified"`
	Location          *struct{ Lat, Lon float64 }
	Repeat            struct {
		Text  string
		Times int
	} `json:"content_repeat"`
	Tail string `json:"content_tail"`
}

// more returns the properties that a document.Document does not have.
func (d loaded) more() More {
	m := More{Labels: append([]string{}, d.Label...), Copy: d.Cache, Loaded: true}
	if !slices.Contains(d.Role, "Rguest") {
		m.Roles = d.Role
	}
	if d.Location != nil {
		m.Point = fmt.Sprintf("%v,%v", d.Location.Lat, d.Location.Lon)
	}
	return m
}

// corpus returns a fake with the documents of the recorded servers and their
// document IDs from the recordings.
func corpus(t *testing.T, o Options, all, group []Recording) *Handler {
	t.Helper()
	data, err := os.ReadFile("../testdata/corpus.json")
	if err != nil {
		t.Fatal(err)
	}
	var in struct{ Documents []loaded }
	if err := json.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, r := range append(slices.Clone(all), group...) {
		hits(parseAnswer(r.AnswerHeaders["Content-Type"], r.Answer), func(hit map[string]any) {
			if address, ok := hit["url"].(string); ok {
				ids[address], _ = hit["doc_id"].(string)
			}
		})
	}
	o.More = map[string]More{}
	var docs []document.Document
	for _, d := range in.Documents {
		sum := sha512.Sum512([]byte(d.URL))
		id := hex.EncodeToString(sum[:16])
		if ids[d.URL] != "" {
			id = ids[d.URL]
		}
		o.More[id] = d.more()
		docs = append(docs, document.Document{ID: id, URL: d.URL, Title: d.Title,
			Text:     d.Content + strings.Repeat(d.Repeat.Text, d.Repeat.Times) + d.Tail,
			MIMEType: d.MIMEType, FileType: d.FileType, Host: d.Host, Filename: d.Filename,
			Lang: strings.Join(d.Lang, ""), Modified: d.Modified,
			Size: d.Length})
	}
	o.Labels = []search.Label{{Name: "Finance", Value: "finance"}, {Name: "人事", Value: "hr"},
		{Name: "Tech", Value: "tech"}}
	o.HiddenLabels = []HiddenLabel{{Label: search.Label{Name: "Board", Value: "board"}, Role: "Rboard"},
		{Label: search.Label{Name: "Finance (French locale)", Value: "finance_fr"}, Locale: "fr"}}
	return NewHandler(docs, o)
}

// parseAnswer parses JSON, or lines of JSON as a list with the key "lines". It
// returns nil for any other answer.
func parseAnswer(contentType, body string) any {
	var v any
	if !strings.Contains(contentType, "ndjson") {
		_ = json.Unmarshal([]byte(body), &v) // v stays nil
		return v
	}
	lines := []any{}
	for line := range strings.Lines(body) {
		if json.Unmarshal([]byte(line), &v) != nil {
			return nil
		}
		lines = append(lines, v)
	}
	return map[string]any{"lines": lines}
}

// hits calls f for each object that has a doc_id.
func hits(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		if v["doc_id"] != nil {
			f(v)
		}
		for _, x := range v {
			hits(x, f)
		}
	case []any:
		for _, x := range v {
			hits(x, f)
		}
	}
}

// kind returns the name of the JSON type of a value.
func kind(v any) string {
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
		return "list"
	}
	return "object"
}

// items holds the types of the keys of list elements in the recordings, by the
// path of the request and the key of the list, and by the key in the element.
type items map[string]map[string]string

// learn returns the items of all recordings.
func learn(all []Recording) items {
	known := items{}
	for _, r := range all {
		walk(parseAnswer(r.AnswerHeaders["Content-Type"], r.Answer), func(key string, item map[string]any) {
			at := listName(r, key)
			if known[at] == nil {
				known[at] = map[string]string{}
			}
			for name, v := range item {
				known[at][name] = kind(v)
			}
		})
	}
	return known
}

// hexID matches a document's ID.
var hexID = regexp.MustCompile(`[0-9a-f]{32}`)

// listName returns the name of a list of an answer: the path and the key.
func listName(r Recording, key string) string {
	return hexID.ReplaceAllString(strings.TrimSuffix(r.Path, "/"), "ID") + " " + key
}

// walk calls f with the key of the list and the element for each object in a
// list.
func walk(v any, f func(string, map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			list, _ := x.([]any)
			for _, item := range list {
				if o, ok := item.(map[string]any); ok {
					f(key, o)
				}
			}
			walk(x, f)
		}
	case []any:
		for _, x := range v {
			walk(x, f)
		}
	}
}

// compare sends the recorded request to h and returns how the answer differs
// from the recorded one.
func compare(h *Handler, r Recording, known items) []string {
	req := &http.Request{Method: r.Method, URL: &url.URL{Path: r.Path, RawQuery: r.Query}, Header: http.Header{},
		Body: http.NoBody, RequestURI: r.Path + "?" + r.Query}
	if u, err := url.PathUnescape(r.Path); err == nil {
		req.URL.Path = u
	}
	if p, q, ok := strings.Cut(r.Path, "?"); ok {
		req.URL.Path, req.URL.RawQuery = p, q
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	w.Body = new(bytes.Buffer)
	h.ServeHTTP(w, req)
	h.Forget()
	var diffs []string
	report := func(format string, args ...any) { diffs = append(diffs, fmt.Sprintf(format, args...)) }
	if w.Code != r.Status {
		report("status %d, recorded %d", w.Code, r.Status)
	}
	normal := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "")) }
	if got, want := normal(w.Header().Get("Content-Type")), normal(r.AnswerHeaders["Content-Type"]); got != want {
		report("content type %q, recorded %q", got, want)
	}
	got, want := parseAnswer(w.Header().Get("Content-Type"), w.Body.String()),
		parseAnswer(r.AnswerHeaders["Content-Type"], r.Answer)
	if r.Method != http.MethodHead && strings.Contains(r.AnswerHeaders["Content-Type"], "json") {
		compareValues("answer", got, want, r, known, report)
	}
	return diffs
}

// compareValues compares two values of an answer.
func compareValues(at string, got, want any, r Recording, known items, report func(string, ...any)) {
	if kind(got) != kind(want) {
		report("%s is %s, recorded %s", at, kind(got), kind(want))
		return
	}
	o, ok := want.(map[string]any)
	if !ok {
		return
	}
	object, _ := got.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(o)) {
		v, ok := object[key]
		switch list, isList := v.([]any); {
		case !ok:
			report("%s has no %s", at, key)
		case isList && kind(o[key]) == "list":
			compareLists(at+"."+key, key, list, o[key].([]any), r, known, report)
		default:
			compareValues(at+"."+key, v, o[key], r, known, report)
		}
	}
	for key := range object {
		if _, ok := o[key]; !ok {
			report("%s has %s, which was not recorded", at, key)
		}
	}
}

// compareLists compares two lists. Either both are empty or neither is. The
// elements must have the type of the recorded ones, all keys that every
// recorded element has, and no keys that no recorded element of this list has.
func compareLists(at, key string, got, want []any, r Recording, known items, report func(string, ...any)) {
	if (len(got) == 0) != (len(want) == 0) {
		report("%s has %d items, recorded %d", at, len(got), len(want))
		return
	}
	always := map[string]bool{}
	for i, v := range want {
		o, _ := v.(map[string]any)
		if i == 0 {
			for name := range o {
				always[name] = true
			}
		}
		maps.DeleteFunc(always, func(name string, _ bool) bool { _, ok := o[name]; return !ok })
	}
	for _, v := range got {
		if kind(v) != kind(want[0]) {
			report("%s has items that are %s, recorded %s", at, kind(v), kind(want[0]))
			return
		}
		o, _ := v.(map[string]any)
		for name, x := range o {
			if was, ok := known[listName(r, key)][name]; !ok || was != kind(x) {
				report("%s: an item's %s is %s, recorded %q", at, name, kind(x), was)
			}
		}
		for name := range always {
			if _, ok := o[name]; !ok && len(want) > 1 {
				report("%s: an item has no %s", at, name)
			}
		}
	}
}
