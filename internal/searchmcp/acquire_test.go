package searchmcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
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

// copies is a service that stores copies of documents.
type copies struct {
	*fakeBackend
	copy *search.StoredCopy // nil where there is none
	err  error
}

func (c *copies) StoredCopy(_ context.Context, id string, labels []string) (*search.StoredCopy, error) {
	if err := c.called("StoredCopy", labels); err != nil {
		return nil, err
	}
	if _, err := c.doc(id, labels); err != nil {
		return nil, err
	}
	if c.copy == nil && c.err == nil {
		return nil, fmt.Errorf("no copy of %s: %w", id, errkind.Unsupported)
	}
	return c.copy, c.err
}

const sample = `<!DOCTYPE html><html><head><title>T</title><style>b{}</style></head><body><h1>Heading</h1>` +
	`<p>First <b>paragraph</b> &amp; more.</p><script>alert(1)</script><p>Second one.</p></body></html>`

// samplePDF is about the smallest document with a text; its table of objects is
// left to be repaired.
const samplePDF = `%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>> endobj
4 0 obj <</Length 43>> stream
BT /F 12 Tf 20 200 Td (Printed words) Tj ET
endstream endobj
5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj
trailer <</Root 1 0 R>>
%%EOF
`

// AT-RES-005, AT-RES-007: what is got from an address, by its type.
func TestAcquire(t *testing.T) {
	w := newWeb(t, fetch.Options{AllowPrivate: true, MaxBytes: 4000})
	for _, tt := range []struct {
		name string
		page page
		pdf  bool
		want string // the text
		kind error
		says string // part of the error
		why  errkind.Reason
	}{
		{name: "HTML", page: page{mediaType: "text/html; charset=utf-8", body: sample},
			want: "Heading\n\nFirst paragraph & more.\n\nSecond one."},
		{name: "plain text", page: page{mediaType: "text/plain", body: "One.\n\nTwo <b>."}, want: "One.\n\nTwo <b>."},
		{name: "Markdown", page: page{mediaType: "text/markdown", body: "# One\n\n*Two*"}, want: "# One\n\n*Two*"},
		{name: "plain text as it is", page: page{mediaType: "text/plain", body: "  a\r\nb\r\n\r\nend \n\n"},
			want: "  a\r\nb\r\n\r\nend \n\n"},
		{name: "another charset", page: page{mediaType: "text/plain; charset=iso-8859-1", body: "caf\xe9"},
			want: "café"},
		{name: "empty", page: page{mediaType: "text/plain"}, want: ""},
		{name: "PDF", page: page{mediaType: "application/pdf", body: "%PDF-1.4\n"}, kind: errkind.Denied,
			says: "PDF conversion is disabled", why: PDFReason},
		{name: "PDF with parameters", page: page{mediaType: "Application/PDF;x=\"", body: "whatever"},
			kind: errkind.Denied, says: "PDF conversion is disabled", why: PDFReason},
		{name: "PDF in disguise", page: page{mediaType: "text/html", body: "\n%PDF-1.7 ..."}, kind: errkind.Denied,
			says: "PDF conversion is disabled", why: PDFReason},
		{name: "broken PDF", page: page{mediaType: "application/pdf", body: "%PDF-1.4\n"}, pdf: true,
			kind: errkind.Corrupt, says: "cannot be converted"},
		{name: "PDF enabled", page: page{mediaType: "application/pdf", body: samplePDF}, pdf: true,
			want: "Printed words"},
		{name: "archive", page: page{mediaType: "application/zip", body: "PK\x03\x04aaaaaaaaaa"}, kind: errkind.Corrupt,
			says: "cannot be converted"},
		{name: "a page without text", page: page{mediaType: "text/html", body: "<script>app()</script>"},
			kind: errkind.Unsupported, says: "contains no text"},
		{name: "too large", page: page{mediaType: "text/plain", body: strings.Repeat("x", 4001)},
			kind: errkind.TooLarge, says: "larger than 4000 bytes", why: fetch.SizeReason},
		{name: "gone", page: page{status: 404}, kind: errkind.NotFound, says: "no longer at its address"},
		{name: "server error", page: page{status: 500, body: "at 10.0.0.1"}, kind: errkind.Unavailable,
			says: "status 500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.put("/doc", tt.page)
			b := New(Options{Domain: finance, Backend: pointingAt(w.URL + "/doc"),
				Content: &Content{Enabled: true, Fetch: w.fetch, MaxBytes: 4000, EnablePDF: tt.pdf}})
			p, err := readAt(b, "d1", "")
			if tt.kind != nil {
				if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) ||
					strings.Contains(err.Error(), "10.0.0.1") || errkind.ReasonOf(err) != tt.why {
					t.Errorf("reading = %+v, %v, want %v with %q", p, err, tt.kind, tt.says)
				}
				return
			}
			if err != nil || p.Text != tt.want || p.Hash != textHash(tt.want) || !p.IsLast || p.URL != w.URL+"/doc" {
				t.Errorf("reading = %+v, %v, want the text %q", p, err, tt.want)
			}
		})
	}
}

// Whether and where a text is looked for follows the configuration.
func TestAcquireOrder(t *testing.T) {
	const host = "docs.example.com" // in no list below but its own
	stored := &search.StoredCopy{DocID: "d1", MediaType: "text/html; charset=utf-8",
		Data: []byte("<p>The stored copy.</p>")}
	for _, tt := range []struct {
		name    string
		url     string // "" is the web server's
		content Content
		hosts   []string
		copy    *search.StoredCopy
		copyErr error
		want    string
		kind    error
		says    string
	}{
		{name: "disabled", copy: stored, kind: errkind.Denied, says: "fetching it from its address is disabled"},
		{name: "copy first", content: Content{Enabled: true}, copy: stored, want: "The stored copy."},
		{name: "no copy", content: Content{Enabled: true}, want: "The page."},
		{name: "empty copy", content: Content{Enabled: true},
			copy: &search.StoredCopy{MediaType: "text/html", Data: []byte("<p></p>")}, want: "The page."},
		{name: "copy out of reach", content: Content{Enabled: true},
			copyErr: &errkind.Remote{Kind: errkind.Unauthorized, Status: 403}, want: "The page."},
		{name: "never the copy", content: Content{Enabled: true, FessCache: CacheNever}, copy: stored,
			want: "The page."},
		{name: "address against the policy", url: "https://" + host + "/doc", hosts: []string{"example.com"},
			content: Content{Enabled: true}, copy: stored,
			kind: errkind.Denied, says: `the host "docs.example.com" is not allowed`},
		{name: "always the copy", url: "smb://files/share/doc.html",
			content: Content{Enabled: true, FessCache: CacheAlways}, copy: stored, want: "The stored copy."},
		{name: "always, but there is none", url: "smb://files/share/doc.html",
			content: Content{Enabled: true, FessCache: CacheAlways},
			kind:    errkind.Denied, says: `scheme "smb" is not allowed`},
		{name: "a file", url: "file:///etc/passwd", content: Content{Enabled: true}, copy: stored, kind: errkind.Denied,
			says: `scheme "file" is not allowed`},
		{name: "no address", url: "nowhere", content: Content{Enabled: true}, copy: stored, kind: errkind.Unsupported,
			says: "address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeb(t, fetch.Options{AllowPrivate: true, AllowedHosts: tt.hosts})
			w.put("/doc", page{mediaType: "text/plain", body: "The page."})
			if tt.url == "" {
				tt.url = w.URL + "/doc"
			}
			f := &copies{fakeBackend: pointingAt(tt.url), copy: tt.copy, err: tt.copyErr}
			tt.content.Fetch = w.fetch
			b := New(Options{Domain: finance, Backend: f, Content: &tt.content})
			p, err := readAt(b, "d1", "")
			switch {
			case tt.kind != nil && (!errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) ||
				w.requests() != 0):
				t.Errorf("reading = %+v, %v after %d requests, want %v with %q", p, err, w.requests(), tt.kind, tt.says)
			case tt.kind == nil && (err != nil || p.Text != tt.want):
				t.Errorf("reading = %+v, %v, want %q", p, err, tt.want)
			}
			if _, err := readAt(b, "x1", ""); !errors.Is(err, errkind.NotFound) {
				t.Errorf("reading a document of another label = %v, want kind NotFound", err)
			}
			for _, call := range f.calls {
				if diff := cmp.Diff([]string{"finance_docs"}, call.labels); diff != "" {
					t.Errorf("%s was called with labels (-want +got):\n%s", call.method, diff)
				}
			}
		})
	}
}

// AT-SEC-002 and redirects: what a document's server answers leads nowhere else.
func TestAcquireStaysOutside(t *testing.T) {
	w := newWeb(t, fetch.Options{})
	for _, url := range []string{w.URL + "/doc", "http://192.168.0.10/", "http://localhost/",
		"http://[::ffff:10.0.0.1]/", "http://169.254.169.254/latest"} {
		b := New(Options{Domain: finance, Backend: pointingAt(url), Content: &Content{Enabled: true, Fetch: w.fetch}})
		if _, err := readAt(b, "d1", ""); !errors.Is(err, errkind.Denied) ||
			!strings.Contains(err.Error(), "private network targets are not allowed") {
			t.Errorf("reading %s = %v, want kind Denied and that private targets are not allowed", url, err)
		}
	}
	if n := w.requests(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	w = newWeb(t, fetch.Options{AllowedHosts: []string{"127.0.0.1"}})
	w.put("/doc", page{to: "http://127.0.0.2:1/secret"})
	b := New(Options{Domain: finance, Backend: pointingAt(w.URL + "/doc"),
		Content: &Content{Enabled: true, Fetch: w.fetch}})
	if _, err := readAt(b, "d1", ""); !errors.Is(err, errkind.Denied) {
		t.Errorf("reading what redirects to another host = %v, want kind Denied", err)
	}
}

// The chunks of one text come from one fetch; a new bridge fetches again and
// notices a change.
func TestAcquiredChunks(t *testing.T) {
	w := newWeb(t, fetch.Options{AllowPrivate: true})
	text := strings.TrimSpace(longText(20_000))
	w.put("/doc", page{mediaType: "text/plain", body: text})
	f := pointingAt(w.URL + "/doc")
	o := Options{Domain: finance, Backend: f, MaxChunkBytes: 1024, Content: &Content{Enabled: true, Fetch: w.fetch}}
	b := New(o)
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
	if _, err := readAt(New(o), "d1", pieces[0].NextCursor); err != nil || w.requests() != 2 {
		t.Errorf("a new bridge: %v after %d requests, want the text with a second request", err, w.requests())
	}
	w.put("/doc", page{mediaType: "text/plain", body: "Changed. " + text})
	if _, err := readAt(New(o), "d1", pieces[0].NextCursor); !errors.Is(err, errkind.Conflict) {
		t.Errorf("a new bridge after a change: %v, want kind Conflict", err)
	}
	// The label is asked for with every chunk.
	f.docs[0].label = "hr"
	if _, err := readAt(b, "d1", pieces[0].NextCursor); !errors.Is(err, errkind.NotFound) {
		t.Errorf("a chunk of a document that left the domain: %v, want kind NotFound", err)
	}
}

func TestTexts(t *testing.T) {
	c := newTexts(3 * (textCost + 10))
	put := func(id, hash string, n int) { c.put(&cachedText{id: id, hash: hash, text: strings.Repeat("x", n)}) }
	kept := func() (ids string) {
		for _, id := range []string{"a", "b", "c", "d"} {
			if e := c.byID[id]; e != nil {
				ids += id + e.Value.(*cachedText).hash
			}
		}
		return ids
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { put("a", "1", 10); put("b", "1", 10); put("c", "1", 10) }, "a1b1c1"},
		{func() { c.get("a"); put("d", "1", 10) }, "a1c1d1"},
		{func() { put("a", "2", 10) }, "a2c1d1"},
		{func() { put("c", "2", 3*textCost) }, "a2d1"}, // larger than all there is room for
		{func() { put("b", "1", textCost) }, "a2b1"},
		{func() { c.get("nothing") }, "a2b1"},
	} {
		step.do()
		var size int64
		for e := c.used.Front(); e != nil; e = e.Next() {
			size += e.Value.(*cachedText).cost()
		}
		if got := kept(); got != step.want || size != c.size || size > c.max || c.used.Len() != len(c.byID) {
			t.Errorf("kept %s with %d bytes, counted %d, want %s with at most %d", got, size, c.size, step.want, c.max)
		}
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
			Content: &Content{Enabled: true, Fetch: far}}, mcpserver.Pinned)
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

// fakeConverter extracts documents by their names: that of "slow" only ends
// with its context, that of "defect" panics.
func fakeConverter() *converter {
	c := newConverter(slog.New(slog.DiscardHandler))
	c.extract = func(ctx context.Context, in extract.Input) (*extract.Text, error) {
		switch in.Name {
		case "slow":
			<-ctx.Done()
			return nil, fmt.Errorf("extracting: %w", context.Cause(ctx))
		case "defect":
			panic("defect")
		}
		return &extract.Text{Body: in.Name}, nil
	}
	return c
}

// A few documents are converted at a time, and each has a time limit.
func TestSlowConversions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeConverter()
		start := time.Now()
		slow := make(chan error, maxConversions)
		for range maxConversions {
			go func() {
				_, err := c.convert(t.Context(), extract.Input{Name: "slow"})
				slow <- err
			}()
		}
		synctest.Wait()
		if _, err := c.convert(t.Context(), extract.Input{Name: "quick"}); err != nil ||
			time.Since(start) != maxConversion {
			t.Errorf("a document after slow ones: %v after %v, want its text after %v", err, time.Since(start),
				maxConversion)
		}
		for range maxConversions {
			if err := <-slow; !errors.Is(err, errSlow) {
				t.Errorf("a slow document: %v, want %v", err, errSlow)
			}
		}
		if len(c.slots) != 0 {
			t.Errorf("%d slots are taken after all conversions", len(c.slots))
		}
	})
}

// A caller who gives up ends the conversion, or the wait for a place.
func TestConversionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeConverter()
		for range maxConversions + 1 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				if _, err := c.convert(ctx, extract.Input{Name: "slow"}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("convert = %v, want context.DeadlineExceeded", err)
				}
			}()
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got, err := c.convert(t.Context(), extract.Input{Name: "quick"}); err != nil || got.Body != "quick" ||
			len(c.slots) != 0 {
			t.Errorf("convert = %+v, %v with %d places taken, want the text", got, err, len(c.slots))
		}
		if _, err := c.convert(t.Context(), extract.Input{Name: "defect"}); !errors.Is(err, errkind.Unsupported) ||
			len(c.slots) != 0 {
			t.Errorf("convert = %v with %d places taken after a defect, want kind Unsupported", err, len(c.slots))
		}
	})
}
