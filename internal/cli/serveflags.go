package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/ignore"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/site"
	"github.com/knowhow-mcp/knowhow/internal/source"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

const serveHelp = `Usage: {cmd} [FLAGS] [SOURCE ...]

Indexes folders, files, web sites and git repositories, and serves them to agents
over MCP. Only the named sources are served. These sources are remembered. Without a
SOURCE, all remembered sources are served. Fess servers, datasets and the knowledge
base are sources, too: they are asked when a search comes, and are not remembered.

{flags}

Examples:
  {cmd} docs
  {cmd} ~/handbook --label policies ~/company/legal
  {cmd} --description "Minutes of the board since 2019" ~/board
  {cmd} https://docs.example.com/guide/ ~/handbook
  {cmd} git+https://github.com/org/project#main:docs
  {cmd} ~/handbook fess:hr.json datasets:./datasets kb
  KNOWHOW_TRANSPORT=stdio {cmd} ~/handbook
  {cmd} --addr 0.0.0.0:7411 --token "$TOKEN"
  {cmd} --addr 0.0.0.0:443 --token "$TOKEN" --tls-cert fullchain.pem --tls-key privkey.pem
`

const mcpHelp = `Usage: {cmd} [FLAGS] [SOURCE ...]

Does the same as serve for the one client that starts it, on standard input and
output. This is the command for the configuration of clients. The flags that are
about HTTP are accepted and ignored.

{flags}

Examples:
  {cmd} ~/handbook
  {cmd} --label policies ~/company/legal
`

// defaultHost is the host of the default addresses.
const defaultHost = "127.0.0.1"

// maxPatterns is the maximum number of patterns of each kind for a source.
const maxPatterns = 1000

// A serveCommand indexes sources and serves them.
type serveCommand struct {
	addressFlags
	transportFlag `words:"http|stdio" standard:"http"`
	serveFlags
}

func (o *serveCommand) run(ctx context.Context, v *invocation) error {
	return v.runServe(ctx, o)
}

func (o *serveCommand) operand(v *invocation, arg string) error { return o.add(v, arg) }

// An mcpCommand is serveCommand on stdio.
type mcpCommand struct {
	addressFlags
	Transport string `flag:"transport" value:"stdio" default:"stdio" help:"as for serve; KNOWHOW_TRANSPORT is ignored"`
	serveFlags
}

func (o *mcpCommand) run(ctx context.Context, v *invocation) error {
	return v.runServe(ctx, &serveCommand{o.addressFlags, transportFlag{o.Transport}, o.serveFlags})
}

func (o *mcpCommand) operand(v *invocation, arg string) error { return o.add(v, arg) }

// addressFlags choose where to listen.
type addressFlags struct {
	Addr string `flag:"addr" value:"HOST:PORT" default:"127.0.0.1:7411" help:"address to listen on"`
	Port int    `flag:"port" value:"PORT" range:"0-65535" help:"short for --addr 127.0.0.1:PORT"`
}

// serveFlags are the other flags of serve and mcp, and their operands.
type serveFlags struct {
	dataFlag
	storeFlags
	Next           sourceFlags // for the next source
	Tools          toolGroups  `flag:"tools" value:"GROUPS" default:"search" help:"groups of tools to offer, separated by commas: search; fess, the other tools of the bridge; kb, the tools of the knowledge base, which write notes and files; openai, the two tools that ChatGPT expects; a group that is not named is not offered"`
	Domain         domainID    `flag:"domain" value:"ID" help:"domain of /mcp, with which tool names begin; by default the label of the only source, or all"`
	DomainName     string      `flag:"domain-name" value:"NAME" help:"name of that domain, for people and agents"`
	tokenFlag      `more:"; required to listen on other addresses than loopback"`
	serverEmbedder `of:"the sources"`
	levelFlag      `standard:"warn"`
	SourceTimeout  time.Duration `flag:"source-timeout" value:"DURATION" default:"2s" help:"how long a search waits for a source: one that has not answered is left out of the result, which names it"`
	NoWatch        bool          `flag:"no-watch" help:"look for changes only at the start"`
	Yes            bool          `flag:"yes" help:"index a home folder or a whole disk without asking"`
	Revision       string        `flag:"revision" value:"latest" default:"latest" help:"MCP revisions to negotiate; latest is every one"`
	FessToken      string        `env:"FESS_API_TOKEN" help:"access token for Fess, as for knowhow fess"`
	httpFlags
	teamFlags
	signOnFlags
	uploadFlags

	sources []sourceFlags
}

// minEvery is the shortest time between two looks at a source.
const minEvery = time.Second

// sourceFlags are the flags for the source that follows, and its path. With at most 500
// characters of a description, the instructions of a server stay within what clients
// show.
type sourceFlags struct {
	Label       label    `flag:"label" value:"NAME" help:"label of the source that follows"`
	Description string   `flag:"description" value:"TEXT" range:"1-500" help:"what the source that follows contains; it is remembered"`
	Include     patterns `flag:"include" value:"GLOB" help:"index only files of the source that follows that match, or are in a folder that matches; a pattern in the syntax of .gitignore; it is remembered, and an empty one removes those remembered"`
	Exclude     patterns `flag:"exclude" value:"GLOB" help:"leave out files and folders of the source that follows that match; likewise"`
	NoIgnore    *bool    `flag:"no-ignore" help:"index what .gitignore and .ignore files exclude from the source that follows; it is remembered until --no-ignore=false"`

	Every time.Duration `flag:"every" value:"DURATION" help:"how often to look for changes of the source that follows, if it is a repository (1h by default) or a web site (24h); it is remembered"`

	MaxPages int `flag:"max-pages" value:"N" range:"1-1000000" help:"largest number of pages of the source that follows, if it is a web site; 5000 by default; it is remembered"`

	path string
}

// rules returns the rules of a source that had these rules before.
func (a sourceFlags) rules(r document.Rules) document.Rules {
	if a.Include != nil {
		r.Include = append([]string(nil), a.Include...)
	}
	if a.Exclude != nil {
		r.Exclude = append([]string(nil), a.Exclude...)
	}
	if a.NoIgnore != nil {
		r.NoIgnore = *a.NoIgnore
	}
	if a.Every != 0 {
		r.Every = a.Every
	}
	if a.MaxPages != 0 {
		r.MaxPages = a.MaxPages
	}
	return r
}

// ofIndexed returns a flag that is given and that is about sources that are indexed, ""
// if there is none.
func (a sourceFlags) ofIndexed() string {
	switch {
	case a.Include != nil:
		return "--include"
	case a.Exclude != nil:
		return "--exclude"
	case a.NoIgnore != nil:
		return "--no-ignore"
	case a.Every != 0:
		return "--every"
	case a.MaxPages != 0:
		return "--max-pages"
	}
	return ""
}

// A label is the label of a source, "" for none.
type label string

func (l *label) set(s string) error {
	if *l = label(s); !document.ValidLabel(s) {
		return errors.New(`want letters, digits, "_", "." and "-" only`)
	}
	return nil
}

// patterns are patterns in the syntax of .gitignore; nil if none was given.
type patterns []string

// set adds a pattern. An empty one empties the list.
func (p *patterns) set(s string) error {
	if s == "" {
		*p = patterns{}
		return nil
	}
	if err := ignore.Check(s); err != nil {
		return fmt.Errorf(`want a pattern in the syntax of .gitignore, such as "*.md" or "drafts/" (%s)`,
			errkind.Message(err))
	}
	if *p = append(*p, s); len(*p) > maxPatterns {
		return fmt.Errorf("want at most %d patterns for a source", maxPatterns)
	}
	return nil
}

// A domainID is a domain, "" for none.
type domainID string

func (d *domainID) set(s string) error {
	id, ok := source.NormalDomain(s)
	if *d = domainID(id); !ok {
		return fmt.Errorf(`want 1 to %d letters, digits and "_"`, source.MaxDomain)
	}
	return nil
}

// add adds a source, to which the flags before it apply.
func (o *serveFlags) add(v *invocation, arg string) error {
	if strings.TrimSpace(arg) == "" { // probably a variable of the shell that is not set
		return &hintError{usageError("a source is empty, want a folder or a file"),
			"Check the variable or the quotes in the command."}
	}
	src := o.Next
	src.path, src.Description = v.expandSource(arg), strings.TrimSpace(src.Description)
	if kind, _ := source.KindOf(arg); kind != source.Indexed {
		if flag := src.ofIndexed(); flag != "" {
			return v.usagef("%s: %s is not indexed, so the flag has no effect", flag, sanitize.Escape(arg))
		}
	}
	switch {
	case src.Every == 0:
	case !source.Remote(src.path):
		return v.usagef("--every %s: %s is a folder or a file, which is watched; want a repository or a web site", src.Every,
			sanitize.Escape(arg))
	case src.Every < minEvery:
		return v.usagef("--every %s: want at least %s", src.Every, minEvery)
	}
	if src.MaxPages != 0 && !site.Is(src.path) {
		return v.usagef("--max-pages %d: %s is not a web site", src.MaxPages, sanitize.Escape(arg))
	}
	o.sources, o.Next = append(o.sources, src), sourceFlags{}
	return nil
}

// check checks combinations of flags.
func (o *serveCommand) check(v *invocation) (err error) {
	next := o.Next
	switch {
	case next.Label != "":
		return v.usagef("--label %s: no source follows it", next.Label)
	case next.Description != "":
		return v.usagef("--description: no source follows it")
	case next.Include != nil:
		return v.usagef("--include: no source follows it")
	case next.Exclude != nil:
		return v.usagef("--exclude: no source follows it")
	case next.NoIgnore != nil:
		return v.usagef("--no-ignore: no source follows it")
	case next.Every != 0:
		return v.usagef("--every: no source follows it")
	case next.MaxPages != 0:
		return v.usagef("--max-pages: no source follows it")
	case o.Tools.kb && o.Domain == kbTools:
		return v.usagef("--domain %s: the tools of the knowledge base have names that begin with %s, choose another domain", o.Domain, o.Domain)
	case v.given("port") && v.given("addr"):
		return v.usagef("--addr and --port exclude each other")
	case v.given("port"):
		o.Addr = net.JoinHostPort(defaultHost, strconv.Itoa(o.Port))
	}
	o.Data, err = dataPath(v.Env, o.Data)
	return err
}

// kbTools is the group of the tools of the knowledge base.
const kbTools = "kb"

// toolGroups are groups of tools.
type toolGroups struct {
	search []searchmcp.Group
	kb     bool
}

func (g *toolGroups) set(s string) error {
	known := []string{string(searchmcp.SearchTools), string(searchmcp.FessTools), kbTools,
		string(searchmcp.ConnectorTools)}
	const want = "want search, fess, kb and openai, separated by commas"
	*g = toolGroups{}
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == kbTools:
			g.kb = true
			continue
		case !slices.Contains(known, name):
			if near := spell.Near(name, known, 1); len(near) > 0 {
				return fmt.Errorf("%s; did you mean %s?", want, near[0])
			}
			return errors.New(want)
		}
		g.search = append(g.search, searchmcp.Group(name))
	}
	return nil
}
