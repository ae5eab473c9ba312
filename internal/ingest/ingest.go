// Package ingest is the only way of documents into an index: it walks a
// source, reads what has changed, extracts the text, cuts it into chunks and
// hands the result to a [Sink] in small batches.
//
// Sources are folders and single files. The embedded index is the Sink of
// `knowhow serve`; a dataset under construction can be another.
//
// What is read of a folder: regular files that hold text. Left out are files
// and folders whose name begins with a dot, the folders node_modules,
// bower_components and __pycache__, binary files, and everything that is not
// a regular file (pipes, devices, sockets are never opened). Links to folders
// are not followed. A link to a file inside the folder counts if the file has
// no other name that is read; one that leads out of the folder is not followed,
// so that nobody who may write to the folder can publish a file outside of it.
package ingest

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"knowhow/internal/document"
)

// Defaults of [Options], and bounds that are not for users to set.
const (
	defaultMaxFileSize = 64 << 20
	defaultFileTimeout = 10 * time.Second
	defaultBatchBytes  = 1 << 20

	maxBatchChunks = 200         // keeps a transaction of the index under 50 ms
	maxBatchTime   = time.Second // between two transactions, if there is something to apply
	maxInFlight    = 64 << 20    // bytes of files between reading and applying; one file may be larger
	maxSkipped     = 100         // files named in a Result
)

// A Sink takes in what an [Ingester] found.
type Sink interface {
	// Apply makes all changes or none.
	Apply(ctx context.Context, changes []document.Change) error

	// Stamps returns what the files of the source with a label looked like
	// when they were read, by path. Other documents with the label are not
	// among them.
	Stamps(ctx context.Context, label string) (map[string]document.Stamp, error)

	// Generation returns a text that differs after each change of documents,
	// whoever made it.
	Generation(ctx context.Context) (string, error)
}

// Options configure an [Ingester].
type Options struct {
	Sink        Sink
	MaxFileSize int64          // in bytes; 0 means defaultMaxFileSize. Larger files are skipped
	FileTimeout time.Duration  // to extract the text of a file; 0 means defaultFileTimeout. Slower files are skipped
	Pool        *Pool          // shared with other Ingesters; nil means one for GOMAXPROCS files at once
	BatchBytes  int            // text in one call of Apply; 0 means defaultBatchBytes
	Journal     Journal        // nil means none
	Report      func(Progress) // called with the progress of a Sync, from its goroutine; nil means none
	Log         *slog.Logger   // nil means none
}

// Progress says how far a [Ingester.Sync] has come. It counts the files that
// have to be read, and those of them that are in the index or skipped.
type Progress struct {
	Label             string
	Done, Total       int
	Bytes, TotalBytes int64
	Unchanged         int    // files that need not be read
	Path              string // of the last file done; "" at the start
}

// A Result says what a [Ingester.Sync] did.
type Result struct {
	Added, Changed, Removed, Unchanged int

	// LeftOut counts what is not indexed, by reason. It includes what is
	// skipped.
	LeftOut map[Reason]int

	// Skipped names files and folders that should be indexed and are not, in
	// order, at most 100 of them; SkippedTotal counts all. What was indexed of
	// an unreadable one before stays. What was indexed of others is removed.
	Skipped      []Skipped
	SkippedTotal int

	Bytes int64 // of the files read
}

// A Reason is why a file or folder is not indexed, in words that follow a count,
// as in "12 too large".
type Reason string

// The reasons.
const (
	NoText     Reason = "without text" // such as images
	Unreadable Reason = "unreadable"
	TooLarge   Reason = "too large"
	TooComplex Reason = "too complex" // takes more work or memory than is allowed
	TooSlow    Reason = "too slow"
	Crashed    Reason = "after a crash" // see Journal
)

// A Skipped is a file or a folder (then with a slash at its end) that should be
// indexed and is not.
type Skipped struct {
	Path   string
	Reason Reason
	Err    error // names no path; says what to do where the file has to change
}

func (r *Result) leaveOut(reason Reason) {
	if r.LeftOut == nil {
		r.LeftOut = map[Reason]int{}
	}
	r.LeftOut[reason]++
}

// An Ingester brings sources into a Sink. Its methods are safe for concurrent
// use as long as no two of them work on one label.
type Ingester struct {
	o        Options
	openTree func(path string) (tree, func() error, error)
	makeDoc  func(ctx context.Context, data []byte, known document.Document) (*document.Document, error) // Make
	seed     maphash.Seed

	mu      sync.Mutex
	seen    map[string]memory       // by label
	settled map[string]settledState // by label
}

// New returns an Ingester. Only o.Sink is required.
func New(o Options) *Ingester {
	if o.MaxFileSize <= 0 {
		o.MaxFileSize = defaultMaxFileSize
	}
	if o.FileTimeout <= 0 {
		o.FileTimeout = defaultFileTimeout
	}
	if o.Pool == nil {
		o.Pool = NewPool(0)
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = defaultBatchBytes
	}
	if o.Journal == nil {
		o.Journal = noJournal{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Ingester{o: o, openTree: openTree, makeDoc: Make, seed: maphash.MakeSeed(),
		seen: map[string]memory{}, settled: map[string]settledState{}}
}
