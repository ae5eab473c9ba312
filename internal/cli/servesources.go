package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"knowhow/internal/datafolder"
	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/index"
	"knowhow/internal/kb"
	"knowhow/internal/source"
)

// openSources opens the index of the data folder and returns the sources to serve:
// those on the command line, in its order, or all remembered ones if there are none.
// New sources are remembered.
func (v *invocation) openSources(ctx context.Context, o *serveCommand, f *datafolder.Folder) ([]document.Source, error) {
	var paths []string
	for _, arg := range o.sources {
		path, err := source.Resolve(arg.path)
		switch {
		case errors.Is(err, errkind.Unsupported):
			return nil, &hintError{err, "Name a folder."}
		case err != nil:
			return nil, &hintError{err, "Check the spelling, or name another folder."}
		}
		paths = append(paths, path)
	}
	none := &usageError{"no source: nothing is indexed yet", fmt.Sprintf("Name a folder, for example: %s docs", v.name)}
	if len(paths) == 0 {
		if found, err := hasIndex(f.Dir); err != nil {
			return nil, err
		} else if !found {
			return nil, none
		}
	}
	if err := f.OpenIndex(ctx); err != nil {
		return nil, indexError(err)
	}
	served, err := v.chooseSources(ctx, f.Index, o, paths)
	if err == nil && len(served) == 0 {
		err = none
	}
	return served, err
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
