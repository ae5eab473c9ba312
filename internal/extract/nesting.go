package extract

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"knowhow/internal/errkind"
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

// A budget is what may still be unpacked.
type budget struct {
	bytes int64
	parts int
}

// budget returns the budget of the outermost file.
func (in *Input) budget() *budget {
	if in.nesting.left == nil {
		in.nesting.left = &budget{maxUnpacked, maxParts}
	}
	return in.nesting.left
}

// inside returns the input for a file inside of in.
func (in *Input) inside(name, media string, data []byte) (Input, error) {
	b := in.budget()
	b.parts--
	switch {
	case in.nesting.depth >= maxNesting:
		return Input{}, fmt.Errorf("more than %d files are packed one inside the other: unpack it: %w", maxNesting, errkind.TooLarge)
	case b.parts < 0:
		return Input{}, fmt.Errorf("it contains more than %d files: split it: %w", maxParts, errkind.TooLarge)
	}
	return Input{Name: name, MediaType: media, Data: data, Single: in.Single, nesting: nesting{in.nesting.depth + 1, b}}, nil
}

// unpack reads all of r, up to the budget. damaged reports that r ended early;
// the data before that is returned.
func (in *Input) unpack(ctx context.Context, r io.Reader) (data []byte, damaged bool, err error) {
	limit := in.budget().bytes
	data, err = io.ReadAll(io.LimitReader(reader{ctx, r}, limit+1))
	switch {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case int64(len(data)) > limit:
		return nil, false, fmt.Errorf("it unpacks to more than %d bytes: split it: %w", maxUnpacked, errkind.TooLarge)
	}
	in.budget().bytes -= int64(len(data))
	return data, err != nil, nil
}

// gunzip returns the file in a gzip file (RFC 1952), whose members are joined.
func (in *Input) gunzip(ctx context.Context) (Input, error) {
	z, err := gzip.NewReader(bytes.NewReader(in.Data))
	if err != nil {
		return Input{}, fmt.Errorf("gzip file without a valid header: %w", errkind.Corrupt)
	}
	data, damaged, err := in.unpack(ctx, z)
	if err != nil {
		return Input{}, err
	}
	if damaged && len(data) == 0 {
		return Input{}, fmt.Errorf("gzip file that cannot be unpacked: %w", errkind.Corrupt)
	}
	return in.inside(gunzipName(in.Name), "", data)
}

// gunzipName returns the name of the file in a gzip file.
func gunzipName(name string) string {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".gz":
		return name[:len(name)-len(ext)]
	case ".tgz":
		return name[:len(name)-len(ext)] + ".tar"
	case ".svgz":
		return name[:len(name)-1]
	}
	return name
}

// gunzipHead returns the first bytes of the file in a gzip file that begins
// with head. ok is false if that is damaged.
func gunzipHead(head []byte) (data []byte, ok bool) {
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return nil, false
	}
	data, _ = io.ReadAll(io.LimitReader(z, sniffLen)) // head ends in the middle
	return data, true
}

// A Part is a document in a file.
type Part struct {
	Name string // inside the file, with forward slashes: a clean relative path; "" if the file is the document
	Size int64  // bytes of the original
	*Text
}

// Parts calls yield for each document in a file: for the messages of a mailbox,
// whose names are their numbers, for the files in an archive, and otherwise for
// the file itself. It leaves out files in an archive for whose names keep
// returns false, those without text, and damaged ones. yield stops Parts by
// returning an error, which Parts returns.
//
// The errors are those of [Extract]; also of kind [errkind.TooLarge] if the file
// contains too much, and [errkind.Unsupported] if it contains no document.
func Parts(ctx context.Context, in Input, keep func(name string) bool, yield func(Part) error) error {
	n := 0
	err := in.parts(ctx, "", keep, func(p Part) error { n++; return yield(p) })
	if stop := stopped(ctx); err != nil && stop != nil {
		err = stop
	}
	if err == nil && n == 0 {
		err = unsupported("archive without documents")
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
	switch f.kind {
	case kindGzip:
		file, err := in.gunzip(ctx)
		if err != nil {
			return err
		}
		return file.parts(ctx, name, keep, yield)
	case kindZip:
		return in.zipped(ctx, func(file string, data []byte) error {
			file = path.Join(name, file)
			if !keep(file) {
				return nil
			}
			sub, err := in.inside(file, "", data)
			if err != nil {
				return err
			}
			err = sub.parts(ctx, file, keep, yield)
			if ctx.Err() == nil && (errors.Is(err, errkind.Unsupported) || errors.Is(err, errkind.Corrupt)) {
				return nil
			}
			return err
		}, func(file string) bool { return keep(path.Join(name, file)) })
	case kindMailbox:
		n := 0
		return messages(ctx, in.Data, func(data []byte) error {
			n++
			sub, err := in.inside("message.eml", "message/rfc822", data)
			if err != nil {
				return err
			}
			t, err := extract(ctx, sub)
			if err != nil {
				return err
			}
			return yield(Part{path.Join(name, strconv.Itoa(n)), int64(len(data)), t})
		})
	}
	t, err := extract(ctx, in)
	if err != nil {
		return err
	}
	return yield(Part{name, int64(len(in.Data)), t})
}
