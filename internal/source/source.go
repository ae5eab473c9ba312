// Package source names the folders, files, repositories and sites that are indexed: it turns what a
// user types into a path, and gives a path its label and a label its domain.
package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/site"
)

var domainPattern = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9_]{1,%d}$`, MaxDomain))

// MaxDomain is the length of the longest id of a domain, in bytes. With it the
// longest name of a tool stays under 64 characters with a client's prefix.
const MaxDomain = 24

// NormalDomain returns the form in which the id of a domain is used: in lower
// case and with "_" for "-". ok reports whether that can be an id.
func NormalDomain(s string) (id string, ok bool) {
	id = strings.ReplaceAll(strings.ToLower(s), "-", "_")
	return id, domainPattern.MatchString(id)
}

// slug makes a label of a name: in lower case, with "-" for every run of
// characters other than a to z and 0 to 9. If nothing is left, it is "source".
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "source"
}

// reserved reports whether a label is not given to a source without a request:
// "documents" is the collection of notes that name none, and the tools of the
// knowledge base have names that begin with "kb_".
func reserved(label string) bool { return label == "documents" || label == "kb" }

// Domain returns the id of the domain of a label: in lower case, with "_" for "-"
// and ".", and cut to MaxDomain characters. For "kb" it is "kb_docs", because the
// tools of the knowledge base have names that begin with "kb_".
func Domain(label string) string {
	id := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(label))
	if id == "kb" {
		return "kb_docs"
	}
	return id[:min(len(id), MaxDomain)]
}

// A LabelError means that a source cannot have the label that is requested. It is
// of kind errkind.Conflict.
type LabelError struct {
	Label  string          // that is requested
	Holder document.Source // has that label, or the path
}

// Error returns which source has the label, or which label the source has.
func (e *LabelError) Error() string {
	if e.Holder.Label == e.Label {
		return "the label belongs to " + e.Holder.Path
	}
	return fmt.Sprintf("%s already has the label %q", e.Holder.Path, e.Holder.Label)
}

// Unwrap returns errkind.Conflict.
func (e *LabelError) Unwrap() error { return errkind.Conflict }

// New returns the source of the folder or file at path, and whether it is new. A
// path that is known keeps its label. A new one gets the given label or, if that
// is "", the slug of the last element of the path, or of the last two if the first
// is reserved, with a number if another source has it. The error is a
// [*LabelError].
func New(known []document.Source, path, label string) (src document.Source, added bool, err error) {
	taken := map[string]document.Source{}
	for _, k := range known {
		taken[k.Label] = k
		if k.Path != path {
			continue
		}
		if label != "" && label != k.Label {
			return src, false, &LabelError{label, k}
		}
		return k, false, nil
	}
	if label != "" {
		if other, ok := taken[label]; ok {
			return src, false, &LabelError{label, other}
		}
		return document.Source{Label: label, Path: path}, true, nil
	}
	base := labelOf(path)
	label = base
	for n := 2; taken[label].Label != "" || reserved(label); n++ {
		label = fmt.Sprintf("%s-%d", base, n)
	}
	return document.Source{Label: label, Path: path}, true, nil
}

// labelOf returns the label that a source gets without a request.
func labelOf(path string) string {
	name, above := filepath.Base(path), filepath.Base(filepath.Dir(path))
	if r, err := repository.Parse(path); err == nil {
		name, above = r.Name(), r.Group()
	} else if s, err := site.Parse(path); err == nil {
		name, above = s.Name(), "site"
	}
	if base := slug(name); !reserved(base) {
		return base
	}
	return slug(above + "-" + name)
}

// A Request is a source that a user names, and what is to change about it.
type Request struct {
	Path        string // absolute
	Label       string // "" chooses one for a new source
	Description string // "" means as remembered

	// Rules returns the rules of a source that had these rules before.
	Rules func(document.Rules) document.Rules
}

// Choose returns the sources that users name, in their order, each once. changed are
// those of them that are not known in this form, and added those that are not known
// at all. An error is a [LabelError].
func Choose(known []document.Source, requests []Request) (chosen, changed, added []document.Source, err error) {
	known = slices.Clone(known)
	byLabel := func(sources []document.Source, label string) int {
		return slices.IndexFunc(sources, func(s document.Source) bool { return s.Label == label })
	}
	for _, r := range requests {
		src, isNew, err := New(known, Same(known, r.Path), r.Label)
		if err != nil {
			return nil, nil, nil, err
		}
		if isNew {
			added = append(added, src)
			known = append(known, src)
		}
		was := src
		src.Description, src.Rules = cmp.Or(r.Description, src.Description), r.Rules(src.Rules)
		known[byLabel(known, src.Label)] = src
		if isNew || !reflect.DeepEqual(src, was) {
			changed = append(changed, src)
		}
		if i := byLabel(chosen, src.Label); i >= 0 {
			chosen[i] = src // named twice
		} else {
			chosen = append(chosen, src)
		}
	}
	return chosen, changed, added, nil
}

// Resolve returns the path of a source, absolute and free of links, so that a
// folder is one source however its path is spelled. What is neither a folder nor
// a file is an error of kind errkind.Unsupported.
func Resolve(name string) (string, error) {
	if kind, _ := KindOf(name); kind != Indexed {
		return resolveAsked(name)
	}
	if repository.Is(name) {
		r, err := repository.Parse(name)
		if err != nil {
			return "", err
		}
		return r.String(), nil
	}
	if site.Is(name) {
		s, err := site.Parse(name)
		if err != nil {
			return "", err
		}
		return s.String(), nil
	}
	if rest, ok := strings.CutPrefix(name, "file:"); ok {
		name = rest
		if rest, ok := strings.CutPrefix(name, "//"); ok { // a URL without a host
			name = rest
		}
	}
	if strings.Contains(name, "://") {
		return "", fmt.Errorf("source %q is an address, and only web sites (https://...) and git repositories (git+https://...) "+
			"can be read: %w", name, errkind.Unsupported)
	}
	path, err := filepath.Abs(name)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("source %q cannot be read: %w", name, Reason(err))
	case !info.IsDir() && !info.Mode().IsRegular():
		return "", fmt.Errorf("source %q is neither a folder nor a file: %w", name, errkind.Unsupported)
	}
	return path, nil
}

// Forms of sources that are asked when a search comes.
const (
	fessForm     = "fess:"     // and the path of a configuration file of the bridge
	datasetsForm = "datasets:" // and the path of a folder of datasets
	notesForm    = "kb"        // or kb: and a collection
)

// A Kind is a kind of sources that are asked when a search comes.
type Kind string

// The kinds. A source that is not of these is indexed.
const (
	Indexed  Kind = ""
	Fess     Kind = "fess"
	Datasets Kind = "datasets"
	Notes    Kind = "kb"
)

// KindOf returns the kind of the source with a path, which [Resolve] has returned, and
// what follows the name of the kind: the path of a file or folder, or a collection ("" for
// all).
func KindOf(path string) (kind Kind, rest string) {
	switch {
	case path == notesForm:
		return Notes, ""
	case strings.HasPrefix(path, notesForm+":"):
		return Notes, path[len(notesForm)+1:]
	case strings.HasPrefix(path, fessForm):
		return Fess, path[len(fessForm):]
	case strings.HasPrefix(path, datasetsForm):
		return Datasets, path[len(datasetsForm):]
	}
	return Indexed, path
}

// resolveAsked is Resolve for sources that are asked.
func resolveAsked(name string) (string, error) {
	kind, rest := KindOf(name)
	if kind == Notes {
		if rest != "" && !document.ValidLabel(rest) || strings.HasSuffix(name, ":") {
			return "", fmt.Errorf(`source %q: want kb or kb:COLLECTION, a name of letters, digits, "_", "." and "-": %w`, name,
				errkind.Invalid)
		}
		return name, nil
	}
	path, err := filepath.Abs(rest)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	switch {
	case rest == "":
		return "", fmt.Errorf("source %q names no path: %w", name, errkind.Invalid)
	case err != nil:
		return "", fmt.Errorf("source %q cannot be read: %w", name, Reason(err))
	case kind == Datasets && !info.IsDir():
		return "", fmt.Errorf("source %q is not a folder of datasets: %w", name, errkind.Unsupported)
	case kind == Fess && info.IsDir():
		return "", fmt.Errorf("source %q is a folder, want a configuration file of knowhow fess: %w", name,
			errkind.Unsupported)
	}
	return string(kind) + ":" + path, nil
}

// Ask returns the source with a path that is asked. It gets the given label or, if that
// is "", name, or its slug if it cannot be a label, with a number if one of the other sources has it. The error is
// a [*LabelError].
func Ask(others []document.Source, path, name, label string) (document.Source, error) {
	holder := func(label string) int {
		return slices.IndexFunc(others, func(s document.Source) bool { return s.Label == label })
	}
	if label != "" {
		if i := holder(label); i >= 0 {
			return document.Source{}, &LabelError{label, others[i]}
		}
		return document.Source{Label: label, Path: path}, nil
	}
	base := name
	if !document.ValidLabel(name) {
		base = slug(name)
	}
	kind, _ := KindOf(path)
	label = base
	for n := 2; holder(label) >= 0 || reserved(label) && kind != Notes || label == "documents"; n++ {
		label = fmt.Sprintf("%s-%d", base, n)
	}
	return document.Source{Label: label, Path: path}, nil
}

// Remote reports whether a source is not on this machine: whether it is a repository or
// a web site. What is remote is looked at from time to time.
func Remote(path string) bool { return repository.Is(path) || site.Is(path) }

// Same returns the path of the known source that is the folder at path under
// another name, for example because the folder was moved and a link has its old
// name, or because the file system ignores case. Otherwise it returns path.
func Same(known []document.Source, path string) string {
	if slices.ContainsFunc(known, func(k document.Source) bool { return k.Path == path }) {
		return path
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path
	}
	for _, k := range known {
		if other, err := os.Stat(k.Path); err == nil && os.SameFile(info, other) {
			return k.Path
		}
	}
	return path
}

// Reason returns what is wrong with a path without repeating the path.
func Reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Inside reports whether path is below the folder dir. Both are absolute.
func Inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// A Nesting is a pair of sources of which one is inside the other: the files of
// the inner one are indexed and found twice.
type Nesting struct{ Inner, Outer document.Source }

// Nested returns the pairs of sources of which one is inside the other.
func Nested(sources []document.Source) []Nesting {
	var pairs []Nesting
	for _, inner := range sources {
		for _, outer := range sources {
			if Inside(inner.Path, outer.Path) {
				pairs = append(pairs, Nesting{inner, outer})
			}
		}
	}
	return pairs
}
