package dataset

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/vector/faiss"
)

// Sizes of what Create writes.
const (
	// A chunk has about 180 words at most: what a model with 256 word pieces, as
	// all-MiniLM-L6-v2, reads of an English text.
	chunkSize = 1000 // bytes
	chunkMax  = 1100

	snippetSize = 200 // characters (MCPower)
	batchSize   = 32  // texts in one call of the embedder

	maxText = 512 << 20 // bytes of all texts, which are in memory
)

// CreateOptions describe a dataset to be created.
type CreateOptions struct {
	Dir         string // folder of the datasets; created if it does not exist
	ID          string
	Name        string   // "" means the ID
	Description string   // "" means one that names the sources
	DefaultTopK int      // 0 means 5
	Sources     []string // folders and files, at least one

	// Embedder makes the vectors; nil means that the dataset is searched by words
	// only, and its index has no vectors. Model is the name of its model in the
	// metadata.
	Embedder embed.Embedder
	Model    string

	Replace bool // an existing dataset with the same id
	Report  func(Progress)
	Log     *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// ReplaceReason is the reason of the error for a dataset that exists.
const ReplaceReason errkind.Reason = "dataset: CreateOptions.Replace"

// Progress is the progress of Create.
type Progress struct {
	What        string // "reading files" or "computing vectors"
	Things      string // what Done and Total count
	Done, Total int
}

// A Created is the result of Create.
type Created struct {
	Folder   string // absolute path
	Files    int    // with text
	Chunks   int
	Vectors  int
	Replaced bool

	// LeftOut counts the files that were left out, by reason. Skipped names those
	// that should have been read.
	LeftOut map[ingest.Reason]int
	Skipped []ingest.Skipped

	// Kept names files of the replaced dataset's folder that are not part of a
	// dataset. They are in the new folder, too.
	Kept []string
}

// Create reads files, cuts their texts into chunks, computes their vectors, and
// writes a dataset that MCPower can read, too. The dataset appears all at once
// when it is complete. If Create fails or ctx ends, nothing has changed.
//
// Errors: Invalid if o is not valid, Conflict if the dataset exists and Replace
// is false (ReplaceReason), or if something else is in its place, NotFound if a source does not
// exist or there is no text in the sources, TooLarge, and those of the embedder.
func Create(ctx context.Context, o CreateOptions) (*Created, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of the datasets: %w", err)
	}
	removeLeftovers(o.Dir)
	target, exists, err := o.target()
	if err != nil {
		return nil, err
	}
	b := &builder{o: o, lines: map[string]lineStart{},
		res: &Created{Folder: target, Replaced: exists, LeftOut: map[ingest.Reason]int{}}}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	temp, release, err := makeTemp(o.Dir, o.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := b.write(ctx, temp); err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	if b.res.Kept, err = install(temp, target, exists); err != nil {
		return nil, err
	}
	return b.res, nil
}

// complete checks o and sets defaults.
func (o *CreateOptions) complete() error {
	o.Name = strings.TrimSpace(o.Name)
	if o.Name == "" {
		o.Name = o.ID
	}
	if o.Description = strings.TrimSpace(o.Description); o.Description == "" {
		var names []string
		for _, s := range o.Sources {
			names = append(names, filepath.Base(s))
		}
		o.Description = sanitize.Short("Dataset created from "+strings.Join(names, ", "), maxDescription,
			4*maxDescription)
	}
	if o.DefaultTopK == 0 {
		o.DefaultTopK = defaultTopK
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Report == nil {
		o.Report = func(Progress) {}
	}
	invalid := func(what string, err error) error {
		if err != nil {
			return fmt.Errorf("%s of the dataset: %w: %w", what, err, errkind.Invalid)
		}
		return nil
	}
	err := errors.Join(invalid("id", CheckID(o.ID)), invalid("name", CheckText(o.Name, maxName)),
		invalid("description", CheckText(o.Description, maxDescription)))
	if o.DefaultTopK < 1 || o.DefaultTopK > maxTopK {
		err = errors.Join(err, invalid("number of results", fmt.Errorf("got %d, want 1 to %d", o.DefaultTopK, maxTopK)))
	}
	if len(o.Sources) == 0 {
		err = errors.Join(err, invalid("sources", errors.New("there are none")))
	}
	if err != nil {
		return err
	}
	o.Dir, err = filepath.Abs(o.Dir)
	return err
}

// target returns the folder of the dataset, and whether it exists.
func (o *CreateOptions) target() (folder string, exists bool, err error) {
	found, err := findFolder(o.Dir, o.ID, false)
	switch {
	case err == nil && !o.Replace:
		return "", false, &errkind.Restriction{Reason: ReplaceReason,
			Err: fmt.Errorf("dataset %s exists in %s: %w", o.ID, found, errkind.Conflict)}
	case err == nil:
		return found, true, nil
	case !errors.Is(err, errkind.NotFound):
		return "", false, err
	}
	folder = filepath.Join(o.Dir, o.ID)
	if _, err := os.Lstat(folder); err == nil {
		return "", false, fmt.Errorf("%s exists and is not a dataset with this id, choose another id or move it "+
			"away: %w", folder, errkind.Conflict)
	}
	return folder, false, nil
}

// A builder makes one dataset. It is the sink of the files.
type builder struct {
	o      CreateOptions
	prefix string // of the paths of the current source; "" or a name with a slash
	skip   string // paths of the current source that begin with it are left out; "" for none
	docs   []Document
	size   int
	res    *Created

	mu    sync.Mutex
	lines map[string]lineStart // by label and path
}

// read reads the sources.
func (b *builder) read(ctx context.Context) error {
	for i, source := range b.o.Sources {
		abs, err := filepath.Abs(source)
		if err != nil {
			return fmt.Errorf("source %s: %w", sanitize.Escape(source), err)
		}
		info, err := os.Stat(abs)
		if err != nil {
			return fmt.Errorf("source %s: %w: %w", sanitize.Escape(source), plainError(err), errkind.NotFound)
		}
		b.prefix, b.skip = "", ""
		if len(b.o.Sources) > 1 && info.IsDir() {
			b.prefix = b.unique(filepath.Base(abs), i) + "/"
		}
		if rel, err := filepath.Rel(abs, b.o.Dir); err == nil && info.IsDir() && rel != "." && filepath.IsLocal(rel) {
			b.skip = filepath.ToSlash(rel) + "/" // the datasets themselves
		}
		label := strconv.Itoa(i)
		g := ingest.New(ingest.Options{
			Sink: b, Log: b.o.Log, Make: b.documents,
			Report: func(p ingest.Progress) { b.o.Report(Progress{"reading files", "files", p.Done, p.Total}) },
		})
		res, err := g.Sync(ctx, document.Source{Label: label, Path: abs})
		if err != nil {
			return fmt.Errorf("reading %s: %w", source, err)
		}
		for reason, n := range res.LeftOut {
			b.res.LeftOut[reason] += n
		}
		b.res.Skipped = append(b.res.Skipped, res.Skipped...)
	}
	if len(b.docs) == 0 {
		return fmt.Errorf("no text in %s: %w", strings.Join(b.o.Sources, ", "), errkind.NotFound)
	}
	slices.SortStableFunc(b.docs, func(x, y Document) int { return strings.Compare(x.Path, y.Path) })
	for i := range b.docs {
		b.docs[i].ID = b.o.ID + "-" + strconv.Itoa(i+1)
	}
	b.res.Chunks = len(b.docs)
	return nil
}

// unique returns the name of a source, which no other source before it has.
func (b *builder) unique(name string, i int) string {
	for _, before := range b.o.Sources[:i] {
		if filepath.Base(before) == name {
			return name + "-" + strconv.Itoa(i+1)
		}
	}
	return name
}

// documents returns the documents in a file, with chunks for a model. It records
// where the text of a file begins.
func (b *builder) documents(ctx context.Context, in extract.Input, known document.Document) (
	docs []*document.Document, left []ingest.Skipped, err error) {
	err = extract.Parts(ctx, in, func(string) bool { return true }, func(p extract.Part) error {
		if s, ok := ingest.SkippedPart(known.Path, p); ok {
			if left = append(left, s); !s.Reason.InPart() {
				return nil
			}
		}
		d := known
		if p.Name != "" {
			d.Path += "/" + p.Name
		}
		start := lineStart{lead: p.Lead}
		if p.Name == "" && (p.FileType == "txt" || p.FileType == "others") {
			start.line = firstLine(in.Data, p.Body[p.Lead:])
		}
		docs = append(docs, b.document(d, p.Text, start))
		return nil
	})
	return docs, left, err
}

func (b *builder) document(d document.Document, text *extract.Text, start lineStart) *document.Document {
	d.Title, d.Text, d.Lang = text.Title, text.Body, text.Lang
	if d.Title == "" {
		d.Title = path.Base(d.Path)
	}
	d.Chunks = chunk.Split(text.Body, text.Headings, chunk.Options{Size: chunkSize, Max: chunkMax})
	b.mu.Lock()
	b.lines[d.Label+"/"+d.Path] = start
	b.mu.Unlock()
	return &d
}

// A lineStart is the line on which the text of a file begins, from 1, behind the
// first bytes of the text, which do not stand so in the file. The line is 0 if the
// text has no lines.
type lineStart struct{ line, lead int }

// firstLine returns the line of a file on which its text begins, from 1: behind
// front matter and empty lines. It returns 0 if the text is not as in the file.
func firstLine(data []byte, body string) int {
	raw := strings.ReplaceAll(string(data), "\r\n", "\n")
	at := strings.Index(raw, body)
	if at < 0 {
		return 0
	}
	return strings.Count(raw[:at], "\n") + 1
}

// Apply implements [ingest.Sink].
func (b *builder) Apply(_ context.Context, changes []document.Change) error {
	for _, c := range changes {
		if c.Put == nil || b.skip != "" && strings.HasPrefix(c.Put.Path, b.skip) {
			continue
		}
		b.add(c.Put)
		if b.size > maxText {
			return fmt.Errorf("the sources have more than %d MB of text: divide them into several datasets: %w",
				maxText>>20, errkind.TooLarge)
		}
	}
	return nil
}

// Stamps implements [ingest.Sink].
func (b *builder) Stamps(context.Context, string) (map[string]document.Stamp, error) { return nil, nil }

// Generation implements [ingest.Sink].
func (b *builder) Generation(context.Context) (string, error) { return "", nil }

// add adds the chunks of a file.
func (b *builder) add(d *document.Document) {
	b.mu.Lock()
	lines := b.lines[d.Label+"/"+d.Path]
	b.mu.Unlock()
	first := len(b.docs)
	line, at := lines.line, lines.lead
	for _, c := range d.Chunks {
		piece := d.Text[c.Offset : c.Offset+c.Length]
		content := strings.TrimSpace(piece)
		if content == "" {
			continue
		}
		x := Document{
			Title: sanitize.Short(d.Title, 256, 1024), Path: b.prefix + d.Path,
			Content: content, Snippet: firstRunes(content, snippetSize), Heading: c.Heading,
			SHA256: chunk.Hash(content), Chunk: len(b.docs) - first + 1,
		}
		if line > 0 {
			begin := c.Offset + strings.Index(piece, content)
			start := max(begin, lines.lead)
			line += strings.Count(d.Text[at:start], "\n")
			x.StartLine, x.EndLine = line, line+strings.Count(d.Text[start:max(begin+len(content), start)], "\n")
			if begin < lines.lead {
				x.StartLine = 1 // of the front matter
			}
			at = start
		}
		b.docs = append(b.docs, x)
		b.size += len(content) + len(x.Snippet)
	}
	for i := range b.docs[first:] {
		b.docs[first+i].ChunkTotal = len(b.docs) - first
	}
	if len(b.docs) > first {
		b.res.Files++
	}
}

// firstRunes returns the first n runes of s.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// A written is the metadata as MCPower writes it, without the documents.
type written struct {
	DatasetID   string       `json:"datasetId"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Model       string       `json:"model"`
	CreatedAt   string       `json:"createdAt"`
	Stats       writtenStats `json:"stats"`
}

type writtenStats struct {
	TotalFiles          int    `json:"totalFiles"`
	TotalDocuments      int    `json:"totalDocuments"`
	TotalChunks         int    `json:"totalChunks"`
	EmbeddingDimensions int    `json:"embeddingDimensions"`
	IndexedAt           string `json:"indexedAt"`
}

// A writtenManifest is a manifest with members that MCPower ignores.
type writtenManifest struct {
	Manifest
	Model         string `json:"model"`
	Dimensions    int    `json:"dimensions"`
	DocumentCount int    `json:"documentCount"`
	CreatedAt     string `json:"createdAt"`
}

// The files of a dataset that is written.
const (
	indexFolder  = "index"
	indexName    = "docs.index"
	metadataName = "metadata.json"
)

// noModel is the name of the model of a dataset without vectors. MCPower refuses
// to load it, and so does not search it with another one.
const noModel = "none"

// write writes the dataset to a folder.
func (b *builder) write(ctx context.Context, dir string) error {
	o := &b.o
	if err := os.Chmod(dir, 0o755); err != nil { // os.MkdirTemp permits only the user
		return fmt.Errorf("preparing the folder of the dataset: %w", err)
	}
	if err := os.Mkdir(filepath.Join(dir, indexFolder), 0o755); err != nil {
		return fmt.Errorf("writing the dataset: %w", err)
	}
	dim, model := 1, noModel // FAISS requires a dimension
	var vectors []float32
	if o.Embedder != nil {
		var err error
		if vectors, err = b.vectors(ctx); err != nil {
			return err
		}
		dim, model = len(vectors)/len(b.docs), o.Model
		b.res.Vectors = len(b.docs)
	}
	err := writeFile(filepath.Join(dir, indexFolder, indexName), func(w *bufio.Writer) error {
		return faiss.WriteFlat(w, faiss.InnerProduct, dim, vectors)
	})
	if err != nil {
		return err
	}
	now := o.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	meta := written{o.ID, o.Name, o.Description, model, now,
		writtenStats{b.res.Files, b.res.Files, len(b.docs), dim, now}}
	if o.Embedder == nil {
		meta.Stats.EmbeddingDimensions = 0
	}
	err = writeFile(filepath.Join(dir, metadataName), func(w *bufio.Writer) error {
		return writeMetadata(ctx, w, meta, b.docs)
	})
	if err != nil {
		return err
	}
	manifest, err := json.MarshalIndent(writtenManifest{
		Manifest{ID: o.ID, Name: o.Name, Description: o.Description, Index: indexFolder, Metadata: metadataName,
			DefaultTopK: o.DefaultTopK}, model,
		meta.Stats.EmbeddingDimensions, len(b.docs), now}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return writeFile(filepath.Join(dir, manifestName), func(w *bufio.Writer) error {
		_, err := w.Write(append(manifest, '\n'))
		return err
	})
}

// writeMetadata writes metadata with a document on each line.
func writeMetadata(ctx context.Context, w *bufio.Writer, m written, docs []Document) error {
	head, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.Write(head[:len(head)-1]) // errors of a bufio.Writer are those of its Flush
	w.WriteString(`,"documents":[`)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range docs {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteByte('\n')
		if err := enc.Encode(&docs[i]); err != nil {
			return err
		}
	}
	w.WriteString("]}\n")
	return nil
}

// vectors returns the vectors of all documents, one after the other.
func (b *builder) vectors(ctx context.Context) (all []float32, err error) {
	report := func(done int) { b.o.Report(Progress{"computing vectors", "passages", done, len(b.docs)}) }
	dim := 0
	for done := 0; done < len(b.docs); {
		report(done)
		end := min(done+batchSize, len(b.docs))
		texts := make([]string, 0, batchSize)
		for _, d := range b.docs[done:end] {
			texts = append(texts, d.Content)
		}
		vectors, err := b.o.Embedder.Embed(ctx, texts, embed.Document)
		if err != nil {
			return nil, fmt.Errorf("computing vectors: %w", err)
		}
		if len(vectors) != len(texts) {
			return nil, fmt.Errorf("computing vectors: the model made %d vectors of %d texts: %w", len(vectors),
				len(texts), errkind.Unavailable)
		}
		for _, v := range vectors {
			dim = cmp.Or(dim, len(v))
			if len(v) != dim || dim == 0 {
				return nil, fmt.Errorf("computing vectors: the model made vectors of %d and %d dimensions: %w", dim,
					len(v), errkind.Unavailable)
			}
			all = append(all, v...)
		}
		done = end
	}
	report(len(b.docs))
	return all, nil
}

// writeFile creates a file and waits until it is on disk.
func writeFile(name string, write func(w *bufio.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("writing the dataset: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<16)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing the dataset: %w", err)
	}
	return nil
}
