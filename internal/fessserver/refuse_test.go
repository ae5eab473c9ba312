package fessserver_test

import (
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// What the listener refuses has the form of the API that was asked.
func TestRefusals(t *testing.T) {
	const v2 = `{"response":{"status":1,"error":{"code":"auth_required","message":"a token is required, and this request has none or a wrong one"}}}`
	for prefix, route := range map[string]httpguard.Route{
		"":      fessserver.Route(fessserver.Options{Backend: &stub{}}),
		"/fess": fessserver.Route(fessserver.Options{Backend: &stub{}, Prefix: "/fess"}),
	} {
		h := httpguard.New(httpguard.Options{Token: "s3cret", Routes: []httpguard.Route{route}})
		for path, want := range map[string]string{
			"/api/v1/documents": `{"message":"a token is required, and this request has none or a wrong one"}`,
			"/api//v1/health":   `{"message":"a token is required, and this request has none or a wrong one"}`,
			"/api/v2/search":    v2,
			"/api/v2//labels":   v2,
			"/cache/":           "a token is required",
			"/":                 "a token is required",
		} {
			w := ask(t, h, "GET", prefix+path, nil)
			if w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer" ||
				!strings.Contains(w.Body.String(), want) {
				t.Errorf("GET %s%s = %d %s, want 401 with %s", prefix, path, w.Code, w.Body, want)
			}
			if w := ask(t, h, "GET", prefix+path, map[string]string{"Authorization": "Bearer s3cret"}); w.Code == 401 {
				t.Errorf("GET %s%s with the token = %d %s", prefix, path, w.Code, w.Body)
			}
		}
	}
}
