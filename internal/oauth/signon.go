package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// SignOnPath is the path at which the page of the server signs people in: with an
// authorization code and PKCE (RFC 7636). GET returns where the page sends the browser.
// POST exchanges the code that the browser comes back with for an access token, or a
// refresh token for another access token. The page itself sends nothing to the issuer.
const SignOnPath = "/console/sign-on"

const (
	pagePath = "/" // of the page, to which the issuer sends the browser back

	maxGrant    = 32 << 10         // bytes of a request for tokens
	maxClient   = 1024             // bytes of the ID or of the secret of a client
	grantTime   = 10 * time.Second // for an answer with tokens
	grantRate   = 10               // requests for tokens in a second; anyone can send them
	grantBurst  = 50
	loggedEvery = 10 * time.Second // at most one failed sign-on is logged in this time
)

// A Client is a client of the issuer that signs people in. Its redirect URI is the public
// URL followed by a slash.
type Client struct {
	ID     string // "" means that nobody can sign in on the page
	Secret string // "" means that the client is a public one
}

// check returns an error of kind Invalid if the client is not valid.
func (c Client) check() error {
	for _, s := range []string{c.ID, c.Secret} {
		if len(s) > maxClient || !visible(s) {
			return fmt.Errorf("reading the client: want at most %d printable ASCII characters in its ID and in its secret: %w",
				maxClient, errkind.Invalid)
		}
	}
	if c.ID == "" && c.Secret != "" {
		return fmt.Errorf("reading the client: it has a secret and no ID: %w", errkind.Invalid)
	}
	return nil
}

// visible reports whether a text consists of the characters of codes, tokens and clients
// (VSCHAR in RFC 6749, appendix A).
func visible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// signOn is what a [Verifier] has to sign people in.
type signOn struct {
	client Client
	limit  *rate.Limiter // of requests for tokens
	log    *slog.Logger
	logged *rate.Sometimes
}

func newSignOn(c Client, log *slog.Logger) signOn {
	return signOn{client: c, limit: rate.NewLimiter(grantRate, grantBurst), log: log,
		logged: &rate.Sometimes{Interval: loggedEvery}}
}

// signOnMetadata is what the metadata of an issuer says about signing in (RFC 8414,
// section 2, and RFC 9207, section 3).
type signOnMetadata struct {
	Authorization string   `json:"authorization_endpoint"` // "" if there is no secure one
	Token         string   `json:"token_endpoint"`         // likewise
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	NamesIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

// parseSignOn returns what metadata says about signing in; nothing if it is damaged.
func (k *keys) parseSignOn(metadata []byte) signOnMetadata {
	var m signOnMetadata
	if json.Unmarshal(metadata, &m) != nil {
		return signOnMetadata{}
	}
	m.Authorization, m.Token = k.secureURL(m.Authorization), k.secureURL(m.Token)
	return m
}

// check returns an error of kind Denied if nobody can sign in at the issuer.
func (m signOnMetadata) check() error {
	switch {
	case m.Authorization == "" || m.Token == "":
		return denied("the metadata of the identity provider names no secure endpoints for signing in")
	case m.Challenges != nil && !slices.Contains(m.Challenges, "S256"):
		return denied("the identity provider does not support PKCE with S256")
	}
	return nil
}

// denied returns an error that only an administrator can prevent.
func denied(why string) error { return fmt.Errorf("%s: %w", why, errkind.Denied) }

// An authorization is where a person signs in.
type authorization struct {
	URL  string `json:"url"`  // of the issuer; the page adds state and code_challenge
	Page string `json:"page"` // to which the issuer sends the browser back
}

// A grant is what a page exchanges for tokens: a code, or a refresh token.
type grant struct {
	Code     string  `json:"code"`
	Verifier string  `json:"verifier"`
	Issuer   *string `json:"iss"` // the parameter of that name that came with the code (RFC 9207)
	Refresh  string  `json:"refresh_token"`
}

// tokens are the tokens of a person who has signed in.
type tokens struct {
	Access  string `json:"access_token"`
	Expires int64  `json:"expires_in"` // seconds
	Refresh string `json:"refresh_token,omitempty"`
}

// serveSignOn serves SignOnPath.
func (v *Verifier) serveSignOn(w http.ResponseWriter, r *http.Request) {
	var answer any
	var err error
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		answer, err = v.authorization(r.Context())
	case http.MethodPost:
		answer, err = v.grant(r)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "this method is not allowed here, use GET, HEAD or POST", http.StatusMethodNotAllowed)
		return
	}
	status := http.StatusOK
	if err != nil {
		status = statusOf(err)
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "5")
		}
		answer = map[string]string{"error": errkind.Message(err)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}

// statusOf returns the status of the response for an error. 400 means that the same
// request never succeeds, and all others that it may later.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errkind.Invalid), errors.Is(err, errkind.Unauthorized):
		return http.StatusBadRequest
	case errors.Is(err, errkind.Busy):
		return http.StatusTooManyRequests
	case errors.Is(err, errkind.Unavailable):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}

// authorization returns where a person signs in. The resource is the one that agents ask
// for, so that the issuer needs to know one only.
func (v *Verifier) authorization(ctx context.Context) (*authorization, error) {
	set, err := v.keys.current(ctx)
	if err != nil {
		return nil, errNoIssuer
	}
	if err := set.signOn.check(); err != nil {
		return nil, v.failed(err)
	}
	u, err := url.Parse(set.signOn.Authorization)
	if err != nil { // it was parsed before
		return nil, errNoIssuer
	}
	query := u.Query()
	for name, value := range map[string]string{"response_type": "code", "client_id": v.signOn.client.ID,
		"redirect_uri": v.public + pagePath, "scope": strings.Join(v.scopes, " "), "resource": v.public + mcpPath,
		"code_challenge_method": "S256"} {
		if value != "" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	return &authorization{URL: u.String(), Page: v.public + pagePath}, nil
}

// errNoIssuer is the error while the metadata of the issuer is not known.
var errNoIssuer = fmt.Errorf("the identity provider cannot be reached now, try again later: %w", errkind.Unavailable)

// grant exchanges what a request has for tokens. The access token is accepted by
// [Verifier.Verify].
func (v *Verifier) grant(r *http.Request) (*tokens, error) {
	if !v.signOn.limit.Allow() {
		return nil, fmt.Errorf("too many people sign in now, try again in a few seconds: %w", errkind.Busy)
	}
	g, err := readGrant(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), grantTime)
	defer cancel()
	set, err := v.keys.current(ctx)
	if err != nil {
		return nil, errNoIssuer
	}
	m := set.signOn
	if err := m.check(); err != nil {
		return nil, v.failed(err)
	}
	if g.Issuer != nil && *g.Issuer != v.issuer || g.Issuer == nil && g.Code != "" && m.NamesIssuer {
		return nil, fmt.Errorf("the sign-on came from another identity provider: %w", errkind.Unauthorized)
	}
	t, err := v.exchange(ctx, m, g)
	if err != nil {
		return nil, err
	}
	who, err := v.Verify(ctx, t.Access, pagePath)
	switch {
	case errors.Is(err, errkind.Denied):
		return nil, v.failed(fmt.Errorf("signing in: %w", err))
	case err != nil:
		return nil, errNoIssuer
	}
	t.Expires = int64(time.Until(who.Expires.Add(-leeway)) / time.Second)
	return t, nil
}

// failed logs an error that an administrator should know, at a limited rate, and returns
// it.
func (v *Verifier) failed(err error) error {
	v.signOn.logged.Do(func() { v.signOn.log.Warn("signing in on the console failed", "reason", errkind.Message(err)) })
	return err
}

// readGrant returns the grant of a request. It is JSON, which a form of another site
// cannot send.
func readGrant(r *http.Request) (g grant, err error) {
	invalid := fmt.Errorf("reading the sign-on: it is damaged: %w", errkind.Invalid)
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return g, invalid
	}
	body, err := httpguard.ReadBody(r, maxGrant)
	if err != nil || json.Unmarshal(body, &g) != nil {
		return g, invalid
	}
	verifier := strings.Trim(g.Verifier, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") == "" &&
		len(g.Verifier) >= 43 && len(g.Verifier) <= 128 // RFC 7636, section 4.1
	switch {
	case (g.Code == "") == (g.Refresh == ""), !visible(g.Code), !visible(g.Refresh), g.Code != "" && !verifier:
		return g, invalid
	}
	return g, nil
}

// exchange exchanges a grant at the token endpoint of the issuer (RFC 6749, sections 4.1.3
// and 6). The error is of kind Unauthorized if the grant is not or no longer valid.
func (v *Verifier) exchange(ctx context.Context, m signOnMetadata, g grant) (*tokens, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}, "resource": {v.public + mcpPath}}
	if g.Code != "" {
		form = url.Values{"grant_type": {"authorization_code"}, "code": {g.Code}, "code_verifier": {g.Verifier},
			"redirect_uri": {v.public + pagePath}, "resource": {v.public + mcpPath}}
	}
	client := v.signOn.client
	inHeader := client.Secret != "" && (m.Methods == nil || slices.Contains(m.Methods, "client_secret_basic"))
	if !inHeader {
		form.Set("client_id", client.ID)
		if client.Secret != "" {
			form.Set("client_secret", client.Secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errNoIssuer
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if inHeader { // RFC 6749, section 2.3.1
		req.SetBasicAuth(url.QueryEscape(client.ID), url.QueryEscape(client.Secret))
	}
	status, body, err := v.keys.send(req)
	if err != nil {
		_ = v.failed(err) // it may have addresses that people must not learn
		return nil, errNoIssuer
	}
	return v.parseTokens(status, body)
}

// parseTokens returns the tokens in an answer of the token endpoint.
func (v *Verifier) parseTokens(status int, body []byte) (*tokens, error) {
	var answer struct {
		Access      string `json:"access_token"`
		Type        string `json:"token_type"`
		Refresh     string `json:"refresh_token"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	parsed := json.Unmarshal(body, &answer) == nil
	switch {
	case parsed && answer.Error != "":
		return nil, v.refused(answer.Error, answer.Description)
	case status >= 500:
		_ = v.failed(fmt.Errorf("the status is %d", status))
		return nil, errNoIssuer
	case status != http.StatusOK:
		return nil, v.failed(denied(fmt.Sprintf("the identity provider gives no tokens: the status is %d", status)))
	case !parsed || answer.Access == "" || !strings.EqualFold(answer.Type, "Bearer"):
		return nil, v.failed(denied("the identity provider gives no tokens: its answer has no bearer token"))
	}
	t := &tokens{Access: answer.Access, Refresh: answer.Refresh}
	if len(t.Refresh) > maxToken || !visible(t.Refresh) {
		t.Refresh = "" // the person signs in again when the access token has expired
	}
	return t, nil
}

// refused returns the error for an error of the token endpoint (RFC 6749, section 5.2).
// The description is for the person who signs in and is not logged: it may repeat the
// code.
func (v *Verifier) refused(code, description string) error {
	message := "the identity provider refuses the sign-on"
	if description = sanitize.Short(description, 200, 800); description != "" {
		description = ": " + description
	}
	switch code {
	case "invalid_grant", "invalid_request": // the second one is that of Dex for a refresh token that is used up
		return fmt.Errorf("%s: %s%s: %w", message, code, description, errkind.Unauthorized)
	case "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
		"invalid_target", "server_error", "temporarily_unavailable":
		message += ": " + code
	}
	_ = v.failed(errors.New(message))
	return denied(message + description)
}
