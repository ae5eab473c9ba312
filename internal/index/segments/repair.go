package segments

import (
	"context"
	"database/sql"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// Times of the work in the background.
const (
	sweepEvery = 15 * time.Minute // files of merged segments and of processes that died are looked for
	retryEvery = 20 * time.Second // what another process prevented, or what failed, is tried again
)

// run merges large segments, and builds damaged ones again, until ctx ends. retry
// and sweep are the times of trying again, and of looking for unused files.
func (s *Store) run(ctx context.Context, retry, sweep <-chan time.Time) {
	var mergeAgain, rebuildAgain bool
	var generation string // at the last retry
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.rebuildSoon:
			rebuildAgain = !s.rebuild(ctx, rebuildAgain)
		case <-s.mergeSoon:
			mergeAgain = !s.mergeAll(ctx, mergeable, mergeAgain)
			s.Sweep(ctx)
		case <-sweep:
			s.Sweep(ctx)
		case <-retry:
			if mergeAgain {
				signal(s.mergeSoon)
			}
			now, missing := s.look(ctx)
			if rebuildAgain || missing {
				rebuildAgain = !s.rebuild(ctx, rebuildAgain)
			}
			if now != "" && now == generation && !mergeAgain && !rebuildAgain {
				mergeAgain = !s.mergeAll(ctx, mergeableAtRest, true)
				now, _ = s.look(ctx)
			}
			generation = now
		}
	}
}

// look returns the generation, "" if it cannot be read. missing reports whether
// documents are to be indexed again: another process may have deleted their segments
// and ended, or their files are gone.
func (s *Store) look(ctx context.Context) (generation string, missing bool) {
	var rows []row
	err := s.o.DB.Read(ctx, "looking for missing segments", func(tx *sql.Tx) error {
		rebuild, err := database.Value(ctx, tx, keyRebuild)
		if err != nil {
			return err
		}
		missing = rebuild != ""
		if rows, err = rowsOf(ctx, tx, nil); err != nil {
			return err
		}
		generation, err = Generation(ctx, tx)
		return err
	})
	if err != nil {
		return "", false
	}
	for _, r := range rows {
		if s.checkListed(ctx, r) != nil { // this process may not have opened it, or still have it mapped
			s.leaveOut(&damaged{row: r, err: errGone})
			missing = true
		}
	}
	return generation, missing
}

// progressEvery is how often the progress of work in the background is reported.
const progressEvery = 300 * time.Millisecond

// rebuild builds missing segments and reports the progress. It reports whether it is
// done. again says that it failed the last time, which is not logged twice.
func (s *Store) rebuild(ctx context.Context, again bool) bool {
	var reported time.Time
	report := func(done, total int) {
		if time.Since(reported) >= progressEvery {
			reported = time.Now()
			s.o.Progress(ctx, done, max(total, done+1))
		}
	}
	report(0, 1)
	err := s.Maintain(ctx, report)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	s.o.Progress(limited, 0, 0)
	if err != nil && ctx.Err() == nil {
		s.o.Log.Log(ctx, levelOf(slog.LevelError, again), "damaged or outdated search segments "+
			"were not built again; this is tried again until it succeeds", "error", err)
	}
	return err == nil
}

// levelOf returns the level of a message, or Debug if it was logged before.
func levelOf(level slog.Level, again bool) slog.Level {
	if again {
		return slog.LevelDebug
	}
	return level
}

// Maintain builds the segments that are missing, from the stored documents: for
// another version of package analysis or of the format, and in place of damaged
// ones. It works in short transactions, so that searches and writes are possible
// meanwhile. If it is interrupted, the next call continues where it stopped. If
// progress is not nil and there is something to do, it is called with the number of
// documents that are done, from 0.
func (s *Store) Maintain(ctx context.Context, progress func(done, total int)) error {
	// One call is enough: a later one finds nothing to do.
	select {
	case s.maintaining <- struct{}{}:
		defer func() { <-s.maintaining }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	s.verify(ctx)
	return s.Retry(ctx, func() error { return s.maintain(ctx, progress) })
}

func (s *Store) maintain(ctx context.Context, progress func(done, total int)) error {
	missing, rebuild, err := s.missing(ctx)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return s.rebuilt(ctx, rebuild)
	}
	s.o.Log.Warn("the words of stored documents are indexed again, because the index is of an older version "+
		"or was damaged; "+
		"until this is done, searches may miss some", "documents", len(missing))
	progress(0, len(missing))
	for done := 0; done < len(missing); {
		n := 0
		err := s.Change(ctx, "rebuilding segments", nil, func(_ *database.Prepared, c *Change) (err error) {
			n, err = c.addAgain(ctx, missing[done:])
			return err
		})
		if err != nil {
			return err
		}
		done += n
		progress(done, len(missing))
	}
	if err := s.rebuilt(ctx, rebuild); err != nil {
		return err
	}
	s.o.Log.Warn("the words of all documents are indexed", "documents", len(missing))
	return nil
}

// A lost is a document that no current segment has.
type lost struct {
	number int64
	label  string
}

// missing returns the documents that no current segment has, and the count of
// deleted segments when it looked. Before that, it deletes the rows of segments that
// cannot be read.
func (s *Store) missing(ctx context.Context) (all []lost, rebuild string, err error) {
	for {
		var unreadable []row
		err := s.o.DB.Read(ctx, "looking for missing segments", func(tx *sql.Tx) (err error) {
			if rebuild, err = database.Value(ctx, tx, keyRebuild); err != nil {
				return err
			}
			have := map[lost]bool{}
			if unreadable, err = s.live(ctx, tx, have); err != nil || len(unreadable) > 0 {
				return err
			}
			numbers, err := s.o.Documents.Numbers(ctx, tx)
			for _, label := range slices.Sorted(maps.Keys(numbers)) {
				for _, n := range numbers[label] {
					if d := (lost{n, label}); !have[d] {
						all = append(all, d)
					}
				}
			}
			return err
		})
		if err != nil || len(unreadable) == 0 {
			return all, rebuild, err
		}
		err = s.o.DB.Write(ctx, "removing damaged segments", func(tx *sql.Tx) error {
			for _, r := range unreadable {
				if err := dropDamaged(ctx, tx, r.id); err != nil {
					return err
				}
			}
			return nextGeneration(ctx, tx)
		})
		if err != nil {
			return nil, "", err
		}
	}
}

// live adds the documents of current segments that are not deleted. It returns the
// segments that cannot be read.
func (s *Store) live(ctx context.Context, q database.Querier, to map[lost]bool) (unreadable []row, err error) {
	rows, err := rowsOf(ctx, q, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.format != segment.Version || s.isLeftOut(r.id) {
			unreadable = append(unreadable, r)
			continue
		}
		err := s.use(ctx, q, r, func(g *Segment, deleted segment.Bits) error {
			if !r.current() {
				return nil // searches use it until its documents are indexed again
			}
			err := g.Rows(func(place int, number int64) {
				if deleted == nil || !deleted.Has(place) {
					to[lost{number, r.label}] = true
				}
			})
			if err != nil {
				return &damaged{row: r, err: err}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return unreadable, nil
}

// rebuildBatch is about how many chunks one transaction indexes again.
const rebuildBatch = 200

// addAgain adds the words of the first few of some documents, and returns how many
// it looked at.
func (c *Change) addAgain(ctx context.Context, docs []lost) (n int, err error) {
	for chunks := 0; chunks < rebuildBatch && n < len(docs); n++ {
		l := docs[n]
		if has, err := c.has(ctx, l.number, l.label); err != nil {
			return n, err
		} else if has {
			continue // another process did it meanwhile
		}
		d, err := c.s.o.Documents.Document(ctx, c.tx, l.number)
		if err != nil {
			return n, err
		}
		if d == nil || d.Label != l.label {
			continue // it was deleted, or has another label
		}
		if err := c.Remove(ctx, l.number, l.label); err != nil {
			return n, err
		}
		if err := c.Add(ctx, *d); err != nil {
			return n, err
		}
		chunks += len(d.Chunks)
	}
	return n, nil
}

// rebuilt records that the documents of the segments that were deleted are indexed
// again, unless another process deleted more since the count was read.
func (s *Store) rebuilt(ctx context.Context, count string) error {
	if count == "" {
		return nil
	}
	return s.o.DB.Write(ctx, "rebuilding segments", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM kv WHERE key=? AND value=?`, keyRebuild, count); err != nil {
			return err
		}
		return nextGeneration(ctx, tx)
	})
}
