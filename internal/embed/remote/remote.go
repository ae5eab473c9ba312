// Package remote is an embedder that calls an HTTP service: one with the API of
// OpenAI (/v1/embeddings), which llama.cpp, LM Studio, vLLM and others have too, or
// that of Ollama (/api/embed).
//
// Errors of calls are of type *errkind.Remote. They do not contain the host of the
// service, the key, or text that the service sent.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// Options that an error can be due to; see [errkind.ReasonOf].
const (
	URLReason       errkind.Reason = "embed/remote: URL"
	ModelReason     errkind.Reason = "embed/remote: Model"
	KeyReason       errkind.Reason = "embed/remote: Key"
	TimeoutReason   errkind.Reason = "embed/remote: Timeout"
	DimensionReason errkind.Reason = "embed/remote: Dimension"
)

// Options configure an Embedder.
type Options struct {
	// URL is the address of the service, with http or https. A path that ends
	// with /api/embed is Ollama's API, and one that ends with /embeddings
	// OpenAI's. Otherwise the rest of the path is added: /embed to /api,
	// /v1/embeddings to an empty path, and /embeddings to every other path.
	URL string

	Model string // name of the model; "" leaves the choice to the service
	Key   string // sent as a bearer token; "" for none

	Dimension int           // expected number of components; 0 accepts that of the first answer
	Timeout   time.Duration // limit of one request; 0 means 30 s
	Batch     int           // maximum number of texts in a request; 0 means 32
	MaxText   int           // texts are cut to this length, in bytes; 0 means 8192

	UserAgent string            // "" means "knowhow"
	Transport http.RoundTripper // nil means one that uses the proxy of the environment
	Log       *slog.Logger      // nil discards
}

// Defaults of Options.
const (
	defaultTimeout = 30 * time.Second
	defaultBatch   = 32
	defaultMaxText = 8192
)

// Limits.
const (
	maxBody      = 32 << 20 // bytes of an answer
	maxRequest   = 1 << 20  // bytes of the texts of a request with more than one
	maxDimension = 1 << 16
)

// An Embedder calls one service. It implements embed.Embedder.
type Embedder struct {
	endpoint  *url.URL
	ollama    bool
	http      *http.Client
	options   Options
	dimension atomic.Int64
}

// New returns an embedder. It makes no request. Invalid options are errors of kind
// Invalid.
func New(o Options) (*Embedder, error) {
	endpoint, ollama, err := parseURL(o.URL)
	if err != nil {
		return nil, &errkind.Restriction{Reason: URLReason, Err: err}
	}
	if err := httpclient.CheckKey("the key of the embedding service", o.Key); err != nil {
		return nil, &errkind.Restriction{Reason: KeyReason, Err: err}
	}
	if !utf8.ValidString(o.Model) || len(o.Model) > 500 {
		return nil, &errkind.Restriction{Reason: ModelReason, Err: fmt.Errorf(
			"reading the name of the embedding model: want at most 500 bytes of UTF-8: %w", errkind.Invalid)}
	}
	o.Timeout = max(o.Timeout, 0)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Batch = cmp.Or(max(o.Batch, 0), defaultBatch)
	o.MaxText = cmp.Or(max(o.MaxText, 0), defaultMaxText)
	o.UserAgent = cmp.Or(o.UserAgent, "knowhow")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Embedder{endpoint: endpoint, ollama: ollama, options: o, http: httpclient.New(o.Transport)}
	e.dimension.Store(int64(o.Dimension))
	return e, nil
}

// parseURL returns the address of the call, and whether the API is that of Ollama.
func parseURL(s string) (u *url.URL, ollama bool, err error) {
	if u, err = httpclient.ParseURL("the address of the embedding service", s); err != nil {
		return nil, false, err
	}
	switch path := strings.TrimRight(u.Path, "/"); {
	case strings.HasSuffix(path, "/api/embed"):
		return u, true, nil
	case strings.HasSuffix(path, "/embeddings"):
		return u, false, nil
	case strings.HasSuffix(path, "/api"):
		return u.JoinPath("embed"), true, nil
	case path == "":
		return u.JoinPath("v1", "embeddings"), false, nil
	}
	return u.JoinPath("embeddings"), false, nil
}

// ID implements embed.Embedder. Vectors of the same model are comparable, whichever
// service computes them.
func (e *Embedder) ID() string {
	if e.options.Model == "" {
		return "unknown@" + e.endpoint.Host
	}
	return embed.ModelName(e.options.Model) + "@remote"
}

// Dimension implements embed.Embedder.
func (e *Embedder) Dimension() int { return int(e.dimension.Load()) }

// MaxTokens implements embed.Embedder. The services do not report it.
func (e *Embedder) MaxTokens() int { return 0 }

// Close closes idle connections. Calls in progress continue.
func (e *Embedder) Close() { e.http.CloseIdleConnections() }

// Embed implements embed.Embedder. Requests that fail and may succeed later are
// repeated: once for queries, for which somebody waits, and for up to about a
// minute for documents.
func (e *Embedder) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	out, err := e.EmbedRaw(ctx, texts, kind)
	for _, v := range out {
		embed.Normalize(v)
	}
	return out, err
}

// EmbedRaw is like Embed, but the vectors have the lengths that the service gave
// them. See [embed.Raw].
func (e *Embedder) EmbedRaw(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for len(out) < len(texts) {
		batch := e.batch(texts[len(out):])
		vectors, err := e.retry(ctx, batch, kind)
		if err != nil {
			return nil, fmt.Errorf("encoding texts: %w", err)
		}
		out = append(out, vectors...)
	}
	return out, nil
}

// batch returns the texts of the next request, cut to the maximum length.
func (e *Embedder) batch(texts []string) []string {
	var batch []string
	size := 0
	for _, t := range texts[:min(len(texts), e.options.Batch)] {
		if len(t) > e.options.MaxText {
			end := e.options.MaxText
			for end > 0 && !utf8.RuneStart(t[end]) {
				end--
			}
			t = t[:end]
		}
		size += len(t)
		if len(batch) > 0 && size > maxRequest {
			break
		}
		if strings.TrimSpace(t) == "" {
			t = " " // OpenAI refuses empty texts
		}
		batch = append(batch, strings.ToValidUTF8(t, "�"))
	}
	return batch
}

// Times between attempts.
const (
	firstWait = 500 * time.Millisecond
	maxWait   = 30 * time.Second // longer waits, if the service asks for them, are errors
)

// retry calls the service until it answers, with growing times between attempts.
func (e *Embedder) retry(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	attempts := 7
	if kind == embed.Query {
		attempts = 2
	}
	wait := firstWait
	for attempt := 1; ; attempt++ {
		vectors, again, err := e.call(ctx, texts)
		r, ok := errors.AsType[*errkind.Remote](err)
		if !ok || !again || attempt == attempts {
			return vectors, err
		}
		pause := max(wait, r.Retry)
		if r.Retry == 0 {
			pause = wait + rand.N(wait/2) // so that clients do not return together
		}
		if pause > maxWait || kind == embed.Query && pause > 2*time.Second {
			return nil, err
		}
		e.options.Log.DebugContext(ctx, "repeating a call to the embedding service", "status", r.Status, "attempt",
			attempt, "wait", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		wait = min(2*wait, maxWait)
	}
}

// again reports whether the same request may succeed soon after an answer with
// this status. After a timeout it would only take as long again.
func again(status int) bool {
	return status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented &&
		status != http.StatusGatewayTimeout
}

// call makes one request. After an error it reports whether the same request may
// succeed soon.
func (e *Embedder) call(ctx context.Context, texts []string) (vectors [][]float32, repeat bool, err error) {
	body := map[string]any{"input": texts}
	if e.options.Model != "" {
		body["model"] = e.options.Model
	}
	if !e.ollama {
		body["encoding_format"] = "float"
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, false, fmt.Errorf("writing the request: %w", err)
	}
	call, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(call, http.MethodPost, e.endpoint.String(), bytes.NewReader(data))
	if err != nil {
		return nil, false, e.fault(nil, http.StatusBadGateway, unreachable, URLReason)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"},
		"User-Agent": {e.options.UserAgent}}
	if e.options.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.options.Key)
	}
	start := time.Now()
	resp, err := e.http.Do(req)
	if err != nil {
		err = e.callError(ctx, call, err)
		return nil, !errors.Is(err, errkind.Timeout), err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		io.CopyN(io.Discard, resp.Body, 4096) // so that the connection can be used again
		return nil, again(resp.StatusCode), e.statusError(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		err = e.callError(ctx, call, err)
		return nil, !errors.Is(err, errkind.Timeout), err
	}
	if len(answer) > maxBody {
		return nil, false, e.malformed("sent an answer that is too large; check its address", URLReason)
	}
	e.options.Log.DebugContext(ctx, "called the embedding service", "texts", len(texts), "bytes", len(answer), "took",
		time.Since(start).Round(time.Millisecond))
	vectors, err = e.read(answer, len(texts))
	return vectors, false, err
}
