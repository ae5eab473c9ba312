package mcpsettings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// maxID is the maximum length of a server's id, in bytes.
const maxID = 128

// A decoder decodes the entries of a file into servers.
type decoder struct {
	src      *source
	settings *Settings
}

// A draft is a server whose entry is being read.
type draft struct {
	server  Server // not yet expanded
	path    string // of the entry
	at      int
	entry   node
	rest    []string // of a command that is a list, the elements after the first
	how     string   // the transport in the entry; "" for none
	howKey  string   // the key of the transport
	unknown string   // a transport that is not supported
	meant   string   // a suggestion for an unknown key, if it resembles a command or a URL; "" or a clause
	bearer  string   // the variable that contains a token
	fromEnv map[string]string
}

// maxWarnings limits the number of warnings from one file.
const maxWarnings = 100

// warn adds a warning about the key path.
func (d *decoder) warn(path, format string, args ...any) {
	switch n := len(d.settings.Warnings); {
	case n < maxWarnings:
		d.settings.Warnings = append(d.settings.Warnings, path+": "+fmt.Sprintf(format, args...))
	case n == maxWarnings:
		d.settings.Warnings = append(d.settings.Warnings, "there are more warnings of this kind")
	}
}

// comment reports whether an entry that is not an object is acceptable among
// the servers: a comment, or null for a server that was removed.
func comment(m member) bool {
	return m.value.kind == null || m.name == "" || strings.HasPrefix(m.name, "//") ||
		strings.HasPrefix(m.name, "_") || strings.HasPrefix(m.name, "$")
}

// servers decodes the entries of an object.
func (d *decoder) servers(root node, found member) ([]*draft, error) {
	seen := map[string]bool{}
	var drafts []*draft
	for _, m := range found.value.members {
		path := key(found.name, m.name)
		if found.name == "" && m.name == "$schema" {
			continue
		}
		if m.value.kind != object && comment(m) {
			d.warn(path, "left out, because it is %s and not a server", m.value.kind)
			continue
		}
		if m.value.kind != object {
			return nil, d.src.mismatch(m.value, path, "an object with the command or the url of a server")
		}
		if c := bad(m.name, `/\`); c != "" || m.name == "" || len(m.name) > maxID {
			return nil, d.src.fail(m.at, path,
				"the id of a server must have 1 to %d bytes and no slash, backslash or control character; rename it",
				maxID)
		}
		if seen[m.name] {
			return nil, d.src.fail(m.at, path, "there are two servers with this id; rename or remove one")
		}
		seen[m.name] = true
		if len(seen) > MaxServers {
			return nil, d.src.fail(m.at, path, "more than %d servers; split the file", MaxServers)
		}
		r, err := d.entry(m, path)
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, r)
	}
	d.gemini(root, drafts)
	slices.SortFunc(drafts, func(a, b *draft) int { return cmp.Compare(a.server.ID, b.server.ID) })
	return drafts, nil
}

// gemini disables the servers that the lists of Gemini CLI leave out.
func (d *decoder) gemini(root node, drafts []*draft) {
	if d.settings.Dialect != "gemini" {
		return
	}
	mcp, _ := root.get("mcp")
	names := func(k string) map[string]bool {
		set := map[string]bool{}
		all, _ := mcp.get(k)
		for _, n := range all.items {
			set[n.text] = true
		}
		return set
	}
	allowed, excluded := names("allowed"), names("excluded")
	for _, r := range drafts {
		if id := r.server.ID; excluded[id] || len(allowed) > 0 && !allowed[id] {
			r.server.Disabled = true
		}
	}
}

// entry decodes one server. Errors of a disabled server are warnings.
func (d *decoder) entry(m member, path string) (*draft, error) {
	r := &draft{server: Server{ID: m.name}, path: path, at: m.value.at, entry: m.value}
	disabled, err := d.disabled(r)
	if err != nil {
		return nil, err
	}
	r.server.Disabled = disabled
	if err := d.fields(r); err != nil {
		if f, ok := err.(*fault); ok && disabled {
			d.warn(f.path, "%s (the server is disabled)", f.what)
			r.server = Server{ID: m.name, Disabled: true}
			return r, nil
		}
		return nil, err
	}
	r.server.Args = append(r.rest, r.server.Args...)
	r.addHeaders()
	r.server.Transport = r.transport(r.server.URL)
	return r, nil
}

// disabled reports whether the entry is disabled. "enabled" takes precedence
// over "disabled"; "isActive" is used by Cherry Studio.
func (d *decoder) disabled(r *draft) (bool, error) {
	for _, k := range []string{"enabled", "isActive", "disabled"} {
		v, ok := r.entry.get(k)
		switch {
		case !ok || v.kind == null:
		case v.kind != boolean:
			return false, d.src.mismatch(v, key(r.path, k), "true or false")
		default:
			return v.truth == (k == "disabled"), nil
		}
	}
	return false, nil
}

// fields decodes the keys of an entry.
func (d *decoder) fields(r *draft) error {
	seen := map[string]bool{}
	rank := len(urlKeys)
	for _, m := range r.entry.members {
		path := key(r.path, m.name)
		if seen[m.name] {
			return d.src.fail(m.at, path, "given twice; remove one")
		}
		seen[m.name] = true
		if m.value.kind == null {
			continue // like a missing key
		}
		if i := slices.Index(urlKeys, m.name); i >= 0 {
			url, err := d.text(m.value, path)
			if err != nil {
				return err
			}
			if i < rank {
				rank, r.server.URL = i, url
			}
			continue
		}
		if err := d.field(r, m.name, path, m.value); err != nil {
			return err
		}
	}
	// In settings of Gemini CLI, the key of the URL determines the transport.
	if r.how == "" && r.unknown == "" && r.server.Command == "" {
		switch {
		case rank == 0:
			r.how = HTTP
		case rank == 1 && d.settings.Dialect == "gemini":
			r.how = SSE
		}
	}
	return nil
}

// urlKeys are the keys for a server's URL, in order of precedence: Gemini CLI's
// for streamable HTTP, the common one, Windsurf's, Cherry Studio's.
var urlKeys = []string{"httpUrl", "url", "serverUrl", "baseUrl"}

// field decodes one key of an entry that is not a URL.
func (d *decoder) field(r *draft, name, path string, v node) (err error) {
	s := &r.server
	switch name {
	case "command":
		return d.command(r, path, v)
	case "args":
		s.Args, err = d.texts(v, path)
	case "env", "environment":
		s.Env, err = d.table(s.Env, v, path)
	case "headers", "http_headers":
		s.Headers, err = d.table(s.Headers, v, path)
	case "env_http_headers":
		r.fromEnv, err = d.variables(v, path)
	case "bearer_token_env_var":
		r.bearer, err = d.variable(v, path)
	case "cwd":
		s.Dir, err = d.text(v, path)
	case "transport", "type":
		return d.transport(r, name, path, v)
	case "timeout", "tool_timeout_sec":
		s.Timeout, err = d.timeout(v, path, name)
	case "includeTools", "enabledTools", "allowedTools", "enabled_tools":
		s.Include, err = d.texts(v, path)
	case "excludeTools", "disabledTools", "blockedTools", "disabled_tools":
		s.Exclude, err = d.texts(v, path)
	case "tools":
		// A list of names for GitHub Copilot, settings of each tool for Codex.
		if v.kind == list {
			s.Include, err = d.texts(v, path)
		}
	case "enabled", "disabled", "isActive":
		// already decoded
	case "envFile", "env_file":
		d.warn(path, `the file is not read; give its variables in "env" or set them before the start`)
	case "oauth", "auth", "headersHelper":
		d.warn(path, `not used, there is no sign-in; give what the server wants in "headers"`)
	default:
		if !slices.Contains(strings.Fields(ignored), name) {
			d.unknown(r, name, path)
		}
	}
	return err
}

// ignored are keys that programs use for themselves: what they ask the user,
// how they show a server, and their own limits.
const ignored = `alwaysAllow autoApprove autoRun description name displayName title version icon iconUrl logoUrl trust
 authProviderType targetAudience targetServiceAccount gallery dev sandbox sandboxEnabled watchPaths startup_timeout_sec
 startup_timeout_ms required scopes oauth_resource env_vars experimental_environment environment_id
 default_tools_approval_mode supports_parallel_tool_calls alwaysLoad initTimeout networkTimeout longRunning source
 settings provider providerUrl tags registryUrl installSource metadata $schema`

// known are the keys that are suggested for an unknown one.
const known = `command args env cwd type transport url headers disabled enabled timeout includeTools excludeTools
 enabledTools disabledTools allowedTools serverUrl httpUrl environment bearer_token_env_var http_headers
 env_http_headers tool_timeout_sec enabled_tools disabled_tools`

// unknown warns about a key.
func (d *decoder) unknown(r *draft, name, path string) {
	near := spell.Near(name, strings.Fields(known), 1)
	if len(near) == 0 {
		d.warn(path, "unknown key, left out")
		return
	}
	d.warn(path, "unknown key, left out; is it meant to be %q?", near[0])
	if r.meant == "" && (near[0] == "command" || slices.Contains(urlKeys, near[0])) {
		r.meant = fmt.Sprintf("; perhaps %s is meant to be %q", spell.Quote(name), near[0])
	}
}

// command decodes a command: a string, a list that also contains the arguments
// (OpenCode), or an object (older versions of Zed).
func (d *decoder) command(r *draft, path string, v node) (err error) {
	switch v.kind {
	case list:
		words, err := d.texts(v, path)
		if err != nil || len(words) == 0 {
			return err
		}
		r.server.Command, r.rest = words[0], words[1:]
	case object:
		for _, m := range v.members {
			at := key(path, m.name)
			switch m.name {
			case "path":
				r.server.Command, err = d.text(m.value, at)
			case "args":
				r.rest, err = d.texts(m.value, at)
			case "env":
				r.server.Env, err = d.table(r.server.Env, m.value, at)
			default:
				d.unknown(r, m.name, at)
			}
			if err != nil {
				return err
			}
		}
	case text:
		r.server.Command = v.text
	default:
		return d.src.mismatch(v, path, "a string or a list of strings")
	}
	return nil
}

// transport decodes the name of a transport. "transport" takes precedence over
// "type".
func (d *decoder) transport(r *draft, name, path string, v node) error {
	word, err := d.text(v, path)
	if err != nil || r.howKey == "transport" {
		return err
	}
	r.how, r.howKey, r.unknown = "", name, ""
	switch strings.NewReplacer("_", "-", " ", "").Replace(strings.ToLower(word)) {
	case "":
	case "stdio", "local":
		r.how = Stdio
	case "http", "streamable-http", "streamablehttp", "streamable", "http-stream":
		r.how = HTTP
	case "sse", "http+sse":
		r.how = SSE
	case "remote":
		r.how = "remote"
	case "ws", "websocket", "sdk", "inmemory", "builtin":
		r.unknown = word
	default:
		return d.src.fail(v.at, path, `got %s, want "stdio", "http" (also "streamable-http") or "sse"`,
			spell.Quote(word))
	}
	return nil
}
