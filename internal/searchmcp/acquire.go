package searchmcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/url"
	"path"
	"strings"
	"time"

	"knowhow/internal/chunk"
	"knowhow/internal/errkind"
	"knowhow/internal/extract"
	"knowhow/internal/fetch"
	"knowhow/internal/job"
	"knowhow/internal/search"
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
	Enabled  bool    // false disables them
	Fetch    Fetcher // required if Enabled
	MaxBytes int64   // size limit of a fetched document in bytes, which also determines the size of the cache of texts; 0 means 5 MiB

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
func (b *bridge) acquire(ctx context.Context, h *search.Hit, report job.Report) (*cachedText, error) {
	c := b.content
	if !c.Enabled {
		return nil, &errkind.Restriction{Reason: DisabledReason,
			Err: fmt.Errorf("the index gives no text of document %s, and fetching it from its address is disabled: %w", h.ID, errkind.Denied)}
	}
	report(0, progressTotal, phaseFetching)
	refused := c.Fetch.Check(h.URL)
	if c.FessCache == CacheAlways || c.FessCache != CacheNever && refused == nil {
		body, err := b.fromCopy(ctx, h, report)
		switch {
		case err == nil:
			return b.cache(h, body)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		b.log.Debug("reading a stored copy", "doc_id", h.ID, "error", err)
	}
	if refused != nil {
		return nil, refused
	}
	body, err := b.fromAddress(ctx, h, report)
	if err != nil {
		return nil, err
	}
	return b.cache(h, body)
}

// A copyReader reads the copies of the original documents that a service
// stored.
type copyReader interface {
	// StoredCopy returns the copy of a document. It looks the document up like
	// Find. If there is no copy, the error is of kind Unsupported.
	StoredCopy(ctx context.Context, id string, labels []string) (*search.StoredCopy, error)
}

// fromCopy returns the text of the copy that the service stored.
func (b *bridge) fromCopy(ctx context.Context, h *search.Hit, report job.Report) (string, error) {
	r, ok := b.backend.(copyReader)
	if !ok {
		return "", fmt.Errorf("the service stores no copies: %w", errkind.Unsupported)
	}
	stored, err := r.StoredCopy(ctx, h.ID, b.labels)
	if err != nil {
		return "", err
	}
	return b.convert(ctx, extract.Input{Name: pathOf(h.URL), MediaType: stored.MediaType, Data: stored.Data, Verbatim: true, Single: true}, report)
}

// fromAddress returns the text of the document at its URL.
func (b *bridge) fromAddress(ctx context.Context, h *search.Hit, report job.Report) (string, error) {
	doc, err := b.content.Fetch.Get(ctx, h.URL, func(done, total int64) {
		part := float64(done) / float64(max(done, total, 1))
		if total <= 0 {
			part = float64(done) / float64(max(done, b.content.MaxBytes))
		}
		report(math.Round(part*progressConverting), progressTotal, phaseFetching)
	})
	if err != nil {
		return "", err
	}
	return b.convert(ctx, extract.Input{Name: pathOf(doc.URL), MediaType: doc.MediaType, Data: doc.Data, Verbatim: true, Single: true}, report)
}

// convert turns a document into plain text.
func (b *bridge) convert(ctx context.Context, in extract.Input, report job.Report) (string, error) {
	report(progressConverting, progressTotal, phaseConverting)
	if isPDF(in) && !b.content.EnablePDF {
		return "", &errkind.Restriction{Reason: PDFReason, Err: fmt.Errorf("PDF conversion is disabled: %w", errkind.Denied)}
	}
	t, err := b.converter.convert(ctx, in)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, errkind.Busy):
		return "", err
	case err != nil:
		return "", fmt.Errorf("the document cannot be converted to text, open its url in another way: %w", err)
	}
	if strings.TrimSpace(t.Body) == "" && len(in.Data) > 0 {
		return "", fmt.Errorf("the document contains no text that can be read, open its url in another way: %w", errkind.Unsupported)
	}
	return t.Body, nil
}

// Limits on the conversion of documents.
const (
	maxConversions  = 4                // concurrent quick conversions, and also concurrent slow ones
	quickConversion = time.Second      // a conversion that takes longer is slow
	maxConversion   = 10 * time.Second // time limit of one conversion
)

var (
	errSlow = fmt.Errorf("reading took longer than %v", maxConversion)
	errBusy = fmt.Errorf("the document takes long to convert, and %d others that do are being converted; try again later: %w",
		maxConversions, errkind.Busy)
)

// A converter turns documents into text. It limits the number of concurrent
// conversions. A conversion that takes long gives its slot to another one and
// continues in one of the slots for slow conversions, so that slow documents do
// not delay the others. If all of those slots are taken, it is given up.
type converter struct {
	extract     func(context.Context, extract.Input) (*extract.Text, error)
	quick, slow chan struct{} // one element for each slot that is taken
	log         *slog.Logger
}

func newConverter(log *slog.Logger) *converter {
	return &converter{extract.Extract, make(chan struct{}, maxConversions), make(chan struct{}, maxConversions), log}
}

// convert calls extract.Extract. It returns the errors of Extract, the error of
// ctx if it ends while convert waits for a slot, and an error of kind Busy if
// too many documents take long.
func (c *converter) convert(ctx context.Context, in extract.Input) (t *extract.Text, err error) {
	select {
	case c.quick <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, maxConversion, errSlow)
	defer cancel()
	place := make(chan chan struct{}, 1) // receives the slot that is taken when the timer fires
	timer := time.AfterFunc(quickConversion, func() {
		select {
		case c.slow <- struct{}{}:
			<-c.quick
			place <- c.slow
		default:
			stop(errBusy)
			place <- c.quick
		}
	})
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("converting a document panicked", "panic", p)
			t, err = nil, fmt.Errorf("converting a document: its reader failed: %w", errkind.Unsupported)
		}
		if timer.Stop() {
			<-c.quick
			return
		}
		<-<-place
	}()
	t, err = c.extract(ctx, in)
	if err != nil && context.Cause(ctx) == errBusy {
		return nil, errBusy
	}
	return t, err
}

// cache keeps a text for the following chunks.
func (b *bridge) cache(h *search.Hit, body string) (*cachedText, error) {
	t := &cachedText{id: h.ID, stamp: stampOf(h), hash: chunk.Hash(body), text: body}
	if t.cost() > b.texts.max {
		return nil, &errkind.Restriction{Reason: fetch.SizeReason,
			Err: fmt.Errorf("the text of document %s has %d bytes, more than can be kept: %w", h.ID, len(body), errkind.TooLarge)}
	}
	b.texts.put(t)
	return t, nil
}

// isPDF reports whether a document is PDF by its media type or its first bytes.
func isPDF(in extract.Input) bool {
	media, _, err := mime.ParseMediaType(in.MediaType)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(in.MediaType), ";")
	}
	switch strings.TrimSpace(media) {
	case "application/pdf", "application/x-pdf":
		return true
	}
	return bytes.HasPrefix(bytes.TrimLeft(in.Data[:min(len(in.Data), 1024)], "\x00\t\n\f\r \xef\xbb\xbf"), []byte("%PDF-"))
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
