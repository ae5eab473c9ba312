package indexing

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/site"
)

// modified is when all pages of a webSite were last changed, as it says.
var modified = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)

// A webSite is a web server on connections in memory.
type webSite struct {
	mu       sync.Mutex
	pages    map[string]string // by path
	down     bool
	failing  string // a path that is answered with 503
	requests int

	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func startSite(t *testing.T, pages map[string]string) (s *webSite, stop func()) {
	s = &webSite{pages: pages, conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(s)
	}()
	return s, func() {
		server.Close()
		<-done
	}
}

func (s *webSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	page, ok := s.pages[r.URL.Path]
	switch {
	case s.down:
		http.Error(w, "down", http.StatusInternalServerError)
	case s.failing != "" && s.failing == r.URL.Path:
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case !ok:
		http.NotFound(w, r)
	case strings.HasSuffix(r.URL.Path, ".png"):
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, page)
	default:
		w.Header().Set("Last-Modified", modified.Format(http.TimeFormat))
		io.WriteString(w, page)
	}
}

// change changes the site.
func (s *webSite) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *webSite) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}
func (s *webSite) Close() error   { s.close.Do(func() { close(s.closed) }); return nil }
func (s *webSite) Addr() net.Addr { return &net.TCPAddr{} }

func (s *webSite) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("10.0.0.5")}, nil
}

func (s *webSite) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case s.conns <- server:
		return client, nil
	case <-s.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A site is visited when it is due, its pages are indexed while it is visited and stay
// while it fails, what its pages repeat is left out, and a program that starts again
// asks for nothing before the next round is due.
func TestSite(t *testing.T) {
	dir := t.TempDir()
	x := openIndex(t, dir)
	src := document.Source{Label: "docs", Path: "http://h.example/docs/", Rules: document.Rules{Every: 10 * time.Minute}}
	if err := x.AddSource(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const footer = "<div>Copyright of everybody who wrote this</div>"
		pages := map[string]string{"/docs/": "<h1>Start</h1><a href=guide>Guide</a><a href=wiki/File:Map.png>Map</a>" + footer}
		for i := range 100 {
			pages[fmt.Sprint("/docs/guide/", i)] = fmt.Sprintf("<h1>Page %d</h1><p>Text of page %d</p>%s", i, i, footer)
			pages["/docs/guide"] += fmt.Sprintf("<a href=guide/%d>%d</a> ", i, i)
		}
		pages["/docs/guide"] = "<title>Guide</title><p>All pages: " + pages["/docs/guide"] + footer
		pages["/docs/wiki/File:Map.png"] = "<h1>Map</h1><p>About the map" + footer
		s, stop := startSite(t, pages)
		options := Options{Dir: dir, Version: "1", site: site.Options{Dial: s.dial, Resolver: s}}
		p := startWith(t, options)
		count := func(step string, want int) {
			t.Helper()
			synctest.Wait()
			if got := len(p.paths("docs")); got != want {
				t.Errorf("%s: %d documents, want %d\n%s", step, got, want, p.out.String())
			}
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if n := len(p.paths("docs")); n == 0 || n > 60 {
			t.Errorf("after 12 s, %d documents", n)
		}
		time.Sleep(time.Minute)
		count("first round", 103)
		if out := p.out.String(); !strings.Contains(out, "docs: 103 documents indexed in ") {
			t.Errorf("printed %s", out)
		}
		for path, want := range map[string]string{"guide/7": "Page 7\n\nText of page 7", "wiki/File:Map.png": "Map\n\nAbout the map"} {
			text, err := p.x.ReadText(t.Context(), document.IDOf("docs", path), []string{"docs"}, 0, 1000)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if strings.TrimSpace(text.Window) != want {
				t.Errorf("%s has the text %q, want %q", path, text.Window, want)
			}
		}
		if h, err := p.x.Find(t.Context(), document.IDOf("docs", "guide/7"), nil); err != nil || !h.Timestamp.Equal(modified) {
			t.Errorf("guide/7: %+v, %v, want the time %v", h, err, modified)
		}
		if got, want := p.url("docs", "guide/7"), "http://h.example/docs/guide/7"; got != want {
			t.Errorf("the URL is %s, want %s", got, want)
		}
		p.stop()

		before := s.requests
		p = startWith(t, options)
		time.Sleep(time.Minute)
		count("started again", 103)
		if s.requests != before {
			t.Errorf("%d requests although no round is due", s.requests-before)
		}
		s.change(func() { s.down = true })
		time.Sleep(10 * time.Minute)
		count("while it fails", 103)
		if !strings.Contains(p.out.String(), "cannot read all pages of a site now") {
			t.Errorf("the log says nothing: %s", p.out.String())
		}
		s.change(func() {
			s.down = false
			s.pages["/docs/guide/7"] = "<p>Changed. <a href=new>New</a>" + footer
			s.pages["/docs/guide/new"] = "<p>New" + footer
			delete(s.pages, "/docs/guide/8")
		})
		time.Sleep(25 * time.Minute)
		count("changed", 103)
		paths := p.paths("docs")
		var got []string
		for _, path := range []string{"guide", "guide/7", "guide/8", "guide/new"} {
			if paths[path] {
				got = append(got, path)
			}
		}
		if diff := cmp.Diff([]string{"guide", "guide/7", "guide/new"}, got); diff != "" {
			t.Errorf("documents (-want +got):\n%s", diff)
		}
		left, err := p.x.LeftOut(t.Context(), "docs")
		if err != nil || left.Counts["answered with status 404"] != 1 || !slices.ContainsFunc(left.Paths,
			func(l index.LeftOutPath) bool { return l.Path == "guide/8" }) {
			t.Errorf("left out: %+v, %v", left, err)
		}
		p.stop()
		stop()
	})
}

// A site without a document is asked again after a minute, whatever has failed, and at
// once when the program starts again. Until then, searches report that documents are
// missing.
func TestSiteWithoutDocuments(t *testing.T) {
	for _, tt := range []struct{ name, failing, robots string }{
		{"robots.txt fails", "/robots.txt", ""},
		{"robots.txt forbids everything", "", "User-agent: *\nDisallow: /"},
		{"the first page fails", "/docs/", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			x := openIndex(t, dir)
			if err := x.AddSource(t.Context(), document.Source{Label: "docs", Path: "http://h.example/docs/"}); err != nil {
				t.Fatal(err)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				s, stop := startSite(t, map[string]string{"/docs/": "<h1>Start</h1>", "/robots.txt": tt.robots})
				s.failing = tt.failing
				p := startWith(t, Options{Dir: dir, Version: "1", site: site.Options{Dial: s.dial, Resolver: s}})
				missing := func(step string, want bool) {
					t.Helper()
					synctest.Wait()
					list, err := p.x.Unfinished(t.Context(), nil)
					if err != nil || want && (len(list) != 1 || list[0].Total == 0) || !want && len(list) > 0 {
						t.Errorf("%s: %+v, %v, want a source without documents: %v", step, list, err, want)
					}
				}
				time.Sleep(30 * time.Second)
				missing("first", true)
				asked := s.requests
				p.stop()

				p = startWith(t, Options{Dir: dir, Version: "1", site: site.Options{Dial: s.dial, Resolver: s}})
				time.Sleep(30 * time.Second)
				missing("started again", true)
				if s.requests == asked {
					t.Error("nothing was asked for after the start")
				}
				s.change(func() { s.failing, s.pages["/robots.txt"] = "", "" })
				time.Sleep(time.Minute)
				missing("repaired", false)
				if len(p.paths("docs")) != 1 {
					t.Errorf("the page is not indexed after a minute:\n%s", p.out.String())
				}
				p.stop()
				stop()
			})
		})
	}
}

// A site that fails many times in a row is asked as often as it would be otherwise, and
// not more.
func TestSiteFailsForLong(t *testing.T) {
	dir := t.TempDir()
	x := openIndex(t, dir)
	src := document.Source{Label: "docs", Path: "http://h.example/docs/", Rules: document.Rules{Every: 2 * time.Minute}}
	if err := x.AddSource(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, stop := startSite(t, nil)
		s.failing = "/robots.txt"
		p := startWith(t, Options{Dir: dir, Version: "1", site: site.Options{Dial: s.dial, Resolver: s}})
		time.Sleep(2 * time.Hour)
		p.stop()
		stop()
		if n := s.requests; n < 55 || n > 62 {
			t.Errorf("%d requests in two hours, want one in two minutes", n)
		}
	})
}
