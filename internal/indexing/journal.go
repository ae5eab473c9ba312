package indexing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
)

// Limits of a journal.
const (
	journalFolder   = "reading" // in the data folder
	maxJournal      = 256 << 10 // bytes; beyond that, finished entries are dropped
	maxJournalRead  = 16 << 20  // bytes, because another program may have written the file
	maxJournalKnown = 10_000    // files with a past
)

const journalFailed = "cannot keep the journal of files that are read, by which a file that ends knowhow is recognized: " +
	"check that the data folder can be written"

// A journal is the [ingest.Journal] of one source: a file with a line for each
// event. The process that has the lease of the source opens it. An extraction
// that began and did not end was cut off by the end of a process.
//
// Lines are appended without syncing them to disk, because the end of a process
// does not damage written lines. After a crash of the machine, the file may
// lack lines or contain garbage. Invalid lines are ignored. In the worst case a
// suspect is forgotten, or a harmless file is read alone.
type journal struct {
	log *slog.Logger

	mu      sync.Mutex
	file    *os.File // nil if it cannot be written
	size    int64
	limit   int64             // size limit for compact
	past    map[string]record // files that caused harm, by path
	reading map[string]record // files whose text is being extracted
}

// A record is a line: the state of a file from then on.
type record struct {
	Path    string        `json:"path"`
	Size    int64         `json:"size"`
	ModTime time.Time     `json:"modified"`
	Reading bool          `json:"reading,omitempty"` // its text is being extracted
	Deaths  int           `json:"deaths,omitempty"`
	Slow    time.Duration `json:"slow,omitempty"`
}

func (r record) stamp() document.Stamp { return document.Stamp{Size: r.Size, ModTime: r.ModTime} }

// openJournal opens the journal of a source in a data folder. The caller must
// have the lease of the source. If the file cannot be read or written, the
// journal exists only in memory.
func openJournal(dir, label string, log *slog.Logger) *journal {
	j := &journal{log: log, past: map[string]record{}, reading: map[string]record{}}
	// A label may not be a valid file name.
	sum := sha256.Sum256([]byte(label))
	path := filepath.Join(dir, journalFolder, hex.EncodeToString(sum[:8])+".jsonl")
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if info, statErr := os.Stat(path); statErr == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path) // reading from a named pipe would block for ever
	}
	if err == nil {
		j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(j.file, maxJournalRead))
	}
	if err != nil {
		log.Warn(journalFailed, "error", err)
	}
	j.load(data)
	j.compact()
	return j
}

// load reads the lines of a file.
func (j *journal) load(data []byte) {
	for line := range bytes.Lines(data) {
		var r record
		if json.Unmarshal(line, &r) != nil || r.Path == "" || r.Deaths < 0 || r.Slow < 0 {
			continue
		}
		if r.Reading {
			r.Deaths++ // unless a later line reports its end
		}
		j.remember(r)
	}
}

// remember stores the past of a file if there is one.
func (j *journal) remember(r record) {
	r.Reading = false
	if r.Deaths == 0 && r.Slow == 0 {
		delete(j.past, r.Path)
	} else if _, known := j.past[r.Path]; known || len(j.past) < maxJournalKnown {
		j.past[r.Path] = r
	}
}

// Past implements [ingest.Journal].
func (j *journal) Past(file document.Ref, stamp document.Stamp) ingest.Past {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.past[file.Path]
	if !r.stamp().Equal(stamp) {
		return ingest.Past{}
	}
	return ingest.Past{Deaths: r.Deaths, Slow: r.Slow}
}

// Begin implements [ingest.Journal].
func (j *journal) Begin(file document.Ref, stamp document.Stamp) (end func(ingest.Past)) {
	past := j.Past(file, stamp)
	j.mu.Lock()
	defer j.mu.Unlock()
	r := record{Path: file.Path, Size: stamp.Size, ModTime: stamp.ModTime, Reading: true, Deaths: past.Deaths,
		Slow: past.Slow}
	j.reading[r.Path] = r
	j.note(r)
	return func(p ingest.Past) {
		j.mu.Lock()
		defer j.mu.Unlock()
		r.Reading, r.Deaths, r.Slow = false, p.Deaths, p.Slow
		delete(j.reading, r.Path)
		j.remember(r)
		j.note(r)
	}
}

// note writes a line for a change. The caller must have locked mu.
func (j *journal) note(r record) {
	switch {
	case j.file == nil:
	case j.size >= j.limit:
		j.compact()
	default:
		j.write(r)
	}
}

// compact replaces the file by one line for each known file. A process that
// ends in the middle of it loses these lines. The caller must have locked mu,
// or be the only user.
func (j *journal) compact() {
	if j.file == nil {
		return
	}
	if err := j.file.Truncate(0); err != nil {
		j.fail(err)
		return
	}
	j.size = 0
	var all []record
	for _, r := range j.past {
		all = append(all, r)
	}
	for _, r := range j.reading {
		all = append(all, r)
	}
	j.write(all...)
	j.limit = max(maxJournal, 2*j.size)
}

// write appends lines in one call, so that they are not split.
func (j *journal) write(records ...record) {
	var lines []byte
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil { // a year that cannot be encoded in JSON
			continue
		}
		lines = append(append(lines, line...), '\n')
	}
	n, err := j.file.Write(lines)
	j.size += int64(n)
	if err != nil {
		j.fail(err)
	}
}

// fail gives up the file.
func (j *journal) fail(err error) {
	j.log.Warn(journalFailed, "error", err)
	j.file.Close()
	j.file = nil
}

// close closes the file.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		j.file.Close() // errors of written data are not reported again
		j.file = nil
	}
}
