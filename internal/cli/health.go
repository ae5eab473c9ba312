package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

const healthHelp = `Usage: {cmd} URL

Reports whether a server of this program answers, for health checks of containers.
The exit status is 0 if it does, and 1 otherwise. No key is needed. The certificate
of a server on this machine is not checked, because it is for another name.

Examples:
  {cmd} http://127.0.0.1:8000
  {cmd} http://127.0.0.1:8765
  {cmd} https://knowhow.example.com
`

// healthTime is the time limit for the answer of a server.
const healthTime = 3 * time.Second

// A healthCommand asks a server whether it works.
type healthCommand struct {
	URL string `arg:"URL"`
}

func (o *healthCommand) run(ctx context.Context, v *invocation) error {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return v.usagef("got %q, want the URL of a server, such as http://127.0.0.1:8000", o.URL)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("/healthz").String(), nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", u.Redacted(), err)
	}
	client := http.DefaultClient
	if httpguard.Loopback(u.Host) { // a certificate is for the name that other machines use
		client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	resp, err := client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return &hintError{fmt.Errorf("%s does not answer: %w", u.Redacted(), err),
			"Check that the server runs, and its log."}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &hintError{fmt.Errorf("%s answers with status %d", u.Redacted(), resp.StatusCode),
			"Check the URL and the log of the server."}
	}
	_, err = fmt.Fprintln(v.stdout, "ok")
	return err
}
