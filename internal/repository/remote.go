// Package repository keeps copies of git repositories on disk. It runs the
// program git, which reads the user's configuration (credentials, proxies), asks
// nothing, and runs no hook and no filter.
package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// A Remote names a repository, a branch of it and a folder in it.
type Remote struct {
	URL    string // without "git+": https, ssh or file
	Branch string // or a tag; "" means the branch that the repository shows first
	Folder string // with forward slashes; "" means all of it
}

const prefix = "git+"

// Is reports whether a source is that of a repository: whether it begins with "git+".
func Is(source string) bool { return strings.HasPrefix(source, prefix) }

// refPattern matches names of branches and tags that git accepts (git
// check-ref-format), without those that begin with a hyphen.
var (
	refPattern = regexp.MustCompile(`^[^-/.\x00-\x20\x7f~^:?*\[\\][^\x00-\x20\x7f~^:?*\[\\]*$`)
	badRef     = regexp.MustCompile(`\.\.|@\{|//|/\.|\.lock(/|$)|[/.]$|^@$`)
)

// Parse parses a source: git+https://HOST/PATH, git+ssh://HOST/PATH or
// git+file:///PATH, each with #BRANCH or #BRANCH:FOLDER if wanted. Errors are of
// kind errkind.Invalid.
func Parse(source string) (Remote, error) {
	fail := func(format string, args ...any) (Remote, error) {
		return Remote{}, fmt.Errorf("source %s: %s: %w", sanitize.HideUserinfo(source), fmt.Sprintf(format, args...), errkind.Invalid)
	}
	rest, place, _ := strings.Cut(strings.TrimPrefix(source, prefix), "#")
	u, err := url.Parse(rest)
	switch {
	case err != nil || !Is(source):
		return fail("want git+https://HOST/PATH, git+ssh://HOST/PATH or git+file:///PATH")
	case u.Scheme != "https" && u.Scheme != "ssh" && u.Scheme != "file":
		return fail("want git+https, git+ssh or git+file in place of %q", prefix+u.Scheme)
	case (u.Host == "") != (u.Scheme == "file"), strings.Trim(u.Path, "/") == "", u.Opaque != "":
		return fail("want a host and a path, as in git+https://example.com/team/project")
	case u.OmitHost: // git would take "file" for a host
		return fail("want three slashes, as in git+file://%s", u.Path)
	case strings.HasPrefix(u.Hostname(), "-"), u.User != nil && strings.HasPrefix(u.User.Username(), "-"):
		return fail("a name begins with a hyphen")
	case u.RawQuery != "":
		return fail("a repository has no query")
	}
	if _, ok := u.User.Password(); ok {
		return fail("a password in the address would be stored and shown; give it to git's own configuration " +
			"(git config credential.helper)")
	}
	branch, folder, _ := strings.Cut(place, ":")
	if branch != "" && (!refPattern.MatchString(branch) || badRef.MatchString(branch)) {
		return fail("%q is not the name of a branch", branch)
	}
	if slices.Contains(strings.Split(folder, "/"), "..") {
		return fail("%q leads out of the repository", folder)
	}
	if folder != "" {
		folder = strings.Trim(path.Clean("/"+folder), "/")
	}
	if strings.ContainsFunc(folder, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return fail("%q is not a folder", folder)
	}
	u.Fragment, u.RawFragment = "", ""
	return Remote{URL: strings.TrimRight(u.String(), "/"), Branch: branch, Folder: folder}, nil
}

// String returns the source in the form that Parse accepts.
func (r Remote) String() string {
	s := prefix + r.URL
	switch {
	case r.Folder != "":
		s += "#" + r.Branch + ":" + r.Folder
	case r.Branch != "":
		s += "#" + r.Branch
	}
	return s
}

// Name returns the name of the repository: the last element of its path, without
// ".git".
func (r Remote) Name() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path.Base(u.Path), ".git")
}

// Group returns the element of its path before the name of the repository, or "".
func (r Remote) Group() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	return path.Base(path.Dir(u.Path))
}

// Dir returns the folder of the clone in a data folder.
func (r Remote) Dir(data string) string {
	sum := sha256.Sum256([]byte(r.String()))
	return filepath.Join(data, "repositories", hex.EncodeToString(sum[:8]))
}

// hosts are the services whose addresses of files are known, by host. Each address
// has the repository, the commit and the file.
var hosts = map[string]string{
	"github.com":    "%s/blob/%s/%s",
	"gitlab.com":    "%s/-/blob/%s/%s",
	"codeberg.org":  "%s/src/commit/%s/%s",
	"bitbucket.org": "%s/src/%s/%s",
}

// Page returns the address of a file at a commit: that of its page at GitHub, GitLab,
// Codeberg or Bitbucket, otherwise the repository with #COMMIT:FILE. name is
// relative to the folder of the remote.
func (r Remote) Page(commit, name string) string {
	name = path.Join(r.Folder, name)
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	if form, ok := hosts[strings.ToLower(u.Hostname())]; ok {
		page := url.URL{Scheme: "https", Host: strings.ToLower(u.Hostname()), Path: strings.TrimSuffix(u.Path, ".git")}
		return fmt.Sprintf(form, page.String(), commit, (&url.URL{Path: name}).EscapedPath())
	}
	return prefix + r.URL + "#" + commit + ":" + (&url.URL{Path: name}).EscapedPath()
}
