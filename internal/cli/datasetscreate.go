package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const createHelp = `Usage: {cmd} [FLAGS] ID PATH ...

Creates a dataset from folders and files: their texts are cut into passages of
about 180 words, and each gets a vector. MCPower and FAISS can read the dataset,
too. An existing dataset is replaced only with --force, and stays as it is until
the new one is complete.

{flags}

Examples:
  {cmd} handbook ~/handbook
  {cmd} --name "API" --description "Reference of our API" api ./docs ./README.md
  {cmd} --force handbook ~/handbook
  {cmd} --embedder none notes ~/notes
`

const exportHelp = `Usage: {cmd} [FLAGS] ID

Writes a dataset as one file to share: a zip archive, which becomes a dataset
when it is unpacked in a folder of datasets. With --json, writes the texts to
standard output instead, one JSON object on each line.

{flags}

Examples:
  {cmd} handbook
  {cmd} --output /tmp/handbook.zip handbook
  {cmd} --json handbook > handbook.jsonl
`

const deleteHelp = `Usage: {cmd} [FLAGS] ID

Deletes a dataset without asking. The files that it was created from are not
touched, and other files in its folder are kept.

{flags}

Examples:
  {cmd} handbook
`

// A createCommand creates a dataset and prints a summary.
type createCommand struct {
	ID          datasetID  `flag:"id" value:"ID" help:"id of the dataset, in place of the first operand: a-z, 0-9 and \"-\", at most 64 characters"`
	Sources     []filePath `flag:"source" value:"PATH" help:"folder or file with the texts, in addition to the operands"`
	Name        string     `flag:"name" value:"TEXT" range:"1-128" help:"name for people, at most 128 characters; by default the id"`
	Description string     `flag:"description" value:"TEXT" range:"1-512" help:"what the texts are about, at most 512 characters; agents choose a dataset by it"`
	datasetsDir
	Top        int `flag:"top,top-k" value:"N" range:"1-100" help:"number of results of a search of the dataset, from 1 to 100; by default 5"`
	modelFlags `model:"model that makes the vectors"`
	Force      bool `flag:"force" help:"replace the dataset with the same id"`

	Operands []string `arg:"ID PATH"`
}

// A datasetID is the id of a new dataset.
type datasetID string

func (id *datasetID) set(s string) error {
	*id = datasetID(s)
	if dataset.CheckID(s) != nil {
		return errors.New(`want 1 to 64 characters of a-z, 0-9 and "-"`)
	}
	return nil
}

func (o *createCommand) run(ctx context.Context, v *invocation) error {
	if err := o.takeOperands(v); err != nil {
		return err
	}
	lines := terminal.NewLines(v.stderr, nil)
	v.stderr = lines // all output must clear the progress bar first
	start := time.Now()
	embedder, model, err := o.open()
	if err != nil {
		return err
	}
	var bar terminal.Bar
	created, err := dataset.Create(ctx, dataset.CreateOptions{
		Dir: string(o.Dir), ID: string(o.ID), Name: o.Name, Description: o.Description,
		DefaultTopK: o.Top, Sources: stringsOf(o.Sources), Replace: o.Force,
		Embedder: embedder, Model: model,
		Report: func(p dataset.Progress) {
			if bar.What != p.What {
				bar.Since = time.Now()
			}
			bar.What, bar.Things, bar.Done, bar.Total = p.What, p.Things, p.Done, p.Total
			lines.Show(bar)
		},
		Log: slog.New(terminal.NewHandler(lines, slog.LevelWarn)),
	})
	lines.Show(terminal.Bar{})
	switch {
	case errkind.ReasonOf(err) == dataset.ReplaceReason:
		return &hintError{err, "Replace a dataset with --force, or choose another id."}
	case errors.Is(err, errkind.NotFound) && ctx.Err() == nil:
		return &hintError{err, "Name a folder or a file with text."}
	case err != nil:
		return explainModel(err)
	}
	v.printCreateLeftOut(created)
	verb := "created"
	if created.Replaced {
		verb = "replaced"
	}
	vectors := terminal.Plural(created.Vectors, "vector")
	if created.Vectors == 0 {
		vectors = "without vectors (it is searched by words)"
	}
	fmt.Fprintf(v.stdout, "%s dataset %s in %s: %s of %s, %s; this took %s\n", verb, o.ID,
		sanitize.Escape(created.Folder),
		terminal.Plural(created.Chunks, "passage"), terminal.Plural(created.Files, "file"), vectors,
		terminal.Duration(time.Since(start)))
	fmt.Fprintf(v.stderr, "Search it with: %s datasets search --datasets %s %s QUERY\n", v.Program,
		sanitize.Escape(string(o.Dir)), o.ID)
	fmt.Fprintf(v.stderr, "Connect a client with: %s\n", v.connectLine("CLIENT", datasetsOperands(o.Dir)))
	return nil
}

// takeOperands adds the operands to the flags: the id, unless a flag names it, and
// sources.
func (o *createCommand) takeOperands(v *invocation) error {
	paths := o.Operands
	if o.ID == "" && len(paths) > 0 {
		if err := o.ID.set(paths[0]); err != nil {
			return v.usagef("ID: got %q, %v", paths[0], err)
		}
		paths = paths[1:]
	}
	for _, path := range paths {
		if path == "" {
			return v.usagef("PATH is empty")
		}
		o.Sources = append(o.Sources, filePath(v.expand(path)))
	}
	switch {
	case o.ID == "":
		return v.usagef("ID is missing")
	case len(o.Sources) == 0:
		return v.usagef("PATH is missing: name a folder or a file with texts")
	}
	return nil
}

// printCreateLeftOut prints what is not part of a dataset.
func (v *invocation) printCreateLeftOut(c *dataset.Created) {
	var counts []string
	for reason, n := range c.LeftOut {
		counts = append(counts, fmt.Sprintf("%d %s", n, reason))
	}
	if slices.Sort(counts); len(counts) > 0 {
		fmt.Fprintf(v.stderr, "left out: %s\n", strings.Join(counts, ", "))
	}
	for _, s := range c.Skipped {
		if s.Reason != ingest.NoText {
			fmt.Fprintf(v.stderr, "  %s: %s\n", sanitize.Escape(s.Path), sanitize.Escape(s.Message()))
		}
	}
	for _, name := range c.Kept {
		fmt.Fprintf(v.stderr, "kept %s of the replaced dataset, which is not part of it\n", sanitize.Escape(name))
	}
}

// An exportCommand writes a dataset as one file.
type exportCommand struct {
	datasetsDir
	Output filePath `flag:"output" value:"FILE" help:"file to write, which must not exist; - is standard output; by default ID.zip"`
	JSON   bool     `flag:"json" help:"write the texts to standard output, one JSON object on each line"`
	ID     string   `arg:"ID"`
}

func (o *exportCommand) run(ctx context.Context, v *invocation) error {
	if o.JSON && o.Output != "" {
		return v.usagef("--json and --output exclude each other")
	}
	r, err := v.openDatasets(ctx, o.Dir, nil)
	if err != nil {
		return err
	}
	if o.JSON {
		enc := json.NewEncoder(v.stdout)
		enc.SetEscapeHTML(false)
		return v.unknownDataset(r.Documents(ctx, o.ID, func(d dataset.Document) error { return enc.Encode(d) }))
	}
	if o.Output == "-" {
		return v.unknownDataset(r.Export(ctx, o.ID, v.stdout))
	}
	if _, err := r.Check(ctx, o.ID); err != nil { // before a file is created
		return v.unknownDataset(err)
	}
	return v.exportTo(ctx, r, o.ID, cmp.Or(string(o.Output), o.ID+".zip"))
}

// exportTo writes a dataset to a new file.
func (v *invocation) exportTo(ctx context.Context, r *dataset.Registry, id, output string) error {
	file, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return &hintError{fmt.Errorf("%s exists", output), "Remove it, or name another file with --output."}
	}
	if err != nil {
		return err
	}
	err = r.Export(ctx, id, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(v.unknownDataset(err), os.Remove(output))
	}
	abs, err := filepath.Abs(output)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(v.stdout, "wrote dataset %s to %s\n", id, sanitize.Escape(abs))
	return err
}

// unknownDataset adds what to do to the error for a dataset that does not exist.
func (v *invocation) unknownDataset(err error) error {
	if _, unknown := errors.AsType[*dataset.UnknownDataset](err); unknown {
		return &hintError{err, fmt.Sprintf("List the datasets with: %s datasets list", v.Program)}
	}
	return err
}

// A deleteCommand deletes a dataset.
type deleteCommand struct {
	datasetsDir
	ID string `arg:"ID"`
}

func (o *deleteCommand) run(_ context.Context, v *invocation) error {
	kept, err := dataset.Delete(string(o.Dir), o.ID)
	if err != nil {
		return v.unknownDataset(err)
	}
	for _, path := range kept {
		fmt.Fprintf(v.stderr, "kept %s, which is not part of the dataset\n", sanitize.Escape(path))
	}
	_, err = io.WriteString(v.stdout, "deleted dataset "+sanitize.Escape(o.ID)+"\n")
	return err
}
