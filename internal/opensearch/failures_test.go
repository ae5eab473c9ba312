package opensearch_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
)

// A reply is the answer of a fake server to a request, by method and path.
type reply func(w http.ResponseWriter, r *http.Request) (handled bool)

// mappingsOf returns the mappings of an index whose words are those of a version of
// the analysis.
func mappingsOf(version int) string {
	return fmt.Sprintf(`{"mappings":{"_meta":{"knowhow":{"version":%d,"analysis":%d}},"properties":{}}}`,
		opensearch.MappingVersion, version)
}

// healthy answers as a server of a good version with the k-NN plugin, and with the
// indexes of a store with the prefix "kb".
func healthy(w http.ResponseWriter, r *http.Request) bool {
	mappings := mappingsOf(analysis.Version)
	switch path := r.URL.Path; {
	case path == "/":
		fmt.Fprint(w, `{"version":{"distribution":"opensearch","number":"2.19.1"}}`)
	case path == "/_cat/plugins":
		fmt.Fprint(w, `[{"name":"a","component":"opensearch-knn"}]`)
	case r.Method == http.MethodGet && (path == "/kb-documents" || path == "/kb-vectors"):
		fmt.Fprintf(w, `{"%s-1":%s}`, path[1:], mappings)
	case r.Method == http.MethodGet && path == "/kb-state":
		fmt.Fprintf(w, `{"kb-state":%s}`, mappings)
	default:
		return false
	}
	return true
}

func failWith(status int, body string) reply {
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(status)
		io.WriteString(w, body)
		return true
	}
}

// at restricts a reply to paths with a suffix.
func at(suffix string, f reply) reply {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, suffix) && f(w, r)
	}
}

// fake returns the address of a store on a fake server, and the number of
// requests that would have written something.
func fake(t *testing.T, replies ...reply) (address string, writes *atomic.Int32) {
	writes = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "_search") && !strings.HasSuffix(r.URL.Path, "_mget") &&
			r.Method != http.MethodGet {
			writes.Add(1)
		}
		for _, f := range append(replies, healthy) {
			if f(w, r) {
				return
			}
		}
		failWith(http.StatusBadRequest, `{"error":{"type":"unexpected","reason":"`+r.Method+r.URL.Path+`"}}`)(w, r)
	}))
	t.Cleanup(server.Close)
	return "opensearch+" + server.URL + "/kb", writes
}

const unread = `{"error":{"root_cause":[{"type":"cluster_block_exception","reason":"index [kb-documents-1] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block];"}],"type":"cluster_block_exception"},"status":429}`

// TestOpenFailures checks the sentence for everything that prevents the use of a
// store, and that nothing is written.
func TestOpenFailures(t *testing.T) {
	for name, test := range map[string]struct {
		reply  reply
		kind   error
		status int
		want   string
	}{
		"wrong credentials": {failWith(401, `Unauthorized`), errkind.Unauthorized, 401, "refuses the credentials"},
		"missing right": {at("/", failWith(403, `{"error":{"type":"security_exception","reason":"no permissions"}}`)),
			errkind.Denied, 403, "may not do this"},
		"a proxy with HTML": {failWith(200, `<html><body>Sign in</body></html>`), errkind.Unavailable, 502,
			"not from OpenSearch"},
		"a redirect":    {failWith(302, `<a href="/login">`), errkind.Unavailable, 502, "not from OpenSearch"},
		"an error page": {failWith(404, `<h1>Not found</h1>`), errkind.Unavailable, 502, "not from OpenSearch"},
		"an older server": {at("/", failWith(200, `{"version":{"distribution":"opensearch","number":"2.11.0"}}`)),
			errkind.Unsupported, 0, "OpenSearch 2.11, which is too old: use 2.19 or later"},
		"Elasticsearch": {at("/", failWith(200, `{"version":{"number":"8.15.0"}}`)), errkind.Unsupported, 0,
			"not OpenSearch"},
		"another service": {at("/", failWith(200, `{"name":"x"}`)), errkind.Unavailable, 502, "not from OpenSearch"},
		"red": {failWith(503,
			`{"error":{"type":"master_not_discovered_exception","reason":null},"status":503}`), errkind.Unavailable,
			503,
			"cannot answer at the moment"},
		"an index of others": {at("kb-vectors", failWith(200, `{"kb-vectors-1":{"mappings":{"properties":{}}}}`)),
			errkind.Conflict, 0, "kb-vectors that knowhow has not created: choose another PREFIX"},
		"no alias": {at("kb-vectors",
			failWith(200, `{"kb-vectors":`+mappingsOf(3)+`}`)),
			errkind.Conflict, 0,
			"kb-vectors that knowhow has not created"},
		"a newer mapping": {at("kb-documents",
			failWith(200, `{"kb-documents-2":{"mappings":{"_meta":{"knowhow":{"version":99,"analysis":1}}}}}`)),
			errkind.Conflict,
			0, "newer version of knowhow: update this program"},
		"an older analysis": {at("kb-documents",
			failWith(200, `{"kb-documents-2":`+mappingsOf(1)+`}`)),
			errkind.Conflict,
			0, `copy the store to itself with "knowhow store copy" of this version`},
		"an older mapping": {at("kb-documents",
			failWith(200, `{"kb-documents-1":{"mappings":{"_meta":{"knowhow":{"version":1,"analysis":1}}}}}`)),
			errkind.Conflict,
			0, `copy the documents to a data folder with "knowhow store copy" of that version`},
	} {
		t.Run(name, func(t *testing.T) {
			address, writes := fake(t, test.reply)
			address = strings.Replace(address, "http://", "http://user:secret@", 1)
			s, err := opensearch.New(opensearch.Options{Address: address})
			if err != nil {
				t.Fatal(err)
			}
			err = s.Open(t.Context())
			status := 0
			if remote, ok := errors.AsType[*errkind.Remote](err); ok {
				status = remote.Status
			}
			if !errors.Is(err, test.kind) || status != test.status || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("Open() = %v, want an error with status %d and %q", err, test.status, test.want)
			}
			if retry := test.status >= 500; errkind.Retryable(err) != retry {
				t.Errorf("Open() = %v, retryable: %v, want %v", err, !retry, retry)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("the error has the address or the password: %v", err)
			}
			if n := writes.Load(); n > 0 {
				t.Errorf("%d requests would have written something", n)
			}
		})
	}
}

// TestCertificate checks the sentences for servers whose certificate does not
// verify, and that a given one is used.
func TestCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { healthy(w, r) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	address := "opensearch+" + server.URL + "/kb"
	s, err := opensearch.New(opensearch.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); !errors.Is(err, errkind.Denied) || errkind.ReasonOf(err) != opensearch.CAReason ||
		errkind.Retryable(err) {
		t.Errorf("Open() = %v, want an error about the certificate", err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	trusting, err := opensearch.New(opensearch.Options{Address: address, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	if err := trusting.Open(t.Context()); err != nil {
		t.Errorf("Open() with the certificate = %v", err)
	}
	plain, err := opensearch.New(opensearch.Options{Address: strings.Replace(address, "https", "http", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.Open(t.Context()); err == nil {
		t.Error("Open() without TLS = nil, want an error")
	}
	if _, err := opensearch.New(opensearch.Options{Address: address, CA: []byte("no certificate")}); !errors.Is(err,
		errkind.Invalid) || errkind.ReasonOf(err) != opensearch.CAReason {
		t.Errorf("New() = %v, want an error about the certificates", err)
	}
}

// TestUnreachable checks that a server that is down is an error with status 502
// that may be tried again.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	s, err := opensearch.New(opensearch.Options{Address: "opensearch+" + server.URL + "/kb"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CountTypes(t.Context(), nil, nil)
	if remote, ok := errors.AsType[*errkind.Remote](err); !ok || remote.Status != http.StatusBadGateway ||
		!errkind.Retryable(err) || strings.Contains(err.Error(), "502") {
		t.Errorf("CountTypes() = %v, want a retryable error with status 502, which is not in its text", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.CountTypes(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("CountTypes() with a cancelled context = %v", err)
	}
}

// TestWriteFailures checks what happens to changes that the cluster refuses.
func TestWriteFailures(t *testing.T) {
	for name, test := range map[string]struct {
		reply reply
		kind  error
		want  string
		retry bool
	}{
		"a full disk": {at("_bulk", failWith(429, unread)), errkind.Unavailable, "its disk is almost full", true},
		"a full disk, each": {at("_bulk", items(t, 429, "cluster_block_exception",
			"disk usage exceeded flood-stage watermark")), errkind.Unavailable, "its disk is almost full", true},
		"a blocked index": {at("_bulk",
			failWith(403, `{"error":{"type":"cluster_block_exception","reason":"index read-only (api)"}}`)),
			errkind.Unavailable,
			"an index is blocked", true},
		"a missing index": {at("_bulk", items(t, 404, "index_not_found_exception",
			"no such index [kb-documents-1-open] and [require_alias] request flag is [true]")), errkind.Unavailable,
			"an index of the store is missing", true},
		"too large": {at("_bulk", failWith(413, ``)), errkind.TooLarge, "the document is too large for OpenSearch",
			false},
		"a lost primary": {at("_bulk", items(t, 503, "unavailable_shards_exception", "primary shard is not active")),
			errkind.Unavailable, "cannot answer at the moment", true},
		"a late write": {at("_bulk", conflicting), errkind.Conflict, "another process has changed the document", false},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := fake(t, test.reply, at("_mget", failWith(200, `{"docs":[]}`)),
				at("/numbers", func(w http.ResponseWriter, r *http.Request) bool {
					return r.Method == http.MethodPut && failWith(201, `{}`)(w, r) ||
						failWith(404, `{"found":false}`)(w, r)
				}))
			s, err := opensearch.New(opensearch.Options{Address: address})
			if err != nil {
				t.Fatal(err)
			}
			err = s.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: "a", Label: "l", Path: "p",
				Title: "t",
				Text:  "text"}}})
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) ||
				errkind.Retryable(err) != test.retry {
				t.Errorf("Apply() = %v (retryable: %v), want %q", err, errkind.Retryable(err), test.want)
			}
		})
	}
}

// items answers a bulk request with the same failure of each operation.
func items(t *testing.T, status int, kind, reason string) reply {
	return func(w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var out []any
		for line := range strings.Lines(string(body)) {
			var action map[string]struct {
				ID string `json:"_id"`
			}
			if json.Unmarshal([]byte(line), &action) == nil && len(action) == 1 {
				for name, a := range action {
					if a.ID != "" {
						out = append(out, map[string]any{name: map[string]any{"status": status,
							"error": map[string]string{"type": kind, "reason": reason}}})
					}
				}
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": out})
		return true
	}
}

// conflicting answers bulk requests with a conflict.
func conflicting(w http.ResponseWriter, r *http.Request) bool {
	fmt.Fprint(w, `{"items":[{"create":{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"document already exists"}}}]}`)
	return true
}

// TestBackpressure checks that operations that the cluster is too busy for are
// sent again, and the others are not.
func TestBackpressure(t *testing.T) {
	var sent [][]string // the IDs of each bulk request
	busy := func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		var ids, out []string
		for line := range strings.Lines(string(body)) {
			var op struct {
				Create struct {
					ID string `json:"_id"`
				}
			}
			if json.Unmarshal([]byte(line), &op) == nil && op.Create.ID != "" {
				ids = append(ids, op.Create.ID)
				status := `{"create":{"status":201}}`
				if len(sent) == 0 && len(ids) == 2 {
					status = `{"create":{"status":429,"error":{"type":"rejected_execution_exception","reason":"queue is full"}}}`
				}
				out = append(out, status)
			}
		}
		sent = append(sent, ids)
		fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(out, ","))
		return true
	}
	address, _ := fake(t, at("_bulk", busy), at("_mget", failWith(200, `{"docs":[]}`)),
		at("/numbers", func(w http.ResponseWriter, r *http.Request) bool {
			return r.Method == http.MethodPut && failWith(201, `{}`)(w, r) || failWith(404, `{"found":false}`)(w, r)
		}))
	s, err := opensearch.New(opensearch.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	var changes []document.Change
	for _, id := range []string{"a", "b", "c"} {
		changes = append(changes, document.Change{Put: &document.Document{ID: id, Label: "l", Path: id, Title: "t",
			Text: "text"}})
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(sent); got != "[[a b c] [b]]" {
		t.Errorf("documents were sent as %s, want [[a b c] [b]]", got)
	}
}

// TestOwnConflict checks changes that the cluster has made and refuses
// nevertheless, because it made them twice: the node with the primary shard failed
// before it answered, and the next one had the change already.
func TestOwnConflict(t *testing.T) {
	var row map[string]any
	bulk := func(w http.ResponseWriter, r *http.Request) bool {
		var items []string
		d := json.NewDecoder(r.Body)
		for d.More() {
			var action map[string]struct {
				Index string `json:"_index"`
			}
			if err := d.Decode(&action); err != nil {
				t.Error(err)
			}
			for name, a := range action {
				status := 200
				if name != "delete" {
					row, status = nil, 409
					if err := d.Decode(&row); err != nil {
						t.Error(err)
					}
				} else if a.Index != "kb-vectors-1-open" {
					t.Errorf("a row of %s is deleted", a.Index)
				}
				items = append(items, fmt.Sprintf(`{"%s":{"status":%d,"error":{}}}`, name, status))
			}
		}
		fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
		return true
	}
	get := func(w http.ResponseWriter, r *http.Request) bool {
		json.NewEncoder(w).Encode(map[string]any{"docs": []any{map[string]any{"_id": "a", "found": row != nil,
			"_source": row}}})
		return true
	}
	address, _ := fake(t, at("_bulk", bulk), at("_mget", get), at("_search", failWith(200, `{"hits":{"hits":[]}}`)),
		at("/numbers", func(w http.ResponseWriter, r *http.Request) bool {
			return r.Method == http.MethodPut && failWith(201, `{}`)(w, r) || failWith(404, `{"found":false}`)(w, r)
		}))
	s, err := opensearch.New(opensearch.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []document.Change{
		{Put: &document.Document{ID: "a", Label: "l", Path: "p", Title: "t", Text: "text"}},
		{Put: &document.Document{ID: "a", Label: "l", Path: "p", Title: "t", Text: "other text"}},
		{Tag: &document.Tagging{ID: "a", Label: "other"}},
	} {
		if err := s.Apply(t.Context(), []document.Change{c}); err != nil {
			t.Errorf("Apply() = %v", err)
		}
	}
	if row["label"] != "other" || row["text"] != "other text" {
		t.Errorf("the document has the label %s and the text %q", row["label"], row["text"])
	}
}

// A direction is an embedder that makes the same vector of every text.
type direction struct{}

func (direction) Embed(ctx context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	return slices.Repeat([][]float32{{1}}, len(texts)), ctx.Err()
}
func (direction) ID() string     { return "direction" }
func (direction) Dimension() int { return 1 }
func (direction) MaxTokens() int { return 0 }

// TestEmbeddedByOther checks that it is no error if another process stores the
// vector of a chunk at the same time.
func TestEmbeddedByOther(t *testing.T) {
	address, _ := fake(t, at("_bulk", items(t, 409, "version_conflict_engine_exception", "version conflict")),
		at("_mapping", failWith(200, `{}`)),
		at("_stats/docs", failWith(200, `{}`)), at("kb-vectors-1-open/_mget", failWith(200, `{"docs":[]}`)),
		at("kb-documents-1-open/_mget",
			failWith(200, `{"docs":[{"_id":"a","found":true,"_source":{"number":1,"print":"x","text":"text"}}]}`)),
		at("kb-documents-1-open/_search",
			failWith(200, `{"hits":{"hits":[{"fields":{"number":[1],"doc_id":["a"],"print":["x"],"updated":[1],"chunk_count":[1]},"sort":[1,1]}]}}`)))
	s, err := opensearch.New(opensearch.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.EmbedNext(t.Context(), direction{}, nil, 10); n != 1 || err != nil {
		t.Errorf("EmbedNext() = %d, %v, want 1 and no error", n, err)
	}
}

// TestLostConnection checks that a request that changes nothing is sent again if
// the node ends the connection, because another one may answer it.
func TestLostConnection(t *testing.T) {
	var lost atomic.Bool
	address, _ := fake(t, at("_search", func(w http.ResponseWriter, r *http.Request) bool {
		if lost.CompareAndSwap(false, true) {
			panic(http.ErrAbortHandler)
		}
		return failWith(200, `{"aggregations":{"values":{"buckets":[{"key":"note","doc_count":1}]}}}`)(w, r)
	}))
	s, err := opensearch.New(opensearch.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if counts, err := s.CountTypes(t.Context(), nil, nil); err != nil || counts["note"] != 1 || !lost.Load() {
		t.Errorf("CountTypes() = %v, %v, want a note", counts, err)
	}
}
