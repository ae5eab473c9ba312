package invoke_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/invoke"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// openAPI returns the document as a tree.
func openAPI(t *testing.T, o invoke.Options) map[string]any {
	t.Helper()
	r := newRequest("GET", "/openapi.json", "")
	r.Header.Set("Authorization", "Bearer "+token)
	w := serve(o, r)
	wantHeaders(t, "/openapi.json", w)
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != 200 {
		t.Fatalf("GET /openapi.json answered %d %s (%v), want a JSON object", w.Code, w.Body, err)
	}
	if strings.Contains(w.Body.String(), `"@`) {
		t.Errorf("GET /openapi.json answered %s, want every @mark@ filled in", w.Body)
	}
	return doc
}

func TestOpenAPI(t *testing.T) {
	doc := openAPI(t, invoke.Options{Version: `1.2-"x"`, Port: 3333})
	got := []any{doc["openapi"], at(doc, "info", "version"), doc["servers"], doc["security"],
		at(doc, "components", "schemas", "ServerID", "enum")}
	want := []any{"3.1.0", `1.2-"x"`, []any{map[string]any{"url": "http://127.0.0.1:3333"}}, []any{},
		[]any{"dead", "echo", "picky"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("version, servers, security, ids (-want +got):\n%s", diff)
	}
	checkReferences(t, doc, doc)

	doc = openAPI(t, invoke.Options{NeedsToken: true, Servers: &meeting{}})
	got = []any{doc["servers"], doc["security"], at(doc, "components", "schemas", "ServerID", "enum")}
	want = []any{[]any{map[string]any{"url": "/"}}, []any{map[string]any{"bearer": []any{}}}, nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with a token and without servers or port (-want +got):\n%s", diff)
	}
}

// at follows names down a tree.
func at(tree any, names ...string) any {
	for _, name := range names {
		m, _ := tree.(map[string]any)
		tree = m[name]
	}
	return tree
}

// checkReferences reports references that lead nowhere.
func checkReferences(t *testing.T, doc map[string]any, part any) {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			checkReferences(t, doc, p)
		}
	case map[string]any:
		if to, ok := part["$ref"].(string); ok && at(doc, strings.Split(strings.TrimPrefix(to, "#/"), "/")...) == nil {
			t.Errorf("the reference %s leads nowhere", to)
		}
		for _, p := range part {
			checkReferences(t, doc, p)
		}
	}
}

// resolve makes a schema of the document ready to check values. References go
// to $defs, where this JSON Schema library looks for them.
func resolve(t *testing.T, doc map[string]any, schema any) *jsonschema.Resolved {
	t.Helper()
	text, err := json.Marshal(map[string]any{"allOf": []any{schema}, "$defs": at(doc, "components", "schemas")})
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")),
		&s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// Responses match their description in the document.
func TestOpenAPIAnswers(t *testing.T) {
	doc := openAPI(t, invoke.Options{NeedsToken: true})
	call := func(server string) string { return `{"server_id":"` + server + `","tool_name":"t"}` }
	seen := map[string]bool{}
	for _, tc := range []struct{ method, path, token, kind, body string }{
		{"GET", "/", "", "", ""},
		{"GET", "/servers", "s3cret", "", ""},
		{"GET", "/tools", "s3cret", "", ""},
		{"GET", "/tools?server=echo", "s3cret", "", ""},
		{"GET", "/tools?server=ecko", "s3cret", "", ""},
		{"GET", "/tools?server=off", "s3cret", "", ""},
		{"GET", "/tools", "", "", ""},
		{"GET", "/openapi.json", "s3cret", "", ""},
		{"POST", "/invoke", "s3cret", "application/json", call("echo")},
		{"POST", "/invoke", "s3cret", "application/json", call("ecko")},
		{"POST", "/invoke", "s3cret", "application/json", call("off")},
		{"POST", "/invoke", "s3cret", "application/json", call("dead")},
		{"POST", "/invoke", "s3cret", "application/json", call("slow")},
		{"POST", "/invoke", "s3cret", "application/json", call("picky")},
		{"POST", "/invoke", "s3cret", "application/json", call("terse")},
		{"POST", "/invoke", "s3cret", "application/json", call("broken")},
		{"POST", "/invoke", "s3cret", "application/json", call("crowded")},
		{"POST", "/invoke", "s3cret", "application/json", "{"},
		{"POST", "/invoke", "s3cret", "application/json", strings.Repeat(" ", 4<<20+1)},
		{"POST", "/invoke", "s3cret", "text/plain", "{}"},
		{"POST", "/invoke", "", "application/json", "{}"},
	} {
		r := newRequest(tc.method, tc.path, tc.body)
		r.Header.Set("Content-Type", tc.kind)
		r.Header.Set("Authorization", "Bearer "+tc.token)
		w := serve(invoke.Options{NeedsToken: true, Version: "1"}, r)
		name := fmt.Sprintf("%s %s with %.40q: %d", tc.method, tc.path, tc.body, w.Code)
		path, _, _ := strings.Cut(tc.path, "?")
		response := at(doc, "paths", path, strings.ToLower(tc.method), "responses", fmt.Sprint(w.Code))
		if to, ok := at(response, "$ref").(string); ok {
			response = at(doc, strings.Split(strings.TrimPrefix(to, "#/"), "/")...)
		}
		schema := at(response, "content", "application/json", "schema")
		if schema == nil {
			t.Errorf("%s, which the document does not name", name)
			continue
		}
		var answer any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if err := resolve(t, doc, schema).Validate(answer); err != nil {
			t.Errorf("%s: %s does not match the document: %v", name, w.Body, err)
		}
		if path == "/invoke" {
			seen[fmt.Sprint(w.Code)] = true
		}
	}
	responses, _ := at(doc, "paths", "/invoke", "post", "responses").(map[string]any)
	for status := range responses {
		if !seen[status] && status != "405" {
			t.Errorf("the document names status %s of /invoke, which no case gives", status)
		}
	}
}

// What the document says of requests is what we take.
func TestOpenAPIRequests(t *testing.T) {
	doc := openAPI(t, invoke.Options{})
	body, _ := at(doc, "paths", "/invoke", "post", "requestBody", "content", "application/json").(map[string]any)
	schema := resolve(t, doc, body["schema"])
	requests := []string{`{"server_id":"echo","tool_name":"t"}`,
		`{"server_id":"echo","tool_name":"t","arguments":{"a":1}}`,
		`{"server_id":"echo","method":"tools/list"}`, `{"server_id":"echo","method":"ping","params":{}}`,
		`{}`, `[]`, `{"server_id":"echo"}`, `{"tool_name":"t"}`, `{"server_id":5,"tool_name":"t"}`,
		`{"server_id":"echo","tool_name":""}`,
		`{"server_id":"echo","tool_name":"t","arguments":[]}`, `{"server_id":"echo","tool_name":"t","x":1}`,
		`{"server_id":"echo","method":"m","arguments":{}}`, `{"server_id":"echo","tool_name":"t","params":{}}`}
	examples, _ := body["examples"].(map[string]any)
	for _, example := range examples {
		text, err := json.Marshal(at(example, "value"))
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, strings.ReplaceAll(string(text), "everything", "echo"))
	}
	for i, request := range requests {
		var value any
		if err := json.Unmarshal([]byte(request), &value); err != nil {
			t.Fatal(err)
		}
		err := schema.Validate(value)
		w := serve(invoke.Options{}, newRequest(http.MethodPost, "/invoke", request))
		if got, want := err == nil, w.Code == 200; got != want || want != (i < 4 || i >= len(requests)-len(examples)) {
			t.Errorf("%s: the document says %v, the bridge answered %d %s", request, err, w.Code, w.Body)
		}
	}
	if !slices.Contains(requests, `{"arguments":{"message":"hello"},"server_id":"echo","tool_name":"echo"}`) {
		t.Errorf("requests = %q, want the document's examples among them", requests)
	}
}
