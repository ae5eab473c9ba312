package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/doctor"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/source"
)

// A target is what clients are connected to.
type target struct {
	server clients.Server
	query  string // words to search for, if the documents suggest none

	// variables are those that change what the server does and that the entry does not
	// have, because they can be secret.
	variables []string
}

// storeVariables are the variables for a model and for a store.
var storeVariables = []string{"KNOWHOW_STORE", "OPENSEARCH_USERNAME", "OPENSEARCH_PASSWORD", "KNOWHOW_EMBEDDER",
	"EMBED_MODEL", "EMBED_API_KEY"}

// target returns what the command line names. It is an error if it does not exist.
func (o *connectCommand) target(ctx context.Context, v *invocation) (t target, err error) {
	kind, last := "", connectSource{}
	if len(o.sources) > 0 {
		kind, last = o.sources[0].word, o.sources[len(o.sources)-1]
	}
	ofURL := kind == "fess" && len(o.sources) == 2 && strings.Contains(last.word, "://")
	if ofURL { // the flag may be anywhere
		last.label, o.Label = cmp.Or(string(o.Label), last.label, o.sources[0].label), ""
		last.description = cmp.Or(last.description, o.sources[0].description)
	}
	alone := kind == "kb" && len(o.sources) == 1 || (kind == "datasets" || kind == "fess") && len(o.sources) == 2 && !ofURL
	switch {
	case o.Label != "":
		return t, v.usagef("--label %s: no source follows it", o.Label)
	case o.Description != "":
		return t, v.usagef("--description: no source follows it")
	case alone && (last.label != "" || last.description != ""):
		return t, v.usagef("%s takes neither --label nor --description", kind)
	case o.URL != "" && len(o.sources) > 0:
		return t, v.usagef("--url and %q exclude each other: the server at the URL has its own sources", kind)
	case o.URL != "":
		t, err = o.urlTarget(v)
	case o.TokenEnv != "":
		return t, v.usagef("--token-env is for a server that runs: name it with --url")
	case kind == "kb" && len(o.sources) == 1:
		t, err = o.kbTarget(v)
	case kind == "datasets" && len(o.sources) == 2:
		t, err = o.datasetsTarget(v, last.word)
	case kind == "datasets" && len(o.sources) == 1:
		return t, v.usagef("datasets: the folder of the datasets is missing")
	case ofURL:
		t, err = o.fessURLTarget(v, last)
	case kind == "fess" && len(o.sources) == 2:
		t, err = o.fessTarget(v, last.word)
	case kind == "fess" && len(o.sources) == 1:
		return t, v.usagef("fess: the configuration file is missing, or the URL of a Fess server and --label")
	default:
		t, err = o.sourcesTarget(ctx, v)
	}
	if err != nil {
		return t, err
	}
	if t.server.URL == "" {
		program, err := programPath()
		if err != nil {
			return t, err
		}
		command, args := runner(program)
		t.server.Command, t.server.Args = command, append(args, t.server.Args...)
	}
	if o.Name != "" {
		t.server.Name = string(o.Name)
	}
	return t, nil
}

// runner returns the command that starts this program, and its arguments. A program
// that npx, uvx or pipx has started from a cache is started by it again, because such a
// cache is emptied from time to time.
func runner(program string) (command string, args []string) {
	for _, r := range []struct {
		folder, name string
		args         []string
	}{
		{"/_npx/", "npx", []string{"-y", "knowhow"}},
		{"/uv/archive-v", "uvx", []string{"knowhow-mcp"}},
		{"/uv/cache/archive-v", "uvx", []string{"knowhow-mcp"}}, // Windows
		{"/pipx/.cache/", "pipx", []string{"run", "knowhow-mcp"}},
	} {
		if strings.Contains(filepath.ToSlash(program), r.folder) {
			if path, err := exec.LookPath(r.name); err == nil {
				return absolute(path), r.args
			}
		}
	}
	return program, nil
}

// urlTarget returns the server at --url.
func (o *connectCommand) urlTarget(v *invocation) (t target, err error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return t, v.usagef("--url: got %q, want the URL of a server, such as http://127.0.0.1:7411/mcp",
			sanitize.Short(o.URL, 200, 800))
	case u.User != nil:
		return t, v.usagef("--url: leave out the user and the password; name the variable with the token with --token-env")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return t, v.usagef("--url: leave out what follows the path; name the variable with the token with --token-env")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = mcpPath
	}
	t.server = clients.Server{Name: hostName(u), URL: u.String(), TokenEnv: string(o.TokenEnv)}
	if label, ok := strings.CutPrefix(u.Path, mcpPath+"/"); ok {
		t.server.Name = clients.EntryName(label)
	}
	t.query = t.server.Name
	return t, nil
}

// hostName returns the name of the entry for a server that runs: its host, and its port
// if it is not the usual one. This machine is not named.
func hostName(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		host = clients.StandardName
		if port == ourPorts[0] {
			port = ""
		}
	}
	if port != "" {
		port = "-" + port
	}
	return clients.EntryName(host + port)
}

// nameOfAll returns the name of an entry for several labels: the labels, or the first one
// and the number of the others.
func nameOfAll(labels []string) string {
	if len(labels) == 0 {
		return clients.StandardName
	}
	if name := strings.Join(labels, "-"); len(labels) == 1 || len(name) <= clients.MaxEntryName {
		return clients.EntryName(name)
	}
	more := fmt.Sprintf("-and-%d-more", len(labels)-1)
	first := clients.EntryName(labels[0])
	return strings.TrimRight(first[:min(len(first), clients.MaxEntryName-len(more))], "-_") + more
}

// dataArgs returns the flag for the data folder that the command line or a variable
// of the shell names. It is nil for the folder that the server uses without any
// variable, because clients with windows do not have those of the shell.
func (o *connectCommand) dataArgs(v *invocation, named string) ([]string, error) {
	dir, err := dataPath(v.Env, named)
	if err != nil {
		return nil, err
	}
	bare := v.Env
	bare.Lookup = func(name string) (string, bool) {
		if name == "XDG_DATA_HOME" {
			return "", false
		}
		return v.Lookup(name)
	}
	if standard, err := defaultData(bare); err == nil && standard == dir {
		return nil, nil
	}
	return []string{"--data", dir}, nil
}

// sourcesTarget returns the server of folders and files, or of all remembered ones if
// none is named.
func (o *connectCommand) sourcesTarget(ctx context.Context, v *invocation) (t target, err error) {
	data, err := o.dataArgs(v, o.Data)
	if err != nil {
		return t, err
	}
	known, err := v.knownSources(ctx, o.Data)
	if err != nil {
		return t, err
	}
	args := append([]string{"mcp"}, data...)
	var sources []document.Source
	var labels []string
	for _, named := range o.sources {
		arg, name, err := o.otherSource(v, named.word)
		if err != nil {
			return t, err
		}
		if arg == "" {
			var src document.Source
			if arg, src, err = v.indexedSource(named, slices.Concat(known, sources)); err != nil {
				return t, err
			}
			sources, name = append(sources, src), src.Label
		}
		labels = append(labels, cmp.Or(named.label, name))
		args = append(append(args, named.flags()...), arg)
	}
	if len(o.sources) == 0 {
		for _, src := range known {
			labels = append(labels, src.Label)
		}
		if len(known) == 0 {
			e := v.usagef("nothing to connect to: no source is named, and none is remembered")
			e.hint = fmt.Sprintf("Name a folder, for example: %s %s docs", v.name, o.client)
			return t, e
		}
	}
	t = target{server: clients.Server{Name: nameOfAll(labels), Args: args}, query: labels[0], variables: storeVariables}
	if len(o.sources) == 0 && len(labels) > 1 { // sources that come later are served, too
		t.server.Name = clients.StandardName
	}
	return t, nil
}

// otherSource returns the argument and the label of a source that is not indexed: a
// configuration of the bridge, the datasets of a folder, or the knowledge base. They are
// empty for other sources. Paths become absolute, because a client has a working
// directory of its own.
func (o *connectCommand) otherSource(v *invocation, word string) (arg, label string, err error) {
	kind, rest, _ := strings.Cut(word, ":")
	switch {
	case word == "kb", kind == "kb":
		return word, strings.ReplaceAll(strings.TrimSuffix(word, ":"), ":", "-"), nil
	case kind == "fess" && rest != "":
		t, err := o.fessTarget(v, rest)
		if err != nil {
			return "", "", err
		}
		return "fess:" + absolute(v.expand(rest)), t.server.Name, nil
	case kind == "datasets" && rest != "":
		if _, err := o.datasetsTarget(v, rest); err != nil {
			return "", "", err
		}
		return "datasets:" + absolute(v.expand(rest)), "datasets", nil
	}
	return "", "", nil
}

// indexedSource returns the argument for a folder, a file, a web site or a repository.
// known are the sources that have labels.
func (v *invocation) indexedSource(named connectSource, known []document.Source) (
	arg string, src document.Source, err error) {
	prefix, path := "", named.word
	if rest, ok := strings.CutPrefix(path, filePrefix); ok {
		if prefix, path = filePrefix, rest; strings.HasPrefix(rest, "//") {
			path = rest[2:] // a URL without a host
		}
	}
	path = v.expand(path)
	resolved, err := source.Resolve(path)
	if err != nil {
		return "", src, &hintError{err, "Check the spelling, or name another folder. Nothing was changed."}
	}
	if source.Remote(resolved) {
		path = resolved
	} else {
		path = absolute(path)
	}
	src, added, err := source.New(known, resolved, named.label)
	if err != nil {
		return "", src, labelError(err)
	}
	if what := source.Vast(resolved, v.home()); added && what != "" {
		return "", src, &hintError{fmt.Errorf("%s is %s", path, what),
			fmt.Sprintf("Name a smaller folder, or index it first: %s serve --yes %s", v.Program, shellWord(path))}
	}
	return prefix + path, src, nil
}

// filePrefix may be before the path of a source.
const filePrefix = "file:"

// knownSources returns the sources that a data folder remembers.
func (v *invocation) knownSources(ctx context.Context, named string) ([]document.Source, error) {
	x, _, err := v.openExisting(ctx, named, datafolder.Model{})
	if err != nil || x == nil {
		return nil, err
	}
	sources, err := x.Sources(ctx)
	return sources, errors.Join(err, x.Close())
}

// kbTarget returns the server of the knowledge base. Its transport is named by a
// variable: some clients take a flag --transport for their own.
func (o *connectCommand) kbTarget(v *invocation) (t target, err error) {
	named := o.Data
	if !v.given("data") {
		named = v.get("KB_DATA_DIR")
	}
	data, err := o.dataArgs(v, named)
	if err != nil {
		return t, err
	}
	t.server = clients.Server{Name: "kb", Args: append([]string{"kb"}, data...),
		Env: []clients.Variable{{Name: "KNOWHOW_TRANSPORT", Value: "stdio"}}}
	t.query, t.variables = "knowhow", append([]string{"KB_ENGINE_URL", "KB_API_KEY"}, storeVariables...)
	return t, nil
}

// datasetsTarget returns the server of datasets. Their tools have names that all
// clients accept.
func (o *connectCommand) datasetsTarget(v *invocation, word string) (t target, err error) {
	dir, err := filepath.Abs(v.expand(word))
	if err != nil {
		return t, err
	}
	if info, err := os.Stat(dir); err != nil {
		return t, err
	} else if !info.IsDir() {
		return t, &hintError{fmt.Errorf("%s is not a folder", dir), "Name the folder of the datasets."}
	}
	t.server = clients.Server{Name: "datasets",
		Args: []string{"datasets", "--datasets", dir, "--tool-names", "underscore"}}
	t.query, t.variables = "knowhow", []string{"EMBED_URL", "EMBED_MODEL", "EMBED_API_KEY"}
	return t, nil
}

// fessTarget returns the bridge that a configuration file describes.
func (o *connectCommand) fessTarget(v *invocation, word string) (t target, err error) {
	path, err := filepath.Abs(v.expand(word))
	if err != nil {
		return t, err
	}
	c, warnings, err := fessconfig.Read(path, fessconfig.Options{Env: v.Lookup, Home: v.home()})
	if err != nil {
		return t, err
	}
	for _, w := range warnings {
		v.warn(w)
	}
	t.server = clients.Server{Name: clients.EntryName(c.Domain.ID), Args: []string{"fess", "--config", path}}
	t.query, t.variables = c.Domain.Name, []string{"FESS_API_TOKEN"}
	return t, nil
}

// fessURLTarget returns the bridge to the documents with a label of a Fess server.
func (o *connectCommand) fessURLTarget(v *invocation, server connectSource) (t target, err error) {
	if want := fessconfig.WantURL(server.word); want != "" {
		return t, v.usagef("fess: want %s", want) // the URL may have a password
	}
	switch {
	case server.label == "":
		return t, v.usagef("fess: --label is missing: name the Fess label of the documents")
	case server.description != "":
		return t, v.usagef("--description is for folders, files, sites and repositories")
	}
	t.server = clients.Server{Name: clients.EntryName(source.Domain(server.label)),
		Args: []string{"fess", "--url", server.word, "--label", server.label}}
	t.query, t.variables = server.label, []string{"FESS_API_TOKEN"}
	return t, nil
}

// isSwitch reports whether a flag of a server has no value of its own.
func isSwitch(name string) bool {
	return slices.Contains([]string{"no-watch", "no-ignore", "yes", "debug", "cody"}, name)
}

// sameTarget reports whether two entries connect a client to the same: to one URL, or to
// the same sources, which need not be in the same data folder if they are named. The
// paths of a folder may be spelled differently.
func (v *invocation) sameTarget(a, b clients.Server) bool {
	if a.URL != "" || b.URL != "" {
		return a.URL == b.URL
	}
	words := wordsOf(a)
	same := slices.EqualFunc(words, wordsOf(b), func(a, b string) bool {
		return a == b || doctor.SameFile(v.expand(a), v.expand(b))
	})
	named := len(words) > 0 && words[0] != "kb"
	return same && (named || dataOf(a) == dataOf(b))
}

// dataOf returns the value of --data of a server, "" if there is none.
func dataOf(s clients.Server) string {
	if i := slices.Index(s.Args, "--data"); i >= 0 && i+1 < len(s.Args) {
		return s.Args[i+1]
	}
	for _, arg := range s.Args {
		if dir, ok := strings.CutPrefix(arg, "--data="); ok {
			return dir
		}
	}
	return ""
}

// targetOf describes what a server of this program serves: paths, "kb", "datasets
// DIR", "fess CONFIG" or "fess URL --label NAME", or its URL.
func targetOf(s clients.Server) string {
	if s.URL != "" {
		return sanitize.Escape(s.URL)
	}
	if words := wordsOf(s); len(words) > 0 {
		return sanitize.Escape(strings.Join(words, " "))
	}
	return "all sources"
}

// wordsOf returns what a server of this program serves, as words of the command line.
func wordsOf(s clients.Server) (words []string) {
	args := s.Args
	if i := slices.IndexFunc(args, isServer); i >= 0 { // after npx or uvx, the program is an argument
		args = args[i:]
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case i == 0 && (arg == "mcp" || arg == "serve"):
		case !strings.HasPrefix(arg, "-"):
			words = append(words, arg)
		default:
			if !hasValue && i+1 < len(args) && !isSwitch(name) {
				i++
				value = args[i]
			}
			switch {
			case name == "config", name == "datasets", name == "url" && args[0] == "fess":
				words = append(words, value)
			case name == "label" && args[0] == "fess":
				words = append(words, "--label", value)
			}
		}
	}
	return words
}
