package clients

import (
	"cmp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// StandardName is the name of the entry for all sources.
const StandardName = "knowhow"

// MaxEntryName is the maximum length of the name of an entry that is made by this program.
// Clients put it before the names of the tools, which some of them limit to 64 characters.
const MaxEntryName = 40

// EntryName returns the name of an entry for a label or another text.
func EntryName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, text)
	name = strings.Trim(name[:min(len(name), MaxEntryName)], "-_")
	return cmp.Or(name, StandardName)
}

// ShellWord returns a word of a command as it is typed in a shell of a system, which is
// named as in package runtime.
func ShellWord(goos, s string) string {
	safe := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:=@,+%", r)) || r > 0x80
	}
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0
	s = sanitize.Escape(s)
	switch {
	case plain:
		return s
	case goos == "windows":
		return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// A Guide tells people how to connect a client to a server that runs, on any machine.
type Guide struct {
	Command []string // of the client itself, or else of this program; nil if none does it
	File    string   // where Snippet belongs, on each system
	Snippet string   // the entry in the configuration
	Next    string   // what the user does afterwards
	Instead string   // why Command starts a server, or what is to do with Snippet; "" if nothing is

	// Link opens the client and makes it ask whether to add the server; "" if its
	// documentation defines no such link for the server. It contains no token.
	Link string
}

// Guide returns how the client is connected to a server with a URL. For a client that
// cannot use a URL, it has the command with which the client starts its own server for
// the sources.
func (c *Client) Guide(s Server, sources []string) (Guide, error) {
	if !c.HTTP {
		if len(sources) == 0 {
			sources = []string{"FOLDER"}
		}
		return Guide{Command: append([]string{"knowhow", "connect", c.Name}, sources...), Next: c.Next, Instead: c.Instead}, nil
	}
	f, _ := c.File(anyMachine("linux"), User)
	f.Place.Name = s.Name
	snippet, err := configfile.Set(f.Format, nil, f.Place, c.Entry(s))
	if err != nil {
		return Guide{}, err
	}
	if s.TokenEnv != "" && c.Variable == "" {
		g := Guide{File: c.fileAnywhere(), Snippet: string(snippet), Next: c.Next,
			Instead: "Replace " + placeholder + " by your token, in a file that only you can read."}
		if c.prompt != "" {
			g.Snippet = strings.Replace(g.Snippet, "{\n", "{\n"+c.inputs, 1)
			g.Instead = c.Title + " asks for the token when it starts the server, and keeps it."
		}
		return g, nil
	}
	command := c.Verb.Add(c, s, User)
	if command == nil {
		command = []string{"knowhow", "connect", c.Name, "--url", s.URL, "--name", s.Name}
		if s.TokenEnv != "" {
			command = append(command, "--token-env", s.TokenEnv)
		}
	}
	next := c.Next
	if s.TokenEnv != "" && c.NextToken != "" {
		next += " " + strings.ReplaceAll(c.NextToken, "%s", s.TokenEnv)
	}
	g := Guide{Command: command, File: c.fileAnywhere(), Snippet: string(snippet), Next: next}
	if c.link != nil {
		g.Link = c.link(s, c.Entry(s))
	}
	return g, nil
}

// anyMachine returns a system of whose user nothing is known.
func anyMachine(goos string) System {
	s := System{GOOS: goos, Home: "~", Exists: func(string) bool { return false }}
	s.Lookup = func(string) (string, bool) { return "", false }
	if goos == "windows" {
		s.Home = "%USERPROFILE%"
		s.Lookup = func(name string) (string, bool) {
			if name == "APPDATA" || name == "LOCALAPPDATA" {
				return "%" + name + "%", true
			}
			return "", false
		}
	}
	return s
}

// fileAnywhere returns where the configuration of a user is on each system.
func (c *Client) fileAnywhere() string {
	on := func(goos string) string { f, _ := c.File(anyMachine(goos), User); return f.Path }
	text := on("linux")
	if macOS := on("darwin"); macOS != text {
		text += ", on macOS " + macOS
	}
	return text + ", on Windows " + on("windows")
}
