// Package logfile writes a server's log into a folder: one line an event, in
// a file that several processes may share, or in a file of its own for
// debugging.
//
// Secrets do not reach the log: attributes whose key looks like a secret's are
// masked, and so is every occurrence of the secret values that the owner
// registers. Package cli opens a Log for each server that it runs.
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

// fileName is the file that logs go to, unless they are for debugging.
const fileName = "server.log"

const (
	defaultMaxBytes = 16 << 20
	cleanInterval   = 24 * time.Hour
	stampLayout     = "2006-01-02_15-04-05"
)

// Options say where logs go and for how long they are kept.
type Options struct {
	// Dir is the folder. It is created if need be, readable by its owner
	// only.
	Dir string

	// Debug writes into a file of this process's own, named
	// 2026-11-21_23-59-01_server.log after the time of its opening, each
	// line after the time elapsed since then, as [HH:MM:SS]. All levels
	// are written.
	Debug bool

	// Level is the least level that is written; the zero Level is info.
	Level slog.Level

	// RetainDays is after how many days without a change the files that
	// this package wrote are deleted; 0 keeps them. Other files in Dir are
	// never touched.
	RetainDays int

	// MaxBytes is the size at which server.log is renamed and begun anew;
	// 0 means 16 MiB. It is also begun anew on each day.
	MaxBytes int64

	// Secrets are values to mask wherever they occur in a line. Those
	// shorter than four bytes are not, because they would mask ordinary
	// text.
	Secrets []string

	// Hint says what the operator can do if Dir cannot be written, for example
	// "choose another folder"; "" says nothing.
	Hint string

	// Fallback gets the lines that cannot be written into Dir; nil discards
	// them.
	Fallback io.Writer
}

// A Log is an open log. It is safe for concurrent use.
type Log struct {
	*slog.Logger

	path    string      // of the file; "" if logs go to the fallback
	file    *appendFile // nil where logs go to the fallback
	cleaner context.CancelFunc
	done    sync.WaitGroup
}

// Open opens a log. It succeeds always: where the folder cannot be written, the
// log goes to o.Fallback, beginning with a warning that says why. The caller
// must close the Log.
func Open(o Options) *Log {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Fallback == nil {
		o.Fallback = io.Discard
	}
	start := time.Now()
	l := &Log{cleaner: func() {}}
	file, err := openIn(o, start)
	if err != nil {
		l.Logger = slog.New(newHandler(o, o.Fallback, time.Time{}))
		message := "writing the log here, because its folder cannot be written"
		if o.Hint != "" {
			message += "; " + o.Hint
		}
		l.Warn(message, "error", err)
		return l
	}
	l.file, l.path = file, file.path
	elapsed := time.Time{}
	if o.Debug {
		elapsed = start
	}
	l.Logger = slog.New(newHandler(o, file, elapsed))
	if o.RetainDays > 0 {
		l.startCleaner(o)
	}
	return l
}

// openIn opens the file that o asks for.
func openIn(o Options, start time.Time) (*appendFile, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if o.Debug {
		path, err := createDebugFile(o.Dir, start)
		if err != nil {
			return nil, err
		}
		return openAppend(path, 0, o.Fallback)
	}
	return openAppend(filepath.Join(o.Dir, fileName), o.MaxBytes, o.Fallback)
}

// createDebugFile creates an empty file named after start, with a number where
// another process began in the same second, and returns its path.
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

// Close stops the deleting of old files and closes the file. Lines logged
// afterwards go to the fallback.
func (l *Log) Close() error {
	l.cleaner()
	l.done.Wait()
	if l.file == nil {
		return nil
	}
	return l.file.close()
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

// maskAttr masks an attribute whose key, or a group around it, looks like a
// secret's.
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

// looksSecret reports whether a key is that of a value which must not be
// logged.
func looksSecret(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"token", "password", "secret", "authorization", "cookie", "credential", "apikey", "api_key", "api-key", "accesskey", "privatekey"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return key == "key"
}
