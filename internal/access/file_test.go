package access_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/access"
)

// hash returns the hash of a token, as in an access file.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// age makes a file look as if it was changed an hour ago, so that its state alone tells
// whether it has changed.
func age(t testing.TB, path string) {
	t.Helper()
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func TestRights(t *testing.T) {
	path := write(t, `{"users":{"ann":{"sha256":"`+hash("t1")+`","read":["docs","docs","a"],"write":["notes"]},
		"bob":{"sha256":"`+strings.ToUpper(hash("t2"))+`","admin":true},"carl":{"read":["hr"]}},
		"groups":{"staff":{"read":["docs"]},"editors":{"read":["docs","wiki"],"write":["wiki"]},"ann":{"read":["*"]}}}`)
	f := access.Open(path, nil)
	rights := func(c *access.Caller) string {
		if c == nil {
			return "nobody"
		}
		return fmt.Sprint(c.ID, " ", c.Name, " ", c.Read, " ", c.Write, " ", c.Admin)
	}
	for token, want := range map[string]string{"t1": "ann " + hash("t1")[:12] + " ann [a docs] [notes] false",
		"t2": "bob " + hash("t2")[:12] + " bob [] [] true",
		"":   "nobody", "t3": "nobody", hash("t1"): "nobody", "ann": "nobody"} {
		if got := rights(f.ByToken(token)); got != want {
			t.Errorf("ByToken(%q) = %s, want %s", token, got, want)
		}
	}
	tests := []struct {
		subject string
		groups  []string
		want    string
	}{
		{"carl", nil, "oauth:carl carl [hr] [] false"},
		{"carl", []string{"staff", "editors", "staff", "?"}, "oauth:carl carl [docs hr wiki] [wiki] false"},
		{"ann", nil, "oauth:ann ann [] [] false"}, // that user has a token
		{"ann", []string{"staff"}, "oauth:ann ann [docs] [] false"},
		{"new", []string{"ann"}, "oauth:new new [*] [] false"},
		{"staff", []string{"carl"}, "oauth:staff staff [] [] false"},
		{"", []string{"staff"}, "nobody"},
	}
	for _, tt := range tests {
		if got := rights(f.OfIssuer(tt.subject, tt.groups)); got != tt.want {
			t.Errorf("OfIssuer(%q, %q) = %s, want %s", tt.subject, tt.groups, got, tt.want)
		}
	}
}

// TestStates checks that each call sees the present file, whatever happens to it, and
// that the log says so once.
func TestStates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	one := `{"users":{"ann":{"sha256":"` + hash("t1") + `","read":["a"]}}}`
	two := `{"users":{"ann":{"sha256":"` + hash("t1") + `","read":["b"]}}}`
	put := func(text string) func() {
		return func() {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	steps := []struct {
		name   string
		do     func()
		read   string // the labels that the user may read
		nobody bool
		same   bool // the content is that of the step before
		log    string
	}{
		{"no file", func() {}, "", true, true, ""}, // the caller of Open says so
		{"file", put(one), "a", false, false, "can be used again"},
		{"same size, same second", put(two), "b", false, false, "has changed"},
		{"nothing", func() {}, "b", false, true, ""},
		{"same content", put(two), "b", false, true, ""},
		{"old", func() { age(t, path) }, "b", false, true, ""},
		{"written in place", put(one), "a", false, false, "has changed"},
		{"damaged", put(one[:len(one)-1]), "", true, false, "access.json:1:108: invalid JSON"},
		{"still damaged", func() { age(t, path) }, "", true, true, ""},
		{"damaged otherwise", put(`{"users":[]}`), "", true, false, "got a list"},
		{"empty", put(""), "", true, false, "the file is empty"},
		{"well", put(one), "a", false, false, "can be used again"},
		{"gone", func() { _ = os.Remove(path) }, "", true, false, "reading the access file: "},
		{"still gone", func() {}, "", true, true, ""},
		{"a folder", func() { _ = os.Mkdir(path, 0o700) }, "", true, false, "not a file"},
		{"back", func() { _ = os.Remove(path); put(two)() }, "b", false, false, "can be used again"},
		{"user removed", put(`{"users":{}}`), "", true, false, "has changed"},
	}
	var log bytes.Buffer
	f := access.Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	version := f.Version()
	for _, step := range steps {
		step.do()
		read := ""
		for range 3 {
			if c := f.ByToken("t1"); (c == nil) != step.nobody {
				t.Errorf("%s: the user is %v", step.name, c)
			} else if c != nil {
				read = strings.Join(c.Read, " ")
			}
		}
		if read != step.read {
			t.Errorf("%s: the user may read %q, want %q", step.name, read, step.read)
		}
		if (f.Err() != nil) != (step.nobody && step.name != "user removed") {
			t.Errorf("%s: Err = %v", step.name, f.Err())
		}
		if (f.OfIssuer("x", nil) == nil) != (f.Err() != nil) {
			t.Errorf("%s: a user of the issuer is %v", step.name, f.OfIssuer("x", nil))
		}
		if now := f.Version(); (now == version) != step.same || now < version {
			t.Errorf("%s: version %d after %d", step.name, now, version)
		} else {
			version = now
		}
		lines := strings.Count(log.String(), "\n")
		if want := min(1, len(step.log)); lines != want || !strings.Contains(log.String(), step.log) {
			t.Errorf("%s: the log has %q, want %q", step.name, log.String(), step.log)
		}
		log.Reset()
	}
}

// TestUnchangedTime checks that a change is seen that leaves the size and the time of the
// file as they are, if the file was replaced.
func TestUnchangedTime(t *testing.T) {
	path := write(t, `{"users":{"a":{"read":["x"]}}}`)
	age(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f := access.Open(path, nil)
	next := write(t, `{"users":{"a":{"read":["y"]}}}`)
	if err := os.Chtimes(next, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	if got := f.OfIssuer("a", nil).Read; !slices.Equal(got, []string{"y"}) {
		t.Errorf("the user may read %q after the file was replaced", got)
	}
}

// TestHalfWritten checks that no part of a file admits anybody.
func TestHalfWritten(t *testing.T) {
	whole := `{"groups":{"g":{"read":["*"]}},"users":{"ann":{"sha256":"` + hash("t1") + `","read":["*"]},"bob":{"read":["*"]}}}`
	path := write(t, "")
	f := access.Open(path, nil)
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, []byte(whole[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		if in := f.ByToken("t1") != nil || f.OfIssuer("bob", []string{"g"}) != nil; in != (n == len(whole)) {
			t.Errorf("%d of %d bytes admit somebody: %v", n, len(whole), in)
		}
	}
}

func TestModeIsLogged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	path := write(t, `{"users":{"a":{"read":["x"]}}}`)
	var log bytes.Buffer
	f := access.Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	for _, step := range []struct {
		mode os.FileMode
		want bool
	}{{0o600, false}, {0o640, true}, {0o644, false}, {0o600, false}, {0o604, true}} {
		if err := os.Chmod(path, step.mode); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if c := f.OfIssuer("a", nil); c == nil || !c.MayRead("x") {
				t.Errorf("mode %v: the user is %v", step.mode, c)
			}
		}
		if got := strings.Count(log.String(), "0600"); (got == 1) != step.want || got > 1 {
			t.Errorf("mode %v: the log has %q", step.mode, log.String())
		}
		log.Reset()
	}
}

// TestConcurrent checks that callers have the rights of one content or of the other while
// the file is replaced, and those of the new one as soon as it is there.
func TestConcurrent(t *testing.T) {
	path := write(t, `{}`)
	edit := func(n int) {
		err := access.Edit(context.Background(), path, func(c *access.Content) error {
			label := fmt.Sprint(n)
			c.Users = []access.User{{Name: "a", SHA256: hash("t"), Read: []string{label, "x"}, Write: []string{label}}}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	edit(0)
	f := access.Open(path, nil)
	var done sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		done.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c := f.ByToken("t"); c == nil || len(c.Read) != 2 || c.Read[0] != c.Write[0] {
					t.Errorf("the user is %v", c)
					return
				}
			}
		})
	}
	for n := range 50 {
		edit(n)
		if got, want := f.ByToken("t").Write, []string{fmt.Sprint(n)}; !cmp.Equal(got, want) {
			t.Errorf("after the edit, the user may write %q, want %q", got, want)
		}
	}
	close(stop)
	done.Wait()
}

// BenchmarkByToken measures what a request pays for the access file.
func BenchmarkByToken(b *testing.B) {
	for _, users := range []int{50, 10_000} {
		b.Run(fmt.Sprint(users), func(b *testing.B) {
			path := write(b, `{}`)
			err := access.Edit(context.Background(), path, func(c *access.Content) error {
				for i := range users {
					c.Users = append(c.Users, access.User{Name: fmt.Sprint("u", i), SHA256: hash(fmt.Sprint(i)),
						Read: []string{"docs", "wiki"}})
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			age(b, path)
			f := access.Open(path, nil)
			for b.Loop() {
				if f.ByToken("7") == nil {
					b.Fatal("nobody")
				}
			}
		})
	}
}

// BenchmarkRead measures how long it takes to read a file.
func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"users":{`)
	for i := range 40_000 {
		fmt.Fprintf(&text, `%q:{"sha256":%q,"read":["docs","wiki"]},`, fmt.Sprint("u", i), hash(fmt.Sprint(i)))
	}
	text.WriteString(`"last":{}}}`)
	path := write(b, text.String())
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := access.Read(path); err != nil {
			b.Fatal(err)
		}
	}
}
