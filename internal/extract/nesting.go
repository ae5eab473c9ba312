package extract

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/mail"
	"github.com/knowhow-mcp/knowhow/internal/extract/office"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
	"github.com/knowhow-mcp/knowhow/internal/extract/unpack"
)

// Limits on files that contain other files: archives, mailboxes, and mails with
// attachments.
const (
	maxNesting  = 4        // files one inside the other
	maxUnpacked = 64 << 20 // bytes, in all
	maxParts    = 20000    // files inside one file
)

// A nesting is the place of a file inside other files. The zero value is that
// of a file that is not inside another one.
type nesting struct {
	depth int
	left  *budget // of all files inside the outermost one; nil if there are none yet
}

// A budget limits the bytes and parts that may still be unpacked.
type budget struct {
	bytes int64
	parts int
	small bool // Input.MaxUnpacked is set
}

// spent reports whether a limit was exceeded.
func (b *budget) spent() bool { return b.bytes < 0 || b.parts < 0 }

// budget returns the budget of the outermost file.
func (in *Input) budget() *budget {
	if in.nesting.left == nil {
		in.nesting.left = &budget{cmp.Or(in.MaxUnpacked, maxUnpacked), maxParts, in.MaxUnpacked > 0}
	}
	return in.nesting.left
}

// inside returns the input for a file inside of in.
func (in *Input) inside(name, media string, data []byte) (Input, error) {
	b := in.budget()
	b.parts--
	switch {
	case in.nesting.depth >= maxNesting:
		return Input{}, fmt.Errorf("more than %d files are packed one inside the other: unpack it: %w",
			maxNesting, errkind.TooLarge)
	case b.parts < 0:
		return Input{}, fmt.Errorf("it contains more than %d files: split it: %w", maxParts, errkind.TooLarge)
	}
	return Input{Name: name, MediaType: media, Data: data, Single: in.Single, Lang: in.Lang,
		nesting: nesting{in.nesting.depth + 1, b}}, nil
}

// unpack reads all of r, up to the budget. damaged reports that r ended early;
// the data before that is returned.
func (in *Input) unpack(ctx context.Context, r io.Reader) (data []byte, damaged bool, err error) {
	data, err = io.ReadAll(unpack.NewReader(ctx, r, &in.budget().bytes))
	switch {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case in.budget().spent():
		return nil, false, fmt.Errorf("it unpacks to more than %d MiB: split it: %w", maxUnpacked>>20, errkind.TooLarge)
	}
	return data, err != nil, nil
}

// gunzip returns the file in a gzip file (RFC 1952), whose members are joined.
func (in *Input) gunzip(ctx context.Context) (Input, error) {
	z, err := gzip.NewReader(bytes.NewReader(in.Data))
	if err != nil {
		return Input{}, plain.Damaged("gzip file")
	}
	data, cut, err := in.unpack(ctx, z)
	if err != nil {
		return Input{}, err
	}
	if cut && len(data) == 0 {
		return Input{}, plain.Damaged("gzip file")
	}
	file, err := in.inside(unpack.GzipName(in.Name), "", data)
	file.cut = cut
	return file, err
}

// zipped calls yield for the files in a ZIP archive for whose names keep returns
// true, in the order of the archive: with their data, or with the reason why they
// cannot be read. The names are clean relative paths. Only the first of several
// files with the same name counts.
func (in *Input) zipped(
	ctx context.Context, keep func(name string) bool, yield func(name string, data []byte, err error) error,
) error {
	files, err := unpack.Zip(in.Data, "ZIP archive", maxParts)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, f := range files {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		name := unpack.ZipName(f)
		if name == "" || seen[name] || !f.Mode().IsRegular() || !keep(name) {
			continue
		}
		seen[name] = true
		data, err := in.unzip(ctx, f)
		if err != nil && (ctx.Err() != nil || in.budget().spent()) {
			return err
		}
		if err := yield(name, data, err); err != nil {
			return err
		}
	}
	return nil
}

// unzip returns the data of a file in an archive.
func (in *Input) unzip(ctx context.Context, f *zip.File) ([]byte, error) {
	const what = "file in an archive"
	if f.Flags&1 != 0 {
		return nil, plain.Locked(what)
	}
	r, err := f.Open()
	switch {
	case errors.Is(err, zip.ErrAlgorithm):
		return nil, plain.Unsupported(what + " that is packed by an unknown method: unpack the archive")
	case err != nil:
		return nil, plain.Damaged(what)
	}
	defer r.Close()
	data, cut, err := in.unpack(ctx, r)
	if cut {
		return nil, plain.Damaged(what)
	}
	return data, err
}

// attached returns a function that extracts the text of files that are attached to
// the mail in.
func (in Input) attached(ctx context.Context) mail.Opener {
	return func(name, media string, data []byte, yield func(name string, t *Text)) error {
		if in.Single {
			return plain.Unsupported("attached file")
		}
		sub, err := in.inside(name, media, data)
		if err != nil {
			return err
		}
		t, err := extract(ctx, sub)
		if err == nil {
			yield("", t)
		}
		if err == office.ErrNoDocument {
			// Files that cannot be read are left out, like other attached files.
			_ = sub.parts(ctx, "", all, func(p Part) error {
				if p.Err == nil {
					yield(p.Name, p.Text)
				}
				return nil
			})
		}
		return err
	}
}

// joinMessages extracts all messages of a mailbox as one text.
func joinMessages(ctx context.Context, t *Text, in Input) error {
	out := plain.NewWriter(ctx)
	err := in.parts(ctx, "", all, func(p Part) error {
		out.Heading(1, cmp.Or(p.Title, "Message "+p.Name))
		out.Part(p.Text, 1)
		return nil
	})
	if err == nil {
		out.Finish(t)
	}
	return err
}

func all(string) bool { return true }

// A Part is a document in a file, or a file in an archive that cannot be read.
type Part struct {
	Name  string // inside the file, with forward slashes: a clean relative path; "" if the file is the document
	Size  int64  // bytes of the original
	*Text        // nil if Err is set

	// Err is an error of Extract, for a file in an archive. With an empty Name, the
	// end of the file is missing, and there are parts from before.
	Err error
}

// Parts calls yield for each document in a file: for the messages of a mailbox,
// whose names are their numbers, for the files in an archive, and otherwise for
// the file itself. It leaves out files in an archive for whose names keep
// returns false. yield stops Parts by returning an error, which Parts returns.
//
// The errors are those of [Extract]; also of kind [errkind.TooLarge] if the file
// contains too much, and [errkind.Unsupported] if it contains no document.
func Parts(ctx context.Context, in Input, keep func(name string) bool, yield func(Part) error) error {
	n := 0
	in.budget() // of all copies of in
	none := plain.Unsupported("archive without documents")
	err := in.parts(ctx, "", keep, func(p Part) error {
		switch {
		case p.Err == nil:
			n++
		case errors.Is(p.Err, ErrLocked):
			none = plain.Locked("ZIP archive")
		case !errors.Is(p.Err, errkind.Unsupported):
			none = fmt.Errorf("archive without a file that can be read, such as %q: %w", p.Name, p.Err)
		}
		return yield(p)
	})
	if in.MaxUnpacked > 0 && in.budget().bytes < 0 {
		err = ErrUnpacked
	}
	if stop := stopped(ctx); err != nil && stop != nil {
		err = stop
	}
	if err == nil && n == 0 {
		err = none
	}
	if err != nil {
		return fmt.Errorf("extracting text: %w", err)
	}
	return nil
}

// parts implements Parts. name is that of in inside the outermost file.
func (in Input) parts(ctx context.Context, name string, keep func(string) bool, yield func(Part) error) error {
	f, err := formatOf(in)
	if err != nil {
		return err
	}
	var t *Text
	if f.kind == packageFile {
		if t, err = extract(ctx, in); err == office.ErrNoDocument {
			f.kind = zipFile
		}
	}
	switch f.kind {
	case gzipFile:
		file, err := in.gunzip(ctx)
		if err != nil {
			return err
		}
		return file.parts(ctx, name, keep, yield)
	case zipFile:
		kept := func(file string) bool { return keep(path.Join(name, file)) }
		return in.zipped(ctx, kept, func(file string, data []byte, err error) error {
			file = path.Join(name, file)
			if err == nil {
				var sub Input
				if sub, err = in.inside(file, "", data); err == nil {
					err = sub.parts(ctx, file, keep, yield)
				}
			}
			if err == nil || ctx.Err() != nil || in.budget().spent() || !unreadable(err) {
				return err
			}
			return yield(Part{Name: file, Size: int64(len(data)), Err: err})
		})
	case mailboxFile:
		n := 0
		err := mail.Messages(ctx, in.Data, func(data []byte) error {
			n++
			sub, err := in.inside("message.eml", "message/rfc822", data)
			if err != nil {
				return err
			}
			t, err := extract(ctx, sub)
			if err != nil {
				return err
			}
			return yield(Part{Name: path.Join(name, strconv.Itoa(n)), Size: int64(len(data)), Text: t})
		})
		if err == nil && in.cut {
			err = yield(Part{Name: name, Err: plain.Damaged("mailbox whose end is missing")})
		}
		return err
	case packageFile:
	default:
		t, err = extract(ctx, in)
	}
	if err != nil {
		return err
	}
	return yield(Part{Name: name, Size: int64(len(in.Data)), Text: t})
}

// ErrUnpacked means that a file unpacks to more than [Input.MaxUnpacked] bytes. It
// is of kind [errkind.TooLarge].
var ErrUnpacked = fmt.Errorf("it unpacks to too many bytes: %w", errkind.TooLarge)

// unreadable reports whether err is one of Extract for a single file.
func unreadable(err error) bool {
	return errors.Is(err, errkind.Unsupported) || errors.Is(err, errkind.Corrupt) || errors.Is(err, errkind.TooLarge)
}
