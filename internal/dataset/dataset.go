// Package dataset reads, checks, searches and writes vector datasets in the
// format of MCPower: folders with a manifest, a FAISS index and a metadata file
// that contains the text of each vector.
//
// A [Registry] holds the datasets of one folder and loads those that change. A
// search combines the ranks by words, which every dataset with texts allows,
// with the ranks by vectors. The vectors of a dataset are used only after a
// probe has shown which model made them.
//
// Everything in a dataset is foreign: sizes are bounded, and texts are cleaned
// before they leave the package.
package dataset

import (
	"fmt"
	"time"
)

// A State is where a dataset is in its life.
type State string

// The states. Every dataset ends in Invalid, Error or Ready, until its files
// change.
const (
	Unloaded   State = "unloaded"   // the manifest was found
	Validating State = "validating" // the manifest is being checked
	Invalid    State = "invalid"    // the manifest breaks a rule
	Loading    State = "loading"    // the index and the metadata are being read
	Error      State = "error"      // the index or the metadata is missing or damaged
	Ready      State = "ready"      // can be searched
)

// Failed reports whether a dataset in this state cannot be searched until its files
// change.
func (s State) Failed() bool { return s == Invalid || s == Error }

// An Info describes a dataset of a [Registry].
type Info struct {
	ID           string // of the manifest, or the name of the folder if the manifest has no valid one
	Name         string // "" if the manifest could not be read, like the next two
	Description  string
	DefaultTopK  int
	State        State
	Vectors      int    // 0 unless the dataset is ready
	Documents    int    // entries of the metadata; 0 unless the dataset is ready
	Model        string // that the metadata names; "" if it names none
	ManifestPath string // absolute
	License      string // that the manifest names, like the next one; "" if it names none
	Version      string
	Index        string // kind of the index, such as "flat"; "" if there are no vectors, like the next one
	Metric       string // by which the index compares vectors
	Dimensions   int    // of the vectors; 0 if there are none
	Bytes        int64  // of the manifest, the index and the metadata

	// Problems says what is wrong, in the order in which it was found. A dataset
	// that is ready has warnings at most. That about its model is there once it
	// was searched or checked.
	Problems []Finding
	FailedAt time.Time // when the dataset became Invalid or Error
}

// Failure returns the first problem that prevents the dataset from being
// searched, "" if there is none.
func (i Info) Failure() string {
	for _, f := range i.Problems {
		if f.Status == Failed {
			return f.String()
		}
	}
	return ""
}

// A Status is the result of checking a rule.
type Status string

// The statuses.
const (
	Passed  Status = "ok"
	Warning Status = "warning" // the dataset can be searched
	Failed  Status = "error"
)

// A Finding is the result of checking one rule of a dataset.
type Finding struct {
	Rule    string `json:"rule"` // a few words, such as "id" or "index file"
	Status  Status `json:"status"`
	Message string `json:"message,omitempty"` // what was found, and what to do about it
}

// String returns the rule and the message.
func (f Finding) String() string { return f.Rule + ": " + f.Message }

// findings collects the results of checks.
type findings []Finding

func (f *findings) pass(rule, format string, args ...any) { f.add(rule, Passed, format, args...) }
func (f *findings) warn(rule, format string, args ...any) { f.add(rule, Warning, format, args...) }
func (f *findings) fail(rule, format string, args ...any) { f.add(rule, Failed, format, args...) }

func (f *findings) add(rule string, s Status, format string, args ...any) {
	*f = append(*f, Finding{rule, s, fmt.Sprintf(format, args...)})
}

// failed reports whether a rule is broken.
func (f findings) failed() bool {
	for _, x := range f {
		if x.Status == Failed {
			return true
		}
	}
	return false
}

// problems returns the findings that are not Passed.
func (f findings) problems() []Finding {
	var out []Finding
	for _, x := range f {
		if x.Status != Passed {
			out = append(out, x)
		}
	}
	return out
}

// count returns a number of things, such as "1 vector" or "5 vectors".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
