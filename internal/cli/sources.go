package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"knowhow/internal/errkind"
	"knowhow/internal/index"
	"knowhow/internal/terminal"
)

const sourcesHelp = `Usage: {cmd} [--data DIR]
       {cmd} rm [--data DIR] LABEL

Lists the folders and files that serve remembers, or forgets one of them with
its documents. The originals are not touched.

Flags:
  --data DIR  data folder (KNOWHOW_DATA)

Examples:
  {cmd}
  {cmd} rm docs
`

// runSources lists or forgets sources.
func runSources(ctx context.Context, v *invocation, args []string) error {
	fs := v.newFlags()
	data := fs.String("data", "", "")
	var words []string
	if err := v.parse(fs, args, func(arg string) error { words = append(words, arg); return nil }); err != nil {
		return err
	}
	switch {
	case len(words) == 0, len(words) == 2 && words[0] == "rm":
	case words[0] == "rm":
		return v.usagef("rm takes one label")
	default:
		return v.usagef("unexpected argument %q", words[0])
	}
	dir, err := dataFolder(v.Env, *data)
	if err != nil {
		return err
	}
	if !fileExists(filepath.Join(dir, index.FileName)) {
		if len(words) == 2 {
			return unknownLabel(words[1])
		}
		return v.noSources()
	}
	x, err := index.Open(ctx, index.Options{Dir: dir})
	if err != nil {
		return err
	}
	if len(words) == 2 {
		err = v.removeSource(ctx, x, words[1])
	} else {
		err = v.listSources(ctx, x)
	}
	return errors.Join(err, x.Close())
}

// noSources says what to do where nothing is remembered.
func (v *invocation) noSources() error {
	_, err := fmt.Fprintf(v.stderr, "No sources yet. Index a folder with: %s serve FOLDER\n", v.Program)
	return err
}

// listSources prints a line a source: label, documents, path.
func (v *invocation) listSources(ctx context.Context, x *index.Index) error {
	sources, err := x.Sources(ctx)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return v.noSources()
	}
	stats, err := x.Stats(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	for _, src := range sources {
		note := ""
		if _, err := os.Stat(src.Path); err != nil {
			note = "  (" + pathReason(err).Error() + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", src.Label, terminal.Plural(stats.ByLabel[src.Label].Documents, "document"), terminal.Printable(src.Path), note)
	}
	return w.Flush()
}

// removeSource forgets a source and its documents.
func (v *invocation) removeSource(ctx context.Context, x *index.Index, label string) error {
	err := x.RemoveSource(ctx, label)
	if errors.Is(err, errkind.NotFound) {
		return unknownLabel(label)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(v.stdout, "forgot %s\n", label)
	return err
}

// unknownLabel is the error for a label that no source has.
func unknownLabel(label string) error {
	return &hintError{fmt.Errorf("no source has the label %q", label), "List the sources with: knowhow sources"}
}
