package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// settleTime is the minimum age of a file's modification time at which a later
// change certainly gets another one: the coarsest clock of a common file system
// (FAT) ticks every two seconds.
const settleTime = 2 * time.Second

// settled reports whether a file with this stamp was unchanged for some time.
// Times in the future count as settled, because they do not show when the file
// was written.
func settled(s document.Stamp, at time.Time) bool { return at.Sub(s.ModTime).Abs() >= settleTime }

// Time limits for one file; see also [Options.FileTimeout].
const (
	readTime  = time.Minute            // to read its bytes, for example from a network folder
	abandonIn = 200 * time.Millisecond // for stopping after the time limit or a cancellation
)

// A leftOut is the error for a file that is left out by a rule of this package.
type leftOut struct {
	reason Reason
	text   string
}

// Error states the problem and what to do.
func (e *leftOut) Error() string { return e.text }

var errNoText = &leftOut{NoText, "it contains no text of a known format: convert it, or name another file"}

var errPartly = &leftOut{Partly, "its text is indexed only in part, because the rest of the file is damaged or " +
	"cannot be read: save or download it again"}

// illegible returns the error for a document that lacks the text of some pages.
func illegible(pages int) error {
	what := "a page"
	if pages > 1 {
		what = fmt.Sprintf("%d pages", pages)
	}
	return &leftOut{Illegible, "its text is indexed only in part, because the fonts of " + what +
		" do not define their characters: store a copy with recognized text (OCR)"}
}

var errGenerated = &leftOut{Generated, "it is generated or minified: name it as a source of its own to index it"}

var errPointer = &leftOut{Pointer, "its content is stored in Git LFS: run git lfs pull in the folder"}

var errCloud = &leftOut{Unreadable, "its content is in the cloud and not on this machine: download it, for example by " +
	"opening it, or let the program of the cloud keep the folder on this machine"}

// isPointer reports whether data is a pointer to a file in Git LFS
// (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
func isPointer(data []byte) bool {
	return len(data) < 1024 && bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/"))
}

var errEmpty = &leftOut{Empty, "it is empty: it is indexed when it has text"}

func tooSlow(limit time.Duration) error {
	return &leftOut{TooSlow, fmt.Sprintf("extracting or indexing its text takes longer than %g s; "+
		"it is read again when it changes: split it, or convert it to another format", limit.Seconds())}
}

func crashed(deaths int) error {
	return &leftOut{Crashed, fmt.Sprintf("knowhow ended %d times while it extracted its text; "+
		"it is read again when it changes: repair it, or convert it to another format", deaths)}
}

// reasonOf returns the reason why a file with this error is left out.
func reasonOf(err error) Reason {
	if e, ok := errors.AsType[*leftOut](err); ok {
		return e.reason
	}
	switch {
	case errors.Is(err, errkind.TooLarge):
		return TooComplex
	case errors.Is(err, extract.ErrLocked):
		return Locked
	case errors.Is(err, errkind.Corrupt):
		return Damaged
	case errors.Is(err, errkind.Unsupported):
		return NoText
	}
	return Unreadable
}

// expected returns the error of extracting the text of a file, or errNoText if
// users do not expect that the file has a text.
func expected(err error, path string) error {
	if errors.Is(err, errkind.Unsupported) && !errors.Is(err, extract.ErrLocked) && !extract.IsDocument(path) {
		return errNoText
	}
	return err
}

// A reading is the result of reading one file.
type reading struct {
	docs    []*document.Document // nil if err is set, otherwise not empty
	left    []Skipped            // parts that are left out
	stamp   document.Stamp       // of the file when it was opened
	settled bool                 // docs are certain to be the state of the file with this stamp
	err     error                // see reasonOf; ctx's error if ctx is done
}

// read reads a file into documents. It returns soon after ctx is done.
func (s *syncing) read(ctx context.Context, t tree, k task) reading {
	g, r := s.g, reading{stamp: k.stamp}
	if k.stamp.Size > g.o.MaxFileSize {
		r.err = g.tooLarge()
		return r
	}
	start := time.Now()
	c, err := within(ctx, readTime, func(ctx context.Context) (contents, error) {
		c, err := g.readFile(ctx, t, k.entry)
		// Only texts have a charset, and they have no zero bytes unless it is UTF-16.
		if err == nil && bytes.IndexByte(c.data[:min(len(c.data), 512)], 0) < 0 && !utf8.Valid(c.data) {
			c.lang = s.near.lang(ctx, t, k.path)
		}
		return c, err
	})
	if c.stamp != (document.Stamp{}) {
		r.stamp = c.stamp
	}
	if r.err = err; err != nil {
		if timedOut(ctx, err) {
			r.err = fmt.Errorf("reading takes longer than %g s: check the disk or the network that it is on",
				readTime.Seconds())
		}
		return r
	}
	if s.file == "" && isGenerated(k.name, c.data) {
		r.err = errGenerated
		return r
	}
	end := g.o.Journal.Begin(s.ref(k), r.stamp)
	m, err := within(ctx, g.o.FileTimeout, func(ctx context.Context) (m reading, err error) {
		in := extract.Input{Name: k.path, Lang: c.lang, Data: c.data}
		if !k.alone {
			in.MaxUnpacked = maxUnpacked
		}
		m.docs, m.left, err = g.makeDocs(ctx, in, document.Document{
			Label: s.src.Label, Path: k.path, SourcePath: k.path, FromSource: true,
			URL:      s.url(k),
			Modified: r.stamp.ModTime.UTC(),
		})
		if err == nil && len(m.docs) == 0 {
			err = errEmpty
		}
		return m, expected(err, k.path)
	})
	r.docs, r.left, r.err = m.docs, m.left, err
	switch {
	case ctx.Err() != nil:
		end(k.past)
	case timedOut(ctx, r.err):
		r.err = tooSlow(g.o.FileTimeout)
		end(Past{Slow: g.o.FileTimeout})
	default:
		end(Past{})
	}
	r.settled = c.settled && settled(r.stamp, start)
	if r.settled && len(r.docs) > 0 {
		// The last one, which is applied last: if the process ends before, the
		// file is read again.
		r.docs[len(r.docs)-1].Stamp = r.stamp
	}
	return r
}

// url returns the URL of a file.
func (s *syncing) url(k task) string {
	if s.g.o.Map != nil {
		return k.url
	}
	return fileURL(filepath.Join(s.base, filepath.FromSlash(k.name)))
}

// timedOut reports whether err is from a time limit for one file, and not from
// ctx.
func timedOut(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// within calls f with a context that ends after limit, and returns the result.
// If f does not return soon after its context is done, because it ignores the
// context or because a system call blocks, within returns the context's error,
// and f continues in the background.
//
// A panic of f becomes an error: the decoders process foreign bytes, and a
// defect in one of them must affect one file, not the program.
func within[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("extracting its text: defect in the program: %v", p)
			}
			done <- r
		}()
		r.value, r.err = f(ctx)
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(abandonIn):
		var zero T
		return zero, ctx.Err()
	}
}

// A content is the content of a file.
type contents struct {
	data    []byte
	stamp   document.Stamp // set also with an error, if it is known
	settled bool           // the file did not change while it was being read
	lang    string         // of its neighbours, if the file is not UTF-8
}

// readFile reads a whole file.
func (g *Ingester) readFile(ctx context.Context, t tree, e entry) (c contents, err error) {
	f, err := t.Open(e.open)
	if err != nil {
		return c, fmt.Errorf("opening: %w", cause(err))
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return c, fmt.Errorf("reading: %w", cause(err))
	}
	if !before.Mode().IsRegular() {
		return c, errNoText
	}
	c.stamp = stampOf(before)
	if before.Size() > g.o.MaxFileSize {
		return c, g.tooLarge()
	}
	c.data = make([]byte, 512, max(before.Size()+1, 512))
	n, err := io.ReadFull(f, c.data)
	c.data = c.data[:n]
	if err == nil {
		if e.path == documentPath(e.name) && !extract.Supported(e.path, c.data) && !extract.IsDocument(e.path) {
			return c, errNoText
		}
		c.data, err = readAll(ctx, f, c.data, g.o.MaxFileSize)
	} else if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	if err != nil {
		return c, fmt.Errorf("reading: %w", cause(err))
	}
	if int64(len(c.data)) > g.o.MaxFileSize {
		return c, g.tooLarge()
	}
	if isPointer(c.data) {
		return c, errPointer
	}
	after, err := f.Stat()
	c.settled = err == nil && stampOf(after).Equal(c.stamp)
	return c, nil
}

// readAll appends the rest of a file to data, up to limit+1 bytes in total.
func readAll(ctx context.Context, f io.Reader, data []byte, limit int64) ([]byte, error) {
	for int64(len(data)) <= limit {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
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
	limit := sizeText(g.o.MaxFileSize)
	return &leftOut{TooLarge, fmt.Sprintf("larger than the limit of %s for a file: split it", limit)}
}

// sizeText returns a limit for people: in MiB or KiB if it is a multiple of that.
func sizeText(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
