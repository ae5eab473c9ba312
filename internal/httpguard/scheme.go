package httpguard

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
)

// SchemeAt returns "http" or "https" if a server of this package answers at an
// address, and "" if none does. Nothing secret is sent, so any certificate is accepted:
// it need not be for this address.
func SchemeAt(ctx context.Context, addr string) string {
	client := &http.Transport{DisableKeepAlives: true, // without a proxy
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	for _, scheme := range []string{"http", "https"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+addr+HealthPath, nil)
		if err != nil {
			return ""
		}
		req.Host = "localhost" // the address may be 0.0.0.0
		resp, err := client.RoundTrip(req)
		if err != nil {
			continue
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, 100))
		resp.Body.Close()
		if err == nil && string(body) == Health {
			return scheme
		}
	}
	return ""
}
