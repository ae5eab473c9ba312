package searchmcp

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
	"github.com/knowhow-mcp/knowhow/internal/job"
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

// Content configures the sources of texts that the service does not have.
type Content struct {
	Enabled bool    // false disables them
	Fetch   Fetcher // required if Enabled

	// MaxBytes is the size limit of a fetched document in bytes, which also determines
	// the size of the cache of texts; 0 means 5 MiB.
	MaxBytes int64

	// FessCache determines when the copy stored by the service is read before
	// the document's URL is fetched: CacheAlways; CacheNever; CachePolicy (also
	// ""), only if Fetch may fetch the URL.
	FessCache string

	EnablePDF bool // convert PDF documents
}

// Options that an error can be due to; see [errkind.ReasonOf].
const (
	DisabledReason errkind.Reason = "searchmcp: Content.Enabled"
	PDFReason      errkind.Reason = "searchmcp: Content.EnablePDF"
)

// The values of [Content.FessCache].
const (
	CachePolicy = "policy"
	CacheAlways = "always"
	CacheNever  = "never"
)

// Progress of reading a document, on a scale up to progressTotal, at the
// beginning of each phase.
const (
	progressTotal      = 100
	progressConverting = 80
	progressChunking   = 95
)

const defaultMaxContent = 5 << 20

// acquire returns a text that the service does not have: from the service's
// stored copy or from the document's URL. The text is cached for the following
// chunks.
func (t *Tools) acquire(ctx context.Context, h *search.Hit, report job.Report) (*cachedText, error) {
	if !t.content.Enabled {
		return nil, &errkind.Restriction{Reason: DisabledReason,
			Err: fmt.Errorf("the index gives no text of document %s, and fetching it from its address is disabled: %w",
				h.ID, errkind.Denied)}
	}
	report(0, progressTotal, phaseFetching)
	body, err := t.original(ctx, h, report)
	if err != nil {
		return nil, err
	}
	text := &cachedText{id: h.ID, stamp: stampOf(h), hash: chunk.Hash(body), text: body}
	if text.cost() > t.texts.max {
		return nil, &errkind.Restriction{Reason: fetch.SizeReason,
			Err: fmt.Errorf("the text of document %s has %d bytes, more than can be kept: %w", h.ID, len(body),
				errkind.TooLarge)}
	}
	t.texts.put(text)
	return text, nil
}

// original returns the text of the stored copy, if the configuration permits that
// and there is one, and otherwise that of the document at its URL.
func (t *Tools) original(ctx context.Context, h *search.Hit, report job.Report) (string, error) {
	refused := t.content.Fetch.Check(h.URL)
	if how := t.content.FessCache; how == CacheAlways || how != CacheNever && refused == nil {
		body, err := t.fromCopy(ctx, h, report)
		if err == nil || ctx.Err() != nil {
			return body, ctx.Err()
		}
		t.log.Debug("reading a stored copy", "doc_id", h.ID, "error", err)
	}
	if refused != nil {
		return "", refused
	}
	doc, err := t.content.Fetch.Get(ctx, h.URL, func(done, total int64) {
		part := float64(done) / float64(max(done, total, 1))
		if total <= 0 {
			part = float64(done) / float64(max(done, t.content.MaxBytes))
		}
		report(math.Round(part*progressConverting), progressTotal, phaseFetching)
	})
	if err != nil {
		return "", err
	}
	return t.convert(ctx, doc.URL, doc.MediaType, doc.Data, report)
}

// A copyReader reads the copies of the original documents that a service
// stored.
type copyReader interface {
	// StoredCopy returns the copy of a document. It looks the document up like
	// Find. If there is no copy, the error is of kind Unsupported.
	StoredCopy(ctx context.Context, id string, labels []string) (*search.StoredCopy, error)
}

// fromCopy returns the text of the copy that the service stored.
func (t *Tools) fromCopy(ctx context.Context, h *search.Hit, report job.Report) (string, error) {
	r, ok := t.backend.(copyReader)
	if !ok {
		return "", fmt.Errorf("the service stores no copies: %w", errkind.Unsupported)
	}
	stored, err := r.StoredCopy(ctx, h.ID, t.labels)
	if err != nil {
		return "", err
	}
	return t.convert(ctx, h.URL, stored.MediaType, stored.Data, report)
}

// convert turns a document from an address into plain text.
func (t *Tools) convert(
	ctx context.Context, address, mediaType string, data []byte, report job.Report,
) (string, error) {
	report(progressConverting, progressTotal, phaseConverting)
	if isPDF(mediaType, data) && !t.content.EnablePDF {
		return "", &errkind.Restriction{Reason: PDFReason,
			Err: fmt.Errorf("PDF conversion is disabled: %w", errkind.Denied)}
	}
	text, err := t.converter.convert(ctx, extract.Input{Name: pathOf(address), MediaType: mediaType, Data: data,
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
