package searchmcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search"
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
	Title         string    `json:"title"`
	URL           string    `json:"url"`
	Digest        string    `json:"digest"`
	DocID         string    `json:"doc_id"`
	Timestamp     any       `json:"timestamp,omitempty"`
	Created       any       `json:"created,omitempty"`
	LastModified  any       `json:"last_modified,omitempty"`
	URLLink       string    `json:"url_link,omitempty"` // only if it differs from URL
	FileType      any       `json:"filetype,omitempty"`
	MIMEType      any       `json:"mimetype,omitempty"`
	ContentLength any       `json:"content_length,omitempty"`
	Label         any       `json:"label,omitempty"`
	Lang          any       `json:"lang,omitempty"`
	Hash          string    `json:"hash"`
	HashOf        string    `json:"hashOf"`
	Sections      []section `json:"sections,omitzero"`      // get_document of folders
	More          int       `json:"moreSections,omitempty"` // that are not listed
}

type section struct {
	Heading string `json:"heading"`
	Offset  int    `json:"offset"`
}

// document returns a document of the domain.
func (t *Tools) document(ctx context.Context, id string) (*summary, error) {
	h, err := t.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return t.summary(h), nil
}

func (t *Tools) summary(h *search.Hit) *summary {
	c := clean(*h, documentDigestRunes)
	s := &summary{
		Title:         c.Title,
		URL:           c.URL,
		Digest:        c.Digest.Text,
		DocID:         c.ID,
		Timestamp:     fieldValue(&c, "timestamp"),
		Created:       fieldValue(&c, "created"),
		LastModified:  fieldValue(&c, "last_modified"),
		URLLink:       link(otherLink(&c)),
		FileType:      fieldValue(&c, "filetype"),
		MIMEType:      fieldValue(&c, "mimetype"),
		ContentLength: fieldValue(&c, "content_length"),
		Label:         fieldValue(&c, "label"),
		Lang:          fieldValue(&c, "lang"),
	}
	s.Hash, s.HashOf = t.hash(h)
	return s
}

// listedSections is how many sections get_document lists.
const listedSections = 200

// list sets the sections. If there are too many, those with the longest paths of
// headings are left out first, such as those of the options of a program. A single
// title is not enough: the first sections below it are listed as well.
func (s *summary) list(all []document.Section) {
	s.Sections = []section{}
	var ofDepth []int // numbers of sections
	for _, sec := range all {
		if !sec.Continues {
			depth := headingDepth(sec)
			for len(ofDepth) <= depth {
				ofDepth = append(ofDepth, 0)
			}
			ofDepth[depth]++
		}
	}
	depth, n := 0, 0 // up to which sections are listed, and their number
	for d, of := range ofDepth {
		if n > 1 && n+of > listedSections {
			break
		}
		depth, n = d, n+of
	}
	for _, sec := range all {
		switch {
		case sec.Continues:
		case len(s.Sections) == listedSections || headingDepth(sec) > depth:
			s.More++
		default:
			s.Sections = append(s.Sections, section{digest(sec.Heading, headingRunes), sec.Offset})
		}
	}
}

// headingDepth returns the number of headings above a section, as far as its path
// shows them.
func headingDepth(s document.Section) int { return strings.Count(s.Heading, " > ") }

// otherLink returns the url_link of a hit, or "" if it is only another form of
// the url. For a file, Fess decodes the url, and versions 15.4 and 15.7 also
// remove slashes, so that a folder becomes a host: file:///srv/a%20b.txt
// becomes file://srv/a b.txt, which is not a valid URL of the file.
func otherLink(h *search.Hit) string {
	l, _ := h.Extra["url_link"].(string)
	if link(l) == link(h.URL) {
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
func (t *Tools) hash(h *search.Hit) (sum, of string) {
	if h.TextHash != "" {
		return h.TextHash, ofContent
	}
	if text := t.content.Cached(h.ID); text != nil && text.IsOf(h) {
		return text.Hash, ofContent
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
