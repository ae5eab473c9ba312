//go:build linux

package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// useEverything lists and calls tools of a server-everything.
func useEverything(t *testing.T, p *Pool, id string) {
	t.Helper()
	c, err := p.Catalog(t.Context(), id)
	if err != nil {
		t.Fatalf("Catalog() = %v", err)
	}
	tools := map[string]Tool{}
	for _, tool := range c.Tools {
		tools[tool.Name] = tool
	}
	for _, name := range []string{"echo", "get-sum", "get-env", "simulate-research-query",
		"trigger-long-running-operation"} {
		if tool, ok := tools[name]; !ok || tool.Description == "" || !json.Valid(tool.InputSchema) {
			t.Errorf("Catalog() has %q as %+v, want it with description and schema", name, tool)
		}
	}
	if got := tools["simulate-research-query"].TaskSupport; got != "required" || !c.TaskCalls {
		t.Errorf("TaskSupport of simulate-research-query = %q, TaskCalls = %v, want required, true", got, c.TaskCalls)
	}
	if c.Server != id || c.Instructions == "" {
		t.Errorf("Catalog() = %q %q, want id and instructions", c.Server, c.Instructions)
	}
	if got := mustCallText(t, p, id, "echo", `{"message":"hello"}`); got != "Echo: hello" {
		t.Errorf("echo = %q, want %q", got, "Echo: hello")
	}
	if got := mustCallText(t, p, id, "get-sum", `{"a":2,"b":40}`); !strings.Contains(got, "42") {
		t.Errorf("get-sum of 2 and 40 = %q, want 42 in it", got)
	}
}

// TestReferenceStdio uses every reference server, started by its file and by
// npx, which adds processes in between.
func TestReferenceStdio(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("buy cheese"), 0o600); err != nil {
		t.Fatal(err)
	}
	use := map[string]func(*testing.T, *Pool){
		"everything": func(t *testing.T, p *Pool) { useEverything(t, p, "everything") },
		"filesystem": func(t *testing.T, p *Pool) {
			arguments := fmt.Sprintf(`{"path":%q}`, filepath.Join(folder, "note.txt"))
			if got := mustCallText(t, p, "filesystem", "read_text_file", arguments); got != "buy cheese" {
				t.Errorf("read_text_file = %q, want the file's text", got)
			}
		},
		"memory": func(t *testing.T, p *Pool) {
			mustCallText(t, p, "memory", "create_entities",
				`{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]}]}`)
			if got := mustCallText(t, p, "memory", "read_graph", `{}`); !strings.Contains(got, "Ada") {
				t.Errorf("read_graph = %q, want Ada in it", got)
			}
		},
	}
	for _, name := range []string{"everything", "filesystem", "memory"} {
		for _, npx := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s npx=%v", name, npx), func(t *testing.T) {
				s := reference(t, name, npx)
				if name == "filesystem" {
					s.Args = append(s.Args, folder)
				}
				s.Env["MEMORY_FILE_PATH"] = filepath.Join(t.TempDir(), "memory.json")
				p := newPool(t, Options{}, s)
				if ids := processes(t, mark(t)); len(ids) > 0 {
					t.Errorf("processes %v run before the first use", ids)
				}
				if c, err := p.Catalog(t.Context(), name); err != nil || len(c.Tools) < 9 {
					t.Fatalf("Catalog() = %+v, %v, want 9 tools or more", c, err)
				}
				use[name](t, p)
				if ids := processes(t, mark(t)); len(ids) == 0 || npx && len(ids) < 2 {
					t.Errorf("processes %v run, want the server, and npx where it started it", ids)
				}
				closeInTime(t, p, mark(t))
			})
		}
	}
}

// TestReferenceHTTP uses server-everything over streamable HTTP and HTTP+SSE, and
// has it start again in between.
func TestReferenceHTTP(t *testing.T) {
	for _, tt := range []struct{ name, argument, transport, path string }{
		{"streamable", "streamableHttp", mcpsettings.HTTP, "/mcp"},
		{"sse", "sse", mcpsettings.SSE, "/sse"},
		{"sse that settings call http", "sse", mcpsettings.HTTP, "/sse"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			port := freePort(t)
			cmd := serveReference(t, tt.argument, port)
			p := newPool(t, Options{}, mcpsettings.Server{ID: "far", Transport: tt.transport,
				URL: "http://127.0.0.1:" + port + tt.path})
			useEverything(t, p, "far")
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			if _, err := p.Call(t.Context(), "far", "tools/call", toolCall("echo", `{"message":"x"}`)); !errors.Is(err,
				errkind.Unavailable) {
				t.Errorf("Call() with the server gone = %v, want it unavailable", err)
			}
			serveReference(t, tt.argument, port)
			useEverything(t, p, "far")
			begin := time.Now()
			if err := p.Close(t.Context()); err != nil || time.Since(begin) > 4*time.Second { // with roots, a server takes 5 s
				t.Errorf("Close() = %v after %v", err, time.Since(begin))
			}
		})
	}
}

// TestReferenceTasks calls a tool that is only called as a task.
func TestReferenceTasks(t *testing.T) {
	p := newPool(t, Options{}, reference(t, "everything", false))
	plain, err := p.Call(t.Context(), "everything", "tools/call",
		toolCall("simulate-research-query", `{"topic":"cheese"}`))
	if err != nil || !bytes.Contains(plain, []byte(`"isError":true`)) || !bytes.Contains(plain, []byte("task")) {
		t.Errorf("plain call = %s, %v, want a refusal that speaks of tasks", plain, err)
	}
	created, err := p.Call(t.Context(), "everything", "tools/call",
		json.RawMessage(`{"name":"simulate-research-query","arguments":{"topic":"cheese"},"task":{"ttl":60000}}`))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Task struct{ TaskID, Status string }
	}
	if err := json.Unmarshal(created, &answer); err != nil || answer.Task.TaskID == "" {
		t.Fatalf("call as a task = %s, %v, want a task", created, err)
	}
	params := json.RawMessage(fmt.Sprintf(`{"taskId":%q}`, answer.Task.TaskID))
	state, err := p.Call(t.Context(), "everything", "tasks/get", params)
	if err != nil || !bytes.Contains(state, []byte(`"status":"working"`)) {
		t.Errorf("tasks/get = %s, %v, want it working", state, err)
	}
	// tasks/result waits for the end of the task.
	result, err := p.Call(t.Context(), "everything", "tasks/result", params)
	if err != nil || !bytes.Contains(result, []byte("Research Report: cheese")) {
		t.Errorf("tasks/result = %s, %v, want the report", result, err)
	}
	state, err = p.Call(t.Context(), "everything", "tasks/get", params)
	if err != nil || !bytes.Contains(state, []byte(`"status":"completed"`)) {
		t.Errorf("tasks/get = %s, %v, want it completed", state, err)
	}
	closeInTime(t, p, mark(t))
}

// TestReferenceTime calls a tool that takes long: it is given up, cancelled, or
// waited for as long as it reports progress.
func TestReferenceTime(t *testing.T) {
	var log logBuffer
	debug := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := reference(t, "everything", false)
	s.Timeout = time.Second
	p := newPool(t, Options{Log: debug}, s)
	mustCallText(t, p, "everything", "echo", `{"message":"up"}`)

	long := func(ctx context.Context, seconds int, more string) (json.RawMessage, error) {
		return p.Call(ctx, "everything", "tools/call", json.RawMessage(fmt.Sprintf(
			`{"name":"trigger-long-running-operation","arguments":{"duration":%d,"steps":%d}%s}`, seconds, 4*seconds,
			more)))
	}
	if result, err := long(t.Context(), 2, ""); !errors.Is(err, errkind.Timeout) {
		t.Errorf("call of 2 s = %s, %v, want no answer within 1 s", result, err)
	}
	result, err := long(t.Context(), 2, `,"_meta":{"progressToken":"p"}`)
	if err != nil || !bytes.Contains(result, []byte("completed")) {
		t.Errorf("call of 2 s with progress = %s, %v, want its result", result, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(300*time.Millisecond, cancel)
	defer timer.Stop()
	begin := time.Now()
	if _, err := long(ctx, 20, ""); !errors.Is(err, context.Canceled) || time.Since(begin) > 10*time.Second {
		t.Errorf("cancelled call = %v after %v, want it cancelled after 300 ms", err, time.Since(begin))
	}
	mustCallText(t, p, "everything", "echo", `{"message":"still here"}`)
	if got := strings.Count(log.String(), "notifications/cancelled"); got != 2 {
		t.Errorf("%d calls were cancelled at the server, want the one that took too long and the one that was "+
			"cancelled", got)
	}
	closeInTime(t, p, mark(t))
}

// TestReferenceCrash kills the server in the middle of a call.
func TestReferenceCrash(t *testing.T) {
	for _, npx := range []bool{false, true} {
		t.Run(fmt.Sprintf("npx=%v", npx), func(t *testing.T) {
			var log logBuffer
			debug := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			p := newPool(t, Options{Log: debug}, reference(t, "everything", npx))
			mustCallText(t, p, "everything", "echo", `{"message":"up"}`)
			failed := make(chan error, 1)
			go func() {
				_, err := p.Call(t.Context(), "everything", "tools/call",
					toolCall("trigger-long-running-operation", `{"duration":20,"steps":1}`))
				failed <- err
			}()
			until(t, func() bool { return strings.Contains(log.String(), "trigger-long-running-operation") })
			begin := time.Now()
			for _, id := range processes(t, mark(t)) {
				pid, err := strconv.Atoi(id)
				if err != nil {
					t.Fatal(err)
				}
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have followed another
			}
			select {
			case err := <-failed:
				if !errors.Is(err, errkind.Unavailable) {
					t.Errorf("call of a server that was killed = %v, want it unavailable", err)
				}
			case <-time.After(5 * time.Second):
				t.Fatal("the call of a server that was killed does not end")
			}
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("the call failed %v after the server was killed", took)
			}
			if got := mustCallText(t, p, "everything", "echo", `{"message":"back"}`); got != "Echo: back" {
				t.Errorf("echo after the crash = %q", got)
			}
			closeInTime(t, p, mark(t))
		})
	}
}

// TestReferenceOrphans kills a program that uses the servers. It is that program
// itself where the variable is set.
func TestReferenceOrphans(t *testing.T) {
	const be = "KNOWHOW_REFERENCE_PARENT"
	servers := func(mark string) []mcpsettings.Server {
		var all []mcpsettings.Server
		for _, name := range []string{"everything", "memory"} {
			s := reference(t, name, name == "everything")
			s.Env = map[string]string{referenceMark: mark, "MEMORY_FILE_PATH": filepath.Join(t.TempDir(),
				"memory.json")}
			all = append(all, s)
		}
		return all
	}
	if mark := os.Getenv(be); mark != "" {
		p := New(Options{Servers: servers(mark)})
		for _, name := range []string{"everything", "memory"} {
			if _, err := p.Catalog(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Println("ready")
		select {} // until it is killed
	}
	references(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestReferenceOrphans$")
	cmd.Env = append(os.Environ(), be+"="+mark(t))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer killer.Stop()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the program says %q, %v, want it ready", line, err)
	}
	if ids := processes(t, mark(t)); len(ids) < 3 {
		t.Errorf("processes %v run, want npx and two servers", ids)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	gone(t, mark(t))
}
