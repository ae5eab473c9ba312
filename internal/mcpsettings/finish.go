package mcpsettings

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// addHeaders turns Codex's names of variables into placeholders, so that they
// are expanded, checked and hashed like all others.
func (r *draft) addHeaders() {
	if r.server.Headers == nil && (r.bearer != "" || len(r.fromEnv) > 0) {
		r.server.Headers = map[string]string{}
	}
	for header, name := range r.fromEnv {
		r.server.Headers[header] = "${env:" + name + "}"
	}
	if r.bearer != "" {
		r.server.Headers["Authorization"] = "Bearer ${env:" + r.bearer + "}"
	}
}

// transport returns the transport of a server with the given URL; "" if it
// cannot be determined. A named transport takes precedence over a command,
// which takes precedence over a URL with "sse" in its path.
func (r *draft) transport(address string) string {
	switch {
	case r.how != "" && r.how != "remote":
		return r.how
	case r.server.Command != "" && r.how == "":
		return Stdio
	case address == "" && r.how == "":
		return ""
	}
	_, path, _ := strings.Cut(address, "://")
	path, _, _ = strings.Cut(path, "#")
	path, _, _ = strings.Cut(path, "?")
	for _, part := range strings.Split(path, "/")[1:] {
		if strings.EqualFold(part, "sse") {
			return SSE
		}
	}
	return HTTP
}

// finish expands an enabled server and checks that it is complete.
func (d *decoder) finish(r *draft, x *expander) (Server, error) {
	if err := d.complete(r); err != nil {
		return Server{}, err
	}
	s := r.server
	s.Command, s.Dir, s.URL = x.path(s.Command), x.path(s.Dir), x.expand(s.URL)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = x.expand(a)
	}
	s.Env, s.Headers = x.expandAll(s.Env), x.expandAll(s.Headers)
	s.Transport = r.transport(s.URL)
	s.Expanded = slices.Sorted(maps.Keys(x.used))
	if problems := r.problems(s, x); len(problems) > 0 {
		s.Problem = fmt.Errorf("%s: %w", strings.Join(problems, "; "), errkind.Invalid)
	}
	return s, nil
}

// complete checks that an enabled server is complete and unambiguous.
func (d *decoder) complete(r *draft) error {
	s := r.server
	if r.unknown != "" || d.settings.Dialect == "zed" && s.Transport == "" {
		return nil // a problem of this server only
	}
	switch {
	case s.Transport == "":
		return d.src.fail(r.at, r.path, `the server has neither a "command" nor a "url"; give one%s`, r.meant)
	case s.Transport == Stdio && s.Command == "":
		return d.src.fail(r.at, key(r.path, "command"), "missing, want the program that is the server%s", r.meant)
	case s.Transport != Stdio && s.URL == "":
		return d.src.fail(r.at, key(r.path, "url"), "missing, want the http or https URL of the server%s", r.meant)
	case s.Transport != Stdio && !isAbsolute(s.URL) && !d.hasPlaceholder(s.URL):
		return d.src.fail(r.at, key(r.path, "url"),
			"want an absolute http or https URL, such as https://example.com/mcp")
	case s.Command != "" && s.URL != "":
		d.warn(r.path, "has both a command and a URL; transport %q decides which is used", s.Transport)
	}
	for name := range s.Headers {
		if s.Transport != Stdio && !httpguts.ValidHeaderFieldName(name) {
			return d.src.fail(r.at, key(key(r.path, "headers"), name), "this cannot be the name of an HTTP header")
		}
	}
	return nil
}

// hasPlaceholder reports whether s contains a placeholder.
func (d *decoder) hasPlaceholder(s string) bool {
	return slices.ContainsFunc(pieces(s, d.settings.Dialect == "opencode"), func(p piece) bool { return p.name != "" })
}

// isAbsolute reports whether s can be the URL of a server.
func isAbsolute(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Scheme, "https")) &&
		u.Hostname() != ""
}

// expandAll expands the values of a table.
func (x *expander) expandAll(table map[string]string) map[string]string {
	out := maps.Clone(table)
	for k, v := range out {
		out[k] = x.expand(v)
	}
	return out
}

// problems returns the reasons why s cannot be used, for users.
func (r *draft) problems(s Server, x *expander) []string {
	var all []string
	switch {
	case r.unknown != "":
		all = append(all, fmt.Sprintf("transport %s is not supported, want stdio, http or sse", spell.Quote(r.unknown)))
	case s.Transport == "":
		all = append(all, `the server is part of an extension of the editor; give a "command" or a "url"`)
	}
	if names := listed(x.missing); len(x.missing) == 1 {
		all = append(all, fmt.Sprintf("the environment variable %s is not set; set it, or write ${NAME:-default}",
			names))
	} else if len(x.missing) > 1 {
		all = append(all, fmt.Sprintf("the environment variables %s are not set; set them, or write ${NAME:-default}",
			names))
	}
	if len(x.foreign) > 0 {
		all = append(all, fmt.Sprintf("only the editor can fill in %s; write ${NAME} and set that environment "+
			"variable", listed(x.foreign)))
	}
	switch {
	case len(all) > 0:
	case x.size > maxExpanded:
		all = append(all, fmt.Sprintf("its texts have more than %d bytes after environment variables are replaced",
			maxExpanded))
	case s.Transport == Stdio && strings.TrimSpace(s.Command) == "":
		all = append(all, "the command is empty after environment variables are replaced")
	case s.Transport != Stdio && !isAbsolute(s.URL):
		all = append(all, "the url is not an absolute http or https URL after environment variables are replaced")
	case s.Transport != Stdio:
		for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
			if !httpguts.ValidHeaderFieldValue(s.Headers[name]) {
				all = append(all, fmt.Sprintf("the value of the header %s has a line break or another character "+
					"that HTTP does not allow", spell.Quote(name)))
			}
		}
	}
	return all
}

// maxListed is the maximum number of names in a message.
const maxListed = 100

// listed returns sorted names for a message.
func listed(names map[string]bool) string {
	all := slices.Sorted(maps.Keys(names))
	for i := range all {
		all[i] = spell.Cut(all[i])
	}
	if len(all) > maxListed {
		all = append(all[:maxListed], fmt.Sprintf("and %d more", len(all)-maxListed))
	}
	return strings.Join(all, ", ")
}
