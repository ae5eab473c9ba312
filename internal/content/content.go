// Package content reads the texts of documents that a search service does not have: of
// the copies that the service stored, or of the documents at their URLs.
package content

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A Fetcher fetches documents from their URLs under a policy. Package fetch
// implements it.
type Fetcher interface {
	// Check returns the error with which Get would refuse a URL for its scheme
	// or host.
	Check(url string) error

	// Get returns the document at a URL. It calls report with the number of
	// bytes received and the total; a total of 0 is unknown.
	Get(ctx context.Context, url string, report func(done, total int64)) (*fetch.Document, error)
}

// Copies are the copies of the original documents that a service stored. The client
// of package fess implements it.
type Copies interface {
	// StoredCopy returns the copy of a document. It looks the document up like
	// Find. If there is no copy, the error is of kind Unsupported.
	StoredCopy(ctx context.Context, id string, labels []string) (*search.StoredCopy, error)
}

// Options configure a Reader.
type Options struct {
	Enabled bool    // false refuses every text
	Fetch   Fetcher // required if Enabled

	Copies Copies   // nil if the service stores none
	Labels []string // of the documents whose copies may be read; nil means any

	// FessCache determines when the copy stored by the service is read before
	// the document's URL is fetched: CacheAlways; CacheNever; CachePolicy (also
	// ""), only if Fetch may fetch the URL.
	FessCache string

	// MaxBytes is the size limit of a fetched document in bytes, which also determines
	// the size of the cache of texts; 0 means 5 MiB.
	MaxBytes int64

	EnablePDF bool // convert PDF documents

	Log *slog.Logger // nil discards
}

// Options that an error can be due to; see [errkind.ReasonOf].
const (
	DisabledReason errkind.Reason = "content: Options.Enabled"
	PDFReason      errkind.Reason = "content: Options.EnablePDF"
)

// The values of [Options.FessCache].
const (
	CachePolicy = "policy"
	CacheAlways = "always"
	CacheNever  = "never"
)

// The phases of reading a document, as reported in its progress.
const (
	PhaseFetching   = "fetching"
	PhaseConverting = "converting"
)

// Progress of reading a document, on a scale up to ProgressTotal. What follows
// reading begins at ProgressRead.
const (
	ProgressTotal      = 100
	ProgressRead       = 95
	progressConverting = 80
)

const defaultMaxBytes = 5 << 20

// A Reader reads texts and caches them. Its methods are safe for concurrent use. A nil
// Reader has no texts.
type Reader struct {
	o         Options
	texts     *texts
	converter *converter
}

// New returns a reader.
func New(o Options) *Reader {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	// A text may be larger than the document that contained it.
	return &Reader{o: o, texts: newTexts(max(minTexts, 2*o.MaxBytes)), converter: newConverter(o.Log)}
}

// Cached returns the text of a document that was read last, or nil if it is not
// cached. It does not check whether the caller may read the document.
func (r *Reader) Cached(id string) *Text {
	if r == nil {
		return nil
	}
	return r.texts.get(id)
}

// maxAge is how long a text is current: a page may change without a change of the
// document's metadata. It is as long as the results of jobs are kept, so that a text
// that is read slowly, or a page that differs on each fetch, can be read to its end.
const maxAge = 10 * time.Minute

// Current returns the cached text of a document as it is now, or nil if the document
// has changed or the text was read more than 10 minutes ago.
func (r *Reader) Current(h *search.Hit) *Text {
	text := r.Cached(h.ID)
	if text == nil || !text.IsOf(h) || time.Since(text.read) > maxAge {
		return nil
	}
	return text
}

// A Report reports how far reading is: done of total, and the phase.
type Report = func(done, total float64, phase string)

// Read returns the text of a document that the service does not have: of the service's
// stored copy or of the document at its URL. The text is cached.
func (r *Reader) Read(ctx context.Context, h *search.Hit, report Report) (*Text, error) {
	if !r.o.Enabled {
		return nil, &errkind.Restriction{Reason: DisabledReason,
			Err: fmt.Errorf("the index gives no text of document %s, and fetching it from its address is disabled: %w",
				h.ID, errkind.Denied)}
	}
	report(0, ProgressTotal, PhaseFetching)
	began := time.Now()
	body, err := r.original(ctx, h, report)
	if err != nil {
		return nil, err
	}
	text := &Text{Body: body, Hash: chunk.Hash(body), id: h.ID, stamp: Stamp(h), read: began}
	if text.cost() > r.texts.max {
		return nil, &errkind.Restriction{Reason: fetch.SizeReason,
			Err: fmt.Errorf("the text of document %s has %d bytes, more than can be kept: %w", h.ID, len(body),
				errkind.TooLarge)}
	}
	r.texts.put(text)
	return text, nil
}

// original returns the text of the stored copy, if the configuration permits that
// and there is one, and otherwise that of the document at its URL.
func (r *Reader) original(ctx context.Context, h *search.Hit, report Report) (string, error) {
	refused := r.o.Fetch.Check(h.URL)
	if how := r.o.FessCache; how == CacheAlways || how != CacheNever && refused == nil {
		body, err := r.fromCopy(ctx, h, report)
		if err == nil || ctx.Err() != nil {
			return body, ctx.Err()
		}
		r.o.Log.Debug("reading a stored copy", "doc_id", h.ID, "error", err)
	}
	if refused != nil {
		return "", refused
	}
	doc, err := r.o.Fetch.Get(ctx, h.URL, func(done, total int64) {
		part := float64(done) / float64(max(done, total, 1))
		if total <= 0 {
			part = float64(done) / float64(max(done, r.o.MaxBytes))
		}
		report(math.Round(part*progressConverting), ProgressTotal, PhaseFetching)
	})
	if err != nil {
		return "", err
	}
	return r.convert(ctx, doc.URL, doc.MediaType, doc.Data, report)
}

// fromCopy returns the text of the copy that the service stored.
func (r *Reader) fromCopy(ctx context.Context, h *search.Hit, report Report) (string, error) {
	if r.o.Copies == nil {
		return "", fmt.Errorf("the service stores no copies: %w", errkind.Unsupported)
	}
	stored, err := r.o.Copies.StoredCopy(ctx, h.ID, r.o.Labels)
	if err != nil {
		return "", err
	}
	return r.convert(ctx, h.URL, stored.MediaType, stored.Data, report)
}

// convert turns a document from an address into plain text.
func (r *Reader) convert(ctx context.Context, address, mediaType string, data []byte, report Report) (string, error) {
	report(progressConverting, ProgressTotal, PhaseConverting)
	if isPDF(mediaType, data) && !r.o.EnablePDF {
		return "", &errkind.Restriction{Reason: PDFReason,
			Err: fmt.Errorf("PDF conversion is disabled: %w", errkind.Denied)}
	}
	text, err := r.converter.convert(ctx, extract.Input{Name: pathOf(address), MediaType: mediaType, Data: data,
		Verbatim: true, Single: true})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("the document cannot be converted to text, open its url in another way: %w", err)
	case strings.TrimSpace(text.Body) == "" && len(data) > 0:
		return "", fmt.Errorf("the document contains no text that can be read, open its url in another way: %w",
			errkind.Unsupported)
	}
	return text.Body, nil
}

// Limits on the conversion of documents.
const (
	maxConversions = 4                // at a time
	maxConversion  = 10 * time.Second // time limit of one conversion
)

var errSlow = fmt.Errorf("reading took longer than %v", maxConversion)

// A converter turns documents into text, a few at a time.
type converter struct {
	extract func(context.Context, extract.Input) (*extract.Text, error)
	slots   chan struct{} // one element for each conversion
	log     *slog.Logger
}

func newConverter(log *slog.Logger) *converter {
	return &converter{extract.Extract, make(chan struct{}, maxConversions), log}
}

// convert calls extract.Extract. It returns the errors of Extract, and the error of
// ctx if it ends while convert waits for a slot.
func (c *converter) convert(ctx context.Context, in extract.Input) (t *extract.Text, err error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() {
		<-c.slots
		if p := recover(); p != nil {
			c.log.Error("converting a document panicked", "panic", p)
			t, err = nil, fmt.Errorf("converting a document: its reader failed: %w", errkind.Unsupported)
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, maxConversion, errSlow)
	defer cancel()
	return c.extract(ctx, in)
}

// isPDF reports whether a document is PDF by its media type or its first bytes.
func isPDF(mediaType string, data []byte) bool {
	media, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	}
	switch strings.TrimSpace(media) {
	case "application/pdf", "application/x-pdf":
		return true
	}
	return bytes.HasPrefix(bytes.TrimLeft(data[:min(len(data), 1024)], "\x00\t\n\f\r \xef\xbb\xbf"), []byte("%PDF-"))
}

// pathOf returns the last element of a URL's path. Its extension determines the
// format of a document if the media type does not.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}
