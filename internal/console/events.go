package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	eventInterval = 500 * time.Millisecond // between two looks at the status
	heartbeat     = 15 * time.Second       // of silence, after which a comment is sent
)

// serveEvents sends the status as a stream of server-sent events: at once, and whenever it
// has changed, until the request ends or the server shuts down.
func (c *console) serveEvents(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	last, err := c.latest(ctx)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	secure(w.Header())
	w.Header().Set("Cache-Control", "no-store, no-transform")
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(format string, args ...any) bool {
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && http.NewResponseController(w).Flush() == nil // otherwise the client is gone
	}
	if r.Method == http.MethodHead || !send("event: status\ndata: %s\n\n", last) {
		return
	}
	tick := time.NewTicker(eventInterval)
	defer tick.Stop()
	for sent := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-c.ended:
			return
		case <-tick.C:
		}
		status, err := c.latest(ctx)
		switch {
		case ctx.Err() != nil: // also because the caller has lost rights
			return
		case err != nil:
			c.o.Log.Error("answering the console", "path", r.URL.Path, "error", err)
			return // the client connects again, and is told
		case !bytes.Equal(status, last):
			if last = status; !send("event: status\ndata: %s\n\n", status) {
				return
			}
			sent = time.Now()
		case time.Since(sent) >= heartbeat:
			if !send(": still there\n\n") {
				return
			}
			sent = time.Now()
		}
	}
}

// latest returns the status as JSON, in one line.
func (c *console) latest(ctx context.Context) ([]byte, error) {
	status, err := c.o.Latest(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(status)
}

// shutdown ends all streams of events.
func (c *console) shutdown(context.Context) error {
	c.end.Do(func() { close(c.ended) })
	return nil
}
