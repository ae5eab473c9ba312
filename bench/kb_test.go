package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/embed/open"
	"github.com/knowhow-mcp/knowhow/internal/index"
)

// An engine is a running knowhow engine.
type engine struct {
	*process
	url string
}

// startEngine starts an engine over a data folder with an embedder.
func startEngine(b *testing.B, data, embedder string) *engine {
	b.Helper()
	cmd := exec.CommandContext(waitContext(b), program(b), "engine", "--addr", "127.0.0.1:0", "--data", data, "--embedder", embedder)
	cmd.Env = []string{"HOME=" + b.TempDir(), "EMBED_MODEL=fake"}
	p := spawn(b, cmd)
	e := &engine{p, p.await(`^listening on (http://.*)`)[1]}
	b.Cleanup(func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }) // before the cleanup of start, which waits for the end
	return e
}

// send sends a request and decodes the JSON of its answer into result, unless
// that is nil.
func (e *engine) send(method, path, media string, body []byte, result any) error {
	req, err := http.NewRequest(method, e.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer, result)
}

const jsonMedia = "application/json"

// addFile adds a file.
func (e *engine) addFile(name, text string) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", name)
	if err == nil {
		_, err = io.WriteString(part, text)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return err
	}
	return e.send("POST", "/api/v1/jobs", form.FormDataContentType(), body.Bytes(), nil)
}

// addNote adds a note.
func (e *engine) addNote(_, text string) error {
	body, err := json.Marshal(map[string]any{"type": "note", "text": text})
	if err != nil {
		return err
	}
	return e.send("POST", "/api/v1/jobs", jsonMedia, body, nil)
}

// engineStatus is the part of the status that is read.
type engineStatus struct {
	Model     struct{ Passages, Embedded int }
	Documents struct{ Total int }
	Queue     struct{ Queued, Running, Failed int }
}

// await waits until the status meets a condition.
func (e *engine) awaitStatus(b *testing.B, met func(engineStatus) bool) engineStatus {
	b.Helper()
	for end := time.Now().Add(maxWait); ; time.Sleep(300 * time.Millisecond) {
		var s engineStatus
		if err := e.send("GET", "/api/v1/status", jsonMedia, nil, &s); err != nil {
			b.Fatal(err)
		}
		if s.Queue.Failed > 0 || time.Now().After(end) {
			b.Fatalf("status: %+v", s)
		}
		if met(s) {
			return s
		}
	}
}

// indexed reports whether no job is left.
func indexed(s engineStatus) bool { return s.Queue.Queued+s.Queue.Running == 0 }

// embedded reports whether all passages have vectors, too.
func embedded(s engineStatus) bool { return indexed(s) && s.Model.Embedded == s.Model.Passages }

// addAll adds texts with four clients at once, and returns the time until all
// are indexed.
func (e *engine) addAll(b *testing.B, texts []string, name string, add func(name, text string) error) time.Duration {
	b.Helper()
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(len(texts)); i = next.Add(1) {
				if err := add(fmt.Sprintf("%s-%05d.md", name, i), texts[i-1]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	e.awaitStatus(b, indexed)
	return time.Since(began)
}

// A passage is a result of a search.
type passage struct {
	SourcePath string `json:"source_path"`
}

// search searches and returns the passages and the time that it took.
func (e *engine) search(query string, top int, mode string) ([]passage, time.Duration, error) {
	arguments := map[string]any{"query": query, "top": top}
	if mode != "" {
		arguments[mode] = true
	}
	body, err := json.Marshal(arguments)
	if err != nil {
		return nil, 0, err
	}
	var result struct{ Results []passage }
	began := time.Now()
	err = e.send("POST", "/api/v1/search", jsonMedia, body, &result)
	return result.Results, time.Since(began), err
}

// fakeEmbedder serves vectors of 384 values over the API of OpenAI, which are
// sums of a direction for each word. So the time of a model is not measured.
func fakeEmbedder(b *testing.B) (url string) {
	const dim = 384
	direction := func(word string) *rand.Rand {
		h := fnv.New64a()
		h.Write([]byte(word))
		return rand.New(rand.NewPCG(h.Sum64(), 1))
	}
	vector := func(text string) []float32 {
		v := make([]float32, dim)
		words := strings.Fields(text)
		for _, word := range words[:min(len(words), 50)] {
			rnd := direction(word)
			for range 8 {
				v[rnd.IntN(dim)] += rnd.Float32() - 0.5
			}
		}
		v[0] += 1e-3
		return v
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var out struct {
			Data []item `json:"data"`
		}
		for i, text := range in.Input {
			out.Data = append(out.Data, item{i, vector(text)})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}))
	b.Cleanup(s.Close)
	return s.URL + "/v1"
}

// embedRest computes the vectors that are missing in a data folder, because the
// program does this slowly, beside its other work. model is that of a server.
func embedRest(b *testing.B, data, embedder, model string) {
	b.Helper()
	x, err := index.Open(b.Context(), index.Options{Dir: data})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	m, err := datafolder.OpenModel(embedder, open.Options{Model: model})
	if err != nil {
		b.Fatal(err)
	}
	for n := 1; n > 0; {
		if n, err = x.EmbedNext(b.Context(), m.Queries, nil, 500); err != nil {
			b.Fatal(err)
		}
	}
}

// Sizes of the measurement.
const (
	kbNotes     = 500
	kbParts     = 50 // sections of a file, each of about 1,000 bytes
	kbPassages  = 58 // that a file has, about
	kbFirst     = 10_000
	kbSecond    = 100_000
	kbQueries   = 100
	kbMeanwhile = 60 // files that are added during searches
)

// BenchmarkKb measures the engine over HTTP: how fast notes and files are indexed,
// how long searches take at 10,000 and at 100,000 passages, idle and while files
// are added and vectors computed, and the memory.
func BenchmarkKb(b *testing.B) {
	paragraphs := documentation(b)
	rnd := rand.New(rand.NewPCG(7, 8))
	file := func() string {
		var text strings.Builder
		for part := range kbParts {
			fmt.Fprintf(&text, "# Part %d of %d\n\n", part, rnd.IntN(1_000_000))
			for from := text.Len(); text.Len()-from < 900; {
				text.WriteString(paragraphs[rnd.IntN(len(paragraphs))] + "\n\n")
			}
		}
		return text.String()
	}
	files := func(n int) (texts []string) {
		for range n {
			texts = append(texts, file())
		}
		return texts
	}
	words := regexp.MustCompile(`\b[a-z]{4,20}\b`)
	var queries []string
	for len(queries) < kbQueries {
		if found := words.FindAllString(paragraphs[rnd.IntN(len(paragraphs))], -1); len(found) >= 4 {
			at := rnd.IntN(len(found) - 3)
			queries = append(queries, strings.Join(found[at:at+4], " "))
		}
	}
	for b.Loop() {
		data, embedder := b.TempDir(), fakeEmbedder(b)
		e := startEngine(b, data, embedder)
		once := func(name string, f func(b *testing.B)) {
			b.Run(name, func(b *testing.B) {
				f(b)
				b.ReportMetric(0, "ns/op")
			})
		}
		speed := func(b *testing.B, texts []string, name string, add func(name, text string) error) {
			bytes := 0
			for _, t := range texts {
				bytes += len(t)
			}
			took := e.addAll(b, texts, name, add).Seconds()
			b.ReportMetric(float64(len(texts))/took, "documents/s")
			b.ReportMetric(float64(bytes)/1e6/took, "MB/s")
		}
		searches := func(b *testing.B, mode string) {
			var all Times
			for _, q := range queries {
				_, took, err := e.search(q, 10, mode)
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, took)
			}
			all.report(b, 0.95)
		}
		// at measures the base with so many passages, which it adds.
		at := func(passages int, name string) {
			once("files-to-"+name, func(b *testing.B) {
				have := e.awaitStatus(b, indexed).Model.Passages
				speed(b, files((passages-have)/kbPassages), name, e.addFile)
				s := e.awaitStatus(b, indexed)
				b.ReportMetric(float64(s.Model.Passages), "passages")
				b.ReportMetric(e.memory("VmHWM"), "peak-MB")
				embedRest(b, data, embedder, "fake")
				e.awaitStatus(b, embedded)
			})
			for _, mode := range []string{"", "fts_only", "vector_only"} {
				once("search-"+name+"-"+map[string]string{"": "hybrid"}[mode]+mode, func(b *testing.B) { searches(b, mode) })
			}
			once("memory-"+name, func(b *testing.B) { b.ReportMetric(e.memory("VmRSS"), "MB") })
			once("search-"+name+"-while-adding", func(b *testing.B) {
				var adding sync.WaitGroup
				adding.Go(func() { e.addAll(b, files(kbMeanwhile), name+"-meanwhile", e.addFile) })
				searches(b, "")
				adding.Wait()
			})
		}
		once("notes", func(b *testing.B) {
			var notes []string
			for i := range kbNotes {
				notes = append(notes, fmt.Sprintf("Note %d. %s", i, paragraphs[rnd.IntN(len(paragraphs))]))
			}
			speed(b, notes, "note", e.addNote)
		})
		at(kbFirst, "10000")
		at(kbSecond, "100000")
	}
}

// BenchmarkKbQuality reports how good the order of documents is in the passages
// that the engine finds, by words, by meaning and by both; see BenchmarkQuality.
// The vectors are those of the built-in model and kept between runs.
func BenchmarkKbQuality(b *testing.B) {
	c := cranfield(b)
	data := filepath.Join(workDir(b), "kb-cranfield")
	marker, key := data+".made", fileHash(b, program(b))+c.key
	made, err := os.ReadFile(marker)
	whole := err == nil && string(made) == key
	if !whole {
		if err := os.RemoveAll(data); err != nil {
			b.Fatal(err)
		}
	}
	e := startEngine(b, data, "builtin")
	if !whole {
		names, err := filepath.Glob(filepath.Join(c.source, "*.md"))
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err == nil {
				err = e.addFile(filepath.Base(name), string(text))
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		e.awaitStatus(b, embedded)
		if err := os.WriteFile(marker, []byte(key), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, mode := range []string{"fts_only", "vector_only", ""} {
		b.Run("cranfield-"+map[string]string{"": "hybrid"}[mode]+mode, func(b *testing.B) {
			c.judge(b, func(b *testing.B, query string) (paths []string, took time.Duration) {
				found, took, err := e.search(query, 100, mode)
				if err != nil {
					b.Fatal(err)
				}
				for _, p := range found {
					paths = append(paths, p.SourcePath)
				}
				return paths, took
			})
		})
	}
}
