package httpguard_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// newCertificate returns a certificate for this machine and its key in PEM. change, if
// it is set, changes the certificate before it is signed. Certificates are valid in
// bubbles, in which it is 2000.
func newCertificate(t testing.TB, change func(*x509.Certificate)) (pair [2][]byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Unix(0, 0),
		NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return [2][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})}
}

// writeCertificate writes a certificate and its key to a new folder.
func writeCertificate(t testing.TB, pair [2][]byte) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write(t, cert, pair[0])
	write(t, key, pair[1])
	return cert, key
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func loadCertificate(t testing.TB, cert, key string) *httpguard.Certificate {
	t.Helper()
	c, err := httpguard.LoadCertificate(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// clientConfig returns the settings of a client that accepts any certificate.
func clientConfig() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// A certificate that cannot be used is refused with what is wrong and the name of the
// file.
func TestLoadCertificate(t *testing.T) {
	good, other := newCertificate(t, nil), newCertificate(t, nil)
	text := []byte("no PEM\n")
	block := func(kind string, data string, header map[string]string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(data), Headers: header})
	}
	encrypted := block("RSA PRIVATE KEY", "x", map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"})
	for _, tc := range []struct {
		name      string
		cert, key []byte // nil: no such file
		want      string // "" for no error
	}{
		{"good", good[0], good[1], ""},
		{"key and certificate in both files", slices.Concat(good[1], good[0]), slices.Concat(good[0], good[1]), ""},
		{"no certificate", nil, good[1], "reading the certificate: open CERT: "},
		{"no key", good[0], nil, "reading the key of the certificate: open KEY: "},
		{"empty certificate", []byte{}, good[1], "reading the certificate: CERT contains no certificate in PEM"},
		{"text", text, good[1], "reading the certificate: CERT contains no certificate in PEM"},
		{"exchanged", good[1], good[0], "reading the certificate: CERT contains no certificate in PEM"},
		{"damaged certificate", block("CERTIFICATE", "x", nil), good[1],
			"reading the certificate: CERT contains a damaged certificate (malformed certificate)"},
		{"certificate in place of the key", good[0], good[0],
			"reading the key of the certificate: KEY contains no key in PEM"},
		{"text in place of the key", good[0], text, "reading the key of the certificate: KEY contains no key in PEM"},
		{"other key", good[0], other[1], "reading the certificate: KEY is not the key of the certificate in CERT"},
		{"key of another kind", good[0], rsaKey(t),
			"reading the certificate: KEY is not the key of the certificate in CERT"},
		{"encrypted key", good[0], block("ENCRYPTED PRIVATE KEY", "x", nil),
			"reading the key of the certificate: KEY is encrypted, want a key without a passphrase"},
		{"encrypted key in the older form", good[0], encrypted,
			"reading the key of the certificate: KEY is encrypted, want a key without a passphrase"},
		{"damaged key", good[0], block("PRIVATE KEY", "x", nil),
			"reading the key of the certificate: KEY cannot be used (failed to parse private key)"},
		{"large file", make([]byte, 1<<20+1), good[1], "reading the certificate: CERT has more than 1048576 bytes"},
	} {
		cert, key := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
		for path, data := range map[string][]byte{cert: tc.cert, key: tc.key} {
			if data != nil {
				write(t, path, data)
			}
		}
		got := ""
		_, err := httpguard.LoadCertificate(cert, key, slog.New(slog.DiscardHandler))
		if err != nil {
			got = strings.NewReplacer(cert, "CERT", key, "KEY").Replace(errkind.Message(err))
		}
		if exact := !strings.HasSuffix(tc.want, " "); exact && got != tc.want || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: the error is %q, want %q", tc.name, got, tc.want)
		}
		if err != nil && tc.cert != nil && tc.key != nil && !errors.Is(err, errkind.Invalid) &&
			!errors.Is(err, errkind.TooLarge) {
			t.Errorf("%s: the error %v has no kind", tc.name, err)
		}
	}
}

// rsaKey returns a key that is not of an elliptic curve.
func rsaKey(t *testing.T) []byte {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// presented returns the serial number of the certificate that a server presents to a
// new connection.
func (s *served) presented(t *testing.T) *big.Int {
	t.Helper()
	raw, err := s.memory.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, s.client)
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	return conn.ConnectionState().PeerCertificates[0].SerialNumber
}

// Changed files are in force soon, however they are changed. While they are no pair,
// the pair of before is used, and the log says so once. Connections that are open
// remain.
func TestCertificateChanges(t *testing.T) {
	number := func(pair [2][]byte) *big.Int {
		block, _ := pem.Decode(pair[0])
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return c.SerialNumber
	}
	first, second, third, fourth := newCertificate(t, nil), newCertificate(t, nil), newCertificate(t, nil),
		newCertificate(t, nil)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		// As Kubernetes mounts secrets: the files are links into a folder that is a link.
		put := func(folder string, pair [2][]byte) {
			if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, folder, "tls.crt"), pair[0])
			write(t, filepath.Join(dir, folder, "tls.key"), pair[1])
		}
		link := func(target, name string) {
			if err := os.Symlink(target, filepath.Join(dir, name+".new")); err != nil {
				t.Skip("this system has no links:", err)
			}
			if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		put("1", first)
		link("1", "data")
		link("data/tls.crt", "tls.crt")
		link("data/tls.key", "tls.key")
		var log bytes.Buffer
		c, err := httpguard.LoadCertificate(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, httpguard.Options{TLS: c, Routes: everything(named("page"))})
		open, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		in := bufio.NewReader(open)
		const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
		want := func(when string, pair [2][]byte, lines int) {
			t.Helper()
			for range 10 { // a minute
				if status, body := talk(open, in, get); status != 200 {
					t.Errorf("%s: an open connection was answered %d %s", when, status, body)
				}
				time.Sleep(6 * time.Second) // virtual
				s.presented(t)
			}
			if got := s.presented(t); got.Cmp(number(pair)) != 0 {
				t.Errorf("%s: the server presents the certificate %d, want %d", when, got, number(pair))
			}
			if got := strings.Count(log.String(), "\n"); got != lines {
				t.Errorf("%s: the log has %d lines, want %d: %s", when, got, lines, &log)
			}
		}
		want("at the start", first, 0)
		put("2", second)
		link("2", "data")
		want("after the link has changed", second, 1)

		// As certbot and scripts do: files in place of the links, one after the other.
		replace := func(path string, data []byte) {
			write(t, path+".new", data)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
		replace(cert, third[0])
		time.Sleep(11 * time.Second) // virtual
		if got := s.presented(t); got.Cmp(number(second)) != 0 {
			t.Errorf("between two files, the server presents the certificate %d, want that of before", got)
		}
		replace(key, third[1])
		want("after both files are replaced", third, 2)

		write(t, key, fourth[1])
		want("with a key that does not match", third, 3)
		if !strings.Contains(log.String(), "tls.key is not the key of the certificate in") {
			t.Errorf("the log is %s, want what is wrong", &log)
		}
		if err := os.Remove(cert); err != nil {
			t.Fatal(err)
		}
		want("without a certificate", third, 4)
		write(t, cert, fourth[0][:100])
		want("with half a certificate", third, 5)
		write(t, cert, fourth[0])
		want("with a pair again", fourth, 6)
	})
}

// A certificate that is not valid now is used, because clients may accept it, and the
// log says so once, at the start or when it expires.
func TestExpiredCertificate(t *testing.T) {
	pair := newCertificate(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC), time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)
	})
	cert, key := writeCertificate(t, pair)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, err := httpguard.LoadCertificate(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, httpguard.Options{TLS: c})
		for hour, lines := range []int{1, 1, 2, 2} { // not yet, valid, expired, expired
			time.Sleep(time.Minute) // virtual
			s.presented(t)
			if got := strings.Count(log.String(), "the certificate is not valid at this time"); got != lines {
				t.Errorf("in hour %d, the log is %s, want %d warnings", hour, &log, lines)
			}
			time.Sleep(59 * time.Minute) // virtual
		}
	})
}

// Handshakes that fail end soon and leave few lines in the log.
func TestHandshakes(t *testing.T) {
	cert, key := writeCertificate(t, newCertificate(t, nil))
	const plain = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
	for _, tc := range []struct {
		name   string
		talk   func(conn net.Conn)
		answer string // "*" is any
		after  time.Duration
		log    string
	}{
		{"nothing", func(net.Conn) {}, "", 10 * time.Second, "level=INFO"},
		{"slow", func(conn net.Conn) {
			for _, b := range []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 100)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second) // virtual
			}
		}, "", 10 * time.Second, "level=INFO"},
		{"plain HTTP", func(conn net.Conn) { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") },
			plain, 0, `level=WARN msg="a TLS handshake failed" client=pipe reason="client sent an HTTP request`},
		{"noise", func(conn net.Conn) { _, _ = io.WriteString(conn, "\x00\x1b[31m"+strings.Repeat("\xff", 1000)) }, "*", 0,
			"level=INFO"},
		{"old revision", func(conn net.Conn) {
			_ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11,
				MinVersion: tls.VersionTLS10}).Handshake()
		}, "*", 0, "level=INFO"},
		{"client without trust", func(conn net.Conn) {
			_ = tls.Client(conn, &tls.Config{ServerName: "localhost", RootCAs: x509.NewCertPool()}).Handshake()
		}, "*", 0, "level=WARN"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				s := serve(t, httpguard.Options{TLS: loadCertificate(t, cert, key), Routes: everything(named("page")),
					Log: slog.New(slog.NewTextHandler(&log, nil))})
				start := time.Now()
				for range 30 {
					conn, err := s.memory.dial()
					if err != nil {
						t.Fatal(err)
					}
					go tc.talk(conn)
					if tc.answer != "*" {
						got, _ := io.ReadAll(conn)
						if took := time.Since(start); string(got) != tc.answer || took != tc.after {
							t.Errorf("answered %q after %v, want %q after %v", got, took, tc.answer, tc.after)
						}
					}
					time.Sleep(10 * time.Millisecond) // virtual
					conn.Close()
					start = time.Now()
				}
				time.Sleep(time.Second) // virtual: the last client ends
				text := log.String()
				if tc.after == 0 && strings.Count(text, "a TLS handshake failed") != 20 || !strings.Contains(text, tc.log) ||
					strings.Contains(text, "\x1b") || strings.Contains(text, "\xff") {
					t.Errorf("the log is %s, want 20 lines with %s", text, tc.log)
				}
			})
		})
	}
}

// A server ends in time although a client does not end its handshake.
func TestServeEndsInHandshake(t *testing.T) {
	cert, key := writeCertificate(t, newCertificate(t, nil))
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, httpguard.Options{TLS: loadCertificate(t, cert, key), Drain: time.Second, Grace: time.Second})
		conn, err := s.memory.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		synctest.Wait()
		start := time.Now()
		s.end()
		err = <-s.done
		s.done <- nil // for the cleanup
		if took := time.Since(start); err != nil || took > 2*time.Second {
			t.Errorf("Serve() = %v after %v, want nil after at most 2s", err, took)
		}
	})
}

// listen serves on a port of this machine until the test ends, and returns its address.
func listen(t *testing.T, o httpguard.Options) string {
	t.Helper()
	l, err := httpguard.Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- httpguard.New(o).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v, want nil", err)
		}
	})
	return l.Addr().String()
}

// With TLS too, HTTP/2 is not used, and a client that speaks plain HTTP reads an
// answer, also if it sends more than the server reads.
func TestTLS(t *testing.T) {
	cert, key := writeCertificate(t, newCertificate(t, nil))
	addr := listen(t, httpguard.Options{TLS: loadCertificate(t, cert, key), Routes: everything(named("page"))})
	tr := &http.Transport{TLSClientConfig: clientConfig(), ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("https://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.Proto != "HTTP/1.1" || resp.TLS.Version != tls.VersionTLS13 {
		t.Errorf("answered %s %s with TLS %x", resp.Status, resp.Proto, resp.TLS.Version)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, post("/", 3000)+strings.Repeat("x", 3000)); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(conn); !strings.Contains(string(got), "Client sent an HTTP request to an HTTPS server.") {
		t.Errorf("plain HTTP is answered with %q", got)
	}
}

func TestSchemeAt(t *testing.T) {
	cert, key := writeCertificate(t, newCertificate(t, nil))
	other := httptest.NewServer(named("page"))
	defer other.Close()
	free, err := httpguard.Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	for addr, want := range map[string]string{
		listen(t, httpguard.Options{}):                                   "http",
		listen(t, httpguard.Options{TLS: loadCertificate(t, cert, key)}): "https",
		other.Listener.Addr().String():                                   "",
		free.Addr().String():                                             "",
		"no address":                                                     "",
	} {
		if got := httpguard.SchemeAt(t.Context(), addr); got != want {
			t.Errorf("SchemeAt(%q) = %q, want %q", addr, got, want)
		}
	}
}

// A lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
