package kb_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestFullDisk fills the disk of a base. What was accepted is not lost: it is done
// when there is space again. Without it, additions are refused with a clear error.
func TestFullDisk(t *testing.T) {
	dir := disk(t, 0)
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	logged := make(chan struct{}, 100)
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir, Version: "test",
		Log: slog.New(slog.NewTextHandler(signalling(logged), nil))})
	add := func(n int) (int64, error) {
		var text strings.Builder
		for i := range 40_000 {
			fmt.Fprintf(&text, "word%d ", (i*7919+n*104729)%1_000_003)
		}
		return b.AddFile(t.Context(), kb.File{Filename: fmt.Sprintf("%d.txt", n)}, strings.NewReader(text.String()))
	}
	var accepted []int64
	for n := range 4 {
		job, err := add(n)
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, job)
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	info, err := os.Stat(filler)
	if err == nil {
		err = os.Truncate(filler, info.Size()-200<<10) // enough to claim a job
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	defer func() {
		cancel()
		running.Wait()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	<-logged // it has tried
	if _, err := add(99); !errors.Is(err, errkind.Unavailable) || !strings.Contains(err.Error(), "disk") ||
		strings.Contains(err.Error(), dir) {
		t.Errorf("adding to a full disk: %v, want a full disk, of kind Unavailable, without a path", err)
	}
	<-logged
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for _, job := range accepted {
		if j := kbtest.Await(t, b, job); j.Status != kb.Done {
			t.Errorf("with free space, job %d of %d is %s: %s", job, len(accepted), j.Status, j.Error)
		}
	}
}

// TestFullDiskRemembered checks that indexing that has stopped because the disk is
// full is remembered on that disk.
func TestFullDiskRemembered(t *testing.T) {
	dir := disk(t, 0)
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.AddSource(t.Context(), document.Source{Label: "docs", Path: "/docs"}); err != nil {
		t.Fatal(err)
	}
	p := index.Progress{Label: "docs", Done: 1, Total: 3}
	if err := x.SetProgress(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	for range 1000 { // until the file of the index is full, too
		if err := x.SetProgress(t.Context(), p); errors.Is(err, errkind.DiskFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	p.Stopped = search.DiskFull
	if err := x.SetProgress(t.Context(), p); err != nil {
		t.Errorf("SetProgress(%+v) on a full disk = %v", p, err)
	}
	got, err := x.Unfinished(t.Context(), nil)
	if want := (search.Unfinished{Label: "docs", Done: 1, Total: 3, Stop: search.DiskFull}); err != nil ||
		len(got) != 1 ||
		got[0] != want {
		t.Errorf("Unfinished() = %+v, %v, want %+v", got, err, want)
	}
}

// signalling is a writer that sends a signal for each line.
type signalling chan struct{}

func (s signalling) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}

// TestReadOnlyDisk checks the error for a data folder that cannot be written.
func TestReadOnlyDisk(t *testing.T) {
	dir := disk(t, syscall.MS_RDONLY)
	_, err := index.Open(t.Context(), index.Options{Dir: dir})
	if !errors.Is(err, errkind.Denied) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(),
		"choose another") {
		t.Errorf("Open() on a read-only disk = %v, want Denied, with the path and what to do", err)
	}
}

// disk mounts a small file system until the test ends.
func disk(t *testing.T, flags uintptr) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "size=16m"); err != nil {
		if os.Geteuid() == 0 && os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("needs the permission to mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestRefusedFileIsClosed checks that a file that is not accepted, and is removed,
// takes no space on the disk, which it would do as long as it is open.
func TestRefusedFileIsClosed(t *testing.T) {
	dir := t.TempDir()
	b, _ := open(t, dir)
	broken := errors.New("the sender is gone")
	if _, err := b.AddFile(t.Context(), kb.File{Filename: "a.txt"}, iotest.ErrReader(broken)); err == nil {
		t.Fatal("a file that was cut off was accepted")
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		// The descriptor of ReadDir is closed. The sweep opens files for reading.
		name, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || !strings.HasPrefix(name, kb.Incoming(dir)) {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		if m := regexp.MustCompile(`flags:\s+[0-7]*([0-7])\n`).FindSubmatch(info); err == nil && m != nil && m[1][0]&3 != 0 {
			t.Errorf("%s is open", name)
		}
	}
	left, err := os.ReadDir(kb.Incoming(dir))
	if err != nil || len(left) > 0 {
		t.Errorf("the staging folder has %v, %v, want no files", left, err)
	}
}
