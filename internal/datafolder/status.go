package datafolder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// A Status describes the contents of a data folder.
type Status struct {
	Stats   index.Stats
	Store   *StoreStatus // nil without a store
	Sources []SourceStatus
}

// A StoreStatus is the state of a store.
type StoreStatus struct {
	Health    string `json:"health"` // green, yellow or red
	Documents int    `json:"documents"`
	Passages  int    `json:"passages"`
	TextBytes int64  `json:"textBytes"`
	DiskBytes int64  `json:"diskBytes"` // on all nodes
	Meaning   bool   `json:"meaning"`   // whether the cluster can search by meaning
}

// A SourceStatus describes how far a source is indexed.
type SourceStatus struct {
	Label       string            `json:"label"`
	Path        string            `json:"path"`
	Description string            `json:"description,omitempty"`
	Include     []string          `json:"include,omitempty"`
	Exclude     []string          `json:"exclude,omitempty"`
	NoIgnore    bool              `json:"noIgnore,omitempty"`
	Documents   int               `json:"documents"`
	TextBytes   int64             `json:"textBytes"`
	Languages   map[string]int    `json:"languages,omitempty"` // documents by ISO 639-1 code, or "unknown"
	Process     *indexing.Process `json:"process,omitempty"`   // that indexes and watches the source
	Indexing    *Progress         `json:"indexing,omitempty"`  // while documents are being indexed

	// Incomplete is what is missing, if indexing has stopped before it was complete.
	Incomplete *Incomplete `json:"incomplete,omitempty"`

	Looked       time.Time      `json:"-"` // when it was last read completely; the zero time if that is not known
	Errors       int            `json:"-"` // paths that are left out and should be indexed, of at most 5,000 that are known
	LeftOut      map[string]int `json:"leftOut"`
	InPart       map[string]int `json:"inPart,omitempty"` // files that are indexed except for a part
	LeftOutPaths []LeftOutPath  `json:"leftOutPaths,omitempty"`
}

// A Progress is how far indexing has come, in documents.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// A LeftOutPath is a file or a folder that is not indexed.
type LeftOutPath struct {
	Path    string `json:"path"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// An Incomplete is a source whose indexing has stopped before it was complete.
type Incomplete search.Unfinished

// MarshalJSON implements [json.Marshaler].
func (i Incomplete) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Done    int         `json:"done"`
		Total   int         `json:"total"` // 0 if the documents were not counted
		Reason  search.Stop `json:"reason"`
		Message string      `json:"message,omitempty"`
	}{i.Done, i.Total, i.Stop, i.Message})
}

// Text describes what is missing and why: "109 of 433 documents are indexed, then
// indexing was interrupted".
func (i Incomplete) Text() string {
	what := fmt.Sprintf("%d of %s are indexed, then ", i.Done, terminal.Plural(i.Total, "document"))
	switch {
	case i.Stop == search.NotBegun:
		return "indexing has not begun"
	case i.Total == 0 && i.Earlier:
		what = "it is not known what has changed, because "
	case i.Total == 0:
		what = "the documents have not been counted, because "
	}
	switch i.Stop {
	case search.Interrupted:
		return what + "indexing was interrupted"
	case search.DiskFull:
		return what + "the disk was full: free some space on it"
	}
	if i.Message == "" {
		return what + "indexing failed"
	}
	return what + "indexing failed: " + sanitize.Line(i.Message)
}

// State returns Text with a word for the state before it.
func (i Incomplete) State() string {
	if i.Total == 0 && i.Earlier {
		return "not up to date: " + i.Text()
	}
	return "incomplete: " + i.Text()
}

// Status returns what is indexed of the sources with some labels; nil means all
// sources. Without an index it has no sources. leftOut lists the paths that are left
// out.
func (f *Folder) Status(ctx context.Context, labels []string, leftOut bool) (*Status, error) {
	status := &Status{}
	byLabel := map[string]index.LabelStats{}
	if f.Store != nil {
		health, err := f.Store.Health(ctx)
		if err != nil {
			return nil, f.Explain(err)
		}
		stats, err := f.Store.Stats(ctx)
		if err != nil {
			return nil, f.Explain(err)
		}
		status.Store = &StoreStatus{
			Health: health.Status, Documents: stats.Documents, Passages: stats.Chunks,
			TextBytes: stats.TextBytes, DiskBytes: stats.DiskBytes, Meaning: f.Store.HasVectors(),
		}
		for label, l := range stats.ByLabel {
			byLabel[label] = index.LabelStats(l)
		}
	}
	if f.Index == nil {
		return status, nil
	}
	var err error
	if status.Stats, err = f.Index.Stats(ctx); err != nil {
		return nil, err
	}
	if f.Store == nil {
		byLabel = status.Stats.ByLabel
	}
	known, err := f.Index.Sources(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := indexing.Processes(ctx, f.Index)
	if err != nil {
		return nil, err
	}
	unfinished, err := f.Index.Unfinished(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, src := range known {
		if labels != nil && !slices.Contains(labels, src.Label) {
			continue
		}
		left, err := f.Index.LeftOut(ctx, src.Label)
		if err != nil {
			return nil, err
		}
		s := SourceStatus{
			Label: src.Label, Path: src.Path, Description: src.Description,
			Include: src.Rules.Include, Exclude: src.Rules.Exclude, NoIgnore: src.Rules.NoIgnore,
			Documents: byLabel[src.Label].Documents, TextBytes: byLabel[src.Label].TextBytes,
			Languages: byLabel[src.Label].Languages, Looked: left.Time,
		}
		s.LeftOut, s.InPart = ingest.SplitInPart(left.Counts)
		if n := s.Languages[""]; n > 0 {
			delete(s.Languages, "")
			s.Languages["unknown"] = n
		}
		if p, ok := processes[src.Label]; ok {
			s.Process = &p
		}
		if done, total, busy := f.Index.Indexing(ctx, []string{src.Label}); busy {
			s.Indexing = &Progress{done, total}
		}
		for _, u := range unfinished {
			if u.Label == src.Label {
				u.Done = max(u.Done, min(s.Documents, u.Total))
				s.Incomplete = (*Incomplete)(&u)
			}
		}
		for _, p := range left.Paths {
			if p.Message != "" {
				s.Errors++
			}
			if leftOut {
				s.LeftOutPaths = append(s.LeftOutPaths, LeftOutPath(p))
			}
		}
		status.Sources = append(status.Sources, s)
	}
	return status, nil
}
