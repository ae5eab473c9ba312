// Package logfile writes a server's log into a folder, one line for each event.
// The file may be shared by several processes; a debug log has a separate file.
//
// [File] is such a file with lines of any kind, for other records of a server.
//
// In a log, secrets are masked: attributes whose key looks like that of a secret, and
// every occurrence of the registered secret values. Package cli opens a Log for
// each server that it runs.
package logfile

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// fileName is the name of the log file, except for debug logs.
const fileName = "server.log"

const (
	defaultMaxBytes = 16 << 20
	cleanInterval   = 24 * time.Hour
	stampLayout     = "2006-01-02_15-04-05"
)

// Options configure a Log.
type Options struct {
	// Dir is the folder. If it does not exist, it is created with permissions
	// for its owner only. With "", all lines are written to Fallback.
	Dir string

	// Debug writes all levels into a separate file for this process, named
	// 2026-11-21_23-59-01_server.log after its start. Each line, also one that is
	// written to Fallback, begins with the elapsed time as [HH:MM:SS].
	Debug bool

	// Level is the minimum level that is written; the zero Level is info.
	Level slog.Level

	// RetainDays is the number of days without a change after which files of
	// this package are deleted; with 0 they are kept. Other files in Dir are
	// never changed or deleted.
	RetainDays int

	// MaxBytes is the size at which server.log is renamed and a new file is
	// started; 0 means 16 MiB. A new file is also started each day.
	MaxBytes int64

	// Secrets are values that are masked wherever they occur in a line. Values
	// shorter than four bytes are ignored, because they would mask ordinary
	// text.
	Secrets []string

	// Hint tells the operator what to do if Dir cannot be written, for example
	// "choose another folder"; "" adds nothing.
	Hint string

	// Fallback receives the lines that are not written into Dir; nil discards
	// them.
	Fallback io.Writer
}

// A Log is an open log. It is safe for concurrent use.
type Log struct {
	*slog.Logger

	path    string // path of the file; "" if lines are written to the fallback
	file    *File  // nil if lines are written to the fallback
	cleaner context.CancelFunc
	done    sync.WaitGroup
}

// Open opens a log. It always succeeds: if the folder cannot be written, lines
// are written to o.Fallback, starting with a warning that contains the reason.
// The caller must close the Log.
func Open(o Options) *Log {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Fallback == nil {
		o.Fallback = io.Discard
	}
	start := time.Now()
	elapsed := time.Time{}
	if o.Debug {
		elapsed = start
	}
	l := &Log{cleaner: func() {}}
	if o.Dir == "" {
		l.Logger = slog.New(newHandler(o, o.Fallback, elapsed))
		return l
	}
	file, err := openIn(o, start)
	if err != nil {
		l.Logger = slog.New(newHandler(o, o.Fallback, elapsed))
		message := "writing the log here, because its folder cannot be written"
		if o.Hint != "" {
			message += "; " + o.Hint
		}
		l.Warn(message, "error", err)
		return l
	}
	l.file, l.path = file, file.path
	l.Logger = slog.New(newHandler(o, fallback{file, o.Fallback}, elapsed))
	if o.RetainDays > 0 {
		l.startCleaner(o)
	}
	return l
}

// openIn opens the file for o.
func openIn(o Options, start time.Time) (*File, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if o.Debug {
		path, err := createDebugFile(o.Dir, start)
		if err != nil {
			return nil, err
		}
		return OpenFile(FileOptions{Path: path})
	}
	return OpenFile(FileOptions{Path: filepath.Join(o.Dir, fileName), MaxBytes: o.MaxBytes})
}

// A fallback writes the lines that cannot be written to a file to another writer.
type fallback struct {
	file  *File
	other io.Writer
}

// Write writes one line.
func (f fallback) Write(line []byte) (int, error) {
	if _, err := f.file.Write(line); err != nil {
		return f.other.Write(line)
	}
	return len(line), nil
}

// createDebugFile creates an empty file named after start, and returns its
// path. If another process started in the same second, a number is added to the
// name.
func createDebugFile(dir string, start time.Time) (string, error) {
	const most = 1000
	for i := 1; ; i++ {
		name := start.Format(stampLayout) + "_server.log"
		if i > 1 {
			name = fmt.Sprintf("%s-%d_server.log", start.Format(stampLayout), i)
		}
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return path, f.Close()
		}
		if !os.IsExist(err) || i == most {
			return "", err
		}
	}
}

// Close stops the deletion of old files and closes the file. Later lines are
// written to the fallback.
func (l *Log) Close() error {
	l.cleaner()
	l.done.Wait()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// newHandler returns a handler that writes each record to w as one line in
// slog's text form. A zero start means no prefix of elapsed time.
func newHandler(o Options, w io.Writer, start time.Time) slog.Handler {
	level := o.Level
	if o.Debug {
		level = min(level, slog.LevelDebug)
	}
	return slog.NewTextHandler(newLineWriter(w, o.Secrets, start), &slog.HandlerOptions{
		Level:       level,
		ReplaceAttr: maskAttr,
	})
}

// maskAttr masks an attribute if its key, or that of a group around it, looks
// like that of a secret.
func maskAttr(groups []string, a slog.Attr) slog.Attr {
	if looksSecret(a.Key) {
		return slog.String(a.Key, masked)
	}
	for _, g := range groups {
		if looksSecret(g) {
			return slog.String(a.Key, masked)
		}
	}
	return a
}

// looksSecret reports whether a key looks like that of a secret.
func looksSecret(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"token", "password", "secret", "authorization", "cookie", "credential", "apikey",
		"api_key", "api-key", "accesskey", "privatekey"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return key == "key"
}
