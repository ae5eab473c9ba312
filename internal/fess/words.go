package fess

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Suggest implements [search.Service]. With a label it returns words of
// documents with the label, and words that were searched for with it.
func (c *Client) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	where, err := labelParams("label", q.Labels)
	if err != nil {
		return nil, err
	}
	if q.Labels != nil && len(q.Labels) == 0 {
		return []search.Suggestion{}, ctx.Err()
	}
	// Fess fails without q, so it is always sent.
	params := append([]param{{wire.Query, q.Prefix}, {wire.Num, strconv.Itoa(q.Num)}}, where...)
	lang, fields := repeat("lang", q.Langs), repeat("field", q.Fields)
	if len(q.Fields) > 0 {
		// This is the name in Fess's manual. Its code reads the other one
		// (SearchApiManager, 15.4).
		fields = append(fields, param{"fields", strings.Join(q.Fields, ",")})
	}
	a, err := c.get(ctx, question{suggestCall, slices.Concat(params, fields, lang),
		slices.Concat(params, repeat("fn", q.Fields), lang)})
	if err != nil {
		return nil, err
	}
	found, err := suggestions(a)
	if err != nil {
		return nil, err
	}
	words := []search.Suggestion{}
	for _, w := range found {
		switch {
		case w.Text == nil:
			return nil, notFess(a)
		case *w.Text != "" && len(words) < q.Num:
			words = append(words, search.Suggestion{Text: string(*w.Text),
				Labels: texts(slices.Concat(w.Labels, w.Types))})
		}
	}
	return words, nil
}

// suggestions returns the list in an answer. API v1 omits an empty list.
func suggestions(a *answer) ([]wire.Suggestion, error) {
	list, sent := wire.Suggestions{RecordCount: -1}, wire.SuggestionsV2{RecordCount: -1}
	if versionOf(a.path) == v2 {
		err := decode(a, &sent)
		if err == nil && (sent.RecordCount < 0 || sent.SuggestWords == nil) {
			err = notFess(a)
		}
		return sent.SuggestWords, err
	}
	err := decode(a, &list)
	n := list.RecordCount
	if n >= 0 && list.PageSize != nil {
		n = *list.PageSize
	}
	if err == nil && (n < 0 || n > 0 && list.Data == nil) {
		err = notFess(a)
	}
	return list.Data, err
}

// PopularWords implements [search.Service]. Fess lists words that were searched
// for at least ten times.
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
	a, err := c.get(ctx, question{to: popularCall, params: params})
	if err != nil {
		return nil, err
	}
	list := wire.PopularWords{RecordCount: -1}
	if err := decode(a, &list); err != nil {
		return nil, err
	}
	words := list.Data
	if versionOf(a.path) == v2 {
		words = list.PopularWords
	}
	if list.RecordCount < 0 || words == nil {
		return nil, notFess(a)
	}
	return texts(slices.DeleteFunc(words, func(w wire.Text) bool { return w == "" })), nil
}

// Labels implements [search.Service]. Fess lists the labels that the token may
// see.
func (c *Client) Labels(ctx context.Context) ([]search.Label, error) {
	a, err := c.get(ctx, question{to: labelsCall})
	if err != nil {
		return nil, err
	}
	list := wire.Labels{RecordCount: -1}
	if err := decode(a, &list); err != nil {
		return nil, err
	}
	found, missing := list.Data, list.Data == nil && list.RecordCount > 0 // API v1 omits an empty list
	if versionOf(a.path) == v2 {
		found, missing = list.Labels, list.Labels == nil
	}
	if list.RecordCount < 0 || missing {
		return nil, notFess(a)
	}
	labels := []search.Label{}
	for _, l := range found {
		switch {
		case l.Value == nil:
			return nil, notFess(a)
		case *l.Value != "":
			labels = append(labels, search.Label{Name: string(cmp.Or(l.Label, *l.Value)), Value: string(*l.Value)})
		}
	}
	return labels, nil
}

// Health implements [search.Service]. Fess answers with status 503 if its
// engine is red and with 500 if it cannot reach the engine. Only the latter is
// an error. API v2 does not report whether the engine timed out.
func (c *Client) Health(ctx context.Context) (search.Health, error) {
	a, err := c.ask(ctx, question{to: healthCall})
	if err != nil {
		return search.Health{}, err
	}
	if a.status != http.StatusServiceUnavailable {
		if err := c.check(ctx, a); err != nil {
			return search.Health{}, err
		}
	}
	var health wire.Health
	err = decode(a, &health)
	if err != nil && a.status == http.StatusOK {
		return search.Health{}, err
	}
	engine := cmp.Or(health.Data, health.Engine, &wire.Engine{})
	if e := health.Error; e != nil && e.Details != nil && e.Details.Engine != nil {
		engine = e.Details.Engine
	}
	status := strings.ToLower(string(engine.Status))
	switch {
	case status == "green", status == "yellow", status == "red":
		return search.Health{Status: status, TimedOut: engine.TimedOut == true}, nil
	case a.status == http.StatusServiceUnavailable:
		return search.Health{}, c.refusal(ctx, a)
	}
	return search.Health{}, &errkind.Remote{Endpoint: a.path, Status: http.StatusBadGateway,
		Message: "the Fess server's answer contains no state of health; check that its address is right",
		Reason:  AddressReason}
}
