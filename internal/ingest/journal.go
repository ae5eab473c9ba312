package ingest

import (
	"time"

	"knowhow/internal/document"
)

// maxDeaths is how many processes may end while they read a file before it is
// left out.
const maxDeaths = 2

// A Journal remembers beyond the end of a process which files it was reading,
// so that a file that kills every process that reads it does so only
// [maxDeaths] times.
//
// One death proves little: the user may have killed the process, and several
// files are read at once. The files that were being read then are suspects. They
// are read after all others, one at a time, while no other file is read. So the
// cause of the first death is the only file that a second one can be charged
// to, and files that were read beside it by chance are cleared. A file is left
// out after two deaths, until its size or modification time changes. A user who
// kills the process has to meet the same file twice to ban it.
//
// The methods are safe for concurrent use. A Journal that cannot be written
// forgets; that is no error.
type Journal interface {
	// Past returns what happened when this state of a file was read before.
	Past(file document.Ref, stamp document.Stamp) Past

	// Begin notes that the text of a file is being extracted. The caller
	// calls end, once, with what Past is to return from then on.
	Begin(file document.Ref, stamp document.Stamp) (end func(Past))
}

// A Past is the harm that one state of a file did when it was read. The zero
// Past is that of a harmless file.
type Past struct {
	Deaths int           // processes that ended while they extracted its text
	Slow   time.Duration // the limit that extraction of its text passed; 0 if it did not
}

// noJournal is a Journal that forgets.
type noJournal struct{}

func (noJournal) Past(document.Ref, document.Stamp) Past        { return Past{} }
func (noJournal) Begin(document.Ref, document.Stamp) func(Past) { return func(Past) {} }
