package fess

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

// maxPrefix bounds what is to be completed, in bytes.
const maxPrefix = 1000

// Suggest implements [search.Suggester]. A label lets through only words of
// documents that carry it, and words that were searched for under it.
func (c *Client) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	if q.Num < 1 || q.Num > maxNum {
		return nil, &errkind.Argument{Name: "num", Value: q.Num, Want: "an integer from 1 to " + strconv.Itoa(maxNum)}
	}
	if len(q.Prefix) > maxPrefix {
		return nil, &errkind.Argument{Name: "prefix", Value: q.Prefix, Want: "at most " + strconv.Itoa(maxPrefix) + " bytes"}
	}
	where, err := labelParams("label", q.Labels)
	if err != nil {
		return nil, err
	}
	lang, err := langParams(q.Langs)
	if err != nil {
		return nil, err
	}
	if q.Labels != nil && len(q.Labels) == 0 {
		return []search.Suggestion{}, ctx.Err()
	}
	// Fess fails without q, so that it is always there.
	params := append([]param{{"q", q.Prefix}, {"num", strconv.Itoa(q.Num)}}, where...)
	params = append(params, repeat("field", q.Fields)...)
	if len(q.Fields) > 0 {
		// The name and the form that Fess's manual gives; the code reads
		// the other (SearchApiManager, 15.4).
		params = append(params, param{"fields", strings.Join(q.Fields, ",")})
	}
	var a struct {
		Data []struct {
			Text   text `json:"text"`
			Labels list `json:"labels"`
		} `json:"data"`
	}
	if err := c.get(ctx, suggestPath, append(params, lang...), &a); err != nil {
		return nil, err
	}
	words := []search.Suggestion{}
	for _, w := range a.Data {
		if w.Text != "" && len(words) < q.Num {
			words = append(words, search.Suggestion{Text: string(w.Text), Labels: append([]string{}, w.Labels...)})
		}
	}
	return words, nil
}

// PopularWords implements [search.WordLister]. Fess lists words that were
// searched for ten times or more.
func (c *Client) PopularWords(ctx context.Context, q search.WordsQuery) ([]string, error) {
	params, err := labelParams("label", q.Labels)
	if err != nil {
		return nil, err
	}
	if q.Labels != nil && len(q.Labels) == 0 {
		return []string{}, ctx.Err()
	}
	params = append(params, repeat("seed", []string{q.Seed})...)
	params = append(params, repeat("field", q.Fields)...)
	var a struct {
		Data list `json:"data"`
	}
	if err := c.get(ctx, popularPath, params, &a); err != nil {
		return nil, err
	}
	words := []string{}
	for _, w := range a.Data {
		if w != "" {
			words = append(words, w)
		}
	}
	return words, nil
}

// Labels implements [search.Labeler]. Fess lists the labels that our token may
// see.
func (c *Client) Labels(ctx context.Context) ([]search.Label, error) {
	var a struct {
		Data []struct {
			Label text `json:"label"`
			Value text `json:"value"`
		} `json:"data"`
	}
	if err := c.get(ctx, labelsPath, nil, &a); err != nil {
		return nil, err
	}
	labels := []search.Label{}
	for _, l := range a.Data {
		if l.Value != "" {
			name := l.Label
			if name == "" {
				name = l.Value
			}
			labels = append(labels, search.Label{Name: string(name), Value: string(l.Value)})
		}
	}
	return labels, nil
}

// Health implements [search.Checker]. Fess answers with status 503 where its
// engine is red, and with 500 where it cannot reach the engine; only the latter
// is an error.
func (c *Client) Health(ctx context.Context) (search.Health, error) {
	a, err := c.fetch(ctx, healthPath, nil)
	if err != nil {
		return search.Health{}, err
	}
	if a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
		return search.Health{}, statusError(healthPath, a)
	}
	var said struct {
		Data struct {
			Status   text `json:"status"`
			TimedOut text `json:"timed_out"`
		} `json:"data"`
	}
	if err := decode(healthPath, a.body, &said); err != nil {
		return search.Health{}, err
	}
	switch status := strings.ToLower(string(said.Data.Status)); {
	case status == "green", status == "yellow", status == "red":
		return search.Health{Status: status, TimedOut: said.Data.TimedOut == "true"}, nil
	case a.status == http.StatusServiceUnavailable:
		return search.Health{}, statusError(healthPath, a)
	}
	return search.Health{}, &errkind.Remote{Endpoint: healthPath, Status: http.StatusBadGateway,
		Message: "the Fess server's answer names no state of health; check that fessBaseUrl names a Fess server"}
}
