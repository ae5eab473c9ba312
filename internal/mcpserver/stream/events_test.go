package stream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"knowhow/internal/mcpserver/stream"

	"github.com/google/go-cmp/cmp"
)

// after returns the events after an index, joined, or the error.
func after(e *stream.Events, session, name string, index int) string {
	var got []string
	for data, err := range e.After(context.Background(), session, name, index) {
		if err != nil {
			if !errors.Is(err, stream.ErrNotKept) || data != nil || got != nil {
				return fmt.Sprintf("%q and the error %v", got, err)
			}
			return "not kept"
		}
		got = append(got, string(data))
	}
	return strings.Join(got, " ")
}

func fill(t testing.TB, e *stream.Events, session, name string, events ...string) {
	t.Helper()
	for _, data := range events {
		if err := e.Append(context.Background(), session, name, []byte(data)); err != nil {
			t.Fatalf("Append(%s, %s) = %v", session, name, err)
		}
	}
}

func TestEvents(t *testing.T) {
	e, ctx := &stream.Events{}, t.Context()
	for _, s := range [][2]string{{"a", ""}, {"a", "x"}, {"a", "y"}, {"b", "x"}} {
		if err := e.Open(ctx, s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, e, "a", "x", "", "x1", "x2")
	fill(t, e, "b", "x", "other")
	fill(t, e, "a", "x", "x3")
	fill(t, e, "a", "", "g0", "g1")
	for _, tc := range []struct {
		session, stream string
		index           int
		want            string
	}{
		{"a", "x", 0, "x1 x2 x3"}, {"a", "x", 2, "x3"}, {"a", "x", 3, ""}, {"a", "x", 4, "not kept"}, {"a", "x", int(^uint(0) >> 1), "not kept"},
		{"b", "x", 0, ""}, {"a", "y", 0, "not kept"}, {"a", "z", 0, "not kept"}, {"c", "x", 0, "not kept"}, {"c", "x", -1, "not kept"},
		{"a", "", 0, "g1"},
	} {
		if got := after(e, tc.session, tc.stream, tc.index); got != tc.want {
			t.Errorf("After(%s, %s, %d) = %s, want %s", tc.session, tc.stream, tc.index, got, tc.want)
		}
	}
	if got := after(e, "a", "", -1); got != "" {
		t.Errorf("a stream that begins anew has %s", got)
	}
	fill(t, e, "a", "", "g2", "g3")
	if got := after(e, "a", "", 0); got != "g3" {
		t.Errorf("after its first event it has %q, want g3", got)
	}
	if err := e.SessionClosed(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if got := after(e, "a", "x", 0); got != "not kept" {
		t.Errorf("a stream of a closed session = %s", got)
	}
	if err := e.Append(ctx, "a", "x", nil); !errors.Is(err, stream.ErrNotKept) {
		t.Errorf("Append to it = %v, want ErrNotKept", err)
	}
	if got := after(e, "b", "x", -1); got != "" {
		t.Errorf("a stream of another session = %s", got)
	}
}

// The oldest events make room, by bytes and by number, whatever their stream.
func TestEventsBounds(t *testing.T) {
	for _, tc := range []struct {
		name  string
		data  string
		n     int // events of the second stream
		kept  string
		first string // what is left of the first stream after its event 0
	}{
		{"few", "d", 10, "d d", "f1"},
		{"many", "d", 16<<10 - 1, "d d", "f1"}, // one too many: only f0 goes
		{"too many", "d", 16 << 10, "d d", "not kept"},
		{"large", strings.Repeat("d", 1<<20), 9, strings.Repeat("d", 1<<20) + " " + strings.Repeat("d", 1<<20), "not kept"},
		{"one that is too large", strings.Repeat("d", 9<<20), 3, "not kept", "not kept"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, ctx := &stream.Events{}, t.Context()
			for _, name := range []string{"first", "second"} {
				if err := e.Open(ctx, "a", name); err != nil {
					t.Fatal(err)
				}
			}
			fill(t, e, "a", "first", "f0", "f1")
			data := []byte(tc.data)
			for range tc.n {
				if err := e.Append(ctx, "a", "second", data); err != nil && !errors.Is(err, stream.ErrNotKept) {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(tc.kept, after(e, "a", "second", tc.n-3)); d != "" {
				t.Errorf("the last two of %d (-want +got):\n%s", tc.n, d)
			}
			if got := after(e, "a", "first", 0); got != tc.first {
				t.Errorf("the first stream = %s, want %s", got, tc.first)
			}
		})
	}
}

// A stream of GET, which has no end, goes on when all its events are gone.
func TestEventsOfGet(t *testing.T) {
	e, ctx := &stream.Events{}, t.Context()
	for _, name := range []string{"", "x"} {
		if err := e.Open(ctx, "a", name); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, e, "a", "", "g0")
	for range 17 << 10 {
		fill(t, e, "a", "x", "d")
	}
	fill(t, e, "a", "", "g1", "g2")
	if got := after(e, "a", "", 1); got != "g2" {
		t.Errorf("after g1 = %s, want g2", got)
	}
}

// Every method may be called while others run.
func TestEventsTogether(t *testing.T) {
	e, ctx := &stream.Events{}, t.Context()
	var wg sync.WaitGroup
	for i := range 8 {
		session := fmt.Sprint(i % 2)
		wg.Go(func() {
			for n := range 200 {
				name := fmt.Sprint(i, n)
				if err := e.Open(ctx, session, name); err != nil {
					t.Error(err)
				}
				_ = e.Append(ctx, session, name, []byte("d")) // its session may have been closed
				if got := after(e, session, name, 0); got != "" && got != "not kept" {
					t.Errorf("after the only event = %s", got)
				}
				if n%50 == 0 {
					_ = e.SessionClosed(ctx, session) // nil
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkAppend(b *testing.B) {
	e, ctx, data := &stream.Events{}, b.Context(), make([]byte, 500)
	for n := 0; b.Loop(); n++ {
		name := fmt.Sprint(n)
		_ = e.Open(ctx, "a", name)         // nil
		_ = e.Append(ctx, "a", name, data) // nil
	}
}
