package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
)

// fakeKey is where a script's fake is kept.
type fakeKey struct{}

// A fakeFess is a script's fake Fess server, with a journal that others can
// wait for.
type fakeFess struct {
	*fesstest.Handler
	hang bool // requests for the health hang

	mu      sync.Mutex
	journal []string
	changed chan struct{} // closed with each new entry
}

// startFake serves a fake Fess on a loopback port until the script ends. The
// options are token=TOKEN, docs=N, content, path=PATH, hang: its health is
// never told, and page=ID=URL: a document with that address, whose text the
// server does not send. Who searches for "evilNAME" gets one of misdeeds.
func startFake(ts *testscript.TestScript, neg bool, args []string) {
	f := ts.Value(fakeKey{}).(*fakeFess)
	f.changed, f.journal = make(chan struct{}), nil
	o := fesstest.Options{Delay: f.delay}
	docs := 40
	var pages []document.Document
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "token":
			o.Token = value
		case "docs":
			docs, err = strconv.Atoi(value)
		case "content":
			o.SendContent = true
		case "hang":
			f.hang = true
		case "page":
			id, address, _ := strings.Cut(value, "=")
			pages = append(pages, farAway(id, address))
		case "path":
			o.ContextPath = value
		default:
			err = fmt.Errorf("unknown option %q", arg)
		}
		ts.Check(err)
	}
	f.Handler = fesstest.NewHandler(append(corpus(docs), pages...), o)
	mux := http.NewServeMux()
	mux.Handle("/", orMisdeed(f.Handler))
	mux.HandleFunc("/_wait", f.wait)
	mux.HandleFunc("/_note", func(_ http.ResponseWriter, r *http.Request) { f.note(r.URL.Query().Get("text")) })
	server := httptest.NewServer(mux)
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ts.Setenv("FESS_URL", server.URL+o.ContextPath)
	ts.Setenv("FESS_WAIT", server.URL+"/_wait")
	ts.Setenv("FESS_PORT", server.URL[strings.LastIndexByte(server.URL, ':')+1:])
}

// corpus returns n documents of label finance, of which the first has a long
// text, and two of label hr.
func corpus(n int) []document.Document {
	var docs []document.Document
	add := func(id, label, title, text string) {
		docs = append(docs, document.Document{
			ID: id, Label: label, Path: id + ".txt", URL: "https://intranet.example.com/" + label + "/" + id,
			Title: title, Text: text, Lang: "en", MIMEType: "text/plain", FileType: "txt", Filename: id + ".txt",
			Host: "intranet.example.com", Modified: time.Date(2026, 1, 1, 0, len(docs), 0, 0, time.UTC),
			Size: int64(len(text)),
		})
	}
	add("long", "finance", "The long ledger", ledger())
	for i := range n - 1 {
		add(fmt.Sprintf("doc%03d", i), "finance", fmt.Sprintf("Budget %03d", i), "A test budget, food and forecast.")
	}
	add("hr1", "hr", "Holidays", "A test of holidays.")
	add("hr2", "hr", "Salaries", "A test of salaries.")
	return docs
}

// farAway returns a document of label finance that is on the web.
func farAway(id, address string) document.Document {
	return document.Document{
		ID: id, Label: "finance", Path: id, URL: address, Title: "Page " + id,
		Text: strings.Repeat("What the index knows of it. ", 40),
		Lang: "en", MIMEType: "text/html", FileType: "html", Filename: id, Host: "web.example.com",
		Modified: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// ledger returns a text of about 10 KiB.
func ledger() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "Paragraph %03d of the ledger, with an é and a 日本.\n\n", i)
	}
	return strings.TrimSpace(b.String())
}

// checkLedger checks that the answers in stdout contain the ledger's text in so
// many chunks.
func checkLedger(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: checkledger N")
	}
	var text strings.Builder
	chunks := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var m struct {
			Result struct {
				Contents, Content []struct{ Text string }
			}
		}
		ts.Check(json.Unmarshal([]byte(line), &m))
		for _, c := range m.Result.Content {
			var inner struct{ Text string }
			ts.Check(json.Unmarshal([]byte(c.Text), &inner))
			m.Result.Contents = append(m.Result.Contents, inner)
		}
		for _, c := range m.Result.Contents {
			text.WriteString(c.Text)
			chunks++
		}
	}
	if text.String() != ledger() {
		ts.Fatalf("the chunks make up %d bytes, want the ledger's %d", text.Len(), len(ledger()))
	}
	if want := args[0]; strconv.Itoa(chunks) != want {
		ts.Fatalf("%d chunks, want %s", chunks, want)
	}
}

// delay notes each request in the journal, and delays those that search for
// "slow", and for the health if that is to hang, until their client gives up;
// those that search for "held" until the script says "release".
func (f *fakeFess) delay(r *http.Request) {
	f.note("got " + r.URL.RequestURI())
	switch q := r.URL.Query().Get("q"); {
	case strings.HasPrefix(q, "held"):
		f.hold(r)
	case strings.HasPrefix(q, "slow"), f.hang && strings.HasSuffix(r.URL.Path, "/health"):
		<-r.Context().Done()
		f.note("gone " + r.URL.Path)
	}
}

// hold waits for the word "release", or for the client to give up.
func (f *fakeFess) hold(r *http.Request) {
	if !f.await(r, "release") {
		f.note("gone " + r.URL.Path)
	}
}

// note appends to the journal.
func (f *fakeFess) note(entry string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.journal = append(f.journal, entry)
	close(f.changed)
	f.changed = make(chan struct{})
}

// wait answers when an entry of the journal contains the text in the query.
func (f *fakeFess) wait(_ http.ResponseWriter, r *http.Request) {
	f.await(r, r.URL.Query().Get("text"))
}

// await waits for an entry of the journal that contains a text; it returns false if
// the request has ended first.
func (f *fakeFess) await(r *http.Request, text string) bool {
	for {
		f.mu.Lock()
		found := strings.Contains(strings.Join(f.journal, "\n"), text)
		changed := f.changed
		f.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return false
		}
	}
}

// setFakeEngine changes the state of the fake's search engine.
func setFakeEngine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fessengine STATE")
	}
	ts.Value(fakeKey{}).(*fakeFess).SetEngine(args[0])
}

// writeFakeRequests writes a line for each request that the fake got, with the
// query decoded.
func writeFakeRequests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fessrequests FILE")
	}
	var b strings.Builder
	for _, r := range ts.Value(fakeKey{}).(*fakeFess).Requests() {
		query, err := url.QueryUnescape(r.Query)
		ts.Check(err)
		line := fmt.Sprintf("%s %s", r.Method, r.Path)
		if query != "" {
			line += "?" + query
		}
		if auth := r.Header.Get("Authorization"); auth != "" {
			line += " " + auth
		}
		fmt.Fprintln(&b, line)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// globFiles checks how many files match, and sets FILE to the first of them.
func globFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: glob N PATTERN")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	found, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(found) != want {
		ts.Fatalf("%d files match %s, want %d: %v", len(found), args[1], want, found)
	}
	if want > 0 {
		ts.Setenv("FILE", found[0])
	}
}

// makeOldFiles creates files that were last changed long ago.
func makeOldFiles(ts *testscript.TestScript, neg bool, args []string) {
	for _, arg := range args {
		path := ts.MkAbs(arg)
		ts.Check(os.WriteFile(path, []byte("old\n"), 0o600))
		ts.Check(os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)))
	}
}

// expandFile replaces $NAME in a file by the script's variables.
func expandFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: envfile FILE")
	}
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
