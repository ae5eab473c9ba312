package ingest

import (
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// maxDeaths is the number of processes that may end while they read a file
// before it is left out.
const maxDeaths = 2

// A Journal records which files are being read, beyond the end of a process, so
// that a file that kills every process that reads it does so only [maxDeaths]
// times.
//
// One death proves little: the user may have killed the process, and several
// files are read concurrently. The files that were being read are suspects.
// They are read after all others, one at a time, while no other file is read.
// So only the cause of the first death can be charged with a second one, and
// the other suspects are cleared. A file is left out after two deaths, until
// its size or modification time changes. To ban a harmless file, a user would
// have to kill the process twice during the same file.
//
// The methods are safe for concurrent use. If a Journal cannot be written, it
// loses its records; that is not an error.
type Journal interface {
	// Past returns what happened when this state of a file was last read.
	Past(file document.Ref, stamp document.Stamp) Past

	// Begin records that the text of a file is being extracted. The caller must
	// call end once, with the result for later calls of Past.
	Begin(file document.Ref, stamp document.Stamp) (end func(Past))
}

// A Past is the harm that one state of a file caused when it was read. The zero
// Past is that of a harmless file.
type Past struct {
	Deaths int           // processes that ended while they extracted its text
	Slow   time.Duration // the time limit that the extraction exceeded; 0 if it did not
}

// noJournal is a Journal that records nothing.
type noJournal struct{}

func (noJournal) Past(document.Ref, document.Stamp) Past        { return Past{} }
func (noJournal) Begin(document.Ref, document.Stamp) func(Past) { return func(Past) {} }
