package site

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A testSite is a web server on connections in memory, in a bubble of synctest, so that
// waiting costs no time.
type testSite struct {
	t       *testing.T
	dir     string                                            // of the mirror
	pages   map[string]string                                 // by address without the host: pages in HTML
	handle  func(w http.ResponseWriter, r *http.Request) bool // before pages; reports whether it has answered
	robots  string
	address string // of the source
	stop    func()

	handlers sync.WaitGroup
	mu       sync.Mutex
	requests []request
	running  int
	most     int // requests at a time
	dialed   map[string]bool
	conns    chan net.Conn
}

// A request is a request that a testSite got.
type request struct {
	at          time.Time
	path        string
	conditional bool
	agent       string
}

func newTestSite(t *testing.T) *testSite {
	s := &testSite{t: t, dir: t.TempDir(), pages: map[string]string{}, address: "http://h.example/docs/",
		conns: make(chan net.Conn), dialed: map[string]bool{}}
	server := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(&pipeListener{conns: s.conns, closed: make(chan struct{})})
	}()
	s.stop = sync.OnceFunc(func() {
		server.Close()
		s.handlers.Wait()
		<-done
	})
	t.Cleanup(s.stop)
	return s
}

// A pipeListener accepts the connections of a channel.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// LookupNetIP resolves each name to an address in a private network.
func (s *testSite) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("10.0.0.5")}, nil
}

func (s *testSite) dial(ctx context.Context, _, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dialed[address] = true
	s.mu.Unlock()
	client, server := net.Pipe()
	select {
	case s.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHTTP serves pages with an ETag.
func (s *testSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()
	s.mu.Lock()
	s.requests = append(s.requests, request{time.Now(), r.URL.RequestURI(),
		r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "", r.UserAgent()})
	s.running++
	s.most = max(s.most, s.running)
	page, ok := s.pages[r.URL.RequestURI()]
	robots, handle := s.robots, s.handle
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	switch {
	case handle != nil && handle(w, r):
	case r.URL.Path == "/robots.txt" && robots != "":
		io.WriteString(w, robots)
	case !ok:
		http.NotFound(w, r)
	default:
		tag := fmt.Sprintf(`"%x"`, nanoseconds([]byte(page)))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	}
}

// open opens the mirror.
func (s *testSite) open() *Mirror {
	s.t.Helper()
	src, err := Parse(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := Open(s.dir, src, Options{Version: "1.2", Hosts: &Hosts{}, Dial: s.dial, Resolver: s})
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// round runs a round and returns the paths of the documents, and why others are none.
func (s *testSite) round(o RoundOptions) (docs []string, left map[string]Reason, err error) {
	s.t.Helper()
	m := s.open()
	defer m.Close()
	s.mu.Lock()
	s.requests = nil
	s.mu.Unlock()
	err = m.Round(s.t.Context(), o)
	left = map[string]Reason{}
	for _, l := range m.Left() {
		left[l.Path] = l.Reason
	}
	snapshot := m.Snapshot(o)
	for file, d := range snapshot.documents {
		docs = append(docs, d.Path)
		if _, err := os.Stat(filepath.Join(snapshot.Root, file)); err != nil {
			s.t.Error(err)
		}
	}
	slices.Sort(docs)
	return docs, left, err
}

// check runs a round, and compares its documents and what is left out.
func (s *testSite) check(step string, o RoundOptions, docs []string, left map[string]Reason) {
	s.t.Helper()
	gotDocs, gotLeft, err := s.round(o)
	if err != nil {
		s.t.Errorf("%s: %v", step, err)
	}
	if diff := cmp.Diff(docs, gotDocs); diff != "" {
		s.t.Errorf("%s: documents (-want +got):\n%s", step, diff)
	}
	if left == nil {
		left = map[string]Reason{}
	}
	if diff := cmp.Diff(left, gotLeft); diff != "" {
		s.t.Errorf("%s: left out (-want +got):\n%s", step, diff)
	}
}

// asked returns how often each page was asked for, without the files about the site.
func (s *testSite) asked() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, r := range s.requests {
		if !strings.HasSuffix(r.path, ".txt") && !strings.HasSuffix(r.path, "/sitemap.xml") {
			n[r.path]++
		}
	}
	return n
}

func (s *testSite) set(path, page string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = page
}

func (s *testSite) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, path)
}

// bubble runs a test in a bubble with a site.
func bubble(t *testing.T, f func(t *testing.T, s *testSite)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newTestSite(t)) })
}

// text returns a page with a text and links.
func text(words string, links ...string) string {
	for _, l := range links {
		words += fmt.Sprintf(` <a href="%s">link</a>`, l)
	}
	return "<!doctype html><title>" + words[:min(len(words), 10)] + "</title><p>" + words
}

// A large site with all kinds of traps is read completely, each page once, within the
// limits, and again with conditional requests only.
func TestTraps(t *testing.T) {
	const count = 2000
	bubble(t, func(t *testing.T, s *testSite) {
		s.robots = "User-agent: *\nDisallow: /docs/private/\nSitemap: http://h.example/maps/index.xml\n" +
			"Sitemap: http://elsewhere.example/sitemap.xml\n"
		var docs []string
		add := func(path, words string, links ...string) {
			s.set("/docs/"+path, text(words, links...))
			docs = append(docs, path)
		}
		for i := range count {
			add(fmt.Sprintf("p/%04d", i), fmt.Sprint("The page with number ", i), fmt.Sprintf("%04d#part", i+1),
				fmt.Sprintf("./%04d?utm_source=x", i-1), "/docs/", "http://elsewhere.example/", "/other/page", "../../up")
		}
		s.set("/docs/", text("The first page", "loop/a", "calendar/0", "session?a=1", "charset", "slow", "broken", "bomb",
			"private/x", "gone", "copy", "copy/", "copy/index.html", "away", "moved", "tokens?tok=1", "print?page=copy",
			"p/0000", "picture.png", "pixel", "huge", "no-link", "chain/0", "flaky", "login"))
		docs = append(docs, "index", "charset", "session?a=1", "copy", "moved/here", "tokens", "flaky", "no-text-type")
		for i := range maxDepth { // the first is one link away
			docs = append(docs, fmt.Sprint("calendar/", i))
		}
		for i := range 40 { // links with another session each time
			s.set(fmt.Sprint("/docs/tokens?tok=", i), text("Tokens", fmt.Sprint("?tok=", i+1)))
		}
		s.set("/docs/tokens", text("Tokens", "?tok=0"))
		for _, p := range []string{"copy", "copy/", "copy/index.html"} {
			s.set("/docs/"+p, text("The same text"))
		}
		s.set("/docs/print?page=copy", `<title>The same t</title><link rel=canonical href=/docs/copy><p>To print: the same text`)
		s.set("/docs/moved/here", text("Moved"))
		bomb := zipped(t, strings.Repeat("a", maxBody+1))
		flaky := 0
		s.handle = func(w http.ResponseWriter, r *http.Request) bool {
			switch p := strings.TrimPrefix(r.URL.Path, "/docs/"); {
			case r.URL.Path == "/maps/index.xml":
				io.WriteString(w, `<sitemapindex><sitemap><loc>/maps/1.xml.gz</loc></sitemap><sitemap><loc>/maps/index.xml</loc>
					</sitemap></sitemapindex>`)
			case r.URL.Path == "/maps/1.xml.gz":
				z := gzip.NewWriter(w)
				fmt.Fprint(z, "<urlset><url><loc>http://h.example/other/page</loc></url>")
				for i := range count / 2 {
					fmt.Fprintf(z, "<url><loc>http://h.example/docs/p/%04d</loc></url>", 2*i)
				}
				fmt.Fprint(z, "</urlset>")
				z.Close()
			case r.URL.Path == "/docs/llms.txt":
				io.WriteString(w, "# Docs\n- [Page](http://h.example/docs/no-text-type)\n")
			case p == "no-text-type":
				w.Header().Set("Content-Type", "text/markdown")
				io.WriteString(w, "# Only in llms.txt\n[next](p/0001)")
			case p == "loop/a":
				http.Redirect(w, r, "/docs/loop/b", http.StatusMovedPermanently)
			case p == "loop/b":
				http.Redirect(w, r, "/docs/loop/a", http.StatusFound)
			case strings.HasPrefix(p, "chain/"):
				n, _ := strconv.Atoi(p[len("chain/"):])
				http.Redirect(w, r, fmt.Sprint("/docs/chain/", n+1), http.StatusFound)
			case p == "login":
				http.Redirect(w, r, "/docs/login", http.StatusFound)
			case p == "away":
				http.Redirect(w, r, "http://169.254.169.254/secret", http.StatusFound)
			case p == "moved":
				http.Redirect(w, r, "moved/here", http.StatusMovedPermanently)
			case strings.HasPrefix(p, "calendar/"):
				n, _ := strconv.Atoi(p[len("calendar/"):])
				io.WriteString(w, text(fmt.Sprint("Day ", n), fmt.Sprint(n+1)))
			case p == "session":
				// A new session in each link.
				io.WriteString(w, text("Session", fmt.Sprintf("session?a=1&PHPSESSID=%d", time.Now().UnixNano()),
					fmt.Sprintf("session;jsessionid=%d?a=1", time.Now().UnixNano())))
			case p == "charset":
				w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
				io.WriteString(w, text("Größe"))
			case p == "slow":
				w.(http.Flusher).Flush()
				for r.Context().Err() == nil {
					time.Sleep(time.Second)
					io.WriteString(w, "a")
					w.(http.Flusher).Flush()
				}
			case p == "broken":
				http.Error(w, "broken", http.StatusInternalServerError)
			case p == "flaky":
				if flaky++; flaky == 1 {
					w.Header().Set("Retry-After", "60")
					http.Error(w, "busy", http.StatusServiceUnavailable)
					return true
				}
				return false
			case p == "bomb":
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "text/html")
				io.WriteString(w, bomb)
			case p == "huge":
				w.Header().Set("Content-Length", strconv.Itoa(maxBody+1))
			case p == "pixel":
				w.Header().Set("Content-Type", "image/gif")
				io.WriteString(w, "GIF")
			default:
				return false
			}
			return true
		}
		s.set("/docs/flaky", text("Flaky"))
		slices.Sort(docs)
		left := map[string]Reason{"loop/a": Circle, "loop/b": Circle, "chain/5": Circle, "login": Circle, "away": Outside,
			"slow": Unanswered, "broken": Answered(500), "bomb": TooLarge, "huge": TooLarge, "private/x": Forbidden,
			"gone": Answered(404), "no-link": Answered(404), "picture.png": NoText, "pixel": NoText,
			fmt.Sprintf("p/%04d", count): Answered(404), "p/-001": Answered(404), "calendar/100": TooDeep}
		for _, p := range []string{"chain/0", "chain/1", "chain/2", "chain/3", "chain/4"} {
			left[p] = Circle
		}
		s.check("first round", RoundOptions{}, docs, left)
		retried := map[string]bool{"/docs/slow": true, "/docs/broken": true, "/docs/flaky": true}
		for p, n := range s.asked() {
			if n > 1 && (!retried[p] || n > 2) {
				t.Errorf("%s was asked for %d times", p, n)
			}
		}
		s.checkPace()
		if diff := cmp.Diff(map[string]bool{"10.0.0.5:80": true}, s.dialed); diff != "" {
			t.Errorf("connections (-want +got):\n%s", diff)
		}
		if n := len(s.requests); n > count+250 {
			t.Errorf("%d requests for %d pages", n, len(docs))
		}

		s.check("second round", RoundOptions{}, docs, left)
		for _, r := range s.requests {
			p := strings.TrimPrefix(r.path, "/docs/")
			if strings.HasPrefix(p, "p/") && left[p] == "" && r.path != "/docs/p/" && !r.conditional {
				t.Errorf("%s was asked for without a condition", r.path)
			}
		}

		// Changes: robots.txt, a page, a new page, pages that are gone.
		s.mu.Lock()
		s.robots = "User-agent: knowhow\nDisallow: /docs/p/1\n"
		s.mu.Unlock()
		s.set("/docs/p/0000", text("Changed", "new"))
		s.set("/docs/p/new", text("New"))
		s.remove("/docs/p/0001")
		docs, _, err := s.round(RoundOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for p, want := range map[string]bool{"p/new": true, "p/0001": true, "p/1000": false, "p/1999": false, "p/0999": true} {
			if slices.Contains(docs, p) != want {
				t.Errorf("third round: %s is a document: %v", p, !want)
			}
		}
		docs, _, err = s.round(RoundOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(docs, "p/0001") {
			t.Error("fourth round: p/0001 is still a document")
		}
		s.stop()
	})
}

// checkPace checks the number of requests at a time and a second.
func (s *testSite) checkPace() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > maxRequests {
		s.t.Errorf("%d requests at a time", s.most)
	}
	for i, r := range s.requests {
		if i >= 4 && r.at.Sub(s.requests[i-4].at) < time.Second {
			s.t.Fatalf("more than four requests a second: %v", s.requests[i-4:i+1])
		}
		if want := "knowhow/1.2 (+https://github.com/knowhow-mcp/knowhow/blob/main/docs/sources.md)"; r.agent != want {
			s.t.Fatalf("User-Agent: %s, want %s", r.agent, want)
		}
	}
}

// A page that fails stays until it is gone in two rounds one after the other.
func TestGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *testSite) {
		s.set("/docs/", text("First", "a", "b", "c"))
		for _, p := range []string{"a", "b", "c"} {
			s.set("/docs/"+p, text("Page "+p))
		}
		all := []string{"a", "b", "c", "index"}
		s.check("first", RoundOptions{}, all, nil)
		status, location := 500, ""
		s.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/docs/a" || status == 200 {
				return false
			}
			w.Header().Set("Location", location)
			w.WriteHeader(status)
			return true
		}
		for _, step := range []struct {
			status   int
			location string
			stays    bool
		}{
			{500, "", true}, {404, "", true}, {503, "", true}, {403, "", true}, {200, "", true}, {410, "", true}, {200, "", true},
			{302, "http://login.example/", true}, {302, "/docs/b", true}, {200, "", true}, {302, "/docs/a", true},
			{404, "", true}, {403, "", true}, {404, "", true}, {500, "", true}, {410, "", true}, {302, "/docs/a", true},
			{410, "", true}, {404, "", false}, {200, "", true}, {301, "/docs/b", false},
		} {
			status, location = step.status, step.location
			docs, _, err := s.round(RoundOptions{})
			if err != nil || slices.Contains(docs, "a") != step.stays {
				t.Errorf("status %d %s: documents %v, %v, want a: %v", step.status, step.location, docs, err, step.stays)
			}
		}
		s.stop()
	})
}

// While robots.txt fails, nothing is asked for, and nothing is removed.
func TestRobotsUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T, s *testSite) {
		s.set("/docs/", text("First"))
		s.check("first", RoundOptions{}, []string{"index"}, nil)
		status := 0
		s.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/robots.txt" {
				return false
			}
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Location", "http://elsewhere.example/robots.txt")
			w.WriteHeader(status)
			return true
		}
		for _, status = range []int{0, 500, 503, 429, 302} {
			docs, _, err := s.round(RoundOptions{})
			if err == nil || !slices.Equal(docs, []string{"index"}) || len(s.requests) != 1 && status != 0 {
				t.Errorf("robots.txt with status %d: %v, %v, %d requests", status, docs, err, len(s.requests))
			}
		}
		status = 403
		s.check("forbidden robots.txt", RoundOptions{}, []string{"index"}, nil)
		s.stop()
	})
}

// A page that another one names as its canonical page is asked for, although no link
// leads to it, and is the document. A page whose canonical page does not exist, is
// outside of the site, or is excluded stays a document.
func TestCanonical(t *testing.T) {
	bubble(t, func(t *testing.T, s *testSite) {
		canonical := func(path, address, words string) {
			s.set(path, `<link rel=canonical href="`+address+`">`+text(words))
		}
		s.set("/docs/", text("First", "short", "print", "lost", "away", "self", "hidden"))
		canonical("/docs/short", "/docs/long/page.html", "The same page")
		canonical("/docs/long/page.html", "/docs/long/page.html", "The same page")
		canonical("/docs/print", "/docs/screen", "A page to print")
		canonical("/docs/screen", "/docs/screen", "A page to p, with more around it")
		canonical("/docs/lost", "/docs/nowhere", "Lost")
		canonical("/docs/away", "http://elsewhere.example/docs/away", "Away")
		canonical("/docs/self", "/docs/self?utm_source=x", "Self")
		canonical("/docs/hidden", "/docs/secret/hidden", "Hidden")
		for _, step := range []string{"first", "again"} {
			s.check(step, RoundOptions{Exclude: []string{"secret"}},
				[]string{"away", "hidden", "index", "long/page.html", "lost", "screen", "self"},
				map[string]Reason{"nowhere": Answered(404), "secret/hidden": Excluded})
		}
		if len(s.dialed) != 1 {
			t.Errorf("the hosts that were asked are %v", s.dialed)
		}
		canonical("/docs/lost", "/docs/found", "Lost")
		canonical("/docs/found", "/docs/found", "Lost")
		s.check("only the canonical page has changed", RoundOptions{Exclude: []string{"secret"}},
			[]string{"away", "found", "hidden", "index", "long/page.html", "screen", "self"},
			map[string]Reason{"secret/hidden": Excluded})
		s.stop()
	})
}

// The rules of the source apply to the paths of documents.
func TestRules(t *testing.T) {
	bubble(t, func(t *testing.T, s *testSite) {
		s.set("/docs/", text("First", "a/1", "b/1", "c.html?x=1"))
		for _, p := range []string{"a/1", "a/2", "b/1", "b/2", "c.html?x=1"} {
			s.set("/docs/"+p, text("Page "+p, "2"))
		}
		s.check("exclude", RoundOptions{Exclude: []string{"/b/"}}, []string{"a/1", "a/2", "c.html?x=1", "index"},
			map[string]Reason{"b/1": Excluded, "2": Answered(404)})
		if n := s.asked()["/docs/b/1"]; n > 0 {
			t.Error("an excluded page was asked for")
		}
		s.check("include", RoundOptions{Include: []string{"b", "*.html"}}, []string{"b/1", "b/2", "c.html?x=1"},
			map[string]Reason{"a/1": NotIncluded, "a/2": NotIncluded, "index": NotIncluded, "2": Answered(404)})
		s.check("limit", RoundOptions{MaxPages: 3}, []string{"a/1", "b/1", "index"},
			map[string]Reason{"a/2": OverLimit, "b/2": OverLimit, "c.html?x=1": OverLimit})
		m := s.open()
		now := time.Now()
		if due := m.Due(RoundOptions{MaxPages: 3}, time.Hour); due.Before(now) || due.After(now.Add(time.Hour)) {
			t.Errorf("the next round is due %v, now is %v", due, now)
		}
		if due := m.Due(RoundOptions{MaxPages: 4}, time.Hour); due.After(now) {
			t.Errorf("with other options, the next round is due %v, now is %v", due, now)
		}
		m.Close()
		s.stop()
	})
}

// The pages of a site have a maximum size in all.
func TestSize(t *testing.T) {
	bubble(t, func(t *testing.T, s *testSite) {
		s.set("/docs/", text("First", "a"))
		s.set("/docs/a", text("a", "b")+strings.Repeat(" word", maxBody/10))
		s.set("/docs/b", text("b", "c")+strings.Repeat(" word", maxBody/10))
		left := map[string]Reason{"b": OverSize}
		s.check("first", RoundOptions{MaxPages: 5}, []string{"a", "index"}, left)
		s.check("second", RoundOptions{MaxPages: 5}, []string{"a", "index"}, left)
		s.stop()
	})
}

// A site whose server wants time, and one that ends in the middle.
func TestBusy(t *testing.T) {
	bubble(t, func(t *testing.T, s *testSite) {
		s.robots = "User-agent: *\nCrawl-delay: 10"
		s.set("/docs/", text("First", "a", "b"))
		s.set("/docs/a", text("Page a"))
		s.set("/docs/b", text("Page b"))
		busy := true
		s.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/docs/a" || !busy {
				return false
			}
			busy = false
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		s.check("busy", RoundOptions{}, []string{"a", "b", "index"}, nil)
		for i, r := range s.requests {
			if i < 2 {
				continue
			}
			before := s.requests[i-1]
			want := 10 * time.Second
			if i > 0 && before.path == "/docs/a" && i < len(s.requests)-1 {
				want = 110 * time.Second // another request may have been waiting for its turn
			}
			if r.at.Sub(before.at) < want && before.path != "/robots.txt" {
				t.Errorf("%s follows %s after %v", r.path, before.path, r.at.Sub(before.at))
			}
		}
		down := false
		numbers := map[string]bool{}
		for i := range 30 {
			numbers[fmt.Sprint(i)] = true
			s.set(fmt.Sprint("/docs/", i), text(fmt.Sprint("Page ", i)))
		}
		s.set("/docs/", text("First", append([]string{"a", "b"}, sorted(numbers)...)...))
		s.handle = func(w http.ResponseWriter, r *http.Request) bool {
			down = down || r.URL.Path == "/docs/10"
			if down {
				panic(http.ErrAbortHandler)
			}
			return false
		}
		docs, _, err := s.round(RoundOptions{})
		if !errors.Is(err, errkind.Unavailable) || len(docs) < 4 {
			t.Errorf("a server that ends: %v, %v, want some documents and kind Unavailable", docs, err)
		}
		s.handle = nil
		docs, _, err = s.round(RoundOptions{})
		if err != nil || len(docs) != 33 {
			t.Errorf("a server that is back: %v, %v, want 33 documents", docs, err)
		}

		// Many pages that always fail do not keep a round from its end.
		left := map[string]Reason{}
		for i := range 40 {
			s.remove(fmt.Sprint("/docs/", i))
			s.set(fmt.Sprint("/docs/x", i), text("x"))
			left[fmt.Sprint("x", i)] = Answered(503)
		}
		s.set("/docs/", text("First", append(sorted(left), "a", "b", "last")...))
		s.set("/docs/last", text("last"))
		s.dir, s.requests = t.TempDir(), nil
		s.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/docs/x") {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return strings.HasPrefix(r.URL.Path, "/docs/x")
		}
		s.check("pages that fail", RoundOptions{}, []string{"a", "b", "index", "last"}, left)
		s.stop()
	})
}

// A round that is interrupted at any request continues: no page is asked for again
// that was stored, and the result is the same.
func TestResume(t *testing.T) {
	build := func(s *testSite) {
		s.set("/docs/", text("First", "a", "b", "moved"))
		for _, p := range []string{"a", "b", "c"} {
			s.set("/docs/"+p, text("Page "+p, p+"1", p+"2", "c"))
			s.set("/docs/"+p+"1", text("Page "+p+"1"))
			s.set("/docs/"+p+"2", text("Page "+p+"2", "."))
		}
		s.set("/docs/d", text("Page d"))
	}
	want := []string{"a", "a1", "a2", "b", "b1", "b2", "c", "c1", "c2", "d", "index"}
	for stop := 1; stop < 25; stop++ {
		bubble(t, func(t *testing.T, s *testSite) {
			build(s)
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			redirect := func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/docs/moved" {
					http.Redirect(w, r, "d", http.StatusFound)
					return true
				}
				return false
			}
			s.handle = func(w http.ResponseWriter, r *http.Request) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				if n++; n == stop {
					cancel()
				}
				return redirect(w, r)
			}
			m := s.open()
			err := m.Round(ctx, RoundOptions{})
			if stop < 19 && !errors.Is(err, context.Canceled) {
				t.Errorf("interrupted by request %d: error %v", stop, err)
			}
			stored := map[string]bool{}
			for a, p := range m.state.pages {
				stored[strings.TrimPrefix(a, "http://h.example")] = p.Round == m.state.round.Number && p.Round > 0
			}
			ended := m.state.round.Ended
			m.Close()
			// As after kill -9 while writing.
			f, err := os.OpenFile(filepath.Join(s.dir, stateFile), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(f, `{"page":{"url":"http://h.exa`)
			f.Close()
			s.handle = redirect
			s.check(fmt.Sprint("after an interruption by request ", stop), RoundOptions{}, want, nil)
			for p, n := range s.asked() {
				if n > 1 || stored[p] && !ended {
					t.Errorf("interrupted by request %d: %s was asked for %d times again", stop, p, n)
				}
			}
			cancel()
			s.stop()
		})
	}
}

// Changed gets the documents so far, and Report the number of pages.
func TestChanged(t *testing.T) {
	bubble(t, func(t *testing.T, s *testSite) {
		var links []string
		for i := range 120 {
			links = append(links, fmt.Sprint(i))
			s.set(fmt.Sprint("/docs/", i), text(fmt.Sprint("Page ", i)))
		}
		s.set("/docs/", text("First", links...))
		var sizes []int
		var done, known int
		s.check2(RoundOptions{
			Report: func(d, k int) { done, known = d, k },
			Changed: func(_ context.Context, snapshot *Snapshot) error {
				sizes = append(sizes, snapshot.Len())
				return nil
			},
		})
		if len(sizes) < 2 || sizes[0] > 60 || !slices.IsSorted(sizes) || sizes[len(sizes)-1] > 121 {
			t.Errorf("documents at calls of Changed: %v", sizes)
		}
		if done != 121 || known != 121 {
			t.Errorf("reported %d of %d pages, want 121", done, known)
		}
		s.stop()
	})
}

func (s *testSite) check2(o RoundOptions) {
	s.t.Helper()
	if _, _, err := s.round(o); err != nil {
		s.t.Error(err)
	}
}

// A source whose first page leads elsewhere says so.
func TestNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *testSite) {
		s.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/docs/" {
				http.Redirect(w, r, "https://h.example/docs/", http.StatusMovedPermanently)
			}
			return r.URL.Path == "/docs/"
		}
		for _, want := range []string{"leads to https://h.example/docs/", "answered with status 404", "forbidden by robots.txt"} {
			_, _, err := s.round(RoundOptions{})
			if !errors.Is(err, errkind.NotFound) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q and kind NotFound", err, want)
			}
			if s.handle == nil {
				s.robots = "User-agent: *\nDisallow: /"
			}
			s.handle = nil
		}
		s.stop()
	})
}

// Sites on one host share its limits.
func TestHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hosts Hosts
		h := hosts.host("h")
		if h != hosts.host("h") || h == hosts.host("other") {
			t.Fatal("want one host for each name")
		}
		began := time.Now()
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() {
				if err := h.acquire(t.Context(), 0); err != nil {
					t.Error(err)
				}
				h.release()
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 2080*time.Millisecond {
			t.Errorf("nine requests took %v, want 2.08s", took)
		}
		h.pause(time.Hour)
		began = time.Now()
		if err := h.acquire(t.Context(), 0); err != nil || time.Since(began) != maxPause {
			t.Errorf("after a pause: %v, %v", err, time.Since(began))
		}
		h.release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.acquire(ctx, 0); err != nil {
			t.Fatal(err)
		}
		if err := h.acquire(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := h.acquire(ctx, 0); err == nil {
			t.Error("three requests at a time")
		}
	})
}

// Parameters that change no text are learned, others are not.
func TestLearner(t *testing.T) {
	l := newLearner()
	for _, tt := range []struct{ address, text, want string }{
		{"http://h/a", "1", ""},
		{"http://h/a?tok=1", "1", ""},
		{"http://h/a?tok=2", "1", ""},
		{"http://h/b?tok=3", "2", ""},
		{"http://h/a?tok=4&page=1", "1", ""},
		{"http://h/a?tok=3", "1", "tok"},
		{"http://h/a?page=1", "1", ""},
		{"http://h/a?page=2", "2", ""},
		{"http://h/b?page=1", "2", ""},
		{"http://h/b?page=2", "2", ""},
		{"http://h/b?page=3", "2", ""},
	} {
		if got := strings.Join(l.add(tt.address, tt.text), ","); got != tt.want {
			t.Errorf("add(%s) learned %q, want %q", tt.address, got, tt.want)
		}
	}
}
