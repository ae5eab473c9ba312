package opensearch

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"knowhow/internal/document"
	"knowhow/internal/search/searchtest"
)

func TestZZ(t *testing.T) {
	s, err := New(Options{Address: "opensearch+" + os.Getenv("KNOWHOW_TEST_OPENSEARCH") + "/zz" + fmt.Sprint(os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	var changes []document.Change
	docs := searchtest.Corpus()
	for i := range docs {
		changes = append(changes, document.Change{Put: &docs[i]})
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	for _, agg := range []object{
		{"df": object{"significant_text": object{"field": "tokens", "include": []string{"budget", "walru", "travel", "step", "検索"}, "min_doc_count": 1, "percentage": object{}}}},
		{"s": object{"sampler": object{"shard_size": 64}, "aggs": object{"df": object{"significant_text": object{"field": "tokens", "include": []string{"budget", "walru", "travel", "step"}, "min_doc_count": 1, "percentage": object{}}}}}},
	} {
		r, err := s.search(t.Context(), s.names.chunks, object{"size": 0, "query": object{"bool": object{"should": []object{term("tokens", "budget"), term("tokens", "walru"), term("tokens", "step"), term("tokens", "検索")}}}, "aggs": agg})
		b, _ := json.Marshal(r)
		fmt.Println(string(b), err)
	}
}
