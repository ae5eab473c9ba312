package doctor

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// environment checks what the environment sets.
func (e *examiner) environment(context.Context) (findings []Finding) {
	const subject = "environment"
	if e.Home == "" {
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: "the home folder is not known, so clients and their configuration are not found",
			Fix:     "Set the variable HOME."})
	}
	switch transport := e.get("KNOWHOW_TRANSPORT"); transport {
	case "", "http":
	case "stdio":
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: "KNOWHOW_TRANSPORT is stdio: every server that is started in a terminal waits for a client on its standard input",
			Fix: fmt.Sprintf("Unset it, and configure clients with %q, which needs no variable.",
				e.Program+" mcp")})
	default:
		findings = append(findings, Finding{Level: Error, Subject: subject,
			Message: fmt.Sprintf("KNOWHOW_TRANSPORT is %q", sanitized(transport)),
			Fix:     "Set it to http or stdio, or unset it."})
	}
	findings = append(findings, e.token()...)
	if dir := os.TempDir(); e.machine.writable(dir) != nil {
		findings = append(findings, Finding{Level: Error, Subject: subject,
			Message: fmt.Sprintf("the folder for temporary files, %s, cannot be written, so large folders cannot be indexed",
				dir),
			Fix: "Create it or change its permissions, or set TMPDIR to another folder."})
	}
	const fewWatches = 8192 // what Linux had before 2021
	if n := e.machine.watches(); n > 0 && n < fewWatches {
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("this system allows only %d watched folders for each user, so changes in large sources are noticed late",
				n),
			Fix: "Type: sudo sysctl fs.inotify.max_user_watches=524288"})
	}
	if len(findings) == 0 || findings[0].Level == OK {
		findings = append(findings, ok(subject, "no variable prevents anything"))
	}
	return findings
}

// token checks the token that servers require.
func (e *examiner) token() []Finding {
	const subject, shortToken = "token", 16
	switch {
	case e.Token == "":
		return nil
	case !httpclient.ValidKey(e.Token):
		return []Finding{{Level: Error, Subject: subject,
			Message: "the token contains blanks or characters that a header must not contain, so no server accepts it",
			Fix:     "Choose one of visible ASCII characters, for example with: openssl rand -hex 24"}}
	case len(e.Token) < shortToken:
		return []Finding{{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("the token has fewer than %d characters, so it can be guessed", shortToken),
			Fix:     "Choose a longer one, for example with: openssl rand -hex 24"}}
	}
	return []Finding{ok(subject, "set")}
}

// sanitized returns a short form of a value for a message.
func sanitized(s string) string { return s[:min(len(s), 60)] }

// proxies checks the variables that name HTTP proxies.
func (e *examiner) proxies(context.Context) (findings []Finding) {
	const subject = "proxy"
	var set []string
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		value := strings.TrimSpace(e.get(name))
		if value == "" || slices.Contains(set, strings.ToUpper(name)) {
			continue
		}
		set = append(set, strings.ToUpper(name))
		e.secretURL(value)
		u, err := url.Parse(value)
		if !strings.Contains(value, "://") {
			u, err = url.Parse("http://" + value)
		}
		if err != nil || u.Host == "" {
			findings = append(findings, Finding{Level: Error, Subject: subject,
				Message: fmt.Sprintf("%s is not the URL of a proxy", name),
				Fix:     fmt.Sprintf("Set %s to a URL such as http://proxy.example.com:3128, or unset it.", name)})
		}
	}
	none := e.get("NO_PROXY")
	if none == "" {
		none = e.get("no_proxy")
	}
	are := "is"
	if len(set) > 1 {
		are = "are"
	}
	switch {
	case len(set) == 0:
		return []Finding{ok(subject, "no proxy is set")}
	case len(set) == 1 && set[0] == "HTTPS_PROXY": // addresses of this machine begin with http
		findings = append(findings, ok(subject, "HTTPS_PROXY is set, which is not for this machine"))
	case !exempt(none, "127.0.0.1") || !exempt(none, "localhost"):
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("%s %s set, and NO_PROXY does not exempt this machine: many clients then send requests for 127.0.0.1 to the proxy, which does not reach it",
				strings.Join(set, " and "), are),
			Fix: "Set NO_PROXY=localhost,127.0.0.1,::1 for the clients, too."})
	case len(findings) == 0:
		findings = append(findings, ok(subject, "%s %s set, and NO_PROXY exempts this machine", strings.Join(set,
			" and "), are))
	}
	return findings
}

// exempt reports whether NO_PROXY exempts a host.
func exempt(none, host string) bool {
	for entry := range strings.SplitSeq(none, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "*" || strings.TrimPrefix(entry, ".") == host ||
			host == "127.0.0.1" && (entry == "127.0.0.0/8" || entry == "127.0.0.1/32") {
			return true
		}
	}
	return false
}
