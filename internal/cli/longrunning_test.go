package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"knowhow/internal/errkind"
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
		c, _, err := readConfig(fmt.Sprintf(minimal, `, "contentFetch": {`+tt.key+`}`), false)
		if err != nil {
			t.Fatalf("%s: %v", tt.key, err)
		}
		f, err := c.fetcher()
		if err != nil {
			t.Fatalf("%s: %v", tt.key, err)
		}
		defer f.Close()
		content := c.content(f)
		err = content.Fetch.Check(tt.url)
		switch {
		case tt.says == "" && err != nil, tt.says != "" && (!errors.Is(err, errkind.Denied) || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("contentFetch {%s}: Check(%s) = %v, want %q", tt.key, tt.url, err, tt.says)
		}
		if !content.Enabled || content.EnablePDF || content.FessCache != "policy" || content.MaxBytes != 5<<20 {
			t.Errorf("contentFetch {%s}: %+v, want the defaults", tt.key, content)
		}
	}
}
