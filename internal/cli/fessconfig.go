package cli

import "path/filepath"

// A FessConfig is the configuration file of the bridge in front of a Fess
// server (FRS 4.1 and the keys that were added to it). Its fields are the keys;
// times are in milliseconds and sizes in bytes, as in the file.
type FessConfig struct {
	FessBaseURL string `json:"fessBaseUrl"` // required; may hold a path
	FessAPI     string `json:"fessApi"`     // auto, v1 or v2

	FessAuth struct {
		AccessToken string `json:"accessToken"` // sent to Fess; FESS_API_TOKEN goes before it
		PassThrough bool   `json:"passThrough"`
	} `json:"fessAuth"`

	TLS struct {
		CAFile             string `json:"caFile"` // PEM; relative to the configuration file
		InsecureSkipVerify bool   `json:"insecureSkipVerify"`
	} `json:"tls"`

	Domain struct {
		ID          string `json:"id"`          // required
		Name        string `json:"name"`        // required
		Description string `json:"description"` // told to the model
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
		Dir        string `json:"dir"`        // relative to the configuration file; default log
	} `json:"logging"`

	Security struct {
		HTTPAuthToken         string `json:"httpAuthToken"` // asked of callers over HTTP
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

// defaultFessConfig returns the configuration that an empty file would give,
// were there no required keys.
func defaultFessConfig() *FessConfig {
	c := &FessConfig{FessAPI: "auto"}
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

// resolve makes the paths in the configuration relative to the folder of the
// file that they stand in.
func (c *FessConfig) resolve(file string) {
	for _, path := range []*string{&c.TLS.CAFile, &c.Logging.Dir} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
}
