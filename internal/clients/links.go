package clients

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// An installLink returns the address that opens the client and makes it ask its user
// whether to add a server with an entry.
type installLink func(s Server, entry []Member) string

// cursorLink is as in https://cursor.com/docs/mcp/install-links.
func cursorLink(s Server, entry []Member) string {
	return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + escape(s.Name) + "&config=" + encoded(entry)
}

// lmStudioLink is as in https://lmstudio.ai/docs/app/mcp/deeplink.
func lmStudioLink(s Server, entry []Member) string {
	return "lmstudio://add_mcp?name=" + escape(s.Name) + "&config=" + encoded(entry)
}

// codeLink is as in https://code.visualstudio.com/api/extension-guides/ai/mcp: the
// object is that of code --add-mcp.
func codeLink(s Server, entry []Member) string {
	return "vscode:mcp/install?" + escape(object(append([]Member{member("name", s.Name)}, entry...)))
}

// kiroLink is as in https://kiro.dev/docs/mcp/share/. The page opens Kiro.
func kiroLink(s Server, entry []Member) string {
	return "https://kiro.dev/launch/mcp/add?name=" + escape(s.Name) + "&config=" + escape(object(entry))
}

// gooseLink is as in https://block.github.io/goose/docs/getting-started/using-extensions.
// It documents no parameter for headers.
func gooseLink(s Server, _ []Member) string {
	if s.TokenEnv != "" {
		return ""
	}
	name := escape(s.Name)
	return "goose://extension?url=" + escape(s.URL) + "&type=streamable_http&id=" + name + "&name=" + name +
		"&description=" + escape("Search with knowhow") + "&timeout=300"
}

// encoded returns an entry as a parameter in base64.
func encoded(entry []Member) string {
	return escape(base64.StdEncoding.EncodeToString([]byte(object(entry))))
}

// escape returns a text as a part of a query, with %20 for spaces as encodeURIComponent
// has it: not all clients read "+" as a space.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
