package fessconfig

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/config"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/source"
)

const maxTimeoutMs = 3_600_000

var (
	httpPathPattern = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$|^/$`)
	visiblePattern  = regexp.MustCompile(`^[!-~]+$`)
	hostNamePattern = regexp.MustCompile(`^[A-Za-z0-9._:-]+$|^\[[A-Fa-f0-9:.]+\]$`)
)

// A checker collects all problems in a configuration, so that they are reported
// together.
type checker struct {
	file     *config.File
	problems []*config.Error
	warnings []string
}

// want records a problem with the value at path unless ok.
func (c *checker) want(ok bool, path, want string) {
	if !ok {
		c.problems = append(c.problems, c.file.Bad(path, want))
	}
}

// refuse records that a value cannot be used, if bad.
func (c *checker) refuse(bad bool, path, reason string) {
	if bad {
		c.problems = append(c.problems, c.file.Refuse(path, reason))
	}
}

// number checks that a value is between least and most.
func (c *checker) number(path string, value, least, most int, unit string) {
	want := fmt.Sprintf("an integer from %d to %d", least, most)
	if unit != "" {
		want += " (" + unit + ")"
	}
	c.want(value >= least && value <= most, path, want)
}

// word checks that a value is one of words.
func (c *checker) word(path, value string, words ...string) {
	last := len(words) - 1
	c.want(slices.Contains(words, value), path, strings.Join(words[:last], ", ")+" or "+words[last])
}

// each checks the elements of a list.
func (c *checker) each(path string, values []string, ok func(string) bool, want string) {
	for i, value := range values {
		c.want(ok(value), fmt.Sprintf("%s[%d]", path, i), want)
	}
}

// check checks the values from file, and normalises domain.id. It returns warnings
// for the user, and an error that contains one *config.Error for each problem, in
// the order of the file.
func (c *Config) check(file *config.File, http bool) (warnings []string, err error) {
	k := &checker{file: file}
	c.checkFess(k, http)
	c.checkDomain(k)
	c.checkHTTP(k, http)
	c.checkNumbers(k)
	c.checkContentFetch(k)
	slices.SortStableFunc(k.problems, func(a, b *config.Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var all []error
	for _, p := range k.problems {
		all = append(all, p)
	}
	return k.warnings, errors.Join(all...)
}

// WantURL returns what is permitted as the address of a Fess server, or "" if address
// is.
func WantURL(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "an absolute http or https URL such as http://localhost:8080"
	case !httpguard.ValidPort(u):
		return "a URL with a port from 1 to 65535, or without one"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "a URL without user name, query and fragment; an access token belongs in fessAuth.accessToken"
	}
	return ""
}

// checkFess checks the connection to Fess.
func (c *Config) checkFess(k *checker, http bool) {
	want := WantURL(c.FessBaseURL)
	k.want(want == "", "fessBaseUrl", want)
	k.word("fessApi", c.FessAPI, "auto", "v1", "v2")
	k.refuse(c.FessAuth.PassThrough && !http, "fessAuth.passThrough",
		"callers send their tokens in HTTP headers; serve the bridge over HTTP")
	k.want(c.FessAuth.AccessToken == "" || visiblePattern.MatchString(c.FessAuth.AccessToken),
		"fessAuth.accessToken", "visible ASCII characters without blanks")
	if c.TLS.InsecureSkipVerify {
		k.warnings = append(k.warnings, "tls.insecureSkipVerify: the Fess server's certificate is not checked")
	}
}

// checkCAFile reads the certificates in tls.caFile, whose path must be
// resolved. The error is a *config.Error.
func (c *Config) checkCAFile(file *config.File) error {
	if c.TLS.CAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(c.TLS.CAFile)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		err = errors.New("it contains none")
	}
	if err == nil {
		return nil
	}
	return file.Bad("tls.caFile", fmt.Sprintf("a PEM file with certificates (reading %s: %v)", c.TLS.CAFile, err))
}

// checkDomain checks the domain, and normalises its id.
func (c *Config) checkDomain(k *checker) {
	d := &c.Domain
	id, valid := source.NormalDomain(d.ID)
	k.want(valid, "domain.id", fmt.Sprintf(`1 to %d lower-case letters, digits and "_"`, source.MaxDomain))
	if valid && id != d.ID {
		k.warnings = append(k.warnings, fmt.Sprintf("domain.id: %q is used as %q", d.ID, id))
	}
	d.ID = id
	k.want(strings.TrimSpace(d.Name) != "", "domain.name", "a name for people to read")
	const wantLabel = `the value of a Fess label (letters, digits, "_", "." and "-"), or "wholeIndex": true for every document of the server`
	switch {
	case d.WholeIndex:
		k.refuse(k.file.Has("domain.labelFilter"), "domain.wholeIndex",
			"domain.labelFilter is given as well; leave one of the two out")
	case d.LabelFilter == "":
		k.want(false, "domain.labelFilter", wantLabel)
	default:
		k.want(document.ValidLabel(d.LabelFilter), "domain.labelFilter", wantLabel)
	}
}

// checkHTTP checks the address and the access rules of the HTTP transport.
func (c *Config) checkHTTP(k *checker, http bool) {
	t := &c.HTTPTransport
	k.want(hostNamePattern.MatchString(t.BindAddress), "httpTransport.bindAddress",
		"an IP address such as 127.0.0.1 or ::1")
	t.BindAddress = strings.Trim(t.BindAddress, "[]")
	k.refuse(http && t.BindAddress != "" && !httpguard.Loopback(t.BindAddress) && !c.Security.AllowNonLocalhostBind,
		"httpTransport.bindAddress",
		fmt.Sprintf("non-loopback binding (here %s) is disabled; set security.allowNonLocalhostBind to true to allow it, "+
			"or bind to 127.0.0.1", t.BindAddress))
	k.number("httpTransport.port", t.Port, 0, 65535, "")
	k.want(httpPathPattern.MatchString(t.Path) && t.Path != httpguard.HealthPath, "httpTransport.path",
		"a path such as /mcp, other than "+httpguard.HealthPath)
	notEmpty := func(s string) bool { return s != "" }
	for i, origin := range t.AllowedOrigins {
		want := httpguard.WantOrigin(origin)
		k.want(want == "", fmt.Sprintf("httpTransport.allowedOrigins[%d]", i), want)
	}
	k.each("httpTransport.allowedHosts", t.AllowedHosts, notEmpty, "a host name")
	k.want(!k.file.Has("security.httpAuthToken") || visiblePattern.MatchString(c.Security.HTTPAuthToken),
		"security.httpAuthToken",
		"visible ASCII characters without blanks; leave the key out to ask for no token")
}

// checkNumbers checks timeouts, limits and logging.
func (c *Config) checkNumbers(k *checker) {
	k.number("timeouts.fessRequestTimeoutMs", c.Timeouts.FessRequestTimeoutMs, 1, maxTimeoutMs, "milliseconds")
	k.number("timeouts.longRunningThresholdMs", c.Timeouts.LongRunningThresholdMs, 0, maxTimeoutMs, "milliseconds")
	k.number("limits.maxPageSize", c.Limits.MaxPageSize, 1, 100, "")
	k.number("limits.maxChunkBytes", c.Limits.MaxChunkBytes, 1<<10, 16<<20, "bytes")
	k.number("limits.maxInFlightRequests", c.Limits.MaxInFlightRequests, 1, 10_000, "")
	k.word("logging.level", c.Logging.Level, "error", "warn", "info", "debug")
	k.number("logging.retainDays", c.Logging.RetainDays, 0, 3650, "0 keeps logs for ever")
	k.want(c.Logging.Dir != "", "logging.dir", "a folder")
}

// checkContentFetch checks the policy for fetching documents.
func (c *Config) checkContentFetch(k *checker) {
	f := &c.ContentFetch
	k.number("contentFetch.maxBytes", f.MaxBytes, 1, 1<<30, "bytes")
	k.number("contentFetch.timeoutMs", f.TimeoutMs, 1, maxTimeoutMs, "milliseconds")
	k.each("contentFetch.allowedSchemes", f.AllowedSchemes, func(s string) bool { return s == "http" || s == "https" },
		"http or https")
	host := func(s string) bool {
		_, err := fetch.New(fetch.Options{AllowedHosts: []string{s}})
		return err == nil
	}
	k.each("contentFetch.allowedHostAllowlist", f.AllowedHostAllowlist, host,
		"a host such as intranet.example.com, or *.example.com")
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	k.want(!strings.ContainsFunc(f.UserAgent, unprintable), "contentFetch.userAgent", "printable ASCII characters")
	k.word("contentFetch.fessCache", f.FessCache, "policy", "always", "never")
	u, err := url.Parse(f.Proxy)
	k.want(f.Proxy == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && httpguard.ValidPort(u),
		"contentFetch.proxy", "an absolute http or https URL such as http://proxy.example.com:3128")
}
