package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// A stream is a request for events.
type stream struct {
	*httptest.ResponseRecorder
	cancel   context.CancelFunc
	shutdown func(context.Context) error
	ended    bool // read after synctest.Wait
}

// open opens a stream of events in the bubble of the test.
func open(t *testing.T, method string, latest func() (Status, error)) *stream {
	ctx, cancel := context.WithCancel(t.Context())
	_, _, events := Routes(Options{
		Latest: func(context.Context) (Status, error) { return latest() },
		Refuse: func(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) { http.Error(w, f.Message, f.Status) },
	})
	s := &stream{ResponseRecorder: httptest.NewRecorder(), cancel: cancel, shutdown: events.Shutdown}
	go func() {
		events.Handler.ServeHTTP(s, httptest.NewRequest(method, "/console/events", nil).WithContext(ctx))
		s.ended = true
	}()
	return s
}

// count returns how many events and comments have come.
func (s *stream) count() string {
	synctest.Wait()
	body := s.Body.String()
	return fmt.Sprint(strings.Count(body, "event: status\ndata: {"), " events, ", strings.Count(body, ": still there\n\n"), " comments")
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var version atomic.Value
		version.Store("1")
		s := open(t, "GET", func() (Status, error) { return Status{Version: version.Load().(string)}, nil })
		for _, step := range []struct {
			version string
			wait    time.Duration
			want    string
		}{
			{"1", 0, "1 events, 0 comments"},
			{"1", 14 * time.Second, "1 events, 0 comments"},
			{"2", 600 * time.Millisecond, "2 events, 0 comments"},
			{"2", 14 * time.Second, "2 events, 0 comments"},
			{"2", 2 * time.Second, "2 events, 1 comments"},
			{"2", time.Minute, "2 events, 5 comments"},
			{"a\nb", time.Second, "3 events, 5 comments"},
		} {
			version.Store(step.version)
			time.Sleep(step.wait)
			if got := s.count(); got != step.want {
				t.Errorf("after %v there are %s, want %s", step.wait, got, step.want)
			}
		}
		if got := s.Header().Get("Content-Type"); got != "text/event-stream" || !s.Flushed {
			t.Errorf("the type is %q", got)
		}
		s.cancel() // for example because the caller has lost rights
		if synctest.Wait(); !s.ended {
			t.Error("the stream does not end with the request")
		}
	})
}

// However often the status changes, there are two events in a second.
func TestEventsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := open(t, "GET", func() (Status, error) { return Status{Version: time.Since(began).String()}, nil })
		time.Sleep(10*time.Second + 100*time.Millisecond)
		if got := s.count(); got != "21 events, 0 comments" {
			t.Errorf("there are %s", got)
		}
		if err := s.shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if synctest.Wait(); !s.ended {
			t.Error("the stream does not end with the server")
		}
		s.cancel()
		_ = s.shutdown(t.Context()) // again
	})
}

// A status that cannot be read is an error at first, and later the end of the stream. Of a
// caller who loses rights meanwhile, nothing is sent.
func TestEventsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "GET", func() (Status, error) { return Status{}, fmt.Errorf("no disk: %w", errkind.Unavailable) })
		if s.count(); s.Code != 503 || !s.ended {
			t.Errorf("without a status there is %d %s", s.Code, s.Body)
		}
		s.cancel()
		began := time.Now()
		s = open(t, "GET", func() (Status, error) {
			if time.Since(began) > time.Second {
				return Status{}, errors.New("broken")
			}
			return Status{}, nil
		})
		time.Sleep(2 * time.Second)
		if got := s.count(); !s.ended || got != "1 events, 0 comments" {
			t.Errorf("there are %s", got)
		}
		s.cancel()
		calls := 0
		var running atomic.Pointer[stream]
		s = open(t, "GET", func() (Status, error) {
			if calls++; calls > 1 {
				running.Load().cancel()
			}
			return Status{Version: fmt.Sprint(calls)}, nil
		})
		running.Store(s)
		time.Sleep(time.Second)
		if got := s.count(); !s.ended || got != "1 events, 0 comments" {
			t.Errorf("there are %s", got)
		}
		s = open(t, "HEAD", func() (Status, error) { return Status{}, nil })
		if got := s.count(); !s.ended || s.Code != 200 || got != "0 events, 0 comments" {
			t.Errorf("HEAD has %d and %s", s.Code, got)
		}
		s.cancel()
	})
}
