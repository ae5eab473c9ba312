package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// The files of the page. They are single variables, so that the program does not build
// without one of them. The vendored scripts become functions, because the page is shown
// sooner if they do not run before it needs them.
var (
	//go:embed web/index.html
	indexHTML string
	//go:embed web/style.css
	styleCSS string
	//go:embed web/vendor/marked.js
	markedScript string
	//go:embed web/vendor/prism.js
	prismScript string
	//go:embed web/base.js
	baseScript string
	//go:embed web/signon.js
	signonScript string
	//go:embed web/render.js
	renderScript string
	//go:embed web/search.js
	searchScript string
	//go:embed web/read.js
	readScript string
	//go:embed web/sources.js
	sourcesScript string
	//go:embed web/notes.js
	notesScript string
	//go:embed web/connect.js
	connectScript string
	//go:embed web/main.js
	mainScript string
)

// Markers in index.html. The style and the script take their places.
const (
	styleMarker  = "/* style */"
	scriptMarker = "/* script */"
)

// A page is the page of the console as it is sent.
type page struct {
	plain, compressed []byte
	etag              string // of plain, with quotes

	// policy is the Content-Security-Policy of the page: nothing but its own script
	// and style, and requests to this server. With Trusted Types, a browser refuses
	// to read text as HTML.
	policy string
}

// thePage returns the page, which is the same in every process of this version.
var thePage = sync.OnceValue(func() *page {
	style := "\n" + styleCSS
	vendored := "const vendored = {marked() {\n" + markedScript + "\n}, prism() {\n" + prismScript + "\nreturn Prism;\n}};"
	script := strings.Join([]string{"'use strict';", vendored, baseScript, signonScript, renderScript, searchScript, readScript,
		sourcesScript, notesScript, connectScript, mainScript, ""}, "\n") // they have one scope
	text := strings.NewReplacer(styleMarker, style, scriptMarker, script).Replace(indexHTML)
	p := &page{plain: []byte(text), etag: fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(text)))}
	var compressed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&compressed, gzip.BestCompression) // the level is valid
	_, _ = z.Write(p.plain)                                        // a bytes.Buffer returns no errors
	_ = z.Close()
	p.compressed = compressed.Bytes()
	p.policy = "default-src 'none'; script-src '" + hash(script) + "'; style-src '" + hash(style) +
		"'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'"
	return p
})

// hash returns the source expression for the content of an element of the page.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// servePage sends the page, or only its headers if the browser has it.
func servePage(w http.ResponseWriter, r *http.Request) {
	if p := thePage(); slices.Contains(tags(r.Header.Get("If-None-Match")), p.etag) {
		p.headers(w.Header(), http.StatusNotModified)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writePage(w, r, http.StatusOK)
}

// writePage sends the page, compressed if the client accepts that.
func writePage(w http.ResponseWriter, r *http.Request, status int) {
	p, h := thePage(), w.Header()
	p.headers(h, status)
	body := p.plain
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = p.compressed
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // for HEAD, net/http leaves it out; an error means that the client is gone
}

// headers sets the headers of a response. A browser keeps the page, which has no
// data, but asks each time whether it is still the same.
func (p *page) headers(h http.Header, status int) {
	secure(h)
	h.Set("Vary", "Accept-Encoding")
	if status == http.StatusOK || status == http.StatusNotModified {
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", "W/"+p.etag)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
}

// tags returns the tags in a value of If-None-Match, without the marks of weak ones.
func tags(header string) []string {
	list := strings.Split(header, ",")
	for i, tag := range list {
		list[i] = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
	}
	return list
}

// acceptsGzip reports whether a value of Accept-Encoding permits gzip.
func acceptsGzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(coding, ";")
		weight = strings.ReplaceAll(weight, " ", "")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
