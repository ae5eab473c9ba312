package redact

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const secret = "s3cr3t-\"value\""

func server() Sources {
	return Sources{
		Env:     map[string]string{"KEY": secret, "LEVEL": "1", "EMPTY": ""},
		Headers: map[string]string{"Authorization": "Bearer abcdef123456"},
		Args:    []string{"--api-key", "arg-key-value", "--token=tok-value", "--verbose", "plain"},
		URL:     "https://user:url-password@example.com/mcp?apiKey=query-value&x=plain",
	}
}

func TestFrame(t *testing.T) {
	r := New(server())
	tests := []struct{ frame, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`},
		{`{"b":2,"a":[true,null,"x",1.50,{}],"c":[]}`, `{"b":2,"a":[true,null,"x",1.50,{}],"c":[]}`},
		{`{"Access_Token":"x","my-API-key":{"a":[1,{"b":2}]},"passwords":[1,2],"ok":3}`, `{"Access_Token":"***","my-API-key":"***","passwords":"***","ok":3}`},
		{`{"a":{"b":{"authorization":"x"}}}`, `{"a":{"b":{"authorization":"***"}}}`},
		{`{"text":"it is s3cr3t-\"value\", see"}`, `{"text":"it is ***, see"}`},
		{`{"text":"1","more":"11"}`, `{"text":"***","more":"11"}`},
		{`{"text":"url-password query-value arg-key-value tok-value abcdef123456 plain"}`, `{"text":"*** *** *** *** *** plain"}`},
		{`{"text":"{\"password\": \"pw\", \"x\": 1}"}`, `{"text":"{\"password\": ***, \"x\": 1}"}`},
		{`{"text":"export API_KEY=zzz; Authorization: Bearer yyy"}`, `{"text":"export API_KEY=*** Authorization: ***"}`},
		{`{"progressToken":7,"token":7}`, `{"progressToken":7,"token":"***"}`},
		{`not JSON, token: zzz`, `not JSON, token: ***`},
		{"{\"a\":\x1b", `{"a":\x1b`},
	}
	for _, tt := range tests {
		if got := r.Frame([]byte(tt.frame)); got != tt.want {
			t.Errorf("Frame(%s) = %s, want %s", tt.frame, got, tt.want)
		}
	}
	long := r.Frame([]byte(`{"a":"` + strings.Repeat("y", 100_000) + `"}`))
	if len(long) > maxLogged+100 || !strings.HasSuffix(long, "(100008 bytes in all)") {
		t.Errorf("Frame() of 100,008 bytes has %d and ends with %q", len(long), long[len(long)-40:])
	}
	many := r.Frame([]byte(`{"a":[` + strings.Repeat("2,", 100_000) + `2]}`))
	if len(many) > maxLogged+100 {
		t.Errorf("Frame() of many numbers has %d bytes", len(many))
	}
}

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"plain text é 日本", "plain text é 日本"},
		{"a\r\nb\tc", `a\nb c`},
		{"\x1b[31m\x00", `\x1b[31m\x00`},
		{"a\u202eb\u200b", `a\u202eb\u200b`},
		{"a\xffb", "a\uFFFDb"},
		{`C:\dir`, `C:\dir`},
	} {
		if got := Escape(tt.text); got != tt.want {
			t.Errorf("Escape(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	if got := Cut("añb", 2); got != "a…" {
		t.Errorf(`Cut("añb", 2) = %q`, got)
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{`{"a":["x"]}`, `{"token":{"x":[1]}}`, "line\x1b", `{"a":"`, `[1,2`} {
		f.Add([]byte(s), 3)
	}
	const hideMe = "HIDE-ME-0123"
	r := New(Sources{Env: map[string]string{"A": hideMe}})
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		at = max(0, min(at, len(b)))
		in := append(append(append([]byte{}, b[:at]...), hideMe...), b[at:]...)
		for _, got := range []string{r.Frame(in), r.Line(in)} {
			if strings.Contains(got, hideMe) {
				t.Errorf("the value shows in %q", got)
			}
			if len(got) > maxLogged+100 {
				t.Errorf("%d bytes came out", len(got))
			}
			if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) && !json.Valid([]byte(got)) {
				t.Errorf("%q has control characters", got)
			}
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	r := New(server())
	frame := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hello there"}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		r.Frame(frame)
	}
}
