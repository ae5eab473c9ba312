package site

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits on pages.
const (
	maxToken = 4 << 20 // bytes of a tag or a text; the rest of the page is not read
	maxLinks = 10_000  // of a page
	maxTitle = 200     // bytes
)

// A pageContent is what a round reads of a page in HTML.
type pageContent struct {
	links     []string // addresses, each once, in order
	canonical string   // the address that the page has by its own word; ""
	hash      string   // of the visible text
	title     string   // at most maxTitle bytes
}

// readPage reads a page in HTML, whose address is base.
func readPage(base *url.URL, data []byte) pageContent {
	var p pageContent
	seen := map[string]bool{}
	link := func(ref string) {
		if a, ok := address(base, ref); ok && len(p.links) < maxLinks && !seen[a] {
			seen[a] = true
			p.links = append(p.links, a)
		}
	}
	text, hidden, inTitle, based := sha256.New(), atom.Atom(0), false, false
	z := html.NewTokenizer(bytes.NewReader(data))
	z.SetMaxBuf(maxToken)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF { // the rest was not read
				text.Write(data)
			}
			p.hash = hex.EncodeToString(text.Sum(nil)[:16])
			return p
		case html.TextToken:
			words := bytes.Fields(z.Text())
			if hidden == 0 {
				for _, word := range words {
					text.Write(word)
					text.Write([]byte{' '})
				}
			}
			if inTitle && p.title == "" {
				title := bytes.Join(words, []byte{' '})
				p.title = strings.ToValidUTF8(string(title[:min(len(title), maxTitle)]), "")
			}
		case html.EndTagToken:
			inTitle = false
			if name, _ := z.TagName(); atom.Lookup(name) == hidden {
				hidden = 0
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := atom.Lookup(name)
			if isHidden(tag) {
				hidden = tag
			}
			inTitle = tag == atom.Title
			if !linkTags[tag] {
				continue
			}
			at := map[string]string{}
			for n := 0; more && n < 100; n++ {
				var key, value []byte
				if key, value, more = z.TagAttr(); at[string(key)] == "" {
					at[string(key)] = string(value)
				}
			}
			rel := strings.Fields(strings.ToLower(at["rel"]))
			switch tag {
			case atom.Base:
				if a, ok := address(base, at["href"]); ok && !based && at["href"] != "" {
					if u, err := url.Parse(a); err == nil {
						base, based = u, true
					}
				}
			case atom.A, atom.Area:
				if at["href"] != "" && !slices.Contains(rel, "nofollow") {
					link(at["href"])
				}
			case atom.Frame, atom.Iframe:
				if at["src"] != "" {
					link(at["src"])
				}
			case atom.Link:
				switch {
				case at["href"] == "":
				case slices.Contains(rel, "canonical"):
					if a, ok := address(base, at["href"]); ok && p.canonical == "" {
						p.canonical = a
					}
				case slices.Contains(rel, "next"), slices.Contains(rel, "prev"):
					link(at["href"])
				}
			case atom.Meta:
				if strings.EqualFold(at["http-equiv"], "refresh") {
					if to := refreshTarget(at["content"]); to != "" {
						link(to)
					}
				}
			}
		}
	}
}

// linkTags are the elements whose attributes are read.
var linkTags = map[atom.Atom]bool{atom.A: true, atom.Area: true, atom.Base: true, atom.Frame: true, atom.Iframe: true,
	atom.Link: true, atom.Meta: true}

// isHidden reports whether the text of an element is not shown.
func isHidden(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Noembed, atom.Noframes:
		return true
	}
	return false
}

// refreshTarget returns the address in the content of <meta http-equiv="refresh">,
// as in "0; url=guide/", or "".
func refreshTarget(content string) string {
	_, rest, ok := strings.Cut(content, ";")
	if !ok {
		return ""
	}
	name, to, ok := strings.Cut(rest, "=")
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "url") {
		return ""
	}
	return strings.Trim(strings.TrimSpace(to), `"'`)
}
