package mcpserver_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"

	"github.com/google/go-cmp/cmp"
)

// logBuffer collects a log that several goroutines write.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// The form of every error is in testdata/errors.txtar; here it is compared
// between the transports.
func TestErrorTable(t *testing.T) {
	var first map[string]string
	transports(t, mcpserver.Options{}, func(t *testing.T, _ *kit, s *mcptest.Session) {
		s.Initialize("2025-03-26")
		got := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(failures)) {
			_, err := s.Tool("fail", map[string]any{"name": name})
			if err == nil {
				t.Errorf("fail(%s) is a result, want an error", name)
				continue
			}
			if err.Code != -32602 && err.Code != -32603 && err.Code != -32002 && err.Code >= -32768 &&
				err.Code <= -32000 {
				t.Errorf("fail(%s) has the code %d, which is reserved", name, err.Code)
			}
			got[name] = err.Error()
		}
		if first == nil {
			first = got
		}
		if d := cmp.Diff(first, got); d != "" {
			t.Errorf("errors differ from those of stdio (-stdio +here):\n%s", d)
		}
	})
}

func TestInternalErrorsGoToTheLog(t *testing.T) {
	var log logBuffer
	o := mcpserver.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	transports(t, o, func(t *testing.T, _ *kit, s *mcptest.Session) {
		s.Initialize("2025-03-26")
		for _, tool := range []string{"fail", "panic"} {
			_, err := s.Tool(tool, map[string]any{"name": "plain"})
			if err == nil || err.Code != -32603 || err.Message != "internal error" || err.Field("code") != "INTERNAL" ||
				err.Field("retryable") != "false" {
				t.Errorf("%s = %v, want -32603 internal error", tool, err)
			}
		}
		if _, err := s.Tool("echo", nil); err != nil {
			t.Errorf("after a panic = %v", err)
		}
	})
	for _, want := range []string{"secret", "boom", "kit_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
}

func TestDescribeError(t *testing.T) {
	err := fmt.Errorf("no job %q: %w", "j", errkind.NotFound)
	want := &mcpserver.ErrorObject{Code: -32002, Message: `no job "j"`, Data: map[string]any{"code": "NOT_FOUND",
		"retryable": false}}
	if d := cmp.Diff(want, mcpserver.DescribeError(context.Background(), err)); d != "" {
		t.Errorf("DescribeError(%v) (-want +got):\n%s", err, d)
	}
}
