package clients

import (
	"slices"
	"strings"
)

// Keys that clients have for one thing. An entry that was written by hand, or for
// another client, may have any of them.
var (
	commandKeys = []string{"command", "cmd"}
	envKeys     = []string{"env", "environment", "envs"}
	urlKeys     = []string{"url", "httpUrl", "serverUrl", "uri", "baseUrl"}
)

// Read returns the server of an entry: strings, bools, ints, []any and
// map[string]any. What does not look as clients have it is left out, as are headers.
func Read(name string, entry map[string]any) Server {
	s := Server{Name: name}
	for _, key := range commandKeys {
		switch command := entry[key].(type) {
		case string:
			s.Command, s.Args = command, texts(entry["args"])
		case []any: // opencode
			if words := texts(command); len(words) > 0 {
				s.Command, s.Args = words[0], words[1:]
			}
		case map[string]any: // old versions of Zed
			s.Command, _ = command["path"].(string)
			s.Args = texts(command["args"])
		}
	}
	for _, key := range envKeys {
		env, _ := entry[key].(map[string]any)
		for _, name := range sortedKeys(env) {
			if value, ok := env[name].(string); ok {
				s.Env = append(s.Env, Variable{name, value})
			}
		}
	}
	for _, key := range urlKeys {
		if url, ok := entry[key].(string); ok && s.Command == "" && s.URL == "" {
			s.URL = url
		}
	}
	return s
}

// texts returns the strings of a list.
func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, element := range list {
		if s, ok := element.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// sortedKeys returns the keys of a map in order.
func sortedKeys(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Same reports whether an entry connects the client to a server: whether the server
// and the token are the same, and the entry is not disabled. The entry may have other
// members, for example the tools that its user has approved.
func (c *Client) Same(s Server, entry map[string]any) bool {
	old := Read(s.Name, entry)
	enabled, isSet := entry["enabled"].(bool)
	disabled, _ := entry["disabled"].(bool)
	env := slices.SortedFunc(slices.Values(s.Env), func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return old.Command == s.Command && slices.Equal(old.Args, s.Args) && slices.Equal(old.Env, env) && old.URL == s.URL &&
		c.hasToken(s, entry) && !disabled && (enabled || !isSet)
}

// hasToken reports whether an entry has the token of a server, and no other.
func (c *Client) hasToken(s Server, entry map[string]any) bool {
	if c.shape.token != "" {
		token, _ := entry[c.shape.token].(string)
		return token == s.TokenEnv
	}
	keys := c.shape.headers
	if keys == nil {
		keys = []string{"headers"}
	}
	headers := entry
	for _, key := range keys {
		headers, _ = headers[key].(map[string]any)
	}
	header, _ := headers["Authorization"].(string)
	if s.TokenEnv == "" {
		return header == ""
	}
	return header == c.Authorization(s.TokenEnv)
}
