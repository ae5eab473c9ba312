package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// serveWeb serves the files of a folder on a loopback port until the script
// ends, each with the type that its name's ending says, and the long ledger as
// ledger.txt. Of a file whose name
// begins with "slow" the rest comes after the first line only when the script
// says "release" (@note). Requests are noted in the fake Fess's journal.
func serveWeb(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: webserver DIR")
	}
	f := ts.Value(fakeKey{}).(*fakeFess)
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	files := http.FileServer(http.Dir(ts.MkAbs(args[0])))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.note("got " + r.URL.Path)
		if r.URL.Path == "/ledger.txt" {
			fmt.Fprint(w, ledger())
			return
		}
		if strings.HasPrefix(r.URL.Path, "/slow") {
			w = &halting{ResponseWriter: w, halt: func() { f.hold(r) }}
		}
		files.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	ts.Setenv("WEB_URL", server.URL)
}

// halting is a response that halts after its first line.
type halting struct {
	http.ResponseWriter
	halt func()
}

func (h *halting) Write(b []byte) (int, error) {
	first := strings.IndexByte(string(b), '\n') + 1
	n, err := h.ResponseWriter.Write(b[:first])
	if err != nil {
		return n, err
	}
	if err := http.NewResponseController(h.ResponseWriter).Flush(); err != nil {
		return n, err
	}
	h.halt()
	m, err := h.ResponseWriter.Write(b[first:])
	return n + m, err
}

// checkProgress checks the progress notifications in stdout: that they have the
// token, that there are at least so many, that their values rise, that some
// came before an answer and some after it, and that the last one says done.
func checkProgress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: checkprogress TOKEN N")
	}
	least, err := strconv.Atoi(args[1])
	ts.Check(err)
	n, late, last, message, answered := 0, 0, -1.0, "", false
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var m struct {
			Method string
			Params struct {
				ProgressToken any
				Progress      float64
				Message       string
			}
		}
		ts.Check(json.Unmarshal([]byte(line), &m))
		if m.Method != "notifications/progress" {
			answered = n > 0
			continue
		}
		if m.Params.ProgressToken != args[0] || m.Params.Progress <= last {
			ts.Fatalf("%s came after progress %v", strings.TrimSpace(line), last)
		}
		n++
		if answered {
			late++
		}
		last, message = m.Params.Progress, m.Params.Message
	}
	if n < least || message != "done" || late == 0 || late == n {
		ts.Fatalf("%d notifications, %d of them after an answer, the last one says %q; want at least %d, some of them after it, and done",
			n, late, message, least)
	}
}
