package console

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// A File is the original of a document.
type File struct {
	Name     string // for people, without a folder
	Modified time.Time
	Content  io.ReadSeekCloser
}

// serveFile sends the original of the document with the ID in the parameter id, or a part
// of it, as a download. A browser never shows it: it can be a page with scripts.
func (c *console) serveFile(w http.ResponseWriter, r *http.Request) {
	id, err := parameter(r.URL.Query(), "id", 1)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	f, err := c.o.File(r.Context(), id)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	defer f.Content.Close() // nothing is written
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", disposition(f.Name))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	secure(h)
	http.ServeContent(w, r, "", f.Modified, &content{f.Content, r.Context()})
}

// disposition returns the header Content-Disposition of a download with a name.
func disposition(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || !unicode.IsPrint(r) { // also marks that change the direction
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

// A content can be read until a context ends.
type content struct {
	io.ReadSeeker
	ctx context.Context
}

// Read implements [io.Reader].
func (c *content) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil { // for example because the caller has lost rights
		return 0, err
	}
	return c.ReadSeeker.Read(b)
}
