package dataset

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Export writes the dataset with an id as a zip archive of one folder, which
// becomes a dataset where it is unpacked: the paths in its manifest are relative
// to it. The error is an [*UnknownDataset] if there is no dataset with that id,
// and of kind Corrupt if a file is missing.
func (r *Registry) Export(ctx context.Context, id string, to io.Writer) error {
	e, err := r.find(id)
	if err != nil {
		return err
	}
	if e.state != Ready {
		return r.bad(e)
	}
	z := zip.NewWriter(to)
	m := e.manifest
	m.Index, m.Metadata = indexFolder, metadataName
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	w, err := createInZip(z, path.Join(m.ID, manifestName))
	if err == nil {
		_, err = w.Write(append(manifest, '\n'))
	}
	name := indexName
	if filepath.Ext(e.place.index) == ".faiss" {
		name = "docs.faiss"
	}
	for _, f := range []struct{ from, to string }{{e.place.metadata, metadataName},
		{e.place.index, path.Join(indexFolder, name)}} {
		if err == nil {
			err = addToZip(ctx, z, f.from, path.Join(m.ID, f.to))
		}
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return fmt.Errorf("exporting dataset %s: %w", id, err)
	}
	return nil
}

// createInZip adds a file to an archive. Its date is the first that the format has,
// so that the same dataset gives the same archive.
func createInZip(z *zip.Writer, name string) (io.Writer, error) {
	return z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate,
		Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)})
}

// addToZip adds a file to an archive.
func addToZip(ctx context.Context, z *zip.Writer, from, to string) error {
	f, _, err := openRegular(from)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", from, err, errkind.Corrupt)
	}
	defer f.Close()
	w, err := createInZip(z, to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, readerOf(ctx, f))
	return err
}

// readerOf returns a reader that stops when ctx ends.
func readerOf(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

// A contextReader is the only value here that holds a context: io.Reader has
// none.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Documents calls f with the documents of the dataset with an id, in order,
// until f returns an error.
func (r *Registry) Documents(ctx context.Context, id string, f func(Document) error) error {
	s, err := r.get(ctx, id)
	if err != nil {
		return err
	}
	for _, d := range s.docs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}
