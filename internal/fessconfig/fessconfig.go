// Package fessconfig reads the configuration file of the bridge in front of a
// Fess server. It defines the keys, their defaults and their checks, and the
// keys that errors of other packages are due to.
package fessconfig

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/config"
	"github.com/knowhow-mcp/knowhow/internal/source"
)

// A Config is a configuration file (FRS 4.1 and the keys that were added to it).
// Its fields are the keys; times are in milliseconds and sizes in bytes, as in the
// file.
type Config struct {
	FessBaseURL string `json:"fessBaseUrl"` // required; may contain a path
	FessAPI     string `json:"fessApi"`     // auto, v1 or v2

	FessAuth struct {
		AccessToken string `json:"accessToken"` // sent to Fess
		PassThrough bool   `json:"passThrough"`
	} `json:"fessAuth"`

	TLS struct {
		CAFile             string `json:"caFile"` // PEM; relative to the configuration file
		InsecureSkipVerify bool   `json:"insecureSkipVerify"`
	} `json:"tls"`

	Domain struct {
		ID          string `json:"id"`          // required
		Name        string `json:"name"`        // required
		Description string `json:"description"` // for the model
		LabelFilter string `json:"labelFilter"` // required unless WholeIndex
		WholeIndex  bool   `json:"wholeIndex"`
	} `json:"domain"`

	HTTPTransport struct {
		BindAddress    string   `json:"bindAddress"`
		Port           int      `json:"port"` // 0 lets the system choose
		Path           string   `json:"path"`
		EnableSSE      bool     `json:"enableSse"`
		AllowedOrigins []string `json:"allowedOrigins"` // beyond loopback ones
		AllowedHosts   []string `json:"allowedHosts"`   // beyond loopback ones
	} `json:"httpTransport"`

	Timeouts struct {
		FessRequestTimeoutMs   int `json:"fessRequestTimeoutMs"`
		LongRunningThresholdMs int `json:"longRunningThresholdMs"`
	} `json:"timeouts"`

	Limits struct {
		MaxPageSize         int `json:"maxPageSize"`
		MaxChunkBytes       int `json:"maxChunkBytes"`
		MaxInFlightRequests int `json:"maxInFlightRequests"`
	} `json:"limits"`

	Logging struct {
		Level      string `json:"level"`
		RetainDays int    `json:"retainDays"` // 0 keeps
		Dir        string `json:"dir"`        // relative to the configuration file; default log; "" without a file
	} `json:"logging"`

	Security struct {
		HTTPAuthToken         string `json:"httpAuthToken"` // required of callers over HTTP
		AllowNonLocalhostBind bool   `json:"allowNonLocalhostBind"`
	} `json:"security"`

	ContentFetch struct {
		Enabled                    bool     `json:"enabled"`
		MaxBytes                   int      `json:"maxBytes"`
		TimeoutMs                  int      `json:"timeoutMs"`
		AllowedSchemes             []string `json:"allowedSchemes"`
		AllowPrivateNetworkTargets bool     `json:"allowPrivateNetworkTargets"`
		AllowedHostAllowlist       []string `json:"allowedHostAllowlist"`
		UserAgent                  string   `json:"userAgent"`
		EnablePDF                  bool     `json:"enablePdf"`
		FessCache                  string   `json:"fessCache"` // policy, always or never
		Proxy                      string   `json:"proxy"`
	} `json:"contentFetch"`
}

// defaults returns the configuration of an empty file, if no key were required.
func defaults() *Config {
	c := &Config{FessAPI: "auto"}
	c.HTTPTransport.BindAddress = "127.0.0.1"
	c.HTTPTransport.Path = "/mcp"
	c.HTTPTransport.EnableSSE = true
	c.Timeouts.FessRequestTimeoutMs = 30_000
	c.Timeouts.LongRunningThresholdMs = 2_000
	c.Limits.MaxPageSize = 100
	c.Limits.MaxChunkBytes = 256 << 10
	c.Limits.MaxInFlightRequests = 32
	c.Logging.Level = "info"
	c.Logging.RetainDays = 7
	c.Logging.Dir = "log"
	c.ContentFetch.Enabled = true
	c.ContentFetch.MaxBytes = 5 << 20
	c.ContentFetch.TimeoutMs = 20_000
	c.ContentFetch.AllowedSchemes = []string{"http", "https"}
	c.ContentFetch.FessCache = "policy"
	return c
}

// New returns the configuration without a file: the defaults, for the documents with a
// label of the server at an address, for which [WantURL] must return "". The id of the
// domain is made of the label, and so is its name if name is "". There is no folder
// for logs.
func New(address, label, name string) *Config {
	c := defaults()
	c.FessBaseURL = address
	c.Domain.ID, c.Domain.Name, c.Domain.LabelFilter = source.Domain(label), cmp.Or(name, label), label
	c.Logging.Dir = ""
	return c
}

// resolve makes relative paths in the configuration relative to the folder of
// the file, or of the home folder if they begin with "~/" (on Windows also "~\").
func (c *Config) resolve(file, home string) {
	for _, path := range []*string{&c.TLS.CAFile, &c.Logging.Dir} {
		if rest, ok := strings.CutPrefix(*path, "~"); ok && rest != "" && os.IsPathSeparator(rest[0]) && home != "" {
			*path = filepath.Join(home, rest)
		}
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
}

// Find returns the first configuration file below the home folder that exists,
// or "" if there is none, and the paths that it tried.
func Find(home string) (path string, tried []string) {
	for _, dir := range []string{".mcp-feiss", "mcp-feiss", ".mcp-fess"} {
		path := filepath.Join(home, dir, "config.json")
		tried = append(tried, path)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, tried
		}
	}
	return "", tried
}

// Options configure how a file is read.
type Options struct {
	// Env looks up the environment variables in the file; see [config.Options].
	Env func(name string) (value string, ok bool)

	// Home is the folder for which "~" stands in paths, or "".
	Home string

	// HTTP means that the bridge will be served over HTTP. Only then are the
	// address to listen on and what needs headers checked.
	HTTP bool
}

// Read reads and checks the configuration file at path. It returns
// warnings for the user, and an error that contains one [*config.Error] for each problem.
func Read(path string, o Options) (c *Config, warnings []string, err error) {
	c = defaults()
	file, err := config.ReadFile(path, c, config.Options{Env: o.Env})
	if err != nil {
		return nil, nil, err
	}
	if warnings, err = c.check(file, o.HTTP); err != nil {
		return nil, nil, err
	}
	c.resolve(path, o.Home)
	if err := c.checkCAFile(file); err != nil {
		return nil, nil, err
	}
	return c, warnings, nil
}
