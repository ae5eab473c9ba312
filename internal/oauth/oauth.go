// Package oauth makes a server an OAuth 2.1 resource server, as revision 2025-11-25
// of MCP describes: it verifies the access tokens of one issuer, tells clients where
// to get one (RFC 9728), and says in responses what is missing. For the page of the
// server, it is also a client of the issuer that signs people in.
//
// Access tokens are JWTs (RFC 9068) that the issuer signed with a key of its key set.
// Tokens and everything that the issuer serves are foreign bytes.
package oauth

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// Options configures a [Verifier].
type Options struct {
	// Issuer is the URL of the issuer, exactly as its tokens and its metadata have it.
	// The scheme is https, or http on a loopback address.
	Issuer string

	// PublicURL is the URL under which clients reach the server, without a path.
	PublicURL string

	// Audience is an audience that tokens may have on all paths, besides the resources
	// of the server. "" means none.
	Audience string

	// Claim is the name of the claim with the groups of a user; "" means groups. Its
	// value is a list of names, or names separated by blanks. If a token has no claim of
	// this name, a name with dots is a path through objects, such as
	// realm_access.roles.
	Claim string

	// Scopes are the scopes that clients should ask the issuer for. The issuer has to
	// give what they stand for: tokens are not checked for them.
	Scopes []string

	// Client is the client of the issuer that signs people in on the page of the server.
	Client Client

	// Transport sends the requests to the issuer; nil means one of
	// [httpclient.NewTransport].
	Transport http.RoundTripper

	Log *slog.Logger // receives why keys cannot be read and nobody can sign in; nil discards
}

// An Identity is the user of an access token.
type Identity struct {
	Subject string    // the user at the issuer, on one line and at most 255 bytes; not ""
	Groups  []string  // without repetitions; may be nil
	Expires time.Time // when the token stops being accepted
}

// A Verifier verifies the tokens of an issuer. Create one with [New], and close it when
// no request uses it any more.
type Verifier struct {
	issuer    string
	public    string // URL of the server, without a slash at the end
	audiences []string
	claim     string
	scopes    []string
	signOn    signOn

	keys *keys
	stop context.CancelFunc
	done sync.WaitGroup
}

// New returns a verifier. It sends no request: the keys of the issuer are read when
// the first token is verified. Errors are of kind Invalid.
func New(o Options) (*Verifier, error) {
	issuer, err := httpclient.ParseBaseURL("the URL of the issuer", o.Issuer)
	if err != nil {
		return nil, err
	}
	if !secure(issuer) {
		return nil, fmt.Errorf("reading the URL of the issuer: want https, or http on a loopback address: %w",
			errkind.Invalid)
	}
	public, err := httpclient.ParseBaseURL("the public URL", o.PublicURL)
	if err != nil {
		return nil, err
	}
	if strings.Trim(public.Path, "/") != "" || strings.ContainsFunc(public.Host, outside) {
		return nil, fmt.Errorf("reading the public URL: want no path, and a host in ASCII: %w", errkind.Invalid)
	}
	for _, scope := range o.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r == ' ' || outside(r) }) {
			return nil, fmt.Errorf("reading a scope: want ASCII without blanks, quotes and backslashes: %w",
				errkind.Invalid)
		}
	}
	if err := o.Client.check(); err != nil {
		return nil, err
	}
	if o.Claim == "" {
		o.Claim = "groups"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	v := &Verifier{
		issuer: o.Issuer,
		public: strings.ToLower(public.Scheme) + "://" + strings.ToLower(public.Host),
		claim:  o.Claim,
		scopes: slices.Clone(o.Scopes),
		signOn: newSignOn(o.Client, o.Log),
		keys:   newKeys(o.Issuer, issuer, httpclient.New(o.Transport), o.Log),
	}
	for _, resource := range []string{v.public, v.public + mcpPath} {
		v.audiences = append(v.audiences, resource, resource+"/")
	}
	if o.Audience != "" {
		v.audiences = append(v.audiences, o.Audience)
	}
	ctx, stop := context.WithCancel(context.Background())
	v.stop = stop
	v.done.Go(func() { v.keys.run(ctx) })
	return v, nil
}

// Close ends reading keys. A token whose key is not known cannot be verified afterwards.
func (v *Verifier) Close() {
	v.stop()
	v.done.Wait()
}

// secure reports whether what a URL returns can be trusted: nobody between this
// machine and the server can change it.
func secure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && httpguard.Loopback(u.Host)
}

// outside reports whether a character may not occur in a parameter of a challenge
// (RFC 6750, section 3).
func outside(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
