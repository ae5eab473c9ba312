package site

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"io"
	"net/url"
	"strings"
	"time"
)

// Limits on sitemaps (https://www.sitemaps.org/protocol.html) and llms.txt.
const (
	maxSitemapFiles = 200       // in all
	maxSitemapBytes = 50 << 20  // of one, uncompressed
	maxListed       = 1_000_000 // addresses in one
)

// A sitemapEntry is an address in a sitemap.
type sitemapEntry struct {
	address  string
	modified time.Time // zero if it is not known
}

// parseSitemap returns the pages in a sitemap, and other sitemaps that it names.
// base is its own address. Besides XML it may be compressed, or a text with an
// address on each line.
func parseSitemap(base *url.URL, data []byte) (pages []sitemapEntry, others []string) {
	data = bytes.TrimPrefix(unzip(data), []byte("\ufeff"))
	if !bytes.HasPrefix(bytes.TrimLeft(data[:min(len(data), 1024)], " \t\r\n"), []byte("<")) {
		for line := range strings.Lines(string(data)) {
			if a, ok := address(base, line); ok && strings.Contains(line, "://") && len(pages) < maxListed {
				pages = append(pages, sitemapEntry{address: a})
			}
		}
		return pages, nil
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var element string // the innermost of those that are read
	var loc, modified strings.Builder
	for len(pages)+len(others) < maxListed {
		token, err := d.RawToken()
		if err != nil { // at the end, or damaged: what was read counts
			break
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch element = t.Name.Local; element {
			case "url", "sitemap":
				loc.Reset()
				modified.Reset()
			}
			if t.Name.Space == "image" || t.Name.Space == "video" || t.Name.Space == "news" {
				element = "" // image:loc
			}
		case xml.CharData:
			switch {
			case element == "loc" && loc.Len() <= maxAddress:
				loc.Write(t)
			case element == "lastmod" && modified.Len() < 100:
				modified.Write(t)
			}
		case xml.EndElement:
			element = ""
			name := t.Name.Local
			if name != "url" && name != "sitemap" {
				continue
			}
			a, ok := address(base, loc.String())
			switch {
			case !ok || loc.Len() == 0:
			case name == "url":
				pages = append(pages, sitemapEntry{a, parseTime(modified.String())})
			default:
				others = append(others, a)
			}
			loc.Reset()
			modified.Reset()
		}
	}
	return pages, others
}

// unzip returns what a gzip file contains, up to maxSitemapBytes, and other data
// unchanged.
func unzip(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(z, maxSitemapBytes)) // of a damaged file, the beginning
	return text
}

// parseTime parses a time of a sitemap (W3C Datetime).
func parseTime(s string) time.Time {
	s = strings.TrimSpace(s)
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// maxMarkdownLinks is the maximum number of links in a Markdown text.
const maxMarkdownLinks = 100_000

// markdownLinks returns the addresses of the links in a Markdown text, such as
// llms.txt: [text](address), <address> and [name]: address. base is its own address.
func markdownLinks(base *url.URL, data []byte) []string {
	var links []string
	add := func(s []byte) {
		if a, ok := address(base, string(s)); ok && len(links) < maxMarkdownLinks {
			links = append(links, a)
		}
	}
	for rest := data; ; {
		_, after, ok := bytes.Cut(rest, []byte("]"))
		if !ok {
			break
		}
		rest = after
		var target []byte
		switch {
		case bytes.HasPrefix(rest, []byte("(")):
			target = bytes.TrimLeft(rest[1:min(len(rest), maxAddress)], " ")
		case bytes.HasPrefix(rest, []byte(": ")):
			target = bytes.TrimLeft(rest[2:min(len(rest), maxAddress)], " ")
		default:
			continue
		}
		if bytes.HasPrefix(target, []byte("<")) {
			if i := bytes.IndexByte(target, '>'); i > 0 {
				add(target[1:i])
			}
			continue
		}
		if i := bytes.IndexAny(target, ") \t\r\n"); i > 0 {
			add(target[:i])
		} else if i < 0 && len(rest) < maxAddress {
			add(target)
		}
	}
	for rest := data; ; {
		_, after, ok := bytes.Cut(rest, []byte("<http"))
		if !ok {
			break
		}
		rest = after
		if i := bytes.IndexAny(rest[:min(len(rest), maxAddress)], "> \t\r\n"); i > 0 && rest[i] == '>' {
			add(append([]byte("http"), rest[:i]...))
		}
	}
	return links
}
