package searchmcp

import (
	"context"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

func (t *Tools) addWords(s *mcpserver.Server) {
	mcpserver.AddTool(s, t.tool("suggest", "Suggest terms", t.choose(
		"Suggest related terms for a query in the knowledge domain. Use it when a search finds nothing or to find "+
			"the spelling of a word in this domain.",
		"Complete the beginning of a word with words from these documents. Use it when a search finds nothing.")),
		t.suggest)
	mcpserver.AddTool(s, t.tool("popular_words", "List popular words", t.choose(
		"Retrieve popular words in the knowledge domain. Use it to see what people search for in this domain.",
		"List words that are searched for often or that many of these documents contain.")), t.popularWords)
}

type suggestArgs struct {
	Prefix string   `json:"prefix" jsonschema:"Beginning of a word" limits:"minLength=1"`
	Num    int      `json:"num,omitempty" limits:"minimum=1 maximum=100 default=10"`
	Fields []string `json:"fields,omitempty" jsonschema:"Any of content, title, _default (past queries)"`
	Lang   string   `json:"lang,omitempty" jsonschema:"For example en"`
}

type suggestion struct {
	Text   string   `json:"text"`
	Labels []string `json:"labels"`
}

func (t *Tools) suggest(ctx context.Context, in suggestArgs) (any, error) {
	if strings.TrimSpace(in.Prefix) == "" {
		return nil, &errkind.Argument{Name: "prefix", Value: in.Prefix, Want: "the beginning of a word"}
	}
	if err := checkFields("fields", in.Fields); err != nil {
		return nil, err
	}
	langs, err := parseLangs(in.Lang)
	if err != nil {
		return nil, err
	}
	q := search.SuggestQuery{Prefix: in.Prefix, Num: in.Num, Labels: t.labels, Fields: in.Fields, Langs: langs}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	return t.call(ctx, func(ctx context.Context) (any, error) {
		found, err := t.backend.Suggest(ctx, q)
		if err != nil {
			return nil, err
		}
		list := make([]suggestion, len(found))
		for i, s := range found {
			list[i] = suggestion{word(s.Text), words(s.Labels)}
		}
		return map[string][]suggestion{"suggestions": list}, nil
	})
}

type wordsArgs struct {
	Seed  *int64 `json:"seed,omitempty"`
	Field string `json:"field,omitempty" jsonschema:"Only words from this field"`
}

func (t *Tools) popularWords(ctx context.Context, in wordsArgs) (any, error) {
	q := search.WordsQuery{Labels: t.labels}
	if in.Seed != nil {
		q.Seed = strconv.FormatInt(*in.Seed, 10)
	}
	if in.Field != "" {
		q.Fields = []string{in.Field}
	}
	if err := checkFields("field", q.Fields); err != nil {
		return nil, err
	}
	return t.call(ctx, func(ctx context.Context) (any, error) {
		found, err := t.backend.PopularWords(ctx, q)
		if err != nil {
			return nil, err
		}
		return map[string][]string{"words": words(found)}, nil
	})
}

// checkFields checks names that are passed on unchanged. The service decides
// which fields have words.
func checkFields(argument string, names []string) error {
	for _, name := range names {
		if len(name) > maxFieldName || !fieldPattern.MatchString(name) || len(names) > maxWordFields {
			return &errkind.Argument{Name: argument, Value: name,
				Want: "names of fields such as content, title or _default, at most " + strconv.Itoa(maxWordFields)}
		}
	}
	return nil
}
