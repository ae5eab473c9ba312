package kbserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// Limits on bodies.
const (
	maxJSON   = 1 << 20 // bytes
	maxNote   = 4 << 20 // bytes of JSON that contains the text of a note
	maxFields = 1 << 20 // bytes of a multipart body besides the file
	maxField  = 4 << 10 // bytes of a field that is not a file
)

// noteAdvice says what to do about a note that is too large.
const noteAdvice = "add a long text as a file"

// params are the parameters in the query of a request.
type params map[string]string

// params returns the parameters, which must have these names.
func (c *call) params(names ...string) (params, error) {
	given, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("the query of the URL is not well-formed: write a percent sign as %%25: %w",
			errkind.Invalid)
	}
	p := params{}
	for name, values := range given {
		switch {
		case !slices.Contains(names, name):
			return nil, fmt.Errorf("unknown parameter %q: use %s: %w", cut(name), strings.Join(names, ", "),
				errkind.Invalid)
		case len(values) > 1:
			return nil, &errkind.Argument{Name: name, Value: values[1], Want: "one value"}
		}
		p[name] = values[0]
	}
	return p, nil
}

// cut returns the beginning of a foreign name for a message.
func cut(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

// integer returns a parameter, or a default if it is not given.
func (p params) integer(name string, otherwise int) (int, error) {
	s, ok := p[name]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, &errkind.Argument{Name: name, Value: s, Want: "an integer"}
	}
	return n, nil
}

// mediaType returns the media type of the body and its parameters.
func (c *call) mediaType() (string, map[string]string) {
	media, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil {
		return "", nil
	}
	return media, params
}

// decode reads a JSON object of at most limit bytes from the body into v, a
// pointer to a struct. advice says what to do about a larger body.
func (c *call) decode(v any, limit int64, advice string) error {
	if media, _ := c.mediaType(); media != "application/json" {
		return &failure{http.StatusUnsupportedMediaType, "unsupported_media_type",
			"want a body in JSON: send it with the header Content-Type: application/json"}
	}
	limit = min(limit, c.o.MaxUpload)
	data, err := httpguard.ReadBody(c.r, limit)
	switch {
	case tooLarge(err):
		return fmt.Errorf("the body has more than %d bytes: %s: %w", limit, advice, errkind.TooLarge)
	case errors.Is(err, httpguard.ErrBodies):
		c.w.Header().Set("Retry-After", "5")
		return &failure{http.StatusServiceUnavailable, "unavailable", errkind.Message(err)}
	case err != nil:
		return cutOff(err)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return jsonError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the body must be one JSON object: remove what follows it: %w", errkind.Invalid)
	}
	return nil
}

// A jsonKind describes a JSON value, such as "string" or "number 2.5".
type jsonKind string

func (k jsonKind) String() string { return "a JSON " + string(k) }

// jsonError returns the error for JSON that cannot be decoded.
func jsonError(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kinds := map[string]string{"string": "a string", "int": "an integer", "bool": "true or false",
			"[]string": "a list of strings"}
		want, known := kinds[strings.TrimLeft(e.Type.String(), "*")]
		if e.Field == "" || !known {
			return fmt.Errorf("the body must be a JSON object, got a JSON %s: %w", e.Value, errkind.Invalid)
		}
		field := e.Field[strings.LastIndexByte(e.Field, '.')+1:]
		return &errkind.Argument{Name: field, Value: jsonKind(e.Value), Want: want}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if s, err := strconv.Unquote(name); err == nil {
			name = s
		}
		return fmt.Errorf("unknown member %q: leave it out; openapi.json lists the members: %w", cut(name),
			errkind.Invalid)
	}
	return fmt.Errorf("the body is not valid JSON: %v: %w", err, errkind.Invalid)
}

// tooLarge reports whether err is that of a body over a limit.
func tooLarge(err error) bool {
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

// cutOff returns the error for a body that did not arrive.
func cutOff(err error) error {
	return fmt.Errorf("the body ended early (%v): send the request again: %w", err, errkind.Invalid)
}

func (c *call) addJob() (int, any, error) {
	media, params := c.mediaType()
	var id int64
	var err error
	switch {
	case media == "multipart/form-data" && params["boundary"] != "":
		id, err = c.addFile(params["boundary"])
	case media == "application/json":
		id, err = c.addNote()
	default:
		err = &failure{http.StatusUnsupportedMediaType, "unsupported_media_type",
			"want a note as application/json, or a file as multipart/form-data"}
	}
	return http.StatusAccepted, map[string]any{"job_id": id}, err
}

func (c *call) addNote() (int64, error) {
	var body struct {
		Type string `json:"type"`
		kb.Note
	}
	if err := c.decode(&body, maxNote, noteAdvice); err != nil {
		return 0, err
	}
	if body.Type != kb.TypeNote {
		return 0, &errkind.Argument{Name: "type", Value: body.Type, Want: `"note"; send a file as multipart/form-data`}
	}
	return c.o.Base.AddNote(c.r.Context(), body.Note)
}

// addFile reads a form with a file. The file is written to the disk first,
// because fields may follow it.
func (c *call) addFile(boundary string) (int64, error) {
	if c.r.ContentLength > c.o.MaxUpload+maxFields {
		return 0, c.fileTooLarge()
	}
	var f kb.File
	var file *os.File
	defer func() {
		if file != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	form := multipart.NewReader(http.MaxBytesReader(c.w, httpguard.LongBody(c.w, c.r), c.o.MaxUpload+maxFields),
		boundary)
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, c.formError(err)
		}
		switch name := part.FormName(); {
		case name == "file" && file != nil:
			return 0, &errkind.Argument{Name: "file", Value: part.FileName(), Want: "one file in a request"}
		case name == "file":
			f.Filename, f.MediaType = part.FileName(), part.Header.Get("Content-Type")
			if file, err = c.spool(part); err != nil {
				return 0, err
			}
		case name == "tags" || name == "source_path" && f.SourcePath == "":
			value, err := io.ReadAll(io.LimitReader(part, maxField+1))
			if err != nil {
				return 0, c.formError(err)
			}
			if len(value) > maxField {
				return 0, &errkind.Argument{Name: name, Value: string(value),
					Want: fmt.Sprintf("at most %d bytes", maxField)}
			}
			if name == "source_path" {
				f.SourcePath = string(value)
			} else if f.Tags = append(f.Tags, string(value)); len(f.Tags) > kb.MaxTags {
				return 0, &errkind.Argument{Name: name, Value: len(f.Tags),
					Want: fmt.Sprintf("at most %d tags", kb.MaxTags)}
			}
		default:
			return 0, fmt.Errorf("the field %q is unknown or repeated: send file once, source_path at most once, and tags: %w",
				cut(name), errkind.Invalid)
		}
	}
	if file == nil {
		return 0, &errkind.Argument{Name: "file", Want: "a field with a file"}
	}
	if f.MediaType == "application/octet-stream" { // what clients send if they do not know it
		f.MediaType = ""
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return c.o.Base.AddFile(c.r.Context(), f, file)
}

// spool writes the file of a form to a temporary file.
func (c *call) spool(part *multipart.Part) (_ *os.File, err error) {
	defer func() { err = errkind.Disk("storing the file", err) }()
	if err := os.MkdirAll(c.o.TempDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for uploads: %w", err)
	}
	file, err := os.CreateTemp(c.o.TempDir, "upload-*")
	if err != nil {
		return nil, fmt.Errorf("storing an upload: %w", err)
	}
	r := &sourceReader{r: io.LimitReader(part, c.o.MaxUpload+1)}
	n, err := io.Copy(file, r)
	switch {
	case err == nil && n > c.o.MaxUpload:
		err = c.fileTooLarge()
	case err != nil && r.err != nil:
		err = c.formError(r.err)
	}
	if err != nil {
		file.Close()
		os.Remove(file.Name())
		return nil, err
	}
	return file, nil
}

// A sourceReader remembers the error of a reader, to tell it from those of a
// writer.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (c *call) fileTooLarge() error {
	return fmt.Errorf("the file has more than %d bytes, the limit for one file: split it: %w",
		c.o.MaxUpload, errkind.TooLarge)
}

// formError returns the error for a form that cannot be read.
func (c *call) formError(err error) error {
	if tooLarge(err) {
		return c.fileTooLarge()
	}
	return fmt.Errorf("the form cannot be read (%v): send multipart/form-data with the field file: %w",
		err, errkind.Invalid)
}
