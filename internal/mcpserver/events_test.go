package mcpserver

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// opened returns a stream that events knows.
func opened(e *events, session, name string) *stream {
	s := &stream{events: e, name: streamName{session, name}}
	e.open(s)
	return s
}

// missed returns the events after an index, joined, or that they are not kept.
func missed(e *events, session, name string, index int) string {
	s := e.stream(streamName{session, name})
	if s == nil {
		return "not kept"
	}
	all, ok := e.after(s, index)
	if !ok {
		return "not kept"
	}
	var got []string
	for _, data := range all {
		got = append(got, string(data))
	}
	return strings.Join(got, " ")
}

func fill(e *events, s *stream, all ...string) {
	for _, data := range all {
		e.add(s, []byte(data))
	}
}

func TestEvents(t *testing.T) {
	e := &events{}
	get, x, other := opened(e, "a", ""), opened(e, "a", "x"), opened(e, "b", "x")
	opened(e, "a", "y")
	fill(e, x, "", "x1", "x2")
	fill(e, other, "other")
	fill(e, x, "x3")
	fill(e, get, "g0", "g1")
	for _, tc := range []struct {
		session, stream string
		index           int
		want            string
	}{
		{"a", "x", 0, "x1 x2 x3"}, {"a", "x", 2, "x3"}, {"a", "x", 3, ""}, {"a", "x", 4, "not kept"}, {"a", "x",
			int(^uint(0) >> 1), "not kept"},
		{"b", "x", 0, ""}, {"a", "y", 0, "not kept"}, {"a", "z", 0, "not kept"}, {"c", "x", 0, "not kept"}, {"a",
			"", 0, "g1"},
	} {
		if got := missed(e, tc.session, tc.stream, tc.index); got != tc.want {
			t.Errorf("after(%s, %s, %d) = %s, want %s", tc.session, tc.stream, tc.index, got, tc.want)
		}
	}
	e.restart(get)
	if index := e.add(get, []byte("g2")); index != 0 {
		t.Errorf("the first event of a stream that begins again has the index %d, want 0", index)
	}
	fill(e, get, "g3")
	if got := missed(e, "a", "", 0); got != "g3" {
		t.Errorf("after its first event it has %q, want g3", got)
	}
	e.close("a")
	if got := missed(e, "a", "x", 0); got != "not kept" {
		t.Errorf("a stream of a closed session = %s", got)
	}
	if got := missed(e, "b", "x", 0); got != "" {
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
		{"large", strings.Repeat("d", 1<<20), 9, strings.Repeat("d", 1<<20) + " " + strings.Repeat("d", 1<<20),
			"not kept"},
		{"one that is too large", strings.Repeat("d", 9<<20), 3, "not kept", "not kept"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &events{}
			first, second := opened(e, "a", "first"), opened(e, "a", "second")
			fill(e, first, "f0", "f1")
			data := []byte(tc.data)
			for range tc.n {
				e.add(second, data)
			}
			if d := cmp.Diff(tc.kept, missed(e, "a", "second", tc.n-3)); d != "" {
				t.Errorf("the last two of %d (-want +got):\n%s", tc.n, d)
			}
			if got := missed(e, "a", "first", 0); got != tc.first {
				t.Errorf("the first stream = %s, want %s", got, tc.first)
			}
		})
	}
}

// A stream of GET, which has no end, stays known when all its events are gone.
func TestEventsOfGet(t *testing.T) {
	e := &events{}
	get, x := opened(e, "a", ""), opened(e, "a", "x")
	fill(e, get, "g0")
	for range 17 << 10 {
		fill(e, x, "d")
	}
	fill(e, get, "g1", "g2")
	if got := missed(e, "a", "", 1); got != "g2" {
		t.Errorf("after g1 = %s, want g2", got)
	}
}

// Every method may be called while others run.
func TestEventsTogether(t *testing.T) {
	e := &events{}
	var wg sync.WaitGroup
	for i := range 8 {
		session := fmt.Sprint(i % 2)
		wg.Go(func() {
			for n := range 200 {
				name := fmt.Sprint(i, n)
				e.add(opened(e, session, name), []byte("d"))
				if got := missed(e, session, name, 0); got != "" && got != "not kept" {
					t.Errorf("after the only event = %s", got)
				}
				if n%50 == 0 {
					e.close(session)
				}
			}
		})
	}
	wg.Wait()
}
