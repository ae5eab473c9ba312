package searchmcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/content"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// web is a web server whose pages are given by their paths, and a fetcher that
// may ask it.
type web struct {
	*httptest.Server
	fetch *fetch.Fetcher

	mu    sync.Mutex
	pages map[string]page
	asked []string
}

// A page is the answer of a web server.
type page struct {
	mediaType, body string
	status          int    // 0 is 200
	to              string // of a redirect
}

func newWeb(t *testing.T, o fetch.Options) *web {
	t.Helper()
	w := &web{pages: map[string]page{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	f, err := fetch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	w.fetch = f
	return w
}

func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked = append(w.asked, r.URL.Path)
	p, ok := w.pages[r.URL.Path]
	w.mu.Unlock()
	switch {
	case !ok:
		http.NotFound(out, r)
	case p.to != "":
		http.Redirect(out, r, p.to, http.StatusFound)
	default:
		out.Header().Set("Content-Type", p.mediaType)
		if p.status != 0 {
			out.WriteHeader(p.status)
		}
		fmt.Fprint(out, p.body)
	}
}

func (w *web) put(path string, p page) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages[path] = p
}

func (w *web) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// pointingAt is a service without the text of its one document of the domain,
// d1, which has the given address. Another, x1, belongs to another label.
func pointingAt(url string) *fakeBackend {
	return &fakeBackend{docs: []fakeDoc{
		{id: "d1", label: "finance_docs", title: "Far away", noText: true, address: url,
			facts: search.Hit{Timestamp: time.Unix(1_767_225_600, 0)}},
		{id: "x1", label: "hr", title: "Secret", noText: true, address: url}}}
}

// The chunks of one text come from one fetch; a new bridge fetches again and
// notices a change.
func TestAcquiredChunks(t *testing.T) {
	w := newWeb(t, fetch.Options{AllowPrivate: true})
	text := strings.TrimSpace(longText(20_000))
	w.put("/doc", page{mediaType: "text/plain", body: text})
	f := pointingAt(w.URL + "/doc")
	o := Options{Domain: finance, Backend: f, MaxChunkBytes: 1024}
	texts := content.Options{Enabled: true, Fetch: w.fetch}
	restart := func() *Tools {
		o.Content = content.New(texts)
		return New(o)
	}
	b := restart()
	var all strings.Builder
	pieces := walk(t, b, "d1")
	for _, p := range pieces {
		all.WriteString(p.Text)
		if len(p.Text) > 1024 {
			t.Errorf("a piece has %d bytes, want at most 1024", len(p.Text))
		}
	}
	if all.String() != text || w.requests() != 1 {
		t.Errorf("read %d bytes in %d pieces with %d requests, want %d bytes with one request", all.Len(), len(pieces),
			w.requests(), len(text))
	}
	h := f.docs[0].hit()
	if sum, of := b.hash(&h); sum != textHash(text) || of != ofContent {
		t.Errorf("hash of the document = %s of %s, want that of its text", sum, of)
	}
	h.Timestamp = time.Unix(1_770_000_000, 0)
	if _, of := b.hash(&h); of != ofSummary {
		t.Errorf("hash of a document that was crawled again is of its %s, want the summary", of)
	}
	if _, err := readAt(restart(), "d1", pieces[0].NextCursor); err != nil || w.requests() != 2 {
		t.Errorf("a new bridge: %v after %d requests, want the text with a second request", err, w.requests())
	}
	w.put("/doc", page{mediaType: "text/plain", body: "Changed. " + text})
	if _, err := readAt(restart(), "d1", pieces[0].NextCursor); !errors.Is(err, errkind.Conflict) {
		t.Errorf("a new bridge after a change: %v, want kind Conflict", err)
	}
	if _, err := readAt(b, "x1", ""); !errors.Is(err, errkind.NotFound) {
		t.Errorf("reading a document of another label = %v, want kind NotFound", err)
	}
	// The label is asked for with every chunk.
	f.docs[0].label = "hr"
	if _, err := readAt(b, "d1", pieces[0].NextCursor); !errors.Is(err, errkind.NotFound) {
		t.Errorf("a chunk of a document that left the domain: %v, want kind NotFound", err)
	}
}

// memory is a web server with one text, which is asked without a network.
type memory struct {
	text string
	asks int
}

func (*memory) Check(string) error { return nil }

func (m *memory) Get(context.Context, string, func(done, total int64)) (*fetch.Document, error) {
	m.asks++
	return &fetch.Document{MediaType: "text/plain", Data: []byte(m.text)}, nil
}

// A cursor is refused when the document has changed: at once when the service knows of
// it, and otherwise ten minutes after the text was fetched.
func TestAcquiredTextChanges(t *testing.T) {
	text := longText(5000)
	for _, tt := range []struct {
		name   string
		web    string // the text at the second chunk
		change func(*fakeDoc)
		after  time.Duration
		asks   int
		want   error
	}{
		{"nothing", text, func(*fakeDoc) {}, time.Minute, 1, nil},
		{"nothing for long", text, func(*fakeDoc) {}, 11 * time.Minute, 2, nil},
		{"crawled again without a change", text, func(d *fakeDoc) { d.facts.Timestamp = time.Unix(2, 0) }, 0, 2,
			nil},
		{"crawled again", "New. " + text, func(d *fakeDoc) { d.facts.Timestamp = time.Unix(2, 0) }, 0, 2,
			errkind.Conflict},
		{"another date", "New. " + text, func(d *fakeDoc) { d.facts.Modified = time.Unix(1, 0) }, 0, 2, errkind.Conflict},
		{"another size", "New. " + text, func(d *fakeDoc) { d.facts.Size = 7 }, 0, 2, errkind.Conflict},
		{"another digest", "New. " + text, func(d *fakeDoc) { d.text = "New." }, 0, 2, errkind.Conflict},
		{"only the page", "New. " + text, func(*fakeDoc) {}, time.Minute, 1, nil},
		{"only the page, long ago", "New. " + text, func(*fakeDoc) {}, 11 * time.Minute, 2, errkind.Conflict},
	} {
		synctest.Test(t, func(t *testing.T) {
			far, f := &memory{text: text}, pointingAt("https://example.com/")
			b := New(Options{Domain: finance, Backend: f, MaxChunkBytes: 1024,
				Content: content.New(content.Options{Enabled: true, Fetch: far})})
			first, err := readAt(b, "d1", "")
			if err != nil {
				t.Fatal(err)
			}
			far.text = tt.web
			tt.change(&f.docs[0])
			time.Sleep(tt.after)
			_, err = readAt(b, "d1", first.NextCursor)
			if !errors.Is(err, tt.want) || far.asks != tt.asks {
				t.Errorf("%s: the second chunk: %v after %d fetches, want %v after %d", tt.name, err, far.asks, tt.want,
					tt.asks)
			}
		})
	}
}

// slowFetcher is the far side of a fetch that never ends by itself.
type slowFetcher struct{ gone chan error }

func (slowFetcher) Check(string) error { return nil }

func (s slowFetcher) Get(ctx context.Context, _ string, report func(done, total int64)) (*fetch.Document, error) {
	for i := range int64(3) {
		time.Sleep(time.Second)
		report(i*1000, 10_000)
	}
	<-ctx.Done()
	s.gone <- ctx.Err()
	return nil, ctx.Err()
}

// A slow fetch is a job that says how far it is, and cancelling its request
// ends it.
func TestSlowFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := job.New(job.Options{Threshold: 2500 * time.Millisecond})
		defer jobs.Close(t.Context())
		far := slowFetcher{make(chan error, 1)}
		c := start(t, Options{Domain: finance, Backend: pointingAt("https://example.com/"), Jobs: jobs,
			Content: content.New(content.Options{Enabled: true, Fetch: far})}, mcpserver.Pinned)
		id := c.Start("tools/call", args{"name": "fess_finance_read_content", "arguments": args{"docId": "d1"}})
		var h shown
		text, err := c.ToolText(c.Wait(id))
		if err != nil {
			t.Fatal(err)
		}
		decode(t, text, &h)
		if h.Message != "fetching" || h.Progress != 8 {
			t.Errorf("handle = %s, want 8 of 100 while fetching", text)
		}
		time.Sleep(time.Second)
		if s := c.get(h.JobID, 0); s.Progress != 16 || s.Total != 100 {
			t.Errorf("job_get = %+v, want progress 16 of 100", s)
		}
		c.Cancel(id)
		if err := <-far.gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the fetch ended with %v, want that it was cancelled", err)
		}
	})
}
