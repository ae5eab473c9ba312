package logfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// ours matches the names of finished logs of this package: debug logs and
// renamed ones. server.log is not among them, because it is in use.
var ours = regexp.MustCompile(`^(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?_server|server-\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?)\.log$`)

// startCleaner deletes old files now and once a day, until the log is closed.
func (l *Log) startCleaner(o Options) {
	ctx, cancel := context.WithCancel(context.Background())
	l.cleaner = cancel
	l.clean(o)
	l.done.Go(func() {
		daily := time.NewTicker(cleanInterval)
		defer daily.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-daily.C:
				l.clean(o)
			}
		}
	})
}

// clean deletes the finished logs in the folder whose last change is more than
// o.RetainDays days ago, except this process's own file.
func (l *Log) clean(o Options) {
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		l.Warn("looking for old logs", "error", err)
		return
	}
	oldest := time.Now().AddDate(0, 0, -o.RetainDays)
	for _, e := range entries {
		if !ours.MatchString(e.Name()) || !e.Type().IsRegular() || e.Name() == filepath.Base(l.path) {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(oldest) {
			continue
		}
		if err := os.Remove(filepath.Join(o.Dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.Warn("deleting an old log", "file", e.Name(), "error", err)
		}
	}
}
