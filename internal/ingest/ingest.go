// Package ingest adds documents to an index. It walks a source, reads the files
// that have changed, extracts their text, cuts it into chunks and passes the
// documents to a [Sink] in small batches.
//
// A file is one document, except that each message of a mailbox is one, and each
// file in an archive. Such documents have paths below that of the file, and are
// replaced and removed with it.
//
// Sources are folders and single files. The embedded index is the Sink of
// `knowhow serve`; a dataset under construction can be another.
//
// In a folder, regular files that contain text are read. The following are left
// out: files and folders whose name begins with a dot; what .gitignore and
// .ignore files exclude; folders of packages that others wrote, such as
// node_modules; lock files; generated and minified files; backup files; empty
// files; binary files; and everything that is not a regular file (pipes, devices and sockets are never
// opened). [document.Rules] add to these rules. None of them applies to a source
// that is a file.
//
// A link to a file inside the folder is followed if the file is not read under
// another name. Links to folders are not followed, nor are links that lead
// nowhere or in a circle. A link out of the folder is not followed either, so
// that a user who may write to the folder cannot publish a file outside of it.
package ingest

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// Defaults of [Options], and fixed limits.
const (
	defaultMaxFileSize = 64 << 20
	defaultFileTimeout = 10 * time.Second
	defaultBatchBytes  = 2 << 20

	maxBatchChunks = 1000        // keeps a transaction of the index under 50 ms
	maxBatchTime   = time.Second // between two transactions, if there are changes to apply
	maxPreparing   = 2           // batches whose words are gathered at once, in all sources: they take memory
	indexBytes     = 16 << 20    // bytes of text that add FileTimeout to the time limit for indexing a document
	maxInFlight    = 32 << 20    // bytes of files between reading and applying; a single file may be larger
	maxUnpacked    = 4 << 20     // bytes that a file unpacks to, in addition; others are read one at a time
	maxSkipped     = 100         // files named in a Result
	maxLeftParts   = 100         // parts of one file named in a Result
)

// A Sink stores the documents that an [Ingester] found.
type Sink interface {
	// Apply makes all changes or none.
	Apply(ctx context.Context, changes []document.Change) error

	// Stamps returns the stamps of the source's files when they were read, by
	// path. Documents with the label that do not come from files are not
	// included.
	Stamps(ctx context.Context, label string) (map[string]document.Stamp, error)

	// Generation returns a text that differs after each change of documents by
	// any process.
	Generation(ctx context.Context) (string, error)
}

// A Preparer is a [Sink] that can do a part of the work of Apply while it applies
// other changes.
type Preparer interface {
	// Prepare returns a function that makes changes, as Apply does. The function is
	// called at most once.
	Prepare(ctx context.Context, changes []document.Change) (apply func(context.Context) error, err error)
}

// Prepare calls Prepare of a Sink that is a [Preparer]. For another one, it returns
// a function that calls Apply.
func Prepare(ctx context.Context, s Sink, changes []document.Change) (apply func(context.Context) error, err error) {
	if p, ok := s.(Preparer); ok {
		return p.Prepare(ctx, changes)
	}
	return func(ctx context.Context) error { return s.Apply(ctx, changes) }, nil
}

// Options configure an [Ingester].
type Options struct {
	Sink        Sink
	MaxFileSize int64 // in bytes; 0 means defaultMaxFileSize. Larger files are skipped

	// FileTimeout is the time limit for extracting the text of a file, and for
	// gathering its words for each indexBytes begun; 0 means defaultFileTimeout. Slower
	// files are skipped.
	FileTimeout time.Duration

	Pool       *Pool          // shared with other Ingesters; nil means a new one
	BatchBytes int            // bytes of text in one call of Apply; 0 means defaultBatchBytes
	Journal    Journal        // nil means none
	Report     func(Progress) // called with the progress of a Sync, from its goroutine; nil means none
	Log        *slog.Logger   // nil means none

	// Make turns the bytes of a file into documents, usually one, and none if it is
	// empty; nil means MakeAll. It must be safe for concurrent use.
	// It also returns the parts of the file that are left out, see [SkippedPart].
	Make func(ctx context.Context, in extract.Input, known document.Document) ([]*document.Document, []Skipped, error)

	// Root is the folder with the files of the sources, if that is not their path, and
	// Map returns the path and the URL of the document in a file by its name in Root;
	// ok is false if the file is not part of the source. Ignore files above Root have no
	// effect. "" and nil mean the path of the source, and the file's own path and URL.
	Root string
	Map  func(name string) (path, url string, ok bool)

	// Missing is what Root lacks of the sources, such as submodules; it is added to
	// what is left out.
	Missing []LeftOut

	// LeftOut returns what the last Sync of a source left out, also one of an
	// earlier process: what is left out of a file is only determined when the file
	// is read. nil means that this is not known.
	LeftOut func(ctx context.Context, label string) ([]Skipped, error)
}

// Progress is the progress of a [Ingester.Sync]. It counts the files that have
// to be read, and those of them that are in the index or skipped.
type Progress struct {
	Label             string
	Done, Total       int
	Bytes, TotalBytes int64
	Unchanged         int    // files that do not have to be read
	Path              string // of the last file done; "" at the start
}

// A Result is the result of a [Ingester.Sync].
type Result struct {
	Added, Changed, Removed, Unchanged int

	// LeftOut counts what is not indexed, by reason, including skipped files. A
	// folder that is left out counts as one. The parts of a file that are left out
	// count too, although the file is indexed.
	LeftOut map[Reason]int

	// LeftOutPaths names what LeftOut counts, in order, at most 5,000 of it, and at
	// most 100 parts of one file.
	LeftOutPaths []LeftOut

	// Skipped names files and folders that should be indexed and are not, in
	// order, at most 100 of them; SkippedTotal is their number. Documents of an
	// unreadable file or folder are kept. Documents of others are removed.
	Skipped      []Skipped
	SkippedTotal int

	Bytes int64 // of the files read
}

// A Reason is the reason why a file or folder is not indexed. Its text follows
// a count, as in "12 too large".
type Reason string

// Reasons.
const (
	NoText     Reason = "without text" // such as images
	Unreadable Reason = "unreadable"
	Damaged    Reason = "damaged"
	Partly     Reason = "damaged in part" // the rest is indexed
	Illegible  Reason = "legible in part" // the rest is indexed
	Locked     Reason = "with a password"
	TooLarge   Reason = "too large"
	TooComplex Reason = "too complex" // takes more work or memory than is permitted
	TooSlow    Reason = "too slow"
	Crashed    Reason = "after a crash" // see Journal

	Hidden      Reason = "hidden"
	Ignored     Reason = "excluded by ignore files"
	Excluded    Reason = "excluded by patterns"
	NotIncluded Reason = "not matched by the patterns to include"
	ThirdParty  Reason = "with installed packages"     // such as node_modules
	LockFile    Reason = "written by package managers" // such as go.sum
	Generated   Reason = "generated or minified"
	Backup      Reason = "backup"
	Empty       Reason = "empty"
	Link        Reason = "linked but not followed"
	Pointer     Reason = "stored in Git LFS"
	Submodule   Reason = "in a submodule"
)

// InPart reports whether files with this reason are indexed except for a part.
func (r Reason) InPart() bool { return strings.HasSuffix(string(r), "in part") }

// SplitInPart separates the counts of files that are indexed in part from those
// of what is left out.
func SplitInPart[R ~string](counts map[R]int) (leftOut, inPart map[R]int) {
	leftOut, inPart = map[R]int{}, map[R]int{}
	for r, n := range counts {
		if Reason(r).InPart() {
			inPart[r] = n
		} else {
			leftOut[r] = n
		}
	}
	return leftOut, inPart
}

// A Skipped is a file or a folder (with a slash at the end) that should be
// indexed and is not, or a part of a file that is left out.
type Skipped struct {
	Path   string
	Reason Reason

	// Err does not contain the path. It states what to do if the file has to change. It
	// is nil for parts that should not be indexed.
	Err error
}

// Message returns Err in words for a list of what is left out, which need not name
// the operation. It states what to do.
func (s Skipped) Message() string {
	if errors.Is(s.Err, fs.ErrPermission) {
		return "permission denied: change its permissions"
	}
	return strings.TrimPrefix(errkind.Message(s.Err), "extracting text: ")
}

func (r *Result) leaveOut(path string, reason Reason) {
	r.addLeftOut(map[Reason]int{reason: 1}, []LeftOut{{path, reason}})
}

func (r *Result) addLeftOut(counts map[Reason]int, paths []LeftOut) {
	if r.LeftOut == nil && len(counts) > 0 {
		r.LeftOut = map[Reason]int{}
	}
	for reason, n := range counts {
		r.LeftOut[reason] += n
	}
	r.LeftOutPaths = append(r.LeftOutPaths, paths[:min(len(paths), maxLeftOut-len(r.LeftOutPaths))]...)
}

// An Ingester adds the documents of sources to a Sink. Its methods are safe for
// concurrent use with different labels.
type Ingester struct {
	o        Options
	openTree func(path string) (tree, func() error, error)
	makeDocs func(context.Context, extract.Input, document.Document) ([]*document.Document, []Skipped, error) // Make of o
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
	if o.Make == nil {
		o.Make = MakeAll
	}
	return &Ingester{o: o, openTree: openTree, makeDocs: o.Make, seed: maphash.MakeSeed(),
		seen: map[string]memory{}, settled: map[string]settledState{}}
}
