// Package opensearch stores documents in an OpenSearch cluster, for collections
// that outgrow one machine. A [Store] implements kb.Store and search.Service,
// and is a sink of package ingest.
//
// The texts are analysed by package analysis, and the cluster gets tokens, so a
// query finds the same documents as in package index. A query is translated
// from its tree to the query DSL and never sent as text. Every search has a
// filter on labels beside the query, which no part of the query can widen.
//
// A document is a row of the index PREFIX-documents. It has the tokens of the
// whole document, which decide whether it matches, and its chunks as nested
// documents, by the best of which it is ranked. So one operation, which fails if
// the row has changed since it was read, makes a change as a whole, and one
// request answers a search by words.
//
// The vectors of chunks are in an index of their own, PREFIX-vectors. They are
// computed later, and count only if they belong to the present state of the
// document.
//
// Failures of the cluster are errors of type *errkind.Remote. They contain
// neither the host nor credentials.
package opensearch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// Options that an error can be due to; see [errkind.ReasonOf].
const (
	AddressReason     errkind.Reason = "opensearch: Address"
	CredentialsReason errkind.Reason = "opensearch: Username"
	CAReason          errkind.Reason = "opensearch: CA"
)

// Options configure a [Store].
type Options struct {
	// Address is opensearch+http://HOST:PORT/PREFIX or
	// opensearch+https://HOST:PORT/PREFIX. It may contain a user and a password,
	// which take precedence over Username and Password.
	Address string

	Username, Password string
	CA                 []byte // certificates in PEM, in addition to those of the system; nil for none

	// Embedder makes the vectors of queries; nil: searches use words only.
	Embedder  embed.Embedder
	EmbedTime time.Duration // for the vector of a query; 0 means 50 ms

	// ComputeTime is how long a search computes the vectors that its best documents by
	// words lack, of their best chunks; 0: none are computed.
	ComputeTime time.Duration

	Timeout   time.Duration // of one request; 0 means 30 s
	UserAgent string        // "" means "knowhow"
	Log       *slog.Logger  // nil discards

	// Move is for copies to indexes of another version; see [Store.Switch].
	Move Move

	version meta // of the indexes, for tests; the zero meta means that of this program
}

// A Move is the part of a store in a copy from indexes of another version of this
// program to indexes of this one.
type Move int

const (
	Stay Move = iota // the store is not moved
	From             // the present indexes, which may be older, are read
	To               // the indexes with the next number are filled
)

// A Store is documents in a cluster. It is safe for concurrent use. Several
// processes on several machines may use the same documents.
type Store struct {
	o       Options
	client  *client
	prefix  string
	queries embed.Queries

	opening chan struct{} // held by the call that opens the store

	numbering sync.Mutex // for next, limit and size

	mu        sync.Mutex
	ready     bool  // the indexes exist
	opened    bool  // ready has been true
	failed    error // of the last attempt to open the store
	failedAt  time.Time
	boost     float64         // of tokens of chunks, so that their scores are those of package index
	vectors   bool            // the cluster has the k-NN plugin
	fields    map[string]bool // fields of vectors that exist
	current   int             // number of the indexes
	next      int64           // number of the next new document, if it is less than limit
	limit     int64
	size      int64                      // of the next range of numbers that is reserved, at least
	langs     map[analysis.Language]bool // of the documents
	langsAt   time.Time
	documents int // at langsAt

	computing sync.Mutex           // held by a search that computes vectors, for computed
	computed  map[string][]float32 // vectors of chunks that searches have computed, by their texts

	embedding sync.Mutex       // held by EmbedNext
	passes    map[string]*pass // by model and labels
}

// prefixForm is the form of a prefix.
var prefixForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// IsAddress reports whether s has the form of the address of a cluster.
func IsAddress(s string) bool { return strings.HasPrefix(s, "opensearch+") }

// New returns a store. It makes no request: [Store.Open] does, or the first call
// of another method. Invalid options are errors of kind Invalid.
func New(o Options) (*Store, error) {
	base, prefix, err := parse(&o)
	if err != nil {
		return nil, &errkind.Restriction{Reason: AddressReason, Err: err}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.EmbedTime <= 0 {
		o.EmbedTime = 50 * time.Millisecond
	}
	if o.UserAgent == "" {
		o.UserAgent = "knowhow"
	}
	if o.version == (meta{}) {
		o.version = meta{mappingVersion, analysis.Version}
	}
	transport := httpclient.NewTransport(32)
	transport.DisableCompression = true // it would take the server longer than the network saves
	if len(o.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, &errkind.Restriction{Reason: CAReason,
				Err: fmt.Errorf("reading the certificates for OpenSearch: want certificates in PEM: %w",
					errkind.Invalid)}
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	s := &Store{
		o:      o,
		prefix: prefix,
		fields: map[string]bool{}, opening: make(chan struct{}, 1), current: 1, passes: map[string]*pass{},
		computed: map[string][]float32{},
	}
	s.client = &client{base: base, username: o.Username, password: o.Password, agent: o.UserAgent, timeout: o.Timeout,
		http: httpclient.New(transport), lost: s.reopen}
	return s, nil
}

// parse returns the URL of the cluster and the prefix of an address, and sets
// the credentials. The messages do not contain the address, which may contain a
// password.
func parse(o *Options) (base, prefix string, err error) {
	const form = "opensearch+http://HOST:PORT/PREFIX or opensearch+https://HOST:PORT/PREFIX"
	u, err := url.Parse(strings.TrimPrefix(o.Address, "opensearch+"))
	if err != nil || !IsAddress(o.Address) || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", "", fmt.Errorf("reading the address of the store: want %s: %w", form, errkind.Invalid)
	}
	prefix = strings.Trim(u.Path, "/")
	switch {
	case u.RawQuery != "" || u.Fragment != "":
		return "", "", fmt.Errorf("reading the address of the store: want no query and no fragment in %s: %w", form,
			errkind.Invalid)
	case !prefixForm.MatchString(prefix):
		return "", "", fmt.Errorf("reading the address of the store: want %s, where PREFIX begins with a lower-case letter and has at most 64 lower-case letters, digits, \"_\" and \"-\": %w", form, errkind.Invalid)
	}
	if u.User != nil {
		o.Username = u.User.Username()
		o.Password, _ = u.User.Password()
	}
	if strings.ContainsFunc(o.Username+o.Password, func(r rune) bool { return r < ' ' }) {
		return "", "", fmt.Errorf("reading the credentials of the store: want no control characters in them: %w",
			errkind.Invalid)
	}
	return u.Scheme + "://" + u.Host, prefix, nil
}

// Close closes idle connections.
func (s *Store) Close() error {
	s.client.http.CloseIdleConnections()
	return nil
}

// HasVectors reports whether the cluster can search by meaning: whether it has
// the k-NN plugin. It is known after Open.
func (s *Store) HasVectors() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vectors
}

// Open connects to the cluster, and creates the indexes if they do not exist.
// Errors that a later attempt may not meet are retryable; see
// [errkind.Retryable]. With any other error, the store cannot be used until the
// operator changes something. Every other method opens the store, too.
func (s *Store) Open(ctx context.Context) error {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if ready {
		return ctx.Err()
	}
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	ready, failed, at := s.ready, s.failed, s.failedAt
	s.mu.Unlock()
	switch {
	case ready:
		return ctx.Err()
	case failed != nil && time.Since(at) < reopenTime:
		return cmp.Or(ctx.Err(), failed) // of a call that has just tried
	}
	found, err := s.setUp(ctx)
	if err != nil {
		err = fmt.Errorf("opening the store: %w", err)
	}
	if ctx.Err() != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.failed, s.failedAt = err == nil, err, time.Now()
	if err == nil {
		s.opened, s.vectors, s.fields, s.current = true, found.vectors, found.fields, found.number
	}
	return err
}

// reopen makes the next call open the store again, because an index is missing:
// perhaps others have replaced it.
func (s *Store) reopen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.failed = false, nil
}

// reopenTime is how long a failure to open the store is returned to other calls,
// so that those that waited for it do not wait again.
const reopenTime = 500 * time.Millisecond
