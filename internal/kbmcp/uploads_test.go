package kbmcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
)

func openUploads(t *testing.T, o UploadOptions) *Uploads {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	a, err := OpenUploads(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// begin starts an upload and adds chunks, in the order of the indexes.
func begin(t *testing.T, a *Uploads, size int64, chunks ...any) string {
	t.Helper()
	id, err := a.begin(t.Context(), uploadStart{file: kb.File{Filename: "a.txt"}, size: size})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(chunks); i += 2 {
		if _, err := a.chunk(t.Context(), id, chunks[i].(int), []byte(chunks[i+1].(string))); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

// received returns what finish passes on.
func received(t *testing.T, a *Uploads, id string) (string, error) {
	t.Helper()
	var text string
	_, err := a.finish(t.Context(), id, func(_ context.Context, _ kb.File, r io.Reader) (int64, error) {
		b, err := io.ReadAll(r)
		text = string(b)
		return 7, err
	})
	return text, err
}

func TestChunks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		size   int64
		chunks []any
		want   string // the file, or a part of the error
	}{
		{"in order", 6, []any{0, "abc", 1, "def"}, "abcdef"},
		{"out of order", 6, []any{2, "f", 0, "abc", 1, "de"}, "abcdef"},
		{"sent twice", 6, []any{0, "abc", 0, "abc", 1, "def", 1, "def"}, "abcdef"},
		{"replaced by a shorter one", 4, []any{0, "abc", 1, "d", 0, "xyz"}, "xyzd"},
		{"replaced by a longer one", 6, []any{0, "ab", 1, "d", 0, "abcde"}, "abcded"},
		{"empty chunk", 3, []any{0, "abc", 1, ""}, "abc"},
		{"none", 3, nil, "missing: 0 (none has arrived)"},
		{"one gap", 4, []any{0, "a", 2, "c", 3, "d"}, "missing: 1;"},
		{"gaps", 6, []any{3, "d", 7, "h", 9, "i"}, "missing: 0-2, 4-6, 8;"},
		{"too short", 6, []any{0, "abc", 1, "de"},
			"5 of 6 bytes have arrived in 2 chunks; send the rest with the next " +
				"chunk_index, which is 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := openUploads(t, UploadOptions{})
			id := begin(t, a, tt.size, tt.chunks...)
			got, err := received(t, a, id)
			if err != nil {
				got = err.Error()
				if !errors.Is(err, errkind.Conflict) {
					t.Errorf("the error %v is not a conflict", err)
				}
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A chunk that completes total_size while an index before it is missing is
// refused, and the upload can be completed in each way that the error names.
func TestSkippedIndex(t *testing.T) {
	for _, tt := range []struct {
		name      string
		before    []any  // chunks that arrive
		missing   string // in the state after the last of them
		last      int    // index of the chunk that completes the file
		data      string
		want      string // part of the error
		corrected []any
	}{
		{"the last index is wrong", []any{0, "abc"}, "", 2, "def", "chunk_index 1 is missing", []any{1, "def"}},
		{"a number is skipped", []any{0, "ab", 2, "cd"}, "1", 3, "ef", "chunk_index 1 is missing",
			[]any{1, "", 3, "ef"}},
		{"indexes from 1", []any{1, "abc"}, "0", 2, "def", "chunk_index 0 is missing", []any{0, "", 2, "def"}},
		{"two gaps", []any{1, "ab", 4, "cd"}, "0, 2-3", 5, "ef", "chunk_index 0, 2-3 is missing", []any{0, "", 2, "",
			3, "", 5, "ef"}},
		{"an empty chunk after the end", []any{0, "abc", 1, "def"}, "", 3, "", "chunk_index 2 is missing", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := openUploads(t, UploadOptions{})
			id := begin(t, a, 6)
			var state *uploadState
			send := func(chunks []any) {
				t.Helper()
				for i := 0; i < len(chunks); i += 2 {
					var err error
					if state, err = a.chunk(t.Context(), id, chunks[i].(int), []byte(chunks[i+1].(string))); err != nil {
						t.Fatal(err)
					}
				}
			}
			send(tt.before)
			if state.Missing != tt.missing {
				t.Errorf("missing = %q, want %q", state.Missing, tt.missing)
			}
			if _, err := a.chunk(t.Context(), id, tt.last, []byte(tt.data)); !errors.Is(err, errkind.Invalid) ||
				!strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error = %v, want %q", err, tt.want)
			}
			send(tt.corrected)
			if got, err := received(t, a, id); got != "abcdef" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// What is missing can be sent after an attempt to finish.
func TestFinishAgain(t *testing.T) {
	a := openUploads(t, UploadOptions{})
	id := begin(t, a, 4, 1, "cd")
	if _, err := received(t, a, id); !errors.Is(err, errkind.Conflict) {
		t.Fatalf("error = %v", err)
	}
	if _, err := a.chunk(t.Context(), id, 0, []byte("ab")); err != nil {
		t.Fatal(err)
	}
	fail := errors.New("down")
	if _, err := a.finish(t.Context(), id, func(context.Context, kb.File, io.Reader) (int64, error) {
		return 0,
			fail
	}); !errors.Is(err, fail) {
		t.Fatalf("error = %v", err)
	}
	if got, err := received(t, a, id); got != "abcd" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	job, err := a.finish(t.Context(), id, func(context.Context, kb.File, io.Reader) (int64, error) {
		t.Error("the file is sent twice")
		return 8, nil
	})
	if job != 7 || err != nil {
		t.Errorf("a second finish returns %d, %v; want the same job", job, err)
	}
	if _, err := a.chunk(t.Context(), id, 0, nil); !errors.Is(err, errkind.Conflict) {
		t.Errorf("a chunk after finish: %v", err)
	}
}

func TestChecksum(t *testing.T) {
	a := openUploads(t, UploadOptions{})
	sum := sha256.Sum256([]byte("abc"))
	id, err := a.begin(t.Context(), uploadStart{size: 3, sha256: hex.EncodeToString(sum[:])})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ data, want string }{{"abd", "a chunk was damaged"}, {"abc", ""}} {
		if _, err := a.chunk(t.Context(), id, 0, []byte(tt.data)); err != nil {
			t.Fatal(err)
		}
		_, err := received(t, a, id)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error = %v, want %q", tt.data, err, tt.want)
		}
	}
}

func TestUploadLimits(t *testing.T) {
	a := openUploads(t, UploadOptions{MaxSize: 10, MaxOpen: 2})
	if _, err := a.begin(t.Context(), uploadStart{size: 11}); !errors.Is(err, errkind.TooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	id := begin(t, a, 4, 0, "abc")
	if _, err := a.chunk(t.Context(), id, 1, []byte("de")); !errors.Is(err, errkind.Invalid) {
		t.Errorf("a chunk beyond total_size: %v", err)
	}
	// A chunk that is replaced by ever longer ones does not fill the disk.
	for _, data := range []string{"a", "ab", "abc", "abcd"} {
		_, _ = a.chunk(t.Context(), id, 0, []byte(data))
	}
	if end := a.byID[id].end; end > 8 {
		t.Errorf("the file has %d bytes", end)
	}
	begin(t, a, 1)
	if _, err := a.begin(t.Context(), uploadStart{size: 1}); !errors.Is(err, errkind.Busy) {
		t.Errorf("too many uploads: %v", err)
	}
	if _, err := a.chunk(t.Context(), "nope", 0, nil); !errors.Is(err, errkind.NotFound) {
		t.Errorf("an unknown upload: %v", err)
	}
}

func TestPut(t *testing.T) {
	a := openUploads(t, UploadOptions{})
	id := begin(t, a, 5, 0, "abc")
	for _, body := range []string{"", "abcd", "abcdef", strings.Repeat("x", 100)} {
		if _, err := a.put(t.Context(), id, -1, strings.NewReader(body)); !errors.Is(err, errkind.Invalid) {
			t.Errorf("%d bytes: %v", len(body), err)
		}
	}
	state, err := a.put(t.Context(), id, 5, strings.NewReader("12345"))
	if err != nil || *state != (uploadState{UploadID: id, Received: 5, TotalSize: 5, Chunks: 1}) {
		t.Fatalf("state = %+v, %v", state, err)
	}
	if got, err := received(t, a, id); got != "12345" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// An upload is dropped when its time ends, counted from its start.
func TestUploadExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openUploads(t, UploadOptions{MaxOpen: 1})
		id := begin(t, a, 4, 0, "ab")
		time.Sleep(10*time.Minute - time.Second)
		if _, err := a.chunk(t.Context(), id, 1, []byte("c")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, err := a.chunk(t.Context(), id, 2, []byte("d")); !errors.Is(err, errkind.NotFound) || !strings.Contains(err.Error(),
			"10m after its start") {
			t.Errorf("error = %v", err)
		}

		// The time may end while the file is sent.
		id = begin(t, a, 2, 0, "ab")
		_, err := a.finish(t.Context(), id, func(_ context.Context, _ kb.File, r io.Reader) (int64, error) {
			time.Sleep(11 * time.Minute)
			b, err := io.ReadAll(r)
			if string(b) != "ab" {
				t.Errorf("the file is %q", b)
			}
			return 1, err
		})
		if err != nil {
			t.Error(err)
		}
		// Its job stays known.
		if job, err := received(t, a, id); job != "" || err != nil {
			t.Errorf("a repeated finish sends %q, %v", job, err)
		}

		// If it cannot be sent, it is dropped then.
		id = begin(t, a, 2, 0, "ab")
		down := errors.New("down")
		if _, err := a.finish(t.Context(), id, func(context.Context, kb.File, io.Reader) (int64, error) {
			time.Sleep(11 * time.Minute)
			return 0, down
		}); !errors.Is(err, down) {
			t.Errorf("error = %v", err)
		}
		if _, err := received(t, a, id); !errors.Is(err, errkind.NotFound) || a.count(t.Context()) != 0 {
			t.Errorf("error = %v, %d uploads are open", err, a.count(t.Context()))
		}
	})
}

// The jobs of finished uploads are kept after their time, the newest ones, and
// nothing of their files.
func TestFinishedUploads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openUploads(t, UploadOptions{MaxOpen: 1})
		var ids []string
		for i := range maxFinished + 2 {
			id := begin(t, a, 1, 0, "x")
			if _, err := a.finish(t.Context(), id, func(context.Context, kb.File, io.Reader) (int64, error) {
				return int64(i), nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := a.byID[id].file.Close(); !errors.Is(err, os.ErrClosed) { // again
				t.Fatalf("the file is open: %v", err)
			}
			ids = append(ids, id)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(a.byID) != maxFinished {
			t.Errorf("%d uploads are kept, want %d", len(a.byID), maxFinished)
		}
		for i, want := range map[int]error{0: errkind.NotFound, 1: errkind.NotFound, 2: nil, maxFinished + 1: nil} {
			job, err := a.finish(t.Context(), ids[i], nil)
			if !errors.Is(err, want) || err == nil && job != int64(i) {
				t.Errorf("finish of upload %d = %d, %v; want %v", i, job, err, want)
			}
		}
	})
}

// A call of finish during another one waits for it and has its result. If the
// caller of the first one is gone, the second one sends the file.
func TestFinishTogether(t *testing.T) {
	down := errors.New("down")
	for _, tt := range []struct {
		name           string
		err            error         // of the first attempt
		first, second  time.Duration // until the context of the call ends; 0 is never
		sent           int           // attempts
		wantFirst      error
		wantSecond     error
		wantSecondTook time.Duration
	}{
		{"sent", nil, 0, 0, 1, nil, nil, 10 * time.Second},
		{"failed", down, 0, 0, 1, down, down, 10 * time.Second},
		{"the first caller is gone", nil, 5 * time.Second, 0, 2, context.DeadlineExceeded, nil, 15 * time.Second},
		{"the second caller is gone", nil, 0, 5 * time.Second, 1, nil, context.DeadlineExceeded, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := openUploads(t, UploadOptions{TTL: 7 * time.Second}) // it ends during the calls
				id := begin(t, a, 1, 0, "x")
				attempts := 0
				finish := func(limit time.Duration) error {
					ctx := t.Context()
					if limit > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, limit)
						defer cancel()
					}
					job, err := a.finish(ctx, id, func(ctx context.Context, _ kb.File, r io.Reader) (int64, error) {
						attempts++
						select {
						case <-time.After(10 * time.Second):
						case <-ctx.Done():
							return 0, ctx.Err()
						}
						return 7, tt.err
					})
					if err == nil && job != 7 {
						t.Errorf("job = %d", job)
					}
					return err
				}
				start := time.Now()
				first := make(chan error)
				go func() { first <- finish(tt.first) }()
				synctest.Wait()
				second := finish(tt.second)
				if took := time.Since(start); !errors.Is(second, tt.wantSecond) || (second == nil) != (tt.wantSecond == nil) ||
					took != tt.wantSecondTook {
					t.Errorf("the second call: %v after %v, want %v after %v", second, took, tt.wantSecond, tt.wantSecondTook)
				}
				if err := <-first; !errors.Is(err, tt.wantFirst) || (err == nil) != (tt.wantFirst == nil) {
					t.Errorf("the first call: %v, want %v", err, tt.wantFirst)
				}
				if attempts != tt.sent {
					t.Errorf("%d attempts, want %d", attempts, tt.sent)
				}
			})
		})
	}
}

// A call that waits for one that panics does not wait for ever.
func TestFinishPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openUploads(t, UploadOptions{})
		id := begin(t, a, 1, 0, "x")
		first := make(chan any)
		go func() {
			defer func() { first <- recover() }()
			_, _ = a.finish(t.Context(), id, func(context.Context, kb.File, io.Reader) (int64, error) {
				time.Sleep(time.Second)
				panic("broken")
			})
		}()
		synctest.Wait()
		if _, err := received(t, a, id); err == nil {
			t.Error("the second call succeeds")
		}
		if <-first == nil {
			t.Error("the first call does not panic")
		}
		if got, err := received(t, a, id); got != "x" || err != nil {
			t.Errorf("a later call sends %q, %v", got, err)
		}
	})
}

// Nothing of an upload is left on disk, and what another process left is
// deleted.
func TestUploadsLeaveNothing(t *testing.T) {
	name := "a[b*"
	if runtime.GOOS == "windows" {
		name = "a[b" // names have no asterisk
	}
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"knowhow-upload-1", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := openUploads(t, UploadOptions{Dir: dir})
	id := begin(t, a, 4, 0, "ab")
	b := openUploads(t, UploadOptions{Dir: dir})
	if _, err := a.chunk(t.Context(), id, 1, bytes.Repeat([]byte("c"), 2)); err != nil {
		t.Errorf("another process took the upload: %v", err)
	}
	if got, err := received(t, a, id); got != "abcc" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	a.Close()
	b.Close()
	if _, err := a.begin(t.Context(), uploadStart{size: 1}); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("begin after Close: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// FuzzChunks sends chunks in any order, with any lengths and indexes. What
// finish passes on is the chunks in the order of their indexes.
func FuzzChunks(f *testing.F) {
	f.Add([]byte{0, 3, 1, 3})
	f.Add([]byte{1, 2, 0, 4, 1, 1, 1, 2})
	f.Add([]byte{0, 1, 0, 2, 0, 3, 0, 6})
	f.Add([]byte{2, 2})
	f.Fuzz(func(t *testing.T, chunks []byte) {
		const size = 6
		a := openUploads(t, UploadOptions{})
		id := begin(t, a, size)
		want := map[int]string{}
		total := func() (n int) {
			for _, s := range want {
				n += len(s)
			}
			return n
		}
		for i := 0; i+1 < len(chunks); i += 2 {
			index, data := int(chunks[i]%8), strings.Repeat(string(rune('a'+i%26)), int(chunks[i+1]%8))
			old := want[index]
			state, err := a.chunk(t.Context(), id, index, []byte(data))
			switch {
			case err == nil:
				want[index] = data
				if state.Received != int64(total()) {
					t.Errorf("received %d bytes, want %d", state.Received, total())
				}
			case errors.Is(err, errkind.Conflict): // replaced too often
			case total()-len(old)+len(data) <= size:
				t.Errorf("chunk %d of %d bytes: %v", index, len(data), err)
			}
		}
		whole := ""
		for i := range len(want) {
			part, ok := want[i]
			if !ok {
				whole = ""
				break
			}
			whole += part
		}
		got, err := received(t, a, id)
		if complete := len(want) > 0 && len(whole) == size; complete != (err == nil) || complete && got != whole {
			t.Errorf("got %q, %v, want %q", got, err, whole)
		}
	})
}

// Empty chunks are for numbers that were skipped, so there are few.
func TestEmptyChunks(t *testing.T) {
	a := openUploads(t, UploadOptions{})
	id := begin(t, a, 1)
	for i := range maxEmpty {
		for range 2 { // the second replaces the first
			if _, err := a.chunk(t.Context(), id, 2*i, nil); err != nil {
				t.Fatalf("empty chunk %d: %v", i, err)
			}
		}
	}
	if _, err := a.chunk(t.Context(), id, 2*maxEmpty, nil); !errors.Is(err, errkind.Invalid) {
		t.Errorf("one more: %v, want %v", err, errkind.Invalid)
	}
}

// A call that works on an upload delays no other upload.
func TestUploadsAreIndependent(t *testing.T) {
	a := openUploads(t, UploadOptions{})
	slow, other := begin(t, a, 1), begin(t, a, 1)
	u, err := a.lock(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	defer u.mu.Unlock()
	if _, err := a.chunk(t.Context(), other, 0, []byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := a.finish(t.Context(), other, func(context.Context, kb.File, io.Reader) (int64, error) {
		return 1,
			nil
	}); err != nil {
		t.Error(err)
	}
	if begin(t, a, 1); a.count(t.Context()) != 2 {
		t.Errorf("%d uploads are open, want 2", a.count(t.Context()))
	}
}

// The gaps between the indexes that have arrived.
func TestGaps(t *testing.T) {
	for _, tt := range []struct {
		indexes []int
		coming  int
		want    string
	}{
		{nil, -1, ""}, {[]int{0, 1, 2, 3}, -1, ""}, {[]int{1, 2, 3}, -1, "0"}, {[]int{0, 1, 3, 9}, -1, "2, 4-8"},
		{[]int{2}, -1, "0-1"},
		{[]int{0, 3}, 1, "2"}, {[]int{0, 3}, 5, "1-2, 4"}, {nil, 2, "0-1"}, {nil, 0, ""},
		{[]int{1, 3, 5, 7, 9, 11, 13, 15, 17, 19}, -1, "0, 2, 4, 6, 8, 10, 12, 14, 16, 18"},
		{[]int{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 30}, -1, "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, and 2 more gaps"},
	} {
		u := &upload{chunks: map[int]extent{}}
		for _, i := range tt.indexes {
			u.chunks[i], u.last = extent{}, max(u.last, i)
		}
		if got := u.gaps(tt.coming); got != tt.want {
			t.Errorf("gaps of %v and %d = %q, want %q", tt.indexes, tt.coming, got, tt.want)
		}
	}
}
