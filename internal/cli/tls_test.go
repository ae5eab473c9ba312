package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/cli"

	"github.com/rogpeppe/go-internal/testscript"
)

// certificates NAME... writes certificates of this machine to NAME.crt, each with its
// key in NAME.key, and makes later programs trust them.
func makeCertificates(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: certificates NAME...")
	}
	var roots []byte
	for _, name := range args {
		cert, err := writeCertificate(ts.MkAbs(name))
		ts.Check(err)
		roots = append(roots, cert...)
	}
	ts.Check(os.WriteFile(ts.MkAbs("roots.pem"), roots, 0o600))
	ts.Setenv("SSL_CERT_FILE", ts.MkAbs("roots.pem"))
}

// writeCertificate writes a certificate to base.crt and its key to base.key. It returns
// the certificate.
func writeCertificate(base string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(base+".crt", cert, 0o600); err != nil {
		return nil, err
	}
	return cert, os.WriteFile(base+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}

// tlsArgs returns flags with a new certificate.
func tlsArgs(t *testing.T) []string {
	t.Helper()
	base := filepath.Join(t.TempDir(), "tls")
	if _, err := writeCertificate(base); err != nil {
		t.Fatal(err)
	}
	return []string{"--tls-cert", base + ".crt", "--tls-key", base + ".key"}
}

// replaceCertificate puts NAME.crt and NAME.key in place of tls.crt and tls.key, and
// waits until the server presents that certificate.
func (c *chat) replaceCertificate(name string) {
	data, err := os.ReadFile(name + ".crt")
	check(err)
	block, _ := pem.Decode(data)
	want, err := x509.ParseCertificate(block.Bytes)
	check(err)
	check(os.Rename(name+".crt", "tls.crt"))
	check(os.Rename(name+".key", "tls.key"))
	u, err := url.Parse(c.base)
	check(err)
	for presented := (*x509.Certificate)(nil); !want.Equal(presented); <-time.After(100 * time.Millisecond) {
		conn, err := tls.Dial("tcp", u.Host, nil)
		if err != nil {
			log.Fatalf("mcpchat: @certificate: %v", err)
		}
		presented = conn.ConnectionState().PeerCertificates[0]
		conn.Close()
	}
}

// A health check on this machine accepts the certificate, which is for the name that
// other machines use.
func TestHealthTLS(t *testing.T) {
	r := runFolders(t, tlsArgs(t)...)
	out := newTranscript()
	if status := cli.Main(t.Context(), []string{"health", r.url}, cli.Env{Program: "knowhow", Lookup: func(string) (string,
		bool) {
		return "", false
	}}, strings.NewReader(""), out, out); status != 0 || out.String() != "ok\n" {
		t.Errorf("knowhow health %s = %d %s, want ok", r.url, status, out)
	}
}
