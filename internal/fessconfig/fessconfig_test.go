package fessconfig

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/config"
)

// minimal is the smallest configuration, with room for more keys.
const minimal = `{"fessBaseUrl": "http://localhost:8080", "domain": {"id": "finance", "name": "Finance", "labelFilter": "finance"}%s}`

// readConfig reads and validates a configuration.
func readConfig(text string, http bool) (*Config, []string, error) {
	c := defaults()
	f, err := config.Read("config.json", strings.NewReader(text), c, config.Options{})
	if err != nil {
		return nil, nil, err
	}
	warnings, err := c.check(f, http)
	return c, warnings, err
}

func TestDefaults(t *testing.T) {
	c, warnings, err := readConfig(fmt.Sprintf(minimal, ""), true)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("minimal configuration: warnings %q, error %v", warnings, err)
	}
	want := defaults()
	want.FessBaseURL, want.Domain.ID, want.Domain.Name, want.Domain.LabelFilter = "http://localhost:8080", "finance",
		"Finance", "finance"
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("minimal configuration differs from the defaults (-want +got):\n%s", diff)
	}
	got := fmt.Sprintf("%+v", *defaults())
	if golden := `{FessBaseURL: FessAPI:auto FessAuth:{AccessToken: PassThrough:false} TLS:{CAFile: InsecureSkipVerify:false} ` +
		`Domain:{ID: Name: Description: LabelFilter: WholeIndex:false} ` +
		`HTTPTransport:{BindAddress:127.0.0.1 Port:0 Path:/mcp EnableSSE:true AllowedOrigins:[] AllowedHosts:[]} ` +
		`Timeouts:{FessRequestTimeoutMs:30000 LongRunningThresholdMs:2000} ` +
		`Limits:{MaxPageSize:100 MaxChunkBytes:262144 MaxInFlightRequests:32} ` +
		`Logging:{Level:info RetainDays:7 Dir:log} Security:{HTTPAuthToken: AllowNonLocalhostBind:false} ` +
		`ContentFetch:{Enabled:true MaxBytes:5242880 TimeoutMs:20000 AllowedSchemes:[http https] AllowPrivateNetworkTargets:false ` +
		`AllowedHostAllowlist:[] UserAgent: EnablePDF:false FessCache:policy Proxy:}}`; got != golden {
		t.Errorf("defaults\n got %s\nwant %s", got, golden)
	}
}

// full gives every key a value other than its default, at a bound where there
// is one.
const full = `{
  "fessBaseUrl": "https://fess.example.com/search/",
  "fessApi": "v1",
  "fessAuth": {"accessToken": "t0ken", "passThrough": false},
  "tls": {"caFile": "ca.pem", "insecureSkipVerify": true},
  "domain": {"id": "Ab-1", "name": "Ab", "description": "About\nit", "labelFilter": "A.b_c-1", "wholeIndex": false},
  "httpTransport": {"bindAddress": "[::]", "port": 65535, "path": "/a/b.c", "enableSse": false,
    "allowedOrigins": ["https://chat.example.com"], "allowedHosts": ["bridge.example.com"]},
  "timeouts": {"fessRequestTimeoutMs": 3600000, "longRunningThresholdMs": 0},
  "limits": {"maxPageSize": 1, "maxChunkBytes": 16777216, "maxInFlightRequests": 10000},
  "logging": {"level": "debug", "retainDays": 3650, "dir": "/var/log/fess"},
  "security": {"httpAuthToken": "t0ken", "allowNonlocalhostBind": true},
  "contentFetch": {"enabled": false, "maxBytes": 1073741824, "timeoutMs": 1, "allowedSchemes": [], "allowPrivateNetworkTargets": true,
    "allowedHostAllowlist": ["*.example.com", "10.0.0.1", "fd00::1"], "userAgent": "bridge/1", "enablePdf": true, "fessCache": "never",
    "proxy": "http://user:password@proxy.example.com:3128"}
}`

func TestFull(t *testing.T) {
	c, warnings, err := readConfig(full, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tls.insecureSkipVerify: the Fess server's certificate is not checked",
		`domain.id: "Ab-1" is used as "ab_1"`}, warnings); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
	if c.Domain.ID != "ab_1" || c.HTTPTransport.BindAddress != "::" {
		t.Errorf("id %q, bindAddress %q, want them normalised", c.Domain.ID, c.HTTPTransport.BindAddress)
	}
	root, err := filepath.Abs(string(filepath.Separator)) // on Windows, with a drive letter
	if err != nil {
		t.Fatal(err)
	}
	file, logs := filepath.Join(root, "etc", "fess", "config.json"), filepath.Join(root, "var", "log", "fess")
	if c.Logging.Dir != "/var/log/fess" {
		t.Errorf("logging.dir is %q", c.Logging.Dir)
	}
	c.Logging.Dir = logs
	c.resolve(file, "")
	if c.TLS.CAFile != filepath.Join(root, "etc", "fess", "ca.pem") || c.Logging.Dir != logs {
		t.Errorf("paths %q and %q, want the first beside the file and the second as it is", c.TLS.CAFile, c.Logging.Dir)
	}
	home := filepath.Join(root, "home", "me")
	for _, own := range []string{"~/ca.pem", filepath.FromSlash("~/ca.pem")} {
		c.TLS.CAFile, c.Logging.Dir = own, "~you/log"
		c.resolve(file, home)
		if c.TLS.CAFile != filepath.Join(home, "ca.pem") ||
			c.Logging.Dir != filepath.Join(root, "etc", "fess", "~you", "log") {
			t.Errorf("paths %q and %q, want the first in the home folder", c.TLS.CAFile, c.Logging.Dir)
		}
	}
	// Every key of the struct stands in the text above.
	var missing []string
	var walk func(v reflect.Type)
	walk = func(v reflect.Type) {
		for i := range v.NumField() {
			name := v.Field(i).Tag.Get("json")
			if !strings.Contains(strings.ToLower(full), `"`+strings.ToLower(name)+`":`) {
				missing = append(missing, name)
			}
			if v.Field(i).Type.Kind() == reflect.Struct {
				walk(v.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	if len(missing) > 0 {
		t.Errorf("this test gives no value to %v", missing)
	}
}

func TestRules(t *testing.T) {
	domain := func(s string) string { return `{"fessBaseUrl": "http://h", "domain": {` + s + `}}` }
	with := func(s string) string { return fmt.Sprintf(minimal, ", "+s) }
	tests := []struct {
		text string
		http bool
		want string // part of the error; "" means none
	}{
		// the domain
		{domain(`"id": "a", "name": "n", "wholeIndex": true`), false, ""},
		{domain(`"id": "a", "name": "n", "wholeIndex": true, "labelFilter": ""`), false,
			"domain.wholeIndex: domain.labelFilter is given as well"},
		{domain(`"id": "a", "name": "n", "wholeIndex": true, "labelFilter": "x"`), false,
			"domain.wholeIndex: domain.labelFilter is given as well"},
		{domain(`"id": "a", "name": "n", "wholeIndex": false`), false,
			"domain.labelFilter: missing, want the value of a Fess label"},
		{domain(`"id": "a", "name": "n", "labelFilter": ""`), false, `domain.labelFilter: got "", want the value`},
		{domain(`"id": "a", "name": "n", "labelFilter": "x\" OR label:\"y"`), false, "domain.labelFilter: got"},
		{domain(`"id": "a", "name": "n", "labelFilter": "x y"`), false, "domain.labelFilter: got"},
		{domain(`"id": "` + strings.Repeat("a", 24) + `", "name": "n", "labelFilter": "x"`), false, ""},
		{domain(`"id": "` + strings.Repeat("a", 25) + `", "name": "n", "labelFilter": "x"`), false, "domain.id: got"},
		{domain(`"id": "", "name": "n", "labelFilter": "x"`), false, `domain.id: got ""`},
		{domain(`"id": "a b", "name": "n", "labelFilter": "x"`), false, `domain.id: got "a b"`},
		{domain(`"id": "日本", "name": "n", "labelFilter": "x"`), false, "domain.id: got"},
		{domain(`"id": "a", "labelFilter": "x"`), false, "domain.name: missing"},
		// the server
		{`{"fessBaseUrl": "localhost:8080", "domain": {}}`, false,
			`fessBaseUrl: got "localhost:8080", want an absolute`},
		{`{"fessBaseUrl": "http://", "domain": {}}`, false, "fessBaseUrl: got"},
		{`{"fessBaseUrl": "http://u:p@h", "domain": {}}`, false,
			`fessBaseUrl: got "...@h", want a URL without user name`},
		{`{"fessBaseUrl": "http://h?x=1", "domain": {}}`, false, "want a URL without user name, query"},
		{`{"fessBaseUrl": "http://h:99999", "domain": {}}`, false, `fessBaseUrl: got "http://h:99999", want a URL with a port from 1`},
		{`{"fessBaseUrl": "http://h:0", "domain": {}}`, false, `fessBaseUrl: got "http://h:0", want a URL with a port from 1`},
		{`{"fessBaseUrl": "http://h:65535", "domain": {"id": "a", "name": "n", "labelFilter": "x"}}`, false, ""},
		{with(`"fessApi": "auto"`), false, ""},
		{with(`"fessApi": "v3"`), false, `fessApi: got "v3", want auto, v1 or v2`},
		// addresses
		{with(`"httpTransport": {"bindAddress": "192.168.0.1"}`), false, ""},
		{with(`"httpTransport": {"bindAddress": "192.168.0.1"}`), true, "security.allowNonLocalhostBind"},
		{with(`"httpTransport": {"bindAddress": "0.0.0.0"}, "security": {"allowNonLocalhostBind": true}`), true, ""},
		{with(`"httpTransport": {"bindAddress": "::"}`), true, "security.allowNonLocalhostBind"},
		{with(`"httpTransport": {"bindAddress": "::1"}`), true, ""},
		{with(`"httpTransport": {"bindAddress": "localhost"}`), true, ""},
		{with(`"httpTransport": {"bindAddress": ""}`), true, `httpTransport.bindAddress: got ""`},
		{with(`"httpTransport": {"bindAddress": "http://127.0.0.1"}`), false, "httpTransport.bindAddress: got"},
		// paths
		{with(`"httpTransport": {"path": "/"}`), true, ""},
		{with(`"httpTransport": {"path": "/a/"}`), true, "httpTransport.path"},
		{with(`"httpTransport": {"path": "//a"}`), true, "httpTransport.path"},
		{with(`"httpTransport": {"path": "/../a"}`), true, "httpTransport.path"},
		{with(`"httpTransport": {"path": "/{a}"}`), true, "httpTransport.path"},
		{with(`"httpTransport": {"path": "/healthz"}`), true, "httpTransport.path"},
		// origins
		{with(`"httpTransport": {"allowedOrigins": ["https://a.example", "http://localhost:3000/", "HTTPS://A.example",
			"http://[::1]:80", "chrome-extension://abcdefghij", "moz-extension://5d0b6e6a-7c8c"]}`), true, ""},
		{with(`"httpTransport": {"allowedOrigins": ["*"]}`), true,
			`httpTransport.allowedOrigins[0]: got "*", want an origin such as https://chat.example.com`},
		{with(`"httpTransport": {"allowedOrigins": ["https://a.example", "chat.example.com"]}`), true,
			`httpTransport.allowedOrigins[1]: got "chat.example.com", want an origin such as`},
		{with(`"httpTransport": {"allowedOrigins": ["https://a.example/x"]}`), false, "httpTransport.allowedOrigins[0]"},
		{with(`"httpTransport": {"allowedOrigins": ["https://a.example:99999"]}`), false,
			"httpTransport.allowedOrigins[0]"},
		{with(`"httpTransport": {"allowedOrigins": ["https://*.example"]}`), false, "httpTransport.allowedOrigins[0]"},
		{with(`"httpTransport": {"allowedOrigins": [""]}`), false, "httpTransport.allowedOrigins[0]"},
		{with(`"httpTransport": {"allowedOrigins": ["null"]}`), false, ""},
		{with(`"httpTransport": {"allowedOrigins": ["http:example.com"]}`), false, "httpTransport.allowedOrigins[0]"},
		{with(`"httpTransport": {"allowedHosts": ["kb.example.com", "kb.example.com:8080", "[::1]", "10.0.0.1:1"]}`), true,
			""},
		// tokens
		{with(`"security": {"httpAuthToken": ""}`), true, "security.httpAuthToken: got a value that is not shown"},
		{with(`"security": {"httpAuthToken": "a b"}`), true, "security.httpAuthToken: got a value that is not shown"},
		{with(`"fessAuth": {"accessToken": ""}`), true, ""},
		{with(`"fessAuth": {"accessToken": "a\n"}`), true, "fessAuth.accessToken: got a value that is not shown"},
		{with(`"fessAuth": {"passThrough": true}`), true, ""},
		{with(`"fessAuth": {"passThrough": true}`), false,
			"fessAuth.passThrough: callers send their tokens in HTTP headers"},
		// content
		{with(`"contentFetch": {"fessCache": "always"}`), true, ""},
		{with(`"contentFetch": {"allowedHostAllowlist": ["*"]}`), true, "contentFetch.allowedHostAllowlist[0]"},
		{with(`"contentFetch": {"proxy": "socks5://h:1"}`), true, "contentFetch.proxy"},
	}
	for _, tt := range tests {
		_, _, err := readConfig(tt.text, tt.http)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s, http %v: %v, want no error", tt.text, tt.http, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s, http %v: error %v, want one with %q", tt.text, tt.http, err, tt.want)
		}
	}
}

// TestErrorPlaces checks that every problem is shown with its place,
// in the order of the file.
func TestErrorPlaces(t *testing.T) {
	_, _, err := readConfig("{\n\"limits\": {\"maxPageSize\": 0},\n\"domain\": {\"id\": \"a\"},\n\"timeouts\": {\"fessRequestTimeoutMs\": 0}}", false)
	if err == nil {
		t.Fatal("no error")
	}
	var places []string
	for _, line := range strings.Split(err.Error(), "\n") {
		places = append(places, regexp.MustCompile(`^config\.json:(\d+:\d+): \S+`).FindString(line))
	}
	want := []string{"config.json:1:1: fessBaseUrl:", "config.json:2:27: limits.maxPageSize:",
		"config.json:3:11: domain.name:",
		"config.json:3:11: domain.labelFilter:", "config.json:4:38: timeouts.fessRequestTimeoutMs:"}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("places differ (-want +got):\n%s", diff)
	}
}
