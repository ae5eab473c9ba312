package opensearch_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// serverVariable names the environment variable with the URL of an OpenSearch
// server for tests, such as http://127.0.0.1:9200. The tests create indexes
// whose names begin with "test-", and delete them.
const serverVariable = "KNOWHOW_TEST_OPENSEARCH"

// address returns the address of a store that does not exist yet.
func address(t *testing.T) string {
	t.Helper()
	server := os.Getenv(serverVariable)
	if server == "" {
		t.Skip("needs an OpenSearch server: set " + serverVariable + ", or run .ci/real-opensearch")
	}
	prefix := "test-" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		for index := range indexes(t, server, prefix) {
			ask(t, http.MethodDelete, server+"/"+index, nil)
		}
	})
	return "opensearch+" + server + "/" + prefix
}

// indexes returns the indexes whose names begin with a prefix, by name.
func indexes(t *testing.T, server, prefix string) map[string]any {
	t.Helper()
	var found map[string]any
	ask(t, http.MethodGet, server+"/"+prefix+"*", &found)
	return found
}

// ask sends a request to a server and decodes the answer into out, unless it is
// nil.
func ask(t *testing.T, method, url string, out any) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if out != nil {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			t.Error(err)
		}
	}
}

// open opens a store at an address.
func open(t *testing.T, address string) *opensearch.Store { return openWith(t, address, nil) }

// openWith opens a store that searches with an embedder.
func openWith(t *testing.T, address string, e embed.Embedder) *opensearch.Store {
	t.Helper()
	return openStore(t, opensearch.Options{Address: address, Embedder: e})
}

// openStore opens a store until the test ends.
func openStore(t *testing.T, o opensearch.Options) *opensearch.Store {
	t.Helper()
	s, err := opensearch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSearch runs the contract of search services.
func TestSearch(t *testing.T) {
	searchtest.Run(t, searchtest.Options{Open: func(t *testing.T, docs []document.Document) search.Service {
		s := open(t, address(t))
		var changes []document.Change
		for i := range docs {
			changes = append(changes, document.Change{Put: &docs[i]})
		}
		if err := s.Apply(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		return s
	}})
}

// TestBase runs the contract of knowledge bases.
func TestBase(t *testing.T) {
	address(t)
	kbtest.Run(t, func(t *testing.T) kb.Base {
		b, _ := openBase(t, t.TempDir(), open(t, address(t)))
		return b
	})
}

// TestBaseRights runs the part of the contract about users. OpenSearch counts words in
// all documents of an index, so scores depend on those of others.
func TestBaseRights(t *testing.T) {
	address(t)
	kbtest.RunRights(t, func(t *testing.T) kb.Base {
		b, _ := openBase(t, t.TempDir(), open(t, address(t)))
		return b
	}, false)
}

// TestBaseMeaning runs the part of the contract about searches by meaning.
func TestBaseMeaning(t *testing.T) {
	kbtest.RunMeaning(t, func(t *testing.T, e embed.Embedder) kb.Base {
		s := openWith(t, address(t), e)
		b, _ := openBase(t, t.TempDir(), s)
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		var working sync.WaitGroup
		working.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.EmbedNext(ctx, e, nil, 10); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
		t.Cleanup(func() {
			cancel()
			working.Wait()
		})
		return b
	})
}

// openBase opens a base over a store, with its jobs in a data folder, and works
// on its jobs.
func openBase(t *testing.T, dir string, s *opensearch.Store) (*kb.Local, *index.Index) {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b := kb.NewLocal(kb.Options{Index: x, Store: s, Dir: dir, MaxUpload: kbtest.MaxUpload, Version: "test"})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, x
}

// TestWithoutVectors checks a server without the k-NN plugin: documents are found
// by words, and searches by meaning say what is missing.
func TestWithoutVectors(t *testing.T) {
	e := constant{}
	s := openWith(t, address(t), e)
	if s.HasVectors() {
		t.Skip("needs an OpenSearch server without the k-NN plugin: run .ci/real-opensearch -no-knn")
	}
	b, _ := openBase(t, t.TempDir(), s)
	kbtest.Note(t, b, "The walrus sleeps.")
	if r := kbtest.Find(t, b, kb.SearchQuery{Query: "where does the walrus sleep"}); r.Total != 1 {
		t.Errorf("%d documents are found by words, want 1", r.Total)
	}
	_, err := b.Search(t.Context(), kb.SearchQuery{Query: "walrus", VectorOnly: true, Top: 1})
	if !errors.Is(err, errkind.Unsupported) || !strings.Contains(err.Error(), "k-NN plugin") {
		t.Errorf("Search() by meaning = %v, want an error about the k-NN plugin", err)
	}
	if _, err := s.EmbedNext(t.Context(), e, nil, 1); !errors.Is(err, errkind.Unsupported) {
		t.Errorf("EmbedNext() = %v, want an error of kind Unsupported", err)
	}
	status, err := b.Status(t.Context())
	if err != nil || status.Model["name"] != "none" || !strings.Contains(fmt.Sprint(status.Model["reason"]),
		"k-NN plugin") {
		t.Errorf("Status() = %+v, %v, want no model because of the k-NN plugin", status, err)
	}
}

// constant is an embedder for which all texts mean the same.
type constant struct{}

func (constant) Embed(ctx context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 0}
	}
	return out, nil
}

func (constant) ID() string     { return "constant" }
func (constant) Dimension() int { return 2 }
func (constant) MaxTokens() int { return 0 }
