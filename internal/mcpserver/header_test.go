package mcpserver_test

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

type bearerKey struct{}

// whoami is a kit with a tool that returns the token it sees.
func whoami(o mcpserver.Options) *kit {
	o.Header = func(ctx context.Context, h http.Header) context.Context {
		return context.WithValue(ctx, bearerKey{}, h.Get("X-Token"))
	}
	k := newKit(o)
	mcpserver.AddTool(k.server, mcpserver.Tool{Name: "whoami"}, func(ctx context.Context, _ struct{}) (any, error) {
		token, _ := ctx.Value(bearerKey{}).(string)
		return map[string]string{"token": token}, nil
	})
	return k
}

// A handler sees the header of its own request, on every revision.
func TestHeader(t *testing.T) {
	const token = "tok-4711"
	var log logBuffer
	o := mcpserver.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, off := range []bool{false, true} {
		k := whoami(o)
		site := k.http(t, mcpserver.HTTPOptions{DisableSSE: off})
		for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
			s := site.session(t)
			s.Initialize(revision)
			for _, want := range []string{token, "other", ""} {
				s.SetHeader("X-Token", want)
				if got, err := s.Tool("whoami", nil); err != nil || got != `{"token":"`+want+`"}` {
					t.Errorf("%s: the handler saw %s, %v, want the token %q", revision, got, err, want)
				}
			}
			if revision < "2025-06-18" {
				_, _, body := site.request(t, "POST",
					"[5,"+request(t, "tools/call", map[string]any{"name": "whoami"})+"]",
					map[string]string{"Mcp-Session-Id": s.SessionID(), "X-Token": token})
				if !strings.Contains(body, token) {
					t.Errorf("%s: batch = %s, want the token in it", revision, body)
				}
			}
		}
		header := modernHeader("tools/call", "whoami")
		header["X-Token"] = token
		_, _, body := site.request(t, "POST", request(t, "tools/call", modern(map[string]any{"name": "whoami"})),
			header)
		if !strings.Contains(body, token) {
			t.Errorf("2026-07-28: %s, want the token in it", body)
		}
	}
	if log := log.String(); !strings.Contains(log, "tools/call") || strings.Contains(log, token) {
		t.Errorf("the log has the token, or no requests:\n%s", log)
	}
}

func TestHeaderOnStdio(t *testing.T) {
	s := mcptest.Stdio(t, whoami(mcpserver.Options{}).server.ServeStdio)
	s.Initialize("2025-03-26")
	if got, err := s.Tool("whoami", nil); err != nil || got != `{"token":""}` {
		t.Errorf("the handler saw %s, %v, want no token", got, err)
	}
}

// The older transport has only the header of the request that opened its
// stream.
func TestHeaderOnOldSSE(t *testing.T) {
	site := whoami(mcpserver.Options{Revision: mcpserver.Cody}).http(t, mcpserver.HTTPOptions{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Token", "tok")
	req.Header.Set("Accept", "text/event-stream")
	res, err := site.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // given up
	sc := bufio.NewScanner(res.Body)
	next := func() string {
		for sc.Scan() {
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
				return data
			}
		}
		return "the stream ended"
	}
	endpoint := strings.TrimPrefix(next(), "/mcp")
	got := ""
	for _, body := range []string{initializeBody, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		request(t, "tools/call", map[string]any{"name": "whoami"})} {
		res, err := site.client.Post(site.url+endpoint, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close() // empty
		if strings.Contains(body, `"id":`) {
			got = next()
		}
	}
	if !strings.Contains(got, `\"tok\"`) {
		t.Errorf("answer = %s, want the token of the GET in it", got)
	}
}
