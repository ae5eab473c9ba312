package httpguard

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

const (
	certificateTime    = 10 * time.Second // between two readings of the files of a certificate
	maxCertificateFile = 1 << 20          // bytes
)

// A Certificate is the certificate of a server and its key, in two files in PEM. The
// file of the certificate also has the certificates of the authorities between it and
// that which clients know.
//
// Changed files are in force for connections that begin 10 seconds later. Until both
// files are changed, and while they are damaged or not a pair, the pair of before is
// used. It does not matter whether the files are written, replaced, or reached by a
// link that changes.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex // guards what follows, and reading the files
	pair    *tls.Certificate
	read    time.Time // when the files were read
	failure string    // why they could not be used then; "" if they could
	logged  bool      // failure is in the log
	invalid bool      // the log says that pair is not valid at this time
}

// LoadCertificate reads a certificate and its key. That the files could not be read
// again later is logged.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	pair, err := c.load()
	if err != nil {
		return nil, err
	}
	c.use(pair, time.Now())
	return c, nil
}

// config returns the settings of a listener. HTTP/2 is not offered: the limits of
// bodies and streams are those of connections. Sessions are not resumed, so that a
// certificate that was replaced is not relied on any more.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"http/1.1"},
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
		SessionTicketsDisabled: true,
	}
}

// current returns the pair for a new connection. Reading the files here and not when
// they change works on every file system and without a goroutine.
func (c *Certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.read) < certificateTime {
		return c.pair
	}
	pair, err := c.load()
	if err != nil {
		c.fail(err.Error(), now)
		return c.pair
	}
	if !slices.EqualFunc(pair.Certificate, c.pair.Certificate, bytes.Equal) {
		c.log.Info("using another certificate", "file", c.certFile, "expires", pair.Leaf.NotAfter)
	}
	c.use(pair, now)
	return c.pair
}

// use makes a pair that was read the current one.
func (c *Certificate) use(pair *tls.Certificate, now time.Time) {
	c.pair, c.read, c.failure, c.logged = pair, now, "", false
	invalid := now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter)
	if invalid && !c.invalid {
		c.log.Warn("the certificate is not valid at this time, so clients will refuse it", "file", c.certFile,
			"begins", pair.Leaf.NotBefore, "expires", pair.Leaf.NotAfter)
	}
	c.invalid = invalid
}

// fail notes that the files cannot be used. Programs that renew certificates write one
// file after the other, so only what lasts is logged, once.
func (c *Certificate) fail(failure string, now time.Time) {
	c.read = now
	if failure != c.failure {
		c.failure, c.logged = failure, false
		return
	}
	if !c.logged {
		c.logged = true
		c.log.Warn("the changed certificate cannot be used, so that of before is", "error", failure)
	}
}

// load reads the files.
func (c *Certificate) load() (*tls.Certificate, error) {
	certPEM, err := readPEM(c.certFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	keyPEM, err := readPEM(c.keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the certificate: %w", err)
	}
	if err := checkCertificate(certPEM); err != nil {
		return nil, fmt.Errorf("reading the certificate: %s %w", c.certFile, err)
	}
	if err := checkKey(keyPEM); err != nil {
		return nil, fmt.Errorf("reading the key of the certificate: %s %w", c.keyFile, err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	switch {
	case err == nil:
		return &pair, nil
	case strings.Contains(err.Error(), "does not match"):
		return nil, fmt.Errorf("reading the certificate: %s is not the key of the certificate in %s: %w", c.keyFile,
			c.certFile, errkind.Invalid)
	}
	return nil, fmt.Errorf("reading the key of the certificate: %s cannot be used (%s): %w", c.keyFile,
		strings.TrimPrefix(err.Error(), "tls: "), errkind.Invalid)
}

func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCertificateFile+1))
	if len(data) > maxCertificateFile {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, maxCertificateFile, errkind.TooLarge)
	}
	return data, err
}

// checkCertificate returns why a file contains no certificate. The error follows the
// name of the file.
func checkCertificate(data []byte) error {
	for rest := data; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil:
			return fmt.Errorf("contains no certificate in PEM: %w", errkind.Invalid)
		case block.Type != "CERTIFICATE":
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("contains a damaged certificate (%s): %w", strings.TrimPrefix(err.Error(), "x509: "),
				errkind.Invalid)
		}
		return nil
	}
}

// checkKey returns why a file contains no key that can be used. The error follows the
// name of the file.
func checkKey(data []byte) error {
	for rest := data; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil:
			return fmt.Errorf("contains no key in PEM: %w", errkind.Invalid)
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
			continue
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return fmt.Errorf("is encrypted, want a key without a passphrase: %w", errkind.Invalid)
		}
		return nil
	}
}
