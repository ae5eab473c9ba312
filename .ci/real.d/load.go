package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// Access tokens of the server: that of an administrator, who sees what guests
// see, and that of a role that sees nothing.
const (
	adminToken  = "administrator0000000000000000000000000000000000000000000000"
	nobodyToken = "nobody00000000000000000000000000000000000000000000000000000"
)

// client returns a client without a proxy, because all servers are on this
// machine.
func client() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

// load fills the server with the corpus of the contract suite: labels,
// documents, some searches for the popular words, and suggestions.
func (s *site) load(ctx context.Context) error {
	if err := s.addTokens(ctx); err != nil {
		return err
	}
	for i, value := range []string{"finance", "hr", "docs"} {
		name := strings.ToUpper(value[:1]) + value[1:]
		body := map[string]any{"name": name, "value": value, "permissions": "{role}guest", "sort_order": i + 1}
		if err := s.admin(ctx, "POST", "labeltype/setting", body, nil); err != nil {
			return err
		}
	}
	if err := s.addDocuments(ctx, searchtest.Corpus()); err != nil {
		return err
	}
	for label, word := range map[string]string{"finance": "invoice", "hr": "zeppelin", "docs": "infrastructure"} {
		q := url.Values{"q": {word}, "fields.label": {label}, "num": {"1"}}
		if err := s.call(ctx, "GET", s.fessURL+"/api/v1/documents?"+q.Encode(), "", nil, nil); err != nil {
			return err
		}
	}
	return s.suggest(ctx, 3)
}

// addTokens stores the access tokens as Fess does.
func (s *site) addTokens(ctx context.Context) error {
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	for name, t := range map[string]struct{ token, role string }{"administrator": {adminToken, "admin-api"}, "nobody": {nobodyToken, "nobody"}} {
		permissions := []string{"R" + t.role}
		if name == "administrator" {
			permissions = append(permissions, "Rguest")
		}
		err := errors.Join(
			out.Encode(map[string]any{"index": map[string]any{"_index": "fess_config.access_token", "_id": name}}),
			out.Encode(map[string]any{"name": name, "token": t.token, "permissions": permissions,
				"createdBy": "admin", "createdTime": 1, "updatedBy": "admin", "updatedTime": 1}))
		if err != nil {
			return err
		}
	}
	return s.bulk(ctx, lines.Bytes())
}

// addDocuments loads documents through Fess's admin API. Fess assigns each
// document an ID, which is then replaced by that of the suite.
func (s *site) addDocuments(ctx context.Context, docs []document.Document) error {
	rows := make([]map[string]any, len(docs))
	ids := map[string]string{}
	for i, d := range docs {
		rows[i] = row(d)
		ids[d.URL] = d.ID
	}
	var loaded struct {
		Response struct {
			Items []struct{ ID, Message string }
		}
	}
	if err := s.admin(ctx, "PUT", "documents/bulk", map[string]any{"documents": rows}, &loaded); err != nil {
		return err
	}
	for _, item := range loaded.Response.Items {
		if item.Message != "" {
			return fmt.Errorf("document refused: %s", item.Message)
		}
	}
	var found struct {
		Hits struct {
			Hits []struct {
				ID     string               `json:"_id"`
				Source struct{ URL string } `json:"_source"`
			}
		}
	}
	err := until(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		err := s.call(ctx, "GET", s.engineURL+"/fess.search/_search?size=1000&_source=url", "", nil, &found)
		return len(found.Hits.Hits) == len(docs), err
	})
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	for _, hit := range found.Hits.Hits {
		err := errors.Join(
			out.Encode(map[string]any{"update": map[string]any{"_index": "fess.update", "_id": hit.ID}}),
			out.Encode(map[string]any{"doc": map[string]any{"doc_id": ids[hit.Source.URL]}}))
		if err != nil {
			return err
		}
	}
	return s.bulk(ctx, lines.Bytes())
}

// row returns a document as Fess's admin API expects it.
func row(d document.Document) map[string]any {
	when := d.Modified.UTC().Format("2006-01-02T15:04:05.000Z")
	m := map[string]any{
		"url": d.URL, "title": d.Title, "content": d.Text, "digest": digest(d.Text), "label": []string{d.Label}, "role": []string{"Rguest"},
		"lang": []string{d.Lang}, "mimetype": d.MIMEType, "filetype": d.FileType, "filename": d.Filename, "content_length": d.Stamp.Size,
		"created": when, "timestamp": when, "last_modified": when, "boost": 1.0, "click_count": 0, "favorite_count": 0,
	}
	if d.Host != "" {
		m["host"] = d.Host
	}
	return m
}

// digest returns the beginning of a text, with the length of Fess's digests.
func digest(text string) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), 200)])
}

// suggest waits until the log, which a job of Fess writes, has a number of
// searches, and runs the job that collects suggestions.
func (s *site) suggest(ctx context.Context, searches int) error {
	if err := s.admin(ctx, "PUT", "scheduler/log_aggregator/start", nil, nil); err != nil {
		return err
	}
	err := until(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		var log struct{ Count int }
		err := s.call(ctx, "GET", s.engineURL+"/fess_log.search_log/_count", "", nil, &log)
		return log.Count >= searches, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the log of searches: %w", err)
	}
	if err := s.admin(ctx, "PUT", "scheduler/suggest_indexer/start", nil, nil); err != nil {
		return err
	}
	if err := until(ctx, 2*time.Minute, s.suggested); err != nil {
		return fmt.Errorf("collecting suggestions: %w", err)
	}
	return nil
}

// suggested reports whether the job that collects suggestions has ended.
func (s *site) suggested(ctx context.Context) (bool, error) {
	var logs struct {
		Response struct {
			Logs []struct {
				JobName      string `json:"job_name"`
				JobStatus    string `json:"job_status"`
				ScriptResult string `json:"script_result"`
			}
		}
	}
	err := s.admin(ctx, "GET", "joblog/logs?size=50", nil, &logs)
	for _, l := range logs.Response.Logs {
		switch {
		case l.JobName != "Suggest Indexer":
		case l.JobStatus == "fail":
			return false, fmt.Errorf("%.300s", l.ScriptResult)
		case l.JobStatus == "ok":
			// A job that failed to start its JVM also has this status.
			var words struct {
				Count int `json:"record_count"`
			}
			err := errors.Join(s.call(ctx, "POST", s.engineURL+"/_refresh", "", nil, nil),
				s.call(ctx, "GET", s.fessURL+"/api/v1/suggest-words?q=zepp", "", nil, &words))
			if err == nil && words.Count == 0 {
				err = fmt.Errorf("the job found no suggestions: %.300s", l.ScriptResult)
			}
			return true, err
		}
	}
	return false, err
}

// admin calls Fess's admin API.
func (s *site) admin(ctx context.Context, method, path string, body, answer any) error {
	var status struct {
		Response struct {
			Status  int
			Message string
		}
	}
	raw := json.RawMessage{}
	if err := s.call(ctx, method, s.fessURL+"/api/admin/"+path, adminToken, body, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &status); err != nil || status.Response.Status != 0 {
		return fmt.Errorf("%s %s = %.500s", method, path, raw)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(raw, answer)
}

// bulk sends a list of changes to OpenSearch.
func (s *site) bulk(ctx context.Context, lines []byte) error {
	var answer struct{ Errors bool }
	if err := s.call(ctx, "POST", s.engineURL+"/_bulk?refresh=true", "", lines, &answer); err != nil {
		return err
	}
	if answer.Errors {
		return errors.New("OpenSearch rejected some changes")
	}
	return nil
}

// call sends a request with a JSON body, or with body itself if it is bytes,
// and decodes the JSON response.
func (s *site) call(ctx context.Context, method, to, token string, body, answer any) error {
	data, ok := body.([]byte)
	if !ok && body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s = %s: %.500s", method, req.URL.Path, resp.Status, got)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(got, answer)
}
