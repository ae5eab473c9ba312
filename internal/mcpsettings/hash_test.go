package mcpsettings_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// hashOf reads a file and returns its hash.
func hashOf(t *testing.T, text string, getenv func(string) (string, bool)) string {
	t.Helper()
	s, err := mcpsettings.Parse("f", []byte(text), getenv)
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	return s.Hash
}

const hashed = `{"mcpServers":{
 "a":{"command":"npx","args":["-y","pkg","${DIR}"],"env":{"MODE":"fast","API_KEY":"one"},"cwd":"/d","timeout":60},
 "b":{"url":"https://me:pw@h/mcp?token=one&x=1","headers":{"Authorization":"Bearer one ${T:-two}","X-Region":"eu"},"disabledTools":["z","y"]},
 "c":{"command":"c","disabled":true}}}`

func TestHash(t *testing.T) {
	base := hashOf(t, hashed, env)
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(base) {
		t.Errorf("Hash = %q, want 64 hexadecimal digits", base)
	}
	change := func(old, new string) string {
		t.Helper()
		if !strings.Contains(hashed, old) {
			t.Fatalf("no %q to change", old)
		}
		return strings.Replace(hashed, old, new, 1)
	}
	for name, text := range map[string]string{
		"white space": "\ufeff" + strings.ReplaceAll(hashed, ",", " ,\n\t"),
		"a comment":   "// c\n" + hashed,
		"order of keys": change(`"command":"npx","args":["-y","pkg","${DIR}"]`,
			`"args":["-y","pkg","${DIR}"],"command":"npx"`),
		"a key not used":     change(`"cwd":"/d"`, `"cwd":"/d","alwaysAllow":["x"],"zzz":1`),
		"enabled spelled":    change(`"cwd":"/d"`, `"cwd":"/d","enabled":true,"disabled":true`),
		"the type spelled":   change(`"cwd":"/d"`, `"cwd":"/d","type":"stdio"`),
		"a command list":     change(`"command":"npx","args":["-y",`, `"command":["npx","-y"],"args":[`),
		"order of patterns":  change(`["z","y"]`, `["y","z"]`),
		"an entry left out":  change(`{"mcpServers":{`, `{"x":1,"mcpServers":{"_":"text",`),
		"a disabled's args":  change(`"command":"c"`, `"command":"d"`),
		"a secret":           change(`"API_KEY":"one"`, `"API_KEY":"two"`),
		"a secret header":    change(`Bearer one`, `Bearer three`),
		"a secret default":   change(`${T:-two}`, `${T:-three}`),
		"a secret parameter": change(`token=one`, `token=two`),
		"credentials":        change(`me:pw@`, `me:other@`),
	} {
		if got := hashOf(t, text, env); got != base {
			t.Errorf("Hash after changing %s = %s, want %s as before", name, got, base)
		}
	}
	for name, text := range map[string]string{
		"a switch":           change(`"disabled":true`, `"disabled":false`),
		"the other switch":   change(`"cwd":"/d"`, `"cwd":"/d","disabled":true`),
		"an id":              change(`"c":`, `"d":`),
		"an argument":        change(`"pkg"`, `"pkg2"`),
		"a placeholder":      change(`${DIR}`, `${DIR2}`),
		"a variable":         change(`"MODE":"fast"`, `"MODE":"slow"`),
		"a variable's name":  change(`"API_KEY"`, `"API_KEY2"`),
		"a secret's source":  change(`${T:-two}`, `${T2:-two}`),
		"a folder":           change(`"/d"`, `"/e"`),
		"a header":           change(`"eu"`, `"us"`),
		"a host":             change(`@h/mcp`, `@i/mcp`),
		"a parameter":        change(`x=1`, `x=2`),
		"a pattern":          change(`["z","y"]`, `["z"]`),
		"a time limit":       change(`60`, `61`),
		"the transport":      change(`"headers"`, `"type":"sse","headers"`),
		"where tools go":     change(`disabledTools`, `enabledTools`),
		"a server left out":  change(`"c":{"command":"c","disabled":true}`, `"c":null`),
		"an order of values": change(`"-y","pkg"`, `"pkg","-y"`),
	} {
		if got := hashOf(t, text, env); got == base {
			t.Errorf("Hash after changing %s is what it was", name)
		}
	}
	none := func(string) (string, bool) { return "", false }
	if got := hashOf(t, hashed, none); got != base {
		t.Errorf("Hash without an environment = %s, want %s", got, base)
	}
}

func TestHashSecretArgs(t *testing.T) {
	file := func(args ...string) string {
		list, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return hashOf(t, `{"mcpServers":{"s":{"command":"c","args":`+string(list)+`}}}`, env)
	}
	for _, tc := range []struct {
		a, b []string
		same bool
	}{
		{[]string{"--api-key", "one"}, []string{"--api-key", "two"}, true},
		{[]string{"--token=one"}, []string{"--token=two"}, true},
		{[]string{"--header", "Authorization: Bearer one"}, []string{"--header", "Authorization: Bearer two"}, true},
		{[]string{"postgres://u:one@h/d"}, []string{"postgres://u:two@h/d"}, true},
		{[]string{"--token=one"}, []string{"--secret=one"}, false},
		{[]string{"--mode=one"}, []string{"--mode=two"}, false},
		{[]string{"token", "one"}, []string{"token", "two"}, false},
	} {
		if got := file(tc.a...) == file(tc.b...); got != tc.same {
			t.Errorf("the hashes of %q and %q are equal: %v, want %v", tc.a, tc.b, got, tc.same)
		}
	}
}

// The order of the servers in the file does not matter.
func TestHashOrder(t *testing.T) {
	const one, two = `"a":{"command":"x"}`, `"b":{"disabled":true}`
	a := hashOf(t, `{"mcpServers":{`+one+`,`+two+`}}`, env)
	b := hashOf(t, `{"mcpServers":{`+two+`,`+one+`}}`, env)
	c := hashOf(t, `{"mcpServers":{"b":{"command":"x"},`+one+`}}`, env)
	if a != b || a == c {
		t.Errorf("hashes of the same servers in two orders and of others: %s, %s, %s, want the first two equal", a, b,
			c)
	}
}
