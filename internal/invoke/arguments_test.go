package invoke_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/invoke"
)

func TestArguments(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"text":{"type":"string"},"maybe":{"type":["string","null"]},"n":{"type":"integer"},"any":{},
		"words":{"type":"array","items":{"type":"string"}},"numbers":{"type":"array","items":{"type":"number"}},
		"o":{"type":"object"},"odd":{"type":5}}}`)
	tests := []struct {
		pairs []string
		want  string // "" for an error
	}{
		{nil, `{}`},
		{[]string{"text=5", "maybe=null", "n=5"}, `{"maybe":"null","n":5,"text":"5"}`},
		{[]string{"text=a=b", "any=true", "odd=x y"}, `{"any":true,"odd":"x y","text":"a=b"}`},
		{[]string{"n=five", "text="}, `{"n":"five","text":""}`},
		{[]string{"words=1", "words=b"}, `{"words":["1","b"]}`},
		{[]string{"words=a"}, `{"words":["a"]}`},
		{[]string{`words=["a","b"]`}, `{"words":["a","b"]}`},
		{[]string{"numbers=1", "numbers=2.50"}, `{"numbers":[1,2.50]}`},
		{[]string{`o={"a": 1}`, "unknown=7"}, `{"o":{"a":1},"unknown":7}`},
		{[]string{"text=a", "text=b"}, ""},
	}
	for _, tt := range tests {
		got, err := invoke.Arguments(schema, tt.pairs)
		if tt.want == "" {
			if !errors.Is(err, errkind.Invalid) {
				t.Errorf("Arguments(%q) = %s, %v, want %v", tt.pairs, got, err, errkind.Invalid)
			}
			continue
		}
		if err != nil || string(got) != tt.want {
			t.Errorf("Arguments(%q) = %s, %v, want %s", tt.pairs, got, err, tt.want)
		}
	}
	for _, schema := range []string{"", "true", `{"properties":[]}`} {
		if got, err := invoke.Arguments(json.RawMessage(schema), []string{"a=1"}); err != nil ||
			string(got) != `{"a":1}` {
			t.Errorf("Arguments with schema %s = %s, %v, want a number", schema, got, err)
		}
	}
}
