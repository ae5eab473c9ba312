package remote

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// key is the key of the tests. It must not be in any error or log.
const key = "sk-very-secret"

// A service is a fake of an embedding service. It passes requests to its handler
// without a network.
type service struct {
	handler  http.HandlerFunc
	requests []request
}

// A request is the body of a request, and some of the rest.
type request struct {
	URL, Authorization string
	Body               body
}

// A body is the body of a request in both APIs.
type body struct {
	Model    string   `json:"model"`
	Input    []string `json:"input"`
	Encoding string   `json:"encoding_format"`
}

// RoundTrip implements http.RoundTripper.
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	var b body
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		return nil, err
	}
	s.requests = append(s.requests, request{r.URL.String(), r.Header.Get("Authorization"), b})
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	rec := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.handler(rec, r)
	}()
	<-done
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return rec.Result(), nil
}

// vectorOf returns a vector for a text, not normalized.
func vectorOf(text string) []float32 { return []float32{float32(len(text)), 0, 2} }

// openAI answers with vectors in the reverse order.
func (s *service) openAI(w http.ResponseWriter, _ *http.Request) {
	input := s.requests[len(s.requests)-1].Body.Input
	var data []string
	for i := len(input) - 1; i >= 0; i-- {
		v, _ := json.Marshal(vectorOf(input[i]))
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, v))
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s],"model":"m","usage":{"prompt_tokens":1}}`, strings.Join(data, ","))
}

// base64 answers as openAI with vectors in base64.
func (s *service) base64(w http.ResponseWriter, _ *http.Request) {
	var data []string
	for i, text := range s.requests[len(s.requests)-1].Body.Input {
		var b []byte
		for _, x := range vectorOf(text) {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":%q}`, i, base64.StdEncoding.EncodeToString(b)))
	}
	fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
}

// ollama answers as /api/embed of Ollama.
func (s *service) ollama(w http.ResponseWriter, _ *http.Request) {
	var vectors [][]float32
	for _, text := range s.requests[len(s.requests)-1].Body.Input {
		vectors = append(vectors, vectorOf(text))
	}
	json.NewEncoder(w).Encode(map[string]any{"model": "m", "embeddings": vectors, "total_duration": 1})
}

// newTest returns an embedder of a fake service, whose log is checked for the key.
func newTest(t *testing.T, s *service, o Options) *Embedder {
	t.Helper()
	if o.URL == "" {
		o.URL = "http://embeddings.test/v1"
	}
	var log strings.Builder
	o.Key, o.Transport = key, s
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if strings.Contains(log.String(), key) || strings.Contains(log.String(), "embeddings.test") {
			t.Errorf("the log contains the key or the host: %s", log.String())
		}
	})
	return e
}

func TestEmbed(t *testing.T) {
	texts := []string{"a", "", "three", "ab"}
	want := [][]float32{}
	for _, text := range []string{"a", " ", "three", "ab"} {
		v := vectorOf(text)
		embed.Normalize(v)
		want = append(want, v)
	}
	for _, tt := range []struct {
		name, url, called string
		handler           func(*service) http.HandlerFunc
		encoding          string
	}{
		{"OpenAI", "http://embeddings.test/v1", "http://embeddings.test/v1/embeddings",
			func(s *service) http.HandlerFunc { return s.openAI }, "float"},
		{"OpenAI with base64", "http://embeddings.test/v1", "http://embeddings.test/v1/embeddings",
			func(s *service) http.HandlerFunc { return s.base64 }, "float"},
		{"Ollama", "http://embeddings.test/api", "http://embeddings.test/api/embed",
			func(s *service) http.HandlerFunc { return s.ollama }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &service{}
			s.handler = tt.handler(s)
			e := newTest(t, s, Options{URL: tt.url, Model: "all-minilm:l6-v2", Batch: 3})
			if e.Dimension() != 0 {
				t.Errorf("Dimension() = %d before the first call, want 0", e.Dimension())
			}
			got, err := e.Embed(t.Context(), texts, embed.Document)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Embed() differs (-want +got):\n%s", diff)
			}
			raw, err := embed.Raw(t.Context(), e, texts[2:3], embed.Document)
			if diff := cmp.Diff([][]float32{vectorOf("three")}, raw); err != nil || diff != "" {
				t.Errorf("Raw() = %v, differs (-want +got):\n%s", err, diff)
			}
			s.requests = s.requests[:2]
			if e.Dimension() != 3 || e.ID() != "all-minilm-l6-v2@remote" || e.MaxTokens() != 0 {
				t.Errorf("Dimension() = %d, ID() = %s, MaxTokens() = %d", e.Dimension(), e.ID(), e.MaxTokens())
			}
			requests := []request{
				{tt.called, "Bearer " + key, body{"all-minilm:l6-v2", []string{"a", " ", "three"}, tt.encoding}},
				{tt.called, "Bearer " + key, body{"all-minilm:l6-v2", []string{"ab"}, tt.encoding}}}
			if diff := cmp.Diff(requests, s.requests); diff != "" {
				t.Errorf("requests differ (-want +got):\n%s", diff)
			}
		})
	}
	e := newTest(t, &service{}, Options{})
	if got, err := e.Embed(t.Context(), nil, embed.Document); err != nil || len(got) != 0 {
		t.Errorf("Embed() of no texts = %v, %v", got, err)
	}
	if e.ID() != "unknown@embeddings.test" {
		t.Errorf("ID() = %s without a model", e.ID())
	}
}

func TestBatches(t *testing.T) {
	e := newTest(t, &service{}, Options{MaxText: 5})
	if got, want := e.batch([]string{"abcdéf", "x\xffy"}), []string{"abcd", "x�y"}; !cmp.Equal(got, want) {
		t.Errorf("batch() = %q, want %q", got, want)
	}
	long := strings.Repeat("x", 600_000)
	e = newTest(t, &service{}, Options{MaxText: 2 << 20})
	if got := len(e.batch([]string{long, long, "y"})); got != 1 {
		t.Errorf("batch() has %d long texts, want 1", got)
	}
}

func TestURLs(t *testing.T) {
	for _, tt := range []struct {
		url, want string
		ollama    bool
	}{
		{"http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/embeddings", false},
		{"http://127.0.0.1:11434/", "http://127.0.0.1:11434/v1/embeddings", false},
		{"http://127.0.0.1:11434/api/embed", "http://127.0.0.1:11434/api/embed", true},
		{"http://127.0.0.1:11434/api/", "http://127.0.0.1:11434/api/embed", true},
		{"https://api.openai.com/v1/", "https://api.openai.com/v1/embeddings", false},
		{"https://x/openai/deployments/d/embeddings?api-version=1",
			"https://x/openai/deployments/d/embeddings?api-version=1", false},
		{"https://x/v1beta/openai", "https://x/v1beta/openai/embeddings", false},
	} {
		u, ollama, err := parseURL(tt.url)
		if err != nil || u.String() != tt.want || ollama != tt.ollama {
			t.Errorf("parseURL(%s) = %v, %v, %v, want %s, %v", tt.url, u, ollama, err, tt.want, tt.ollama)
		}
	}
	for _, o := range []Options{{URL: ""}, {URL: "ftp://x"}, {URL: "http://"}, {URL: "x"}, {URL: "http:x"},
		{URL: "http://u:" + key + "@x"}, {URL: "http://x#f"},
		{URL: "http://[" + key}, {URL: "http://x", Key: key + "\n"}, {URL: "http://x", Key: strings.Repeat("x", 5000)},
		{URL: "http://x", Model: "\xff"}} {
		_, err := New(o)
		if !errors.Is(err, errkind.Invalid) || errkind.ReasonOf(err) == "" || strings.Contains(err.Error(), key) {
			t.Errorf("New(%+v) = %v, want an error of kind Invalid with a reason, without the key", o, err)
		}
	}
}

// TestErrors checks the kind, the reason and the number of requests for each
// failure of the service.
func TestErrors(t *testing.T) {
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, key)
		}
	}
	answer := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
	}
	for _, tt := range []struct {
		name     string
		handler  http.HandlerFunc
		options  Options
		kind     error
		status   int
		reason   errkind.Reason
		requests int
	}{
		{"key", status(401), Options{}, errkind.Unauthorized, 401, KeyReason, 1},
		{"forbidden", status(403), Options{}, errkind.Denied, 403, KeyReason, 1},
		{"unknown model", status(404), Options{Model: "m"}, errkind.NotFound, 404, ModelReason, 1},
		{"bad request", status(400), Options{}, errkind.Invalid, 400, ModelReason, 1},
		{"too long", status(413), Options{}, errkind.TooLarge, 413, "", 1},
		{"redirect", status(302, "Location", "http://elsewhere.test"), Options{}, errkind.Unsupported, 502, URLReason,
			1},
		{"no content", status(204), Options{}, errkind.Unavailable, 502, URLReason, 1},
		{"busy", status(429), Options{}, errkind.Busy, 429, "", 7},
		{"busy for long", status(429, "Retry-After", "3600"), Options{}, errkind.Busy, 429, "", 1},
		{"failure", status(500), Options{}, errkind.Unavailable, 500, "", 7},
		{"not implemented", status(501), Options{}, errkind.Unavailable, 501, "", 1},
		{"unavailable", status(503, "Retry-After", "20"), Options{}, errkind.Unavailable, 503, "", 7},
		{"timeout of a proxy", status(504), Options{}, errkind.Timeout, 504, TimeoutReason, 1},
		{"slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Options{Timeout: time.Minute},
			errkind.Timeout, 504, TimeoutReason, 1},
		{"HTML", answer("<html>"), Options{}, errkind.Unavailable, 502, URLReason, 1},
		{"truncated", answer(`{"data":[{"index":0,"embedding":[1,`), Options{}, errkind.Unavailable, 502, URLReason, 1},
		{"no vectors", answer(`{}`), Options{}, errkind.Unavailable, 502, URLReason, 1},
		{"too many vectors", answer(`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`), Options{},
			errkind.Unavailable, 502, URLReason, 1},
		{"index", answer(`{"data":[{"index":7,"embedding":[1]}]}`), Options{}, errkind.Unavailable, 502, "", 1},
		{"negative index", answer(`{"data":[{"index":-1,"embedding":[1]}]}`), Options{}, errkind.Unavailable, 502, "",
			1},
		{"empty vector", answer(`{"data":[{"index":0,"embedding":[]}]}`), Options{}, errkind.Unavailable, 502,
			ModelReason, 1},
		{"zero vector", answer(`{"data":[{"index":0,"embedding":[0,0]}]}`), Options{}, errkind.Unavailable, 502,
			ModelReason, 1},
		{"not a number", answer(`{"data":[{"index":0,"embedding":"AADAfw=="}]}`), Options{}, errkind.Unavailable, 502,
			ModelReason, 1},
		{"broken base64", answer(`{"data":[{"index":0,"embedding":"AAA="}]}`), Options{}, errkind.Unavailable, 502,
			URLReason, 1},
		{"other dimension", answer(`{"data":[{"index":0,"embedding":[1,2]}]}`), Options{Dimension: 3}, errkind.Conflict,
			502, ModelReason, 1},
		{"huge", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, maxBody+1)) }, Options{},
			errkind.Unavailable, 502, URLReason, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{handler: tt.handler}
				e := newTest(t, s, tt.options)
				_, err := e.Embed(t.Context(), []string{"x"}, embed.Document)
				r, ok := errors.AsType[*errkind.Remote](err)
				if !ok || !errors.Is(err, tt.kind) || r.Status != tt.status || r.Reason != tt.reason ||
					r.Endpoint != "/v1/embeddings" || len(s.requests) != tt.requests {
					t.Errorf("Embed() = %v (%+v) after %d requests, want kind %v, status %d, reason %q after %d", err,
						r, len(s.requests), tt.kind, tt.status, tt.reason, tt.requests)
				}
				if text := fmt.Sprint(err); strings.Contains(text, key) || strings.Contains(text, "embeddings.test") {
					t.Errorf("the error contains the key or the host: %s", text)
				}
			})
		})
	}
}

// broken is a transport without a network.
type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{URL: "http://embeddings.test", Key: key,
			Transport: broken{errors.New("dial embeddings.test: refused")}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Embed(t.Context(), []string{"x"}, embed.Query)
		r, _ := errors.AsType[*errkind.Remote](err)
		if !errors.Is(err, errkind.Unavailable) || r.Reason != URLReason || !errkind.Retryable(err) ||
			strings.Contains(err.Error(), "embeddings.test") {
			t.Errorf("Embed() = %v, want kind Unavailable with the reason of the URL", err)
		}
	})
}

// TestRetry checks when requests are repeated.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		s.handler = func(w http.ResponseWriter, r *http.Request) {
			switch len(s.requests) {
			case 1:
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(429)
			case 2:
				w.WriteHeader(500)
			default:
				s.openAI(w, r)
			}
		}
		e := newTest(t, s, Options{})
		start := time.Now()
		if _, err := e.Embed(t.Context(), []string{"x"}, embed.Document); err != nil {
			t.Errorf("Embed() = %v", err)
		}
		if took := time.Since(start); took < 8*time.Second || took > 8500*time.Millisecond {
			t.Errorf("Embed() took %v, want 7 s and the second wait of 1 s to 1.5 s", took)
		}
	})
	// A query is repeated once.
	synctest.Test(t, func(t *testing.T) {
		s := &service{handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }}
		e := newTest(t, s, Options{})
		start := time.Now()
		_, err := e.Embed(t.Context(), []string{"x"}, embed.Query)
		if took := time.Since(start); !errors.Is(err, errkind.Unavailable) || len(s.requests) != 2 ||
			took > time.Second {
			t.Errorf("Embed() = %v after %d requests and %v, want kind Unavailable after 2 within a second", err,
				len(s.requests), took)
		}
	})
	// The caller's context ends the wait.
	synctest.Test(t, func(t *testing.T) {
		s := &service{handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }}
		e := newTest(t, s, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := e.Embed(ctx, []string{"x"}, embed.Document); !errors.Is(err, context.DeadlineExceeded) ||
			len(s.requests) != 1 {
			t.Errorf("Embed() = %v after %d requests, want the error of the context after 1", err, len(s.requests))
		}
	})
}

// FuzzRead checks that no answer makes reading panic or return something else than
// one vector for each text, which can be scaled to length 1.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1,2]}]}`), false)
	f.Add([]byte(`{"data":[{"embedding":"AACAPw=="}]}`), false)
	f.Add([]byte(`{"embeddings":[[1,2]]}`), true)
	f.Fuzz(func(t *testing.T, data []byte, ollama bool) {
		e, err := New(Options{URL: map[bool]string{true: "http://x/api", false: "http://x"}[ollama]})
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := e.read(data, 1)
		if err != nil {
			return
		}
		if len(vectors) != 1 || len(vectors[0]) != e.Dimension() {
			t.Fatalf("read() returned %d vectors", len(vectors))
		}
		embed.Normalize(vectors[0])
		if n := embed.Norm(vectors[0]); math.Abs(n-1) > 1e-3 {
			t.Errorf("the norm is %v, want 1", n)
		}
	})
}
