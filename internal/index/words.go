package index

import (
	"cmp"
	"context"
	"database/sql"
	"hash/fnv"
	"math/bits"
	"slices"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// Limits of the list of popular words and of the recorded searches.
const (
	popularWords  = 10
	popularPool   = 200              // words that the list is chosen from
	popularFresh  = time.Minute      // how long a list of frequent words is cached
	flushSearches = 30 * time.Second // how often searches are written
	maxPending    = 1000             // words that are not yet written
	maxQueries    = 10_000           // words that are stored
	maxQueryWord  = 64               // bytes of a stored word
)

// A searchLog holds words that were searched for and found. The zero searchLog
// is ready for use.
type searchLog struct {
	mu      sync.Mutex
	pending map[[2]string]int // word and label ("" for all labels)
}

// add records the words of a query.
func (l *searchLog) add(words, labels []string) {
	if len(words) == 0 {
		return
	}
	if labels == nil {
		labels = []string{""}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		l.pending = map[[2]string]int{}
	}
	words, _ = query.Divide(words)
	for _, w := range words {
		w = analysis.Lower(w)
		if len(w) > maxQueryWord || utf8.RuneCountInString(w) < 2 || analysis.FunctionWord(w, nil) {
			continue
		}
		for _, label := range labels {
			if key := [2]string{w, label}; l.pending[key] > 0 || len(l.pending) < maxPending {
				l.pending[key]++
			}
		}
	}
}

// take returns the recorded words and empties the log.
func (l *searchLog) take() map[[2]string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pending
	l.pending = nil
	return p
}

// recordSearches writes recorded searches periodically until ctx ends, and then
// once more.
func (x *Index) recordSearches(ctx context.Context) {
	tick := time.NewTicker(flushSearches)
	defer tick.Stop()
	for {
		ended := false
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		// Close waits for the last write, so its time is limited.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		if err := x.flushSearches(limited); err != nil {
			x.log.Debug("searches were not recorded", "error", err)
		}
		cancel()
		if ended {
			return
		}
	}
}

// flushSearches writes the searches recorded since the last call. A word is
// stored for a label only if a document of that label has it, so that the list
// of one label never shows searches of another.
func (x *Index) flushSearches(ctx context.Context) error {
	pending := x.counts.take()
	if len(pending) == 0 {
		return nil
	}
	return x.db.WritePrepared(ctx, "recording searches", func(tx *database.Prepared) error {
		for key, n := range pending {
			word, label := key[0], key[1]
			if ok, err := x.hasWord(ctx, tx, word, label); err != nil {
				return err
			} else if !ok {
				continue
			}
			_, err := tx.ExecContext(ctx, `INSERT INTO queries(word, label, n, last) VALUES(?1, ?2, ?3, ?4)
				ON CONFLICT DO UPDATE SET n=n+excluded.n, last=excluded.last`, word, label, n, time.Now().UnixMilli())
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM queries WHERE (word, label) IN
			(SELECT word, label FROM queries ORDER BY n DESC, last DESC LIMIT -1 OFFSET ?)`, maxQueries)
		return err
	})
}

// hasWord reports whether a document with a label ("": any) has a word.
func (x *Index) hasWord(ctx context.Context, tx *database.Prepared, word, label string) (ok bool, err error) {
	var labels []string
	if label != "" {
		labels = []string{label}
	}
	err = x.evaluate(ctx, tx, labels, func(e *evaluator) error {
		docs, err := e.view.WordDocs(word, false)
		ok = docs.Count() > 0
		return err
	})
	return ok, err
}

// A wordCount is a word and how often it was searched for, or in how many
// documents it occurs.
type wordCount struct {
	word string
	n    int
}

// A wordCache caches lists of frequent words, because computing one reads all
// words. The zero wordCache is ready for use.
type wordCache struct {
	mu    sync.Mutex
	lists map[string]cachedWords
}

type cachedWords struct {
	words []wordCount
	at    time.Time
}

func (c *wordCache) get(key string) ([]wordCount, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.lists[key]
	return l.words, ok && time.Since(l.at) < popularFresh
}

func (c *wordCache) put(key string, words []wordCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil || len(c.lists) >= 100 {
		c.lists = map[string]cachedWords{}
	}
	c.lists[key] = cachedWords{words, time.Now()}
}

// PopularWords returns up to ten words: those that were searched for most and
// found something, filled up with those that the most documents have; see
// [search.Service]. The seed picks among words that are about equal, which
// means the same power of two.
func (x *Index) PopularWords(ctx context.Context, q search.WordsQuery) ([]string, error) {
	var asked, frequent []wordCount
	err := x.readSegments(ctx, "listing popular words", func(tx *sql.Tx) error {
		var err error
		if asked, err = askedWords(ctx, tx, q.Labels); err != nil || len(asked) >= popularPool {
			return err
		}
		key := conditions{labels: q.Labels}.key()
		var ok bool
		if frequent, ok = x.popular.get(key); ok {
			return nil
		}
		err = x.evaluate(ctx, x.db.Prepared(tx), q.Labels, func(e *evaluator) error {
			frequent, err = e.frequentWords(ctx)
			return err
		})
		if err == nil && len(frequent) > 0 {
			x.popular.put(key, frequent)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, words := range [][]wordCount{asked, frequent} {
		for _, w := range shuffled(words, q.Seed) {
			if len(out) < popularWords && !slices.Contains(out, w.word) {
				out = append(out, w.word)
			}
		}
	}
	return out, nil
}

// shuffled orders words by the logarithm of their counts, and words with equal
// logarithms by a hash of the seed and the word.
func shuffled(words []wordCount, seed string) []wordCount {
	words = slices.Clone(words)
	hash := func(w string) uint64 {
		h := fnv.New64a()
		h.Write([]byte(seed + "\x00" + w)) // never fails
		return h.Sum64()
	}
	slices.SortFunc(words, func(a, b wordCount) int {
		return cmp.Or(cmp.Compare(bits.Len(uint(b.n)), bits.Len(uint(a.n))), cmp.Compare(hash(a.word), hash(b.word)),
			cmp.Compare(a.word, b.word))
	})
	return words
}

// askedWords returns the words that were searched for most often.
func askedWords(ctx context.Context, q database.Querier, labels []string) ([]wordCount, error) {
	where, args := conditions{labels: labels}.where()
	return wordCounts(ctx, q,
		`SELECT word, sum(n) AS n FROM queries d WHERE `+where+` GROUP BY word ORDER BY n DESC, word LIMIT ?`,
		append(args, popularPool)...)
}

// frequentWords returns the words in the most documents, except function words,
// numbers, and words in more than half of the documents.
func (e *evaluator) frequentWords(ctx context.Context) ([]wordCount, error) {
	docs := e.view.All().Count()
	var words []segment.Word
	err := e.view.WordsWith(ctx, "", func(w segment.Word) bool {
		r, _ := utf8.DecodeRuneInString(w.Text)
		short := utf8.RuneCountInString(w.Text) < 3 && !analysis.IsCJK(r)
		if short || analysis.FunctionWord(w.Text, e.matcher.Languages) || !unicode.IsLetter(r) || docs >= 20 && 2*w.Docs > docs {
			return true
		}
		if words = append(words, w); len(words) >= 10*popularPool {
			words = mostFrequent(words, popularPool)
		}
		return true
	})
	var out []wordCount
	for _, w := range mostFrequent(words, popularPool) {
		live, err := e.view.WordDocs(w.Text, false)
		if err != nil {
			return nil, err
		}
		if n := live.Count(); n > 0 {
			out = append(out, wordCount{w.Text, n})
		}
	}
	return out, err
}

func wordCounts(ctx context.Context, q database.Querier, text string, args ...any) ([]wordCount, error) {
	var out []wordCount
	err := database.Collect(ctx, q, func(rows *sql.Rows) error {
		var w wordCount
		err := rows.Scan(&w.word, &w.n)
		out = append(out, w)
		return err
	}, text, args...)
	return out, err
}
