package logfile

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRetention lets days pass: our old files go at start and daily, others
// stay.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ages := map[string]int{ // in days at the start
			"server-2026-01-02_03-04-05.log":       8,
			"server-2026-01-02_03-04-05-2.log":     6,
			"2026-01-02_03-04-05_server.log":       8,
			"2026-01-02_03-04-05-12_server.log":    5,
			"server.log.lock":                      99,
			"my-server-2026-01-02_03-04-05.log":    99,
			"server-2026-01-02_03-04-05.log.gz":    99,
			"2026-01-02_03-04-05_server.log.bak":   99,
			"2026-01-02_server.log":                99,
			"x2026-01-02_03-04-05_server.log":      99,
			"server-2026-01-02_03-04-05-extra.log": 99,
		}
		for name, days := range ages {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			at := time.Now().AddDate(0, 0, -days)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		folder := filepath.Join(dir, "server-2020-01-02_03-04-05.log")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		l := Open(Options{Dir: dir, Debug: true, RetainDays: 7})
		defer l.Close()
		for day, want := range [][]string{
			{"2026-01-02_03-04-05-12_server.log", "server-2026-01-02_03-04-05-2.log"},
			{"2026-01-02_03-04-05-12_server.log", "server-2026-01-02_03-04-05-2.log"},
			{"2026-01-02_03-04-05-12_server.log"},
			{},
		} {
			got := []string{}
			for _, name := range logs(t, dir) {
				if ours.MatchString(name) && name != filepath.Base(l.path) && name != filepath.Base(folder) {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("logs after day %d differ (-want +got):\n%s", day, diff)
			}
			time.Sleep(cleanInterval + time.Minute)
			synctest.Wait()
		}
		for name := range ages {
			if _, err := os.Stat(filepath.Join(dir, name)); !ours.MatchString(name) && err != nil {
				t.Errorf("a file that is not ours is gone: %v", err)
			}
		}
		if _, err := os.Stat(l.path); err != nil {
			t.Errorf("the log in use is gone: %v", err)
		}
	})
}

// TestRetentionOff checks that 0 days keep everything.
func TestRetentionOff(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "server-2001-01-02_03-04-05.log")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	Open(Options{Dir: dir}).Close()
	if _, err := os.Stat(old); err != nil {
		t.Errorf("RetainDays 0 deleted a log: %v", err)
	}
}
