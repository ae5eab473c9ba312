package config_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/config"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// settings has a field of every kind that a configuration may hold.
type settings struct {
	BaseURL string `json:"baseUrl"`
	Limits  struct {
		MaxPageSize int     `json:"maxPageSize"`
		Ratio       float64 `json:"ratio"`
		Small       int8    `json:"small"`
	} `json:"limits"`
	Hosts   []string `json:"hosts"`
	Enabled bool     `json:"enabled"`
	Extra   *extra   `json:"extra"`
	Servers []extra  `json:"servers"`
	People  []person `json:"people"`
	Auth    struct {
		AuthToken string   `json:"authToken"`
		Tokens    []string `json:"tokens"`
	} `json:"auth"`
}

type extra struct {
	Name string `json:"name"`
}

type person struct {
	Name   string   `config:"key"`
	Age    int      `json:"age"`
	SHA256 string   `json:"sha256"`
	Tags   []string `json:"tags"`
}

func defaults() *settings {
	s := &settings{BaseURL: "http://default", Hosts: []string{"a", "b"}, Enabled: true}
	s.Limits.MaxPageSize = 100
	s.Limits.Ratio = 0.5
	return s
}

// env has two variables.
func env(name string) (string, bool) {
	value, ok := map[string]string{"HOST": "example.com", "EMPTY": ""}[name]
	return value, ok
}

func read(text string, into any) (*config.File, error) {
	return config.Read("config.json", strings.NewReader(text), into, config.Options{Env: env})
}

func TestRead(t *testing.T) {
	tests := []struct {
		name, text string
		change     func(*settings)
	}{
		{"empty object keeps the defaults", `{}`, func(*settings) {}},
		{"byte order mark", "\ufeff{\"enabled\":false}", func(s *settings) { s.Enabled = false }},
		{"nested value keeps its neighbours", `{"limits":{"maxPageSize":7}}`,
			func(s *settings) { s.Limits.MaxPageSize = 7 }},
		{"case of keys", `{"BASEURL":"x","Limits":{"MAXPAGESIZE":-3}}`,
			func(s *settings) { s.BaseURL, s.Limits.MaxPageSize = "x", -3 }},
		{"floats", `{"limits":{"ratio":1.5e-2}}`, func(s *settings) { s.Limits.Ratio = 0.015 }},
		{"list replaces the default", `{"hosts":["c"]}`, func(s *settings) { s.Hosts = []string{"c"} }},
		{"empty list replaces the default", `{"hosts":[]}`, func(s *settings) { s.Hosts = []string{} }},
		{"pointer", `{"extra":{"name":"n"}}`, func(s *settings) { s.Extra = &extra{"n"} }},
		{"list of objects", `{"servers":[{"name":"n"},{}]}`, func(s *settings) { s.Servers = []extra{{"n"}, {}} }},
		{"named objects", `{"people":{"b":{"age":7},"B":{},"a.c d":{"tags":["x"]},"":{}}}`, func(s *settings) {
			s.People = []person{{Name: "b", Age: 7}, {Name: "B"}, {Name: "a.c d", Tags: []string{"x"}}, {}}
		}},
		{"variable", `{"baseUrl":"http://${HOST}/${EMPTY}x","hosts":["${HOST}"]}`,
			func(s *settings) { s.BaseURL, s.Hosts = "http://example.com/x", []string{"example.com"} }},
		{"escaped variable", `{"baseUrl":"$${HOST} $$ $HOST $"}`,
			func(s *settings) { s.BaseURL = "${HOST} $$ $HOST $" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, want := defaults(), defaults()
			tt.change(want)
			if _, err := read(tt.text, got); err != nil {
				t.Fatalf("Read(%s): %v", tt.text, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Read(%s) differs (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		// syntax
		{``, `config.json:1:1: invalid JSON: unexpected end of JSON input`},
		{"{ bad json }", `config.json:1:3: invalid JSON: invalid character 'b' looking for beginning of object key string`},
		{"{\n \"enabled\": true,\n}", `config.json:3:1: invalid JSON: invalid character '}' looking for beginning of object key string`},
		{"{\n \"hosts\": [\"ä\", x]}", `config.json:2:17: invalid JSON: invalid character 'x' looking for beginning of value`},
		{"{} {}", `config.json:1:4: invalid JSON: invalid character '{' after top-level value`},
		{"{\"baseUrl\":\"", `config.json:1:13: invalid JSON: unexpected end of JSON input`},
		{"{\n\"baseUrl\":\"\xff\"}", `config.json:2:12: the file is not UTF-8, want text in UTF-8`},
		{"\xff\xfe{\x00", `config.json:1:1: the file is not UTF-8, want text in UTF-8`},
		// keys
		{`{"limits":{"maxPagesize ":1}}`, `config.json:1:12: limits: unknown key "maxPagesize ", want "maxPageSize"`},
		{`{"baseURI":1}`, `config.json:1:2: unknown key "baseURI", want "baseUrl"`},
		{`{"zzz":1}`, `config.json:1:2: unknown key "zzz", want one of baseUrl, limits, hosts, enabled, extra, servers, people, auth`},
		{`{"limits":{"baseUrl":1}}`, `config.json:1:12: limits: unknown key "baseUrl", want "baseUrl" at the top level`},
		{`{"MAXPAGESIZE":1}`, `config.json:1:2: unknown key "MAXPAGESIZE", want "maxPageSize" in limits`},
		{`{"limits":{"token":1}}`, `config.json:1:12: limits: unknown key "token", want one of maxPageSize, ratio, small`},
		{`{"limits":{"":1}}`, `config.json:1:12: limits: unknown key "", want one of maxPageSize, ratio, small`},
		{`{"auth":{"host":1}}`, `config.json:1:10: auth: unknown key "host", want one of authToken, tokens`},
		{`{"auth":{"tokens":[],"hosts":1}}`, `config.json:1:22: auth: unknown key "hosts", want "hosts" at the top level`},
		{`{"servers":[{},{"nam":1}]}`, `config.json:1:17: servers[1]: unknown key "nam", want "name"`},
		{"{\"enabled\":true,\n\"Enabled\":true}", `config.json:2:1: enabled: given twice, first in line 1`},
		{"{\"people\":{\"ann\":{},\n\"ann\":{}}}", `config.json:2:1: people.ann: given twice, first in line 1`},
		{`{"people":{"ann":{"aeg":1}}}`, `config.json:1:19: people.ann: unknown key "aeg", want "age"`},
		// types
		{`{"people":[]}`, `config.json:1:11: people: got a list, want an object`},
		{`{"people":{"a.b c":{"age":"x"}}}`, `config.json:1:27: people."a.b c".age: got "x", want an integer`},
		{`{"people":{"ann":5}}`, `config.json:1:18: people.ann: got 5, want an object`},
		{`{"people":{"ann":{"tags":null}}}`, `config.json:1:26: people.ann.tags: got null, want a list`},
		{`{"people":{"ann":{"sha256":5}}}`, `config.json:1:28: people.ann.sha256: got a value that is not shown, want a string`},
		{`[]`, `config.json:1:1: got a list, want an object`},
		{`"x"`, `config.json:1:1: got "x", want an object`},
		{`{"limits":{"maxPageSize":"5"}}`, `config.json:1:26: limits.maxPageSize: got "5", want an integer`},
		{`{"limits":{"maxPageSize":5.5}}`, `config.json:1:26: limits.maxPageSize: got 5.5, want an integer`},
		{`{"limits":{"maxPageSize":99999999999999999999}}`,
			`config.json:1:26: limits.maxPageSize: got 99999999999999999999, want an integer`},
		{`{"limits":{"small":128}}`, `config.json:1:20: limits.small: got 128, want an integer`},
		{`{"limits":{"ratio":"x"}}`, `config.json:1:20: limits.ratio: got "x", want a number`},
		{`{"limits":5}`, `config.json:1:11: limits: got 5, want an object`},
		{`{"limits":[]}`, `config.json:1:11: limits: got a list, want an object`},
		{`{"hosts":"a"}`, `config.json:1:10: hosts: got "a", want a list`},
		{`{"hosts":{"a":1}}`, `config.json:1:10: hosts: got an object, want a list`},
		{`{"hosts":["a", 5]}`, `config.json:1:16: hosts[1]: got 5, want a string`},
		{`{"enabled":"true"}`, `config.json:1:12: enabled: got "true", want true or false`},
		{`{"enabled":null}`, `config.json:1:12: enabled: got null, want true or false`},
		{`{"baseUrl":{"x":[1]}}`, `config.json:1:12: baseUrl: got an object, want a string`},
		{`{"baseUrl":[1]}`, `config.json:1:12: baseUrl: got a list, want a string`},
		// variables
		{`{"baseUrl":"${NOPE}"}`, `config.json:1:12: baseUrl: environment variable NOPE is not set`},
		{`{"baseUrl":"a${"}`, `config.json:1:12: baseUrl: "${" without a variable's name, want ${NAME}, or $${ for a literal "${"`},
		{`{"baseUrl":"${1X}"}`, `config.json:1:12: baseUrl: "${" without a variable's name, want ${NAME}, or $${ for a literal "${"`},
		// secrets
		{`{"auth":{"authToken":12345}}`, `config.json:1:22: auth.authToken: got a value that is not shown, want a string`},
		{`{"auth":{"tokens":["a", 5]}}`, `config.json:1:25: auth.tokens[1]: got a value that is not shown, want a string`},
	}
	for _, tt := range tests {
		_, err := read(tt.text, defaults())
		if err == nil {
			t.Errorf("Read(%q) succeeded, want %q", tt.text, tt.want)
			continue
		}
		if err.Error() != tt.want {
			t.Errorf("Read(%q)\n got %q\nwant %q", tt.text, err.Error(), tt.want)
		}
		if !errors.Is(err, errkind.Invalid) {
			t.Errorf("Read(%q) = %v, which is not of kind Invalid", tt.text, err)
		}
	}
}

func TestReadBounds(t *testing.T) {
	_, err := read(`{"baseUrl":"`+strings.Repeat("x", config.MaxSize)+`"}`, defaults())
	if want := "want a file of at most 1048576 bytes"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Read(a large file) = %v, want an error with %q", err, want)
	}
	long := strings.Repeat("é", 500)
	_, err = read(`{"enabled":"`+long+`"}`, defaults())
	if err == nil || len(err.Error()) > 300 || !strings.Contains(err.Error(), "éé…") {
		t.Errorf("Read(a long value) = %v, want an error that cuts the value", err)
	}
	_, err = read(`{"`+long+`":1}`, defaults())
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("Read(a long key) = %v, want an error that cuts the key", err)
	}
	deep := strings.Repeat("[", 20_000)
	if _, err = read(`{"x":`+deep, defaults()); err == nil {
		t.Errorf("Read(deep nesting) succeeded")
	}
}

// TestNulls checks that null counts as a missing key, and only if that is asked for.
func TestNulls(t *testing.T) {
	got := defaults()
	f, err := config.Read("config.json", strings.NewReader(`{"baseUrl":null,"hosts":null,"extra":null,"limits":null,`+
		`"people":{"ann":{"tags":null,"age":null}}}`), got, config.Options{Nulls: true})
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.People = []person{{Name: "ann"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if f.Has("extra") || f.Has("people.ann.age") || !f.Has("people.ann") {
		t.Error("a value of null is in the file")
	}
	if _, err := config.Read("config.json", strings.NewReader("null"), got, config.Options{Nulls: true}); err == nil {
		t.Error("a file with null has no error")
	}
}

func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "none.json")
	if _, err := config.ReadFile(name, defaults(), config.Options{}); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), name) {
		t.Errorf("ReadFile(missing) = %v, want fs.ErrNotExist with the file's name", err)
	}
}

func TestReadInto(t *testing.T) {
	for _, into := range []any{nil, settings{}, (*settings)(nil), new(int), &struct {
		C chan int `json:"c"`
	}{}} {
		if _, err := read(`{"c":1}`, into); err == nil || errors.Is(err, errkind.Invalid) {
			t.Errorf("Read into a %T = %v, want an internal error", into, err)
		}
	}
}

func TestFile(t *testing.T) {
	f, err := read("{\n  \"LIMITS\": {\"maxpagesize\": 150},\n  \"hosts\": [\"a\",\n \"b c\"],\n"+
		"  \"baseUrl\": \"http://me:${HOST}@h/\",\n  \"auth\": {\"authToken\": \"hunter2\"}}", defaults())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"limits.maxPageSize": true, "hosts[1]": true, "hosts[2]": false,
		"limits.ratio": false, "extra": false} {
		if got := f.Has(path); got != want {
			t.Errorf("Has(%q) = %v, want %v", path, got, want)
		}
	}
	tests := []struct {
		got  *config.Error
		want string
	}{
		{f.Bad("limits.maxPageSize", "an integer from 1 to 100"),
			`config.json:2:29: limits.maxPageSize: got 150, want an integer from 1 to 100`},
		{f.Bad("hosts[1]", "a host"), `config.json:4:2: hosts[1]: got "b c", want a host`},
		{f.Bad("limits.ratio", "a ratio"), `config.json:2:13: limits.ratio: missing, want a ratio`},
		{f.Bad("extra.name", "a name"), `config.json:1:1: extra.name: missing, want a name`},
		{f.Bad("baseUrl", "a URL"), `config.json:5:14: baseUrl: got "...@h/", want a URL`},
		{f.Bad("auth.authToken", "another"), `config.json:6:25: auth.authToken: got a value that is not shown, want another`},
		{f.Refuse("hosts", "cannot be used yet"), `config.json:3:12: hosts: cannot be used yet`},
	}
	for _, tt := range tests {
		if tt.got.Error() != tt.want {
			t.Errorf("got  %q\nwant %q", tt.got.Error(), tt.want)
		}
	}
}

// TestExpanded checks that the error for a value with variables shows what it became, on
// one line and without secrets.
func TestExpanded(t *testing.T) {
	lookup := func(name string) (string, bool) {
		return map[string]string{"A": "a b", "LINES": "x\ny\x1b", "LONG": strings.Repeat("é", 500), "LOGIN": "me:hunter2",
			"QUERY": "http://h/p?key=hunter2", "TOKEN": "hunter2", "EMPTY": ""}[name], true
	}
	for _, tt := range []struct{ path, value, want string }{
		{"baseUrl", "${A}", `got "a b" (from "${A}")`},
		{"baseUrl", "${EMPTY}", `got "" (from "${EMPTY}")`},
		{"baseUrl", "x${LINES}", `got "xx\ny\x1b" (from "x${LINES}")`},
		{"baseUrl", "http://${LOGIN}@h", `got "...@h"`},
		{"baseUrl", "${QUERY}", `got "http://h/p?..." (from "${QUERY}")`},
		{"baseUrl", "${LONG}", `got "` + strings.Repeat("é", 78) + `… (from "${LONG}")`},
		{"auth.authToken", "${TOKEN}", "got a value that is not shown"},
		{"baseUrl", "plain", `got "plain"`},
	} {
		text := `{"` + strings.ReplaceAll(tt.path, ".", `":{"`) + `":"` + tt.value + `"}` + strings.Repeat("}",
			strings.Count(tt.path, "."))
		f, err := config.Read("config.json", strings.NewReader(text), defaults(), config.Options{Env: lookup})
		if err != nil {
			t.Fatalf("Read(%s): %v", text, err)
		}
		if _, got, _ := strings.Cut(f.Bad(tt.path, "").Error(), tt.path+": "); got != tt.want {
			t.Errorf("the error for %s is\n%s, want\n%s", text, got, tt.want)
		}
	}
}

// FuzzRead checks that no file makes Read panic, that what it refuses comes
// with a place inside the file, and that secrets do not show.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{}`, `{"limits":{"maxPageSize":7},"hosts":["a"]}`, `{"baseUrl":"${HOST}$${"}`,
		`{"auth":{"authToken":"S3CRET!"}}`,
		`{"auth":{"tokens":["S3CRET!",5]}}`, "{\n\"enabled\":true,\n\"ENABLED\":1}", `{"extra":{"name":null}}`, `[[[[`,
		"\ufeff{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := read(text, defaults())
		if err == nil {
			if !strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(text, "\ufeff"), " \t\r\n"), "{") {
				t.Errorf("Read(%q) succeeded without an object", text)
			}
			err = file.Bad("auth.authToken", "another")
		}
		var e *config.Error
		if !errors.As(err, &e) {
			t.Fatalf("Read(%q) = %v, which is no *Error", text, err)
		}
		if lines := strings.Count(text, "\n") + 1; e.Line < 1 || e.Line > lines || e.Column < 1 {
			t.Errorf("Read(%q) points at %d:%d of %d lines", text, e.Line, e.Column, lines)
		}
		if strings.Contains(e.Error(), "S3CRET!") && strings.Count(text, "S3CRET!") == 1 &&
			strings.HasPrefix(text, `{"auth":{"authToken":"S3CRET!"`) {
			t.Errorf("Read(%q) = %v shows a secret", text, err)
		}
		if strings.ContainsAny(e.Error(), "\n\r\x00") {
			t.Errorf("Read(%q) = %q has control characters", text, e.Error())
		}
	})
}
