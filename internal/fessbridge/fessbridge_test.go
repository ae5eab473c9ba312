package fessbridge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
)

// The keys of contentFetch arrive where documents are fetched.
func TestFessContent(t *testing.T) {
	for _, tt := range []struct {
		key  string // of contentFetch
		url  string
		says string // part of the refusal; "" means there is none
	}{
		{``, "https://docs.example.com/", ""},
		{``, "ftp://docs.example.com/", "contentFetch.allowedSchemes has http, https"},
		{`"allowedSchemes": ["https"]`, "http://docs.example.com/", "contentFetch.allowedSchemes has https"},
		{`"allowedSchemes": []`, "https://docs.example.com/", "contentFetch.allowedSchemes is empty"},
		{`"allowedHostAllowlist": ["*.example.com"]`, "https://docs.example.com/", ""},
		{`"allowedHostAllowlist": ["*.example.com"]`, "https://example.org/", "contentFetch.allowedHostAllowlist"},
		{`"allowedHostAllowlist": ["10.1.2.3"]`, "http://10.1.2.3/", ""},
		{``, "http://10.1.2.3/", "private network targets are not allowed"},
		{`"allowPrivateNetworkTargets": true`, "http://10.1.2.3/", ""},
		{`"proxy": "http://user:s3cret@proxy.example.com:3128"`, "https://docs.example.com/", ""},
	} {
		path := filepath.Join(t.TempDir(), "config.json")
		text := `{"fessBaseUrl": "http://localhost:8080", "domain": {"id": "finance", "name": "Finance", "labelFilter": "finance"}, "contentFetch": {` + tt.key + `}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, err := fessconfig.Read(path, fessconfig.Options{})
		if err != nil {
			t.Fatalf("%s: %v", tt.key, err)
		}
		f, err := newFetcher(c, "devel")
		if err != nil {
			t.Fatalf("%s: %v", tt.key, err)
		}
		defer f.Close()
		if err = f.Check(tt.url); err != nil {
			err = c.Explain(err)
		}
		switch {
		case tt.says == "" && err != nil, tt.says != "" &&
			(!errors.Is(err, errkind.Denied) || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("contentFetch {%s}: Check(%s) = %v, want %q", tt.key, tt.url, err, tt.says)
		}
	}
}
