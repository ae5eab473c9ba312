package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
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
	kind := ""
	if len(o.words) > 0 {
		kind = o.words[0]
	}
	switch {
	case o.URL != "" && len(o.words) > 0:
		return t, v.usagef("--url and %q exclude each other: the server at the URL has its own sources", o.words[0])
	case o.URL != "":
		t, err = o.urlTarget(v)
	case o.TokenEnv != "":
		return t, v.usagef("--token-env is for a server that runs: name it with --url")
	case kind == "kb" && len(o.words) == 1:
		t, err = o.kbTarget(v)
	case kind == "datasets" && len(o.words) == 2:
		t, err = o.datasetsTarget(v, o.words[1])
	case kind == "datasets" && len(o.words) == 1:
		return t, v.usagef("datasets: the folder of the datasets is missing")
	case kind == "fess" && len(o.words) == 2:
		t, err = o.fessTarget(v, o.words[1])
	case kind == "fess" && len(o.words) == 1:
		return t, v.usagef("fess: the configuration file is missing")
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
	t.server = clients.Server{Name: "knowhow", URL: u.String(), TokenEnv: string(o.TokenEnv)}
	if label, ok := strings.CutPrefix(u.Path, mcpPath+"/"); ok {
		t.server.Name = nameOf(label)
	}
	t.query = t.server.Name
	return t, nil
}

// nameOf returns the name of an entry for a label.
func nameOf(label string) string {
	if name := strings.ReplaceAll(label, ".", "-"); namePattern.MatchString(name) {
		return name
	}
	return "knowhow"
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
	for _, word := range o.words {
		path := v.expand(word)
		resolved, err := source.Resolve(path)
		if err != nil {
			return t, &hintError{err, "Check the spelling, or name another folder. Nothing was changed."}
		}
		if path = absolute(path); strings.Contains(resolved, "://") { // of a repository
			path = resolved
		}
		src, added, err := source.New(slices.Concat(known, sources), resolved, "")
		if err != nil {
			return t, labelError(err)
		}
		if what := source.Vast(resolved, v.home()); added && what != "" {
			return t, &hintError{fmt.Errorf("%s is %s", path, what),
				fmt.Sprintf("Name a smaller folder, or index it first: %s serve --yes %s", v.Program, shellWord(path))}
		}
		sources, args = append(sources, src), append(args, path)
	}
	if len(o.words) == 0 {
		if sources = known; len(known) == 0 {
			e := v.usagef("nothing to connect to: no source is named, and none is remembered")
			e.hint = fmt.Sprintf("Name a folder, for example: %s %s docs", v.name, o.client)
			return t, e
		}
	}
	t = target{server: clients.Server{Name: "knowhow", Args: args}, query: "knowhow", variables: storeVariables}
	if len(sources) == 1 {
		t.server.Name, t.query = nameOf(sources[0].Label), sources[0].Label
	}
	return t, nil
}

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
	t.server = clients.Server{Name: nameOf(c.Domain.ID), Args: []string{"fess", "--config", path}}
	t.query, t.variables = c.Domain.Name, []string{"FESS_API_TOKEN"}
	return t, nil
}

// targetOf describes what a server of this program serves: paths, "kb", "datasets
// DIR" or "fess CONFIG", or its URL.
func targetOf(s clients.Server) string {
	if s.URL != "" {
		return sanitize.Escape(s.URL)
	}
	args := s.Args
	if i := slices.IndexFunc(args, isServer); i >= 0 { // after npx or uvx, the program is an argument
		args = args[i:]
	}
	var words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case i == 0 && (arg == "mcp" || arg == "serve"):
		case !strings.HasPrefix(arg, "-"):
			words = append(words, arg)
		default:
			if !hasValue && i+1 < len(args) {
				i++
				value = args[i]
			}
			if name == "config" || name == "datasets" {
				words = append(words, value)
			}
		}
	}
	if len(words) == 0 {
		return "all sources"
	}
	return sanitize.Escape(strings.Join(words, " "))
}
