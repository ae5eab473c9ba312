package clients

import (
	"fmt"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/configfile"
)

// A File of a client, its Place and the Members of an entry are those of package
// configfile.
type (
	Format = configfile.Format
	Place  = configfile.Place
	Member = configfile.Member
)

// The formats.
const (
	JSON = configfile.JSON
	TOML = configfile.TOML
	YAML = configfile.YAML
)

// member returns a Member.
func member(name string, value any) Member { return Member{Name: name, Value: value} }

// A Server is a server that a client is connected to: with Command, the client
// starts it; with URL, it runs.
type Server struct {
	Name    string
	Command string // absolute path of the program
	Args    []string
	Env     []Variable // for the program, in addition to the variables of the client

	URL      string
	TokenEnv string // environment variable whose value the client sends as bearer token; "" for none
}

// A Variable is an environment variable.
type Variable struct{ Name, Value string }

// A shape is how the entries of a client look. The zero shape is the most common one:
// "command", "args" and "env", or "url" and "headers".
type shape struct {
	stdio, http string   // values of "type"; "" for no such member
	command     string   // key of the program; "" means "command"
	oneList     bool     // the program and its arguments are one list
	env         string   // key of the variables; "" means "env"
	url         string   // key of the URL; "" means "url"
	headers     []string // keys of the headers; nil means "headers"
	token       string   // key of the variable with the token, in place of a header
	envKeys     string   // key of a list of the variables that headers name
	name        bool     // the entry repeats its name
	extra       []Member // of each entry, after the others
}

// orElse returns s, or other if s is empty.
func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Entry returns the members of the entry for a server. For a list, they include its
// name.
func (c *Client) Entry(s Server) (entry []Member) {
	add := func(name string, value any) { entry = append(entry, member(name, value)) }
	how := &c.shape
	if how.name || c.list {
		add("name", s.Name)
	}
	if s.URL == "" {
		if how.stdio != "" {
			add("type", how.stdio)
		}
		if key := orElse(how.command, "command"); how.oneList {
			add(key, append([]string{s.Command}, s.Args...))
		} else {
			add(key, s.Command)
			add("args", slices.Clone(s.Args))
		}
		if len(s.Env) > 0 {
			var env []Member
			for _, v := range s.Env {
				env = append(env, member(v.Name, v.Value))
			}
			add(orElse(how.env, "env"), env)
		}
		return append(entry, how.extra...)
	}
	if how.http != "" {
		add("type", how.http)
	}
	add(orElse(how.url, "url"), s.URL)
	switch {
	case s.TokenEnv == "":
	case how.token != "":
		add(how.token, s.TokenEnv)
	default:
		if how.envKeys != "" {
			add(how.envKeys, []string{s.TokenEnv})
		}
		keys := how.headers
		if keys == nil {
			keys = []string{"headers"}
		}
		var value any = []Member{member("Authorization", c.Authorization(s.TokenEnv))}
		for i := len(keys) - 1; i > 0; i-- {
			value = []Member{member(keys[i], value)}
		}
		add(keys[0], value)
	}
	return append(entry, how.extra...)
}

// placeholder stands for a token that the user writes into a file.
const placeholder = "TOKEN"

// Authorization returns the header with the token in an environment variable, as the
// client expands it. For a client that reads no variables, it has what the client asks for
// or what the user replaces.
func (c *Client) Authorization(variable string) string {
	if c.Variable == "" {
		return "Bearer " + orElse(c.prompt, placeholder)
	}
	return "Bearer " + fmt.Sprintf(c.Variable, variable)
}
