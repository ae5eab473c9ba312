package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A corpus is a folder of documents and the data folder of its index.
type corpus struct {
	label  string
	source string // folder
	data   string // data folder of the program
	key    string // differs for different sources

	program string // that indexes and searches it; "" is that of the environment
}

// binary returns the program that indexes and searches the corpus.
func (c corpus) binary(b *testing.B) string {
	b.Helper()
	if c.program == "" {
		return program(b)
	}
	return c.program
}

// generatedDocuments is how many documents the generated corpus has.
const generatedDocuments = 10_000

// generatedVersion must be incremented when generate changes.
const generatedVersion = "1"

// settled is the time that generated files were last changed: the program
// reads files once more that have just been written.
var settled = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// generated returns a corpus of documents made of paragraphs of the project's
// documentation. It is the same each time.
func generated(b *testing.B) corpus {
	b.Helper()
	paragraphs := documentation(b)
	sum := sha256.Sum256([]byte(generatedVersion + strings.Join(paragraphs, "\n\n")))
	c := newCorpus(b, "generated", filepath.Join(workDir(b), "generated"), hex.EncodeToString(sum[:]))
	c.fill(b, func() error { return generate(c.source, paragraphs) })
	return c
}

// documentation returns paragraphs of the project's documentation.
func documentation(b *testing.B) []string {
	b.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		b.Fatalf("finding the documentation: %v, %d pages", err, len(pages))
	}
	var paragraphs []string
	for _, page := range pages {
		if filepath.Base(page) == "benchmarks.md" {
			continue // this page is generated and changes often
		}
		text, err := os.ReadFile(page)
		if err != nil {
			b.Fatal(err)
		}
		for p := range strings.SplitSeq(string(text), "\n\n") {
			if p = strings.TrimSpace(p); len(p) > 60 && !strings.HasPrefix(p, "```") {
				paragraphs = append(paragraphs, p)
			}
		}
	}
	return paragraphs
}

// generate writes the documents of the generated corpus.
func generate(dir string, paragraphs []string) error {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range generatedDocuments {
		var doc strings.Builder
		words := strings.Fields(paragraphs[rnd.IntN(len(paragraphs))])
		fmt.Fprintf(&doc, "# Page %d: %s\n", i, strings.Trim(strings.Join(words[:min(5, len(words))], " "), "#|-` "))
		for range 4 + rnd.IntN(12) {
			fmt.Fprintf(&doc, "\n%s\n", paragraphs[rnd.IntN(len(paragraphs))])
		}
		folder := filepath.Join(dir, fmt.Sprintf("part-%02d", i/100))
		if err := writeSettled(folder, fmt.Sprintf("page-%05d.md", i), doc.String()); err != nil {
			return err
		}
	}
	return nil
}

// writeSettled writes a file with an old modification time.
func writeSettled(dir, name, text string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chtimes(path, settled, settled)
}

// debian returns the corpus that bench/debian-docs unpacked.
func debian(b testing.TB) corpus { return debianDocs(b, "debian", "DEBIAN_DOCS") }

// debianDocs returns the corpus that bench/debian-docs unpacked into the folder
// that a variable of the environment names.
func debianDocs(b testing.TB, label, variable string) corpus {
	b.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		b.Skipf("%s is not set: run bench/debian-docs FOLDER and set it to the folder", variable)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		b.Fatal(err)
	}
	packages, err := os.ReadFile(filepath.Join(dir, "PACKAGES"))
	if err != nil {
		b.Skipf("%s: %v: run bench/debian-docs FOLDER to fill the folder", variable, err)
	}
	return newCorpus(b, label, filepath.Join(dir, "usr"), string(packages))
}

// corpus returns the pages of the documentation, without links and other files.
func (d answerDocs) corpus(b testing.TB) corpus {
	b.Helper()
	all := debianDocs(b, d.label, d.variable)
	c := newCorpus(b, d.label, filepath.Join(workDir(b), d.label), all.key)
	c.fill(b, func() error {
		return filepath.WalkDir(all.source, func(path string, e fs.DirEntry, err error) error {
			manual := strings.HasPrefix(path, filepath.Join(all.source, "share", "man")+string(filepath.Separator))
			if err != nil || !e.Type().IsRegular() || !manual && !slices.Contains(d.endings, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(all.source, path)
			if err != nil {
				return err
			}
			return writeSettled(filepath.Join(c.source, filepath.Dir(name)), e.Name(), string(text))
		})
	})
	return c
}

// newCorpus returns a corpus whose index lies in the work folder.
func newCorpus(b testing.TB, label, source, key string) corpus {
	b.Helper()
	return corpus{label: label, source: source, data: filepath.Join(workDir(b), "data-"+label), key: key}
}

// fill calls write for an empty source folder, unless an earlier call has
// filled it.
func (c corpus) fill(b testing.TB, write func() error) {
	b.Helper()
	marker := c.source + ".made"
	if made, err := os.ReadFile(marker); err == nil && string(made) == c.key {
		return
	}
	err := os.RemoveAll(c.source)
	if err == nil {
		err = os.MkdirAll(c.source, 0o700)
	}
	if err == nil {
		err = write()
	}
	if err == nil {
		err = os.WriteFile(marker, []byte(c.key), 0o600)
	}
	if err != nil {
		b.Fatalf("writing the corpus: %v", err)
	}
}

// size returns the total size of the files in a folder tree.
func size(b *testing.B, dir string) (bytes int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}

// An indexing is the measurements of indexing a corpus.
type indexing struct {
	documents int
	took      time.Duration // from the start of the process to the line that reports the end
	cpu       time.Duration // user and system time of the process
	peak      float64       // memory in MB
}

// index indexes the corpus into an empty data folder.
func (c corpus) index(b *testing.B) indexing {
	b.Helper()
	if err := os.RemoveAll(c.data); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	p := startProgram(b, c.binary(b), "serve", "--transport", "stdio", "--no-watch", "--data", c.data, "--label", c.label, c.source)
	done := p.await(`^` + c.label + `: (\d+) documents?`)
	x := indexing{took: time.Since(began)}
	x.peak = p.memory("VmHWM")
	if err := p.stop(); !ended(err) {
		b.Fatal(err)
	}
	x.cpu = p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	var err error
	if x.documents, err = strconv.Atoi(done[1]); err == nil {
		err = os.WriteFile(c.data+".made", []byte(c.key+fileHash(b, c.binary(b))), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	return x
}

// indexed creates the index of the corpus unless this program has already
// created it. With KNOWHOW_EMBEDDER, it also computes the missing vectors.
func (c corpus) indexed(b *testing.B) corpus {
	b.Helper()
	made, err := os.ReadFile(c.data + ".made")
	if err != nil || string(made) != c.key+fileHash(b, c.binary(b)) {
		c.index(b)
	}
	if e := os.Getenv("KNOWHOW_EMBEDDER"); e != "" && e != "none" {
		embedRest(b, c.data, e, os.Getenv("EMBED_MODEL"))
	}
	return c
}

// serve starts the program on the index of the corpus and waits until it has
// scanned the source.
func (c corpus) serve(b *testing.B) *process {
	b.Helper()
	p := startProgram(b, c.binary(b), "serve", "--transport", "stdio", "--no-watch", "--data", c.data)
	p.initialize()
	p.await(`^` + c.label + `: \d+ document`)
	return p
}
