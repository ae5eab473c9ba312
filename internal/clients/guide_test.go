package clients_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/clients"
)

// Every client has a guide, to a server with a token and without one.
func TestGuide(t *testing.T) {
	for _, c := range clients.All() {
		for _, token := range []string{"", "KNOWHOW_TOKEN"} {
			s := clients.Server{Name: "docs", URL: "https://docs.example/mcp", TokenEnv: token}
			g, err := c.Guide(s, []string{"/srv/docs"})
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			if !c.HTTP {
				if g.Instead == "" || !slices.Equal(g.Command, []string{"knowhow", "connect", c.Name, "/srv/docs"}) || g.Snippet != "" {
					t.Errorf("%s starts servers itself, and has the guide %+v", c.Name, g)
				}
				continue
			}
			if token != "" && c.Variable == "" {
				var entry any
				err := json.Unmarshal([]byte(g.Snippet), &entry)
				if err != nil || g.Instead == "" || g.Next == "" || g.Command != nil || !strings.Contains(g.Snippet, s.URL) ||
					!strings.Contains(g.Snippet, `"Authorization": "Bearer `) || strings.Contains(g.Snippet, token) {
					t.Errorf("%s reads no variables, and has the guide %+v, %v", c.Name, g, err)
				}
				continue
			}
			for _, part := range []string{strings.Join(g.Command, " "), g.Snippet} {
				if !strings.Contains(part, s.URL) || !strings.Contains(part, token) {
					t.Errorf("%s: %q does not have %s and %s", c.Name, part, s.URL, token)
				}
			}
			if g.File == "" || g.Next == "" || g.Instead != "" || strings.Contains(g.Next, "%") {
				t.Errorf("%s has the guide %+v", c.Name, g)
			}
		}
	}
	c, _ := clients.Find("claude-code")
	g, err := c.Guide(clients.Server{Name: "knowhow", URL: "http://127.0.0.1:7411/mcp", TokenEnv: "KNOWHOW_TOKEN"}, nil)
	want := c.Verb.Add(c, clients.Server{Name: "knowhow", URL: "http://127.0.0.1:7411/mcp", TokenEnv: "KNOWHOW_TOKEN"}, clients.User)
	if err != nil || !slices.Equal(g.Command, want) ||
		g.File != `~/.claude.json, on Windows %USERPROFILE%\.claude.json` || !strings.Contains(g.Snippet, "${KNOWHOW_TOKEN}") {
		t.Errorf("the guide of Claude Code is %+v, %v", g, err)
	}
}

// VS Code asks for a token, and Zed has it in its file.
func TestGuideToken(t *testing.T) {
	for name, want := range map[string]string{
		"vscode": `{
  "inputs": [
    {
      "type": "promptString",
      "id": "knowhow",
      "description": "Token of knowhow",
      "password": true
    }
  ],
  "servers": {
    "docs": {
      "type": "http",
      "url": "https://docs.example/mcp",
      "headers": {
        "Authorization": "Bearer ${input:knowhow}"
      }
    }
  }
}
`,
		"zed": `{
  "context_servers": {
    "docs": {
      "url": "https://docs.example/mcp",
      "headers": {
        "Authorization": "Bearer TOKEN"
      }
    }
  }
}
`,
	} {
		c, _ := clients.Find(name)
		g, err := c.Guide(clients.Server{Name: "docs", URL: "https://docs.example/mcp", TokenEnv: "KNOWHOW_TOKEN"}, nil)
		if err != nil || g.Snippet != want {
			t.Errorf("the entry of %s is %s, %v, want %s", name, g.Snippet, err, want)
		}
	}
}

// The links are those that the documentation of the clients defines. One for a server
// with a token names the variable, or there is none.
func TestLinks(t *testing.T) {
	for _, tc := range []struct{ client, without, with string }{
		{"vscode", "vscode:mcp/install?%7B%22name%22%3A%22docs%22%2C%22type%22%3A%22http%22%2C%22url%22%3A%22http%3A%2F%2F127.0.0.1%3A7411%2Fmcp%22%7D", ""},
		{"cursor", "cursor://anysphere.cursor-deeplink/mcp/install?name=docs&config=" +
			base64Of(`{"url":"http://127.0.0.1:7411/mcp"}`), "cursor://anysphere.cursor-deeplink/mcp/install?name=docs&config=" +
			base64Of(`{"url":"http://127.0.0.1:7411/mcp","headers":{"Authorization":"Bearer ${env:KNOWHOW_TOKEN}"}}`)},
		{"lmstudio", "lmstudio://add_mcp?name=docs&config=" + base64Of(`{"url":"http://127.0.0.1:7411/mcp"}`), ""},
		{"goose", "goose://extension?url=http%3A%2F%2F127.0.0.1%3A7411%2Fmcp&type=streamable_http&id=docs&name=docs" +
			"&description=Search%20with%20knowhow&timeout=300", ""},
		{"kiro", "https://kiro.dev/launch/mcp/add?name=docs&config=%7B%22url%22%3A%22http%3A%2F%2F127.0.0.1%3A7411%2Fmcp%22%2C%22disabled%22%3Afalse%7D",
			"https://kiro.dev/launch/mcp/add?name=docs&config=%7B%22url%22%3A%22http%3A%2F%2F127.0.0.1%3A7411%2Fmcp%22%2C%22headers%22%3A%7B" +
				"%22Authorization%22%3A%22Bearer%20%24%7BKNOWHOW_TOKEN%7D%22%7D%2C%22disabled%22%3Afalse%7D"},
		{"claude-code", "", ""},
		{"claude-desktop", "", ""},
	} {
		c, _ := clients.Find(tc.client)
		for token, want := range map[string]string{"": tc.without, "KNOWHOW_TOKEN": tc.with} {
			g, err := c.Guide(clients.Server{Name: "docs", URL: "http://127.0.0.1:7411/mcp", TokenEnv: token}, nil)
			if err != nil || g.Link != want {
				t.Errorf("the link of %s with the token %q is %s, %v, want %s", tc.client, token, g.Link, err, want)
			}
		}
	}
}

// base64Of returns a text as a parameter in base64.
func base64Of(text string) string {
	return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text)))
}
