package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/source"
	"github.com/knowhow-mcp/knowhow/internal/spell"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const sourcesHelp = `Usage: {cmd} [list] [--data DIR]
       {cmd} rm [--data DIR] LABEL

Lists the folders and files that serve remembers, or removes one of them and its
documents from the index. The files themselves are never changed.

{flags}

Examples:
  {cmd}
  {cmd} rm docs
`

// A sourcesCommand lists the sources or removes one.
type sourcesCommand struct {
	dataFlag
	storeFlags
	Words []string `arg:"LABEL"`
}

func (o *sourcesCommand) run(ctx context.Context, v *invocation) error {
	words := o.Words
	switch {
	case len(words) == 0, len(words) == 1 && words[0] == "list":
	case len(words) == 2 && words[0] == "rm" && strings.TrimSpace(words[1]) != "":
	case words[0] == "rm":
		return v.usagef("rm needs exactly one label")
	case words[0] == "list":
		return v.usagef("unexpected argument %q", words[1])
	default:
		e := v.usagef("unexpected argument %q", words[0])
		near := spell.Near(words[0], []string{"list", "rm"}, 1)
		if other := sourcesWords[words[0]]; other != "" {
			near = []string{other}
		}
		if len(near) > 0 {
			e.hint = fmt.Sprintf("Did you mean %q? ", near[0]) + e.hint
		}
		return e
	}
	f, err := v.existingFolder(ctx, o.Data, &o.storeFlags)
	if err != nil {
		return err
	}
	if len(words) == 2 {
		err = v.removeSource(ctx, f, words[1])
	} else {
		err = v.listSources(ctx, f.Index)
	}
	return errors.Join(err, f.Close())
}

// sourcesWords are the operands of sources by other words for the same.
var sourcesWords = map[string]string{
	"remove": "rm", "delete": "rm", "del": "rm", "forget": "rm", "ls": "list", "show": "list",
}

// noSources prints what to do if no source is remembered.
func (v *invocation) noSources() error {
	_, err := fmt.Fprintf(v.stderr, "No sources yet. Index a folder with: %s\n", v.advised("serve", "FOLDER"))
	return err
}

// listSources prints a line for each source: label, number of documents, path,
// rules and description.
func (v *invocation) listSources(ctx context.Context, x *index.Index) error {
	if x == nil {
		return v.noSources()
	}
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
		if _, err := os.Stat(src.Path); err != nil && !source.Remote(src.Path) {
			note = "  (" + source.Reason(err).Error() + ")"
		}
		note += rulesNote(src.Rules)
		if src.Description != "" {
			note += "\t" + sanitize.Escape(src.Description)
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", src.Label, terminal.Plural(stats.ByLabel[src.Label].Documents, "document"),
			sanitize.Escape(src.Path), note)
	}
	return w.Flush()
}

// removeSource removes a source and its documents from the store and the index.
func (v *invocation) removeSource(ctx context.Context, f *datafolder.Folder, label string) error {
	r, err := f.RemoveSource(ctx, label)
	if errors.Is(err, errkind.NotFound) {
		return v.unknownLabel(label)
	}
	if err != nil {
		return err
	}
	unchanged := "; the files are unchanged"
	if source.Remote(r.Path) {
		unchanged = ", and its copy from the data folder"
	}
	_, err = fmt.Fprintf(v.stdout, "removed source %s and %s from the index%s\n", label,
		terminal.Plural(r.Documents, "document"), unchanged)
	if err != nil {
		return err
	}
	if p := r.Process; p != nil {
		fmt.Fprintf(v.stderr,
			"Process %d on %s still serves %s, without documents. End it, or, to index the documents again, restart it with: %s\n",
			p.PID, sanitize.Escape(p.Host), label, v.advised("serve", commandWord(sanitize.Escape(r.Path))))
	}
	if r.Kept > 0 {
		fmt.Fprintf(v.stderr,
			"%s of the collection %s that users added stay; list them with: %s note list --collection %s\n",
			terminal.Plural(r.Kept, "document"), label, v.Program, label)
	}
	return nil
}

// unknownLabel returns the error for a label without a source.
func (v *invocation) unknownLabel(label string) error {
	return &hintError{fmt.Errorf("no source has the label %q", label), "List the sources with: " + v.advised("sources")}
}
