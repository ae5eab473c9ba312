package mcpserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

// dropped sends a call of the hold tool and breaks the connection when the tool
// runs. It returns the id of the event that the stream began with.
func (s *site) dropped(t *testing.T, k *kit, session *mcptest.Session, id int) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"hold","arguments":{"name":"a"}}}`, id)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Mcp-Session-Id": session.SessionID(),
		"Mcp-Protocol-Version": "2025-11-25",
		"Content-Type":         "application/json", "Accept": "application/json, text/event-stream"} {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // given up
	<-k.started
	for sc := bufio.NewScanner(res.Body); sc.Scan(); {
		if event, ok := strings.CutPrefix(sc.Text(), "id: "); ok {
			return event
		}
	}
	t.Fatal("the stream has no event with an id")
	return ""
}

// resume opens the stream that an event was on, and returns what comes.
func (s *site) resume(t *testing.T, session *mcptest.Session, event string) (int, string) {
	t.Helper()
	status, _, body := s.request(t, http.MethodGet, "", map[string]string{"Mcp-Session-Id": session.SessionID(),
		"Mcp-Protocol-Version": "2025-11-25", "Last-Event-ID": event})
	return status, body
}

// A call whose connection broke continues, and resuming returns its answer,
// before it is ready or after.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, early := range []bool{true, false} {
			k := newKit(mcpserver.Options{})
			site := k.http(t, mcpserver.HTTPOptions{})
			s := site.session(t)
			s.Initialize("2025-11-25")
			event := site.dropped(t, k, s, 77)
			synctest.Wait()
			if early {
				time.AfterFunc(20*time.Second, func() { close(k.release) }) // virtual; there is a comment before
			} else {
				close(k.release)
				synctest.Wait()
			}
			status, body := site.resume(t, s, event)
			if status != 200 || strings.Count(body, `"id":77,"result"`) != 1 || !strings.Contains(body, "held") {
				t.Errorf("resumed, early %t = %d %s, want the answer once", early, status, body)
			}
			if early != strings.Contains(body, ": keep-alive") {
				t.Errorf("resumed, early %t = %s, want a comment while it waits", early, body)
			}
			if again, rest := site.resume(t, s, event); again != 200 ||
				rest != strings.TrimPrefix(body, ": keep-alive\n\n") {
				t.Errorf("resumed once more = %d %s, want the same", again, rest)
			}
			if n := len(k.causes); n != 0 {
				t.Errorf("the handler's context ended: %v", <-k.causes)
			}
		}
	})
}

// The answer to a cancelled request is not replayed, and the client learns that
// nothing more will come.
func TestResumeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, early := range []bool{true, false} {
			k := newKit(mcpserver.Options{})
			site := k.http(t, mcpserver.HTTPOptions{})
			s := site.session(t)
			s.Initialize("2025-11-25")
			event := site.dropped(t, k, s, 77)
			synctest.Wait()
			if early {
				time.AfterFunc(time.Second, func() { s.Cancel(77) }) // virtual
			} else {
				s.Cancel(77)
				synctest.Wait()
			}
			if status, body := site.resume(t, s, event); status != http.StatusNoContent || body != "" {
				t.Errorf("resumed, early %t = %d %q, want 204", early, status, body)
			}
			if cause := <-k.causes; !errors.Is(cause, context.Canceled) {
				t.Errorf("the handler's context ended because of %v, want context.Canceled", cause)
			}
		}
	})
}

// Of a stream with several events those after the one that is named come.
func TestResumeWithin(t *testing.T) {
	site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
	s, other := site.session(t), site.session(t)
	s.Initialize("2025-03-26")
	other.Initialize("2025-03-26")
	_, _, body := site.request(t, http.MethodPost,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":1}}}`,
		map[string]string{"Mcp-Session-Id": s.SessionID()})
	events := strings.SplitAfter(strings.TrimSuffix(body, "\n\n"), "\n\n")
	if len(events) != 4 {
		t.Fatalf("the stream = %s, want three notifications and the answer", body)
	}
	var ids []string
	for i, e := range events {
		_, id, _ := strings.Cut(e, "id: ")
		id, _, _ = strings.Cut(id, "\n")
		ids = append(ids, id)
		status, got := site.resume(t, s, id)
		want, code := strings.TrimSuffix(strings.Join(events[i+1:], ""), "\n\n"), 200
		if want == "" {
			code = 204
		}
		if strings.TrimSuffix(got, "\n\n") != want || status != code {
			t.Errorf("resumed after event %d = %d %s, want %d %s", i, status, got, code, want)
		}
	}
	stream, _, _ := strings.Cut(ids[0], "_")
	for _, tc := range []struct {
		name, event string
		session     *mcptest.Session
	}{
		{"another session's", ids[0], other}, {"beyond the end", stream + "_99", s}, {"unknown", "nope_0", s},
		{"malformed",
			"nope", s}, {"negative", stream + "_-1", s},
	} {
		if status, body := site.resume(t, tc.session, tc.event); status != 400 ||
			!strings.Contains(body, `"code":-32600`) {
			t.Errorf("resumed with an id that is %s = %d %s, want 400", tc.name, status, body)
		}
	}
}

// A GET stream has ids too. It can be resumed; without an id it starts from the beginning.
func TestResumeGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{})
		s := site.session(t)
		s.Initialize("2025-11-25")
		if _, _, body := site.request(t, http.MethodPost,
			`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"job","_meta":{"progressToken":1}}}`,
			map[string]string{"Mcp-Session-Id": s.SessionID()}); !strings.Contains(body, "jobId") {
			t.Fatalf("job = %s", body)
		}
		// listen reads from the GET stream until nothing more comes.
		listen := func(event string) string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // virtual
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, site.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", "text/event-stream")
			req.Header.Set("Mcp-Session-Id", s.SessionID())
			if event != "" {
				req.Header.Set("Last-Event-ID", event)
			}
			res, err := site.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close() // given up
			got := ""
			for sc := bufio.NewScanner(res.Body); sc.Scan(); {
				if id, ok := strings.CutPrefix(sc.Text(), "id: "); ok {
					got += id + " "
				}
			}
			synctest.Wait()
			return got
		}
		time.AfterFunc(500*time.Millisecond, func() { close(k.release) })
		for _, tc := range []struct{ event, want string }{{"", "_0 _1 _2 "}, {"_0", "_1 _2 "}, {"_2", ""}, {"", ""}} {
			if got := listen(tc.event); got != tc.want {
				t.Errorf("events after %q = %q, want %q", tc.event, got, tc.want)
			}
		}
	})
}

// A stream contains events of messages, and from 2025-11-25 on first one without data
// that has an id alone. Python's SDK complains about events of any other name.
func TestEventNames(t *testing.T) {
	for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
		s := site.session(t)
		s.Initialize(revision)
		_, _, body := site.request(t, http.MethodPost, request(t, "tools/call", withToken("progress", 1)),
			map[string]string{"Mcp-Session-Id": s.SessionID(), "Mcp-Protocol-Version": revision})
		ids, names, first := 0, map[string]int{}, strings.SplitN(body, "\n\n", 2)[0]
		for line := range strings.Lines(body) {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				names[strings.TrimSpace(name)]++
			}
			if strings.HasPrefix(line, "id: ") {
				ids++
			}
		}
		primed := 0
		if revision >= "2025-11-25" {
			primed = 1
			if !regexp.MustCompile(`^id: [A-Z2-7]+_0\ndata: $`).MatchString(first) {
				t.Errorf("%s: the first event is %q, want one with an id and empty data", revision, first)
			}
		}
		if want := map[string]int{"message": 4}; !maps.Equal(names, want) || ids != 4+primed {
			t.Errorf("%s: events %v with %d ids, want %v with %d:\n%s", revision, names, ids, want, 4+primed, body)
		}
	}
}
