package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/config"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// model checks the model that makes vectors.
func (e *examiner) model(ctx context.Context) []Finding {
	const subject = "model"
	switch {
	case e.ModelErr != nil:
		return []Finding{{Level: Error, Subject: subject, Message: e.reason(e.ModelErr),
			Fix: "Correct --embedder or KNOWHOW_EMBEDDER, or unset it to use the built-in model."}}
	case e.Model == nil:
		return []Finding{ok(subject, "none: searches use words only")}
	case !e.Remote:
		return []Finding{ok(subject, "%s", e.foreign(e.Model.ID()))}
	}
	if _, err := e.Model.Embed(ctx, []string{"a question"}, embed.Query); err != nil {
		return []Finding{{Level: Error, Subject: subject, Message: "the service for vectors fails: " + e.reason(err),
			Fix: "Start it, or correct --embedder, EMBED_MODEL and EMBED_API_KEY. Until then, searches use words only."}}
	}
	return []Finding{ok(subject, "%s answers", e.foreign(e.Model.ID()))}
}

// store checks the store in place of the data folder.
func (e *examiner) store(ctx context.Context) []Finding {
	const subject = "store"
	if e.StoreErr != nil {
		return []Finding{{Level: Error, Subject: subject, Message: e.reason(e.StoreErr),
			Fix: "Correct --store or KNOWHOW_STORE, and OPENSEARCH_CA_FILE."}}
	}
	if e.Store == nil {
		return nil
	}
	failed := func(err error) []Finding {
		fix := "Check that the cluster runs, and the address in --store or KNOWHOW_STORE."
		if errors.Is(err, errkind.Unauthorized) || errors.Is(err, errkind.Denied) {
			fix = "Correct the user and the password, in the URL of the store or in OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD."
		}
		return []Finding{{Level: Error, Subject: subject, Message: e.reason(e.Explain(err)), Fix: fix}}
	}
	if err := e.Store.Open(ctx); err != nil {
		return failed(err)
	}
	health, err := e.Store.Health(ctx)
	if err != nil {
		return failed(err)
	}
	var findings []Finding
	switch {
	case health.Status == "red":
		findings = append(findings, Finding{Level: Error, Subject: subject,
			Message: "the cluster is red: a part of the documents cannot be searched",
			Fix:     "Start the nodes that are missing, and look into the log of OpenSearch."})
	case health.TimedOut:
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: "the cluster did not report its health in time",
			Fix:     "Check how busy it is, and try again."})
	}
	if !e.Store.HasVectors() {
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: "OpenSearch has no k-NN plugin, so documents are found by words only",
			Fix:     "Install the plugin opensearch-knn on every node."})
	}
	if len(findings) == 0 {
		findings = append(findings, ok(subject, "OpenSearch answers, its health is %s", e.foreign(health.Status)))
	}
	return findings
}

// A fessServer is the part of the client of a Fess server that is checked.
type fessServer interface {
	Health(ctx context.Context) (search.Health, error)
	Labels(ctx context.Context) ([]search.Label, error)
}

// fess checks the configuration of the bridge, and the Fess server behind it.
func (e *examiner) fess(ctx context.Context) []Finding {
	const subject = "Fess"
	path := e.FessConfig
	if path == "" {
		if e.Home == "" {
			return nil
		}
		if path, _ = fessconfig.Find(e.Home); path == "" {
			return nil
		}
	}
	c, warnings, err := fessconfig.Read(path, fessconfig.Options{Env: e.Lookup, Home: e.Home})
	if err != nil {
		return []Finding{{Level: Error, Subject: subject, Message: e.configError(path, err),
			Fix: fmt.Sprintf("Correct %s. %q shows the smallest one.", path, e.Program+" help fess")}}
	}
	var findings []Finding
	for _, w := range warnings {
		findings = append(findings, Finding{Level: Warning, Subject: subject, Message: e.foreign(w),
			Fix: fmt.Sprintf("Correct %s.", path)})
	}
	if e.FessToken != "" {
		c.FessAuth.AccessToken = e.FessToken
	}
	e.secret(c.FessAuth.AccessToken, c.Security.HTTPAuthToken)
	e.secretURL(c.FessBaseURL)
	e.secretURL(c.ContentFetch.Proxy)
	client, err := fess.New(fess.Options{BaseURL: c.FessBaseURL, API: c.FessAPI, AccessToken: c.FessAuth.AccessToken,
		CAFile: c.TLS.CAFile, InsecureSkipVerify: c.TLS.InsecureSkipVerify, Timeout: min(e.Limit,
			time.Duration(c.Timeouts.FessRequestTimeoutMs)*time.Millisecond), UserAgent: "knowhow/" + e.Build.Version})
	if err != nil {
		return append(findings, Finding{Level: Error, Subject: subject, Message: e.reason(c.Explain(err)),
			Fix: fmt.Sprintf("Correct fessBaseUrl, fessAuth and tls in %s.", path)})
	}
	defer client.Close()
	return append(findings, e.askFess(ctx, client, c, path)...)
}

// configError returns the first error of a configuration.
func (e *examiner) configError(path string, err error) string {
	if first, ok := errors.AsType[*config.Error](err); ok {
		return e.foreign(first.Error())
	}
	return path + ": " + e.reason(err)
}

// askFess asks a Fess server for its health and its labels.
func (e *examiner) askFess(ctx context.Context, server fessServer, c *fessconfig.Config, path string) []Finding {
	const subject = "Fess"
	health, err := server.Health(ctx)
	switch {
	case err != nil:
		fix := fmt.Sprintf("Check that Fess runs at fessBaseUrl, which is in %s.", path)
		if errors.Is(err, errkind.Unauthorized) || errors.Is(err, errkind.Denied) {
			fix = fmt.Sprintf("Correct fessAuth.accessToken in %s, or FESS_API_TOKEN.", path)
		}
		return []Finding{{Level: Error, Subject: subject, Message: e.reason(c.Explain(err)), Fix: fix}}
	case health.Status == "red":
		return []Finding{{Level: Error, Subject: subject,
			Message: "the search engine of Fess is red, so it finds nothing",
			Fix:     "Start its search engine, and look into the log of Fess."}}
	case c.FessAuth.PassThrough:
		return []Finding{ok(subject, "answers, its health is %s; labels need the token of a caller",
			e.foreign(health.Status))}
	}
	labels, err := server.Labels(ctx)
	if err != nil {
		return []Finding{{Level: Error, Subject: subject,
			Message: "it does not list its labels: " + e.reason(c.Explain(err)),
			Fix:     fmt.Sprintf("Correct fessAuth.accessToken in %s, or FESS_API_TOKEN.", path)}}
	}
	if label := c.Domain.LabelFilter; label != "" &&
		!slices.ContainsFunc(labels, func(l search.Label) bool { return l.Value == label }) {
		return []Finding{{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("it has no label %q that this token may see, so searches find nothing",
				e.foreign(label)),
			Fix: fmt.Sprintf("Correct domain.labelFilter in %s, or make the label in Fess.", path)}}
	}
	return []Finding{ok(subject, "answers, its health is %s", e.foreign(health.Status))}
}
