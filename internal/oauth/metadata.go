package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

const (
	// MetadataPath is the path of the metadata of the whole server. The metadata of the
	// MCP server over all labels and of that over one label are at this path followed by
	// the path of that server (RFC 9728, section 3.1).
	MetadataPath = "/.well-known/oauth-protected-resource"

	mcpPath = "/mcp"
)

// metadata is the metadata of a protected resource (RFC 9728, section 2).
type metadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Methods  []string `json:"bearer_methods_supported"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Name     string   `json:"resource_name"`
}

// Routes returns the routes of the metadata and, with a client, of [SignOnPath]. They
// need no token. Pages of all origins may read the metadata, because clients that run in
// a browser need it to sign in. It does not depend on what the server has: every label
// has metadata, whether or not it exists.
func (v *Verifier) Routes() []httpguard.Route {
	routes := []httpguard.Route{{Path: MetadataPath, Tree: true, Public: true,
		Handler: http.HandlerFunc(v.serveMetadata)}}
	if v.signOn.client.ID != "" {
		routes = append(routes, httpguard.Route{Path: SignOnPath, Open: true, Handler: http.HandlerFunc(v.serveSignOn)})
	}
	return routes
}

func (v *Verifier) serveMetadata(w http.ResponseWriter, r *http.Request) {
	resource, ok := v.resourceOf(strings.TrimPrefix(r.URL.Path, MetadataPath))
	switch {
	case !ok:
		http.Error(w, "nothing is served at this path", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this method is not allowed here, use GET or HEAD", http.StatusMethodNotAllowed)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metadata{ // an error means that the client is gone
			Resource: resource, Servers: []string{v.issuer}, Methods: []string{"header"}, Scopes: v.scopes,
			Name: "knowhow",
		})
	}
}

// resourceOf returns the resource at a path: that of the server at "", and those of MCP
// servers. It reports whether the path is one of them.
func (v *Verifier) resourceOf(path string) (string, bool) {
	if path == "" || path == mcpPath {
		return v.public + path, true
	}
	label, ok := labelOf(path)
	return v.resource(label), ok
}

// resource returns the resource of the MCP server of one label.
func (v *Verifier) resource(label string) string {
	return v.public + mcpPath + "/" + url.PathEscape(label)
}

// labelOf returns the label of the path of the MCP server of one label.
func labelOf(path string) (label string, ok bool) {
	label, ok = strings.CutPrefix(path, mcpPath+"/")
	return label, ok && label != "" && !strings.Contains(label, "/")
}

// Challenge returns the header WWW-Authenticate of a response with status 401 to a
// request to a path. err is the error of [Verifier.Verify], nil if the request has no
// token.
func (v *Verifier) Challenge(path string, err error) string {
	if err == nil {
		return v.challenge(path, "")
	}
	return v.challenge(path, `, error="invalid_token", error_description="`+quotable(errkind.Message(err))+`"`)
}

// InsufficientScope returns the header WWW-Authenticate of a response with status 403
// to a request to a path, whose token is valid but gives no right there.
func (v *Verifier) InsufficientScope(path string) string {
	return v.challenge(path, `, error="insufficient_scope"`)
}

// challenge returns a challenge that says how to get a token for a path, with the
// parameters of an error.
func (v *Verifier) challenge(path, failure string) string {
	resource, ok := v.resourceOf(path)
	if !ok {
		resource = v.public
	}
	c := `Bearer resource_metadata="` + v.public + MetadataPath + strings.TrimPrefix(resource, v.public) + `"` + failure
	if len(v.scopes) > 0 {
		c += `, scope="` + strings.Join(v.scopes, " ") + `"`
	}
	return c
}

// quotable returns a text without the characters that a parameter may not have.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if outside(r) {
			return -1
		}
		return r
	}, s)
}
