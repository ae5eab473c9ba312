package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A web is a network in memory: name servers, and servers at addresses. It
// works in a bubble of package synctest.
type web struct {
	t *testing.T

	mu     sync.Mutex
	names  map[string][]string // what a name resolves to; the lookups take turns with lists parted by "|"
	looked map[string]int
	dialed []string
	sites  map[string]*site // by address and port
}

func newWeb(t *testing.T) *web {
	w := &web{t: t, names: map[string][]string{}, looked: map[string]int{}, sites: map[string]*site{}}
	t.Cleanup(func() {
		for _, s := range w.sites {
			if s.server != nil {
				s.server.CloseClientConnections()
				s.server.Close()
			}
		}
	})
	return w
}

// name makes a name resolve to addresses.
func (w *web) name(name string, addrs ...string) { w.names[name] = addrs }

// serve starts a server at an address and port.
func (w *web) serve(at string, h http.HandlerFunc) *site {
	s := &site{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.server = &httptest.Server{Listener: s, Config: &http.Server{Handler: h}}
	w.sites[at] = s
	return s
}

// host is serve for a name with one public address, on port 80.
func (w *web) host(name, addr string, h http.HandlerFunc) {
	w.name(name, addr)
	w.serve(addr+":80", h).server.Start()
}

// fetcher returns a fetcher for this web.
func (w *web) fetcher(o Options) *Fetcher {
	w.t.Helper()
	o.Resolver = w
	if o.Dial == nil {
		o.Dial = w.dial
	}
	f, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(f.Close)
	return f
}

func (w *web) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if network != "ip" {
		return nil, errors.New("unexpected network " + network)
	}
	given, ok := w.names[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.8.7:53", IsNotFound: true}
	}
	turns := strings.Split(strings.Join(given, " "), "|")
	turn := turns[min(w.looked[host], len(turns)-1)]
	w.looked[host]++
	var addrs []netip.Addr
	for s := range strings.FieldsSeq(turn) {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	return addrs, nil
}

func (w *web) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, address)
	s := w.sites[address]
	w.mu.Unlock()
	if s == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("connection to %s refused", address)}
	}
	if s.server == nil { // a black hole
		<-ctx.Done()
		return nil, ctx.Err()
	}
	here, there := net.Pipe()
	select {
	case s.conns <- there:
		return here, nil
	case <-s.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dials returns the addresses that were dialled so far.
func (w *web) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

// A site is a server in memory and its listener.
type site struct {
	server *httptest.Server // nil swallows connections
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (s *site) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *site) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *site) Addr() net.Addr { return &net.TCPAddr{} }

// startTLS starts a server with its own certificate for example.com, and
// returns who signed it.
func (s *site) startTLS() *x509.CertPool {
	s.server.EnableHTTP2 = true
	s.server.TLS = &tls.Config{}
	s.server.StartTLS()
	pool := x509.NewCertPool()
	pool.AddCert(s.server.Certificate())
	return pool
}

// answer is a handler that sends text.
func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(text))
	}
}

// redirect is a handler that leads elsewhere.
func redirect(status int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	}
}
