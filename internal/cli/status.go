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

	"knowhow/internal/compact"
	"knowhow/internal/datafolder"
	"knowhow/internal/document"
	"knowhow/internal/index"
	"knowhow/internal/indexing"
	"knowhow/internal/ingest"
	"knowhow/internal/sanitize"
	"knowhow/internal/search"
	"knowhow/internal/terminal"
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

// A sourceStatus is what is indexed of a source.
type sourceStatus struct {
	Label       string         `json:"label"`
	Path        string         `json:"path"`
	Description string         `json:"description,omitempty"`
	Include     []string       `json:"include,omitempty"`
	Exclude     []string       `json:"exclude,omitempty"`
	NoIgnore    bool           `json:"noIgnore,omitempty"`
	Documents   int            `json:"documents"`
	TextBytes   int64          `json:"textBytes"`
	Languages   map[string]int `json:"languages,omitempty"` // documents by ISO 639-1 code, or "unknown"
	Process     *process       `json:"process,omitempty"`   // that indexes and watches the source
	Indexing    *progress      `json:"indexing,omitempty"`  // while documents are being indexed

	// Incomplete is what is missing, if indexing has stopped before it was complete.
	Incomplete *incompleteStatus `json:"incomplete,omitempty"`

	LeftOut      map[string]int `json:"leftOut"`
	InPart       map[string]int `json:"inPart,omitempty"` // files that are indexed except for a part
	LeftOutPaths []leftOutPath  `json:"leftOutPaths,omitempty"`
}

// An incompleteStatus is a source whose indexing has stopped before it was complete.
type incompleteStatus search.Unfinished

// MarshalJSON implements [json.Marshaler].
func (u incompleteStatus) MarshalJSON() ([]byte, error) {
	return compact.Marshal(struct {
		Done    int         `json:"done"`
		Total   int         `json:"total"` // 0 if the documents were not counted
		Reason  search.Stop `json:"reason"`
		Message string      `json:"message,omitempty"`
	}{u.Done, u.Total, u.Stop, u.Message})
}

// A process is one that indexes a source.
type process = indexing.Process

// A progress is how far indexing has come, in documents.
type progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// A leftOutPath is a file or a folder that is not indexed.
type leftOutPath struct {
	Path    string `json:"path"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// sum returns the sum of counts.
func sum(counts map[string]int) int {
	n := 0
	for _, k := range counts {
		n += k
	}
	return n
}

// documents describes the number of documents.
func (s sourceStatus) documents() string {
	if i := s.Incomplete; i != nil && i.Total > s.Documents {
		return fmt.Sprintf("%d of %s", s.Documents, terminal.Plural(i.Total, "document"))
	}
	return terminal.Plural(s.Documents, "document")
}

// leftOut describes the number of files and folders that are left out.
func (s sourceStatus) leftOut() string {
	text := fmt.Sprintf("%d left out", sum(s.LeftOut))
	if n := sum(s.InPart); n > 0 {
		text += fmt.Sprintf(", %d in part", n)
	}
	return text
}

func (o *statusCommand) run(ctx context.Context, v *invocation) error {
	var sources []sourceStatus
	var stats index.Stats
	var stored *storeStatus
	if o.Store != "" {
		var err error
		if stored, err = v.storeStatus(ctx, &o.storeFlags); err != nil {
			return err
		}
	}
	x, dir, err := v.openExisting(ctx, o.Data, datafolder.Model{})
	if err != nil {
		return err
	}
	if x != nil {
		sources, stats, err = sourceStatuses(ctx, x, o, stored)
		if err := errors.Join(err, x.Close()); err != nil {
			return err
		}
	}
	for _, label := range o.Labels {
		if !slices.ContainsFunc(sources, func(s sourceStatus) bool { return s.Label == label }) {
			return v.unknownLabel(label)
		}
	}
	switch {
	case o.JSON:
		text, err := compact.Marshal(struct {
			Data      string         `json:"data"`
			Documents int            `json:"documents"`
			TextBytes int64          `json:"textBytes"`
			FileBytes int64          `json:"fileBytes"` // of the index on disk
			Segments  int            `json:"segments"`
			Vectors   *vectorStatus  `json:"vectors,omitempty"`
			Store     *storeStatus   `json:"store,omitempty"`
			Sources   []sourceStatus `json:"sources"`
		}{dir, stats.Documents, stats.TextBytes, stats.FileBytes, stats.Segments, vectorsOf(stats), stored, append([]sourceStatus{}, sources...)})
		if err == nil {
			_, err = fmt.Fprintf(v.stdout, "%s\n", sanitize.ShowJSON(text))
		}
		return err
	case len(sources) == 0 && stored == nil:
		return v.noSources()
	case o.LeftOut:
		return v.printLeftOut(sources)
	}
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	for _, s := range sources {
		fmt.Fprintf(w, "%s\t%s\t%s of text\t%s\t%s%s\n", s.Label, s.documents(), byteSize(s.TextBytes),
			s.leftOut(), sanitize.Escape(s.Path), rulesNote(document.Rules{Include: s.Include, Exclude: s.Exclude, NoIgnore: s.NoIgnore}))
	}
	fmt.Fprintf(w, "index\t%s\t%s on disk\t%s\t%s\n", terminal.Plural(stats.Documents, "document"), byteSize(stats.FileBytes),
		terminal.Plural(stats.Segments, "segment"), sanitize.Escape(dir))
	if stored != nil {
		stored.print(w)
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
func (v *invocation) printDetails(w io.Writer, s sourceStatus) {
	fmt.Fprintln(w)
	if i := s.Incomplete; i != nil {
		fmt.Fprintf(w, "%s: %s\n", s.Label, incomplete(search.Unfinished(*i)))
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

// sourceStatuses returns what is indexed of the sources that o selects. Their
// documents are in a store unless stored is nil.
func sourceStatuses(ctx context.Context, x *index.Index, o *statusCommand, stored *storeStatus) ([]sourceStatus, index.Stats, error) {
	stats, err := x.Stats(ctx)
	if err != nil {
		return nil, stats, err
	}
	known, err := x.Sources(ctx)
	if err != nil {
		return nil, stats, err
	}
	processes, err := indexing.Processes(ctx, x)
	if err != nil {
		return nil, stats, err
	}
	byLabel := stats.ByLabel
	if stored != nil {
		byLabel = stored.byLabel
	}
	unfinished, err := x.Unfinished(ctx, nil)
	if err != nil {
		return nil, stats, err
	}
	var sources []sourceStatus
	for _, src := range known {
		if len(o.Labels) > 0 && !slices.Contains(o.Labels, src.Label) {
			continue
		}
		left, err := x.LeftOut(ctx, src.Label)
		if err != nil {
			return nil, stats, err
		}
		s := sourceStatus{
			Label: src.Label, Path: src.Path, Description: src.Description,
			Include: src.Rules.Include, Exclude: src.Rules.Exclude, NoIgnore: src.Rules.NoIgnore,
			Documents: byLabel[src.Label].Documents, TextBytes: byLabel[src.Label].TextBytes,
			Languages: byLabel[src.Label].Languages,
		}
		s.LeftOut, s.InPart = ingest.SplitInPart(left.Counts)
		if n := s.Languages[""]; n > 0 {
			delete(s.Languages, "")
			s.Languages["unknown"] = n
		}
		if p, ok := processes[src.Label]; ok {
			s.Process = &p
		}
		if done, total, busy := x.Indexing(ctx, []string{src.Label}); busy {
			s.Indexing = &progress{done, total}
		}
		for _, u := range unfinished {
			if u.Label == src.Label {
				u.Done = max(u.Done, min(s.Documents, u.Total))
				s.Incomplete = (*incompleteStatus)(&u)
			}
		}
		if o.LeftOut {
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
