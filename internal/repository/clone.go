package repository

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	ref = "refs/knowhow/head" // the branch that is followed

	maxOutput = 64 << 10 // bytes of messages of git that are kept

	// stopTime is how long git may take to end after its context has ended. A server
	// has a second to end. What git then leaves locked is unlocked by the next Update.
	stopTime = 150 * time.Millisecond
)

// attributes switch off filters and conversions of character sets, which the
// repository could ask for. They have precedence over those of the repository.
const attributes = "* -filter -working-tree-encoding -ident\n"

// A Clone is a copy of a remote in a folder. One process at a time may update it.
type Clone struct {
	remote Remote
	dir    string
	env    []string
}

// Open returns the clone in the folder dir, which Update creates. env is the
// environment of git, as of os.Environ.
func Open(dir string, remote Remote, env []string) *Clone {
	return &Clone{remote: remote, dir: dir, env: environment(env, remote)}
}

// local are the variables that would make git use another repository or run
// programs of the caller's repository ("git rev-parse --local-env-vars").
var local = []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
	"GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE",
	"GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR",
	"GIT_NAMESPACE", "GIT_TEMPLATE_DIR", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_TERMINAL_PROMPT", "GIT_ALLOW_PROTOCOL",
	"GIT_TRACE", "GIT_PROTOCOL_FROM_USER", "LC_ALL"}

// environment returns the environment of git: nothing asks for a password, and only
// the protocols that sources may have are used, whatever a redirect or the
// configuration of the user says.
func environment(env []string, remote Remote) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(local, name)
	})
	env = append(env, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_ALLOW_PROTOCOL=https:ssh:file", "LC_ALL=C",
		"SSH_ASKPASS_REQUIRE=never")
	ssh := slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "GIT_SSH") })
	if strings.HasPrefix(remote.URL, "ssh:") && !ssh {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=20")
	}
	return env
}

// Remote returns what is cloned.
func (c *Clone) Remote() Remote { return c.remote }

// Root returns the folder with the files of the remote, which exists after the first
// Update.
func (c *Clone) Root() string {
	return filepath.Join(c.dir, "tree", filepath.FromSlash(c.remote.Folder))
}

func (c *Clone) gitDir() string { return filepath.Join(c.dir, "git") }

// Commit returns the commit of the files, or "" before the first Update.
func (c *Clone) Commit(ctx context.Context) string {
	if _, err := os.Stat(c.gitDir()); err != nil {
		return ""
	}
	out, err := c.git(ctx, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Update makes the files those of the remote's branch now, and returns its commit.
// After an error the files of before remain; if Update was interrupted, the next
// one completes them. Without the program git the error is of kind
// errkind.Unsupported; if the branch or the folder does not exist, of kind
// errkind.NotFound; otherwise it is of kind errkind.Unavailable.
func (c *Clone) Update(ctx context.Context) (commit string, err error) {
	if err := c.create(ctx); err != nil {
		return "", err
	}
	from := c.remote.Branch
	if from == "" {
		from = "HEAD"
	}
	fetch := []string{"fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--filter=blob:none", "--force",
		"origin", "+" + from + ":" + ref}
	if _, err := c.git(ctx, fetch...); err != nil {
		return "", err
	}
	out, err := c.git(ctx, "rev-parse", "--verify", ref+"^{commit}")
	if err != nil {
		return "", err
	}
	commit = strings.TrimSpace(string(out))
	if err := c.hasFolder(ctx, commit); err != nil {
		return "", err
	}
	before, began := c.Commit(ctx), time.Now()
	// Also if the commit is the same: an earlier checkout may have been interrupted.
	if _, err := c.git(ctx, "checkout", "--quiet", "--force", "--detach", commit); err != nil {
		return "", err
	}
	if err := c.date(ctx, commit, began); err != nil {
		return "", err
	}
	if before != "" && before != commit { // removes what is only in commits of before
		_, err = c.git(ctx, "gc", "--quiet", "--prune=now")
	}
	return commit, err
}

// hasFolder returns an error of kind errkind.NotFound if the folder of the remote does
// not exist in a commit.
func (c *Clone) hasFolder(ctx context.Context, commit string) error {
	if c.remote.Folder == "" {
		return nil
	}
	out, err := c.git(ctx, "ls-tree", "-d", "-z", "--full-tree", commit, "--", c.remote.Folder)
	if err != nil || bytes.HasPrefix(out, []byte("040000 ")) {
		return err
	}
	branch := "the branch " + c.remote.Branch
	if c.remote.Branch == "" {
		branch = "its branch"
	}
	return fmt.Errorf("%s: %s has no folder %s: %w", c.remote, branch, c.remote.Folder, errkind.NotFound)
}

// date gives the files that were written since began the time of a commit, because
// people look for what has changed lately.
func (c *Clone) date(ctx context.Context, commit string, began time.Time) error {
	out, err := c.git(ctx, "show", "--no-patch", "--format=%ct", commit)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: reading the time of commit %s: %w", c.remote, commit, err)
	}
	at := time.Unix(seconds, 0)
	if at.After(began) {
		return nil
	}
	began = began.Add(-time.Second) // the clock of the file system may be behind
	root, err := os.OpenRoot(filepath.Join(c.dir, "tree"))
	if err != nil {
		return fmt.Errorf("reading the files of a repository: %w", err)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err != nil || info.ModTime().Before(began) {
			return err
		}
		return root.Chtimes(path, at, at)
	})
}

// create creates an empty repository without hooks, unless it exists.
func (c *Clone) create(ctx context.Context) error {
	tree := filepath.Join(c.dir, "tree")
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return fmt.Errorf("creating the folder of a repository: %w", err)
	}
	if _, err := c.git(ctx, "init", "--quiet", "--bare", "--template="); err != nil {
		return err
	}
	info := filepath.Join(c.gitDir(), "info")
	files := map[string]string{"attributes": attributes, "sparse-checkout": ""}
	settings := [][2]string{
		{"remote.origin.url", c.remote.URL},
		{"remote.origin.promisor", "true"},
		{"remote.origin.partialclonefilter", "blob:none"},
		{"core.sparseCheckout", "false"},
	}
	if c.remote.Folder != "" { // files elsewhere are not downloaded
		files["sparse-checkout"] = "/" + escapePattern(c.remote.Folder) + "/\n"
		settings[3][1] = "true"
	}
	if err := os.MkdirAll(info, 0o700); err != nil {
		return fmt.Errorf("creating the folder of a repository: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(info, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the settings of a repository: %w", err)
		}
	}
	for _, s := range settings {
		if _, err := c.git(ctx, "config", s[0], s[1]); err != nil {
			return err
		}
	}
	for _, lock := range []string{"index.lock", "HEAD.lock", "config.lock", "shallow.lock"} {
		// One process at a time updates the clone: the lock is of one that died.
		if err := os.Remove(filepath.Join(c.gitDir(), lock)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the lock of a process that died: %w", err)
		}
	}
	return nil
}

// escapePattern returns a pattern of .gitignore that matches a path literally.
func escapePattern(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `).Replace(path)
}

// Submodules returns the folders of submodules, which the clone leaves out, relative
// to Root.
func (c *Clone) Submodules(ctx context.Context) ([]string, error) {
	args := []string{"ls-tree", "-r", "-z", "--full-tree", "HEAD"}
	if c.remote.Folder != "" {
		args = append(args, "--", c.remote.Folder+"/")
	}
	out, err := c.git(ctx, args...)
	if err != nil {
		return nil, err
	}
	var folders []string
	for line := range bytes.SplitSeq(out, []byte{0}) {
		mode, _, _ := bytes.Cut(line, []byte(" "))
		_, name, ok := bytes.Cut(line, []byte("\t"))
		if ok && string(mode) == "160000" {
			folders = append(folders, strings.TrimPrefix(strings.TrimPrefix(string(name), c.remote.Folder), "/"))
		}
	}
	return folders, nil
}

// Program returns the path of git. Without it, the error is of kind
// errkind.Unsupported.
func Program() (string, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("there is no program git on the PATH; install it (Debian and Ubuntu: apt install git; "+
			"macOS: xcode-select --install; Windows: winget install Git.Git): %w", errkind.Unsupported)
	}
	return program, nil
}

// options are the settings of every call. They have precedence over those of the
// user.
func (c *Clone) options() []string {
	options := []string{"--git-dir=" + c.gitDir(), "--no-pager"}
	for _, s := range []string{
		"core.hooksPath=" + filepath.Join(c.dir, "none"), "core.fsmonitor=false", "core.untrackedCache=false",
		"core.autocrlf=false", "core.logAllRefUpdates=false", "core.symlinks=true", "gc.auto=0", "maintenance.auto=false",
		"submodule.recurse=false", "fetch.recurseSubmodules=false",
		"http.lowSpeedLimit=1000", "http.lowSpeedTime=60", "credential.interactive=never", "advice.detachedHead=false",
		"credential.guiPrompt=false", "filter.lfs.smudge=", "filter.lfs.process=", "filter.lfs.required=false",
	} {
		options = append(options, "-c", s)
	}
	return options
}

// git runs git and returns its standard output.
func (c *Clone) git(ctx context.Context, args ...string) ([]byte, error) {
	program, err := Program()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.remote, err)
	}
	options := c.options()
	if args[0] != "init" {
		options = append(options, "--work-tree="+filepath.Join(c.dir, "tree"))
	}
	cmd := exec.CommandContext(ctx, program, append(options, args...)...)
	cmd.Dir, cmd.Env = c.dir, c.env
	kill := detach(cmd)
	cmd.WaitDelay = stopTime
	var out bytes.Buffer
	messages := &sanitize.Tail{Max: maxOutput}
	cmd.Stdout, cmd.Stderr = &out, messages
	err = cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		kill()
		return nil, ctx.Err()
	}
	return nil, c.failure(args[0], messages.String(), err)
}

// failure returns the error of a call of git, with the first line of its messages that
// says what is wrong.
func (c *Clone) failure(command, messages string, err error) error {
	reason := err.Error()
	scanner := bufio.NewScanner(strings.NewReader(messages))
	for scanner.Scan() {
		if line := scanner.Text(); strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			_, reason, _ = strings.Cut(line, ": ")
			break
		}
	}
	reason = sanitize.Short(sanitize.HideUserinfo(reason), 300, 400)
	switch {
	case strings.Contains(reason, "couldn't find remote ref"):
		name := "the branch " + c.remote.Branch
		if c.remote.Branch == "" {
			name = "a branch"
		}
		return fmt.Errorf("%s: the repository does not have %s: %w", c.remote, name, errkind.NotFound)
	case strings.Contains(reason, "could not read Username"), strings.Contains(reason, "Permission denied"):
		reason += " (git needs credentials: try git ls-remote " + c.remote.URL + ")"
	}
	return fmt.Errorf("git %s of %s failed: %s: %w", command, c.remote, reason, errkind.Unavailable)
}
