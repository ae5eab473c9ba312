package segments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/edsrzf/mmap-go"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A Segment is an open segment of a [View].
type Segment struct {
	*segment.Segment
	Label string // of its documents
	Memo         // of what was derived from the segment

	row    row       // removed is that of the time of opening
	mapped mmap.MMap // nil for a segment in memory
	refs   int       // it is closed when nothing refers to it

	unverified bool // the background should compare its checksums

	checking sync.Mutex
	info     fs.FileInfo // of the mapped file, when its checksums were compared or it was opened
}

// verify compares the checksums of the segment; see [segment.Segment.Verify].
func (g *Segment) verify() error {
	return g.VerifyPieces(func() { forget(g.mapped) })
}

// Numbers returns the numbers of the documents of the segment, by their places.
func (g *Segment) Numbers() ([]int64, error) {
	return Remember(&g.Memo, "numbers", func() ([]int64, error) {
		numbers := make([]int64, 0, g.Docs())
		err := g.Rows(func(_ int, number int64) { numbers = append(numbers, number) })
		return numbers, err
	})
}

// languages returns English and the other languages whose stems the segment has.
func (g *Segment) languages() ([]analysis.Language, error) {
	return Remember(&g.Memo, "languages", func() ([]analysis.Language, error) {
		out := []analysis.Language{analysis.English}
		for _, l := range analysis.Stemmed() {
			has, err := g.HasPrefix(l.Prefix())
			if err != nil {
				return nil, err
			}
			if has {
				out = append(out, l)
			}
		}
		return out, nil
	})
}

// acquire returns the segment of a row and adds a reference to it. *left is how
// many bytes of segments may still be verified at once, and is decremented. If the
// segment is damaged, the error is a *damaged.
func (s *Store) acquire(ctx context.Context, q database.Querier, r row, left *int) (*Segment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leftOut[r.id] {
		return nil, &damaged{row: r, err: errLeftOut}
	}
	if g := s.open[r.id]; g != nil {
		g.refs++
		return g, nil
	}
	g := &Segment{Label: r.label, row: r, refs: 1}
	data, err := s.data(ctx, q, r, g)
	if err != nil {
		return nil, err
	}
	g.Segment, err = segment.Open(data)
	switch {
	case err != nil:
	case g.Docs() != r.docs:
		err = &segment.Damage{Reason: fmt.Sprintf("it has %d documents instead of %d", g.Docs(), r.docs)}
	case len(data) <= *left:
		*left -= len(data)
		err = g.verify()
	default:
		g.unverified = true
		signal(s.verifySoon)
	}
	if err != nil {
		if g.mapped != nil {
			err = errors.Join(err, g.mapped.Unmap())
		}
		return nil, &damaged{row: r, err: err}
	}
	s.open[r.id] = g
	return g, nil
}

// use calls f with the segment of a row and the set of its deleted documents.
func (s *Store) use(
	ctx context.Context, q database.Querier, r row, f func(g *Segment, deleted segment.Bits) error,
) error {
	left := s.o.VerifiedSize
	g, err := s.acquire(ctx, q, r, &left)
	if err != nil {
		return err
	}
	defer s.release(g)
	deleted, err := deletions(ctx, q, r)
	if err != nil {
		return err
	}
	return f(g, deleted)
}

// release removes a reference to a segment.
func (s *Store) release(g *Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(g)
}

func (s *Store) releaseLocked(g *Segment) {
	if g.refs--; g.refs > 0 {
		return
	}
	delete(s.open, g.row.id)
	if g.mapped != nil {
		if err := g.mapped.Unmap(); err != nil {
			s.o.Log.Debug("closing a search segment", "error", err)
		}
	}
}

// data returns the bytes of a segment.
func (s *Store) data(ctx context.Context, q database.Querier, r row, g *Segment) ([]byte, error) {
	if r.file == "" {
		var body []byte
		err := q.QueryRowContext(ctx, bodyQuery, r.id).Scan(&body)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, damagef(r, "its row of segment_bodies is missing")
		}
		return body, err
	}
	// Opening a named pipe would wait for another program. The second look,
	// at the open file, is for a file that was replaced meanwhile.
	path := s.path(r.file)
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, damagef(r, "%s is %s and not a file", r.file, database.FileKind(info.Mode()))
	}
	var f *os.File
	if err == nil {
		if f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			defer f.Close()
			info, err = f.Stat()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &damaged{row: r, err: errGone}
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s cannot be read: allow it or choose another data folder: %w", path, errkind.Denied)
	case err != nil:
		return nil, fmt.Errorf("opening a search segment: %w", err)
	case !info.Mode().IsRegular():
		return nil, damagef(r, "%s is %s and not a file", r.file, database.FileKind(info.Mode()))
	case info.Size() != r.size:
		return nil, damagef(r, "it has %d bytes instead of %d", info.Size(), r.size)
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil { // for example on a network drive
		data := make([]byte, r.size)
		if _, err := io.ReadFull(f, data); err != nil {
			return nil, damagef(r, "it cannot be read: %v", err)
		}
		return data, nil
	}
	g.mapped, g.info = m, info
	return m, nil
}

func (s *Store) path(file string) string { return filepath.Join(s.dir, file) }

// maxMemo is how many values a Memo keeps.
const maxMemo = 64

// A Memo keeps values that were derived from something that does not change. The
// zero Memo is empty. It is safe for concurrent use.
type Memo struct {
	mu     sync.Mutex
	values map[string]any
}

// Remember returns the value of a key that a Memo keeps, or else the one that make
// returns. It must not be changed.
func Remember[T any](m *Memo, key string, make func() (T, error)) (T, error) {
	m.mu.Lock()
	v, ok := m.values[key]
	m.mu.Unlock()
	if ok {
		return v.(T), nil
	}
	made, err := make()
	if err != nil {
		return made, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil || len(m.values) >= maxMemo {
		m.values = map[string]any{}
	}
	m.values[key] = made
	return made, nil
}
