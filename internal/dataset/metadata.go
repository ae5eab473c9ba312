package dataset

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"unsafe"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// Limits of a dataset that is read.
const (
	maxMetadata  = 1 << 30 // bytes of the metadata file
	maxIndex     = 4 << 30 // bytes of the index file
	maxDocuments = 5_000_000
)

// DefaultModel is the model of a dataset whose metadata names none, as MCPower
// assumes.
const DefaultModel = "sentence-transformers/all-MiniLM-L6-v2"

// A Document is one entry of the metadata: the text that a vector stands for,
// and where it comes from.
type Document struct {
	ID         string `json:"id"`
	Title      string `json:"title"`
	Path       string `json:"path"`
	Content    string `json:"content"`
	Snippet    string `json:"snippet,omitempty"`
	Heading    string `json:"heading,omitempty"`
	Chunk      int    `json:"chunk,omitempty"`       // number in the original, from 1; 0 if not known
	ChunkTotal int    `json:"chunk_total,omitempty"` // of the original
	StartLine  int    `json:"start_line,omitempty"`  // in the text of the original, from 1; 0 if not known
	EndLine    int    `json:"end_line,omitempty"`
	SHA256     string `json:"sha256,omitempty"` // "sha256:" and hex of Content
}

// A metadata is the contents of a metadata file.
type metadata struct {
	Model      string // "" if it names none
	Dimensions int    // 0 if it is not known
	Documents  []Document

	budget *budget // of Documents
}

// loose is a string that may be written as a number. Any other value is "".
type loose string

func (l *loose) UnmarshalJSON(data []byte) error {
	*l = ""
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(l))
	}
	if data[0] == '-' || '0' <= data[0] && data[0] <= '9' {
		*l = loose(data)
	}
	return nil
}

// count returns a number that may be written as a string, 0 for anything else.
func (l loose) count() int {
	n, err := strconv.Atoi(string(l))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// An entry of a document in any layout. MCPower reads the first five members.
// Others are those of its specifications.
type looseDocument struct {
	ID          loose `json:"id"`
	Title       loose `json:"title"`
	Path        loose `json:"path"`
	Content     loose `json:"content"`
	Snippet     loose `json:"snippet"`
	Text        loose `json:"text"`
	OriginalDoc loose `json:"originalDoc"`
	Heading     loose `json:"heading"`
	Chunk       loose `json:"chunk"`
	ChunkTotal  loose `json:"chunk_total"`
	ChunkTotal2 loose `json:"chunkTotal"`
	StartLine   loose `json:"start_line"`
	EndLine     loose `json:"end_line"`
}

func (l *looseDocument) document() Document {
	first := func(values ...loose) string {
		for _, v := range values {
			if strings.TrimFunc(string(v), blank) != "" {
				return string(v)
			}
		}
		return ""
	}
	d := Document{
		ID: first(l.ID), Title: first(l.Title), Path: first(l.Path, l.OriginalDoc),
		Content: first(l.Content, l.Text, l.Snippet),
		Snippet: string(l.Snippet), Heading: string(l.Heading),
		Chunk: l.Chunk.count(), ChunkTotal: max(l.ChunkTotal.count(), l.ChunkTotal2.count()),
		StartLine: l.StartLine.count(), EndLine: l.EndLine.count(),
	}
	if d.Content == d.Snippet {
		d.Snippet = "" // shares the text
	}
	return d
}

// size returns the bytes of memory that a document takes.
func (d *Document) size() int64 {
	texts := len(d.ID) + len(d.Title) + len(d.Path) + len(d.Content) + len(d.Snippet) + len(d.Heading)
	return int64(unsafe.Sizeof(*d)) + int64(texts)
}

// label returns the title, path and id for results. None of them is empty; n is
// the number of the document, from 0.
func (d *Document) label(n int) (title, where, id string) {
	id = sanitize.Short(d.ID, 256, 1024)
	if id == "" {
		id = "document-" + strconv.Itoa(n+1)
	}
	if where = sanitize.Short(d.Path, 512, 2048); where == "" {
		where = id
	}
	title = sanitize.Short(d.Title, 256, 1024)
	if title == "" {
		title = sanitize.Short(path.Base(strings.ReplaceAll(where, `\`, "/")), 256, 1024)
	}
	return title, where, id
}

// readMetadata reads a metadata file: a list of documents, or an object with
// the member "documents". Its documents are taken from a budget. Errors say what
// to do.
func readMetadata(ctx context.Context, file string, b *budget) (*metadata, error) {
	f, info, err := openRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxMetadata {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read: divide the dataset: %w", info.Size(),
			maxMetadata, errkind.TooLarge)
	}
	r := bufio.NewReaderSize(readerOf(ctx, io.LimitReader(f, maxMetadata+1)), 1<<16)
	if head, _ := r.Peek(1); len(head) == 1 && head[0] == 0x80 {
		return nil, errors.New("it is a Python pickle, which is not read because it can run programs: write the " +
			"documents as JSON")
	}
	return parseMetadata(r, b)
}

// parseMetadata reads metadata one document at a time, so that no second copy
// of the file is in memory.
func parseMetadata(r io.Reader, b *budget) (*metadata, error) {
	dec := json.NewDecoder(r)
	first, err := dec.Token()
	if err != nil {
		return nil, notJSON(dec, err)
	}
	m := &metadata{budget: b}
	switch first {
	case json.Delim('['):
		err = m.readDocuments(dec)
	case json.Delim('{'):
		err = m.readObject(dec)
	default:
		return nil, errors.New(`it is neither a list of documents nor an object with the member "documents"`)
	}
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is text behind the JSON value: remove it")
	}
	return m, nil
}

// readObject reads the rest of an object.
func (m *metadata) readObject(dec *json.Decoder) error {
	found := false
	var stats struct {
		Dimensions loose `json:"embeddingDimensions"`
		Model      loose `json:"model"`
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return notJSON(dec, err)
		}
		switch name {
		case "documents":
			open, err := dec.Token()
			if err != nil {
				return notJSON(dec, err)
			}
			if open != json.Delim('[') {
				return errors.New(`the member "documents" is not a list`)
			}
			found, m.Documents = true, nil
			if err := m.readDocuments(dec); err != nil {
				return err
			}
		case "model":
			var model loose
			if err := dec.Decode(&model); err != nil {
				return notJSON(dec, err)
			}
			m.Model = sanitize.Short(string(model), 200, 400)
		case "stats":
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return notJSON(dec, err)
			}
			_ = json.Unmarshal(raw, &stats) // only a hint
		default:
			var skipped json.RawMessage
			if err := dec.Decode(&skipped); err != nil {
				return notJSON(dec, err)
			}
		}
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(dec, err)
	}
	if !found {
		return errors.New(`it has no member "documents": add the list of documents`)
	}
	m.Dimensions = stats.Dimensions.count()
	if m.Model == "" {
		m.Model = sanitize.Short(string(stats.Model), 200, 400)
	}
	return nil
}

// readDocuments reads the rest of a list of documents.
func (m *metadata) readDocuments(dec *json.Decoder) error {
	for dec.More() {
		if len(m.Documents) == maxDocuments {
			return fmt.Errorf("it has more than %d documents: divide the dataset: %w", maxDocuments, errkind.TooLarge)
		}
		var l looseDocument
		err := dec.Decode(&l)
		if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
			return fmt.Errorf("document %d is not an object", len(m.Documents)+1)
		}
		if err != nil {
			return notJSON(dec, err)
		}
		d := l.document()
		if err := m.budget.take(d.size()); err != nil {
			return err
		}
		m.Documents = append(m.Documents, d)
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(dec, err)
	}
	return nil
}

// notJSON returns the error for metadata that cannot be parsed.
func notJSON(dec *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it ends in the middle, after %d bytes: copy or create it again", dec.InputOffset())
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("it is not valid JSON near byte %d: %s", dec.InputOffset(),
			sanitize.Short(err.Error(), 100, 200))
	}
	return fmt.Errorf("it cannot be read: %w", plainError(err))
}
