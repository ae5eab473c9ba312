package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/index"
	"knowhow/internal/kb"
	"knowhow/internal/sanitize"
	"knowhow/internal/source"
)

// openSources opens the data folder of opts and returns the sources to serve: those on
// the command line, in its order, or all remembered ones if there are none. New
// sources are remembered.
func openSources(ctx context.Context, v *invocation, o *serveCommand, opts index.Options) (*index.Index, []document.Source, error) {
	var paths []string
	for _, arg := range o.sources {
		path, err := source.Resolve(arg.path)
		switch {
		case errors.Is(err, errkind.Unsupported):
			return nil, nil, &hintError{err, "Name a folder."}
		case err != nil:
			return nil, nil, &hintError{err, "Check the spelling, or name another folder."}
		}
		paths = append(paths, path)
	}
	none := &usageError{"no source: nothing is indexed yet", fmt.Sprintf("Name a folder, for example: %s docs", v.name)}
	if len(paths) == 0 {
		if found, err := hasIndex(o.Data); err != nil {
			return nil, nil, err
		} else if !found {
			return nil, nil, none
		}
	}
	x, err := openIndex(ctx, opts)
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
func (v *invocation) chooseSources(ctx context.Context, x *index.Index, o *serveCommand, paths []string) ([]document.Source, error) {
	known, err := x.Sources(ctx)
	if err != nil {
		return nil, err
	}
	var served, news []document.Source
	for i, path := range paths {
		path = source.Same(known, path)
		src, added, err := source.New(known, path, string(o.sources[i].Label))
		if err != nil {
			return nil, labelError(err)
		}
		if added {
			if err := v.confirmSource(ctx, o, path); err != nil {
				return nil, err
			}
			known = append(known, src)
		}
		arg := o.sources[i]
		before := src
		src.Description, src.Rules = cmp.Or(arg.Description, src.Description), arg.rules(src.Rules)
		known[slices.IndexFunc(known, func(k document.Source) bool { return k.Label == src.Label })] = src
		if added || !reflect.DeepEqual(src, before) {
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
	for _, warning := range sourceWarnings(served) {
		fmt.Fprintf(v.stderr, "%s: warning: %s\n", v.name, printableLines(warning))
	}
	return served, nil
}

// sourceWarnings returns the warnings about sources that are served together.
func sourceWarnings(served []document.Source) []string {
	var all []string
	for _, n := range source.Nested(served) {
		all = append(all, fmt.Sprintf("source %q (%s) is inside source %q (%s): its files are indexed twice, and found twice; to forget one of them, type: knowhow sources rm LABEL",
			n.Inner.Label, n.Inner.Path, n.Outer.Label, n.Outer.Path))
	}
	for _, src := range served {
		if src.Label == kb.DefaultCollection {
			all = append(all, fmt.Sprintf("notes without a collection belong to the source %q (%s), because they have its label, and searches of the source find them; "+
				"for another label, type: knowhow sources rm %s, then knowhow serve --label NAME FOLDER", src.Label, src.Path, src.Label))
		}
	}
	return all
}

// labelError adds advice to an error of [source.New].
func labelError(err error) error {
	e, ok := errors.AsType[*source.LabelError](err)
	switch {
	case !ok:
		return err
	case e.Label == e.Holder.Label:
		return fmt.Errorf("--label %s: %v; choose another one, or first type: knowhow sources rm %s", e.Label, e, e.Label)
	}
	return fmt.Errorf("%v; to give it another one, first type: knowhow sources rm %s", e, e.Holder.Label)
}

// hasIndex reports whether a data folder contains an index. A folder that does
// not exist contains none. It is an error if the folder cannot be read.
func hasIndex(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, index.FileName))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err == nil, nil
	}
	return false, &hintError{fmt.Errorf("the data folder cannot be read: %w", err), "Name another one with --data, or change its permissions."}
}

// openIndex opens the index in a data folder, and creates it if there is none.
// Its errors say what to do if the folder cannot be used.
func openIndex(ctx context.Context, o index.Options) (*index.Index, error) {
	x, err := index.Open(ctx, o)
	if _, ofPath := errors.AsType[*fs.PathError](err); ofPath || errors.Is(err, errkind.Denied) {
		return nil, &hintError{err, "Name another data folder with --data."}
	}
	return x, err
}

// openExisting opens the index in the data folder dir, which is the named one or
// the default. The index is nil if there is none.
func (v *invocation) openExisting(ctx context.Context, named string) (x *index.Index, dir string, err error) {
	return v.openExistingWith(ctx, named, index.Options{})
}

// openExistingWith is openExisting with an embedder of queries.
func (v *invocation) openExistingWith(ctx context.Context, named string, o index.Options) (x *index.Index, dir string, err error) {
	if dir, err = dataFolder(v.Env, named); err != nil {
		return nil, "", err
	}
	if usual, err := dataFolder(v.Env, ""); err != nil || dir != usual {
		v.data = dir
	}
	if found, err := hasIndex(dir); err != nil || !found {
		return nil, dir, err
	}
	o.Dir, o.Log, o.ReadOnly = dir, v.warnings(), true
	x, err = openIndex(ctx, o)
	return x, dir, err
}

// advised returns a command of this program that a message advises. It is for the
// data folder that was opened.
func (v *invocation) advised(command string, words ...string) string {
	line := v.Program + " " + command
	if v.data != "" {
		line += " --data " + commandWord(sanitize.Escape(v.data))
	}
	return strings.Join(append([]string{line}, words...), " ")
}

// fileExists reports whether a file exists at path.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isFolder reports whether a folder exists at path.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
