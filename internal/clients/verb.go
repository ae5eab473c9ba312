package clients

import (
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/compact"
)

// A Verb has the commands with which a client changes its own configuration.
type Verb struct {
	Program string // on the PATH

	// Replaces reports whether adding a server replaces one with the same name. Otherwise
	// that fails, and it must be removed first.
	Replaces bool

	// Elsewhere reports whether the client may have its configuration in another file than
	// that of the table, for example in that of a profile.
	Elsewhere bool

	// Health are the arguments that make the client connect to its servers and print
	// which it reached; nil if no command does.
	Health []string

	scopes []Scope
	add    func(c *Client, s Server, scope Scope) []string
	remove func(name string, scope Scope) []string // nil if no command does
}

// Add returns the command that adds a server, with the name of the program first; nil
// if there is none for the scope.
func (v *Verb) Add(c *Client, s Server, scope Scope) []string {
	if !v.has(scope) {
		return nil
	}
	return append([]string{v.Program}, v.add(c, s, scope)...)
}

// Remove returns the command that removes a server, with the name of the program
// first; nil if there is none for the scope.
func (v *Verb) Remove(name string, scope Scope) []string {
	if !v.has(scope) || v.remove == nil {
		return nil
	}
	return append([]string{v.Program}, v.remove(name, scope)...)
}

func (v *Verb) has(scope Scope) bool {
	if v == nil {
		return false
	}
	for _, s := range v.scopes {
		if s == scope {
			return true
		}
	}
	return false
}

// start returns a server's program and its arguments.
func (s Server) start() []string { return append([]string{s.Command}, s.Args...) }

// env returns the environment variables of a server as values of a flag.
func (s Server) env(flag string) (args []string) {
	for _, v := range s.Env {
		args = append(args, flag, v.Name+"="+v.Value)
	}
	return args
}

// header returns the header with the token as the value of a flag.
func (c *Client) header(s Server) []string {
	if s.TokenEnv == "" {
		return nil
	}
	return []string{"--header", "Authorization: " + c.Authorization(s.TokenEnv)}
}

// concat returns the words of all lists.
func concat(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// Without "--", clients take flags of the server for their own. Some flags of theirs
// take every word that follows: --header is last, and another flag follows --env.

func claudeVerb() *Verb {
	return &Verb{
		Program: "claude", Health: []string{"mcp", "list"}, scopes: []Scope{User, Project},
		add: func(c *Client, s Server, scope Scope) []string {
			if s.URL != "" {
				return concat([]string{"mcp", "add", "--scope", string(scope), "--transport", "http", s.Name, s.URL},
					c.header(s))
			}
			return concat([]string{"mcp", "add"}, s.env("--env"), []string{"--scope", string(scope), s.Name, "--"},
				s.start())
		},
		remove: func(name string, scope Scope) []string {
			return []string{"mcp", "remove", name, "--scope", string(scope)}
		},
	}
}

func codexVerb() *Verb {
	return &Verb{
		Program: "codex", Replaces: true, scopes: []Scope{User},
		add: func(_ *Client, s Server, _ Scope) []string {
			if s.URL == "" {
				return concat([]string{"mcp", "add", s.Name}, s.env("--env"), []string{"--"}, s.start())
			}
			args := []string{"mcp", "add", s.Name, "--url", s.URL}
			if s.TokenEnv != "" {
				args = append(args, "--bearer-token-env-var", s.TokenEnv)
			}
			return args
		},
		remove: func(name string, _ Scope) []string { return []string{"mcp", "remove", name} },
	}
}

func geminiVerb() *Verb {
	return &Verb{
		Program: "gemini", Replaces: true, Health: []string{"mcp", "list"}, scopes: []Scope{User, Project},
		add: func(c *Client, s Server, scope Scope) []string {
			if s.URL != "" {
				return concat([]string{"mcp", "add", "--scope", string(scope), "--transport", "http", s.Name, s.URL},
					c.header(s))
			}
			return concat([]string{"mcp", "add"}, s.env("--env"), []string{"--scope", string(scope), s.Name, s.Command,
				"--"}, s.Args)
		},
		remove: func(name string, scope Scope) []string {
			return []string{"mcp", "remove", "--scope", string(scope), name}
		},
	}
}

func copilotVerb() *Verb {
	return &Verb{
		Program: "copilot", scopes: []Scope{User},
		add: func(c *Client, s Server, _ Scope) []string {
			if s.URL != "" {
				return concat([]string{"mcp", "add", s.Name, "--transport", "http", s.URL}, c.header(s))
			}
			return concat([]string{"mcp", "add", s.Name}, s.env("--env"), []string{"--"}, s.start())
		},
		remove: func(name string, _ Scope) []string { return []string{"mcp", "remove", name} },
	}
}

func qwenVerb() *Verb {
	v := geminiVerb()
	v.Program = "qwen"
	return v
}

func codeVerb() *Verb {
	return &Verb{
		Program: "code", Replaces: true, Elsewhere: true, scopes: []Scope{User},
		add: func(c *Client, s Server, _ Scope) []string {
			return []string{"--add-mcp", object(append([]Member{member("name", s.Name)}, c.Entry(s)...))}
		},
	}
}

// object returns members as JSON.
func object(members []Member) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(value(m.Name) + ":" + value(m.Value))
	}
	b.WriteByte('}')
	return b.String()
}

// value returns a value of a [Member] as JSON.
func value(v any) string {
	if members, ok := v.([]Member); ok {
		return object(members)
	}
	text, _ := compact.Marshal(v) // these types can always be encoded
	return string(text)
}
