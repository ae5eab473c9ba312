package kbclient

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"sync/atomic"

	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// fileHeader returns the header of the part of a form with a file.
func fileHeader(f kb.File) textproto.MIMEHeader {
	mediaType := "application/octet-stream"
	if t, params, err := mime.ParseMediaType(f.MediaType); err == nil {
		mediaType = mime.FormatMediaType(t, params)
	}
	return textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("file", f.Filename)},
		"Content-Type":        {mediaType},
	}
}

// watched is the body of a request with a file.
type watched struct {
	io.Reader
	read func() // called after each read
	// an error of Reader, which is that of the file; the transport may still read
	// when it has returned
	failed atomic.Pointer[error]
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.failed.Store(&err)
	}
	w.read()
	return n, err
}
