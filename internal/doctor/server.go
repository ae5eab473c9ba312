package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/httpclient"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// port checks whether serve can listen, and the server that listens there already.
func (e *examiner) port(ctx context.Context) []Finding {
	const subject = "port"
	host, service, err := net.SplitHostPort(e.Addr)
	number, convErr := strconv.Atoi(service)
	if err != nil || convErr != nil {
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.Addr)
	if err != nil {
		return []Finding{ok(subject, "%d is free", number)}
	}
	conn.Close()
	by := e.machine.listener(number)
	asking, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	scheme := httpguard.SchemeAt(asking, e.Addr)
	if scheme == "" {
		return []Finding{{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("%s is in use by another program%s, so %q cannot listen there", e.Addr, prefixed(": ",
				e.foreign(by)),
				e.Program+" serve"),
			Fix: fmt.Sprintf("End it, or choose another port: %s serve --port %d FOLDER. Clients that start the program themselves need no port.",
				e.Program, number+1)}}
	}
	findings := []Finding{ok(subject, "a server of %s listens on %s%s", e.Program, e.Addr, prefixed(", ",
		e.foreign(by)))}
	if scheme == "https" {
		return findings // the name in its certificate is not known here
	}
	return append(findings, e.probe(ctx, "server", "http://"+net.JoinHostPort(host, service)+"/mcp",
		e.tokenHeader())...)
}

// prefixed returns a text with a prefix, or "" if it is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// tokenHeader returns the header with the token, or none.
func (e *examiner) tokenHeader() map[string]string {
	if e.Token == "" || !httpclient.ValidKey(e.Token) {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + e.Token}
}

// server checks the server at the URL that the user named.
func (e *examiner) server(ctx context.Context) []Finding {
	findings := e.token()
	if Count(findings, Error) > 0 {
		return findings // it cannot be sent
	}
	return append(findings, e.probe(ctx, "server", e.URL, e.tokenHeader())...)
}

// initialize is the first request of a client.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"knowhow-doctor","version":"1"}}}`

// probe checks an MCP server over HTTP: what answers, then a handshake and a search.
func (e *examiner) probe(ctx context.Context, subject, address string, headers map[string]string) []Finding {
	wrong := func(message, fix string) []Finding {
		return []Finding{{Level: Error, Subject: subject, Message: message, Fix: fix}}
	}
	e.secretURL(address)
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return wrong("the URL cannot be read", "Use one such as http://127.0.0.1:7411/mcp.")
	case u.Scheme != "http" && u.Scheme != "https":
		return wrong(fmt.Sprintf("%s has the scheme %q", shown(address), u.Scheme),
			"Use a URL that begins with http:// or https://.")
	case u.User != nil:
		return wrong(fmt.Sprintf("the URL %s contains a user or a password, which MCP clients do not send",
			shown(address)),
			"Remove them, and send the token in the header Authorization.")
	}
	resp, err := e.send(ctx, http.MethodPost, address, headers)
	if err != nil {
		message, fix := e.unreachable(u, err)
		return wrong(message, fix)
	}
	if message, fix := e.refused(ctx, u, resp, headers); message != "" {
		return wrong(message, fix)
	}
	return e.converse(ctx, subject, mcpsettings.Server{ID: "server", Transport: mcpsettings.HTTP, URL: address,
		Headers: headers}, shown(address))
}

// A response is what a server answered.
type response struct {
	status      int
	contentType string
	location    string
	challenge   string
	body        string // the beginning
}

// send sends the first request of a client, or a GET.
func (e *examiner) send(ctx context.Context, method, address string, headers map[string]string) (*response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(initialize))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	transport := httpclient.NewTransport(1)
	defer transport.CloseIdleConnections()
	resp, err := httpclient.New(transport).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	r := &response{status: resp.StatusCode, location: resp.Header.Get("Location"),
		challenge: resp.Header.Get("WWW-Authenticate")}
	r.contentType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if r.contentType != "text/event-stream" { // which may never end
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10))
		r.body = string(body)
	}
	return r, nil
}

// unreachable returns the message for a request that got no answer, and what to do.
func (e *examiner) unreachable(u *url.URL, err error) (message, fix string) {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	address := shown(u.String())
	start := fmt.Sprintf("Start it (%s serve FOLDER), or correct the URL.", e.Program)
	if !httpguard.Loopback(u.Host) {
		start = "Check that the server runs and that a firewall lets the port through, or correct the URL."
	}
	switch httpclient.CauseOf(err) {
	case httpclient.NoHost:
		return fmt.Sprintf("there is no host %s", u.Hostname()),
			"Check the spelling of the URL, the name service, and the VPN."
	case httpclient.NotTrusted:
		return fmt.Sprintf("the certificate of %s is not trusted: %s", u.Host, e.reason(err)),
			"Use a certificate whose authority this machine and the clients know, and the name that it was issued for."
	case httpclient.NoTLS:
		return fmt.Sprintf("%s does not speak TLS", u.Host), "Use a URL that begins with http://, or the port with TLS."
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s", address), start
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return fmt.Sprintf("%s did not answer in time", address), start
	}
	return fmt.Sprintf("%s does not answer: %s", address, e.reason(err)), start
}

// refused returns the message for an answer that is not one of MCP, and what to do. It
// returns "" for an answer of MCP.
func (e *examiner) refused(ctx context.Context, u *url.URL, r *response, headers map[string]string) (message,
	fix string) {
	address := shown(u.String())
	said := prefixed(": ", e.foreign(errorText(r)))
	_, sent := headers["Authorization"]
	page := strings.Contains(r.contentType, "html")
	switch {
	case r.status >= 300 && r.status < 400:
		to, err := u.Parse(r.location)
		if err != nil || r.location == "" {
			return fmt.Sprintf("%s redirects", address), "Use the address that it redirects to."
		}
		return fmt.Sprintf("%s redirects to %s, and clients do not send a token there", address, shown(to.String())),
			fmt.Sprintf("Use that address, if it is the server: %s", shown(to.String()))
	case r.status == http.StatusUnauthorized && !sent:
		return fmt.Sprintf("%s requires a token", address),
			"Name it with --token or KNOWHOW_TOKEN here, and configure clients to send it: Authorization: Bearer TOKEN."
	case r.status == http.StatusUnauthorized:
		return fmt.Sprintf("%s refuses the token%s", address, said),
			"Use the token that the server was started with (--token or KNOWHOW_TOKEN)."
	case r.status == http.StatusForbidden:
		return fmt.Sprintf("%s refuses the request (status 403)%s", address, said),
			fmt.Sprintf("If the server is behind a proxy or is reached by another name, start it with --allow-host %s; for web pages, with --allow-origin ORIGIN.",
				u.Host)
	case r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed || page:
		right := *u
		right.Path, right.RawQuery = "/mcp", ""
		if u.Path != right.Path && e.ours(ctx, u) {
			return fmt.Sprintf("MCP is not served at the path %q of %s", cmp.Or(u.Path, "/"), u.Host),
				fmt.Sprintf("Use the URL %s", shown(right.String()))
		}
		if page {
			return fmt.Sprintf("a web page answers at %s, and not MCP (status %d)", address, r.status),
				"Check the host, the port and the path. The page may be the login of a proxy."
		}
		return fmt.Sprintf("%s answers with status %d, so it is not MCP%s", address, r.status, said),
			"Check the path of the URL, which is /mcp for servers of knowhow."
	case r.status == http.StatusBadRequest && strings.Contains(r.body, "HTTPS server"):
		return fmt.Sprintf("%s speaks TLS", u.Host), "Use a URL that begins with https://."
	case r.status == http.StatusProxyAuthRequired || r.status == http.StatusBadGateway ||
		r.status == http.StatusGatewayTimeout:
		return fmt.Sprintf("a proxy answers for %s with status %d%s", address, r.status, said),
			"Check the server behind the proxy, and HTTP_PROXY and NO_PROXY."
	case r.status >= 400:
		return fmt.Sprintf("%s answers with status %d%s", address, r.status, said), "Look into the log of the server."
	case r.contentType != "application/json" && r.contentType != "text/event-stream":
		return fmt.Sprintf("%s answers with %q, and not MCP", address, e.foreign(r.contentType)),
			"Check the host, the port and the path, which is /mcp for servers of knowhow."
	case r.contentType == "application/json" && !bytes.Contains([]byte(r.body), []byte(`"jsonrpc"`)):
		return fmt.Sprintf("%s answers with JSON that is not MCP", address),
			"Check the host, the port and the path, which is /mcp for servers of knowhow."
	}
	return "", ""
}

// errorText returns the message in the answer of a server that refuses a request.
func errorText(r *response) string {
	if strings.Contains(r.contentType, "html") {
		return ""
	}
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal([]byte(r.body), &answer) != nil {
		if r.contentType == "text/plain" {
			return r.body
		}
		return ""
	}
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer.Error, &object) == nil && object.Message != "" {
		return object.Message
	}
	var text string
	_ = json.Unmarshal(answer.Error, &text)
	return text
}

// ours reports whether a server of this program answers at the host of a URL.
func (e *examiner) ours(ctx context.Context, u *url.URL) bool {
	health := *u
	health.Path, health.RawQuery = httpguard.HealthPath, ""
	r, err := e.send(ctx, http.MethodGet, health.String(), nil)
	return err == nil && r.body == httpguard.Health
}

// converse makes a handshake with a server and one search. name describes the server.
func (e *examiner) converse(ctx context.Context, subject string, server mcpsettings.Server, name string) []Finding {
	left := e.Limit
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	pool := mcpclient.New(mcpclient.Options{Servers: []mcpsettings.Server{server}, Version: e.Build.Version,
		ConnectTimeout: left, CallTimeout: left})
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		_ = pool.Close(ctx)
	}()
	catalog, err := pool.Catalog(ctx, server.ID)
	if err != nil {
		return []Finding{{Level: Error, Subject: subject, Message: fmt.Sprintf("%s does not complete the handshake: %s",
			name, e.reason(err)),
			Fix: handshakeFix(server)}}
	}
	if len(catalog.Tools) == 0 {
		return []Finding{{Level: Warning, Subject: subject, Message: fmt.Sprintf("%s answers, but offers no tools",
			name),
			Fix: "Check that it is the right server, and its log."}}
	}
	tools := terminal.Plural(len(catalog.Tools), "tool")
	tool := searchTool(catalog.Tools)
	if tool == "" {
		return []Finding{ok(subject, "%s answers: %s", name, tools)}
	}
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": map[string]string{"query": "readme"}})
	if err != nil {
		return nil // cannot happen
	}
	result, err := pool.Call(ctx, server.ID, "tools/call", params)
	var answer struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err == nil {
		err = json.Unmarshal(result, &answer)
	}
	if err == nil && answer.IsError {
		err = errors.New("the tool reported a failure")
		if len(answer.Content) > 0 && answer.Content[0].Text != "" {
			err = errors.New(answer.Content[0].Text)
		}
	}
	if err != nil {
		return []Finding{{Level: Error, Subject: subject, Message: fmt.Sprintf("%s answers, but a search fails: %s",
			name, e.reason(err)),
			Fix: "Do what the message says, and look into the log of the server."}}
	}
	return []Finding{ok(subject, "%s answers: %s, and a search works", name, tools)}
}

// endTime is the time for the end of a connection.
const endTime = 3 * time.Second

// handshakeFix returns what to do if a server does not complete the handshake.
func handshakeFix(server mcpsettings.Server) string {
	if server.Transport == mcpsettings.Stdio {
		return "Type the command in a terminal to see its messages, and correct what they name."
	}
	return "Check that it is an MCP server, and look into its log."
}

// searchTool returns the name of a tool that searches for a query, or "".
func searchTool(tools []mcpclient.Tool) string {
	for _, t := range tools {
		if t.Name != "search" && !strings.HasSuffix(t.Name, "_search") {
			continue
		}
		var schema struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
			Required []string `json:"required"`
		}
		if json.Unmarshal(t.InputSchema, &schema) != nil || schema.Properties["query"].Type != "string" {
			continue
		}
		if !slices.ContainsFunc(schema.Required, func(name string) bool { return name != "query" }) {
			return t.Name
		}
	}
	return ""
}

// engine checks the engine of the knowledge base that is configured.
func (e *examiner) engine(ctx context.Context) []Finding {
	const subject = "engine"
	if e.Engine == "" {
		return nil
	}
	u, err := httpclient.ParseBaseURL("the address of the engine", e.Engine)
	if err != nil {
		return []Finding{{Level: Error, Subject: subject, Message: e.reason(err),
			Fix: "Correct --engine-url or KB_ENGINE_URL."}}
	}
	r, err := e.send(ctx, http.MethodGet, u.JoinPath(httpguard.HealthPath).String(), nil)
	switch {
	case err != nil:
		message, _ := e.unreachable(u, err)
		return []Finding{{Level: Error, Subject: subject, Message: message,
			Fix: fmt.Sprintf("Start it (%s engine), or correct KB_ENGINE_URL.", e.Program)}}
	case r.body != httpguard.Health:
		return []Finding{{Level: Error, Subject: subject,
			Message: fmt.Sprintf("%s is not an engine (status %d)", shown(e.Engine), r.status),
			Fix:     "Correct KB_ENGINE_URL."}}
	}
	return []Finding{ok(subject, "%s answers", shown(e.Engine))}
}
