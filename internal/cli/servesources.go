package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"knowhow/internal/document"
	"knowhow/internal/index"
)

// openSources opens the data folder and returns the sources to serve: those that
// the command line names, in its order, or without any all that are remembered.
// New ones are remembered from then on.
func openSources(ctx context.Context, v *invocation, o *serveOptions) (*index.Index, []document.Source, error) {
	var paths []string
	for _, arg := range o.sources {
		path, err := resolveSource(arg.path)
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, path)
	}
	none := &usageError{"no source: nothing is indexed yet", fmt.Sprintf("Name a folder, for example: %s docs", v.name)}
	if len(paths) == 0 && !fileExists(filepath.Join(o.data, index.FileName)) {
		return nil, nil, none
	}
	x, err := index.Open(ctx, index.Options{Dir: o.data})
	if err != nil {
		return nil, nil, err
	}
	served, err := v.chooseSources(ctx, x, o, paths)
	if err == nil && len(served) == 0 {
		err = none
	}
	if err != nil {
		return nil, nil, errors.Join(err, x.Close())
	}
	return x, served, nil
}

// chooseSources is openSources with an open index and absolute paths.
func (v *invocation) chooseSources(ctx context.Context, x *index.Index, o *serveOptions, paths []string) ([]document.Source, error) {
	known, err := x.Sources(ctx)
	if err != nil {
		return nil, err
	}
	var served, news []document.Source
	for i, path := range paths {
		src, added, err := addSource(known, path, o.sources[i].label)
		if err != nil {
			return nil, err
		}
		if added {
			if err := v.confirmSource(ctx, o, path); err != nil {
				return nil, err
			}
			known = append(known, src)
		}
		if d := o.sources[i].description; d != "" {
			src.Description = d
			known[slices.IndexFunc(known, func(k document.Source) bool { return k.Label == src.Label })] = src
		}
		if added || o.sources[i].description != "" {
			news = append(news, src)
		}
		if i := slices.IndexFunc(served, func(s document.Source) bool { return s.Label == src.Label }); i >= 0 {
			served[i] = src // named twice
		} else {
			served = append(served, src)
		}
	}
	for _, src := range news {
		if err := x.AddSource(ctx, src); err != nil {
			return nil, err
		}
	}
	if len(paths) == 0 {
		served = known
	}
	for _, w := range nestedSources(served, known) {
		fmt.Fprintf(v.stderr, "%s: warning: %s\n", v.name, printableLines(w))
	}
	return served, nil
}

// resolveSource makes the path of a source absolute and free of links, so that a
// folder is one source however its path is spelled.
func resolveSource(arg string) (string, error) {
	if strings.Contains(arg, "://") {
		return "", &hintError{fmt.Errorf("source %q is a web address, and this version indexes folders and files", arg), "Name a folder."}
	}
	abs, err := filepath.Abs(arg)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", &hintError{fmt.Errorf("source %q cannot be read: %w", arg, pathReason(err)), "Check the spelling, or name another folder."}
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", &hintError{fmt.Errorf("source %q cannot be read: %w", arg, pathReason(err)), "Check the spelling, or name another folder."}
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return "", &hintError{fmt.Errorf("source %q is neither a folder nor a file", arg), "Name a folder."}
	}
	return abs, nil
}

// pathReason returns what is wrong with a path without repeating the path.
func pathReason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// fileExists reports whether there is something at path.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isInside reports whether path is below the folder dir. Both are absolute.
func isInside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// nestedSources returns a warning for each pair of sources of which one is inside
// the other and at least one is served.
func nestedSources(served, known []document.Source) []string {
	isServed := func(s document.Source) bool {
		return slices.ContainsFunc(served, func(k document.Source) bool { return k.Label == s.Label })
	}
	var warnings []string
	for _, inner := range known {
		for _, outer := range known {
			if !isInside(inner.Path, outer.Path) || !isServed(inner) && !isServed(outer) {
				continue
			}
			what := "its files are indexed twice"
			if isServed(inner) && isServed(outer) {
				what += ", and found twice"
			}
			warnings = append(warnings, fmt.Sprintf("source %q (%s) is inside source %q (%s): %s; to forget one of them, type: knowhow sources rm LABEL",
				inner.Label, inner.Path, outer.Label, outer.Path, what))
		}
	}
	return warnings
}
