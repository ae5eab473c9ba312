//go:build unix

package repository

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alive reports whether a process runs. A process that is not yet reaped is dead.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true // no /proc here, and the signal got through
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(rest, []byte("Z"))
}

// Neither git nor a program that it starts survives the end of the context, also if
// they ignore SIGTERM.
func TestStubbornGit(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"git and its child", "trap '' TERM\nsleep 300 &\necho $$ $! >pids.new\nmv pids.new pids\nwait\n"},
		{"its child alone", "(trap '' TERM; exec sleep 300) >/dev/null 2>&1 &\necho $$ $! >pids.new\nmv pids.new pids\nwait\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bin, dir := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n"+tc.script), 0o777); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var pids []int
			done := make(chan error, 1)
			c := Open(dir, Remote{URL: "https://example.com/r"}, os.Environ())
			go func() {
				_, err := c.Update(ctx)
				done <- err
			}()
			for len(pids) < 2 {
				data, _ := os.ReadFile(filepath.Join(dir, "pids"))
				for _, s := range strings.Fields(string(data)) {
					pid, err := strconv.Atoi(s)
					if err != nil {
						t.Fatal(err)
					}
					pids = append(pids, pid)
				}
				time.Sleep(time.Millisecond)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Update = %v, want %v", err, context.Canceled)
			}
			for _, pid := range pids {
				for end := time.Now().Add(time.Minute); alive(pid); time.Sleep(time.Millisecond) { // init reaps it
					if time.Now().After(end) {
						t.Errorf("process %d is alive after the end of its context", pid)
						_ = syscall.Kill(pid, syscall.SIGKILL)
						break
					}
				}
			}
		})
	}
}
