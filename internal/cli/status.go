package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const statusHelp = `Usage: {cmd} [FLAGS]

Shows what is indexed: for each remembered source the number of documents, the
size of their texts, their languages, what is left out, which process indexes it
and how far it is, and how many passages can be found by meaning. The last lines
of the table show the whole index.

{flags}

Examples:
  {cmd}
  {cmd} --left-out --label docs
  {cmd} --json
`

// A statusCommand shows what is indexed.
type statusCommand struct {
	dataFlag
	storeFlags
	Labels  []string `flag:"label" value:"NAME" help:"show only the source with this label"`
	LeftOut bool     `flag:"left-out" help:"list the files and folders that are left out, with the reasons"`
	jsonFlag
}

// sum returns the sum of counts.
func sum(counts map[string]int) int {
	n := 0
	for _, k := range counts {
		n += k
	}
	return n
}

// documentsOf describes the number of documents of a source.
func documentsOf(s datafolder.SourceStatus) string {
	if i := s.Incomplete; i != nil && i.Total > s.Documents {
		return fmt.Sprintf("%d of %s", s.Documents, terminal.Plural(i.Total, "document"))
	}
	return terminal.Plural(s.Documents, "document")
}

// leftOutOf describes the number of files and folders of a source that are left out.
func leftOutOf(s datafolder.SourceStatus) string {
	text := fmt.Sprintf("%d left out", sum(s.LeftOut))
	if n := sum(s.InPart); n > 0 {
		text += fmt.Sprintf(", %d in part", n)
	}
	return text
}

func (o *statusCommand) run(ctx context.Context, v *invocation) error {
	f, err := v.existingFolder(ctx, o.Data, &o.storeFlags)
	if err != nil {
		return err
	}
	status, err := f.Status(ctx, o.Labels, o.LeftOut)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	sources, stats := status.Sources, status.Stats
	for _, label := range o.Labels {
		if !slices.ContainsFunc(sources, func(s datafolder.SourceStatus) bool { return s.Label == label }) {
			return v.unknownLabel(label)
		}
	}
	switch {
	case o.JSON:
		text, err := compact.Marshal(struct {
			Data      string                    `json:"data"`
			Documents int                       `json:"documents"`
			TextBytes int64                     `json:"textBytes"`
			FileBytes int64                     `json:"fileBytes"` // of the index on disk
			Segments  int                       `json:"segments"`
			Vectors   *vectorStatus             `json:"vectors,omitempty"`
			Store     *datafolder.StoreStatus   `json:"store,omitempty"`
			Sources   []datafolder.SourceStatus `json:"sources"`
		}{f.Dir, stats.Documents, stats.TextBytes, stats.FileBytes, stats.Segments, vectorsOf(stats), status.Store,
			append([]datafolder.SourceStatus{}, sources...)})
		if err == nil {
			_, err = fmt.Fprintf(v.stdout, "%s\n", sanitize.ShowJSON(text))
		}
		return err
	case len(sources) == 0 && status.Store == nil:
		return v.noSources()
	case o.LeftOut:
		return v.printLeftOut(sources)
	}
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	for _, s := range sources {
		fmt.Fprintf(w, "%s\t%s\t%s of text\t%s\t%s%s\n", s.Label, documentsOf(s), terminal.Bytes(s.TextBytes),
			leftOutOf(s), sanitize.Escape(s.Path), rulesNote(document.Rules{Include: s.Include, Exclude: s.Exclude,
				NoIgnore: s.NoIgnore}))
	}
	fmt.Fprintf(w, "index\t%s\t%s on disk\t%s\t%s\n", terminal.Plural(stats.Documents, "document"),
		terminal.Bytes(stats.FileBytes),
		terminal.Plural(stats.Segments, "segment"), sanitize.Escape(f.Dir))
	if status.Store != nil {
		printStore(w, status.Store)
	}
	if n := vectorsOf(stats); n != nil {
		fmt.Fprintf(w, "vectors\t%s\n", n.text())
	}
	for _, s := range sources {
		v.printDetails(w, s)
	}
	return w.Flush()
}

// printDetails prints what is missing of a source, its languages, what is left out
// by reason, and which process indexes it.
func (v *invocation) printDetails(w io.Writer, s datafolder.SourceStatus) {
	fmt.Fprintln(w)
	if i := s.Incomplete; i != nil {
		fmt.Fprintf(w, "%s: %s\n", s.Label, i.State())
		if s.Process == nil {
			fmt.Fprintf(w, "%s: to continue: %s\n", s.Label, v.advised("serve", commandWord(sanitize.Escape(s.Path))))
		}
	}
	if len(s.Languages) > 0 {
		fmt.Fprintf(w, "%s: languages: %s\n", s.Label, terminal.Counts(s.Languages))
	}
	if len(s.LeftOut) > 0 {
		fmt.Fprintf(w, "%s: left out: %s\n", s.Label, terminal.Counts(s.LeftOut))
	}
	if len(s.InPart) > 0 {
		fmt.Fprintf(w, "%s: indexed, but %s\n", s.Label, terminal.Counts(s.InPart))
	}
	by := "no process watches it"
	if p := s.Process; p != nil {
		by = fmt.Sprintf("process %d on %s watches it", p.PID, sanitize.Escape(p.Host))
	}
	if p := s.Indexing; p != nil {
		by += fmt.Sprintf(" and has indexed %d of %s", p.Done, terminal.Plural(p.Total, "document"))
	} else if s.Process != nil && s.Incomplete != nil {
		by += " and tries again"
	}
	fmt.Fprintf(w, "%s: %s\n", s.Label, by)
}

// A vectorStatus is how many passages have a vector, of how many.
type vectorStatus struct {
	Done    int   `json:"done"`
	Total   int   `json:"total"`
	Seconds int64 `json:"secondsLeft,omitempty"` // an estimate, while vectors are being computed
}

// text describes the state.
func (n vectorStatus) text() string {
	text := fmt.Sprintf("%d of %s", n.Done, terminal.Plural(n.Total, "passage"))
	if n.Seconds > 0 {
		text += ", about " + terminal.Duration(time.Duration(n.Seconds)*time.Second) + " left"
	}
	return text
}

// vectorsOf returns the vectors of an index, or nil if it has none.
func vectorsOf(s index.Stats) *vectorStatus {
	if s.Vectors == 0 {
		return nil
	}
	return &vectorStatus{s.Vectors, s.Chunks, int64(s.VectorTime.Seconds())}
}

// printLeftOut prints a line for each file and folder that is left out: label,
// path and reason.
func (v *invocation) printLeftOut(sources []datafolder.SourceStatus) error {
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	for _, s := range sources {
		for _, p := range s.LeftOutPaths {
			reason := p.Reason
			if p.Message != "" {
				reason += ": " + sanitize.Escape(p.Message)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Label, sanitize.Escape(p.Path), reason)
		}
		if more := sum(s.LeftOut) + sum(s.InPart) - len(s.LeftOutPaths); more > 0 {
			fmt.Fprintf(w, "%s\tand %d more\t\n", s.Label, more)
		}
	}
	return w.Flush()
}

// rulesNote describes rules in parentheses, as flags. It returns "" for no
// rules.
func rulesNote(r document.Rules) string {
	var notes []string
	for _, p := range r.Include {
		notes = append(notes, "--include "+sanitize.Escape(p))
	}
	for _, p := range r.Exclude {
		notes = append(notes, "--exclude "+sanitize.Escape(p))
	}
	if r.NoIgnore {
		notes = append(notes, "--no-ignore")
	}
	if r.Every != 0 {
		notes = append(notes, "--every "+r.Every.String())
	}
	if r.MaxPages != 0 {
		notes = append(notes, fmt.Sprintf("--max-pages %d", r.MaxPages))
	}
	if len(notes) == 0 {
		return ""
	}
	return "  (" + strings.Join(notes, " ") + ")"
}
