package mcpsettings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"knowhow/internal/spell"
)

// maxID is the longest id of a server, in bytes.
const maxID = 128

// A decoder turns the entries of a file into servers.
type decoder struct {
	src      *source
	settings *Settings
	more     int // warnings beyond maxWarnings
}

// A draft is a server while its entry is read.
type draft struct {
	server  Server // nothing in it is expanded
	path    string // of the entry
	at      int
	entry   node
	rest    []string // of a command that is a list, what follows its first element
	how     string   // the transport that the entry names; "" for none
	howKey  string   // and the key that does
	unknown string   // a transport that exists but not here
	meant   string   // what an unknown key may have been meant to be, where that is a command or a URL; "" or a clause
	bearer  string   // the variable that holds a token
	fromEnv map[string]string
}

// maxWarnings bounds what a file can put on the screen.
const maxWarnings = 100

// warn adds a sentence about the key path.
func (d *decoder) warn(path, format string, args ...any) {
	if len(d.settings.Warnings) == maxWarnings {
		d.more++
		return
	}
	d.settings.Warnings = append(d.settings.Warnings, path+": "+fmt.Sprintf(format, args...))
}

// comment reports whether an entry that is no object is one that people put among
// servers all the same: a remark, or a server taken out by null.
func comment(m member) bool {
	return m.value.kind == null || m.name == "" || strings.HasPrefix(m.name, "//") || strings.HasPrefix(m.name, "_") || strings.HasPrefix(m.name, "$")
}

// servers reads the entries of the object found.
func (d *decoder) servers(root node, found member) ([]*draft, error) {
	seen := map[string]bool{}
	var drafts []*draft
	for _, m := range found.value.members {
		path := key(found.name, m.name)
		if found.name == "" && m.name == "$schema" {
			continue
		}
		switch {
		case m.value.kind == object:
		case comment(m):
			d.warn(path, "left out, because it is %s and no server", m.value.kind)
			continue
		default:
			return nil, d.src.mismatch(m.value, path, "an object with the command or the url of a server")
		}
		if c := bad(m.name, `/\`); c != "" || m.name == "" || len(m.name) > maxID {
			return nil, d.src.fail(m.at, path, "the id of a server must have 1 to %d bytes and no slash, backslash or control character; rename it", maxID)
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

// gemini switches off what the lists beside the servers of Gemini CLI leave
// out.
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

// entry reads one server. What is wrong with one that is disabled is a warning.
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

// disabled reports whether the entry is switched off: "enabled" beats "disabled",
// "isActive" is Cherry Studio's word.
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

// fields reads the keys of an entry.
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
			continue // as if it were not there
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
	// Gemini CLI tells the transport by the key of the address.
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

// urlKeys are the keys for a server's address, the strongest first: Gemini
// CLI's for streamable HTTP, everyone's, Windsurf's, Cherry Studio's.
var urlKeys = []string{"httpUrl", "url", "serverUrl", "baseUrl"}

// field reads one key of an entry that is no URL.
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
		// read before all others
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

// ignored are keys that programs have for themselves: what they ask the user
// about, how they show a server, and limits of their own.
const ignored = `alwaysAllow autoApprove autoRun description name displayName title version icon iconUrl logoUrl trust
 authProviderType targetAudience targetServiceAccount gallery dev sandbox sandboxEnabled watchPaths startup_timeout_sec
 startup_timeout_ms required scopes oauth_resource env_vars experimental_environment environment_id
 default_tools_approval_mode supports_parallel_tool_calls alwaysLoad initTimeout networkTimeout longRunning source
 settings provider providerUrl tags registryUrl installSource metadata $schema`

// known are the keys that an unknown one may have been meant to be.
const known = `command args env cwd type transport url headers disabled enabled timeout includeTools excludeTools
 enabledTools disabledTools allowedTools serverUrl httpUrl environment bearer_token_env_var http_headers
 env_http_headers tool_timeout_sec enabled_tools disabled_tools`

// unknown warns about a key.
func (d *decoder) unknown(r *draft, name, path string) {
	if len(d.settings.Warnings) == maxWarnings {
		d.more++ // without a search for what may have been meant
		return
	}
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

// command reads a command: a string, a list that holds its arguments too
// (OpenCode), or an object (Zed, in former times).
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

// transport reads the name of a transport. "transport" beats "type".
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
		return d.src.fail(v.at, path, `got %s, want "stdio", "http" (also "streamable-http") or "sse"`, spell.Quote(word))
	}
	return nil
}
