package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"knowhow/internal/compact"
	"knowhow/internal/document"
	"knowhow/internal/index"
	"knowhow/internal/sanitize"
	"knowhow/internal/terminal"
)

const statusHelp = `Usage: {cmd} [FLAGS]

Shows what is indexed: for each remembered source the number of documents, the
size of their texts, and how many files and folders are left out, and how many
passages can be found by meaning.

{flags}

Examples:
  {cmd}
  {cmd} --left-out --label docs
  {cmd} --json
`

// statusOptions are the flags of status.
type statusOptions struct {
	data          string
	labels        []string
	leftOut, json bool
}

// statusCommand shows what is indexed.
func statusCommand(v *invocation, f *flagSet) func(context.Context) error {
	o := &statusOptions{}
	dataFlag(f, &o.data)
	f.List(&o.labels, flag{Name: "label", Value: "NAME", Help: "show only the source with this label"})
	f.Bool(&o.leftOut, flag{Name: "left-out", Help: "list the files and folders that are left out, with the reasons"})
	f.Bool(&o.json, flag{Name: "json", Help: "print JSON"})
	return func(ctx context.Context) error { return v.runStatus(ctx, o) }
}

// A sourceStatus is what is indexed of a source.
type sourceStatus struct {
	Label        string         `json:"label"`
	Path         string         `json:"path"`
	Description  string         `json:"description,omitempty"`
	Include      []string       `json:"include,omitempty"`
	Exclude      []string       `json:"exclude,omitempty"`
	NoIgnore     bool           `json:"noIgnore,omitempty"`
	Documents    int            `json:"documents"`
	TextBytes    int64          `json:"textBytes"`
	LeftOut      map[string]int `json:"leftOut"`
	LeftOutPaths []leftOutPath  `json:"leftOutPaths,omitempty"`
}

// A leftOutPath is a file or a folder that is not indexed.
type leftOutPath struct {
	Path    string `json:"path"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// total returns the number of files and folders that are left out.
func (s sourceStatus) total() int {
	n := 0
	for _, k := range s.LeftOut {
		n += k
	}
	return n
}

// runStatus shows what is indexed.
func (v *invocation) runStatus(ctx context.Context, o *statusOptions) error {
	dir, err := dataFolder(v.Env, o.data)
	if err != nil {
		return err
	}
	var sources []sourceStatus
	var stats index.Stats
	if fileExists(filepath.Join(dir, index.FileName)) {
		x, err := index.Open(ctx, index.Options{Dir: dir})
		if err != nil {
			return err
		}
		sources, stats, err = sourceStatuses(ctx, x, o)
		if err := errors.Join(err, x.Close()); err != nil {
			return err
		}
	}
	for _, label := range o.labels {
		if !slices.ContainsFunc(sources, func(s sourceStatus) bool { return s.Label == label }) {
			return unknownLabel(label)
		}
	}
	switch {
	case o.json:
		text, err := compact.Marshal(struct {
			Data      string         `json:"data"`
			Documents int            `json:"documents"`
			FileBytes int64          `json:"fileBytes"`
			Vectors   *vectorStatus  `json:"vectors,omitempty"`
			Sources   []sourceStatus `json:"sources"`
		}{dir, stats.Documents, stats.FileBytes, vectorsOf(stats), append([]sourceStatus{}, sources...)})
		if err == nil {
			_, err = fmt.Fprintf(v.stdout, "%s\n", text)
		}
		return err
	case len(sources) == 0:
		return v.noSources()
	case o.leftOut:
		return v.printLeftOut(sources)
	}
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	for _, s := range sources {
		fmt.Fprintf(w, "%s\t%s\t%s of text\t%d left out\t%s%s\n", s.Label, terminal.Plural(s.Documents, "document"), byteSize(s.TextBytes),
			s.total(), sanitize.Escape(s.Path), rulesNote(document.Rules{Include: s.Include, Exclude: s.Exclude, NoIgnore: s.NoIgnore}))
	}
	fmt.Fprintf(w, "index\t%s\t%s\t\t%s\n", terminal.Plural(stats.Documents, "document"), byteSize(stats.FileBytes), sanitize.Escape(dir))
	if n := vectorsOf(stats); n != nil {
		fmt.Fprintf(w, "vectors\t%d of %s\n", n.Done, terminal.Plural(n.Total, "passage"))
	}
	return w.Flush()
}

// A vectorStatus is how many passages have a vector, of how many.
type vectorStatus struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// vectorsOf returns the vectors of an index, or nil if it has none.
func vectorsOf(s index.Stats) *vectorStatus {
	if s.Vectors == 0 {
		return nil
	}
	return &vectorStatus{s.Vectors, s.Chunks}
}

// sourceStatuses returns what is indexed of the sources that o selects.
func sourceStatuses(ctx context.Context, x *index.Index, o *statusOptions) ([]sourceStatus, index.Stats, error) {
	stats, err := x.Stats(ctx)
	if err != nil {
		return nil, stats, err
	}
	known, err := x.Sources(ctx)
	if err != nil {
		return nil, stats, err
	}
	var sources []sourceStatus
	for _, src := range known {
		if len(o.labels) > 0 && !slices.Contains(o.labels, src.Label) {
			continue
		}
		left, err := x.LeftOut(ctx, src.Label)
		if err != nil {
			return nil, stats, err
		}
		s := sourceStatus{
			Label: src.Label, Path: src.Path, Description: src.Description,
			Include: src.Rules.Include, Exclude: src.Rules.Exclude, NoIgnore: src.Rules.NoIgnore,
			Documents: stats.ByLabel[src.Label].Documents, TextBytes: stats.ByLabel[src.Label].TextBytes,
			LeftOut: left.Counts,
		}
		if s.LeftOut == nil {
			s.LeftOut = map[string]int{}
		}
		if o.leftOut {
			for _, p := range left.Paths {
				s.LeftOutPaths = append(s.LeftOutPaths, leftOutPath(p))
			}
		}
		sources = append(sources, s)
	}
	return sources, stats, nil
}

// printLeftOut prints a line for each file and folder that is left out: label,
// path and reason.
func (v *invocation) printLeftOut(sources []sourceStatus) error {
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	for _, s := range sources {
		for _, p := range s.LeftOutPaths {
			reason := p.Reason
			if p.Message != "" {
				reason += ": " + sanitize.Escape(p.Message)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Label, sanitize.Escape(p.Path), reason)
		}
		if more := s.total() - len(s.LeftOutPaths); more > 0 {
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
	if len(notes) == 0 {
		return ""
	}
	return "  (" + strings.Join(notes, " ") + ")"
}

// byteSize returns a number of bytes for people, such as "3.1 MB".
func byteSize(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, units := float64(n)/unit, "kMGT"
	for f >= unit && len(units) > 1 {
		f, units = f/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %cB", f, units[0])
}
