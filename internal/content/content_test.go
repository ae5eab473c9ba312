package content

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

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
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

// at is a document of a service without its text, at a URL.
func at(url string) *search.Hit {
	return &search.Hit{ID: "d1", Title: "Far away", URL: url, Timestamp: time.Unix(1_767_225_600, 0)}
}

func noReport(float64, float64, string) {}

// copies are the copies that a service stored.
type copies struct {
	copy  *search.StoredCopy // nil where there is none
	err   error
	asked []string // ids and labels
}

func (c *copies) StoredCopy(_ context.Context, id string, labels []string) (*search.StoredCopy, error) {
	c.asked = append(c.asked, fmt.Sprint(id, labels))
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
func TestRead(t *testing.T) {
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
			r := New(Options{Enabled: true, Fetch: w.fetch, MaxBytes: 4000, EnablePDF: tt.pdf})
			got, err := r.Read(t.Context(), at(w.URL+"/doc"), noReport)
			if tt.kind != nil {
				if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) ||
					strings.Contains(err.Error(), "10.0.0.1") || errkind.ReasonOf(err) != tt.why {
					t.Errorf("reading = %+v, %v, want %v with %q", got, err, tt.kind, tt.says)
				}
				return
			}
			if err != nil || got.Body != tt.want || got.Hash != chunk.Hash(tt.want) {
				t.Errorf("reading = %+v, %v, want the text %q", got, err, tt.want)
			}
		})
	}
}

// Whether and where a text is looked for follows the configuration.
func TestOrder(t *testing.T) {
	const host = "docs.example.com" // in no list below but its own
	stored := &search.StoredCopy{DocID: "d1", MediaType: "text/html; charset=utf-8",
		Data: []byte("<p>The stored copy.</p>")}
	for _, tt := range []struct {
		name    string
		url     string // "" is the web server's
		options Options
		hosts   []string
		copy    *search.StoredCopy
		copyErr error
		want    string
		kind    error
		says    string
	}{
		{name: "disabled", copy: stored, kind: errkind.Denied, says: "fetching it from its address is disabled"},
		{name: "copy first", options: Options{Enabled: true}, copy: stored, want: "The stored copy."},
		{name: "no copy", options: Options{Enabled: true}, want: "The page."},
		{name: "empty copy", options: Options{Enabled: true},
			copy: &search.StoredCopy{MediaType: "text/html", Data: []byte("<p></p>")}, want: "The page."},
		{name: "copy out of reach", options: Options{Enabled: true},
			copyErr: &errkind.Remote{Kind: errkind.Unauthorized, Status: 403}, want: "The page."},
		{name: "never the copy", options: Options{Enabled: true, FessCache: CacheNever}, copy: stored,
			want: "The page."},
		{name: "address against the policy", url: "https://" + host + "/doc", hosts: []string{"example.com"},
			options: Options{Enabled: true}, copy: stored,
			kind: errkind.Denied, says: `the host "docs.example.com" is not allowed`},
		{name: "always the copy", url: "smb://files/share/doc.html",
			options: Options{Enabled: true, FessCache: CacheAlways}, copy: stored, want: "The stored copy."},
		{name: "always, but there is none", url: "smb://files/share/doc.html",
			options: Options{Enabled: true, FessCache: CacheAlways},
			kind:    errkind.Denied, says: `scheme "smb" is not allowed`},
		{name: "a file", url: "file:///etc/passwd", options: Options{Enabled: true}, copy: stored, kind: errkind.Denied,
			says: `scheme "file" is not allowed`},
		{name: "no address", url: "nowhere", options: Options{Enabled: true}, copy: stored, kind: errkind.Unsupported,
			says: "address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeb(t, fetch.Options{AllowPrivate: true, AllowedHosts: tt.hosts})
			w.put("/doc", page{mediaType: "text/plain", body: "The page."})
			if tt.url == "" {
				tt.url = w.URL + "/doc"
			}
			stored := &copies{copy: tt.copy, err: tt.copyErr}
			tt.options.Fetch, tt.options.Copies, tt.options.Labels = w.fetch, stored, []string{"finance_docs"}
			got, err := New(tt.options).Read(t.Context(), at(tt.url), noReport)
			switch {
			case tt.kind != nil && (!errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) ||
				w.requests() != 0):
				t.Errorf("reading = %+v, %v after %d requests, want %v with %q", got, err, w.requests(), tt.kind, tt.says)
			case tt.kind == nil && (err != nil || got.Body != tt.want):
				t.Errorf("reading = %+v, %v, want %q", got, err, tt.want)
			}
			for _, asked := range stored.asked {
				if diff := cmp.Diff("d1[finance_docs]", asked); diff != "" {
					t.Errorf("a copy was asked for (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// AT-SEC-002 and redirects: what a document's server answers leads nowhere else.
func TestStaysOutside(t *testing.T) {
	w := newWeb(t, fetch.Options{})
	for _, url := range []string{w.URL + "/doc", "http://192.168.0.10/", "http://localhost/",
		"http://[::ffff:10.0.0.1]/", "http://169.254.169.254/latest"} {
		r := New(Options{Enabled: true, Fetch: w.fetch})
		if _, err := r.Read(t.Context(), at(url), noReport); !errors.Is(err, errkind.Denied) ||
			!strings.Contains(err.Error(), "private network targets are not allowed") {
			t.Errorf("reading %s = %v, want kind Denied and that private targets are not allowed", url, err)
		}
	}
	if n := w.requests(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	w = newWeb(t, fetch.Options{AllowedHosts: []string{"127.0.0.1"}})
	w.put("/doc", page{to: "http://127.0.0.2:1/secret"})
	r := New(Options{Enabled: true, Fetch: w.fetch})
	if _, err := r.Read(t.Context(), at(w.URL+"/doc"), noReport); !errors.Is(err, errkind.Denied) {
		t.Errorf("reading what redirects to another host = %v, want kind Denied", err)
	}
}

func TestTexts(t *testing.T) {
	c := newTexts(3 * (textCost + 10))
	put := func(id, hash string, n int) { c.put(&Text{id: id, Hash: hash, Body: strings.Repeat("x", n)}) }
	kept := func() (ids string) {
		for _, id := range []string{"a", "b", "c", "d"} {
			if e := c.byID[id]; e != nil {
				ids += id + e.Value.(*Text).Hash
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
			size += e.Value.(*Text).cost()
		}
		if got := kept(); got != step.want || size != c.size || size > c.max || c.used.Len() != len(c.byID) {
			t.Errorf("kept %s with %d bytes, counted %d, want %s with at most %d", got, size, c.size, step.want, c.max)
		}
	}
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
