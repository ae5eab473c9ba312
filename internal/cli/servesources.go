package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/source"
)

// openSources opens the index of the data folder and returns the sources to serve:
// those on the command line, in its order, or all remembered ones if there are none.
// New sources that are indexed are remembered.
func (v *invocation) openSources(ctx context.Context, o *serveCommand, f *datafolder.Folder) (
	[]servedSource, error) {
	var requests []source.Request
	paths := make([]string, len(o.sources))
	for i, arg := range o.sources {
		path, err := source.Resolve(arg.path)
		kind, _ := source.KindOf(arg.path)
		switch {
		case errors.Is(err, errkind.Unsupported) && kind != source.Fess:
			return nil, &hintError{err, "Name a folder."}
		case errors.Is(err, errkind.Unsupported):
			return nil, err
		case errors.Is(err, errkind.Invalid):
			return nil, err
		case err != nil:
			return nil, &hintError{err, "Check the spelling, or name another folder."}
		}
		paths[i] = path
		if kind != source.Indexed {
			continue
		}
		requests = append(requests, source.Request{
			Path: path, Label: string(arg.Label), Description: arg.Description, Rules: arg.rules,
		})
	}
	none := &hintError{usageError("no source: nothing is indexed yet"),
		fmt.Sprintf("Name a folder, for example: %s docs", v.name)}
	if len(o.sources) == 0 {
		if found, err := hasIndex(f.Dir); err != nil {
			return nil, err
		} else if !found {
			return nil, none
		}
	}
	if err := f.OpenIndex(ctx); err != nil {
		return nil, indexError(err)
	}
	known, err := f.Index.Sources(ctx)
	if err != nil {
		return nil, err
	}
	served, changed, added, err := source.Choose(known, requests)
	if err != nil {
		return nil, labelError(err)
	}
	for _, src := range added {
		if repository.Is(src.Path) {
			if _, err := repository.Program(); err != nil {
				return nil, fmt.Errorf("source %s: %w", src.Path, err)
			}
		}
		if err := v.confirmSource(ctx, o, src.Path); err != nil {
			return nil, err
		}
	}
	for _, src := range changed {
		if err := f.Index.AddSource(ctx, src); err != nil {
			return nil, err
		}
	}
	if len(o.sources) == 0 {
		served = known
	}
	if len(o.sources) == 0 && len(served) == 0 {
		return nil, none
	}
	all := make([]servedSource, len(served))
	for i, src := range served {
		all[i] = servedSource{Source: src}
	}
	for i, arg := range o.sources {
		if kind, _ := source.KindOf(paths[i]); kind == source.Indexed {
			continue
		}
		if at := slices.IndexFunc(all, func(s servedSource) bool { return s.Path == paths[i] }); at >= 0 { // named twice
			src := all[at].Source
			if arg.Label != "" && string(arg.Label) != src.Label {
				return nil, labelError(&source.LabelError{Label: string(arg.Label), Holder: src})
			}
			continue
		}
		src, err := v.asked(paths[i], arg, slices.Concat(known, served), o.Transport == "stdio")
		if err != nil {
			return nil, err
		}
		served, all = append(served, src.Source), append(all, src)
	}
	v.warnSources(served)
	return all, nil
}

// warnSources prints warnings about sources that are served together.
func (v *invocation) warnSources(served []document.Source) {
	for _, n := range source.Nested(served) {
		v.warn(fmt.Sprintf("source %q (%s) is inside source %q (%s): its files are indexed twice, and found twice; "+
			"to forget one of them, type: knowhow sources rm LABEL",
			n.Inner.Label, n.Inner.Path, n.Outer.Label, n.Outer.Path))
	}
	for _, src := range served {
		kind, _ := source.KindOf(src.Path)
		if src.Label != kb.DefaultCollection || kind == source.Notes {
			continue
		}
		advice := "choose another --label"
		if kind == source.Indexed {
			advice = fmt.Sprintf("for another label, type: knowhow sources rm %s, then knowhow serve --label NAME FOLDER",
				src.Label)
		}
		v.warn(fmt.Sprintf("notes without a collection belong to the source %q (%s), because they have its label, "+
			"and searches of the source find them; %s", src.Label, src.Path, advice))
	}
}

// labelError adds advice to a [source.LabelError]. Only sources that are indexed are
// remembered, so that their labels must be freed.
func labelError(err error) error {
	e, ok := errors.AsType[*source.LabelError](err)
	if !ok {
		return err
	}
	kind, _ := source.KindOf(e.Holder.Path)
	switch same := e.Label == e.Holder.Label; {
	case same && kind == source.Indexed:
		return fmt.Errorf("--label %s: %v; choose another one, or first type: knowhow sources rm %s", e.Label, e,
			e.Label)
	case same:
		return fmt.Errorf("--label %s: %v; choose another one", e.Label, e)
	case kind == source.Indexed:
		return fmt.Errorf("%v; to give it another one, first type: knowhow sources rm %s", e, e.Holder.Label)
	}
	return fmt.Errorf("--label %s: %v", e.Label, e)
}

// Limits on counting the files of a folder before a confirmation.
const (
	maxCounted   = 100_000
	maxCountTime = 2 * time.Second
)

// confirmSource asks for confirmation before a folder is indexed that is rarely
// intended: a whole disk, a home folder, or a folder that contains the home
// folder. Without a terminal and without --yes it is refused.
func (v *invocation) confirmSource(ctx context.Context, o *serveCommand, path string) error {
	what := source.Vast(path, v.home())
	if what == "" || o.Yes {
		return nil
	}
	counting, cancel := context.WithTimeout(ctx, maxCountTime)
	defer cancel()
	n, all := source.CountFiles(counting, path, maxCounted)
	count := thousands(n) + " files"
	switch {
	case !all:
		count = "more than " + count
	case n == 1:
		count = "1 file"
	}
	refused := &hintError{fmt.Errorf("%s is %s, with %s", path, what, count),
		"Name a smaller folder, or add --yes to index all of them."}
	in, ok := v.stdin.(*os.File)
	if !ok || o.Transport == "stdio" || !term.IsTerminal(int(in.Fd())) {
		return refused
	}
	fmt.Fprintf(v.stderr, "%s is %s, with %s. Index all of them? [y/N] ", printableLines(path), what, count)
	answer, err := await(ctx, func() (string, error) { return bufio.NewReader(in).ReadString('\n') })
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && answer == "":
		return errors.New("reading the answer: the input has ended")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &hintError{errors.New("nothing was indexed"), "Name a smaller folder."}
}

// thousands formats a non-negative number with commas: 100,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
