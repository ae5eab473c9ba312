package oauth

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	maxBody = 512 << 10 // bytes of an answer of the issuer
	maxKeys = 100       // in a key set
	minRSA  = 2048      // bits of an RSA key (RFC 7518, section 3.3)

	answerTime = 5 * time.Second // for an answer of the issuer
	retryTime  = 3 * time.Second // between readings until the first succeeds
	rereadTime = time.Minute     // between readings after the first re-reading
	maxAge     = time.Hour       // of keys that are used without a re-reading
)

// errUnavailable is the error while keys cannot be read.
var errUnavailable = fmt.Errorf("verifying the access token: the keys of the issuer cannot be read now, "+
	"try again in a few seconds: %w", errkind.Unavailable)

// A keySet is the result of a reading of the keys of an issuer. It is not changed.
type keySet struct {
	keys   []jose.JSONWebKey // public keys for signatures
	signOn signOnMetadata    // from the same reading
	read   time.Time
	failed bool // a later reading failed
}

// keys reads the keys of an issuer. [keys.run] sends the requests, one reading at a
// time, and any number of callers wait for it.
type keys struct {
	issuer   string
	metadata []string // URLs that may have the metadata of the issuer
	insecure bool     // the issuer has no TLS
	client   *http.Client
	log      *slog.Logger
	ask      chan struct{} // asks run for a reading; its buffer has room for one
	over     chan struct{} // is closed when run has ended

	mu      sync.Mutex
	set     *keySet       // nil until the first reading has succeeded
	reading chan struct{} // is closed when the reading that is running ends; nil if there is none
	next    time.Time     // the earliest time of another reading
}

func newKeys(issuer string, u *url.URL, client *http.Client, log *slog.Logger) *keys {
	return &keys{
		issuer:   issuer,
		metadata: metadataURLs(u),
		insecure: u.Scheme == "http",
		client:   client,
		log:      log,
		ask:      make(chan struct{}, 1),
		over:     make(chan struct{}),
	}
}

// metadataURLs returns the URLs of the metadata of an issuer, in the order of the MCP
// specification.
func metadataURLs(issuer *url.URL) []string {
	const (
		oauth  = "/.well-known/oauth-authorization-server" // RFC 8414, section 3.1
		openid = "/.well-known/openid-configuration"       // OpenID Connect Discovery, section 4; RFC 8414, section 5
	)
	root := issuer.Scheme + "://" + issuer.Host
	path := strings.TrimSuffix(issuer.EscapedPath(), "/")
	if path == "" {
		return []string{root + oauth, root + openid}
	}
	return []string{root + oauth + path, root + openid + path, root + path + openid}
}

// current returns the keys. It reads them if there are none, or if they are old. If
// the last reading failed, it does not wait for another. The error is errUnavailable or
// that of ctx.
func (k *keys) current(ctx context.Context) (*keySet, error) {
	k.mu.Lock()
	var reading chan struct{}
	if k.set == nil || time.Since(k.set.read) >= maxAge {
		reading = k.start()
	}
	if k.set != nil && k.set.failed {
		reading = nil
	}
	k.mu.Unlock()
	return k.wait(ctx, reading)
}

// newer returns keys that are newer than a set, or the same set if it is too early for
// another reading.
func (k *keys) newer(ctx context.Context, than *keySet) (*keySet, error) {
	k.mu.Lock()
	var reading chan struct{}
	if k.set == than {
		reading = k.start()
	}
	k.mu.Unlock()
	return k.wait(ctx, reading)
}

// start starts a reading unless one is running or it is too early. It returns what is
// closed when the reading ends, or nil. The caller holds k.mu.
func (k *keys) start() chan struct{} {
	if k.reading == nil && !time.Now().Before(k.next) {
		k.reading = make(chan struct{})
		k.ask <- struct{}{}
	}
	return k.reading
}

// wait waits for a reading, unless it is nil, and returns the keys.
func (k *keys) wait(ctx context.Context, reading chan struct{}) (*keySet, error) {
	if reading != nil {
		select {
		case <-reading:
		case <-k.over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set == nil {
		return nil, errUnavailable
	}
	return k.set, nil
}

// run reads the keys whenever it is asked to, until ctx ends.
func (k *keys) run(ctx context.Context) {
	defer close(k.over)
	for {
		select {
		case <-k.ask:
		case <-ctx.Done():
			return
		}
		set, err := k.readSet(ctx)
		if err != nil && ctx.Err() == nil {
			k.log.Warn("the keys of the issuer cannot be read", "reason", sanitize.Short(err.Error(), 1000, 4000))
		}
		k.finish(set, err)
	}
}

// finish ends a reading with its result.
func (k *keys) finish(set keySet, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	switch {
	case k.set == nil && err != nil:
		k.next = now.Add(retryTime)
	case k.set == nil: // the first re-reading may follow at any time
		set.read = now
		k.set = &set
	case err != nil:
		set = *k.set
		set.failed = true
		k.set = &set
		k.next = now.Add(rereadTime)
	default:
		set.read = now
		k.set = &set
		k.next = now.Add(rereadTime)
	}
	close(k.reading)
	k.reading = nil
}

// readSet reads the metadata of the issuer, and the keys that it names.
func (k *keys) readSet(ctx context.Context) (set keySet, err error) {
	address, signOn, err := k.readMetadata(ctx)
	if err != nil {
		return set, err
	}
	data, err := k.get(ctx, address)
	if err != nil {
		return set, fmt.Errorf("%s: %w", address, err)
	}
	list, err := parseKeys(data)
	if err != nil {
		return set, fmt.Errorf("%s: %w", address, err)
	}
	return keySet{keys: list, signOn: signOn}, nil
}

// readMetadata returns the URL of the key set and what is about signing in, from the
// metadata of the issuer.
func (k *keys) readMetadata(ctx context.Context) (string, signOnMetadata, error) {
	var failures []string
	for _, at := range k.metadata {
		data, err := k.get(ctx, at)
		if err == nil {
			var address string
			if address, err = k.keysURL(data); err == nil {
				return address, k.parseSignOn(data), nil
			}
		}
		failures = append(failures, at+": "+err.Error())
	}
	return "", signOnMetadata{}, errors.New(strings.Join(failures, "; "))
}

// keysURL returns the URL of the key set that metadata has. The metadata must be that of
// the issuer (RFC 8414, section 3.3).
func (k *keys) keysURL(data []byte) (string, error) {
	var m struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if json.Unmarshal(data, &m) != nil {
		return "", errors.New("the metadata is not JSON")
	}
	if m.Issuer != k.issuer {
		return "", fmt.Errorf("the metadata is that of the issuer %q", sanitize.Short(m.Issuer, 200, 800))
	}
	address := k.secureURL(m.Keys)
	if address == "" {
		return "", errors.New("the metadata names no secure URL of a key set")
	}
	return address, nil
}

// secureURL returns a URL of the metadata of the issuer, or "" if it is not valid or
// less secure than that of the issuer.
func (k *keys) secureURL(s string) string {
	u, err := httpclient.ParseURL("a URL of the metadata", s)
	if err != nil || !secure(u) || u.Scheme == "http" && !k.insecure {
		return ""
	}
	return u.String()
}

// get returns what the issuer serves at a URL. It follows no redirects.
func (k *keys) get(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the URL is not valid")
	}
	status, data, err := k.send(req)
	if status != 0 && status != http.StatusOK {
		return nil, fmt.Errorf("the status is %d", status)
	}
	return data, err
}

// send sends a request to the issuer and returns the status of the answer, 0 if there is
// none, and its body. It follows no redirects. The error has nothing of the request.
func (k *keys) send(req *http.Request) (status int, body []byte, err error) {
	req.Header.Set("Accept", "application/json")
	resp, err := k.client.Do(req)
	if err != nil {
		return 0, nil, failure(req.Context(), err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return resp.StatusCode, nil, failure(req.Context(), err)
	}
	if len(body) > maxBody {
		return resp.StatusCode, nil, fmt.Errorf("the answer has more than %d bytes", maxBody)
	}
	return resp.StatusCode, body, nil
}

// failure returns the error for a request that got no answer.
func failure(ctx context.Context, err error) error {
	if httpclient.TimedOut(ctx, err) {
		return errors.New("there is no answer in time")
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return errors.New(httpclient.CauseOf(err).Message("the issuer", err.Error()))
}

// parseKeys returns the keys of a key set (RFC 7517, section 5) that may verify
// signatures. Others are ignored, as are damaged and secret ones.
func parseKeys(data []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(data, &set) != nil || set.Keys == nil {
		return nil, errors.New("it is not a key set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		if key, ok := parseKey(raw); ok {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// parseKey returns a key, and whether it may verify signatures.
func parseKey(raw []byte) (key jose.JSONWebKey, ok bool) {
	var about struct {
		Use        string          `json:"use"`
		Operations []string        `json:"key_ops"`
		Private    json.RawMessage `json:"d"`
	}
	if json.Unmarshal(raw, &about) != nil || about.Use != "" && about.Use != "sig" || about.Private != nil ||
		about.Operations != nil && !slices.Contains(about.Operations, "verify") {
		return key, false
	}
	if json.Unmarshal(raw, &key) != nil || !key.IsPublic() {
		return key, false
	}
	public, isRSA := key.Key.(*rsa.PublicKey)
	return key, !isRSA || public.N.BitLen() >= minRSA
}
