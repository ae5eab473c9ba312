package users_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

// Streams hold no slot of the limits, are recorded when they end, and a caller can have
// some at the same time.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var recorded []*audit.Call
		var broken error
		table := users.New(users.Options{Calls: users.Calls{
			Check: func() error { return broken },
			Record: func(c *audit.Call, _ string) error {
				mu.Lock()
				defer mu.Unlock()
				recorded = append(recorded, c)
				return nil
			}}})
		calls := func() int { synctest.Wait(); mu.Lock(); defer mu.Unlock(); return len(recorded) }
		route := table.Stream(httpguard.Route{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusCreated)
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				<-r.Context().Done()
			}),
			Refuse: func(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) { w.WriteHeader(f.Status) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			route.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/events", nil).WithContext(ctx))
			return w
		}
		for range 32 {
			go ask()
		}
		if n := calls(); n != 0 || table.Calls() != 0 {
			t.Errorf("open streams have %d records and %d calls", n, table.Calls())
		}
		if w := ask(); w.Code != http.StatusTooManyRequests || calls() != 1 {
			t.Errorf("one more stream has the status %d and %d records", w.Code, calls())
		}
		time.Sleep(time.Minute)
		cancel()
		if n := calls(); n != 33 {
			t.Fatalf("there are %d records, want 33", n)
		}
		if c := recorded[32]; c.Status != http.StatusCreated || c.Took != time.Minute || c.Path != "/events" {
			t.Errorf("the last record has %d, %v and %s", c.Status, c.Took, c.Path)
		}
		if w := ask(); w.Code != http.StatusCreated {
			t.Errorf("when the others have ended, a stream has the status %d", w.Code)
		}
		broken = errkind.Unavailable
		if w := ask(); w.Code != http.StatusServiceUnavailable {
			t.Errorf("without a record, a stream has the status %d", w.Code)
		}
	})
}
