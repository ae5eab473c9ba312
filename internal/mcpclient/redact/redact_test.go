package redact

import (
	"bytes"
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
		{`{"Access_Token":"x","my-API-key":{"a":[1,{"b":2}]},"passwords":[1,2],"ok":3}`,
			`{"Access_Token":"***","my-API-key":"***","passwords":"***","ok":3}`},
		{`{"a":{"b":{"authorization":"x"}}}`, `{"a":{"b":{"authorization":"***"}}}`},
		{`{"text":"it is s3cr3t-\"value\", see"}`, `{"text":"it is ***, see"}`},
		{`{"text":"1","more":"11"}`, `{"text":"***","more":"11"}`},
		{`{"text":"url-password query-value arg-key-value tok-value abcdef123456 plain"}`,
			`{"text":"*** *** *** *** *** plain"}`},
		{`{"text":"{\"password\": \"pw\", \"x\": 1}"}`, `{"text":"{\"password\": ***, \"x\": 1}"}`},
		{`{"text":"export API_KEY=zzz; Authorization: Bearer yyy"}`,
			`{"text":"export API_KEY=*** Authorization: ***"}`},
		{`{"Passwd":1,"db_pwd":2,"pass":3,"PASSPHRASE":4,"private-key":5,"accessKeyId":6,"Set-Cookie":7,"bearer":8}`,
			`{"Passwd":"***","db_pwd":"***","pass":"***","PASSPHRASE":"***","private-key":"***",` +
				`"accessKeyId":"***","Set-Cookie":"***","bearer":"***"}`},
		{`{"credential":1,"credentials":[2],"auth":{"a":3},"X-Auth":4,"proxy_auth":5,"basicAuth":6,"authKey":7,` +
			`"userPass":8,"jwt":9,"session_id":0,"sessionId":0}`,
			`{"credential":"***","credentials":"***","auth":"***","X-Auth":"***","proxy_auth":"***",` +
				`"basicAuth":"***","authKey":"***","userPass":"***","jwt":"***","session_id":"***","sessionId":"***"}`},
		{`{"author":"a","AUTHOR":"b","Authors":"c","authority":"d","co-author":"e","bypass":"f","passenger":"g",` +
			`"compass":"h","keys":"i","session":"j"}`,
			`{"author":"a","AUTHOR":"b","Authors":"c","authority":"d","co-author":"e","bypass":"f",` +
				`"passenger":"g","compass":"h","keys":"i","session":"j"}`},
		{`{"dsn":"postgres://bob:p@ss?w#rd@db:5432/x and redis://:pw@r","u":"http://localhost:80/@me ssh://git@h ` +
			`mailto:a@b"}`,
			`{"dsn":"postgres://bob:***@db:5432/x and redis://:***@r","u":"http://localhost:80/@me ssh://git@h ` +
				`mailto:a@b"}`},
		{`{"text":"Cookie: a=b; c=d\nauth=x, author: y; Authorization: token zzz"}`,
			`{"text":"Cookie: ***\nauth=*** author: y; Authorization: ***"}`},
		{`{"text":"{\"passwords\": [\"a\", \"b\"], \"x\": \"{\\\"jwt\\\":\\\"zzz\\\"}\"}"}`,
			`{"text":"{\"passwords\": ***, \"x\": \"{\\\"jwt\\\":***}\"}"}`},
		{`{"text":"pwd='a b' access_key=\"c\\\"d\" end"}`, `{"text":"pwd=*** access_key=*** end"}`},
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

// TestVariables hides what the settings took from the environment, wherever they
// put it, unless it is what every environment has or no secret by its looks.
func TestVariables(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		hidden      bool
	}{
		{"LICENCE", "abcd-efgh-1234", true},
		{"LICENCE", "abcd-ef", false},
		{"SOME_FOLDER", "/srv/data/files", false},
		{"SOME_FOLDER", `C:\data\files`, false},
		{"GREETING", "good morning", false},
		{"DB_PASS", "/a b/", true},
		{"AUTHOR", "bob", false},
		{"USER", "administrator", false},
		{"HOME", "home-of-bob", false},
		{"PWD", "/srv/data/files", false},
		{"lc_all", "en_US.UTF-8", false},
	} {
		t.Setenv(tt.name, tt.value)
		r := New(Sources{Variables: []string{tt.name}})
		text := "I was given <" + tt.value + ">"
		want := text
		if tt.hidden {
			want = "I was given <***>"
		}
		if got := r.Text(text); got != want {
			t.Errorf("with %s=%s Text(%q) = %q, want %q", tt.name, tt.value, text, got, want)
		}
	}
}

// TestFlagWithoutValue hides no flag that follows another.
func TestFlagWithoutValue(t *testing.T) {
	r := New(Sources{Args: []string{"--no-auth", "--port", "--auth", "arg-value"}})
	if got, want := r.Text("--port and arg-value"), "--port and ***"; got != want {
		t.Errorf("Text() = %q, want %q", got, want)
	}
}

// TestCutInASecret has texts that are cut in the middle of a secret.
func TestCutInASecret(t *testing.T) {
	r := New(Sources{Env: map[string]string{"A": "HIDE-ME-0123"}})
	for shift := range 12 {
		text := strings.Repeat("y", shift) + strings.Repeat("HIDE-ME-0123", 5000)
		for _, got := range []string{r.Line([]byte(text)), r.Frame([]byte(`"` + text + `"`)), r.before(text[:100]),
			r.after(text[100:])} {
			if !strings.Contains(got, hidden) || strings.ContainsAny(got, "HIDE01") {
				t.Errorf("shifted by %d the text became %q", shift, got)
			}
		}
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
		if got := r.JSON(in); bytes.Contains(got, []byte(hideMe)) || got != nil && !json.Valid(got) {
			t.Errorf("JSON(%q) = %s", in, got)
		}
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
