package searchmcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

const (
	// documentDigestRunes is larger than in lists, because there is only one
	// document.
	documentDigestRunes = 2000
	listDigestRunes     = 120
)

// Values of hashOf.
const (
	ofContent = "content" // the document's text
	ofSummary = "summary" // title, url, digest, doc_id and timestamp
)

// A summary is a document as returned by its resource and by the get_document
// tool.
type summary struct {
	Title         string `json:"title"`
	URL           string `json:"url"`
	Digest        string `json:"digest"`
	DocID         string `json:"doc_id"`
	Timestamp     any    `json:"timestamp,omitempty"`
	Created       any    `json:"created,omitempty"`
	LastModified  any    `json:"last_modified,omitempty"`
	URLLink       string `json:"url_link,omitempty"` // only if it differs from URL
	FileType      any    `json:"filetype,omitempty"`
	MIMEType      any    `json:"mimetype,omitempty"`
	ContentLength any    `json:"content_length,omitempty"`
	Label         any    `json:"label,omitempty"`
	Lang          any    `json:"lang,omitempty"`
	Hash          string `json:"hash"`
	HashOf        string `json:"hashOf"`
}

func (b *bridge) summary(h *search.Hit) summary {
	s := summary{
		Title:         title(h.Title),
		URL:           link(h.URL),
		Digest:        digest(h.Digest.Text, documentDigestRunes),
		DocID:         h.ID,
		Timestamp:     fieldValue(h, "timestamp"),
		Created:       fieldValue(h, "created"),
		LastModified:  fieldValue(h, "last_modified"),
		FileType:      fieldValue(h, "filetype"),
		MIMEType:      fieldValue(h, "mimetype"),
		ContentLength: fieldValue(h, "content_length"),
		Label:         fieldValue(h, "label"),
		Lang:          fieldValue(h, "lang"),
	}
	s.URLLink = link(otherLink(h))
	s.Hash, s.HashOf = b.hash(h)
	return s
}

// otherLink returns the url_link of a hit, or "" if it is only another form of
// the url. For a file, Fess decodes the url, and versions 15.4 and 15.7 also
// remove slashes, so that a folder becomes a host: file:///srv/a%20b.txt
// becomes file://srv/a b.txt, which is not a valid URL of the file.
func otherLink(h *search.Hit) string {
	l, _ := h.Extra["url_link"].(string)
	if l == h.URL {
		return ""
	}
	if path, ok := filePath(h.URL); ok {
		if other, ok := filePath(l); ok && other == path {
			return ""
		}
	}
	return l
}

// filePath returns the path of a file URL, decoded and without leading slashes.
// ok is false for other URLs.
func filePath(address string) (_ string, ok bool) {
	path, ok := strings.CutPrefix(address, "file:")
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	return strings.TrimLeft(path, "/"), ok
}

// hash returns the hash of the document's text if the service has it or the
// text is cached, otherwise the hash of the metadata that does not depend on
// the query.
func (b *bridge) hash(h *search.Hit) (sum, of string) {
	if h.TextHash != "" {
		return h.TextHash, ofContent
	}
	if t := b.texts.get(h.ID); t != nil && t.stamp == stampOf(h) {
		return t.hash, ofContent
	}
	timestamp, _ := knownTime(h.Timestamp).(string)
	facts, err := json.Marshal([]string{h.Title, h.URL, h.Digest.Text, h.ID, timestamp})
	if err != nil {
		// Strings can always be encoded as JSON.
		return "", ofSummary
	}
	s := sha256.Sum256(facts)
	return "sha256:" + hex.EncodeToString(s[:]), ofSummary
}

// identity returns the _meta of a document's list entry and contents (FRS 8.6).
func identity(id, url, hash, hashOf string) map[string]any {
	return map[string]any{"doc_id": id, "url": url, "hash": hash, "hashOf": hashOf}
}

// find looks up a document of the domain.
func (b *bridge) find(ctx context.Context, id string) (*search.Hit, error) {
	h, err := b.backend.Find(ctx, id, b.labels)
	if err != nil {
		return nil, b.unknown(id, err)
	}
	return h, nil
}

// unknown adds advice to an error of kind NotFound about a document. It returns
// other errors unchanged, including those of a server that lacks the whole API.
func (b *bridge) unknown(id string, err error) error {
	var remote *errkind.Remote
	if !errors.Is(err, errkind.NotFound) || errors.As(err, &remote) {
		return err
	}
	return fmt.Errorf("%w: document %q in domain %s; search again, because %s", errkind.NotFound, id, b.domain.ID,
		b.choose("ids may change when documents are crawled again", "the file may have been moved or deleted"))
}
