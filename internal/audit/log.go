package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/logfile"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// The maximum numbers of characters of what callers choose. More is replaced by "…".
const (
	maxQuery = 2000
	maxName  = 200  // user, client, tool, label
	maxPath  = 1000 // path, ID of a document
)

const (
	timeLayout      = "2006-01-02T15:04:05.000Z"
	defaultMaxBytes = 100 << 20
)

// Options configure a Log.
type Options struct {
	Path string // its folder must exist

	// MaxBytes is the size at which the file is renamed and a new one is begun; 0
	// means 100 MiB. A new file is also begun each day. No file is ever deleted.
	MaxBytes int64

	// Logger receives a line when calls can no longer be recorded, and when they can
	// again; nil discards them.
	Logger *slog.Logger
}

// A Log writes calls to a file, one JSON object on each line. The nil Log records
// nothing. The methods are safe for concurrent use.
type Log struct {
	path string
	file *logfile.File
	log  *slog.Logger

	mu     sync.Mutex
	failed error // of the last Write or Check
}

// Open opens or creates the file. A file that others can read keeps its permissions; a
// new one is for its owner only. The error is of kind Invalid if the folder does not exist
// or the path is not that of a file, and of kind Conflict if another process writes the
// file. The caller must close the Log.
func Open(o Options) (*Log, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit file: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link must not be renamed instead of the file
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("opening the audit file: there is no folder %s: create it: %w", filepath.Dir(path),
			errkind.Invalid)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("opening the audit file: %s is not a file: %w", path, errkind.Invalid)
	}
	if !isAudit(path) {
		return nil, fmt.Errorf("opening the audit file: %s exists and is no audit file: choose another file: %w", path,
			errkind.Invalid)
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	file, err := logfile.OpenFile(logfile.FileOptions{Path: path, MaxBytes: o.MaxBytes, Exclusive: true})
	switch {
	case errors.Is(err, errkind.Conflict):
		return nil, fmt.Errorf("opening the audit file: another process writes %s: choose another file: %w", path,
			errkind.Conflict)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("opening the audit file: %w: %w", err, errkind.Denied)
	case err != nil:
		return nil, fmt.Errorf("opening the audit file: %w: %w", err, errkind.Unavailable)
	}
	l := &Log{path: path, file: file, log: o.Logger}
	_ = l.result(file.Check()) // Check returns it until the file can be written
	return l, nil
}

// isAudit reports whether a file is an audit file, empty or absent, by its beginning.
func isAudit(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true // it is opened again
	}
	defer f.Close()
	const begin = `{"time":"`
	data, err := io.ReadAll(io.LimitReader(f, int64(len(begin))))
	return err != nil || strings.HasPrefix(begin, string(data)) || len(bytes.TrimSpace(data)) == 0
}

// Write writes a line for a call that has been answered. If that fails, the file contains
// no part of the line, the error is Unavailable and says what to do, and the answer must
// not be sent. The next Write tries again.
func (l *Log) Write(c *Call) error {
	if l == nil || c == nil {
		return nil
	}
	_, err := l.file.Write(c.line())
	return l.result(err)
}

// Check returns an error if the last Write failed, or there was none, and the next would
// fail. It should be called before a call that changes something.
func (l *Log) Check() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	failed := l.failed != nil
	l.mu.Unlock()
	if !failed {
		return nil
	}
	return l.result(l.file.Check())
}

// result returns what the result of an operation on the file means to a caller. It logs
// when calls begin to fail, and when they end to.
func (l *Log) result(err error) error {
	l.mu.Lock()
	before := l.failed
	l.failed = err
	l.mu.Unlock()
	switch {
	case err == nil && before != nil:
		l.log.Info("calls are recorded again", "file", l.path)
	case err != nil && before == nil:
		l.log.Error("calls are refused, because they cannot be recorded", "file", l.path, "error", err)
	}
	if err == nil {
		return nil
	}
	if errors.Is(errkind.Disk("", err), errkind.DiskFull) {
		return fmt.Errorf("the call cannot be recorded, because the disk of the audit file is full: "+
			"free space on it and try again: %w", errkind.DiskFull)
	}
	return fmt.Errorf("the call cannot be recorded, because the audit file cannot be written: "+
		"the log of the server says why: %w", errkind.Unavailable)
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// line returns the line of a call: a JSON object and a line feed. Characters that cannot
// be seen are escaped.
func (c *Call) line() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := make([]byte, 0, 512)
	line = append(line, `{"time":"`...)
	line = c.Time.UTC().AppendFormat(line, timeLayout)
	line = append(line, '"')
	line = appendMember(line, "user", c.User, maxName)
	line = appendMember(line, "client", c.Client, maxName)
	line = appendMember(line, "session", c.Session, maxName)
	line = appendMember(line, "path", c.Path, maxPath)
	line = appendMember(line, "tool", c.Tool, maxName)
	if c.query != "" {
		line = appendMember(line, "query", c.query, maxQuery)
	}
	line = appendList(line, "labels", c.labels.list, maxName)
	if len(c.docs.list) > 0 {
		line = appendList(line, "docs", c.docs.list, maxPath)
	}
	line = append(line, `,"status":`...)
	line = strconv.AppendInt(line, int64(c.Status), 10)
	line = append(line, `,"ms":`...)
	line = strconv.AppendFloat(line, float64(c.Took.Microseconds())/1000, 'f', -1, 64)
	return append(line, '}', '\n')
}

// appendMember appends a member of a JSON object other than the first one, with at most n
// characters of text.
func appendMember(line []byte, name, text string, n int) []byte {
	line = append(line, ',', '"')
	line = append(line, name...)
	line = append(line, '"', ':')
	return appendText(line, text, n)
}

// appendList appends a member whose value is a list of texts.
func appendList(line []byte, name string, texts []string, n int) []byte {
	line = append(line, ',', '"')
	line = append(line, name...)
	line = append(line, '"', ':', '[')
	for i, text := range texts {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendText(line, text, n)
	}
	return append(line, ']')
}

// tokens matches tokens of users, as package access makes them, and of issuers (JWT).
// A caller may send one in place of what is searched for, for example.
var tokens = regexp.MustCompile(`\bkh_[\w-]{20,}|\beyJ[\w-]+\.[\w-]+(\.[\w-]*)?`)

// appendText appends at most n characters of a text as a JSON string, without tokens.
func appendText(line []byte, text string, n int) []byte {
	text = tokens.ReplaceAllString(cut(text, n), "***")
	if !plain(text) {
		return append(line, sanitize.QuoteJSON(text)...)
	}
	line = append(line, '"')
	line = append(line, text...)
	return append(line, '"')
}

// plain reports whether a text needs no escapes in JSON because it is visible ASCII.
func plain(text string) bool {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b >= 0x7f || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}

// cut returns the first n characters of a text, with "…" if there are more.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i, seen := 0, 0; i < len(text); seen++ {
		if seen == n {
			return text[:i] + "…"
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return text
}
