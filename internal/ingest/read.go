package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/extract"
)

// settleTime is how old a file's modification time must be for us to believe
// that a later change gets another one: the coarsest clock of a common file
// system (FAT) ticks every two seconds.
const settleTime = 2 * time.Second

// settled reports whether a file with this stamp rested at a time. Files from
// the future rest: their time says nothing about when they were written.
func settled(s document.Stamp, at time.Time) bool { return at.Sub(s.ModTime).Abs() >= settleTime }

// errNoText means that a file holds no text.
var errNoText = errors.New("no text")

// A reading is what came of reading one file.
type reading struct {
	doc     *document.Document // nil if err is set
	stamp   document.Stamp     // of the file when it was opened
	settled bool               // doc can be trusted to be the file's state under its stamp
	err     error              // errNoText, of kind TooLarge, or from the file system
}

// read makes a document of a file.
func (g *Ingester) read(ctx context.Context, t tree, src document.Source, base string, e entry) (r reading) {
	defer func() {
		// The decoders work on foreign bytes; a defect in one of them must
		// cost us one file, not the program.
		if p := recover(); p != nil {
			r = reading{stamp: e.stamp, err: fmt.Errorf("extracting its text: defect in the program: %v", p)}
		}
	}()
	r.stamp = e.stamp
	if e.stamp.Size > g.o.MaxFileSize {
		r.err = g.tooLarge()
		return r
	}
	start := time.Now()
	data, err := g.readFile(t, e, &r)
	if err != nil {
		r.err = err
		return r
	}
	r.doc, err = Make(ctx, data, document.Document{
		Label: src.Label, Path: e.path, SourcePath: e.path, FromSource: true,
		URL:      fileURL(filepath.Join(base, filepath.FromSlash(e.name))),
		Modified: r.stamp.ModTime.UTC(),
	})
	switch {
	case errors.Is(err, errkind.Unsupported) && !strings.EqualFold(path.Ext(e.path), ".pdf"):
		// A PDF without text is named: people expect to find it.
		r.err = errNoText
		return r
	case err != nil:
		r.err = err
		return r
	}
	if r.settled = r.settled && settled(r.stamp, start); r.settled {
		r.doc.Stamp = r.stamp
	}
	return r
}

// readFile reads a file whole and notes its stamp.
func (g *Ingester) readFile(t tree, e entry, r *reading) ([]byte, error) {
	f, err := t.Open(e.open)
	if err != nil {
		return nil, fmt.Errorf("opening: %w", cause(err))
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading: %w", cause(err))
	}
	if !before.Mode().IsRegular() {
		return nil, errNoText
	}
	r.stamp = stampOf(before)
	if before.Size() > g.o.MaxFileSize {
		return nil, g.tooLarge()
	}
	data := make([]byte, 512, max(before.Size()+1, 512))
	n, err := io.ReadFull(f, data)
	data = data[:n]
	if err == nil {
		if !extract.Supported(e.path, data) {
			return nil, errNoText
		}
		data, err = readAll(f, data, g.o.MaxFileSize)
	} else if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading: %w", cause(err))
	}
	if int64(len(data)) > g.o.MaxFileSize {
		return nil, g.tooLarge()
	}
	after, err := f.Stat()
	r.settled = err == nil && stampOf(after).Equal(r.stamp)
	return data, nil
}

// readAll appends the rest of a file to data, one byte more than limit at most.
func readAll(f io.Reader, data []byte, limit int64) ([]byte, error) {
	for int64(len(data)) <= limit {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(int64(cap(data)), limit+1)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

func (g *Ingester) tooLarge() error {
	return fmt.Errorf("larger than the limit of %d bytes for a file: %w", g.o.MaxFileSize, errkind.TooLarge)
}
