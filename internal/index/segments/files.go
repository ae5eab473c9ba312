package segments

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/edsrzf/mmap-go"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A spoolFile is a segment.Spool on disk. It writes through a buffer.
type spoolFile struct {
	*bufio.Writer
	file *os.File
}

func (s spoolFile) WriteTo(w io.Writer) (int64, error) {
	if err := s.Flush(); err != nil {
		return 0, err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, struct{ io.Reader }{s.file})
}

// A failedSpool is a segment.Spool that could not be made.
type failedSpool struct{ err error }

func (s failedSpool) Write([]byte) (int, error)        { return 0, s.err }
func (s failedSpool) WriteTo(io.Writer) (int64, error) { return 0, s.err }

// Sizes of what is written to files, in bytes.
const (
	fileBuffer  = 1 << 18
	spoolBuffer = 1 << 16
	forgetEvery = 8 << 20 // that are written
)

// createTemporary creates a file in the folder of segments. If this process dies,
// Sweep removes it.
func (s *Store) createTemporary(kind string) (*os.File, error) {
	if err := database.CheckFolder(s.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of segments: %w", err)
	}
	name := strings.ToLower(rand.Text()[:16]) + "." + kind + ".tmp"
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("writing a segment: %w", err)
	}
	return f, nil
}

// A forgetting is a writer. While it is written to, the mapped files that are
// read meanwhile do not stay in the memory of this process.
type forgetting struct {
	io.Writer
	mapped []mmap.MMap
	left   *int // bytes until they are forgotten
}

func (f forgetting) Write(p []byte) (int, error) {
	if *f.left -= len(p); *f.left <= 0 {
		*f.left = forgetEvery
		for _, m := range f.mapped {
			forget(m)
		}
	}
	return f.Writer.Write(p)
}

// writeFile calls write with a new file in the folder of segments, and
// returns the name and the size of the file after it is on disk. write may get
// Spools on disk. mapped are files that it reads.
func (s *Store) writeFile(
	mapped []mmap.MMap, write func(w io.Writer, spool func() segment.Spool) error,
) (name string, size int64, err error) {
	out, err := s.createTemporary("new")
	if err != nil {
		return "", 0, err
	}
	files := []*os.File{out}
	defer func() {
		for _, f := range files {
			f.Close() // closed already unless there was an error
			if f.Name() != s.path(name) {
				os.Remove(f.Name())
			}
		}
	}()
	left := forgetEvery
	spool := func() segment.Spool {
		f, err := s.createTemporary("spool")
		if err != nil {
			return failedSpool{err}
		}
		files = append(files, f)
		return spoolFile{bufio.NewWriterSize(forgetting{f, mapped, &left}, spoolBuffer), f}
	}
	buffered := bufio.NewWriterSize(forgetting{out, mapped, &left}, fileBuffer)
	if err := write(buffered, spool); err != nil {
		return "", 0, err
	}
	if err := errors.Join(buffered.Flush(), out.Sync()); err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	info, err := out.Stat()
	if err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	if err := out.Close(); err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	final := strings.TrimSuffix(filepath.Base(out.Name()), ".new.tmp") + segmentSuffix
	if err := os.Rename(out.Name(), s.path(final)); err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	syncDir(s.dir)
	return final, info.Size(), nil
}

// syncDir makes the names in a folder durable, where the system can do that.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync() // not supported on Windows, where names are durable anyway
		d.Close()
	}
}

// Sweep removes files of segments that are not needed any more.
func (s *Store) Sweep(ctx context.Context) {
	if err := s.removeUnused(ctx); err != nil && ctx.Err() == nil {
		s.o.Log.Debug("unused files of segments were not removed", "error", err)
	}
}

// unusedAge is the least age of a file that no row names and that is removed.
const unusedAge = 10 * time.Minute

// removeUnused removes files of segments that no row names: those that were
// merged, and those of a process that died.
func (s *Store) removeUnused(ctx context.Context) error {
	if err := database.CheckFolder(s.dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing merged segments: %w", err)
	}
	var named map[string]bool
	err = s.o.DB.Read(ctx, "listing segments", func(tx *sql.Tx) (err error) {
		named, err = database.Map[string, bool](ctx, tx, `SELECT file, 1 FROM segments WHERE file<>''`)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || named[e.Name()] || !info.Mode().IsRegular() || time.Since(info.ModTime()).Abs() < unusedAge {
			continue
		}
		if ext := filepath.Ext(e.Name()); ext != segmentSuffix && ext != ".tmp" {
			continue
		}
		if err := os.Remove(s.path(e.Name())); err != nil {
			s.o.Log.Debug("removing a merged segment", "error", err) // on Windows, another process may have it open
		}
	}
	return nil
}
